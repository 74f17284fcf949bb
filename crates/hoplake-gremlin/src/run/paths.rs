//! Where traversers have been: a tree of nodes, each with the one before it. A path is the number of its last node, so that
//! traversers that part share what they had.

use std::{borrow::Cow, collections::HashSet, sync::Arc};

use foldhash::fast::RandomState;
use hoplake_storage::{MemoryHold, QueryContext};

use super::{
    Done,
    batch::value_bytes,
    growth::{ALLOCATION_BYTES, Growth},
};
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

/// Nodes of a chunk.
const CHUNK_NODES: usize = 1 << 14;

/// Bytes that are acquired ahead, at most.
const AHEAD_BYTES: u64 = 256 << 10;

/// All paths of a query.
#[derive(Debug)]
pub(super) struct PathTree {
    /// In chunks: a list of all of them would be copied as it grows.
    nodes: Vec<Vec<Node>>,
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
        value: &Value,
        labels: &Labels,
        context: &QueryContext,
    ) -> Result<u32, GremlinError> {
        self.bytes += (size_of::<Node>() + value_bytes(value)) as u64;
        if self.bytes > self.hold.bytes() {
            // Ahead, so that not every node asks.
            if self.hold.resize(self.bytes + (self.bytes / 4).min(AHEAD_BYTES) + 4096).is_err() {
                context.resize(&mut self.hold, self.bytes)?;
            }
        }
        if self.nodes.last().is_none_or(|chunk| chunk.len() == CHUNK_NODES) {
            // The first chunk may be all there is.
            self.nodes.push(if self.nodes.is_empty() { Vec::new() } else { Vec::with_capacity(CHUNK_NODES) });
        }
        let chunks = self.nodes.len();
        let Some(chunk) = self.nodes.last_mut() else { return Ok(NO_PATH) };
        let number = ((chunks - 1) * CHUNK_NODES + chunk.len()) as u64;
        if number >= u64::from(NO_PATH) {
            return Err(GremlinError::unsupported("the paths of the query have more than 4 billion steps"));
        }
        chunk.push(Node { before, value: value.clone(), labels: labels.clone() });
        Ok(number as u32)
    }

    fn node(&self, path: u32) -> Option<&Node> {
        self.nodes.get(path as usize / CHUNK_NODES)?.get(path as usize % CHUNK_NODES)
    }

    /// A path whose last step has more labels.
    pub(super) fn relabel<'a>(
        &mut self,
        path: u32,
        value: impl FnOnce() -> Cow<'a, Value>,
        labels: &Labels,
        context: &QueryContext,
    ) -> Result<u32, GremlinError> {
        let last = self.node(path).filter(|_| self.kept == Paths::Whole);
        let Some(last) = last else { return self.push(path, &value(), labels, context) };
        let (before, value) = (last.before, last.value.clone());
        let mut all = last.labels.to_vec();
        labels.iter().filter(|label| !last.labels.contains(label)).for_each(|label| all.push(label.clone()));
        self.push(before, &value, &all.into(), context)
    }

    /// The nodes of a path, from the last to the first.
    fn back(&self, path: u32) -> impl Iterator<Item = &Node> {
        std::iter::successors(self.node(path), |node| self.node(node.before))
    }

    /// What was met under a label.
    pub(super) fn labelled(&self, path: u32, label: &str, pop: Pop, growth: &Growth) -> Done<Option<Value>> {
        let mut met = self.back(path).filter(|node| node.labels.iter().any(|other| **other == *label));
        let copy = |node: &Node| growth.copy(&node.value);
        Ok(match pop {
            Pop::Last => met.next().map(copy).transpose()?,
            Pop::First => met.last().map(copy).transpose()?,
            Pop::All | Pop::Mixed => {
                let mut all = met.map(copy).collect::<Done<Vec<Value>>>()?;
                all.reverse();
                match (all.len(), pop) {
                    (0, _) => None,
                    (1, Pop::Mixed) => all.pop(),
                    _ => Some(Value::List(all)),
                }
            }
        })
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
        growth: &Growth,
    ) -> Done<Vec<(Option<Value>, Labels)>> {
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
        let part = &nodes[begin..end];
        let mut steps = growth.column(part.len())?;
        for node in part {
            steps.push((Some(growth.copy(&node.value)?), node.labels.clone()));
        }
        Ok(steps)
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
    pub(super) fn path(steps: Vec<(Value, Labels)>, growth: &Growth) -> Done<Value> {
        let label_bytes = |label: &Name| label.len() + size_of::<Box<str>>() + ALLOCATION_BYTES;
        growth.take(steps.iter().flat_map(|(_, labels)| &**labels).map(label_bytes).sum())?;
        let labels = |labels: &Labels| labels.iter().map(|label| Box::from(&**label)).collect();
        let mut all = growth.column(steps.len())?;
        all.extend(steps.into_iter().map(|(value, names)| (value, labels(&names))));
        Ok(Value::Path(Box::new(Path { steps: all })))
    }
}
