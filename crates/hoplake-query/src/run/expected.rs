//! Which tables a query will read: their ends are read with its first look at the store, and not before their first cells.
//!
//! The steps are followed with the labels of vertices and types of edges that can be there; what is wrong about it costs time, and
//! never changes an answer.

use std::collections::{BTreeMap, BTreeSet};

use hoplake_engine::{Expected, Snapshot, split_vertex};
use hoplake_format::{Direction as StoredDirection, EdgeTypeId, Key, KeyType, LabelId};

use super::{Wanted, conditions, expand::hop_along, growth::Growth};
use crate::{
    plan::{By, Case, Choice, Found, Name, Plan, Reaches, Settings, Step, StepKind, Steps},
    tokens::{Direction, T},
    value::Value,
};

/// Tables, at most. A query that may read more than that gets the ends of those that it reads when it knows them.
const TABLES_MAX: usize = 16;

/// Times that a loop is followed.
const ROUNDS: usize = 3;

/// Steps, names and `by` that are followed, at most: loops in loops are followed three times each, and a query may have 100,000 steps.
const STEPS_MAX: usize = 1_000;

/// What the traversers at a step can be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct At {
    vertices: BTreeSet<LabelId>,
    /// Edges, with the direction in which they were followed.
    edges: BTreeSet<(EdgeTypeId, StoredDirection)>,
}

impl At {
    fn join(&mut self, other: Self) {
        self.vertices.extend(other.vertices);
        self.edges.extend(other.edges);
    }
}

struct Follow<'a> {
    snapshot: &'a Snapshot,
    wanted: Wanted,
    growth: &'a Growth,
    met: BTreeMap<Name, At>,
    /// All that was there, for paths.
    all: At,
    expected: Expected,
    /// Steps that may still be followed.
    left: usize,
}

/// The tables that a plan will read; `None` if nothing is gained by reading their ends early.
pub(super) fn of(plan: &Plan, snapshot: &Snapshot, wanted: Wanted, growth: &Growth) -> Option<Expected> {
    let Settings { writes: false, .. } = plan.settings else { return None };
    let mut follow = Follow::new(snapshot, wanted, growth);
    let end = follow.steps(&plan.steps, At::default());
    if follow.left == 0 {
        return None;
    }
    follow.results(&end);
    let expected = follow.expected;
    let count = expected.vertices.len() + expected.edges.len();
    (1..=TABLES_MAX).contains(&count).then_some(expected)
}

/// Steps that might still be followed after those of a plan.
#[cfg(feature = "testing")]
pub(crate) fn left(plan: &Plan, snapshot: &Snapshot, growth: &Growth) -> usize {
    let mut follow = Follow::new(snapshot, Wanted::default(), growth);
    follow.steps(&plan.steps, At::default());
    follow.left
}

impl<'a> Follow<'a> {
    fn new(snapshot: &'a Snapshot, wanted: Wanted, growth: &'a Growth) -> Self {
        let (met, all, expected) = (BTreeMap::new(), At::default(), Expected::default());
        Self { snapshot, wanted, growth, met, all, expected, left: STEPS_MAX }
    }

    fn steps(&mut self, steps: &[std::sync::Arc<Step>], mut at: At) -> At {
        for step in steps {
            let Some(left) = self.left.checked_sub(1) else { return at };
            self.left = left;
            at = crate::deep::with_stack(|| self.step(&step.kind, at));
            self.all.join(at.clone());
            for label in &step.labels {
                self.met.entry(label.clone()).or_default().join(at.clone());
            }
        }
        at
    }

