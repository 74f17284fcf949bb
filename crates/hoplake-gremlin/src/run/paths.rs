//! Where traversers have been: a tree of nodes, each with the one before it. A path is the number of its last node, so that
//! traversers that part share what they had.

use std::{collections::HashSet, sync::Arc};

use foldhash::fast::RandomState;
use hoplake_storage::{MemoryHold, QueryContext};

use super::batch::value_bytes;
use crate::{
    error::GremlinError,
    plan::{Name, Paths},
    tokens::Pop,
    value::{Key, Path, Value},
};

/// The path of a traverser that was nowhere.
pub(super) const NO_PATH: u32 = u32::MAX;

/// Steps of a path that are compared with each other.
const FEW: usize = 16;

/// All paths of a query.
#[derive(Debug)]
pub(super) struct PathTree {
    nodes: Vec<Node>,
    kept: Paths,
    hold: MemoryHold,
    bytes: u64,
}

#[derive(Debug)]
struct Node {
    before: u32,
    value: Value,
    labels: Labels,
}

/// The labels of a step.
pub(super) type Labels = Arc<[Name]>;

impl PathTree {
    pub(super) fn new(kept: Paths, context: &QueryContext) -> Result<Self, GremlinError> {
        Ok(Self { nodes: Vec::new(), kept, hold: context.hold(0)?, bytes: 0 })
    }

    /// Whether a step with labels, or without, is kept.
    pub(super) fn keeps(&self, labelled: bool) -> bool {
        match self.kept {
            Paths::Unused => false,
            Paths::Labelled => labelled,
            Paths::Whole => true,
        }
    }

    /// A path that goes on to a value.
    pub(super) fn push(
        &mut self,
        before: u32,
        value: Value,
        labels: &Labels,
        context: &QueryContext,
    ) -> Result<u32, GremlinError> {
        self.bytes += (size_of::<Node>() + value_bytes(&value)) as u64;
        if self.bytes > self.hold.bytes() {
            // Ahead, so that not every node asks.
            context.resize(&mut self.hold, self.bytes + self.bytes / 4 + 4096)?;
        }
        let number = self.nodes.len() as u32;
        if number == NO_PATH {
            return Err(GremlinError::unsupported("the paths of the query have more than 4 billion steps"));
        }
        self.nodes.push(Node { before, value, labels: labels.clone() });
        Ok(number)
    }

    /// A path whose last step has more labels.
    pub(super) fn relabel(
        &mut self,
        path: u32,
        value: impl FnOnce() -> Value,
        labels: &Labels,
        context: &QueryContext,
    ) -> Result<u32, GremlinError> {
        let last = self.nodes.get(path as usize).filter(|_| self.kept == Paths::Whole);
        let Some(last) = last else { return self.push(path, value(), labels, context) };
        let (before, value) = (last.before, last.value.clone());
        let mut all = last.labels.to_vec();
        labels.iter().filter(|label| !last.labels.contains(label)).for_each(|label| all.push(label.clone()));
        self.push(before, value, &all.into(), context)
    }

    /// The nodes of a path, from the last to the first.
    fn back(&self, path: u32) -> impl Iterator<Item = &Node> {
        std::iter::successors(self.nodes.get(path as usize), |node| self.nodes.get(node.before as usize))
    }

    /// What was met under a label.
    pub(super) fn labelled(&self, path: u32, label: &str, pop: Pop) -> Option<Value> {
        let mut met = self.back(path).filter(|node| node.labels.iter().any(|other| **other == *label));
        match pop {
            Pop::Last => met.next().map(|node| node.value.clone()),
            Pop::First => met.last().map(|node| node.value.clone()),
            Pop::All | Pop::Mixed => {
                let mut all: Vec<Value> = met.map(|node| node.value.clone()).collect();
                all.reverse();
                match (all.len(), pop) {
                    (0, _) => None,
                    (1, Pop::Mixed) => all.pop(),
                    _ => Some(Value::List(all)),
                }
            }
        }
    }

    /// The values of a path, from a label to another.
    ///
    /// # Errors
    /// [`GremlinError::Type`] if no step has a label, or the second one is before the first.
    pub(super) fn values(
        &self,
        path: u32,
        from: Option<&str>,
        to: Option<&str>,
    ) -> Result<Vec<(Value, Labels)>, GremlinError> {
        let mut nodes: Vec<&Node> = self.back(path).collect();
        nodes.reverse();
        let has = |node: &&Node, label: &str| node.labels.iter().any(|other| **other == *label);
        // The last step that has it.
        let place = |which: &str, label: &str| {
            let place = nodes.iter().rposition(|node| has(node, label));
            place.ok_or_else(|| GremlinError::wrong_type(format!("Could not locate path {which}-label: {label}")))
        };
        let begin = from.map(|from| place("from", from)).transpose()?.unwrap_or(0);
        let end = to.map(|to| place("to", to)).transpose()?.map_or(nodes.len(), |at| at + 1);
        if let (Some(from), Some(to)) = (from, to)
            && begin >= end
        {
            return Err(GremlinError::wrong_type(format!(
                "Could not isolate path because from comes after to: {from}->{to}"
            )));
        }
        Ok(nodes[begin..end].iter().map(|node| (node.value.clone(), node.labels.clone())).collect())
    }

    /// Whether a path has no value twice.
    pub(super) fn is_simple(&self, path: u32) -> bool {
        let mut few: Vec<Key<'_>> = Vec::new();
        let mut many: HashSet<Key<'_>, RandomState> = HashSet::default();
        for value in self.back(path).map(|node| Key(&node.value)) {
            // Most paths are short: comparing is faster than hashing.
            match few.len() < FEW {
                true if few.contains(&value) => return false,
                true => few.push(value),
                false if few.contains(&value) || !many.insert(value) => return false,
                false => {}
            }
        }
        true
    }

    /// As a value.
    pub(super) fn path(steps: Vec<(Value, Labels)>) -> Value {
        let labels = |labels: &Labels| labels.iter().map(|label| Box::from(&**label)).collect();
        let steps = steps.into_iter().map(|(value, all)| (value, labels(&all))).collect();
        Value::Path(Box::new(Path { steps }))
    }
}
