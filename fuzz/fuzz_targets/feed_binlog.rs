//! What a binlog says of a table, and rows of it: the map is read or is damaged, and rows are read up to the first that does not fit.
//!
//! The input is whether the server is MySQL, the length of the map in two bytes, the map, and the rows.

#![no_main]

use hoplake_feed::source::fuzzing::read_rows;
use hoplake_fuzz::{begin, bounded, seeds};
use libfuzzer_sys::fuzz_target;

/// A row takes one bit of the log at least, and a cell in memory is some words; a value of a compressed column is 64 KiB at most.
fn bytes_max(input: usize) -> usize {
    (1 << 20) + 1024 * input
}

fuzz_target!(
    init: {
        begin();
        seeds(samples());
    },
    |input: &[u8]| {
        let [is_mysql, low, high, rest @ ..] = input else { return };
        let length = usize::from(u16::from_le_bytes([*low, *high])).min(rest.len());
        let (map, rows) = rest.split_at(length);
        bounded(bytes_max(input.len()), || {
            let Some(all) = read_rows(map, rows, is_mysql % 2 == 1) else { return };
            assert!(all.len() <= rows.len(), "a row takes a byte at least");
            assert!(all.windows(2).all(|two| two[0].len() == two[1].len()), "all rows have the columns of their table");
        });
    }
);

/// A table with a column of each type, each with as much metadata as it has, and a row.
fn samples() -> Vec<Vec<u8>> {
    let map = |kinds: &[u8], metadata: &[u8], fields: &[u8]| {
        let mut map = vec![7, 0, 0, 0, 0, 0, 1, 0, 4];
        map.extend(b"test\0\x01t\0");
        map.push(kinds.len() as u8);
        map.extend(kinds);
        map.push(metadata.len() as u8);
        map.extend(metadata);
        map.extend(vec![0xFF; kinds.len().div_ceil(8)]);
        map.extend(fields);
        map
    };
    let sample = |map: Vec<u8>, rows: &[u8]| {
        let length = (map.len() as u16).to_le_bytes();
        [&[0], &length[..], &map, rows].concat()
    };
    let mut all = Vec::new();
    for kind in
        [1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 140, 141, 242, 245, 246, 252, 253, 254, 255]
    {
        for metadata in [&[][..], &[4], &[9, 2], &[247, 1], &[248, 1]] {
            all.push(sample(map(&[kind], metadata, &[]), &[0, 3, 1, 2, 3, 4, 5, 6, 7, 8, 0, 1]));
        }
    }
    // With names, signs, a default charset and labels.
    let fields = [&[4, 4, 1, b'a', 1, b'b'][..], &[1, 1, 0x80], &[2, 1, 5], &[6, 4, 1, 2, b'x', b'y']].concat();
    all.push(sample(map(&[3, 254], &[247, 1], &fields), &[0, 1, 0, 0, 0, 1]));
    all
}
