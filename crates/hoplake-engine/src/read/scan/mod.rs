//! The scan of a run: its blocks, or those of a range of its sources, as a stream in their order.
//!
//! ```text
//! run ── extents of consecutive blocks, one request each, fetched ahead ──▶ blocks, checked ──▶ a decoder
//! ```
//! Queries read blocks here and there, and plan each wave anew; what goes through a section from one end to the other reads
//! extents of up to 4 MiB, so that a request costs what its bytes cost. While the blocks of one extent are decoded the
//! next are on their way, as many as the scan's share of a budget of bytes allows ([`Ahead`]). Blocks that are in memory are
//! taken from there. Blocks of extents are not put there: a scan would push out what queries come back to.
//!
//! [`MergedScan`] reads several runs as one, and a [`ListRange`] names the lists that it reads; compactions and differences go
//! through it. Verification reads past memory and caches, and shares [`Ahead`] and [`OnItsWay`] only.
//!
//! An extent is checked block by block. A block that fails is read again by itself, as queries read it, with repetitions: an
//! answer may have been damaged on its way, and only what fails then is damage.
//!
//! **Waves.** Several scans that are merged are one line of work, and are passed one [`Branch`]. An extent that is asked for
//! comes in the wave after the last that the line waited for, whichever of the scans it belongs to.

mod ahead;
mod dense_ids;
mod edges;
mod keys;
mod lists;
mod merged;
mod patched;
mod range;
#[cfg(test)]
mod tests;
mod vertices;
mod weights;
#[cfg(test)]
pub(crate) mod written;

use std::{collections::VecDeque, ops::Range, sync::Arc};

use bytes::Bytes;
use hoplake_format::{
    FormatError,
    adjacency::{Block, Lists},
    segment::IndexBlock,
};
use hoplake_storage::{BlockRequest, Branch, Check, Object, StorageError};

use crate::{
    EngineError, Snapshot,
    read::merge::ListEntry,
    snapshot::sections::{IndexLocation, Run, Section, SectionLocation},
};

pub(crate) use ahead::{Ahead, OnItsWay};
pub use dense_ids::DenseIds;
pub use edges::{EdgeQuery, EdgeScan, SOURCE_COLUMN, TARGET_COLUMN};
pub use keys::KeyScan;
pub use lists::{ListBlock, ListScan};
pub(crate) use merged::{Decode, MergedScan, Order, Source};
pub use range::ListRange;
pub use vertices::{FoundVertices, SortedBy, VertexQuery, VertexScan, first_rows};

/// Index blocks that are read together, if they are not in memory: of 256 MiB of lists.
const INDEX_BLOCKS_AHEAD: usize = 8;

/// The blocks of a run, in their order.
pub(crate) struct Scan {
    snapshot: Arc<Snapshot>,
    run: Run,
    /// Of which sources, if it is of lists and not of all.
    sources: Option<Range<u64>>,
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
    /// What of a mapped file is behind the scan, and will not be needed.
    behind: Option<(SectionLocation, Range<u64>)>,
    /// Where the blocks that are here are from.
    location: Option<SectionLocation>,
}

/// Consecutive blocks.
enum Extent {
    InMemory(VecDeque<Bytes>),
    /// Blocks of a mapped file.
    Mapped(IndexBlock, Range<usize>),
    OnItsWay(OnItsWay<(VecDeque<Bytes>, Branch)>),
}

impl Scan {
    /// All blocks of a run; or, of a run of lists, those that may have some sources. The first and the last of these may have
    /// others, too.
    pub(crate) fn new(snapshot: &Arc<Snapshot>, run: &Run, sources: Option<Range<u64>>, ahead: Ahead) -> Self {
        Self {
            snapshot: snapshot.clone(),
            run: run.clone(),
            section: sources.as_ref().map_or(0, |sources| run.pieces_of_source(sources.start).start),
            sources,
            ahead,
            begun: 0,
            index: VecDeque::new(),
            left: 0..0,
            coming: VecDeque::new(),
            here: VecDeque::new(),
            behind: None,
            location: None,
        }
    }

