//! Blocks of neighbour lists, behind their checksum: any bytes are lists or an error, and what could be read is written and
//! read as the same lists.

#![no_main]

use hoplake_format::adjacency::{Block, BlockEncoder, EncodedBlock, Lists};
use hoplake_fuzz::{begin, bounded};
use libfuzzer_sys::fuzz_target;

/// A block has up to 65,535 edges however short it is: of width 0 all gaps are.
const BYTES_MAX: usize = 8 << 20;
const SOURCES_TRIED: usize = 16;

fuzz_target!(
    init: begin(),
    |bytes: &[u8]| bounded(BYTES_MAX, || read(bytes))
);

fn read(bytes: &[u8]) {
    let Ok(block) = Block::parse(bytes) else { return };
    let mut lists = Lists::default();
    let decoded = block.decode_all(&mut lists);
    assert!(lists.targets.len() <= usize::from(u16::MAX) && lists.len() <= block.lists_len());
    let first = block.first_source();
    let last = block.last_source();
    let between = (1..6).map(|part| first + (last - first) / 6 * part);
    let some = lists.sources.iter().copied().step_by(lists.len() / SOURCES_TRIED + 1);
    let mut sources: Vec<u64> = [first, last].into_iter().chain(between).chain(some).collect();
    sources.sort_unstable();
    sources.dedup();
    let mut targets = Vec::new();
    for source in &sources {
        let before = targets.len();
        let found = block.list(*source, &mut targets);
        let degree = block.degree(*source);
        if let Ok(found) = found {
            assert_eq!(degree.ok(), Some(targets.len() - before));
            assert_eq!(found.is_some(), targets.len() > before);
        }
    }
    let _ = block.lists(&sources, &mut Lists::default());
    if decoded.is_ok() {
        assert!(lists.targets.len() == block.edges_len());
        write_and_read(&lists);
    }
}

fn edges(lists: &Lists) -> impl Iterator<Item = (u64, u64)> {
    lists.iter().flat_map(|(source, _, targets)| targets.iter().map(move |target| (source, *target)))
}

fn write_and_read(lists: &Lists) {
    let mut blocks: Vec<EncodedBlock> = Vec::new();
    let mut encoder = BlockEncoder::new(64 << 10).expect("the size is allowed");
    for (source, _, targets) in lists.iter() {
        encoder.push(source, targets, &mut blocks).expect("sources ascend, and targets are sorted");
    }
    blocks.extend(encoder.finish());
    let mut again = Vec::new();
    for block in &blocks {
        let mut lists = Lists::default();
        Block::parse(&block.bytes).and_then(|block| block.decode_all(&mut lists)).expect("a written block is read");
        again.extend(edges(&lists));
    }
    assert!(edges(lists).eq(again));
}
