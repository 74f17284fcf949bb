//! [`Operator`]: the interface between plans, the rules that change them, and runs.

use std::{
    any::{Any, type_name},
    fmt::{self, Debug, Formatter},
    sync::Arc,
};

use super::{Elements, Reach, Running};
use crate::plan::{Collects, Name, Steps};

/// What a step of a plan does, with its parameters. What a run of it keeps between batches is a `Stage`.
pub trait Operator: Common + Debug + Send + Sync + Any {
    /// What `explain` calls it.
    fn name(&self) -> &'static str {
        self.type_name()
    }

    /// What `explain` shows behind the name: the parameters, each after a space, without the traversals within.
    ///
    /// # Errors
    /// As [`fmt::Display`].
    fn parameters(&self, _f: &mut Formatter<'_>) -> fmt::Result {
        Ok(())
    }

    /// Whether it takes all input before it gives anything. What a write changes is not seen by the steps before it: how far they came would
    /// decide the answer.
    fn is_barrier(&self) -> bool {
        self.is_write()
    }

    /// Whether what it gives for a row depends on other rows.
    fn is_stateful(&self) -> bool {
        self.is_barrier()
    }

    /// Whether it changes the graph.
    fn is_write(&self) -> bool {
        false
    }

    /// Whether a run of it does something besides its results: it writes, collects, or draws random numbers.
    fn acts(&self) -> bool {
        self.is_write() || self.collects().is_some()
    }

    /// The side effect that it adds to.
    fn collects(&self) -> Option<(&Name, Collects)> {
        None
    }

    /// The names of side effects and bindings that it reads.
    fn reads_names(&self) -> &[Name] {
        &[]
    }

    /// The traversals within it.
    fn nested<'a>(&'a self, _found: &mut Vec<&'a Steps>) {}

    /// The same, to be replaced. The macro `nested!` writes both.
    fn nested_mut<'a>(&'a mut self, _found: &mut Vec<&'a mut Steps>) {}

    /// What it reads of the elements that come in, and what can come out of it: `input` itself if each row is where it was, and
    /// `input.others()` if other elements of the same labels can be there.
    fn reach(&self, _reach: &mut Reach<'_>, input: Elements) -> Elements {
        input.others()
    }

    /// Begins a run of it.
    fn start(self: Arc<Self>) -> Running;
}

/// What every operator has by being a type: it can be copied and compared, and has a name.
pub trait Common {
    /// The name of the type.
    fn type_name(&self) -> &'static str;
    /// A copy.
    fn copy(&self) -> Box<dyn Operator>;
    /// Whether another operator is the same, with the same parameters.
    fn is_same(&self, other: &dyn Operator) -> bool;
}

impl<O: Operator + Clone + PartialEq> Common for O {
    fn type_name(&self) -> &'static str {
        type_name::<O>().rsplit("::").next().unwrap_or_default()
    }

    fn copy(&self) -> Box<dyn Operator> {
        Box::new(self.clone())
    }

    fn is_same(&self, other: &dyn Operator) -> bool {
        other.get::<O>() == Some(self)
    }
}

impl dyn Operator {
    /// The operator, if it is of a type.
    pub fn get<O: Operator>(&self) -> Option<&O> {
        (self as &dyn Any).downcast_ref()
    }

    /// The same, to be changed.
    pub fn get_mut<O: Operator>(&mut self) -> Option<&mut O> {
        (self as &mut dyn Any).downcast_mut()
    }

    /// Whether it is of a type.
    pub fn is<O: Operator>(&self) -> bool {
        self.get::<O>().is_some()
    }

    /// The traversals within it.
    pub fn nested_steps(&self) -> Vec<&Steps> {
        let mut found = Vec::new();
        self.nested(&mut found);
        found
    }

    /// With other traversals within it, where `change` gives one; `None` if it gives none.
    pub fn with_nested(&self, mut change: impl FnMut(&Steps) -> Option<Steps>) -> Option<Arc<dyn Operator>> {
        let changed: Vec<Option<Steps>> = self.nested_steps().into_iter().map(&mut change).collect();
        if changed.iter().all(Option::is_none) {
            return None;
        }
        let mut copy = self.copy();
        let mut places = Vec::new();
        copy.nested_mut(&mut places);
        for (place, steps) in places.into_iter().zip(changed) {
            if let Some(steps) = steps {
                *place = steps;
            }
        }
        Some(copy.into())
    }
}

impl PartialEq for dyn Operator {
    fn eq(&self, other: &Self) -> bool {
        self.is_same(other)
    }
}
