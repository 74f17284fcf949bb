//! The scan of a run: its blocks as a stream in their order.
//!
//! ```text
//! run ── extents of consecutive blocks, one request each, fetched ahead ──▶ blocks, checked ──▶ a decoder
//! ```
//! Queries read blocks here and there, and plan each wave anew; what goes through a section from one end to the other reads
//! extents of up to [`EXTENT_BYTES`], so that a request costs what its bytes cost. While the blocks of one extent are decoded the
//! next are on their way, as many as the scan's share of a budget of bytes allows. Blocks that are in memory are taken from
//! there. Blocks of extents are not put there: a scan would push out what queries come back to.
//!
//! An extent is checked block by block. A block that fails is read again by itself, as queries read it, with repetitions: an
//! answer may have been damaged on its way, and only what fails then is damage.
//!
//! **Waves.** Several scans that are merged are one line of work, and are passed one [`Branch`]. An extent that is asked for comes
//! in the wave after the last that the line waited for, whichever of the scans it belongs to.

use std::{collections::VecDeque, ops::Range, sync::Arc};

use bytes::Bytes;
use hoplake_format::{FormatError, VersionRange, segment::IndexBlock};
use hoplake_storage::{BlockRequest, Branch, Check, Object, StorageError};
use tokio::task::JoinHandle;

use crate::{
    EngineError, Snapshot,
    index::{IndexLocation, Run, SectionLocation},
};

/// The most that one request reads: at 55 MiB/s a stream, 73 ms against a first byte of 25.
pub(crate) const EXTENT_BYTES: u64 = 4 << 20;

/// The least, where many scans share a budget: three times the price of its bytes' time.
const EXTENT_BYTES_MIN: u64 = 64 << 10;

/// Extents of one scan that are on their way at once, at most.
const EXTENTS_MAX: u64 = 8;

/// Index blocks that are read together, if they are not in memory: of 256 MiB of lists.
const INDEX_BLOCKS_AHEAD: usize = 8;

/// How far a scan reads ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ahead {
    extent_bytes: u64,
    /// Pieces that are on their way while one is decoded.
    extents: u64,
}

impl Ahead {
    /// The share of a budget that each of some scans has which go side by side.
    pub(crate) fn of(budget_bytes: u64, scans: usize) -> Self {
        let share = budget_bytes / scans.max(1) as u64;
        let extent_bytes = (share / 2).clamp(EXTENT_BYTES_MIN, EXTENT_BYTES);
        Self { extent_bytes, extents: (share / extent_bytes).saturating_sub(1).clamp(1, EXTENTS_MAX) }
    }
}

/// The blocks of a run, in their order.
pub(crate) struct Scan {
    snapshot: Arc<Snapshot>,
    run: Run,
    ahead: Ahead,
    /// The section whose blocks are asked for, as its number in the run, and how many of its index blocks were begun.
    section: usize,
    begun: usize,
    /// Index blocks whose blocks are asked for now and next.
    index: VecDeque<(SectionLocation, IndexBlock)>,
    /// Which blocks of the first of these were not asked for yet.
    left: Range<usize>,
    coming: VecDeque<(SectionLocation, Extent)>,
    here: VecDeque<Bytes>,
    /// Where the blocks that are here are from.
    location: Option<SectionLocation>,
}

/// Consecutive blocks.
enum Extent {
    InMemory(VecDeque<Bytes>),
    OnItsWay(Fetch),
}

/// Blocks that are being read. Dropping it ends the request.
struct Fetch(JoinHandle<Result<(VecDeque<Bytes>, Branch), EngineError>>);

impl Drop for Fetch {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Scan {
    /// All blocks of a run.
    pub(crate) fn new(snapshot: &Arc<Snapshot>, run: &Run, ahead: Ahead) -> Self {
        Self {
            snapshot: snapshot.clone(),
            run: run.clone(),
            ahead,
            section: 0,
            begun: 0,
            index: VecDeque::new(),
            left: 0..0,
            coming: VecDeque::new(),
            here: VecDeque::new(),
            location: None,
        }
    }

    /// The versions whose changes it reads.
    pub(crate) fn versions(&self) -> VersionRange {
        self.run.versions
    }

    /// That a block it gave is damaged.
    pub(crate) fn damaged(&self, error: FormatError) -> EngineError {
        let store = self.snapshot.reader().store();
        let location = self.location.map(|location| store.location(self.snapshot.segment_of(location).name()));
        EngineError::format(location.unwrap_or_else(|| store.url().to_owned()))(error)
    }

    /// The payload of the next block; `None` behind the last.
    pub(crate) async fn next(&mut self, branch: &mut Branch) -> Result<Option<Bytes>, EngineError> {
        loop {
            if let Some(block) = self.here.pop_front() {
                return Ok(Some(block));
            }
            self.ask(branch).await?;
            let Some((location, extent)) = self.coming.pop_front() else { return Ok(None) };
            self.location = Some(location);
            self.here = match extent {
                Extent::InMemory(blocks) => blocks,
                Extent::OnItsWay(mut fetch) => {
                    let (blocks, came) = (&mut fetch.0).await.map_err(stopped)??;
                    branch.join([&came]);
                    blocks
                }
            };
        }
    }

