//! Side effects: what steps collect under names, for others to read.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use hoplake_engine::Neighbour;
use hoplake_format::{EdgeId, VertexId};
use hoplake_storage::{MemoryHold, QueryContext};

use super::{
    Run,
    batch::{Batch, Element},
    reduce::{OwnedKey, copies},
};
use crate::{
    error::{Done, QueryError},
    growth::Growth,
    plan::{Collects, Name, Settings},
    run::groups::{GroupValue, Groups},
    tokens::BinaryOperator,
    value::{ALLOCATION_BYTES, ELEMENT_BYTES, Graph, Tree, Value, kind_of, tree_bytes, value_bytes},
};

/// All side effects of a query.
#[derive(Debug)]
pub(crate) struct SideEffects {
    effects: HashMap<Name, Effect>,
    hold: MemoryHold,
}

/// A side effect.
#[derive(Debug)]
enum Effect {
    /// A value that was there from the beginning, and what adds to it.
    Value(Value, Option<BinaryOperator>),
    /// What `aggregate` collects: values in the order of their first, with their numbers.
    Collected { values: Vec<(Value, u64)>, places: HashMap<OwnedKey, usize> },
    /// What `group` collects.
    Groups(Box<Groups>),
    /// What `groupCount` collects.
    Counts { counts: Vec<(Value, u64)>, places: HashMap<OwnedKey, usize> },
    /// What `tree` collects.
    Tree(Tree),
    /// What `subgraph` collects.
    Graph(Subgraph),
}

impl SideEffects {
    pub(crate) fn new(settings: &Settings, context: &QueryContext) -> Done<Self> {
        let empty = || Effect::Collected { values: Vec::new(), places: HashMap::new() };
        let nothing = |what: Collects| match what {
            Collects::Values => empty(),
            Collects::Map => Effect::Value(Value::Map(Vec::new()), None),
            Collects::Tree => Effect::Tree(Tree::default()),
            Collects::Graph => Effect::Graph(Subgraph::default()),
        };
        let mut initial: HashMap<Name, Effect> =
            settings.collected.iter().map(|(name, what)| (name.clone(), nothing(*what))).collect();
        let given = settings.side_effects.iter();
        initial.extend(given.map(|it| (it.name.clone(), Effect::Value(it.initial.clone(), it.reduce))));
        Ok(Self { effects: initial, hold: context.hold(0)? })
    }

    /// Takes over what was built for them.
    fn hand_over(&mut self, more: u64, growth: &Growth) -> Done<()> {
        let mut part = None;
        growth.hand_over(&mut part, more)?;
        if let Some(part) = part {
            self.hold.join(part);
        }
        Ok(())
    }

    fn grow(&mut self, bytes: usize, context: &QueryContext) -> Done<()> {
        grow(&mut self.hold, bytes, context)
    }
}

fn grow(hold: &mut MemoryHold, bytes: usize, context: &QueryContext) -> Done<()> {
    let bytes = hold.bytes() + bytes as u64;
    Ok(context.resize(hold, bytes)?)
}

fn other_kind(name: &Name) -> QueryError {
    QueryError::wrong_type(format!("the side effect {name:?} is collected by steps of several kinds"))
}

impl Run {
    /// Adds values to what is collected under a name.
    pub(crate) fn aggregate(&mut self, name: &Name, values: impl Iterator<Item = (Value, u64)>) -> Done<()> {
        let context = self.branch.context().clone();
        let empty = || Effect::Collected { values: Vec::new(), places: HashMap::new() };
        self.side_effects.effects.entry(name.clone()).or_insert_with(empty);
        // What is assigned is all that came.
        let SideEffects { effects, hold } = &mut self.side_effects;
        if let Some(Effect::Value(before, Some(BinaryOperator::Assign))) = effects.get_mut(name) {
            let values: Vec<_> = values.collect();
            grow(hold, values.iter().map(|(value, _)| value_bytes(value) + 8).sum(), &context)?;
            *before = Value::BulkSet(values);
            return Ok(());
        }
        for (value, bulk) in values {
            if !matches!(effects.get(name), Some(Effect::Value(..))) {
                grow(hold, value_bytes(&value) * 2 + 16, &context)?;
            }
            match effects.get_mut(name) {
                Some(Effect::Collected { values, places }) => count(values, places, value, bulk, &self.growth)?,
                Some(Effect::Value(before, reduce)) => {
                    let operator = reduce.unwrap_or(BinaryOperator::AddAll);
                    for _ in 0..copies(bulk)? {
                        let copy = self.growth.copy(&value)?;
                        grow(hold, value_bytes(&copy), &context)?;
                        let added = match operator {
                            BinaryOperator::AddAll => Value::List(vec![copy]),
                            _ => copy,
                        };
                        let made = super::reduce::operate(operator, std::mem::take(before), added, &self.growth)?;
                        *before = made;
                    }
                }
                _ => return Err(other_kind(name)),
            }
        }
        Ok(())
    }

