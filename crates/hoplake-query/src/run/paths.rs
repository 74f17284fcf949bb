//! Where traversers have been: a tree of nodes, each with the one before it. A path is the number of its last node, so that
//! traversers that part share what they had.

use std::{borrow::Cow, collections::HashSet, sync::Arc};

use foldhash::fast::RandomState;
use hoplake_storage::{MemoryHold, QueryContext};

use crate::{
    error::{Done, QueryError},
    growth::Growth,
    plan::{Name, Paths},
    tokens::Pop,
    value::{ALLOCATION_BYTES, Key, Path, Value, value_bytes},
};

/// The path of a traverser that was nowhere.
pub(crate) const NO_PATH: u32 = u32::MAX;

/// Steps of a path that are compared with each other.
const FEW: usize = 16;

/// Nodes of a chunk.
const CHUNK_NODES: usize = 1 << 14;

/// Bytes that are acquired ahead, at most.
const AHEAD_BYTES: u64 = 256 << 10;

/// All paths of a query.
#[derive(Debug)]
pub(crate) struct PathTree {
    /// In chunks: a list of all of them would be copied as it grows.
    nodes: Vec<Vec<Node>>,
    kept: Paths,
    /// The labels that were put together last: those of a step, those added, and all of them. Rows that come together share them.
    joined: Option<[Labels; 3]>,
    hold: MemoryHold,
    bytes: u64,
}

#[derive(Debug)]
struct Node {
    before: u32,
    value: Value,
    labels: Labels,
}

impl Node {
    fn has(&self, label: &str) -> bool {
        self.labels.iter().any(|other| **other == *label)
    }
}

/// The labels of a step.
pub(crate) type Labels = Arc<[Name]>;

impl PathTree {
    pub(crate) fn new(kept: Paths, context: &QueryContext) -> Result<Self, QueryError> {
        Ok(Self { nodes: Vec::new(), kept, joined: None, hold: context.hold(0)?, bytes: 0 })
    }

    /// Whether a step with labels, or without, is kept.
    pub(crate) fn keeps(&self, labelled: bool) -> bool {
        match self.kept {
            Paths::Unused => false,
            Paths::Labelled => labelled,
            Paths::Whole => true,
        }
    }

    /// A path that goes on to a value.
    pub(crate) fn push(
        &mut self,
        before: u32,
        value: &Value,
        labels: &Labels,
        context: &QueryContext,
    ) -> Result<u32, QueryError> {
        self.take(size_of::<Node>() + value_bytes(value), context)?;
        if self.nodes.last().is_none_or(|chunk| chunk.len() == CHUNK_NODES) {
            // The first chunk may be all there is.
            self.nodes.push(if self.nodes.is_empty() { Vec::new() } else { Vec::with_capacity(CHUNK_NODES) });
        }
        let chunks = self.nodes.len();
        let Some(chunk) = self.nodes.last_mut() else { return Ok(NO_PATH) };
        let number = ((chunks - 1) * CHUNK_NODES + chunk.len()) as u64;
        if number >= u64::from(NO_PATH) {
            return Err(QueryError::unsupported("the paths of the query have more than 4 billion steps"));
        }
        chunk.push(Node { before, value: value.clone(), labels: labels.clone() });
        Ok(number as u32)
    }

    fn take(&mut self, bytes: usize, context: &QueryContext) -> Result<(), QueryError> {
        self.bytes += bytes as u64;
        // Ahead, so that not every node asks.
        if self.bytes > self.hold.bytes()
            && self.hold.resize(self.bytes + (self.bytes / 4).min(AHEAD_BYTES) + 4096).is_err()
        {
            context.resize(&mut self.hold, self.bytes)?;
        }
        Ok(())
    }

    fn node(&self, path: u32) -> Option<&Node> {
        self.nodes.get(path as usize / CHUNK_NODES)?.get(path as usize % CHUNK_NODES)
    }

