//! Which tables a query will read: their ends are read with its first look at the store, and not before their first cells.
//!
//! The steps are followed with the labels of vertices and types of edges that can be there; what is wrong about it costs time, and
//! never changes an answer.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    sync::Arc,
};

use hoplake_engine::{
    Expected, Snapshot,
    traversal::{self, HopDirection},
};
use hoplake_format::{Direction, EdgeTypeId, LabelId};

use crate::{
    growth::Growth,
    plan::{By, Name, Reaches, Step, Steps},
    run::Wanted,
    tokens::{self, T},
};

/// Tables, at most. A query that may read more than that gets the ends of those that it reads when it knows them.
const TABLES_MAX: usize = 16;

/// Steps, names and `by` that are followed, at most: loops in loops are followed three times each, and a query may have 100,000 steps.
const STEPS_MAX: usize = 1_000;

/// What the rows at a step can be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Elements {
    /// Vertices, by label.
    pub(crate) vertices: BTreeSet<LabelId>,
    /// Edges, with the direction in which they were followed.
    pub(crate) edges: BTreeSet<(EdgeTypeId, Direction)>,
}

impl Elements {
    pub(crate) fn join(&mut self, other: Self) {
        self.vertices.extend(other.vertices);
        self.edges.extend(other.edges);
    }
}

/// What steps can reach, as they are followed one after another.
#[derive(Debug)]
pub struct Reach<'a> {
    pub(crate) snapshot: &'a Snapshot,
    wanted: Wanted,
    pub(crate) growth: &'a Growth,
    met: BTreeMap<Name, Elements>,
    /// All that was there, for paths.
    pub(crate) all: Elements,
    expected: Expected,
    /// Steps that may still be followed.
    left: usize,
}

/// The tables that a query will read; `None` if nothing is gained by reading their ends early.
pub(crate) fn expected(steps: &Steps, snapshot: &Snapshot, wanted: Wanted, growth: &Growth) -> Option<Expected> {
    let mut reach = Reach::new(snapshot, wanted, growth);
    let end = reach.steps(steps, Elements::default());
    if reach.left == 0 {
        return None;
    }
    reach.results(&end);
    let expected = reach.expected;
    let count = expected.vertices.len() + expected.edges.len();
    (1..=TABLES_MAX).contains(&count).then_some(expected)
}

/// Steps that might still be followed after those of a query.
#[cfg(feature = "testing")]
pub(crate) fn left(steps: &Steps, snapshot: &Snapshot, growth: &Growth) -> usize {
    let mut reach = Reach::new(snapshot, Wanted::default(), growth);
    reach.steps(steps, Elements::default());
    reach.left
}

impl<'a> Reach<'a> {
    fn new(snapshot: &'a Snapshot, wanted: Wanted, growth: &'a Growth) -> Self {
        Self {
            snapshot,
            wanted,
            growth,
            met: BTreeMap::new(),
            all: Elements::default(),
            expected: Expected::default(),
            left: STEPS_MAX,
        }
    }

    /// What is there after some steps.
    pub(crate) fn steps(&mut self, steps: &[Arc<Step>], mut at: Elements) -> Elements {
        for step in steps {
            let Some(left) = self.left.checked_sub(1) else { return at };
            self.left = left;
            at = crate::deep::with_stack(|| step.operator.reach(self, at));
            self.all.join(at.clone());
            for label in &step.labels {
                self.met.entry(label.clone()).or_default().join(at.clone());
            }
        }
        at
    }

