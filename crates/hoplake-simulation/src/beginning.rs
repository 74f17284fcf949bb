//! The graph of a seed before the first change.
//!
//! Most begin empty. Some begin with one heavy commit: its sorted run outweighs what follows, so that a compaction
//! merges newer runs among themselves, and their tombstones still count. Some small ones follow it at once, so
//! that there is something to merge from the first compaction on. Some graphs begin with a load, whose sections go on
//! over many segments: the golden files of its first version. They are read once without faults, which gives the model
//! of that version.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use hoplake::{Batch, Change, EdgeKey, Graph, Manifest, Name, Operation, Properties, Value, VertexRef};
use hoplake_format::constants::{HINT_NAME, manifest_name};
use hoplake_testkit::generate::SplitMix64;

use crate::{
    batches::{KEY, PARALLEL, Vocabulary},
    bucket::{EPOCH_UNIX_MS, Stored},
    history::Answer,
    machine::Machine,
    model::Model,
    process::{check_reading, open},
    reading::read,
    world::{Concern, World},
};

/// Bytes of text in the heavy commit for each label of vertices: those of a hundred small runs.
const LABEL_BYTES: usize = 384 << 10;

/// And for each type of edges, of which there are more: those of many small runs.
const EDGE_TYPE_BYTES: usize = 96 << 10;

/// How a graph begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beginning {
    /// Nothing is known.
    Empty,
    /// All vertices, and edges between all of them, with long texts.
    Heavy,
    /// Files of a load.
    Loaded,
}

impl Beginning {
    /// Draws one: three of four are empty.
    pub fn draw(world: &World) -> Self {
        match world.random(Concern::Beginning).below(8) {
            0 => Self::Heavy,
            1 => Self::Loaded,
            _ => Self::Empty,
        }
    }

    /// The parameters of batches, with this number of keys where it is free.
    pub fn vocabulary(self, keys: i64) -> Vocabulary {
        match self {
            Self::Empty | Self::Heavy => Vocabulary::of_keys(keys),
            Self::Loaded => loaded_vocabulary(),
        }
    }

    /// Makes the graph.
    pub async fn make(self, world: &Arc<World>, vocabulary: &Vocabulary) {
        match self {
            Self::Empty => begin_empty(world),
            Self::Heavy => {
                begin_empty(world);
                load_heavy(world, vocabulary).await;
            }
            Self::Loaded => begin_loaded(world, vocabulary).await,
        }
    }
}

/// A graph without a model yet.
pub(crate) fn begin_empty(world: &World) {
    let change = Change { writer: "nobody".into(), ..Change::default() };
    let manifest = Manifest { version: 1, reset: 1, created_unix_ms: EPOCH_UNIX_MS, change, ..Manifest::default() };
    let bytes = Bytes::from(manifest.encode());
    // The hint is a copy of the manifest.
    for name in [HINT_NAME.to_owned(), manifest_name(1)] {
        put(world, name, bytes.clone());
    }
    world.history().begin(manifest, Model::default());
}

fn put(world: &World, name: String, bytes: Bytes) {
    world.medium().found(&name, &bytes);
    world.bucket().insert(name, Stored { bytes, modified: Duration::ZERO });
}

async fn load_heavy(world: &Arc<World>, vocabulary: &Vocabulary) {
    let machine = Machine::new("founder", true);
    let Some(mut graph) = open(world, &machine, None).await else { return };
    let batch = heavy_batch(vocabulary, &mut world.random(Concern::Beginning));
    found(world, &mut graph, batch).await;
    let more = world.random(Concern::Beginning).below(9);
    for _ in 0..more {
        // Each batch builds on the version that the last one made, so that none is rejected.
        let model = world.history().model(graph.version()).unwrap_or_default();
        let (batch, _) = vocabulary.batch(&mut world.random(Concern::Beginning), &model);
        found(world, &mut graph, batch).await;
    }
    check_reading(world, &machine, &graph, vocabulary, 1).await;
}

/// A commit with which nothing goes wrong.
async fn found(world: &World, graph: &mut Graph, mut batch: Batch) {
    let number = world.history().submit(&mut batch, graph.version());
    match graph.apply(batch).await {
        Ok(committed) => {
            let answered = world.history().answered(number, Answer::Committed(committed.version), false);
            world.check(answered);
        }
        Err(error) => world.violated(format!("the first commit failed: {:?}, {error}", error.kind())),
    }
    if let Err(error) = graph.refresh().await {
        world.violated(format!("the first refresh failed: {error}"));
    }
}