    /// Whether each value of a side effect replaces the one before.
    pub(crate) fn assigns(&self, name: &Name) -> bool {
        matches!(self.side_effects.effects.get(name), Some(Effect::Value(_, Some(BinaryOperator::Assign))))
    }

    /// Adds rows to the groups of a name.
    pub(crate) fn group_under(
        &mut self,
        name: &Name,
        keys: Vec<Option<Value>>,
        batch: &Batch,
        value: Arc<dyn GroupValue>,
    ) -> Done<()> {
        let growth = self.growth.clone();
        let groups = || Effect::Groups(Box::new(Groups::new(value.clone())));
        match self.side_effects.effects.entry(name.clone()).or_insert_with(groups) {
            Effect::Groups(groups) => {
                let before = groups.bytes();
                groups.add(keys, batch, &growth)?;
                let more = groups.bytes() - before;
                self.side_effects.hand_over(more, &growth)
            }
            Effect::Value(Value::Map(initial), _) => {
                let mut groups = Groups::new(value.clone());
                groups.initial = std::mem::take(initial);
                groups.add(keys, batch, &growth)?;
                let more = groups.bytes();
                self.side_effects.effects.insert(name.clone(), Effect::Groups(Box::new(groups)));
                self.side_effects.hand_over(more, &growth)
            }
            _ => Err(other_kind(name)),
        }
    }

    /// Adds keys to the counts of a name.
    pub(crate) fn count_under(&mut self, name: &Name, keys: impl Iterator<Item = (Value, u64)>) -> Done<()> {
        let context = self.branch.context().clone();
        let empty = || Effect::Counts { counts: Vec::new(), places: HashMap::new() };
        self.side_effects.effects.entry(name.clone()).or_insert_with(empty);
        for (key, bulk) in keys {
            self.side_effects.grow(value_bytes(&key) * 2 + 16, &context)?;
            let effect = self.side_effects.effects.get_mut(name);
            if let Some(effect @ Effect::Value(Value::Map(_), _)) = effect {
                *effect = counts_of(std::mem::replace(effect, empty()), &self.growth)?;
            }
            match self.side_effects.effects.get_mut(name) {
                Some(Effect::Counts { counts, places }) => count(counts, places, key, bulk, &self.growth)?,
                _ => return Err(other_kind(name)),
            }
        }
        Ok(())
    }

    /// Adds paths to the tree of a name.
    pub(crate) fn grow_tree(&mut self, name: &Name, paths: Vec<Vec<Value>>) -> Done<()> {
        let context = self.branch.context().clone();
        let bytes = paths.iter().flatten().map(value_bytes).sum();
        self.side_effects.grow(bytes, &context)?;
        match self.side_effects.effects.entry(name.clone()).or_insert_with(|| Effect::Tree(Tree::default())) {
            Effect::Tree(tree) => {
                let mut paths = paths.into_iter();
                paths.try_for_each(|path| super::reduce::plant(tree, path, &self.growth))
            }
            _ => Err(other_kind(name)),
        }
    }

