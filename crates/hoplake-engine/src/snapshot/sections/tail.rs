//! Which ends of segments come with the open, and how they are read.

use std::sync::Arc;

use bytes::Bytes;
use hoplake_format::{Manifest, segment::SegmentEnd};
use hoplake_storage::{BlockRequest, Branch, Check, Reader};

use super::{Segment, SegmentIndex};
use crate::{EngineError, OpenSettings};

/// For each segment its end, if it came.
pub(crate) type Tails = Vec<Option<Bytes>>;

/// Where what is read of a segment's end begins when it is first used.
pub(crate) fn at_first_use(end: &SegmentEnd, settings: &OpenSettings) -> u64 {
    let index_bytes = end.root_position - end.index_position;
    if index_bytes <= settings.index_with_root_bytes_max { end.index_position } else { end.root_position }
}

/// Where what comes with the open of each segment's end begins, if anything does: the shortest indexes first, then of those
/// segments the shortest filters. So what changes wrote is known, whose filters spare a large graph most of its requests.
pub(crate) fn begins_of_tails(manifest: &Manifest, settings: &OpenSettings) -> Vec<Option<u64>> {
    let ends: Vec<&SegmentEnd> = manifest.segments.iter().map(|segment| &segment.end).collect();
    let mut from = vec![None; ends.len()];
    let mut take = |bytes_max: u64, bytes: fn(&SegmentEnd) -> u64, begin: fn(&SegmentEnd) -> u64, also: bool| {
        let mut order: Vec<usize> = (0..ends.len()).filter(|segment| !also || from[*segment].is_some()).collect();
        order.sort_by_key(|segment| bytes(ends[*segment]));
        let mut sum = 0;
        for segment in order {
            sum += bytes(ends[segment]);
            // In ascending order, so none of the rest fits either.
            if sum > bytes_max {
                break;
            }
            from[segment] = Some(begin(ends[segment]));
        }
    };
    take(settings.index_bytes_max, |end| end.length - end.index_position, |end| end.index_position, false);
    // Filters lie directly before the index blocks: an earlier beginning brings both in one request.
    take(settings.filter_bytes_max, |end| end.index_position - end.filters_position, |end| end.filters_position, true);
    from
}

/// Reads the ends that come with the open.
pub(crate) async fn read_tails(
    reader: &Reader,
    manifest: &Manifest,
    settings: &OpenSettings,
    branch: &mut Branch,
) -> Result<Tails, EngineError> {
    let from = begins_of_tails(manifest, settings);
    let come = || manifest.segments.iter().zip(&from).filter_map(|(segment, from)| Some((segment, (*from)?)));
    let objects: Vec<_> = come().map(|(segment, _)| reader.object(&segment.name)).collect();
    let requests = objects.iter().zip(come()).map(|(object, (segment, from))| BlockRequest {
        object,
        range: from..segment.end.length,
        // Decoding checks it: the root has a checksum of its own, and each index block and filter a seal.
        check: Check::Later,
    });
    let requests: Vec<_> = requests.collect();
    let mut tails = reader.read(&requests, branch).await?.into_iter();
    Ok(from.iter().map(|from| from.and_then(|_| tails.next())).collect())
}

/// Reads the ends of segments, each from some position on.
pub(crate) async fn read_roots<'a>(
    segments: impl Iterator<Item = (&'a Arc<Segment>, u64)>,
    reader: &Reader,
    branch: &mut Branch,
) -> Result<(), EngineError> {
    let reads = branch.each(segments, |(segment, from), mut line| async move {
        // Another may be reading it: then its answer is waited for.
        let waited = line.wave().next();
        let read = async {
            let range = from..segment.reference.end.length;
            let tail = BlockRequest { object: &segment.object, range, check: Check::Later };
            let tail = reader.read(&[tail], &mut line).await?;
            SegmentIndex::decode(&segment.reference, &tail[0], reader.store().url())
        };
        segment.get_or_read(read).await?;
        line.reached(waited);
        Ok::<_, EngineError>(((), line))
    });
    reads.await.map(drop)
}
