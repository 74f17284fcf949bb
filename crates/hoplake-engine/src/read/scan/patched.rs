//! Lists of an old run with the changes of newer ones.
//!
//! Commits change few of the lists that a load wrote. Merging all runs entry by entry would cost ten times what decoding costs, for lists
//! of which nearly all are as they were. So the newer runs are merged among themselves, into *patches*: of a pair of vertices all edges
//! that it has now, or that it has none. The old run is handed on block by block, each with the patches of its sources. They
//! are applied where the block is decoded, on any thread.

use std::{collections::VecDeque, ops::Range, sync::Arc};

use hoplake_format::{
    FormatError,
    adjacency::{Block, Lists},
};
use hoplake_storage::Branch;

use super::{Ahead, ListBlock, ListRange, MergedScan, Scan, Source, lists::BlockForm};
use crate::{EngineError, Snapshot, read::merge::ListEntry, snapshot::sections::Run};

/// Entries of a block that no block of the old run comes with: behind its last.
const ENTRIES_MAX: usize = 1 << 15;

/// An entry of a newer run, which decides its pair.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patch {
    pub(super) entry: ListEntry,
    /// Whether the pair has no edges.
    pub(super) is_removed: bool,
}

/// A scan of several runs.
pub(super) struct PatchedScan {
    base: Scan,
    sources: Range<u64>,
    newer: MergedScan<ListEntry>,
    /// For each newer run, whether it names removed pairs.
    removed: Vec<bool>,
    /// Patches that were read, and belong to blocks to come.
    patches: VecDeque<Patch>,
    is_ended: bool,
}

impl PatchedScan {
    /// A scan of the oldest run with what newer ones, the newest first, say of its pairs and of others.
    pub(super) fn new(
        snapshot: &Arc<Snapshot>,
        base: &Run,
        newer: &[(&Run, bool)],
        range: &ListRange,
        ahead_bytes: u64,
    ) -> Self {
        let of_newer = newer.iter().map(|(run, _)| Source::lists(snapshot, run, range)).collect();
        Self {
            base: Scan::new(snapshot, base, Some(range.sources.clone()), Ahead::of(ahead_bytes / 2, 1)),
            sources: range.sources.clone(),
            newer: MergedScan::new(of_newer, ahead_bytes / 2, ListEntry::by_pair),
            removed: newer.iter().map(|(_, removed)| *removed).collect(),
            patches: VecDeque::new(),
            is_ended: false,
        }
    }

    pub(super) async fn ask(&mut self, branch: &mut Branch) -> Result<(), EngineError> {
        self.base.ask(branch).await?;
        self.newer.ask(branch).await
    }

    /// Reads patches until all of those of sources up to one are there.
    async fn read_through(&mut self, source: u64, branch: &mut Branch) -> Result<(), EngineError> {
        while !self.is_ended && self.patches.back().is_none_or(|patch| patch.entry.source <= source) {
            let merged = self.newer.next(branch).await?;
            self.is_ended = merged.is_empty();
            let patches = merged.into_iter().map(|(run, entry)| Patch { entry, is_removed: self.removed[run] });
            self.patches.extend(patches);
        }
        Ok(())
    }

    pub(super) async fn next_block(&mut self, branch: &mut Branch) -> Result<Option<ListBlock>, EngineError> {
        // Both ask before either is waited for.
        self.ask(branch).await?;
        let Some(bytes) = self.base.next(branch).await? else { return self.behind(branch).await };
        let block = Block::parse(&bytes).map_err(|error| self.base.damaged(error))?;
        let first = block.first_source();
        let last = block.last_source();
        self.read_through(last, branch).await?;
        let own = self.patches.partition_point(|patch| patch.entry.source <= last);
        let begins = self.patches.front().filter(|_| own > 0).map_or(first, |patch| patch.entry.source.min(first));
        let sources = begins.max(self.sources.start)..(last + 1).min(self.sources.end);
        // A list that goes on gets patches as far as its targets here reach.
        if block.continues() && own.checked_sub(1).is_some_and(|at| self.patches[at].entry.source == last) {
            return self.of_hub(&block, sources, own).map(Some);
        }
        let patches: Vec<Patch> = self.patches.drain(..own).collect();
        let edges = block.edges_len() + patches.len();
        let goes_on = block.continues();
        let form = match patches.is_empty() {
            true => BlockForm::Stored(bytes, self.base.at()),
            false => BlockForm::Patched(bytes, self.base.at(), patches),
        };
        Ok(Some(ListBlock { form, sources, edges, goes_on, weights: Vec::new() }))
    }

