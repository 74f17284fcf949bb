use bytes::Bytes;

use super::*;
use crate::{
    FormatError, KeyType, VersionRange,
    checksum::{ObjectSeed, open_block},
    filter::KeyFilter,
    keys::encode_key_block,
};

fn sample() -> (Vec<u8>, SegmentEnd, SegmentRoot) {
    let mut builder = SegmentBuilder::new("data/x", SegmentSettings::default());
    builder.begin_keys(SectionKind::Keys(LabelId(0)), KeyType::String).unwrap();
    for names in [["ann", "annabel"], ["bob", "bobby"], ["carl", "zoë"]] {
        let entries: Vec<_> = names.iter().map(|name| (Key::String((*name).into()), 7)).collect();
        builder.key_block(&entries, &encode_key_block(&entries).unwrap()).unwrap();
    }
    builder.begin_lists(SectionKind::Adjacency(EdgeTypeId(3), Direction::In)).unwrap();
    for first in [0, 5, 5, 5, 9] {
        builder.adjacency_block(first, 10, b"some lists").unwrap();
    }
    let mut bytes = builder.drain();
    let end = builder.finish().unwrap();
    bytes.extend(builder.drain());
    (bytes, end, builder.root().clone())
}

/// An index block of a section, and its filter.
fn index_of(bytes: &[u8], section: &SectionRoot, number: usize) -> (IndexBlock, Option<KeyFilter>) {
    let seed = ObjectSeed::of("data/x");
    let open = |range: &std::ops::Range<u64>| {
        open_block(seed, range.start, &bytes[range.start as usize..range.end as usize]).unwrap()
    };
    let entry = &section.index[number];
    let block = IndexBlock::parse(Bytes::copy_from_slice(open(&entry.range)), &entry.blocks).unwrap();
    (block, entry.filter.as_ref().map(|filter| KeyFilter::decode(open(filter)).unwrap()))
}

#[test]
fn a_segment_is_read_as_written() {
    let (bytes, end, root) = sample();
    assert_eq!(end.length, bytes.len() as u64);
    for from in [end.filters_position, end.index_position, end.root_position] {
        assert_eq!(decode_root(&bytes[from as usize..], &end).unwrap(), root);
    }
    let [keys, lists] = &root.sections[..] else { panic!("{root:?}") };
    assert_eq!((keys.items, lists.items, keys.blocks().start), (6, 50, 8));
    let (block, filter) = index_of(&bytes, keys, 0);
    let firsts: Vec<_> = (0..block.len()).map(|at| block.text(at)).collect();
    assert_eq!(firsts, ["ann", "b", "c"]);
    assert!(filter.unwrap().may_contain(Key::String("bobby".into()).hash()));
    assert_eq!(keys.index_of_key(&Key::String("aa".into())), None);
    assert_eq!(keys.index_of_key(&Key::String("bz".into())), Some(0));
    let (block, filter) = index_of(&bytes, lists, 0);
    assert!(filter.is_none(), "no source was added to the filter");
    let blocks = |source| block.blocks_of_source(source);
    assert_eq!((blocks(0), blocks(4), blocks(5), blocks(6)), (0..1, 0..1, 1..4, 3..4));
    assert_eq!((blocks(9), blocks(1000)), (4..5, 4..5));
    let range = block.range(1);
    let stored = &bytes[range.start as usize..range.end as usize];
    assert_eq!(open_block(ObjectSeed::of("data/x"), range.start, stored).unwrap(), b"some lists");
}

