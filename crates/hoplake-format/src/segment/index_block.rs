//! Index blocks: which block of a section begins with what, and where.
//!
//! ```text
//! numbers  1 u8 │ first bytes u8 │ position bytes u8 │ 0 u8 │ n u32 │ first u64 │ position u64 │ n × (first − first) │ n + 1 × position
//! text     2 u8 │ offset bytes u8 │ position bytes u8 │ 0 u8 │ n u32 │ position u64 │ n + 1 × position │ n + 1 × offset │ text
//! ```
//! A binary search in the stored bytes: all numbers of a kind have one width within a block, so nothing is decoded. An
//! index block is served from a cache as fast as from a vector, and thousands of them cost an open nothing. A keyed
//! number is kept as an unsigned one of the same order, its sign flipped.

use std::ops::Range;

use bytes::Bytes;

use crate::{FormatError, constants::CHECKSUM_BYTES, keys::Key, manifest::First};

/// Blocks whose entries an index block has, at most.
pub const INDEX_BLOCK_ENTRIES_MAX: usize = 2_048;

const NUMBERS: u8 = 1;
const TEXT: u8 = 2;
const HEADER_BYTES: usize = 8;

/// The first items of a section's blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Firsts {
    /// Sources of adjacency sections; integer keys, as [`ordered`] numbers.
    Numbers(Vec<u64>),
    /// Separators of string keys.
    Texts(Vec<String>),
}

/// The unsigned number that stands for an integer key: of two keys, the smaller has the smaller one.
pub fn ordered(key: i64) -> u64 {
    // Flipping the sign bit maps the order of signed numbers to that of unsigned ones.
    key as u64 ^ 1 << 63
}

/// The entries of consecutive blocks, as they are stored.
#[derive(Debug, Clone)]
pub struct IndexBlock {
    payload: Bytes,
    /// How many blocks there are.
    count: usize,
    firsts: FirstsAt,
    positions: Packed,
    position: u64,
}

#[derive(Debug, Clone, Copy)]
enum FirstsAt {
    Numbers { base: u64, deltas: Packed },
    Text { offsets: Packed, at: usize },
}

/// Numbers of one width, side by side.
#[derive(Debug, Clone, Copy)]
struct Packed {
    at: usize,
    width: usize,
}

impl Packed {
    /// The values after some of them.
    fn followed_by(self, count: usize, width: usize) -> Self {
        Self { at: self.at + count * self.width, width }
    }

    fn get(self, payload: &[u8], index: usize) -> u64 {
        let from = self.at + index * self.width;
        let mut word = [0; 8];
        word[..self.width].copy_from_slice(&payload[from..from + self.width]);
        u64::from_le_bytes(word)
    }
}

impl IndexBlock {
    /// Reads the payload of an index block whose blocks are `within`, as the root has them.
    ///
    /// # Errors
    /// [`FormatError::Corrupt`] if its length does not match its header, or first items or positions do not ascend.
    pub fn parse(payload: Bytes, within: &Range<u64>) -> Result<Self, FormatError> {
        let header: &[u8; HEADER_BYTES] = payload.first_chunk().ok_or_else(|| corrupt("its header is cut off"))?;
        let [kind, item_width, position_width, zero, n @ ..] = *header;
        let count = u32::from_le_bytes(n) as usize;
        // A width above 8 would make `Packed::get` copy past its word.
        let widths = [item_width, position_width].map(usize::from);
        if zero != 0 || count == 0 || count > INDEX_BLOCK_ENTRIES_MAX || !widths.iter().all(|it| (1..=8).contains(it)) {
            return Err(corrupt("its header cannot be"));
        }
        let [item_width, position_width] = widths;
        let word = |at: usize| Packed { at, width: 8 };
        // Where each array begins, in sequence.
        let (firsts, position, positions, end) = match kind {
            NUMBERS => {
                let deltas = Packed { at: HEADER_BYTES + 16, width: item_width };
                let positions = deltas.followed_by(count, position_width);
                let end = positions.followed_by(count + 1, 0).at;
                (FirstsAt::Numbers { base: 0, deltas }, word(HEADER_BYTES + 8), positions, end)
            }
            TEXT => {
                let positions = Packed { at: HEADER_BYTES + 8, width: position_width };
                let offsets = positions.followed_by(count + 1, item_width);
                let at = offsets.followed_by(count + 1, 0).at;
                (FirstsAt::Text { offsets, at }, word(HEADER_BYTES), positions, at)
            }
            other => return Err(corrupt(format!("it is of kind {other}"))),
        };
        if payload.len() < end {
            return Err(corrupt(format!("{count} entries do not fit {} bytes", payload.len())));
        }
        let firsts = match firsts {
            FirstsAt::Numbers { deltas, .. } => FirstsAt::Numbers { base: word(HEADER_BYTES).get(&payload, 0), deltas },
            text @ FirstsAt::Text { .. } => text,
        };
        let position = position.get(&payload, 0);
        let block = Self { payload, count, firsts, positions, position };
        block.check_firsts(end)?;
        block.check_positions(within)?;
        Ok(block)
    }