    /// A path whose last step has more labels.
    pub(crate) fn relabel<'a>(
        &mut self,
        path: u32,
        value: impl FnOnce() -> Cow<'a, Value>,
        labels: &Labels,
        context: &QueryContext,
    ) -> Result<u32, QueryError> {
        let last = self.node(path).filter(|_| self.kept == Paths::Whole);
        let Some(last) = last else { return self.push(path, &value(), labels, context) };
        let (before, value, own) = (last.before, last.value.clone(), last.labels.clone());
        let all = self.joined(own, labels, context)?;
        self.push(before, &value, &all, context)
    }

    /// The labels of a step and some more, each once.
    fn joined(&mut self, own: Labels, more: &Labels, context: &QueryContext) -> Result<Labels, QueryError> {
        if let Some([known, added, all]) = &self.joined
            && Arc::ptr_eq(known, &own)
            && Arc::ptr_eq(added, more)
        {
            return Ok(all.clone());
        }
        // For as long as the query runs: which of its paths still has them is not known.
        self.take((own.len() + more.len()) * size_of::<Name>(), context)?;
        context.check_time()?;
        let mut seen: HashSet<&Name> = HashSet::new();
        let all: Labels = own.iter().chain(&**more).filter(|label| seen.insert(*label)).cloned().collect();
        self.joined = Some([own, more.clone(), all.clone()]);
        Ok(all)
    }

    /// The nodes of a path, from the last to the first.
    fn back(&self, path: u32) -> impl Iterator<Item = &Node> {
        std::iter::successors(self.node(path), |node| self.node(node.before))
    }

    /// What was met under a label.
    pub(crate) fn labelled(&self, path: u32, label: &str, pop: Pop, growth: &Growth) -> Done<Option<Value>> {
        let mut first = None;
        let mut all = Vec::new();
        for node in self.back(path) {
            growth.work(1 + node.labels.len() as u64)?;
            if !node.has(label) {
                continue;
            }
            match pop {
                Pop::Last => return growth.copy(&node.value).map(Some),
                Pop::First => first = Some(node),
                Pop::All | Pop::Mixed => all.push(growth.copy(&node.value)?),
            }
        }
        all.reverse();
        Ok(match (all.len(), pop) {
            (0, _) => first.map(|node| growth.copy(&node.value)).transpose()?,
            (1, Pop::Mixed) => all.pop(),
            _ => Some(Value::List(all)),
        })
    }

    /// The values of a path, from a label to another.
    ///
    /// # Errors
    /// [`QueryError::Type`] if no step has a label, or the second one is before the first.
    pub(crate) fn values(
        &self,
        path: u32,
        from: Option<&str>,
        to: Option<&str>,
        growth: &Growth,
    ) -> Done<Vec<(Option<Value>, Labels)>> {
        let mut nodes: Vec<&Node> = self.back(path).collect();
        nodes.reverse();
        growth.work(nodes.iter().map(|node| 1 + node.labels.len() as u64).sum())?;
        // The last step that has it.
        let place = |which: &str, label: &str| {
            let place = nodes.iter().rposition(|node| node.has(label));
            place.ok_or_else(|| QueryError::wrong_type(format!("Could not locate path {which}-label: {label}")))
        };
        let begin = from.map(|from| place("from", from)).transpose()?.unwrap_or(0);
        let end = to.map(|to| place("to", to)).transpose()?.map_or(nodes.len(), |at| at + 1);
        if let (Some(from), Some(to)) = (from, to)
            && begin >= end
        {
            return Err(QueryError::wrong_type(format!(
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
    pub(crate) fn is_simple(&self, path: u32, growth: &Growth) -> Done<bool> {
        let mut few: Vec<Key<'_>> = Vec::new();
        let mut many: HashSet<Key<'_>, RandomState> = HashSet::default();
        for value in self.back(path).map(|node| Key(&node.value)) {
            growth.work(1)?;
            // Most paths are short: comparing is faster than hashing.
            match few.len() < FEW {
                true if few.contains(&value) => return Ok(false),
                true => few.push(value),
                false if few.contains(&value) || !many.insert(value) => return Ok(false),
                false => {}
            }
        }
        Ok(true)
    }

    /// As a value.
    pub(crate) fn path(steps: Vec<(Value, Labels)>, growth: &Growth) -> Done<Value> {
        let label_bytes = |label: &Name| label.len() + size_of::<Box<str>>() + ALLOCATION_BYTES;
        growth.take(steps.iter().flat_map(|(_, labels)| &**labels).map(label_bytes).sum())?;
        let labels = |labels: &Labels| labels.iter().map(|label| Box::from(&**label)).collect();
        let mut all = growth.column(steps.len())?;
        all.extend(steps.into_iter().map(|(value, names)| (value, labels(&names))));
        Ok(Value::Path(Box::new(Path { steps: all })))
    }
}

#[cfg(test)]
mod tests {
    use hoplake_storage::MemoryBudget;

    use super::*;

    fn labels(names: &[&str]) -> Labels {
        names.iter().map(|name| Name::from(*name)).collect()
    }

    /// A path of numbers, all of whose steps have the same labels.
    fn numbers(count: i32, labels: &Labels) -> (PathTree, u32) {
        let context = QueryContext::new();
        let mut paths = PathTree::new(Paths::Whole, &context).unwrap();
        let mut path = NO_PATH;
        for number in 0..count {
            path = paths.push(path, &number.into(), labels, &context).unwrap();
        }
        (paths, path)
    }

    #[test]
    fn what_was_met_is_the_last_the_first_or_all() {
        let growth = Growth::new(&QueryContext::new()).unwrap();
        let (paths, path) = numbers(3, &labels(&["a"]));
        let met = |label, pop| paths.labelled(path, label, pop, &growth).unwrap();
        assert_eq!(met("a", Pop::Last), Some(2.into()));
        assert_eq!(met("a", Pop::First), Some(0.into()));
        assert_eq!(met("a", Pop::All), Some(Value::List(vec![0.into(), 1.into(), 2.into()])));
        assert_eq!([Pop::Last, Pop::First, Pop::All, Pop::Mixed].map(|pop| met("b", pop)), [None, None, None, None]);
        let (paths, path) = numbers(1, &labels(&["a"]));
        assert_eq!(paths.labelled(path, "a", Pop::Mixed, &growth).unwrap(), Some(0.into()));
        assert_eq!(paths.labelled(path, "a", Pop::All, &growth).unwrap(), Some(Value::List(vec![0.into()])));
    }

    /// A step may look for thousands of names in paths of thousands of steps, each with thousands of labels.
    #[test]
    fn looking_through_paths_ends_at_the_deadline() {
        let names: Vec<String> = (0..1_000).map(|number| format!("n{number}")).collect();
        let many: Labels = names.iter().map(|name| Name::from(name.as_str())).collect();
        for (paths, path) in [numbers(40_000, &labels(&["a"])), numbers(50, &many)] {
            let context = QueryContext::new();
            context.give_time(Some(0));
            let ended = |outcome: Option<QueryError>| outcome.unwrap().to_string().contains("0 ms");
            for pop in [Pop::Last, Pop::First, Pop::All, Pop::Mixed] {
                let growth = Growth::new(&context).unwrap();
                assert!(ended(paths.labelled(path, "b", pop, &growth).err()), "{pop:?}");
            }
            let growth = Growth::new(&context).unwrap();
            assert!(ended(paths.values(path, Some("b"), None, &growth).err()));
        }
        let (paths, path) = numbers(40_000, &labels(&[]));
        assert!(paths.is_simple(path, &Growth::new(&QueryContext::new()).unwrap()).unwrap());
        let context = QueryContext::new();
        context.give_time(Some(0));
        assert!(paths.is_simple(path, &Growth::new(&context).unwrap()).is_err());
    }

    #[test]
    fn labels_that_are_added_are_shared_and_counted() {
        let budget = MemoryBudget::new("the query", 1 << 20);
        let context = QueryContext::within(&budget);
        let mut paths = PathTree::new(Paths::Whole, &context).unwrap();
        let add = |paths: &mut PathTree, path, labels: &Labels| {
            paths.relabel(path, || Cow::Owned(1.into()), labels, &context)
        };
        let (own, more) = (labels(&["a", "b"]), labels(&["b", "c"]));
        let rows = [(); 2].map(|()| paths.push(NO_PATH, &1.into(), &own, &context).unwrap());
        let rows = rows.map(|row| add(&mut paths, row, &more).unwrap());
        let of = |row: u32| &paths.node(row).unwrap().labels;
        assert_eq!(**of(rows[0]), *labels(&["a", "b", "c"]));
        assert!(Arc::ptr_eq(of(rows[0]), of(rows[1])));
        // Step after step adds one: the lists are the square of their number.
        let mut path = rows[0];
        let failed = (0..1_000).find_map(|number| match add(&mut paths, path, &labels(&[&format!("n{number}")])) {
            Ok(added) => {
                path = added;
                None
            }
            Err(error) => Some(error.to_string()),
        });
        assert!(failed.unwrap().contains("bytes of memory"));
    }
}