    /// What is there after one of some traversals.
    pub(crate) fn branches<'s>(&mut self, branches: impl Iterator<Item = &'s Steps>, at: &Elements) -> Elements {
        let mut after = Elements::default();
        branches.for_each(|steps| after.join(self.steps(steps, at.clone())));
        after
    }

    /// What is computed of what is there.
    pub(crate) fn by(&mut self, by: &By, at: Elements) -> Elements {
        self.left = self.left.saturating_sub(1);
        match by {
            By::Identity | By::Column(_) => at,
            By::Property(name) => {
                self.reads(&at, Some(std::slice::from_ref(name)));
                at
            }
            By::Token(token) => {
                if *token == T::Id {
                    self.results_of(&at, false);
                }
                at
            }
            By::Steps(steps) => self.steps(steps, at),
        }
    }

    /// What is there, after a property of it was read.
    pub(crate) fn name(&mut self, name: &Name, at: Elements) -> Elements {
        self.reads(&at, Some(std::slice::from_ref(name)));
        at
    }

    /// That properties of it are read; all if there are no names.
    pub(crate) fn names(&mut self, names: &[Name], at: &Elements) {
        self.reads(at, Some(names).filter(|names| !names.is_empty()));
    }

    /// That its ids are read.
    pub(crate) fn ids(&mut self, at: &Elements) {
        self.results_of(at, false);
    }

    /// What was met under a name.
    pub(crate) fn met(&self, name: &str) -> Elements {
        self.met.get(name).cloned().unwrap_or_default()
    }

    /// Notes names that are looked at.
    pub(crate) fn looks_at(&mut self, names: usize) {
        self.left = self.left.saturating_sub(names);
    }

    /// All labels of vertices.
    pub(crate) fn labels(&self) -> impl Iterator<Item = LabelId> + use<> {
        (0..self.snapshot.schema().vertex_labels.len()).map(|label| LabelId(label as u16))
    }

    /// Where a hop leads.
    pub(crate) fn hop(
        &self,
        at: &Elements,
        direction: tokens::Direction,
        labels: &[Name],
        reaches: Reaches,
    ) -> Elements {
        let Some(along) = hop_along(self.snapshot, direction, labels) else { return Elements::default() };
        let near: Vec<LabelId> = at.vertices.iter().copied().collect();
        let mut reached = Elements::default();
        match reaches {
            Reaches::Vertices => reached.vertices.extend(self.snapshot.labels_reached(&near, &along)),
            Reaches::Edges => reached.edges.extend(self.snapshot.edges_followed(&near, &along)),
        }
        reached
    }

    /// The vertices at the ends of edges.
    pub(crate) fn ends(&self, at: &Elements) -> Elements {
        let ends = at.edges.iter().filter_map(|(edge, _)| self.snapshot.schema().edge_type(*edge));
        Elements { vertices: ends.flat_map(|edge| [edge.source, edge.target]).collect(), ..Elements::default() }
    }

    /// That properties are read of what is there: all, or those of some names.
    pub(crate) fn reads(&mut self, at: &Elements, names: Option<&[Name]>) {
        let schema = self.snapshot.schema();
        let some: Option<BTreeSet<&str>> = names.map(|names| names.iter().map(|name| &**name).collect());
        let is_read = |name: &str| some.as_ref().is_none_or(|some| some.contains(name));
        for label in &at.vertices {
            let has = |label: &hoplake_format::VertexLabel| label.properties.iter().any(|it| is_read(&it.name));
            // Keys are in the same table.
            if names.is_some_and(<[Name]>::is_empty) || schema.label(*label).is_some_and(has) {
                self.expected.vertices.insert(*label);
            }
        }
        for (edge, direction) in &at.edges {
            let has = |edge: &hoplake_format::EdgeType| edge.properties.iter().any(|it| is_read(&it.name));
            if schema.edge_type(*edge).is_some_and(has) {
                self.expected.edges.insert((*edge, *direction));
            }
        }
    }

    /// That what is there is handed out.
    fn results(&mut self, at: &Elements) {
        self.results_of(at, self.wanted.properties);
    }

    fn results_of(&mut self, at: &Elements, with_properties: bool) {
        // Its id is its key, and the id of an edge has those of its ends where it is handed out.
        self.expected.vertices.extend(&at.vertices);
        let ends = self.ends(at);
        self.expected.vertices.extend(ends.vertices);
        if with_properties {
            self.reads(at, None);
        }
    }
}

/// A hop along those of some labels that the graph has; `None` if it has none of them.
pub(crate) fn hop_along(snapshot: &Snapshot, direction: tokens::Direction, labels: &[Name]) -> Option<traversal::Hop> {
    let mut types: HashSet<&str> = HashSet::new();
    if !labels.is_empty() {
        types.extend(snapshot.schema().edge_types.iter().map(|edge| edge.label.as_str()));
    }
    // Each once.
    let known = labels.iter().filter(|label| types.remove(&***label)).map(|label| label.to_string());
    let known: Vec<String> = known.collect();
    if known.is_empty() && !labels.is_empty() {
        return None;
    }
    let direction = match direction {
        tokens::Direction::Out => HopDirection::Out,
        tokens::Direction::In => HopDirection::In,
        tokens::Direction::Both => HopDirection::Both,
    };
    Some(traversal::Hop { labels: known, direction, condition: None })
}