    fn check_firsts(&self, end: usize) -> Result<(), FormatError> {
        match self.firsts {
            FirstsAt::Numbers { base, deltas } => {
                let mut before = 0;
                for index in 0..self.count {
                    let delta = deltas.get(&self.payload, index);
                    if delta < before || base.checked_add(delta).is_none() {
                        return Err(corrupt("its first items do not ascend"));
                    }
                    before = delta;
                }
                (self.payload.len() == end).then_some(()).ok_or_else(|| corrupt("it is longer than its entries"))
            }
            FirstsAt::Text { offsets, at } => {
                let mut before: Option<&str> = None;
                let mut from = 0;
                for index in 1..=self.count {
                    let until = offsets.get(&self.payload, index);
                    let text = usize::try_from(until)
                        .ok()
                        .and_then(|until| self.payload.get(at + from..at.checked_add(until)?));
                    let text = text.and_then(|text| std::str::from_utf8(text).ok());
                    let text = text.ok_or_else(|| corrupt("its texts are outside of it, or not UTF-8"))?;
                    if before.is_some_and(|before| before >= text) {
                        return Err(corrupt("its first items do not ascend"));
                    }
                    before = Some(text);
                    from = until as usize;
                }
                let whole = offsets.get(&self.payload, 0) == 0 && at + from == self.payload.len();
                whole.then_some(()).ok_or_else(|| corrupt("its texts are not all of its rest"))
            }
        }
    }

    fn check_positions(&self, within: &Range<u64>) -> Result<(), FormatError> {
        let mut before = self.position;
        let first = self.positions.get(&self.payload, 0);
        for index in 1..=self.count {
            let position = self.position.checked_add(self.positions.get(&self.payload, index));
            // A block is longer than its checksum alone: sealed payloads are not empty.
            let position = position.filter(|it| *it > before.saturating_add(CHECKSUM_BYTES as u64));
            before = position.ok_or_else(|| corrupt("its blocks do not follow each other"))?;
        }
        // A forged index block can have a valid seal, but must not lead outside the range that the root has for it.
        let exactly = first == 0 && self.position == within.start && before == within.end;
        exactly.then_some(()).ok_or_else(|| corrupt("its blocks are not where the root has them"))
    }

    /// How many blocks it has entries of; at least one.
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Where a sealed block is.
    pub fn range(&self, block: usize) -> Range<u64> {
        let position = |index| self.position + self.positions.get(&self.payload, index);
        position(block)..position(block + 1)
    }

    /// Where all of its blocks are.
    pub fn all(&self) -> Range<u64> {
        self.range(0).start..self.range(self.count - 1).end
    }

    /// The number that a block begins with; 0 in a section of text.
    pub fn number(&self, block: usize) -> u64 {
        match self.firsts {
            FirstsAt::Numbers { base, deltas } => base + deltas.get(&self.payload, block),
            FirstsAt::Text { .. } => 0,
        }
    }

    /// The text that a block begins with; empty in a section of numbers.
    pub fn text(&self, block: usize) -> &str {
        let FirstsAt::Text { offsets, at } = self.firsts else { return "" };
        let offset = |index| at + offsets.get(&self.payload, index) as usize;
        // Checked by `parse`, so that the default is never taken.
        std::str::from_utf8(&self.payload[offset(block)..offset(block + 1)]).unwrap_or_default()
    }