#[test]
fn a_long_section_has_several_index_blocks() {
    let mut builder = SegmentBuilder::new("data/x", SegmentSettings::default());
    let kind = SectionKind::Adjacency(EdgeTypeId(0), Direction::Out);
    builder.begin_lists(kind).unwrap();
    // The hub 5,000 has blocks in both of the index blocks that meet in it.
    let firsts: Vec<u64> =
        (0..5_000).map(|block| if (2_040..2_060).contains(&block) { 5_000 } else { block * 3 }).collect();
    let firsts: Vec<u64> = firsts
        .iter()
        .scan(0, |most, first| {
            *most = (*most).max(*first);
            Some(*most)
        })
        .collect();
    for first in &firsts {
        builder.filter_sources(&[*first]).unwrap();
        builder.adjacency_block(*first, 1, b"lists").unwrap();
    }
    let mut bytes = builder.drain();
    let end = builder.finish().unwrap();
    bytes.extend(builder.drain());
    let root = decode_root(&bytes[end.root_position as usize..], &end).unwrap();
    assert_eq!(&root, builder.root());
    let section = &root.sections[0];
    assert_eq!(section.index.len(), 3);
    for source in [0, 1, 3, 4_999, 5_000, 5_001, 6_117, 6_118, 6_143, 6_144, 6_145, 9_000, 14_996, 14_997, u64::MAX] {
        let mut found = Vec::new();
        for number in section.index_of_source(source) {
            let (block, _) = index_of(&bytes, section, number);
            found.extend(block.blocks_of_source(source).map(|at| number * 2_048 + at));
        }
        let expected: Vec<_> = crate::adjacency::blocks_of(&firsts, source).collect();
        // The index block before may offer its last block, too, where the next begins with the source.
        let missing: Vec<_> = expected.iter().filter(|block| !found.contains(block)).collect();
        assert!(missing.is_empty() && found.len() <= expected.len() + 1, "{source}: {found:?}, not {expected:?}");
    }
}

#[test]
fn a_builder_says_when_it_is_full() {
    let mut builder = SegmentBuilder::new("data/x", SegmentSettings::default());
    builder.begin_lists(SectionKind::Adjacency(EdgeTypeId(0), Direction::Out)).unwrap();
    let mut blocks = 0u64;
    while !builder.is_full() {
        builder.adjacency_block(blocks * 1_000, 1, b"a list").unwrap();
        builder.drain();
        blocks += 1;
    }
    // Three bytes of source and two of position: these blocks are small.
    assert!((1_600_000..1_700_000).contains(&blocks), "{blocks}");
}

#[test]
fn every_flipped_bit_and_cut_of_the_root_is_found() {
    let (bytes, end, _) = sample();
    let mut tail = bytes[end.root_position as usize..].to_vec();
    for cut in 0..tail.len() {
        assert!(decode_root(&tail[..cut], &end).is_err());
    }
    for byte in 0..tail.len() {
        for bit in 0..8 {
            tail[byte] ^= 1 << bit;
            assert!(decode_root(&tail, &end).is_err(), "byte {byte} bit {bit}");
            tail[byte] ^= 1 << bit;
        }
    }
}

#[test]
fn settings_that_no_reader_reads_are_rejected() {
    let default = SegmentSettings::default();
    assert_eq!(default.validate(), Ok(()));
    let rejected = [
        SegmentSettings { list_block_bytes: 63, ..default },
        SegmentSettings { key_block_bytes: 0, ..default },
        SegmentSettings { index_entries: 0, ..default },
        SegmentSettings { index_entries: 2_049, ..default },
        SegmentSettings { filter_items: 0, ..default },
        SegmentSettings { filter_items: (1 << 18) + 1, ..default },
    ];
    let names = crate::DataNames::new(0, "01JDXAAAAAAAAAAAAAAAAAAAAA", 0);
    for settings in rejected {
        let writer = SegmentWriter::new(&names, VersionRange { since: 1, until: 1 }, settings);
        assert!(matches!(writer, Err(FormatError::Invalid(_))), "{settings:?}");
    }
}

