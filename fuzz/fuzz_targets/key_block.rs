//! Blocks of keys, filters over keys and items of property indexes, behind their checksum: any bytes are keys or an error, a look-up
//! finds what a scan finds, and what could be read is written and read as the same keys. Items compare as their values do.

#![no_main]

use hoplake_format::{
    Key, KeyType, VertexId,
    filter::{KeyFilter, encode_filter},
    keys::{decode_key_block, encode_key_block, find_in_key_block},
    property_index::{ValueText, ordinal_of},
};
use hoplake_fuzz::{begin, bounded, seeds};
use libfuzzer_sys::fuzz_target;

const KEYS_TRIED: usize = 64;

fuzz_target!(
    init: {
        begin();
        seeds(made());
    },
    |bytes: &[u8]| {
        // The first byte says what the others are.
        let Some((kind, bytes)) = bytes.split_first() else { return };
        bounded((256 << 10) + 64 * bytes.len(), || match kind % 4 {
            0 => keys(bytes, KeyType::Int64),
            1 => keys(bytes, KeyType::String),
            2 => filter(bytes),
            _ => items(bytes),
        });
    }
);

fn keys(bytes: &[u8], key_type: KeyType) {
    let Ok(entries) = decode_key_block(bytes, key_type) else {
        let _ = find_in_key_block(bytes, &[i64::MIN, 1, 1 << 40].map(Key::Int64));
        let _ = find_in_key_block(bytes, &["", "a", "b"].map(Key::from));
        return;
    };
    assert!(entries.is_sorted_by(|a, b| a.0 < b.0));
    for (key, ordinal) in entries.iter().step_by(entries.len() / KEYS_TRIED + 1) {
        assert_eq!(find_in_key_block(bytes, [key]), Ok(vec![(0, *ordinal)]), "{key:?}");
        let near = match key {
            Key::Int64(key) => Key::Int64(key.wrapping_add(1)),
            Key::String(key) => Key::String(format!("{key}!")),
        };
        let expected = entries.iter().find(|(other, _)| *other == near).map(|(_, ordinal)| *ordinal);
        let expected = expected.map(|ordinal| (0, ordinal)).into_iter().collect();
        assert_eq!(find_in_key_block(bytes, [&near]), Ok(expected), "{near:?}");
    }
    let all = find_in_key_block(bytes, entries.iter().map(|(key, _)| key));
    assert_eq!(all, Ok(entries.iter().map(|(_, ordinal)| *ordinal).enumerate().collect()));
    let written = encode_key_block(&entries).expect("keys ascend");
    assert_eq!(decode_key_block(&written, key_type), Ok(entries));
}

fn items(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return numbers(bytes) };
    if let Ok(ordinal) = ordinal_of(text) {
        assert!(ordinal <= VertexId::ORDINAL_MAX);
    }
    // Two texts, of which none is cut.
    let (a, b) = text.split_once('|').unwrap_or((text, ""));
    let [a_item, b_item] = [a, b].map(|text| ValueText::of_text(text));
    if !a_item.is_cut() && !b_item.is_cut() {
        assert_eq!(a_item.item(9).cmp(&b_item.item(9)), a.cmp(b), "{a:?} {b:?}");
    }
    assert_eq!(ordinal_of(&a_item.item(bytes.len() as u64)), Ok(bytes.len() as u64));
}

fn numbers(bytes: &[u8]) {
    let ([a, b, ..], _) = bytes.as_chunks::<8>() else { return };
    let [a, b] = [a, b].map(|bytes| i64::from_le_bytes(*bytes));
    assert_eq!(ValueText::of_integer(a).item(1).cmp(&ValueText::of_integer(b).item(1)), a.cmp(&b), "{a} {b}");
    let [x, y] = [a, b].map(|bits| f64::from_bits(bits as u64));
    if let Some(order) = x.partial_cmp(&y) {
        assert_eq!(ValueText::of_float(x).item(1).cmp(&ValueText::of_float(y).item(1)), order, "{x} {y}");
    }
}

fn filter(bytes: &[u8]) {
    if let Ok(filter) = KeyFilter::decode(bytes) {
        for hash in (0..64).map(|bit| 1 << bit).chain([0, u64::MAX]) {
            let _ = filter.may_contain(hash);
        }
    }
    // As hashes of keys, the same bytes make a filter that knows them all.
    let mut hashes: Vec<u64> = bytes.as_chunks::<8>().0.iter().map(|hash| u64::from_le_bytes(*hash)).collect();
    hashes.sort_unstable();
    hashes.dedup();
    if let Ok(filter) = encode_filter(&hashes).and_then(|bytes| KeyFilter::decode(&bytes)) {
        assert!(hashes.iter().all(|hash| filter.may_contain(*hash)));
    }
}

fn made() -> Vec<Vec<u8>> {
    let of = |kind: u8, keys: Vec<Key>, step: u64| {
        let entries: Vec<_> = keys.into_iter().zip((0..).map(|at| at * step)).collect();
        [vec![kind], encode_key_block(&entries).expect("keys ascend")].concat()
    };
    let numbers = |gap: i64| (0..100).map(|at| Key::Int64(at * gap - 50)).collect();
    let texts = || ["", "a", "ab", "abc", "b", "bé", "böse", "c"].map(|text| Key::String(text.into())).to_vec();
    let hashes: Vec<_> = (0..40).map(|key| Key::Int64(key).hash()).collect();
    let filter = [vec![2], encode_filter(&hashes).expect("hashes differ")].concat();
    let item = [&[3][..], ValueText::of_text("a\0b").item(70).as_bytes()].concat();
    vec![item, of(0, numbers(1), 1), of(0, numbers(1 << 40), 7), of(1, texts(), 1), of(1, texts(), 3), filter]
}