    /// What is there after a step.
    fn step(&mut self, kind: &StepKind, at: At) -> At {
        match kind {
            StepKind::Vertices(Some(ids)) => self.of_ids(ids),
            StepKind::Vertices(None) => At { vertices: self.labels().collect(), ..At::default() },
            StepKind::Find(found) => self.found(found),
            StepKind::Hop(direction, labels, reaches) => self.hop(&at, *direction, labels, *reaches),
            StepKind::HopWhere(hop) => {
                let reached = self.hop(&at, hop.direction, &hop.labels, hop.reaches);
                let names: Vec<Name> = hop.conditions.iter().map(|(name, _)| name.clone()).collect();
                self.reads(&reached, Some(&names));
                reached
            }
            StepKind::Walk(hops) => {
                hops.iter().fold(at, |at, (direction, labels)| self.hop(&at, *direction, labels, Reaches::Vertices))
            }
            StepKind::Ends(_) | StepKind::OtherEnd => self.ends(&at),
            StepKind::Has(by, _) => self.by(by, at),
            StepKind::HasProperty(name) | StepKind::HasNot(name) | StepKind::HasSteps(name, _) => {
                self.reads(&at, Some(std::slice::from_ref(name)));
                at
            }
            StepKind::Values(names) | StepKind::Properties(names) | StepKind::PropertyMap(names) => {
                self.reads(&at, Some(names).filter(|names| !names.is_empty()).map(|names| &names[..]));
                // A property leads back to its element.
                if matches!(kind, StepKind::Values(_)) { At::default() } else { at }
            }
            StepKind::ValueMap(names, ..) | StepKind::ElementMap(names) => {
                self.reads(&at, Some(names).filter(|names| !names.is_empty()).map(|names| &names[..]));
                if matches!(kind, StepKind::ElementMap(_)) {
                    let ends = self.ends(&at);
                    self.reads(&ends, Some(&[]));
                }
                At::default()
            }
            StepKind::Token(token) => {
                if *token == T::Id {
                    self.results_of(&at, false);
                }
                At::default()
            }
            StepKind::Where(steps) | StepKind::Not(steps) | StepKind::SideEffect(steps) => {
                self.steps(steps, at.clone());
                at
            }
            StepKind::And(all) | StepKind::Or(all) => {
                all.iter().for_each(|steps| drop(self.steps(steps, at.clone())));
                at
            }
            StepKind::Map(steps) | StepKind::FlatMap(steps) | StepKind::Local(steps) => self.steps(steps, at),
            StepKind::Optional(steps) => {
                let mut after = self.steps(steps, at.clone());
                after.join(at);
                after
            }
            StepKind::Union(all) | StepKind::Coalesce(all) => self.branches(all.iter(), &at),
            StepKind::Choose(choice, cases, _) => {
                match choice {
                    Choice::Productive(steps) => drop(self.steps(steps, at.clone())),
                    Choice::By(by) => drop(self.by(by, at.clone())),
                    Choice::Test(_) => {}
                }
                for (case, _) in cases {
                    if let Case::Steps(steps) = case {
                        self.steps(steps, at.clone());
                    }
                }
                let mut after = self.branches(cases.iter().map(|(_, steps)| steps), &at);
                after.join(at);
                after
            }
            StepKind::Repeat(repeat) => {
                let mut all = at.clone();
                for _ in 0..ROUNDS {
                    let next = self.steps(&repeat.body, all.clone());
                    let before = all.clone();
                    all.join(next);
                    if all == before {
                        break;
                    }
                }
                for (until, _) in [&repeat.until, &repeat.emit].into_iter().flatten() {
                    if let crate::plan::Until::Steps(steps) = until {
                        self.steps(steps, all.clone());
                    }
                }
                all
            }
            StepKind::Select(_, names, by, _) => {
                let mut after = At::default();
                self.left = self.left.saturating_sub(names.len());
                for (number, name) in names.iter().enumerate() {
                    let met = self.met.get(name).cloned().unwrap_or_default();
                    after.join(match by.get(number % by.len().max(1)) {
                        Some(by) => self.by(by, met),
                        None => met,
                    });
                }
                after
            }
            StepKind::StartAt(name) => self.met.get(name).cloned().unwrap_or_default(),
            StepKind::WherePredicate(_, predicate, by) => {
                let mut met = at.clone();
                predicate.values(&mut |value| {
                    if let Value::Text(name) = value {
                        met.join(self.met.get(&**name).cloned().unwrap_or_default());
                    }
                });
                by.iter().for_each(|by| drop(self.by(by, met.clone())));
                at
            }
            StepKind::Path(part) | StepKind::SimplePath(_, part) => {
                let all = self.all.clone();
                let mut after = if part.by.is_empty() { all.clone() } else { At::default() };
                part.by.iter().for_each(|by| after.join(self.by(by, all.clone())));
                if matches!(kind, StepKind::Path(_)) { after } else { at }
            }
            StepKind::Tree(_, by) => {
                let all = self.all.clone();
                by.iter().for_each(|by| drop(self.by(by, all.clone())));
                if by.is_empty() { all } else { At::default() }
            }
            StepKind::Order(_, sortings) => {
                sortings.iter().for_each(|(by, _)| drop(self.by(by, at.clone())));
                at
            }
            StepKind::Sample(_, _, by) | StepKind::SackWith(_, by) | StepKind::Aggregate(_, _, by) => {
                self.by(by, at.clone());
                at
            }
            StepKind::Dedup(_, _, by) => {
                by.iter().for_each(|by| drop(self.by(by, at.clone())));
                at
            }
            StepKind::Group(_, key, value) => {
                let mut after = self.by(key, at.clone());
                after.join(self.by(value, at));
                after
            }
            StepKind::GroupCount(_, by) => self.by(by, at),
            StepKind::Project(_, by) => {
                let mut after = At::default();
                by.iter().for_each(|by| after.join(self.by(by, at.clone())));
                after
            }
            StepKind::Math(_, by) => {
                by.iter().for_each(|by| drop(self.by(by, at.clone())));
                At::default()
            }
            StepKind::CountEdges(..)
            | StepKind::Counted(_)
            | StepKind::Reduce(..)
            | StepKind::Constant(_)
            | StepKind::Loops(_)
            | StepKind::Text(..)
            | StepKind::As(..) => At::default(),
            StepKind::ShortestPaths(_) => At { vertices: self.labels().collect(), ..At::default() },
            _ => at,
        }
    }

