//! What operators read, and where they lead. Each says it once ([`Operator::reach`](super::Operator::reach)), for two uses:
//!
//! - [`expected`]: which tables a query will read. Their ends are read with its first look at the store, and not before their first cells.
//!   The steps are followed with the labels of vertices and types of edges that can be there; a wrong guess costs time, never correctness.
//! - [`Reads`]: what steps read of the same elements, which a rule has read in one wave. No graph is known then, and steps are followed as
//!   long as the elements that came to the first of them are those that come to the next.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    sync::Arc,
};

use hoplake_engine::{
    Expected, Snapshot,
    traversal::{self, HopDirection},
};
use hoplake_format::{Direction, EdgeTypeId, LabelId, Schema, VertexLabel};

use crate::{
    growth::Growth,
    plan::{By, Name, PlanStep, Reaches, Steps},
    run::Wanted,
    tokens::{self, T},
};

/// Tables, at most. A query that may read more than that gets the ends of those that it reads when it knows them.
const TABLES_MAX: usize = 16;

/// How many steps ahead a plan looks for what they read.
const AHEAD: usize = 16;

/// Steps, names and `by` that are followed, at most: loops in loops are followed three times each, and a query may have 100,000 steps.
const STEPS_MAX: usize = 1_000;

/// What the rows at a step can be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Elements {
    /// Vertices, by label.
    pub(crate) vertices: BTreeSet<LabelId>,
    /// Edges, with the direction in which they were followed.
    pub(crate) edges: BTreeSet<(EdgeTypeId, Direction)>,
    /// Whether they are the elements that came to the first of the steps that are followed, and none besides.
    are_input: bool,
}

impl Elements {
    /// Elements of the same labels and types, which need not be those of the input.
    pub(crate) fn others(self) -> Self {
        Self { are_input: false, ..self }
    }

    pub(crate) fn join(&mut self, other: Self) {
        self.vertices.extend(other.vertices);
        self.edges.extend(other.edges);
        self.are_input = false;
    }
}

/// What some steps read of the elements that come to the first of them.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    pub(crate) names: Vec<Name>,
    known: HashSet<Name>,
    pub(crate) all: bool,
    /// Parts that are read for themselves if nothing reads them together.
    pub(crate) count: usize,
    /// Whether the elements come out of the last step.
    pub(crate) come_out: bool,
    /// How many steps were followed.
    pub(crate) followed: usize,
}

impl Reads {
    /// Of some steps. No more than [`AHEAD`] of them are followed, and as many of each traversal within them.
    pub(crate) fn of(steps: &[Arc<PlanStep>]) -> Self {
        let mut reach = Reach::new(None);
        let end = reach.steps(steps, Elements { are_input: true, ..Elements::default() });
        Self { come_out: end.are_input, followed: STEPS_MAX - reach.left, ..reach.reads }
    }
}

/// Steps that are followed one after another: what they read, and what they can reach.
#[derive(Debug)]
pub struct Reach<'a> {
    /// The graph that is read, once it is known: a plan is made for any version.
    graph: Option<(&'a Snapshot, &'a Growth)>,
    met: BTreeMap<Name, Elements>,
    /// All that was there, for paths.
    pub(crate) all: Elements,
    expected: Expected,
    reads: Reads,
    /// Steps that may still be followed.
    left: usize,
}

/// The tables that a query will read; `None` if nothing is gained by reading their ends early.
pub(crate) fn expected(steps: &Steps, snapshot: &Snapshot, wanted: Wanted, growth: &Growth) -> Option<Expected> {
    let mut reach = Reach::new(Some((snapshot, growth)));
    let end = reach.steps(steps, Elements::default());
    if reach.left == 0 {
        return None;
    }
    reach.results(&end, wanted.properties);
    let expected = reach.expected;
    let count = expected.vertices.len() + expected.edges.len();
    (1..=TABLES_MAX).contains(&count).then_some(expected)
}

/// Steps that might still be followed after those of a query.
#[cfg(feature = "testing")]
pub(crate) fn left(steps: &Steps, snapshot: &Snapshot, growth: &Growth) -> usize {
    let mut reach = Reach::new(Some((snapshot, growth)));
    reach.steps(steps, Elements::default());
    reach.left
}

impl<'a> Reach<'a> {
    fn new(graph: Option<(&'a Snapshot, &'a Growth)>) -> Self {
        Self {
            graph,
            met: BTreeMap::new(),
            all: Elements::default(),
            expected: Expected::default(),
            reads: Reads::default(),
            left: STEPS_MAX,
        }
    }

