//! Encoded blocks decode to the same lists; damaged ones never panic.

use proptest::prelude::*;

use super::{BLOCK_BYTES_DEFAULT, Block, BlockEncoder, BlockEntry, EncodedBlock, ListReader, Lists, blocks_of};
use crate::{FormatError, VertexId};

type Section = Vec<(u64, Vec<u64>)>;

fn encode(section: &Section, block_bytes: usize) -> Vec<EncodedBlock> {
    let mut encoder = BlockEncoder::new(block_bytes).unwrap();
    let mut blocks = Vec::new();
    for (source, targets) in section {
        encoder.push(*source, targets, &mut blocks).unwrap();
    }
    blocks.extend(encoder.finish());
    blocks
}

/// Checks the blocks against each other, and returns the lists read sequentially.
fn decode(blocks: &[EncodedBlock], block_bytes: usize) -> Section {
    let mut section: Section = Vec::new();
    let mut lists = Lists::default();
    let mut edges = 0;
    let mut open = false;
    for EncodedBlock { bytes, entry } in blocks {
        assert!(bytes.len() <= block_bytes);
        let block = Block::parse(bytes).unwrap();
        let stated = BlockEntry {
            first_source: block.first_source(),
            first_edge: block.first_edge(),
            edges: block.edges_len() as u32,
        };
        assert_eq!((stated, entry.first_edge, block.is_continued()), (*entry, edges, open));
        block.decode_all(&mut lists).unwrap();
        assert_eq!((lists.len(), lists.targets.len()), (block.lists_len(), block.edges_len()));
        for (index, (source, first_edge, targets)) in lists.iter().enumerate() {
            assert_eq!(first_edge, edges);
            edges += targets.len() as u64;
            match section.last_mut() {
                Some((last, list)) if index == 0 && open => {
                    assert_eq!(*last, source);
                    list.extend(targets);
                }
                _ => section.push((source, targets.to_vec())),
            }
        }
        assert_eq!(block.last_source(), *lists.sources.last().unwrap());
        open = block.continues();
    }
    assert!(!open);
    section
}

/// Reads all lists by their positions, forwards or backwards, and looks for a target of each.
fn check_by_position(blocks: &[EncodedBlock], is_forwards: bool) {
    let mut lists = Lists::default();
    for EncodedBlock { bytes, entry } in blocks {
        let block = Block::parse(bytes).unwrap();
        block.decode_all(&mut lists).unwrap();
        let mut expected: Vec<_> = lists.iter().collect();
        if !is_forwards {
            expected.reverse();
        }
        let mut reader = ListReader::new(block);
        let mut slots = Vec::new();
        block.slots(&mut slots).unwrap();
        for (_, first_edge, targets) in expected {
            let first = (first_edge - entry.first_edge) as usize;
            let edges = first..first + targets.len();
            let mut read = vec![0];
            reader.read(edges.clone(), |target| target, &mut read).unwrap();
            assert_eq!(read[1..], *targets);
            let summed = slots[edges.clone()].iter().scan(block.base(), |target, slot| {
                *target += slot;
                Some(*target)
            });
            assert_eq!(summed.collect::<Vec<_>>(), *targets);
            for (wanted, is_there) in [(targets[targets.len() / 2], true), (VertexId::ORDINAL_MAX + 1, false)] {
                assert_eq!(reader.any(edges.clone(), |target| target == wanted).unwrap(), is_there);
            }
            reader.read(edges.start..edges.start, |target| target, &mut read).unwrap();
        }
        let behind = block.edges_len()..block.edges_len() + 1;
        assert!(reader.read(behind, |target| target, &mut Vec::new()).is_err());
    }
}

/// Reads one source by way of the index, as a reader does.
fn look_up(blocks: &[EncodedBlock], source: u64) -> Vec<u64> {
    let first_sources: Vec<u64> = blocks.iter().map(|block| block.entry.first_source).collect();
    let mut alone = Vec::new();
    let mut batch = Lists::default();
    for found in &blocks[blocks_of(&first_sources, source)] {
        let block = Block::parse(&found.bytes).unwrap();
        let before = alone.len();
        let first_edge = block.list(source, &mut alone).unwrap();
        assert_eq!(block.degree(source).unwrap(), alone.len() - before);
        let lists = batch.len();
        block.lists(&[source], &mut batch).unwrap();
        assert_eq!(first_edge, batch.first_edges.get(lists).copied());
    }
    assert_eq!(alone, batch.targets);
    alone
}

fn without_empty(section: &Section) -> Section {
    section.iter().filter(|(_, list)| !list.is_empty()).cloned().collect()
}

fn ordinals() -> impl Strategy<Value = u64> {
    prop_oneof![0..50u64, 0..100_000u64, VertexId::ORDINAL_MAX - 50..=VertexId::ORDINAL_MAX, 0..=VertexId::ORDINAL_MAX]
}