    /// How many blocks begin with no more than a key.
    pub fn through(&self, key: &Key) -> usize {
        match key {
            Key::Int64(key) => self.partition_point(|block| self.number(block) <= ordered(*key)),
            Key::String(key) => self.partition_point(|block| self.text(block) <= key.as_str()),
        }
    }

    /// The blocks that begin with a source.
    pub fn blocks_beginning_with(&self, source: u64) -> Range<usize> {
        self.partition_point(|block| self.number(block) < source)
            ..self.partition_point(|block| self.number(block) <= source)
    }

    /// The first item of its first block.
    pub fn first(&self) -> First {
        match self.firsts {
            FirstsAt::Numbers { .. } => First::Number(self.number(0)),
            FirstsAt::Text { .. } => First::Text(self.text(0).to_owned()),
        }
    }

    /// The blocks that may have the list of a source: the last that begins with less, if none begins with it, else all
    /// that begin with it. Empty if all begin with more.
    pub fn blocks_of_source(&self, source: u64) -> Range<usize> {
        let end = self.partition_point(|block| self.number(block) <= source);
        // A split list begins its blocks, so that all blocks that begin with the source have a piece of it.
        let start = self.partition_point(|block| self.number(block) < source);
        start.min(end.saturating_sub(1))..end
    }