    /// What is there after some steps.
    pub(crate) fn steps(&mut self, steps: &[Arc<PlanStep>], mut at: Elements) -> Elements {
        for (number, step) in steps.iter().enumerate() {
            let Some(left) = self.left.checked_sub(1) else { return at.others() };
            if self.graph.is_none() && (number == AHEAD || !at.are_input) {
                return at.others();
            }
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
        for steps in branches {
            if self.left == 0 {
                break;
            }
            after.join(self.steps(steps, at.clone()));
        }
        after
    }

    /// What is computed of what is there.
    pub(crate) fn by(&mut self, by: &By, at: Elements) -> Elements {
        self.left = self.left.saturating_sub(1);
        let computed = match by {
            By::Identity | By::Column(_) => at,
            By::Property(name) => {
                self.name(name, &at);
                at
            }
            By::Token(token) => {
                if *token == T::Id {
                    self.ids(&at);
                }
                at
            }
            By::Steps(steps) => self.steps(steps, at),
        };
        computed.others()
    }

    /// That several things are computed of what is there.
    pub(crate) fn each_by<'b>(&mut self, all: impl IntoIterator<Item = &'b By>, at: &Elements) {
        all.into_iter().for_each(|by| drop(self.by(by, at.clone())));
    }

    /// That a property of it is read.
    pub(crate) fn name(&mut self, name: &Name, at: &Elements) {
        self.reads(at, Some(std::slice::from_ref(name)));
    }

    /// That properties of it are read; all if there are no names.
    pub(crate) fn names(&mut self, names: &[Name], at: &Elements) {
        self.reads(at, Some(names).filter(|names| !names.is_empty()));
    }

    /// That its ids are read.
    pub(crate) fn ids(&mut self, at: &Elements) {
        self.reads.count += usize::from(at.are_input);
        self.results(at, false);
    }

    /// The elements bound to a name.
    pub(crate) fn met(&self, name: &str) -> Elements {
        self.met.get(name).cloned().unwrap_or_default()
    }

    /// Notes names that are looked at.
    pub(crate) fn looks_at(&mut self, names: usize) {
        self.left = self.left.saturating_sub(names);
    }

    /// The schema of the graph, once it is known.
    pub(crate) fn schema(&self) -> Option<&'a Schema> {
        self.graph.map(|(snapshot, _)| snapshot.schema())
    }

    /// Vertices of the labels that can be there.
    pub(crate) fn vertices_if(&self, is_possible: impl Fn(&VertexLabel, &Growth) -> bool) -> Elements {
        let Some((snapshot, growth)) = self.graph else { return Elements::default() };
        let labels = (0u16..).map(LabelId).zip(&snapshot.schema().vertex_labels);
        let possible = labels.filter(|(_, label)| is_possible(label, growth));
        Elements { vertices: possible.map(|(id, _)| id).collect(), ..Elements::default() }
    }

    /// Where a hop leads.
    pub(crate) fn hop(
        &self,
        at: &Elements,
        direction: tokens::Direction,
        labels: &[Name],
        reaches: Reaches,
    ) -> Elements {
        let Some((snapshot, _)) = self.graph else { return Elements::default() };
        let Some(along) = hop_along(snapshot, direction, labels) else { return Elements::default() };
        let near: Vec<LabelId> = at.vertices.iter().copied().collect();
        let mut reached = Elements::default();
        match reaches {
            Reaches::Vertices => reached.vertices.extend(along.labels_reached(snapshot.schema(), &near)),
            Reaches::Edges => reached.edges.extend(along.edges_followed(snapshot.schema(), &near)),
        }
        reached
    }

    /// The vertices at the ends of edges.
    pub(crate) fn ends(&self, at: &Elements) -> Elements {
        let Some(schema) = self.schema() else { return Elements::default() };
        let ends = at.edges.iter().filter_map(|(edge, _)| schema.edge_type(*edge));
        Elements { vertices: ends.flat_map(|edge| [edge.source, edge.target]).collect(), ..Elements::default() }
    }

    /// That properties are read of what is there: all, or those of some names. Without a name, it is their keys.
    pub(crate) fn reads(&mut self, at: &Elements, names: Option<&[Name]>) {
        if at.are_input {
            self.reads.count += 1;
            self.reads.all |= names.is_none();
            for name in names.unwrap_or_default() {
                if self.reads.known.insert(name.clone()) {
                    self.reads.names.push(name.clone());
                }
            }
        }
        let Some(schema) = self.schema() else { return };
        let some: Option<BTreeSet<&str>> = names.map(|names| names.iter().map(|name| &**name).collect());
        let is_read = |name: &str| some.as_ref().is_none_or(|some| some.contains(name));
        for label in &at.vertices {
            let has = |label: &VertexLabel| label.properties.iter().any(|it| is_read(&it.name));
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
    fn results(&mut self, at: &Elements, with_properties: bool) {
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