fn lists() -> impl Strategy<Value = Vec<u64>> {
    let any = prop::collection::vec(ordinals(), 0..40);
    let near = (0..1u64 << 40, prop::collection::vec(0..500u64, 0..300))
        .prop_map(|(base, list)| list.into_iter().map(|target| base + target).collect());
    let hub = (1..3_000u64, 1..1_000_000u64).prop_map(|(len, step)| (0..len).map(|i| i * step).collect());
    let parallel = (ordinals(), 0..200usize).prop_map(|(target, times)| vec![target; times]);
    prop_oneof![4 => any, 2 => near, 1 => hub, 1 => parallel].prop_map(|mut list: Vec<u64>| {
        list.sort_unstable();
        list
    })
}

fn sections() -> impl Strategy<Value = Section> {
    let sparse = prop::collection::btree_map(ordinals(), lists(), 0..60).prop_map(|map| map.into_iter().collect());
    let dense = (0..1u64 << 47, prop::collection::vec(lists(), 0..150))
        .prop_map(|(first, lists)| (first..).zip(lists).collect::<Section>());
    prop_oneof![sparse, dense]
}

/// Reads everything that can be read, and cares for nothing but that it ends.
fn read_all(bytes: &[u8]) {
    let Ok(block) = Block::parse(bytes) else { return };
    let mut lists = Lists::default();
    if block.decode_all(&mut lists).is_ok() {
        assert_eq!(lists.targets.len(), block.edges_len());
    } else {
        assert!(lists.is_empty());
    }
    assert!(lists.targets.capacity() <= 1 << 17);
    let mut targets = Vec::new();
    let first = block.first_source();
    let last = block.last_source();
    let sources: Vec<u64> = [first.saturating_sub(1), first, first + 1, first + 70, last, last + 1].into();
    for &source in &sources {
        let _ = block.degree(source);
        let before = targets.len();
        let _ = block.list(source, &mut targets);
        assert!(targets.len() - before <= block.edges_len());
    }
    let mut sorted = sources;
    sorted.sort_unstable();
    let _ = block.lists(&sorted, &mut lists);
    let mut reader = ListReader::new(block);
    let edges = block.edges_len();
    let mut slots = Vec::new();
    if block.slots(&mut slots).is_ok() {
        assert!(slots.len() >= edges && slots.capacity() <= 1 << 17);
    }
    for edges in [0..edges, edges / 2..edges, 0..1, edges.saturating_sub(1)..edges + 1] {
        let _ = reader.read(edges.clone(), |target| target, &mut targets);
        let _ = reader.any(edges, |_| false);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_encoded_comes_back(section in sections(), block_bytes in 512..20_000usize) {
        let blocks = encode(&section, block_bytes);
        prop_assert_eq!(decode(&blocks, block_bytes), without_empty(&section));
        check_by_position(&blocks, true);
        check_by_position(&blocks, false);
        for (source, list) in &section {
            prop_assert_eq!(&look_up(&blocks, *source), list);
            let after = source + 1;
            if section.binary_search_by_key(&after, |(source, _)| *source).is_err() {
                prop_assert!(look_up(&blocks, after).is_empty());
            }
        }
    }

    #[test]
    fn a_batch_reads_what_single_look_ups_read(section in sections(), picks in prop::collection::vec(any::<prop::sample::Index>(), 1..40)) {
        let section = without_empty(&section);
        prop_assume!(!section.is_empty());
        let mut sources: Vec<u64> = picks.iter().map(|pick| section[pick.index(section.len())].0).collect();
        sources.sort_unstable();
        sources.dedup();
        let mut single = Lists::default();
        let mut batch = Lists::default();
        for block in encode(&section, 2_000) {
            let block = Block::parse(&block.bytes).unwrap();
            block.lists(&sources, &mut batch).unwrap();
            for &source in &sources {
                if let Some(edge) = block.list(source, &mut single.targets).unwrap() {
                    single.sources.push(source);
                    single.first_edges.push(edge);
                    single.offsets.push(single.targets.len());
                }
            }
        }
        prop_assert_eq!(single, batch);
    }

    #[test]
    fn arbitrary_bytes_never_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..400), plausible in any::<bool>()) {
        if plausible && bytes.len() >= 32 {
            // Counts that fit the length, so that the damage is deeper.
            bytes[..10].copy_from_slice(&[1, 0, 3, 0, 20, 0, 200, 0, 0, 0]);
            bytes[28..32].copy_from_slice(&[40, 0, 0, 0]);
        }
        read_all(&bytes);
    }

    #[test]
    fn flipped_and_cut_blocks_never_panic(section in sections(), flip in 1..=255u8) {
        for block in encode(&section, 700).into_iter().take(3) {
            for at in 0..block.bytes.len() {
                let mut bytes = block.bytes.clone();
                bytes[at] ^= flip;
                read_all(&bytes);
                read_all(&block.bytes[..at]);
            }
        }
    }
}