    /// That a block it gave is damaged.
    pub(crate) fn damaged(&self, error: FormatError) -> EngineError {
        EngineError::format(self.at())(error)
    }

    /// Which object the blocks that are here are from.
    fn at(&self) -> String {
        let store = self.snapshot.reader().store();
        let location =
            self.location.map(|location| store.location(self.snapshot.sections().segment_of(location).name()));
        location.unwrap_or_else(|| store.url().to_owned())
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
                Extent::Mapped(index, blocks) => self.mapped(location, &index, blocks, branch).await?,
                Extent::OnItsWay(coming) => {
                    let (blocks, came) = coming.arrived().await?;
                    branch.join([&came]);
                    blocks
                }
            };
        }
    }

    /// Consecutive blocks of a mapped file. What they took of the page cache is given back when the next are asked for, unless it
    /// is of the part that scans keep there.
    async fn mapped(
        &mut self,
        location: SectionLocation,
        index: &IndexBlock,
        blocks: Range<usize>,
        branch: &mut Branch,
    ) -> Result<VecDeque<Bytes>, EngineError> {
        let section = self.snapshot.sections().section(location)?;
        let reader = self.snapshot.reader();
        let range = index.range(blocks.start).start..index.range(blocks.end - 1).end;
        if let Some((behind, range)) = self.behind.take() {
            reader.will_not_need(self.snapshot.sections().section(behind)?.object, range);
        }
        let kept = section.root().blocks().start + reader.pool().settings().scan_keeps_bytes;
        if range.start >= kept {
            self.behind = Some((location, range));
        }
        let requests: Vec<_> = blocks.map(|block| section.request(index.range(block))).collect();
        // Each by itself: together they would be advised again.
        let mut payloads = VecDeque::with_capacity(requests.len());
        for request in requests {
            payloads.push_back(match reader.in_memory(&request, branch.context()) {
                Some(payload) => payload,
                None => reader.read(&[request], branch).await?.swap_remove(0),
            });
        }
        Ok(payloads)
    }

    /// The first source of each block and the bytes that it takes, from index blocks alone. The scan is at its end then.
    pub(crate) async fn sizes(&mut self, branch: &mut Branch) -> Result<Vec<(u64, u64)>, EngineError> {
        let mut sizes = Vec::new();
        while self.next_index_block(branch).await? {
            let left = std::mem::take(&mut self.left);
            let Some((_, index)) = self.index.front() else { continue };
            sizes.extend(left.map(|block| {
                let bytes = index.range(block);
                (index.number(block), bytes.end - bytes.start)
            }));
        }
        Ok(sizes)
    }

    /// Asks for as many extents as may be on their way. Scans that are merged all ask before the first is waited for.
    pub(crate) async fn ask(&mut self, branch: &mut Branch) -> Result<(), EngineError> {
        while self.coming.len() < self.ahead.extents_at_once() {
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

    /// Goes on to the next index block that has blocks of the scan, and reads it and some after it if it is not in memory.
    async fn next_index_block(&mut self, branch: &mut Branch) -> Result<bool, EngineError> {
        loop {
            self.index.pop_front();
            while self.index.is_empty() {
                if !self.read_index(branch).await? {
                    return Ok(false);
                }
            }
            self.left = self.index.front().map_or(0..0, |(_, block)| self.blocks_within(block));
            if !self.left.is_empty() {
                return Ok(true);
            }
        }
    }

    /// Reads some more index blocks, or goes on to the next section; `false` behind the last.
    async fn read_index(&mut self, branch: &mut Branch) -> Result<bool, EngineError> {
        let is_behind = |first: u64| self.sources.as_ref().is_some_and(|sources| first >= sources.end);
        let location =
            self.run.location(self.section).filter(|_| !self.run.first_source(self.section).is_some_and(is_behind));
        let Some(location) = location else { return Ok(false) };
        // The root of a large segment comes with its first use, and a section may go on over many.
        self.snapshot.sections().make_resident([location], branch).await?;
        let within = self.indexes_within(&self.snapshot.sections().section(location)?);
        let from = self.begun.max(within.start);
        let until = within.end.min(from + INDEX_BLOCKS_AHEAD);
        let wanted: Vec<_> = (from..until).map(|number| IndexLocation { section: location, number }).collect();
        if wanted.is_empty() {
            (self.section, self.begun) = (self.section + 1, 0);
            return Ok(true);
        }
        let mut found = vec![None; wanted.len()];
        let take = |number: usize, block: &IndexBlock| {
            found[number] = Some(block.clone());
            Ok(())
        };
        self.snapshot.sections().each_index_block(&wanted, branch, take).await?;
        self.index.extend(found.into_iter().flatten().map(|block| (location, block)));
        self.begun = until;
        Ok(true)
    }

    /// The index blocks of a section that may name blocks of the scan.
    fn indexes_within(&self, section: &Section<'_>) -> Range<usize> {
        let (Some(sources), root) = (&self.sources, section.root()) else { return 0..section.index_len() };
        // A hub's list may begin in one index block and go on in the next: both name it, and so all that may are taken.
        let before_end = sources.end.checked_sub(1).map_or(0, |last| root.index_of_source(last).end);
        root.index_of_source(sources.start).start..before_end
    }

    /// The blocks of an index block that belong to the scan.
    fn blocks_within(&self, index: &IndexBlock) -> Range<usize> {
        let Some(sources) = &self.sources else { return 0..index.len() };
        index.blocks_of_source(sources.start).start..index.partition_point(|block| index.number(block) < sources.end)
    }
}

/// The entries of a block of lists that are of some sources.
pub(crate) fn decode_lists(block: &[u8], sources: &Range<u64>) -> Result<Vec<ListEntry>, FormatError> {
    let mut lists = Lists::default();
    Block::parse(block)?.decode_all(&mut lists)?;
    Ok(ListEntry::all(&lists).filter(|entry| sources.contains(&entry.source)).collect())
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
    let section = snapshot.sections().section(location)?;
    let reader = snapshot.reader();
    let end = index.range(left.start).start + ahead.extent_bytes();
    let fits = |block: usize| block == left.start || index.range(block).end <= end;
    let request = |block: usize| section.request(index.range(block));
    let near = |block: usize| reader.is_in_memory(&request(block));
    if reader.is_mapped() {
        let blocks = left.start..left.start + left.clone().take_while(|block| fits(*block)).count();
        reader.will_need(section.object, index.range(blocks.start).start..index.range(blocks.end - 1).end);
        return Ok((blocks.clone(), Extent::Mapped(index.clone(), blocks)));
    }
    let begins_near = near(left.start);
    let count = left.clone().take_while(|block| fits(*block) && near(*block) == begins_near).count();
    let blocks = left.start..left.start + count;
    // An extent is of one kind: of blocks that are in memory no byte is asked for again.
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
    Ok((blocks, Extent::OnItsWay(OnItsWay::begin(fetch))))
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
    let section = snapshot.sections().section(location)?;
    let reader = snapshot.reader();
    let range = index.range(blocks.start).start..index.range(blocks.end - 1).end;
    let extent = BlockRequest { object: &object, range: range.clone(), check: Check::Later };
    let extents = reader.read(&[extent], &mut branch).await?;
    let mut payloads = VecDeque::with_capacity(blocks.len());
    for block in blocks {
        let request = section.request(index.range(block));
        let within = (request.range.start - range.start) as usize..(request.range.end - range.start) as usize;
        let payload = match reader.open(&request, &extents[0].slice(within)) {
            Ok(payload) => payload,
            // By itself and with repetitions, as queries read it.
            Err(StorageError::Corrupt { .. }) => reader.read(&[request], &mut branch).await?.swap_remove(0),
            Err(error) => return Err(error.into()),
        };
        payloads.push_back(payload);
    }
    Ok((payloads, branch))
}
