//! Index blocks, behind their checksum: any payload says where blocks lie that follow each other and fill what the root says, or
//! is an error; what it says is searched without another look at the bytes.

#![no_main]

use bytes::Bytes;
use hoplake_format::{First, Key, segment::IndexBlock};
use hoplake_fuzz::{begin, bounded, golden, seeds};
use libfuzzer_sys::fuzz_target;

/// Where the blocks begin and end, which the root says: four bytes each before the payload.
const POSITIONS: usize = 8;

fuzz_target!(
    init: {
        begin();
        seeds(golden::index_blocks().iter().map(|(blocks, payload)| {
            let positions = [blocks.start, blocks.end].map(|position| (position as u32).to_le_bytes());
            [&positions.concat(), &payload[..]].concat()
        }));
    },
    |bytes: &[u8]| {
        let Some((positions, payload)) = bytes.split_first_chunk::<POSITIONS>() else { return };
        let word = |at: usize| u64::from(u32::from_le_bytes([0, 1, 2, 3].map(|byte| positions[at + byte])));
        let within = word(0)..word(4);
        let payload = Bytes::copy_from_slice(payload);
        bounded(256 << 10, || {
            if let Ok(block) = IndexBlock::parse(payload, &within) {
                look(&block, within.start, within.end);
            }
        });
    }
);

fn look(index: &IndexBlock, start: u64, end: u64) {
    let mut at = start;
    for block in 0..index.len() {
        let range = index.range(block);
        assert_eq!(range.start, at);
        assert!(range.start < range.end);
        at = range.end;
        let through = match index.first() {
            First::Number(_) => index.through(&Key::Int64((index.number(block) ^ 1 << 63) as i64)),
            First::Text(_) => index.through(&Key::String(index.text(block).to_owned())),
        };
        // Several blocks may begin with one source, and only one with a key.
        assert!(through > block);
        assert!(
            index.blocks_of_source(index.number(block)).contains(&block) || matches!(index.first(), First::Text(_))
        );
    }
    assert_eq!(at, end);
    for source in [0, 1, 1000, u64::MAX] {
        assert!(index.blocks_of_source(source).end <= index.len());
        assert!(index.blocks_beginning_with(source).end <= index.len());
    }
}