    /// A block whose last list goes on in the next, and has `own` patches in all.
    fn of_hub(&mut self, block: &Block<'_>, sources: Range<u64>, own: usize) -> Result<ListBlock, EngineError> {
        let mut lists = Lists::default();
        block.decode_all(&mut lists).map_err(|error| self.base.damaged(error))?;
        let reach = (block.last_source(), lists.targets.last().copied().unwrap_or(0));
        lists.keep_sources(&self.sources);
        let place = |patch: &Patch| (patch.entry.source, patch.entry.target);
        let within = self.patches.iter().take(own).take_while(|patch| place(patch) < reach).count();
        let mut patches: Vec<Patch> = self.patches.drain(..within).collect();
        // Edges of the last pair may go on in the next block: its own come there, and those that it had go here and there.
        let of_last = self.patches.iter().take_while(|patch| place(patch) == reach);
        patches.extend(of_last.map(|patch| Patch { is_removed: true, ..*patch }));
        let lists = patched(&lists, &patches);
        let edges = lists.targets.len();
        Ok(ListBlock { form: BlockForm::Decoded(lists), sources, edges, goes_on: true, weights: Vec::new() })
    }

    /// Lists behind those of the old run.
    async fn behind(&mut self, branch: &mut Branch) -> Result<Option<ListBlock>, EngineError> {
        while !self.is_ended && self.patches.len() <= ENTRIES_MAX {
            let Some(last) = self.patches.back().map(|patch| patch.entry.source) else {
                self.read_through(0, branch).await?;
                continue;
            };
            self.read_through(last, branch).await?;
        }
        let count = self.patches.len().min(ENTRIES_MAX);
        let patches: Vec<Patch> = self.patches.drain(..count).collect();
        let Some((first, last)) = patches.first().zip(patches.last()) else { return Ok(None) };
        let sources = first.entry.source..last.entry.source + 1;
        let goes_on = self.patches.front().is_some_and(|next| next.entry.source == last.entry.source);
        let lists = patched(&Lists::default(), &patches);
        let edges = lists.targets.len();
        Ok(Some(ListBlock { form: BlockForm::Decoded(lists), sources, edges, goes_on, weights: Vec::new() }))
    }
}

/// The lists of a block with their patches.
pub(super) fn decode(bytes: &[u8], sources: &Range<u64>, patches: &[Patch]) -> Result<Lists, FormatError> {
    let mut lists = Lists::default();
    Block::parse(bytes)?.decode_all(&mut lists)?;
    lists.keep_sources(sources);
    Ok(patched(&lists, patches))
}

/// Lists with patches, both of which ascend. What no patch is about is copied as it is.
fn patched(lists: &Lists, patches: &[Patch]) -> Lists {
    let mut result = Lists::default();
    result.targets.reserve(lists.targets.len() + patches.len());
    let mut at = 0;
    for of_source in patches.chunk_by(|a, b| a.entry.source == b.entry.source) {
        let source = of_source[0].entry.source;
        let before = at + lists.sources[at..].partition_point(|other| *other < source);
        append(lists, at..before, &mut result);
        at = before;
        let (targets, first_edge) = match lists.sources.get(at) {
            Some(other) if *other == source => {
                at += 1;
                (&lists.targets[lists.offsets[at - 1]..lists.offsets[at]], lists.first_edges[at - 1])
            }
            _ => (&[][..], 0),
        };
        let mut edges = (first_edge..).zip(targets.iter().copied()).peekable();
        for Patch { entry, is_removed } in of_source {
            while let Some((position, target)) = edges.next_if(|(_, target)| *target < entry.target) {
                result.push(source, position, target, true);
            }
            while edges.next_if(|(_, target)| *target == entry.target).is_some() {}
            if !is_removed {
                result.push(source, entry.position, entry.target, true);
            }
        }
        edges.for_each(|(position, target)| result.push(source, position, target, true));
    }
    append(lists, at..lists.len(), &mut result);
    result
}

/// Copies lists.
fn append(lists: &Lists, which: Range<usize>, result: &mut Lists) {
    let edges = lists.offsets[which.start]..lists.offsets[which.end];
    let shift = result.targets.len();
    result.sources.extend_from_slice(&lists.sources[which.clone()]);
    result.first_edges.extend_from_slice(&lists.first_edges[which.clone()]);
    result.offsets.extend(lists.offsets[which.start + 1..=which.end].iter().map(|offset| offset - edges.start + shift));
    result.targets.extend_from_slice(&lists.targets[edges]);
}
