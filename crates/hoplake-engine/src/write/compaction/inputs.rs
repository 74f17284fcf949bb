//! What some merges read, brought into memory in as few requests as it takes, all in one wave.
//!
//! Runs that are due are mostly small, and those that one commit wrote stand in one object: read section by section, block by
//! block, they would cost a request each for a few hundred bytes. So what the merges need of an object is read in pieces of
//! up to 4 MiB, over small gaps, and cut into the blocks and pages that merging asks for. What is larger than the share of
//! the memory for this is left to scans ([`crate::read::scan`]), which read on while they decode.
//!
//! Before that, whether anything is due takes the indexes of all segments. Small objects, as commits leave them by the
//! hundred, come whole with that ([`take_small`]), so that none takes a request for its end and one for the rest.
//!
//! Nothing depends on it: a block that came damaged, or that had to leave the cache, is read again when a merge needs it.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    sync::Arc,
};

use bytes::Bytes;
use futures::future::try_join;
use hoplake_format::TableRef;
use hoplake_storage::{BlockRequest, Branch, Check, Object};

use super::Merging;
use crate::{
    EngineError, Snapshot,
    read::tables::{EXTENT_BYTES, Table},
    snapshot::sections::{SectionLocation, Segment},
};

/// Two inputs that are no further apart are read as one: at 55 MiB/s a stream, 256 KiB are 5 ms against a first byte of 25.
const GAP_BYTES: u64 = 256 << 10;

/// An object of at most this many bytes is read whole when its index is wanted: reading its end alone would save 5 ms
/// of bytes, and the rest would cost a request more.
const SMALL_OBJECT_BYTES: u64 = 256 << 10;

/// Makes all indexes of a version resident, in one wave, and keeps what small objects have, as far as `bytes_max` holds it.
pub(super) async fn take_small(
    snapshot: &Arc<Snapshot>,
    bytes_max: u64,
    branch: &mut Branch,
) -> Result<(), EngineError> {
    let reader = snapshot.reader();
    let lengths = snapshot.manifest().objects();
    let mut left = bytes_max;
    let mut small: Vec<(&Segment, Object, u64)> = Vec::new();
    for segment in snapshot.sections().segments.iter().filter(|segment| !segment.is_resident()) {
        let bytes = lengths.get(segment.name()).copied().unwrap_or(u64::MAX);
        if bytes <= SMALL_OBJECT_BYTES.min(left) {
            left -= bytes;
            // Numbered apart from the segment's own: what is asked for is not a block.
            small.push((segment, reader.object(segment.name()), bytes));
        }
    }
    let requests: Vec<_> =
        small.iter().map(|(_, object, bytes)| BlockRequest { object, range: 0..*bytes, check: Check::Later }).collect();
    let mut taken = BTreeMap::new();
    let take = |number: usize, bytes: Bytes| {
        let segment = small[number].0;
        // What came damaged is read again when it is asked for.
        if snapshot.sections().take_at_hand(segment, &bytes).is_ok() {
            taken.insert(segment.name(), bytes);
        }
        Ok::<_, EngineError>(())
    };
    let names: BTreeSet<&str> = small.iter().map(|(segment, ..)| segment.name()).collect();
    let others = snapshot
        .sections()
        .all_locations()
        .filter(|location| !names.contains(snapshot.sections().segment_of(*location).name()));
    let mut line = branch.clone();
    let others = snapshot.sections().make_resident(others, &mut line);
    try_join(reader.read_each(&requests, branch, take), others).await?;
    branch.join([&line]);
    for table in snapshot.tables().iter() {
        let TableRef { name, position, length, .. } = &table.reference;
        if let Some(bytes) = taken.get(name.as_str()) {
            table.keep(reader, &bytes.slice(*position as usize..(position + length) as usize));
        }
    }
    Ok(())
}

/// A section or a table.
enum Input {
    Section(SectionLocation),
    Table(Arc<Table>),
}

/// What a piece is cut into.
enum Cut<'a> {
    Block(SectionLocation),
    Table(&'a Table),
}

/// A range of an object that is read with one request.
struct RangeRead<'a> {
    name: String,
    range: Range<u64>,
    cuts: Vec<(Range<u64>, Cut<'a>)>,
}

/// Reads what the runs of a merge, or of several, have, as far as `bytes_max` holds it, the smallest first.
pub(super) async fn fetch(merging: &mut Merging<'_>, bytes_max: u64) -> Result<(), EngineError> {
    let snapshot = merging.inputs.clone();
    snapshot.sections().make_resident(snapshot.sections().all_locations(), merging.branch).await?;
    let mut inputs = Vec::new();
    for location in snapshot.sections().all_locations() {
        let section = snapshot.sections().section(location)?;
        // What is so large that its index blocks are not in memory is left to scans.
        let Some(mut blocks) = section.blocks() else { continue };
        if !blocks.all(|block| snapshot.reader().is_in_memory(&section.request(block))) {
            inputs.push((section.bytes(), Input::Section(location)));
        }
    }
    let tables = snapshot.tables().iter().filter(|table| table.reference.length <= EXTENT_BYTES && !table.is_known());
    inputs.extend(tables.map(|table| (table.reference.length, Input::Table(table.clone()))));
    inputs.sort_by_key(|(bytes, _)| *bytes);
    let mut left = bytes_max;
    inputs.retain(|(bytes, _)| match left.checked_sub(*bytes) {
        Some(rest) => {
            left = rest;
            true
        }
        None => false,
    });
    read(merging, &pieces(merging, &inputs)?).await
}

