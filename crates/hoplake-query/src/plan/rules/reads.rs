//! What steps read of the elements that come to them.

use std::{collections::HashSet, sync::Arc};

use crate::{
    plan::{By, Name, Step},
    tokens::T,
};

/// How many steps ahead are looked at.
const AHEAD: usize = 16;

/// Whether what comes out of an operator are elements that came to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// They are.
    Through,
    /// They are others, or values.
    Ends,
}

impl Flow {
    /// Through, if something is so.
    pub fn through_if(is_through: bool) -> Self {
        if is_through { Self::Through } else { Self::Ends }
    }
}

/// What some steps read of the elements that come to the first of them.
#[derive(Debug, Default)]
pub struct Reads {
    pub(super) names: Vec<Name>,
    known: HashSet<Name>,
    pub(super) all: bool,
    /// Parts that are read for themselves if nothing reads them together.
    pub(super) count: usize,
}

impl Reads {
    /// Of one step.
    pub(super) fn of_step(step: &Step) -> Self {
        let mut reads = Self::default();
        step.operator.reads(&mut reads);
        reads
    }

    /// A property is read.
    pub fn name(&mut self, name: &Name) {
        self.count += 1;
        self.add(name);
    }

    /// Some properties are, or all if there are no names.
    pub fn names(&mut self, names: &[Name]) {
        self.count += 1;
        self.all |= names.is_empty();
        names.iter().for_each(|name| self.add(name));
    }

    /// The id is.
    pub fn id(&mut self) {
        self.count += 1;
    }

    /// What is computed of them is.
    pub fn by(&mut self, by: &By) {
        match by {
            By::Property(name) => self.name(name),
            By::Token(T::Id) => self.id(),
            By::Steps(steps) => {
                self.steps(steps);
            }
            _ => {}
        }
    }

    /// What steps read is; whether the elements come out at the end of them.
    pub fn steps(&mut self, steps: &[Arc<Step>]) -> bool {
        for step in steps.iter().take(AHEAD) {
            if step.operator.reads(self) == Flow::Ends {
                return false;
            }
        }
        steps.len() <= AHEAD
    }

    fn add(&mut self, name: &Name) {
        if self.known.insert(name.clone()) {
            self.names.push(name.clone());
        }
    }
}

/// Whether steps read something of the elements that come to the first of them.
pub(super) fn reads_elements(steps: &[Arc<Step>], is_root: bool) -> bool {
    let mut reads = Reads::default();
    let are_results = reads.steps(steps) && is_root;
    reads.count > 0 || are_results
}
