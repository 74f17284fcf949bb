//! Random batches: few vertices and many changes of the same, so that everything meets everything.

use std::collections::BTreeSet;

use hoplake::{Batch, EdgeKey, Key, Name, Operation, Properties, Value, VertexRef};
use hoplake_testkit::generate::SplitMix64;

use crate::model::Model;

/// The label whose edges have keys, so that there may be several between two vertices.
pub const PARALLEL: &str = "visits";

/// The property that is the key of such edges.
pub const KEY: &str = "id";

/// The parameters of batches.
#[derive(Debug, Clone)]
pub struct Vocabulary {
    /// Every vertex that there may ever be.
    pub vertices: Vec<VertexRef>,
    /// Labels of edges.
    pub edge_labels: Vec<Name>,
    /// Vertex operations of a batch, at most.
    pub vertices_max: u64,
    /// Edge operations of a batch, at most.
    pub edges_max: u64,
    /// Whether edges are only replaced: the model cannot know which of several a change without a key keeps.
    pub replaces_edges: bool,
    /// Whether a batch may change an item several times.
    pub repeats: bool,
}

impl Vocabulary {
    /// People with numbers, cities with names, and two labels of edges between any of them.
    pub fn of_keys(keys: i64) -> Self {
        let people = (0..keys).map(|key| VertexRef::new("Person", key));
        let cities = (0..keys).map(|key| VertexRef::new("City", format!("city {key:02}")));
        let edge_labels = ["knows", "visits"].map(Name::new).to_vec();
        Self {
            vertices: people.chain(cities).collect(),
            edge_labels,
            vertices_max: 12,
            edges_max: 30,
            replaces_edges: false,
            repeats: false,
        }
    }

    /// The labels of vertices.
    pub fn labels(&self) -> BTreeSet<&str> {
        self.vertices.iter().map(|end| end.label.as_str()).collect()
    }

    /// The keys of a label.
    pub fn keys<'a>(&'a self, label: &'a str) -> impl Iterator<Item = &'a Key> {
        self.vertices.iter().filter(move |end| end.label == label).map(|end| &end.key)
    }

    /// A batch that is allowed on a model, and the model after it.
    pub fn batch(&self, random: &mut SplitMix64, model: &Model) -> (Batch, Model) {
        let mut batch = Batch::default();
        let mut named = BTreeSet::new();
        let mut gone = BTreeSet::new();
        for _ in 0..=random.below(self.vertices_max) {
            let vertex = self.vertices[random.below(self.vertices.len() as u64) as usize].clone();
            if !named.insert(vertex.clone()) && !self.repeats {
                continue;
            }
            batch.operations.push(if random.below(4) == 0 && model.vertices.contains_key(&vertex) {
                gone.insert(vertex.clone());
                Operation::DeleteVertex { vertex }
            } else {
                gone.remove(&vertex);
                Operation::UpsertVertex { vertex, properties: properties(random), replace: random.below(2) == 0 }
            });
        }
        // Edges come after all vertices of the batch: they may use new ones, but none that the batch deletes.
        let mut with_vertices = model.clone();
        with_vertices.apply(&batch);
        let there: Vec<&VertexRef> = with_vertices.vertices.keys().filter(|end| !gone.contains(end)).collect();
        self.add_edges(random, model, &there, &mut batch);
        batch.message = format!("{} operations", batch.operations.len());
        let mut after = model.clone();
        after.apply(&batch);
        (batch, after)
    }

    fn add_edges(&self, random: &mut SplitMix64, model: &Model, there: &[&VertexRef], batch: &mut Batch) {
        let mut edges = BTreeSet::new();
        for _ in 0..random.below(self.edges_max) {
            if there.is_empty() {
                return;
            }
            let source = there[random.below(there.len() as u64) as usize].clone();
            let target = there[random.below(there.len() as u64) as usize].clone();
            let label = self.edge_labels[random.below(self.edge_labels.len() as u64) as usize].clone();
            if !edges.insert((label.clone(), source.clone(), target.clone())) && !self.repeats {
                continue;
            }
            let edge_type = (label.clone(), source.label.clone(), target.label.clone());
            let known = model.edge_types.get(&edge_type);
            if label != PARALLEL {
                batch.operations.push(if random.below(3) == 0 && known.is_some() {
                    Operation::DeleteEdge { label, source, target, key: None }
                } else {
                    let replace = self.replaces_edges || random.below(2) == 0;
                    Operation::UpsertEdge { label, source, target, key: None, properties: properties(random), replace }
                });
                continue;
            }
            // A deletion by key is rejected as long as the type has no such property.
            let keys = known.is_some_and(|known| known.contains(KEY));
            let first = random.below(3) as i64;
            for id in first..=first + random.below(2) as i64 {
                let label = label.clone();
                let source = source.clone();
                let target = target.clone();
                let key = Some(EdgeKey { property: KEY.into(), value: Value::Int64(id) });
                batch.operations.push(match random.below(6) {
                    0 | 1 if keys => Operation::DeleteEdge { label, source, target, key },
                    _ => {
                        let replace = random.below(2) == 0;
                        Operation::UpsertEdge { label, source, target, key, properties: properties(random), replace }
                    }
                });
            }
        }
    }
}

fn properties(random: &mut SplitMix64) -> Properties {
    let mut properties = Properties::new();
    if random.below(2) == 0 {
        properties.insert("name", Value::String(format!("n{}", random.below(100))));
    }
    if random.below(2) == 0 {
        let number = random.below(100) as i64;
        properties.insert("weight", if random.below(8) == 0 { Value::Null } else { Value::Int64(number) });
    }
    if random.below(4) == 0 {
        // Integers until a batch writes a fraction.
        let number = random.below(100) as i64;
        let fraction = random.below(12) == 0;
        properties.insert("score", if fraction { Value::Float64(number as f64 + 0.5) } else { Value::Int64(number) });
    }
    if random.below(3) == 0 {
        properties.insert("tags", Value::List(vec![Value::String("a".into()), Value::Null]));
    }
    properties
}
