//! Size and blocks touched by the order of the vertices.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Result;
use hoplake_format::adjacency::{BLOCK_BYTES_DEFAULT, Block, EncodedBlock, blocks_of};
use hoplake_ingest::order::{by_degree, degrees, locality};
use hoplake_testkit::generate::SplitMix64;

use crate::baseline_orders::{Undirected, breadth_first, by_cluster, reverse_cuthill_mckee};
use crate::codecs::{encode, header, row, size};
use crate::graphs::{Graph, kronecker_graph, snb_graph};

/// What to measure.
#[derive(clap::Args)]
pub struct Arguments {
    /// The scale of the Kronecker graph: 2^scale vertices, 16 times as many edges. 0 leaves it out.
    #[arg(long, default_value_t = 20)]
    scale: u32,
    /// A directory with the output of the LDBC SNB data generator.
    #[arg(long)]
    snb: Option<PathBuf>,
    /// The seed of the generated graph.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

type Order = fn(&Graph, &Undirected) -> Vec<u32>;

const ORDERS: [(&str, Order); 7] = [
    ("as numbered", |_, rows| (0..rows.vertices()).collect()),
    ("degree", |graph, _| by_degree(&degrees(graph.bases().1 as u32, graph.edges()))),
    ("breadth first", |_, rows| breadth_first(rows)),
    ("reverse Cuthill-McKee", |_, rows| reverse_cuthill_mckee(rows)),
    ("clusters, 3 rounds", |_, rows| by_cluster(rows, 3)),
    ("clusters, 8 rounds", |_, rows| by_cluster(rows, 8)),
    ("hubs by degree, leaves by hub", |graph, _| locality(graph.bases().1 as u32, || graph.edges())),
];

/// Prints the tables.
pub fn run(arguments: &Arguments) -> Result<()> {
    if arguments.scale > 0 {
        println!("## Kronecker, scale {}, out\n", arguments.scale);
        kronecker(&kronecker_graph(arguments.scale, arguments.seed))?;
    }
    if let Some(directory) = &arguments.snb {
        let graph = snb_graph(directory)?;
        for block_bytes in [BLOCK_BYTES_DEFAULT, 1 << 10] {
            println!("\n## SNB, blocks of {block_bytes} bytes\n");
            social_network(&graph, block_bytes)?;
        }
    }
    Ok(())
}

fn undirected(graph: &Graph) -> Undirected {
    Undirected::new(graph.bases().1 as u32, || graph.edges())
}

/// The graph in the order that a load for locality gives it.
pub fn in_locality(graph: &Graph) -> Graph {
    graph.reordered(&locality(graph.bases().1 as u32, || graph.edges()))
}

fn kronecker(graph: &Graph) -> Result<()> {
    let rows = undirected(graph);
    header(&["order", "seconds", "bytes per edge"]);
    for (name, order) in ORDERS {
        let start = Instant::now();
        let positions = order(graph, &rows);
        let seconds = start.elapsed().as_secs_f64();
        let ordered = graph.reordered(&positions);
        let [out, _] = ordered.sections(&ordered.types[0]);
        let bytes = size(&encode(&out, BLOCK_BYTES_DEFAULT)?);
        row(&[name.into(), format!("{seconds:.1}"), format!("{:.3}", bytes as f64 / out.targets.len() as f64)]);
    }
    Ok(())
}

fn social_network(graph: &Graph, block_bytes: usize) -> Result<()> {
    let rows = undirected(graph);
    header(&[
        "order",
        "bytes per edge: all",
        "knows",
        "hasMember",
        "likes",
        "blocks of two hops of knows",
        "of a person's posts",
        "of the likes of a person's posts",
    ]);
    for (name, order) in ORDERS {
        let ordered = graph.reordered(&order(graph, &rows));
        let network = Network::new(&ordered, block_bytes)?;
        let mut cells = vec![name.to_string()];
        cells.extend([0..10, 0..1, 1..2, 2..4].map(|types| format!("{:.2}", network.bytes_per_edge(types))));
        let touched = network.touched(ordered.labels[0] as u64);
        cells.extend(touched.map(|blocks| format!("{blocks:.1}")));
        row(&cells);
    }
    Ok(())
}

/// The blocks of every section of a social network.
struct Network {
    sections: Vec<[Blocks; 2]>,
}

struct Blocks {
    edges: usize,
    blocks: Vec<EncodedBlock>,
    first_sources: Vec<u64>,
}

impl Blocks {
    /// The targets of `sources`, sorted, each once; adds the blocks that were read to `touched`.
    fn hop(&self, sources: &[u64], touched: &mut BTreeSet<usize>) -> Vec<u64> {
        let mut targets = Vec::new();
        for &source in sources {
            for block in blocks_of(&self.first_sources, source) {
                touched.insert(block);
                let block = Block::parse(&self.blocks[block].bytes).expect("the block was just encoded");
                block.list(source, &mut targets).expect("the block was just encoded");
            }
        }
        targets.sort_unstable();
        targets.dedup();
        targets
    }
}

impl Network {
    fn new(graph: &Graph, block_bytes: usize) -> Result<Self> {
        let mut sections = Vec::new();
        for kind in &graph.types {
            let [out, inward] = graph.sections(kind).map(|section| -> Result<Blocks> {
                let blocks = encode(&section, block_bytes)?;
                let first_sources = blocks.iter().map(|block| block.entry.first_source).collect();
                Ok(Blocks { edges: section.targets.len(), blocks, first_sources })
            });
            sections.push([out?, inward?]);
        }
        Ok(Self { sections })
    }

    fn bytes_per_edge(&self, types: std::ops::Range<usize>) -> f64 {
        let sections = || self.sections[types.clone()].iter().flatten();
        let bytes: usize = sections().map(|section| size(&section.blocks)).sum();
        bytes as f64 / sections().map(|section| section.edges).sum::<usize>() as f64
    }

    /// The mean number of distinct blocks read from 300 random persons: by two hops of `knows`
    /// both ways, by the hop to the person's posts, and by that to the likes of those posts.
    fn touched(&self, persons: u64) -> [f64; 3] {
        const PERSONS: usize = 300;
        let [knows_out, knows_in] = &self.sections[0];
        let likes = &self.sections[2][1];
        let has_creator = &self.sections[4][1];
        let mut random = SplitMix64::new(11);
        let mut sums = [0; 3];
        for _ in 0..PERSONS {
            let person = random.below(persons);
            let mut out = BTreeSet::new();
            let mut inward = BTreeSet::new();
            let mut friends = knows_out.hop(&[person], &mut out);
            friends.extend(knows_in.hop(&[person], &mut inward));
            knows_out.hop(&friends, &mut out);
            knows_in.hop(&friends, &mut inward);
            let mut created = BTreeSet::new();
            let mut liked = BTreeSet::new();
            let posts = has_creator.hop(&[person], &mut created);
            likes.hop(&posts, &mut liked);
            let counts = [out.len() + inward.len(), created.len(), liked.len()];
            sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
        sums.map(|sum| sum as f64 / PERSONS as f64)
    }
}