#[test]
fn a_hub_spans_blocks_and_others_follow_it() {
    let hub: Vec<u64> = (0..100_000).map(|i| i * 37).collect();
    let section = vec![(3, vec![1, 1, 9]), (7, hub), (8, vec![]), (9, vec![0]), (200, vec![5, 6])];
    let blocks = encode(&section, 4 << 10);
    assert_eq!(decode(&blocks, 4 << 10), without_empty(&section));
    assert_eq!(blocks[0].entry, BlockEntry { first_source: 3, first_edge: 0, edges: 3 });
    assert!(blocks[1..].iter().all(|block| block.entry.first_source == 7));
    let last = Block::parse(&blocks.last().unwrap().bytes).unwrap();
    assert_eq!((last.lists_len(), last.last_source(), last.is_continued()), (3, 200, true));
    assert_eq!(look_up(&blocks, 7).len(), 100_000);
    assert_eq!(look_up(&blocks, 9), [0]);
    assert_eq!(blocks_of(&[3, 7, 7, 7], 3), 0..1);
    assert_eq!(blocks_of(&[3, 7, 7, 7], 7), 1..4);
    assert_eq!(blocks_of(&[3, 7, 7, 7], 8), 3..4);
    assert_eq!(blocks_of(&[3, 7], 2), 0..0);
    assert_eq!(blocks_of(&[], 2), 0..0);
}

#[test]
fn each_field_of_the_header_may_be_nothing_or_its_most() {
    let section: Section = (0..200).map(|source| (source * 3, (0..source % 7 + 1).collect())).collect();
    let bytes = &encode(&section, 4 << 10)[0].bytes;
    for (at, len) in [(1, 1), (2, 2), (4, 2), (6, 4), (10, 6), (16, 6), (22, 6), (28, 4)] {
        for value in [0x00, 0xff] {
            let mut damaged = bytes.clone();
            damaged[at..at + len].fill(value);
            read_all(&damaged);
            // No lists, no edges, no sources: nothing that an encoder writes.
            let impossible = value == 0 && [2, 4, 6].contains(&at);
            assert!(!impossible || matches!(Block::parse(&damaged), Err(FormatError::Corrupt { .. })), "field at {at}");
        }
    }
    let mut other = bytes.clone();
    other[0] = 2;
    assert!(matches!(Block::parse(&other), Err(FormatError::Unsupported { .. })));
}

#[test]
fn what_cannot_be_written_is_rejected() {
    assert!(matches!(BlockEncoder::new(50), Err(FormatError::Invalid(_))));
    let mut encoder = BlockEncoder::new(BLOCK_BYTES_DEFAULT).unwrap();
    let mut blocks = Vec::new();
    encoder.push(5, &[1], &mut blocks).unwrap();
    for (source, targets) in [(5, vec![1]), (6, vec![2, 1]), (6, vec![1 << 48]), (1 << 48, vec![1])] {
        assert!(matches!(encoder.push(source, &targets, &mut blocks), Err(FormatError::Invalid(_))));
    }
    encoder.push(6, &[1, 1], &mut blocks).unwrap();
    assert_eq!(encoder.finish().unwrap().entry.edges, 3);
}

#[test]
fn the_bytes_of_a_small_block_never_change() {
    let blocks = encode(&vec![(10, vec![4, 5, 5, 9]), (13, vec![7])], 512);
    #[rustfmt::skip]
    let expected = [
        1, 0,  2, 0,  5, 0,  4, 0, 0, 0,  10, 0, 0, 0, 0, 0,  0, 0, 0, 0, 0, 0,  4, 0, 0, 0, 0, 0,
        2, 0, 0, 0,
        // Slots 0 1 0 4 3 of 3 bits, and their width.
        0b0000_1000, 0b0011_1000, 3,
        // Gaps 0 2 of 2 bits; degrees less one, 3 0 of 2 bits.
        0b1000, 0b0011,
        // Directory: source 0, edge 0, position 0, widths 2 and 2; checkpoint 0.
        0, 0, 0, 0,  0, 0,  0, 0,  2, 2,
        0, 0,
    ];
    assert_eq!(blocks[0].bytes, expected);
}

#[test]
fn sources_of_a_made_up_block_ascend_and_are_its_own() {
    let section: Section = (0..70).map(|source| (source * 2, vec![source])).collect();
    let mut blocks = encode(&section, BLOCK_BYTES_DEFAULT);
    let bytes = &mut blocks[0].bytes;
    // The second of two groups stores where it begins: 10 bytes before a checkpoint of 2.
    let at = bytes.len() - 12;
    assert_eq!(bytes[at..at + 4], 128u32.to_le_bytes());
    for forged in [0u32, 126, 129, u32::MAX] {
        bytes[at..at + 4].copy_from_slice(&forged.to_le_bytes());
        let error = Block::parse(bytes).unwrap().decode_all(&mut Lists::default()).unwrap_err().to_string();
        assert!(error.contains("group 1 has sources"), "{error}");
    }
}