    /// Adds edges and their vertices to the graph of a name.
    pub(crate) fn grow_graph(&mut self, name: &Name, batch: &Batch) -> Done<()> {
        let context = self.branch.context().clone();
        for at in 0..batch.len() {
            let Some(Element::Edge(edge)) = batch.items.element(at) else {
                let what = kind_of(&batch.items.get(at));
                return Err(QueryError::wrong_type(format!("`subgraph` takes edges, and this is {what}")));
            };
            let empty = || Effect::Graph(Subgraph::default());
            let Effect::Graph(graph) = self.side_effects.effects.entry(name.clone()).or_insert_with(empty) else {
                return Err(other_kind(name));
            };
            if graph.add(edge) {
                self.side_effects.grow(SUBGRAPH_EDGE_BYTES, &context)?;
            }
        }
        Ok(())
    }

    /// The value of a side effect, if there is one of that name.
    pub(crate) async fn side_effect(&mut self, name: &Name) -> Done<Option<Value>> {
        let Some(effect) = self.side_effects.effects.get(name) else { return Ok(None) };
        let growth = self.growth.clone();
        let all = |values: &[(Value, u64)]| values.iter().map(|(value, _)| value_bytes(value) + ENTRY_BYTES).sum();
        let groups = match effect {
            Effect::Value(value, _) => return growth.copy(value).map(Some),
            Effect::Collected { values, .. } => {
                growth.take(all(values))?;
                return Ok(Some(Value::BulkSet(values.clone())));
            }
            Effect::Counts { counts, .. } => {
                growth.take(all(counts))?;
                return Ok(Some(Value::Map(
                    counts.iter().map(|(key, count)| (key.clone(), (*count as i64).into())).collect(),
                )));
            }
            Effect::Tree(tree) => {
                growth.take(tree_bytes(tree))?;
                return Ok(Some(Value::Tree(tree.clone())));
            }
            Effect::Graph(graph) => {
                growth.take((graph.vertices.len() + graph.edges.len()) * ELEMENT_BYTES)?;
                return Ok(Some(graph.value()));
            }
            Effect::Groups(groups) => groups.copy(&growth)?,
        };
        groups.into_map(self).await.map(Some)
    }
}

/// An edge of a subgraph with its vertices: in lists, in sets, and as values.
const SUBGRAPH_EDGE_BYTES: usize = 512;

/// Edges and their vertices, each once, in the order in which they came.
#[derive(Debug, Default)]
struct Subgraph {
    vertices: Vec<VertexId>,
    edges: Vec<Neighbour>,
    seen_vertices: HashSet<VertexId>,
    seen_edges: HashSet<EdgeId>,
}

impl Subgraph {
    /// Whether the edge is new.
    fn add(&mut self, edge: Neighbour) -> bool {
        let id = edge.id();
        let is_new = self.seen_edges.insert(id);
        if is_new {
            self.edges.push(edge);
            let ends = [id.source, id.target].into_iter();
            self.vertices.extend(ends.filter(|vertex| self.seen_vertices.insert(*vertex)));
        }
        is_new
    }

    fn value(&self) -> Value {
        let vertices = self.vertices.iter().map(|vertex| (*vertex).into()).collect();
        Value::Graph(Box::new(Graph { vertices, edges: self.edges.iter().map(|edge| (*edge).into()).collect() }))
    }
}

/// Counts that go on from a map.
fn counts_of(effect: Effect, growth: &Growth) -> Done<Effect> {
    let mut counts = Vec::new();
    let mut places = HashMap::new();
    if let Effect::Value(Value::Map(entries), _) = effect {
        for (key, value) in entries {
            if let Value::Number(number) = value {
                count(
                    &mut counts,
                    &mut places,
                    key,
                    u64::try_from(crate::value::to_i64(&number)).unwrap_or(0),
                    growth,
                )?;
            }
        }
    }
    Ok(Effect::Counts { counts, places })
}

fn count(
    counts: &mut Vec<(Value, u64)>,
    places: &mut HashMap<OwnedKey, usize>,
    value: Value,
    bulk: u64,
    growth: &Growth,
) -> Done<()> {
    let key = OwnedKey(value);
    match places.get(&key) {
        Some(place) => counts[*place].1 = counts[*place].1.saturating_add(bulk),
        None => {
            let value = growth.copy(&key.0)?;
            places.insert(key, counts.len());
            counts.push((value, bulk));
        }
    }
    Ok(())
}

/// What an item of a side effect takes besides its value, as an entry of a map.
const ENTRY_BYTES: usize = size_of::<Value>() + ALLOCATION_BYTES;
