//! The graph: generated as the GAP suite does, loaded through Hoplake.

use std::{
    fs::File,
    io::{BufWriter, Write},
    path::Path,
    sync::Arc,
    time::Instant,
};

use anyhow::{Context, Result, ensure};
use hoplake::{LoadOptions, OpenSettings, Store};
use hoplake_analytics::{Adjacency, Selection, Topology, Workers};
use hoplake_engine::Snapshot;
use hoplake_storage::{QueryContext, ReadPool, ReadSettings, Reader};
use hoplake_testkit::generate::{SplitMix64, kronecker};

/// A graph without directions, loops or parallel edges.
pub struct Input {
    /// Each edge once, its lower end first, ascending.
    pub edges: Vec<(u32, u32)>,
    pub topology: Topology,
    /// Vertices with edges to begin at.
    pub sources: Vec<u32>,
    pub load_seconds: f64,
    pub topology_seconds: f64,
    seed: u64,
}

impl Input {
    /// Generates a graph, and loads it.
    pub fn load(scale: u32, seed: u64, sources: usize) -> Result<Self> {
        let edges = edges(scale, seed);
        eprintln!("{} edges", edges.len());
        let folder = tempfile::tempdir()?;
        write(folder.path(), 1 << scale, &edges).context("could not write the edges")?;
        let (topology, [load_seconds, topology_seconds]) =
            tokio::runtime::Runtime::new()?.block_on(load(folder.path()))?;
        ensure!(topology.out.edges() == 2 * edges.len() as u64, "not all edges were loaded");
        let mut random = SplitMix64::new(seed);
        let draws = std::iter::repeat_with(move || random.below(1 << scale) as u32);
        let sources = draws.filter(|vertex| topology.out.degree(*vertex) > 0).take(sources).collect();
        Ok(Self { edges, sources, topology, load_seconds, topology_seconds, seed })
    }

    /// A weight of 1 to 255 for each edge in the order of the lists, the same in both directions.
    pub fn weights(&self) -> Vec<f32> {
        let out = &self.topology.out;
        let of_list = |vertex| out.neighbours(vertex).iter().map(move |target| self.weight(vertex, *target));
        (0..out.len() as u32).flat_map(of_list).collect()
    }

    /// The weight of an edge.
    pub fn weight(&self, from: u32, to: u32) -> f32 {
        let edge = u64::from(from.min(to)) << 32 | u64::from(from.max(to));
        (SplitMix64::new(self.seed ^ edge).below(255) + 1) as f32
    }
}

fn edges(scale: u32, seed: u64) -> Vec<(u32, u32)> {
    let edges = kronecker(scale, 16, seed).filter(|(from, to)| from != to);
    let mut edges: Vec<_> = edges.map(|(from, to)| (from.min(to) as u32, from.max(to) as u32)).collect();
    edges.sort_unstable();
    edges.dedup();
    edges
}

/// As LDBC Graphalytics has graphs: all vertices in one file, edges in another.
fn write(folder: &Path, vertices: u32, edges: &[(u32, u32)]) -> std::io::Result<()> {
    let mut file = BufWriter::new(File::create(folder.join("graph.v"))?);
    (0..vertices).try_for_each(|vertex| writeln!(file, "{vertex}"))?;
    file.flush()?;
    let mut file = BufWriter::new(File::create(folder.join("graph.e"))?);
    edges.iter().try_for_each(|(from, to)| writeln!(file, "{from} {to}"))?;
    file.flush()
}

/// Loads a folder into a graph in memory, and that into a topology; with the seconds of both.
async fn load(folder: &Path) -> Result<(Topology, [f64; 2])> {
    let url = "memory://compare/kernels";
    let begun = Instant::now();
    hoplake::load(url, LoadOptions::from_paths([folder])).await?;
    let load_seconds = begun.elapsed().as_secs_f64();
    let begun = Instant::now();
    let reader = Reader::new(Store::open(url)?, ReadPool::new(ReadSettings::default())?);
    let snapshot = Arc::new(Snapshot::open(reader, &OpenSettings::default()).await?);
    let selection = Selection { hop: "both".parse()?, ..Selection::default() };
    let topology =
        Topology::load(&snapshot, &selection, &Workers::default(), &mut QueryContext::new().branch()).await?;
    Ok((topology, [load_seconds, begun.elapsed().as_secs_f64()]))
}
