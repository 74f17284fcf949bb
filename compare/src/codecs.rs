//! Size and speed of the adjacency codec and of its baselines.

use std::hint::black_box;
use std::path::PathBuf;

use anyhow::Result;
use hoplake_format::adjacency::{BLOCK_BYTES_DEFAULT, Block, BlockEncoder, EncodedBlock, Lists, blocks_of};
use hoplake_testkit::generate::SplitMix64;

use crate::candidates::{self, Measured};
use crate::graphs::{Graph, Section, kronecker_graph, log_normal_graph, snb_graph};
use crate::orders::in_locality;
use crate::timing::best_of;

/// What to measure.
#[derive(clap::Args)]
pub struct Arguments {
    /// The scale of the Kronecker graph: 2^scale vertices, 16 times as many edges.
    #[arg(long, default_value_t = 20)]
    scale: u32,
    /// The vertices of the log-normal graph; it has 127 times as many edges. 0 leaves it out.
    #[arg(long, default_value_t = 1_000_000)]
    log_normal_vertices: u64,
    /// A directory with the output of the LDBC SNB data generator.
    #[arg(long)]
    snb: Option<PathBuf>,
    /// The seed of the generated graphs.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Measure only Hoplake's codec, not the baselines.
    #[arg(long)]
    no_baselines: bool,
}

/// Prints the tables.
pub fn run(arguments: &Arguments) -> Result<()> {
    let kronecker = in_locality(&kronecker_graph(arguments.scale, arguments.seed));
    let [out, inward] = kronecker.sections(&kronecker.types[0]);
    drop(kronecker);
    println!("## Block size ({})\n", out.name);
    header(&["block KiB", "bytes per edge", "decode ns/edge", "list ns", "batch ns/list"]);
    for kib in [4, 8, 16, 32, 64] {
        let own = Own::measure(&out, kib << 10)?;
        row(&[
            kib.to_string(),
            own.size(),
            own.decode(),
            format!("{:.0}", own.list_ns),
            format!("{:.0}", own.batch_ns),
        ]);
    }
    println!("\n## Chunk length, slots and widths only ({})\n", out.name);
    header(&["slots a chunk", "bits per slot"]);
    for len in [8, 16, 32, 64, 128] {
        row(&[len.to_string(), format!("{:.2}", candidates::packed_bits(&out, len))]);
    }
    println!("\n## Sections at 16 KiB\n");
    header(&[
        "section",
        "edges",
        "bytes per edge",
        "decode ns/edge",
        "list ns",
        "of edges",
        "list ns, anywhere",
        "batch ns/list",
        "encode ns/edge",
    ]);
    own_row(&out)?;
    own_row(&inward)?;
    drop(inward);
    let mut snb = Vec::new();
    if let Some(directory) = &arguments.snb {
        let graph = in_locality(&snb_graph(directory)?);
        snb = graph.types.iter().flat_map(|kind| graph.sections(kind)).collect();
        snb.iter().try_for_each(own_row)?;
    }
    if arguments.log_normal_vertices > 0 {
        own_row(&log_normal_section(&log_normal_graph(arguments.log_normal_vertices, arguments.seed)))?;
    }
    if !arguments.no_baselines {
        baselines(&out);
        snb.iter().take(3).for_each(baselines);
    }
    Ok(())
}

fn log_normal_section(graph: &Graph) -> Section {
    let kind = &graph.types[0];
    Section::new(format!("{}, out", kind.name), graph.labels[0], kind.edges.iter().copied())
}

fn baselines(section: &Section) {
    println!("\n## Rivals on the same numbers ({})\n", section.name);
    header(&["codec of slots", "bits per slot", "decode ns/slot", "list of 50 ns"]);
    for Measured { name, bits, decode_ns, list_ns } in candidates::measure(section) {
        row(&[name, format!("{bits:.2}"), format!("{decode_ns:.2}"), format!("{list_ns:.0}")]);
    }
    if let Ok(own) = Own::measure(section, BLOCK_BYTES_DEFAULT) {
        let bits = 8.0 * own.bytes as f64 / own.edges as f64;
        let name = "Hoplake's blocks, everything included".into();
        row(&[name, format!("{bits:.2}"), own.decode(), format!("{:.0}", own.list_ns)]);
    }
}

fn own_row(section: &Section) -> Result<()> {
    let own = Own::measure(section, BLOCK_BYTES_DEFAULT)?;
    row(&[
        section.name.clone(),
        own.edges.to_string(),
        own.size(),
        own.decode(),
        format!("{:.0}", own.list_ns),
        format!("{:.0}", own.list_edges),
        format!("{:.0}", own.far_list_ns),
        format!("{:.0}", own.batch_ns),
        format!("{:.1}", own.encode_ns),
    ]);
    Ok(())
}

/// Prints the head of a markdown table.
pub fn header(columns: &[&str]) {
    println!("| {} |\n|{}", columns.join(" | "), " --- |".repeat(columns.len()));
}

/// Prints a row of a markdown table.
pub fn row(cells: &[String]) {
    println!("| {} |", cells.join(" | "));
}

/// What Hoplake's codec does on a section.
struct Own {
    edges: usize,
    bytes: usize,
    encode_ns: f64,
    decode_ns: f64,
    /// A look-up of a random list of 40 to 60 edges, or of any if there are none.
    list_ns: f64,
    list_edges: f64,
    /// The same anywhere in the section, once.
    far_list_ns: f64,
    /// The first in batches of up to 32 a block.
    batch_ns: f64,
}

