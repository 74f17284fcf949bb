//! Roots of segments, behind their checksum: any message is a root whose blocks, index blocks and filters lie where the manifest
//! has room for them, or an error.

#![no_main]

use hoplake_format::{
    Key,
    constants::SEGMENT_MAGIC,
    segment::{Firsts, SectionRoot, SegmentEnd, decode_root},
};
use hoplake_fuzz::{begin, bounded, golden, seeds};
use libfuzzer_sys::fuzz_target;

/// Where filters, index blocks and the root begin, which the manifest says: four bytes each before the message.
const POSITIONS: usize = 12;

fuzz_target!(
    init: {
        begin();
        seeds(golden::segment_ends().iter().map(|(end, tail)| made(end, tail)));
    },
    |bytes: &[u8]| {
        let Some((positions, message)) = bytes.split_first_chunk::<POSITIONS>() else { return };
        let word = |at: usize| u64::from(u32::from_le_bytes([0, 1, 2, 3].map(|byte| positions[at + byte])));
        let root_position = word(8);
        let index_position = word(4).min(root_position);
        let length = root_position + message.len() as u64 + 16;
        let end = SegmentEnd { length, filters_position: word(0).min(index_position), index_position, root_position };
        bounded((256 << 10) + 128 * bytes.len(), || {
            if let Ok(root) = decode_root(&sealed(message), &end) {
                root.sections.iter().for_each(|section| look(section, &end));
            }
        });
    }
);

fn made(end: &SegmentEnd, tail: &[u8]) -> Vec<u8> {
    let positions = [end.filters_position, end.index_position, end.root_position];
    let positions = positions.map(|position| (position as u32).to_le_bytes());
    let root = &tail[(end.root_position - end.index_position) as usize..];
    [&positions.concat(), &root[..root.len() - 16]].concat()
}

fn sealed(message: &[u8]) -> Vec<u8> {
    let length = (message.len() as u32).to_le_bytes();
    [message, &length, &crc32c::crc32c(message).to_le_bytes(), &SEGMENT_MAGIC].concat()
}

fn look(section: &SectionRoot, end: &SegmentEnd) {
    for entry in &section.index {
        assert!(entry.blocks.start < entry.blocks.end && entry.blocks.end <= end.filters_position);
        assert!(entry.range.start < entry.range.end && entry.range.end <= end.root_position);
        assert!(entry.filter.as_ref().is_none_or(|filter| filter.end <= end.index_position));
    }
    for source in [0, 1, 1000, u64::MAX >> 16] {
        assert!(section.index_of_source(source).end <= section.index.len());
    }
    let firsts: Vec<Key> = match &section.firsts {
        Firsts::Numbers(firsts) if section.kind.has_keys() => {
            firsts.iter().map(|first| Key::Int64((first ^ 1 << 63) as i64)).collect()
        }
        Firsts::Numbers(firsts) => {
            assert!(firsts.is_sorted());
            return;
        }
        Firsts::Texts(firsts) => firsts.iter().map(|first| Key::String(first.clone())).collect(),
    };
    for (number, first) in firsts.iter().enumerate() {
        assert_eq!(section.index_of_key(first), Some(number));
    }
}
