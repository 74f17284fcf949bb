//! Indexes of segments, behind their checksum: any message is an index whose blocks and filters lie where the manifest has
//! room for them, or an error.

#![no_main]

use hoplake_format::{
    Key,
    constants::SEGMENT_MAGIC,
    segment::{BlockFirsts, SectionIndex, SegmentEnd, decode_segment_index},
};
use hoplake_fuzz::{begin, bounded, golden, seeds};
use libfuzzer_sys::fuzz_target;

/// Where filters and the index begin, which the manifest says: four bytes each before the message.
const POSITIONS: usize = 8;

fuzz_target!(
    init: {
        begin();
        seeds(golden::segment_ends().iter().map(|(end, tail)| made(end, tail)));
    },
    |bytes: &[u8]| {
        let Some((positions, message)) = bytes.split_first_chunk::<POSITIONS>() else { return };
        let word = |at: usize| u64::from(u32::from_le_bytes([0, 1, 2, 3].map(|byte| positions[at + byte])));
        let index_position = word(4);
        let length = index_position + message.len() as u64 + 16;
        let end = SegmentEnd { length, filters_position: word(0).min(index_position), index_position };
        bounded((256 << 10) + 64 * bytes.len(), || {
            if let Ok(sections) = decode_segment_index(&sealed(message), &end) {
                sections.iter().for_each(|section| look(section, &end));
            }
        });
    }
);

fn made(end: &SegmentEnd, tail: &[u8]) -> Vec<u8> {
    let positions = [end.filters_position, end.index_position].map(|position| (position as u32).to_le_bytes());
    [&positions.concat(), &tail[..tail.len() - 16]].concat()
}

fn sealed(message: &[u8]) -> Vec<u8> {
    let length = (message.len() as u32).to_le_bytes();
    [message, &length, &crc32c::crc32c(message).to_le_bytes(), &SEGMENT_MAGIC].concat()
}

fn look(section: &SectionIndex, end: &SegmentEnd) {
    let blocks = section.block_count();
    for block in 0..blocks {
        let range = section.block_range(block);
        assert!(range.start < range.end && range.end <= end.filters_position);
        assert!(section.filter_of_block(block).is_none_or(|filter| filter < section.filters.len()));
    }
    assert!(section.filters.iter().all(|filter| filter.range().end <= end.index_position));
    for source in [0, 1, 1000, u64::MAX >> 16] {
        assert!(section.blocks_of_source(source).end <= blocks);
    }
    let firsts: Vec<Key> = match &section.firsts {
        BlockFirsts::Sources(firsts) => {
            assert!(firsts.is_sorted());
            return;
        }
        BlockFirsts::Int64Keys(firsts) => firsts.iter().map(|first| Key::Int64(*first)).collect(),
        BlockFirsts::StringKeys(firsts) => firsts.iter().map(|first| Key::String(first.clone())).collect(),
    };
    for (block, first) in firsts.iter().enumerate() {
        assert_eq!(section.block_of_key(first), Some(block));
    }
}
