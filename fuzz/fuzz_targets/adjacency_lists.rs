//! Neighbour lists of any shape are read as they were written: whole, one by one and several at a time.

#![no_main]

use arbitrary::Arbitrary;
use hoplake_format::adjacency::{Block, BlockEncoder, Lists};
use hoplake_fuzz::{begin, bounded};
use libfuzzer_sys::fuzz_target;

const BYTES_MAX: usize = 64 << 20;
/// Short lists are drawn one by one, long ones as a run of equal gaps.
const RUN_MAX: u16 = 5_000;

#[derive(Debug, Arbitrary)]
enum List {
    Gaps(Vec<u32>),
    Wide(Vec<u64>),
    Run { first: u64, gap: u16, length: u16 },
}

#[derive(Debug, Arbitrary)]
struct Section {
    block_bytes: u16,
    first_source: u64,
    lists: Vec<(u16, List)>,
}

impl List {
    fn targets(&self) -> Vec<u64> {
        let mut targets: Vec<u64> = match self {
            Self::Gaps(gaps) => {
                let next = |at: &mut u64, gap: &u32| {
                    *at += u64::from(*gap);
                    Some(*at)
                };
                gaps.iter().scan(0, next).collect()
            }
            Self::Wide(targets) => targets.iter().map(|target| target >> 16).collect(),
            Self::Run { first, gap, length } => {
                (0..u64::from(length % RUN_MAX)).map(|at| (first >> 17) + at * u64::from(*gap)).collect()
            }
        };
        targets.sort_unstable();
        targets
    }
}

fuzz_target!(init: begin(), |section: Section| bounded(BYTES_MAX, || check(&section)));

fn check(section: &Section) {
    let block_bytes = 512 + usize::from(section.block_bytes) % (63 << 10);
    let mut encoder = BlockEncoder::new(block_bytes).expect("the size is allowed");
    let mut source = section.first_source >> 17;
    let mut blocks = Vec::new();
    let mut expected = Vec::new();
    for (gap, list) in &section.lists {
        source += u64::from(*gap) + 1;
        let targets = list.targets();
        encoder.push(source, &targets, &mut blocks).expect("sources ascend, and targets are sorted");
        expected.extend(targets.iter().map(|target| (source, *target)));
    }
    blocks.extend(encoder.finish());
    let mut found = Vec::new();
    for written in &blocks {
        assert!(written.bytes.len() <= block_bytes);
        let block = Block::parse(&written.bytes).expect("a written block is read");
        assert_eq!((block.first_source(), block.first_edge()), (written.entry.first_source, written.entry.first_edge));
        assert_eq!((block.edges_len(), block.first_edge()), (written.entry.edges as usize, found.len() as u64));
        let mut all = Lists::default();
        let mut several = Lists::default();
        let mut one = Vec::new();
        block.decode_all(&mut all).expect("a written block is read");
        block.lists(&all.sources, &mut several).expect("a written block is read");
        assert_eq!(all, several);
        for (source, first_edge, targets) in all.iter() {
            one.clear();
            assert_eq!(block.list(source, &mut one), Ok(Some(first_edge)));
            assert_eq!((&one[..], block.degree(source)), (targets, Ok(targets.len())));
            assert_eq!(first_edge, found.len() as u64);
            found.extend(targets.iter().map(|target| (source, *target)));
        }
    }
    assert_eq!(found, expected);
}
