//! What rows were on at earlier steps: columns of bindings and paths, each kept once for all rows that come from it.
//!
//! ```text
//! V().as('a')            out()   as('b')                select('a')
//!
//! a       v1  v2  v3             v7  v8  v8  v9         the items of a step's output, as a column of their type
//! before   –   –   –              0   0   1   2         for each of them, the node before
//! node     0   1   2              3   4   5   6         the number that a row has as its path
//! ```
//! A row has the number of its last node, whatever it has bound. So a hop with a hundred edges copies 4 bytes for each of them, and not all
//! that was bound before; a text that is bound is there once; and rows with the same path are the same number. Where columns were copied
//! from batch to batch, all three would be otherwise (RFC 0012 has the figures).

use std::{collections::HashSet, sync::Arc};

use foldhash::fast::RandomState;
use hoplake_format::{EdgeId, VertexId};
use hoplake_storage::{MemoryHold, QueryContext};

use super::batch::{Element, Items, Row};
use crate::{
    error::{Done, QueryError},
    growth::Growth,
    plan::{Name, Paths},
    tokens::Pop,
    value::{ALLOCATION_BYTES, Key, Path, Value},
};

/// The path of a traverser that was nowhere.
pub(crate) const NO_PATH: u32 = u32::MAX;

/// Steps of a path that are compared with each other.
const FEW: usize = 16;

/// A column of fewer rows goes on with the next output of its step: a loop may give rows one by one.
const FEW_ROWS: usize = 1 << 10;

/// What a column takes besides what its rows do.
const COLUMN_BYTES: usize = size_of::<Column>() + 2 * ALLOCATION_BYTES;

/// Bytes that are acquired ahead, at most.
const AHEAD_BYTES: u64 = 256 << 10;

/// All paths of a query.
#[derive(Debug)]
pub(crate) struct PathTree {
    /// In the order of the numbers of their nodes.
    columns: Vec<Column>,
    kept: Paths,
    /// The labels that were put together last: those of a step, those added, and all of them. Rows that come together share them.
    joined: Option<[Labels; 3]>,
    hold: MemoryHold,
    bytes: u64,
}

/// What came out of a step.
#[derive(Debug)]
struct Column {
    labels: Labels,
    items: Items,
    /// The number of the first node.
    first: u32,
    /// The number of the node before, for each.
    before: Vec<u32>,
    /// The column that has the node before the first one, and most likely those before the others.
    column_before: usize,
}

impl Column {
    fn node(&self, path: u32) -> Option<Node<'_>> {
        let at = path.checked_sub(self.first)? as usize;
        (at < self.before.len()).then_some(Node { column: self, at })
    }

    fn end(&self) -> u32 {
        self.first + self.before.len() as u32
    }
}

/// A step of a path.
#[derive(Debug, Clone, Copy)]
struct Node<'a> {
    column: &'a Column,
    at: usize,
}

impl<'a> Node<'a> {
    fn labels(self) -> &'a Labels {
        &self.column.labels
    }

    fn has(self, label: &str) -> bool {
        self.labels().iter().any(|other| **other == *label)
    }

    fn copy(self, growth: &Growth) -> Done<Value> {
        self.column.items.copy(self.at, growth)
    }

    fn identity(self) -> Identity<'a> {
        match self.column.items.element(self.at) {
            Some(Element::Vertex(vertex)) => Identity::Vertex(vertex),
            Some(Element::Edge(edge)) => Identity::Edge(edge.id()),
            None => match &self.column.items {
                Items::Values(values) => Identity::Value(Key(&values[self.at])),
                _ => Identity::Value(Key(&Value::Null)),
            },
        }
    }
}

/// What tells an item of a path from the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Identity<'a> {
    Vertex(VertexId),
    Edge(EdgeId),
    Value(Key<'a>),
}

/// The labels of a step.
pub(crate) type Labels = Arc<[Name]>;

impl PathTree {
    pub(crate) fn new(kept: Paths, context: &QueryContext) -> Result<Self, QueryError> {
        Ok(Self { columns: Vec::new(), kept, joined: None, hold: context.hold(0)?, bytes: 0 })
    }

    /// Whether a step with labels, or without, is kept.
    pub(crate) fn keeps(&self, labelled: bool) -> bool {
        match self.kept {
            Paths::Unused => false,
            Paths::Labelled => labelled,
            Paths::Whole => true,
        }
    }

    /// Has the paths of rows go on to their items.
    pub(crate) fn push(
        &mut self,
        rows: &mut [Row],
        items: &Items,
        labels: &Labels,
        context: &QueryContext,
    ) -> Done<()> {
        self.take(rows.len() * size_of::<u32>() + items.bytes() as usize, context)?;
        let before = rows.iter().map(|row| row.path).collect();
        let first = self.add(before, items.clone(), labels, context)?;
        rows.iter_mut().zip(first..).for_each(|(row, node)| row.path = node);
        Ok(())
    }