/// Every vertex, and edges of every label from each to each, itself included.
fn heavy_batch(vocabulary: &Vocabulary, random: &mut SplitMix64) -> Batch {
    let per_label = vocabulary.vertices.len() / vocabulary.labels().len();
    let mut text = |bytes: usize, items: usize| -> Properties {
        // 64 characters, or six bits in each byte: compression leaves three quarters of the text at least.
        let characters = (0..bytes / items).map(|_| char::from(b'0' + random.below(64) as u8));
        Properties::from([("name", characters.collect::<String>())])
    };
    let mut operations = Vec::new();
    for vertex in vocabulary.vertices.iter().cloned() {
        operations.push(Operation::UpsertVertex { vertex, properties: text(LABEL_BYTES, per_label), replace: true });
    }
    for label in &vocabulary.edge_labels {
        let key = (label == PARALLEL).then(|| EdgeKey { property: KEY.into(), value: Value::Int64(0) });
        for source in &vocabulary.vertices {
            for target in &vocabulary.vertices {
                let label = label.clone();
                let source = source.clone();
                let target = target.clone();
                let key = key.clone();
                let properties = text(EDGE_TYPE_BYTES, per_label * per_label);
                operations.push(Operation::UpsertEdge { label, source, target, key, properties, replace: true });
            }
        }
    }
    Batch { operations, ..Batch::default() }
}

/// An object of the golden graph: its name, and what is in it.
macro_rules! golden {
    ($name:literal) => {
        ($name, include_bytes!(concat!("../../hoplake/tests/golden/v4/graph/", $name)).as_slice())
    };
}

/// All that its first version has.
const LOADED: [(&str, &[u8]); 14] = [
    golden!("manifest/00000000000000000001.hlm"),
    golden!("data/00000000000000000000-01M86DSWV5KSAMCQ7NP3EZY6C6-000000.hls"),
    golden!("data/00000000000000000000-01M86DSWV5KSAMCQ7NP3EZY6C6-000001.parquet"),
    golden!("data/00000000000000000000-01M86DSWV5KSAMCQ7NP3EZY6C6-000002.hls"),
    golden!("data/00000000000000000000-01M86DSWV5KSAMCQ7NP3EZY6C6-000003.hls"),
    golden!("data/00000000000000000000-01M86DSWV5KSAMCQ7NP3EZY6C6-000004.hls"),
    golden!("data/00000000000000000000-01M86DSWV5KSAMCQ7NP3EZY6C6-000005.hls"),
    golden!("data/00000000000000000000-01M86DSWV5KSAMCQ7NP3EZY6C6-000006.parquet"),
    golden!("data/00000000000000000000-01M86DSWV5KSAMCQ7NP3EZY6C6-000007.hls"),
    golden!("data/00000000000000000000-01M86DSWV5KSAMCQ7NP3EZY6C6-000008.parquet"),
    golden!("data/00000000000000000000-01M86DSWV5KSAMCQ7NP3EZY6C6-000009.hls"),
    golden!("data/00000000000000000000-01M86DSWV5KSAMCQ7NP3EZY6C6-000010.parquet"),
    golden!("data/00000000000000000000-01M86DSWV5KSAMCQ7NP3EZY6C6-000011.hls"),
    golden!("data/00000000000000000000-01M86DSWV5KSAMCQ7NP3EZY6C6-000012.hls"),
];

/// Items that the loaded graph has, and some that it lacks.
fn loaded_vocabulary() -> Vocabulary {
    let people = [-4, 1, 2, 30, 5, 1_000].map(|key| VertexRef::new("P", key));
    let locations = ["here", "there", "where else", "nowhere"].map(|key| VertexRef::new("C", key));
    Vocabulary {
        vertices: people.into_iter().chain(locations).collect(),
        edge_labels: ["knows", "livesIn", PARALLEL].map(Name::new).to_vec(),
        // Some of its people know each other by several edges without keys.
        replaces_edges: true,
        repeats: false,
        ..Vocabulary::of_keys(0)
    }
}

async fn begin_loaded(world: &Arc<World>, vocabulary: &Vocabulary) {
    for (name, bytes) in LOADED {
        if name == manifest_name(1) {
            put(world, HINT_NAME.to_owned(), Bytes::from_static(bytes));
        }
        put(world, name.to_owned(), Bytes::from_static(bytes));
    }
    let machine = Machine::new("founder", true);
    let Some(graph) = open(world, &machine, None).await else { return };
    match read(&graph, vocabulary, 3).await {
        Ok(model) => world.history().begin(Manifest::clone(graph.manifest()), model),
        Err(failure) => world.violated(format!("the files of the load cannot be read: {failure:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_model_has_the_loaded_graph() {
        let world = World::new(crate::Scenario::Graphs, 1, false);
        begin_loaded(&world, &loaded_vocabulary()).await;
        assert_eq!(world.outcome().0, None);
        let model = world.history().model(1).unwrap();
        assert_eq!((model.vertices.len(), model.edge_count()), (4 + 3, 30));
        let hub = VertexRef::new("P", 1);
        let of_hub = model.edges.iter().filter(|((_, source, target), _)| *source == hub || *target == hub);
        let of_hub: usize = of_hub.map(|(_, edges)| edges.len()).sum();
        assert_eq!(of_hub, 2 + 12 + 12 + 1, "two parallel edges, twelve each way, and where it lives");
    }
}
