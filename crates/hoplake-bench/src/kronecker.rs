//! The Kronecker graph of the GAP suite as a graph in a folder: without directions, loops or parallel edges.

use std::{
    fs::File,
    io::{BufWriter, Write},
    path::Path,
    sync::Arc,
};

use anyhow::Result;
use hoplake::{Batch, EdgeKey, Graph, LoadOptions, OpenSettings, Operation, Properties, Store, VertexRef};
use hoplake_engine::Snapshot;
use hoplake_storage::{ReadPool, ReadSettings, Reader};
use hoplake_testkit::generate::kronecker;

/// Its edges, 16 a vertex at most, each once; the lower end first, ascending.
pub fn edges(scale: u32, seed: u64) -> Vec<(u32, u32)> {
    let edges = kronecker(scale, 16, seed).filter(|(from, to)| from != to);
    let mut edges: Vec<_> = edges.map(|(from, to)| (from.min(to) as u32, from.max(to) as u32)).collect();
    edges.sort_unstable();
    edges.dedup();
    edges
}

/// Loads edges into a folder. Those of `deltas` are committed afterwards, in as many commits, and not compacted.
pub async fn load(folder: &Path, vertices: u32, edges: &[(u32, u32)], deltas: &[Vec<(u32, u32)>]) -> Result<()> {
    let input = tempfile::tempdir()?;
    // As LDBC Graphalytics has graphs: all vertices in one file, edges in another.
    let mut file = BufWriter::new(File::create(input.path().join("graph.v"))?);
    (0..vertices).try_for_each(|vertex| writeln!(file, "{vertex}"))?;
    file.flush()?;
    let mut file = BufWriter::new(File::create(input.path().join("graph.e"))?);
    edges.iter().try_for_each(|(from, to)| writeln!(file, "{from} {to}"))?;
    file.flush()?;
    let url = folder.to_string_lossy();
    hoplake::load(&url, LoadOptions::from_paths([input.path()])).await?;
    let mut graph = Graph::open(&url).await?;
    for delta in deltas {
        let (label, edge_label) =
            (graph.schema().vertex_labels[0].name.clone(), graph.schema().edge_types[0].label.clone());
        let vertex = |key: u32| VertexRef::new(label.as_str(), i64::from(key));
        let upsert = |(from, to): &(u32, u32)| Operation::UpsertEdge {
            label: edge_label.as_str().into(),
            source: vertex(*from),
            target: vertex(*to),
            key: None::<EdgeKey>,
            properties: Properties::new(),
            replace: false,
        };
        let operations = delta.iter().map(upsert).collect();
        graph.apply(Batch { operations, ..Batch::default() }).await?;
        graph.refresh().await?;
    }
    Ok(())
}

/// The newest version of a graph in a folder.
pub async fn open(folder: &Path, read: ReadSettings) -> Result<Arc<Snapshot>> {
    let reader = Reader::new(Store::open(&folder.to_string_lossy())?, ReadPool::new(read)?);
    Ok(Arc::new(Snapshot::open(reader, &OpenSettings::default()).await?))
}