/// Sections of keys and lists, in segments that hold next to nothing.
#[test]
fn sections_go_on_over_segments() {
    let settings = SegmentSettings {
        list_block_bytes: 64,
        key_block_bytes: 20,
        index_entries: 2,
        filter_items: 6,
        tail_bytes: 60,
        data_bytes: 300,
        span_items: 1 << 26,
    };
    let names = crate::DataNames::new(0, "01JDXAAAAAAAAAAAAAAAAAAAAA", 0);
    let versions = VersionRange { since: 1, until: 1 };
    let mut segments = SegmentWriter::new(&names, versions, settings).unwrap();
    let keys: Vec<_> = (0..60).map(|key| (Key::String(format!("key {key:03}")), key)).collect();
    for label in 0..3 {
        let mut writer = KeyWriter::new(SectionKind::Keys(LabelId(label)), KeyType::String);
        keys.iter().for_each(|(key, number)| writer.push(key.clone(), *number, &mut segments).unwrap());
        writer.finish(&mut segments).unwrap();
    }
    // Short sections, of which some begin where a segment ends.
    for label in 3..30 {
        let mut writer = KeyWriter::new(SectionKind::Tombstones(LabelId(label)), KeyType::String);
        writer.push(keys[0].0.clone(), 0, &mut segments).unwrap();
        writer.finish(&mut segments).unwrap();
    }
    // A long list among short ones.
    let lists: Vec<Vec<u64>> = (0..40).map(|source| (0..if source == 20 { 500 } else { 3 }).collect()).collect();
    let kind = SectionKind::Adjacency(EdgeTypeId(0), Direction::Out);
    let mut writer = ListWriter::new(kind, true, &segments).unwrap();
    (0..).zip(&lists).for_each(|(source, list)| writer.push(source, list, &mut segments).unwrap());
    writer.finish(&mut segments).unwrap();
    segments.finish().unwrap();
    let sizes = segments.sizes().to_vec();
    let mut pieces = std::collections::BTreeMap::<SectionKind, Vec<(u64, bool)>>::new();
    let mut found_keys = Vec::new();
    let mut found_lists = vec![Vec::new(); lists.len()];
    while let Some(SegmentBytes { name, bytes, ended }) = segments.take(usize::MAX) {
        let reference = ended.expect("nothing was taken before the end");
        assert_eq!((&reference.name, reference.checksum), (&name, crc32c::crc32c(&bytes)));
        let bytes = Bytes::from(bytes);
        let seed = ObjectSeed::of(&name);
        let root = decode_root(&bytes, &reference.end).unwrap();
        assert_eq!(root.sections.len(), reference.sections.len());
        for (section, named) in root.sections.iter().zip(&reference.sections) {
            assert_eq!((section.kind, named.versions), (named.kind, Some(versions)));
            assert!(section.block_count > 0);
            assert!(named.continues.is_none() || named.continues == section.first(0), "{named:?}");
            pieces.entry(section.kind).or_default().push((section.items, named.continues.is_some()));
            for index in section.index_blocks(&name, &reference.end, &bytes).unwrap() {
                assert!(index.len() <= settings.index_entries);
                for block in 0..index.len() {
                    let range = index.range(block);
                    let payload = open_block(seed, range.start, &bytes[range.start as usize..range.end as usize]);
                    if section.kind.has_keys() {
                        let entries = crate::keys::decode_key_block(payload.unwrap(), KeyType::String).unwrap();
                        assert!(Key::String(index.text(block).into()) <= entries[0].0);
                        found_keys.extend(entries);
                        continue;
                    }
                    let block_of_lists = crate::adjacency::Block::parse(payload.unwrap()).unwrap();
                    assert_eq!(block_of_lists.first_source(), index.number(block));
                    let mut decoded = crate::adjacency::Lists::default();
                    block_of_lists.decode_all(&mut decoded).unwrap();
                    decoded.iter().for_each(|(source, _, list)| found_lists[source as usize].extend_from_slice(list));
                }
            }
        }
    }
    let (long, short) = found_keys.split_at(3 * keys.len());
    assert_eq!(long, [&keys[..]; 3].concat());
    assert_eq!(short, vec![keys[0].clone(); 27]);
    assert_eq!(found_lists, lists);
    for (kind, pieces) in &pieces {
        let is_short = matches!(kind, SectionKind::Tombstones(_));
        assert!(if is_short { pieces.len() == 1 } else { pieces.len() > 2 }, "{kind:?} is in {pieces:?}");
        assert_eq!(pieces.iter().map(|(_, continues)| *continues).filter(|it| !it).count(), 1, "{pieces:?}");
        let items: u64 = pieces.iter().map(|(items, _)| items).sum();
        assert_eq!(items, sizes.iter().filter(|size| size.kind == *kind).map(|size| size.items).sum::<u64>());
    }
}