    /// Asks for as many extents as may be on their way. Scans that are merged all ask before the first is waited for.
    pub(crate) async fn ask(&mut self, branch: &mut Branch) -> Result<(), EngineError> {
        // One more than come while an extent is decoded: the caller takes the first.
        while (self.coming.len() as u64) <= self.ahead.extents {
            if self.left.is_empty() && !self.next_index_block(branch).await? {
                return Ok(());
            }
            let Some((location, index)) = self.index.front() else { return Ok(()) };
            let (blocks, extent) =
                next_extent(&self.snapshot, *location, index, self.left.clone(), self.ahead, branch)?;
            self.left.start = blocks.end;
            self.coming.push_back((*location, extent));
        }
        Ok(())
    }

    /// Goes on to the next index block, and reads it and some after it if it is not in memory.
    async fn next_index_block(&mut self, branch: &mut Branch) -> Result<bool, EngineError> {
        self.index.pop_front();
        while self.index.is_empty() {
            let Some(location) = self.run.location(self.section) else { return Ok(false) };
            self.snapshot.make_resident([location], branch).await?;
            let until = self.snapshot.section(location)?.index_len().min(self.begun + INDEX_BLOCKS_AHEAD);
            let wanted: Vec<_> =
                (self.begun..until).map(|number| IndexLocation { section: location, number }).collect();
            let mut found = vec![None; wanted.len()];
            let take = |number: usize, block: &IndexBlock| {
                found[number] = Some(block.clone());
                Ok(())
            };
            self.snapshot.each_index_block(&wanted, branch, take).await?;
            self.index.extend(found.into_iter().flatten().map(|block| (location, block)));
            self.begun = until;
            if wanted.is_empty() {
                (self.section, self.begun) = (self.section + 1, 0);
            }
        }
        self.left = 0..self.index.front().map_or(0, |(_, block)| block.len());
        Ok(true)
    }
}

fn stopped(error: tokio::task::JoinError) -> EngineError {
    EngineError::Internal(format!("a scan stopped: {error}"))
}

/// The extent that the first of some blocks begins: those that are in memory, or those that are not, up to the longest.
fn next_extent(
    snapshot: &Arc<Snapshot>,
    location: SectionLocation,
    index: &IndexBlock,
    left: Range<usize>,
    ahead: Ahead,
    branch: &Branch,
) -> Result<(Range<usize>, Extent), EngineError> {
    let (section, reader) = (snapshot.section(location)?, snapshot.reader());
    let end = index.range(left.start).start + ahead.extent_bytes;
    let fits = |block: usize| block == left.start || index.range(block).end <= end;
    let request = |block: usize| section.request(index.range(block));
    let near = |block: usize| reader.is_in_memory(&request(block));
    let begins_near = near(left.start);
    let count = left.clone().take_while(|block| fits(*block) && near(*block) == begins_near).count();
    let blocks = left.start..left.start + count;
    if begins_near {
        let here = blocks.clone().map(|block| reader.in_memory(&request(block), branch.context()));
        // Unless another has pushed one of them out since.
        if let Some(here) = here.collect() {
            return Ok((blocks, Extent::InMemory(here)));
        }
    }
    // Numbered apart from the section's object: what it asks for are extents, and nobody who wants a block may join in.
    let object = reader.object(&section.object.name);
    let fetch = fetch(snapshot.clone(), location, object, index.clone(), blocks.clone(), branch.clone());
    Ok((blocks, Extent::OnItsWay(Fetch(tokio::spawn(fetch)))))
}

/// Reads consecutive blocks with one request, and again by themselves those that came damaged.
async fn fetch(
    snapshot: Arc<Snapshot>,
    location: SectionLocation,
    object: Object,
    index: IndexBlock,
    blocks: Range<usize>,
    mut branch: Branch,
) -> Result<(VecDeque<Bytes>, Branch), EngineError> {
    let (section, reader) = (snapshot.section(location)?, snapshot.reader());
    let range = index.range(blocks.start).start..index.range(blocks.end - 1).end;
    let extent = BlockRequest { object: &object, range: range.clone(), check: Check::Later };
    let extents = reader.read(&[extent], &mut branch).await?;
    let mut payloads = VecDeque::with_capacity(blocks.len());
    for block in blocks {
        let request = section.request(index.range(block));
        let within = (request.range.start - range.start) as usize..(request.range.end - range.start) as usize;
        let payload = match reader.open(&request, &extents[0].slice(within)) {
            Ok(payload) => payload,
            Err(StorageError::Corrupt { .. }) => reader.read(&[request], &mut branch).await?.swap_remove(0),
            Err(error) => return Err(error.into()),
        };
        payloads.push_back(payload);
    }
    Ok((payloads, branch))
}