    /// The first block for which `is_before` is false.
    pub fn partition_point(&self, is_before: impl Fn(usize) -> bool) -> usize {
        let mut low = 0;
        let mut high = self.count;
        while low < high {
            let middle = low + (high - low) / 2;
            if is_before(middle) { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// The bytes that it keeps in memory.
    pub fn bytes(&self) -> usize {
        self.payload.len()
    }
}

/// The payload of the index block of some blocks: what each begins with, and where each begins and the last ends.
///
/// # Panics
/// If there are not as many first items as blocks: a mistake of the program.
pub fn encode_index_block(firsts: &Firsts, positions: &[u64]) -> Vec<u8> {
    let span = |numbers: &[u64]| numbers.last().zip(numbers.first()).map_or(0, |(last, first)| last - first);
    let width = |most: u64| (8 - most.leading_zeros() as usize / 8).max(1);
    let position_width = width(span(positions));
    let mut out = Vec::new();
    let pack = |out: &mut Vec<u8>, numbers: &mut dyn Iterator<Item = u64>, width: usize| {
        numbers.for_each(|number| out.extend_from_slice(&number.to_le_bytes()[..width]));
    };
    let mut relative = positions.iter().map(|position| position - positions[0]);
    match firsts {
        Firsts::Numbers(firsts) => {
            assert_eq!(firsts.len() + 1, positions.len(), "each block begins with something");
            let first_width = width(span(firsts));
            out.extend_from_slice(&[NUMBERS, first_width as u8, position_width as u8, 0]);
            out.extend_from_slice(&(firsts.len() as u32).to_le_bytes());
            pack(&mut out, &mut [firsts[0], positions[0]].into_iter(), 8);
            pack(&mut out, &mut firsts.iter().map(|first| first - firsts[0]), first_width);
            pack(&mut out, &mut relative, position_width);
        }
        Firsts::Texts(firsts) => {
            assert_eq!(firsts.len() + 1, positions.len(), "each block begins with something");
            let ends = firsts.iter().scan(0, |end, text| {
                *end += text.len() as u64;
                Some(*end)
            });
            let offset_width = width(firsts.iter().map(|text| text.len() as u64).sum());
            out.extend_from_slice(&[TEXT, offset_width as u8, position_width as u8, 0]);
            out.extend_from_slice(&(firsts.len() as u32).to_le_bytes());
            pack(&mut out, &mut std::iter::once(positions[0]), 8);
            pack(&mut out, &mut relative, position_width);
            pack(&mut out, &mut std::iter::once(0).chain(ends), offset_width);
            firsts.iter().for_each(|text| out.extend_from_slice(text.as_bytes()));
        }
    }
    out
}

fn corrupt(why: impl Into<String>) -> FormatError {
    FormatError::corrupt("index block", why)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::adjacency::blocks_of;

    fn positions(start: u64, lengths: &[u64]) -> Vec<u64> {
        let ends = lengths.iter().scan(start, |position, length| {
            *position += length;
            Some(*position)
        });
        std::iter::once(start).chain(ends).collect()
    }

    fn read(firsts: &Firsts, positions: &[u64]) -> IndexBlock {
        let within = positions[0]..positions[positions.len() - 1];
        IndexBlock::parse(encode_index_block(firsts, positions).into(), &within).unwrap()
    }

    proptest! {
        #[test]
        fn numbers_are_found_as_in_a_vector(
            mut firsts in prop::collection::vec(prop_oneof![0u64..50, any::<u64>().prop_map(|it| it >> 16)], 1..60),
            lengths in prop::collection::vec(5u64..70_000, 60),
            start in 0u64..1 << 40,
            sought in prop::collection::vec(prop_oneof![0u64..60, any::<u64>().prop_map(|it| it >> 16)], 20),
        ) {
            firsts.sort_unstable();
            let positions = positions(start, &lengths[..firsts.len()]);
            let block = read(&Firsts::Numbers(firsts.clone()), &positions);
            let ranges: Vec<_> = (0..block.len()).map(|at| block.range(at)).collect();
            prop_assert_eq!(ranges, positions.windows(2).map(|pair| pair[0]..pair[1]).collect::<Vec<_>>());
            for source in sought.into_iter().chain(firsts.iter().copied()) {
                prop_assert_eq!(block.blocks_of_source(source), blocks_of(&firsts, source), "{}", source);
            }
        }

        #[test]
        fn keys_are_found_as_in_a_vector(
            numbers in prop::collection::btree_set(any::<i64>(), 1..60),
            texts in prop::collection::btree_set("[a-cä]{0,4}", 1..60),
            sought in prop::collection::vec((any::<i64>(), "[a-dä]{0,5}"), 20),
        ) {
            let lengths = [9; 60];
            let numbers: Vec<i64> = numbers.into_iter().collect();
            let texts: Vec<String> = texts.into_iter().collect();
            let of_numbers = Firsts::Numbers(numbers.iter().map(|key| ordered(*key)).collect());
            let of_numbers = read(&of_numbers, &positions(8, &lengths[..numbers.len()]));
            let of_texts = read(&Firsts::Texts(texts.clone()), &positions(8, &lengths[..texts.len()]));
            for (number, text) in sought {
                let expected = numbers.partition_point(|first| *first <= number);
                prop_assert_eq!(of_numbers.through(&Key::Int64(number)), expected);
                let expected = texts.partition_point(|first| *first <= text);
                prop_assert_eq!(of_texts.through(&Key::String(text)), expected);
            }
        }

        #[test]
        fn bytes_that_lie_are_rejected_or_harmless(
            bytes in prop::collection::vec(any::<u8>(), 0..200), change in any::<(u8, u8)>(),
        ) {
            let _ = IndexBlock::parse(bytes.into(), &(8..1_000));
            for firsts in [Firsts::Numbers(vec![3, 3, 900, 70_000]), Firsts::Texts(["", "a", "b", "ä"].map(String::from).into())] {
                let mut forged = encode_index_block(&firsts, &[100, 150, 200, 300, 400]);
                let at = usize::from(change.0) % forged.len();
                forged[at] ^= change.1;
                let Ok(block) = IndexBlock::parse(forged.into(), &(100..400)) else { continue };
                for at in 0..block.len() {
                    let range = block.range(at);
                    prop_assert!(range.start >= 100 && range.end <= 400 && range.start + 4 < range.end);
                    let _ = (block.number(at), block.text(at));
                }
                for source in [0, 3, 5, u64::MAX] {
                    prop_assert!(block.blocks_of_source(source).end <= block.len());
                }
            }
        }
    }

    #[test]
    fn an_entry_takes_what_its_numbers_need() {
        let firsts: Vec<u64> = (0..2_048).map(|block| (1 << 40) + block * 1_000).collect();
        let positions: Vec<u64> = (0..=2_048).map(|block| 8 + block * 16_388).collect();
        let encoded = encode_index_block(&Firsts::Numbers(firsts), &positions);
        // Three bytes for a first source, four for a position.
        assert_eq!(encoded.len(), 24 + 2_048 * 3 + 2_049 * 4);
    }
}