    fn branches<'s>(&mut self, branches: impl Iterator<Item = &'s Steps>, at: &At) -> At {
        let mut after = At::default();
        branches.for_each(|steps| after.join(self.steps(steps, at.clone())));
        after
    }

    /// What is computed of what is there.
    fn by(&mut self, by: &By, at: At) -> At {
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

    fn labels(&self) -> impl Iterator<Item = LabelId> + use<> {
        (0..self.snapshot.schema().vertex_labels.len()).map(|label| LabelId(label as u16))
    }

    fn of_ids(&self, ids: &[Value]) -> At {
        let schema = self.snapshot.schema();
        let mut vertices = BTreeSet::new();
        for id in ids {
            let id = match id {
                Value::Vertex(vertex) => &vertex.id,
                id => id,
            };
            let named = match id {
                Value::Text(text) => {
                    split_vertex(text).ok().and_then(|(label, key)| Some((schema.label_id(&label)?, key.to_owned())))
                }
                _ => None,
            };
            match (named, id) {
                (Some((label, _)), _) => drop(vertices.insert(label)),
                (None, Value::Text(text)) => {
                    let has = |label: &LabelId| {
                        schema.label(*label).is_some_and(|label| Key::parse(text, label.key_type).is_some())
                    };
                    vertices.extend(self.labels().filter(has));
                }
                _ => {
                    let has =
                        |label: &LabelId| schema.label(*label).is_some_and(|label| label.key_type == KeyType::Int64);
                    vertices.extend(self.labels().filter(has));
                }
            }
        }
        At { vertices, ..At::default() }
    }

    fn found(&self, found: &Found) -> At {
        let is_possible = |label: &LabelId| {
            let label = self.snapshot.schema().label(*label);
            label.is_some_and(|label| conditions::is_possible(label, found, self.growth))
        };
        At { vertices: self.labels().filter(is_possible).collect(), ..At::default() }
    }

    fn hop(&self, at: &At, direction: Direction, labels: &[Name], reaches: Reaches) -> At {
        let Some(hop) = hop_along(self.snapshot, direction, labels) else { return At::default() };
        let near: Vec<LabelId> = at.vertices.iter().copied().collect();
        match reaches {
            Reaches::Vertices => {
                At { vertices: self.snapshot.labels_reached(&near, &hop).into_iter().collect(), ..At::default() }
            }
            Reaches::Edges => {
                At { edges: self.snapshot.edges_followed(&near, &hop).into_iter().collect(), ..At::default() }
            }
        }
    }

    fn ends(&self, at: &At) -> At {
        let ends = at.edges.iter().filter_map(|(edge, _)| self.snapshot.schema().edge_type(*edge));
        At { vertices: ends.flat_map(|edge| [edge.source, edge.target]).collect(), ..At::default() }
    }

    /// That properties are read of what is there: all, or those of some names.
    fn reads(&mut self, at: &At, names: Option<&[Name]>) {
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
    fn results(&mut self, at: &At) {
        self.results_of(at, self.wanted.properties);
    }

    fn results_of(&mut self, at: &At, with_properties: bool) {
        // Its id is its key, and the id of an edge has those of its ends where it is handed out.
        self.expected.vertices.extend(&at.vertices);
        let ends = self.ends(at);
        self.expected.vertices.extend(ends.vertices);
        if with_properties {
            self.reads(at, None);
        }
    }
}
