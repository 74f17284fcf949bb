//! Pages for a scan: neighbours with one request, and past the caches.

use std::collections::HashMap;

use bytes::Bytes;
use hoplake_storage::{BlockRequest, Branch, Check, Reader, StorageError};

use crate::EngineError;

/// The most that one request reads: at 55 MiB/s a stream, 73 ms against a first byte of 25.
pub(crate) const EXTENT_BYTES: u64 = 4 << 20;

/// Pages that are this near are read with one request: at 55 MiB/s a stream, the gap is 1.1 ms against a 25 ms first byte.
const GAP_BYTES: u64 = 64 << 10;

/// Reads pages, in one wave. Those in memory are taken from there; a page that came damaged is read again by itself, since it may
/// have been damaged on its way.
pub(super) async fn read(
    reader: &Reader,
    pages: &[BlockRequest<'_>],
    branch: &mut Branch,
) -> Result<Vec<Bytes>, EngineError> {
    if reader.is_mapped() {
        return Ok(reader.read(pages, branch).await?);
    }
    let near: Vec<_> = pages.iter().map(|page| reader.in_memory(page, branch.context())).collect();
    let away: Vec<usize> = (0..pages.len()).filter(|page| near[*page].is_none()).collect();
    // Numbered apart from the objects of queries: nobody who wants a page may join in a request for an extent.
    let mut objects = HashMap::new();
    for page in &away {
        let object = pages[*page].object;
        objects.entry(&*object.name).or_insert_with(|| reader.object(&object.name));
    }
    let together = |a: &usize, b: &usize| {
        let a = &pages[*a];
        let b = &pages[*b];
        a.object.name == b.object.name && b.range.start >= a.range.end && b.range.start - a.range.end <= GAP_BYTES
    };
    let extents: Vec<&[usize]> = away.chunk_by(together).flat_map(|run| at_most(run, pages)).collect();
    let request = |extent: &&[usize]| {
        let first = &pages[extent[0]];
        let last = &pages[extent[extent.len() - 1]];
        let object = &objects[&*first.object.name];
        BlockRequest { object, range: first.range.start..last.range.end, check: Check::Later }
    };
    let requests: Vec<_> = extents.iter().map(request).collect();
    let stored = reader.read(&requests, branch).await?;
    let mut payloads: Vec<Bytes> = near.into_iter().map(Option::unwrap_or_default).collect();
    for ((extent, request), stored) in extents.iter().zip(&requests).zip(stored) {
        for page in *extent {
            let wanted = &pages[*page];
            let within = |at: u64| (at - request.range.start) as usize;
            let bytes = stored.slice(within(wanted.range.start)..within(wanted.range.end));
            payloads[*page] = match reader.open(wanted, &bytes) {
                Ok(payload) => payload,
                Err(StorageError::Corrupt { .. }) => {
                    reader.read(std::slice::from_ref(wanted), branch).await?.swap_remove(0)
                }
                Err(error) => return Err(error.into()),
            };
        }
    }
    Ok(payloads)
}

/// Cuts neighbours into extents of no more bytes than one request should read.
fn at_most<'a>(mut run: &'a [usize], pages: &[BlockRequest<'_>]) -> Vec<&'a [usize]> {
    let mut extents = Vec::new();
    while let Some(first) = run.first() {
        let end = pages[*first].range.start + EXTENT_BYTES;
        let count = run.partition_point(|page| pages[*page].range.end <= end).max(1);
        extents.push(&run[..count]);
        run = &run[count..];
    }
    extents
}