impl Own {
    fn measure(section: &Section, block_bytes: usize) -> Result<Self> {
        let start = std::time::Instant::now();
        let blocks = encode(section, block_bytes)?;
        let encode = start.elapsed().as_secs_f64();
        let edges = section.targets.len();
        let mut lists = Lists::default();
        let decode = best_of(5, || decode_all(&blocks, &mut lists));
        let picks = pick_lists(section, &blocks, true);
        let far_picks = pick_lists(section, &blocks, false);
        let mut targets = Vec::new();
        // Once, after the whole section has passed through the cache.
        let far = best_of(1, || look_up(&blocks, &far_picks, &mut targets));
        let alone = best_of(5, || look_up(&blocks, &picks, &mut targets));
        let batch = best_of(5, || look_up_batches(&blocks, &picks, &mut lists));
        let of_picks = |seconds: f64| seconds * 1e9 / picks.len() as f64;
        let list_edges = picks.iter().map(|&(_, source)| section.list(source as usize).len()).sum::<usize>();
        Ok(Self {
            edges,
            bytes: size(&blocks),
            encode_ns: encode * 1e9 / edges as f64,
            decode_ns: decode * 1e9 / edges as f64,
            list_ns: of_picks(alone),
            far_list_ns: of_picks(far),
            list_edges: list_edges as f64 / picks.len() as f64,
            batch_ns: of_picks(batch),
        })
    }

    fn size(&self) -> String {
        format!("{:.3}", self.bytes as f64 / self.edges as f64)
    }

    fn decode(&self) -> String {
        format!("{:.2}", self.decode_ns)
    }
}

/// The blocks of a section.
pub fn encode(section: &Section, block_bytes: usize) -> Result<Vec<EncodedBlock>> {
    let mut encoder = BlockEncoder::new(block_bytes)?;
    let mut blocks = Vec::new();
    for source in 0..section.sources() {
        encoder.push(source as u64, section.list(source), &mut blocks)?;
    }
    blocks.extend(encoder.finish());
    Ok(blocks)
}

/// Everything a section costs: its blocks, 4 bytes of checksum each and 8 of resident index.
pub fn size(blocks: &[EncodedBlock]) -> usize {
    blocks.iter().map(|block| block.bytes.len() + 4 + 8).sum()
}

fn decode_all(blocks: &[EncodedBlock], lists: &mut Lists) -> usize {
    let mut edges = 0;
    for block in blocks {
        let block = Block::parse(&block.bytes).expect("the block was just encoded");
        block.decode_all(lists).expect("the block was just encoded");
        edges += black_box(&lists.targets).len();
    }
    edges
}

/// 4,096 random sources, each with its block. If `cached`, they are from 32 consecutive blocks, which
/// stay in the cache, and ordered by block as a frontier is: what is measured is the codec. If not,
/// they are from the whole section in no order, and most of a large one comes from main memory.
fn pick_lists(section: &Section, blocks: &[EncodedBlock], cached: bool) -> Vec<(usize, u64)> {
    let first_sources: Vec<u64> = blocks.iter().map(|block| block.entry.first_source).collect();
    let mut random = SplitMix64::new(7);
    let of_degree = |degrees: std::ops::Range<usize>| -> Vec<(usize, u64)> {
        let sources = 0..section.sources() as u64;
        let sources = sources.filter(|&source| degrees.contains(&section.list(source as usize).len()));
        sources.map(|source| (blocks_of(&first_sources, source).start, source)).collect()
    };
    let mut eligible = of_degree(40..61);
    if eligible.is_empty() {
        eligible = of_degree(1..usize::MAX);
    }
    if cached {
        let first = eligible[eligible.len() / 2].0.saturating_sub(16);
        eligible.retain(|&(block, _)| (first..first + 32).contains(&block));
    }
    let mut picks: Vec<(usize, u64)> =
        (0..4_096).map(|_| eligible[random.below(eligible.len() as u64) as usize]).collect();
    if cached {
        picks.sort_by_key(|&(block, _)| block);
    }
    picks
}

fn look_up(blocks: &[EncodedBlock], picks: &[(usize, u64)], targets: &mut Vec<u64>) -> usize {
    let mut edges = 0;
    for &(block, source) in picks {
        targets.clear();
        let block = Block::parse(&blocks[block].bytes).expect("the block was just encoded");
        block.list(source, targets).expect("the block was just encoded");
        edges += black_box(&*targets).len();
    }
    edges
}

fn look_up_batches(blocks: &[EncodedBlock], picks: &[(usize, u64)], lists: &mut Lists) -> usize {
    let mut edges = 0;
    for batch in picks.chunk_by(|one, other| one.0 == other.0) {
        let block = Block::parse(&blocks[batch[0].0].bytes).expect("the block was just encoded");
        for batch in batch.chunks(32) {
            let mut sources: Vec<u64> = batch.iter().map(|&(_, source)| source).collect();
            sources.sort_unstable();
            lists.clear();
            block.lists(&sources, lists).expect("the block was just encoded");
            edges += black_box(&lists.targets).len();
        }
    }
    edges
}