    /// Adds nodes, whose memory was taken, and returns the number of the first.
    fn add(&mut self, before: Vec<u32>, mut items: Items, labels: &Labels, context: &QueryContext) -> Done<u32> {
        let first = self.columns.last().map_or(0, Column::end);
        if u64::from(first) + before.len() as u64 >= u64::from(NO_PATH) {
            return Err(QueryError::unsupported("the paths of the query have more than 4 billion steps"));
        }
        if let Some(last) = self.columns.last_mut()
            && last.before.len() < FEW_ROWS
            && (Arc::ptr_eq(&last.labels, labels) || last.labels.is_empty() && labels.is_empty())
        {
            match last.items.extend(items) {
                Ok(()) => {
                    last.before.extend(before);
                    return Ok(first);
                }
                Err(others) => items = others,
            }
        }
        self.take(COLUMN_BYTES, context)?;
        let column_before = before.first().map_or(0, |path| self.columns.partition_point(|it| it.end() <= *path));
        let labels = labels.clone();
        self.columns.push(Column { labels, items, first, before, column_before });
        Ok(first)
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

    fn node(&self, path: u32) -> Option<Node<'_>> {
        self.columns.get(self.columns.partition_point(|column| column.end() <= path))?.node(path)
    }

    /// Gives the last steps of the paths of rows more labels.
    pub(crate) fn relabel(
        &mut self,
        rows: &mut [Row],
        items: &Items,
        labels: &Labels,
        context: &QueryContext,
    ) -> Done<()> {
        if self.kept != Paths::Whole {
            return self.push(rows, items, labels, context);
        }
        for (at, row) in rows.iter_mut().enumerate() {
            let Some(last) = self.node(row.path) else {
                self.push(std::slice::from_mut(row), &items.one(at), labels, context)?;
                continue;
            };
            row.path = last.column.before[last.at];
            let own = last.labels().clone();
            let item = last.column.items.one(last.at);
            let all = self.joined(own, labels, context)?;
            self.push(std::slice::from_mut(row), &item, &all, context)?;
        }
        Ok(())
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
    fn back(&self, path: u32) -> impl Iterator<Item = Node<'_>> {
        std::iter::successors(self.node(path), |node| self.before(*node))
    }

    fn before<'a>(&'a self, node: Node<'a>) -> Option<Node<'a>> {
        let path = node.column.before[node.at];
        if path == NO_PATH {
            return None;
        }
        let near = [Some(node.column), self.columns.get(node.column.column_before)];
        near.into_iter().flatten().find_map(|column| column.node(path)).or_else(|| self.node(path))
    }