/// The pieces that bring some inputs.
fn pieces<'a>(merging: &Merging<'_>, inputs: &'a [(u64, Input)]) -> Result<Vec<RangeRead<'a>>, EngineError> {
    let mut cuts: BTreeMap<&str, Vec<(Range<u64>, Cut<'a>)>> = BTreeMap::new();
    for (_, input) in inputs {
        match input {
            Input::Section(location) => {
                let blocks = merging.inputs.sections().section(*location)?.blocks().into_iter().flatten();
                let of_object = cuts.entry(merging.inputs.sections().segment_of(*location).name()).or_default();
                of_object.extend(blocks.map(|block| (block, Cut::Block(*location))));
            }
            Input::Table(table) => {
                let reference = &table.reference;
                let range = reference.position..reference.position + reference.length;
                cuts.entry(&reference.name).or_default().push((range, Cut::Table(table)));
            }
        }
    }
    Ok(cuts.into_iter().flat_map(|(name, of_object)| joined(name, of_object)).collect())
}

/// The pieces of one object that some of its ranges are cut from.
fn joined<'a>(name: &str, mut cuts: Vec<(Range<u64>, Cut<'a>)>) -> Vec<RangeRead<'a>> {
    cuts.sort_by_key(|(range, _)| range.start);
    let mut pieces: Vec<RangeRead<'a>> = Vec::new();
    for (range, cut) in cuts {
        let joins = |last: &&mut RangeRead<'a>| {
            range.start <= last.range.end + GAP_BYTES && range.end - last.range.start <= EXTENT_BYTES
        };
        match pieces.last_mut().filter(joins) {
            Some(last) => {
                last.range.end = last.range.end.max(range.end);
                last.cuts.push((range, cut));
            }
            None => pieces.push(RangeRead { name: name.to_owned(), range: range.clone(), cuts: vec![(range, cut)] }),
        }
    }
    pieces
}

/// Reads pieces in one wave, and keeps what they are cut into.
async fn read(merging: &mut Merging<'_>, pieces: &[RangeRead<'_>]) -> Result<(), EngineError> {
    let snapshot = merging.inputs.clone();
    let reader = merging.inputs.reader().clone();
    let objects: Vec<Object> = pieces.iter().map(|piece| reader.object(&piece.name)).collect();
    let request = |(object, piece)| -> BlockRequest<'_> {
        let piece: &RangeRead<'_> = piece;
        BlockRequest { object, range: piece.range.clone(), check: Check::Later }
    };
    let requests: Vec<_> = objects.iter().zip(pieces).map(request).collect();
    let keep = |number: usize, bytes: Bytes| {
        let RangeRead { range: within, cuts, .. }: &RangeRead<'_> = &pieces[number];
        for (range, cut) in cuts {
            let stored = bytes.slice((range.start - within.start) as usize..(range.end - within.start) as usize);
            match cut {
                // What is damaged is read again when it is asked for.
                Cut::Block(location) => {
                    drop(reader.keep(&snapshot.sections().section(*location)?.request(range.clone()), &stored))
                }
                Cut::Table(table) => table.keep(&reader, &stored),
            }
        }
        Ok::<_, EngineError>(())
    };
    reader.read_each(&requests, merging.branch, keep).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces_of(ranges: &[Range<u64>]) -> Vec<(Range<u64>, usize)> {
        let cut = || Cut::Block(SectionLocation { segment: 0, section: 0 });
        let cuts = ranges.iter().map(|range| (range.clone(), cut())).collect();
        joined("data/a", cuts).into_iter().map(|piece| (piece.range, piece.cuts.len())).collect()
    }

    #[test]
    fn inputs_over_small_gaps_are_one_piece() {
        const KIB: u64 = 1 << 10;
        // Out of order, next to each other, over a gap, and beyond one that costs more than a request.
        let ranges = [300 * KIB..310 * KIB, 0..10, 10..44 * KIB, 600 * KIB..700 * KIB];
        assert_eq!(pieces_of(&ranges), [(0..310 * KIB, 3), (600 * KIB..700 * KIB, 1)]);
    }

    #[test]
    fn a_piece_is_no_longer_than_an_extent() {
        const MIB: u64 = 1 << 20;
        let ranges = [0..MIB, MIB..3 * MIB, 3 * MIB..5 * MIB, 5 * MIB..12 * MIB];
        assert_eq!(pieces_of(&ranges), [(0..3 * MIB, 2), (3 * MIB..5 * MIB, 1), (5 * MIB..12 * MIB, 1)]);
    }
}