    /// What was met under a label.
    pub(crate) fn labelled(&self, path: u32, label: &str, pop: Pop, growth: &Growth) -> Done<Option<Value>> {
        let mut first = None;
        let mut all = Vec::new();
        for node in self.back(path) {
            growth.work(1 + node.labels().len() as u64)?;
            if !node.has(label) {
                continue;
            }
            match pop {
                Pop::Last => return node.copy(growth).map(Some),
                Pop::First => first = Some(node),
                Pop::All | Pop::Mixed => all.push(node.copy(growth)?),
            }
        }
        all.reverse();
        Ok(match (all.len(), pop) {
            (0, _) => first.map(|node: Node<'_>| node.copy(growth)).transpose()?,
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
        let mut nodes: Vec<Node<'_>> = self.back(path).collect();
        nodes.reverse();
        growth.work(nodes.iter().map(|node| 1 + node.labels().len() as u64).sum())?;
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
            steps.push((Some(node.copy(growth)?), node.labels().clone()));
        }
        Ok(steps)
    }

    /// Whether a path has no value twice.
    pub(crate) fn is_simple(&self, path: u32, growth: &Growth) -> Done<bool> {
        let mut few: Vec<Identity<'_>> = Vec::new();
        let mut many: HashSet<Identity<'_>, RandomState> = HashSet::default();
        for item in self.back(path).map(Node::identity) {
            growth.work(1)?;
            // Most paths are short: comparing is faster than hashing.
            match few.len() < FEW {
                true if few.contains(&item) => return Ok(false),
                true => few.push(item),
                false if few.contains(&item) || !many.insert(item) => return Ok(false),
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
    use hoplake_format::LabelId;
    use hoplake_storage::MemoryBudget;
    use proptest::{collection::vec, prelude::*, sample::Index};

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
            path = push(&mut paths, path, number.into(), labels, &context);
        }
        (paths, path)
    }

    /// The path of a row that goes on to a value.
    fn push(paths: &mut PathTree, path: u32, value: Value, labels: &Labels, context: &QueryContext) -> u32 {
        let mut rows = [row(path)];
        paths.push(&mut rows, &Items::Values(vec![value]), labels, context).unwrap();
        rows[0].path
    }

    fn row(path: u32) -> Row {
        Row { bulk: 1, frame: 0, path }
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
            let mut rows = [row(path)];
            paths.relabel(&mut rows, &Items::Values(vec![1.into()]), labels, &context).map(|()| rows[0].path)
        };
        let own = labels(&["a", "b"]);
        let more = labels(&["b", "c"]);
        let rows = [(); 2].map(|()| push(&mut paths, NO_PATH, 1.into(), &own, &context));
        let rows = rows.map(|row| add(&mut paths, row, &more).unwrap());
        let of = |row: u32| paths.node(row).unwrap().labels();
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

    #[test]
    fn a_vertex_that_is_bound_takes_twelve_bytes() {
        let context = QueryContext::new();
        let mut paths = PathTree::new(Paths::Labelled, &context).unwrap();
        let vertices = (0..10_000).map(|number| VertexId::new(LabelId(0), number).unwrap()).collect();
        let mut rows = vec![row(NO_PATH); 10_000];
        paths.push(&mut rows, &Items::Vertices(vertices), &labels(&["a"]), &context).unwrap();
        assert_eq!(paths.bytes, (10_000 * 12 + COLUMN_BYTES) as u64);
    }

    /// The items of rows, and the items and labels of their paths so far, as lists.
    type Model = Vec<(u32, Vec<(Value, Vec<usize>)>)>;

    /// Items of one type for some rows.
    fn items(kind: u8, numbers: &[u8]) -> Items {
        let vertex = |number: &u8| VertexId::new(LabelId(0), u64::from(*number)).unwrap();
        match kind {
            0 => Items::Nowhere(numbers.len()),
            1 => Items::Vertices(numbers.iter().map(vertex).collect()),
            // Of both types: vertices as values are the same as in a column of vertices.
            _ => Items::Values(
                numbers.iter().map(|it| if it % 2 == 0 { i64::from(*it).into() } else { vertex(it).into() }).collect(),
            ),
        }
    }

    proptest! {
        /// Whatever outputs follow each other, a path is the list of what its row was on.
        #[test]
        fn paths_are_lists(
            whole in any::<bool>(),
            outputs in vec((0u8..3, any::<bool>(), vec(0usize..4, 0..3), vec((any::<Index>(), 0u8..6), 1..8)), 1..20),
        ) {
            const NAMES: [&str; 4] = ["a", "b", "c", "d"];
            let context = QueryContext::new();
            let growth = Growth::new(&context).unwrap();
            let kept = if whole { Paths::Whole } else { Paths::Labelled };
            let mut paths = PathTree::new(kept, &context).unwrap();
            // As if the labels of each step were its own, and some steps were run again and again.
            let steps: Vec<Labels> = NAMES.iter().map(|name| labels(&[name])).collect();
            let mut model: Model = vec![(NO_PATH, Vec::new())];
            for (kind, is_same, names, from) in outputs {
                let from: Vec<(usize, u8)> = from.into_iter().map(|(at, number)| (at.index(model.len()), number)).collect();
                let mut rows: Vec<Row> = from.iter().map(|(at, _)| row(model[*at].0)).collect();
                let items = items(kind, &from.iter().map(|(_, number)| *number).collect::<Vec<_>>());
                let own = match names[..] {
                    [one] => steps[one].clone(),
                    _ => names.iter().map(|name| Name::from(NAMES[*name])).collect(),
                };
                let adds = is_same && !names.is_empty();
                match adds {
                    true => paths.relabel(&mut rows, &items, &own, &context).unwrap(),
                    false => paths.push(&mut rows, &items, &own, &context).unwrap(),
                }
                for (at, (from, _)) in from.iter().enumerate() {
                    let mut path = model[*from].1.clone();
                    match path.last_mut().filter(|_| adds && whole) {
                        Some((_, all)) => all.extend(&names),
                        None => path.push((items.get(at).into_owned(), names.clone())),
                    }
                    model.push((rows[at].path, path));
                }
            }
            for (path, expected) in model {
                let found = paths.values(path, None, None, &growth).unwrap();
                let found: Vec<(Value, Vec<&str>)> = found
                    .iter()
                    .map(|(value, labels)| (value.clone().unwrap(), sorted(labels.iter().map(|label| &**label))))
                    .collect();
                let names = |all: &[usize]| sorted(all.iter().map(|name| NAMES[*name]));
                let listed: Vec<_> = expected.iter().map(|(value, all)| (value.clone(), names(all))).collect();
                prop_assert_eq!(found, listed);
                let distinct: HashSet<Key<'_>> = expected.iter().map(|(value, _)| Key(value)).collect();
                prop_assert_eq!(paths.is_simple(path, &growth).unwrap(), distinct.len() == expected.len());
                for (number, name) in NAMES.iter().enumerate() {
                    let met: Vec<Value> =
                        expected.iter().filter(|(_, all)| all.contains(&number)).map(|(value, _)| value.clone()).collect();
                    let labelled = |pop| paths.labelled(path, name, pop, &growth).unwrap();
                    prop_assert_eq!(labelled(Pop::First), met.first().cloned());
                    prop_assert_eq!(labelled(Pop::Last), met.last().cloned());
                    prop_assert_eq!(labelled(Pop::All), Some(Value::List(met.clone())).filter(|_| !met.is_empty()));
                }
            }
        }
    }

    fn sorted<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
        let mut names: Vec<&str> = names.collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}
