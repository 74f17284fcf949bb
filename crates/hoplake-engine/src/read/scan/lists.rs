//! The lists of an edge type in one direction as a stream, in the order of sources, whatever runs they are in.
//!
//! A run that nothing changed is handed on as its blocks are decoded, at the decoder's rate. Of several runs the oldest is handed on
//! so, with what newer ones have changed ([`super::patched`]). With weights, runs are merged entry by entry, which costs some ten times
//! as much: compaction is the cure.

use std::{ops::Range, sync::Arc};

use bytes::Bytes;
use futures::future::BoxFuture;
use hoplake_format::adjacency::{Block, Lists};
use hoplake_storage::Branch;

use super::{
    Ahead, ListRange, MergedScan, Scan, Source,
    patched::{self, Patch, PatchedScan},
    weights::WeightScan,
};
use crate::{
    EngineError, Snapshot,
    read::{merge::ListEntry, weights::check_weight},
    snapshot::sections::Run,
};

/// A scan of lists, from [`Snapshot::scan_lists`].
pub struct ListScan {
    range: ListRange,
    form: ScanStrategy,
    /// Of each run, if they were asked for.
    weights: Option<Vec<WeightScan>>,
}

/// How the runs with such lists are read.
enum ScanStrategy {
    /// Nothing has such lists.
    None,
    One(Scan),
    Patched(PatchedScan),
    Merged {
        scan: MergedScan<ListEntry>,
        /// For each run, whether it names removed pairs.
        removed: Vec<bool>,
        /// Entries of the last source so far, which may go on.
        held_back: Vec<(usize, ListEntry)>,
    },
}

impl Snapshot {
    /// Scans the lists of a range, reading up to `ahead_bytes` ahead. Nothing is read before the first lists are asked for.
    pub fn scan_lists(self: &Arc<Self>, range: &ListRange, ahead_bytes: u64) -> ListScan {
        let mut runs = runs_of(self, range);
        // What is older than all lists has removed nothing of them.
        while runs.pop_if(|(_, removed)| *removed).is_some() {}
        let form = match &runs[..] {
            [] => ScanStrategy::None,
            [(run, _)] => {
                ScanStrategy::One(Scan::new(self, run, Some(range.sources.clone()), Ahead::of(ahead_bytes, 1)))
            }
            [newer @ .., (oldest, _)] => {
                ScanStrategy::Patched(PatchedScan::new(self, oldest, newer, range, ahead_bytes))
            }
        };
        ListScan { range: range.clone(), form, weights: None }
    }

    /// How large the stored lists of a range are: the first source of each block with the bytes of the block, ascending by source. What commits
    /// removed is not taken off. Reads index blocks alone.
    ///
    /// # Errors
    /// The store's.
    pub async fn list_sizes(
        self: &Arc<Self>,
        range: &ListRange,
        branch: &mut Branch,
    ) -> Result<Vec<(u64, u64)>, EngineError> {
        let mut sizes = Vec::new();
        for (run, _) in runs_of(self, range) {
            let mut scan = Scan::new(self, run, Some(range.sources.clone()), Ahead::of(0, 1));
            sizes.extend(scan.sizes(branch).await?);
        }
        sizes.sort_unstable();
        Ok(sizes)
    }

    /// As [`Self::scan_lists`], with a property of each edge as its weight.
    ///
    /// # Errors
    /// [`EngineError::NotFound`] if the edges have no such property; [`EngineError::Invalid`] if it is not a number.
    pub fn scan_weighted_lists(
        self: &Arc<Self>,
        range: &ListRange,
        property: &str,
        ahead_bytes: u64,
    ) -> Result<ListScan, EngineError> {
        if let Some(edge_type) = self.schema().edge_type(range.edge_type) {
            check_weight(edge_type, property)?;
        }
        let runs = runs_of(self, range);
        let weights = Some(runs.iter().map(|(run, _)| WeightScan::new(self, range, run, property)).collect());
        if runs.len() < 2 {
            return Ok(ListScan { weights, ..self.scan_lists(range, ahead_bytes) });
        }
        // An edge's weight is where its run has it, so that each entry names its run.
        let form = ScanStrategy::Merged {
            removed: runs.iter().map(|(_, removed)| *removed).collect(),
            held_back: Vec::new(),
            scan: MergedScan::new(
                runs.into_iter().map(|(run, _)| Source::lists(self, run, range)).collect(),
                ahead_bytes,
                ListEntry::by_pair,
            ),
        };
        Ok(ListScan { range: range.clone(), form, weights })
    }
}

/// The runs that have entries of a range, and whether they name removed pairs.
fn runs_of<'a>(snapshot: &'a Snapshot, range: &ListRange) -> Vec<(&'a Run, bool)> {
    let kinds = range.kinds();
    snapshot.sections().runs_newest_first(&kinds).into_iter().map(|(kind, run)| (run, kind == kinds[1])).collect()
}

impl ListScan {
    /// Asks for what is read ahead, and does not wait for it: of scans that are read together, all ask first.
    ///
    /// # Errors
    /// The store's, of index blocks that are not in memory.
    pub fn ask<'a>(&'a mut self, branch: &'a mut Branch) -> BoxFuture<'a, Result<(), EngineError>> {
        Box::pin(async move {
            match &mut self.form {
                ScanStrategy::None => Ok(()),
                ScanStrategy::One(scan) => scan.ask(branch).await,
                ScanStrategy::Patched(scan) => scan.ask(branch).await,
                ScanStrategy::Merged { scan, .. } => scan.ask(branch).await,
            }
        })
    }

    /// Replaces the contents of `lists` by the next ones; `false` behind the last. Sources ascend. The list of a source
    /// may go on in the lists after. Positions of edges are those in the run that has them; lists do not name that run.
    ///
    /// # Errors
    /// The store's; [`EngineError::Format`] if a block is damaged.
    pub fn next<'a>(
        &'a mut self,
        lists: &'a mut Lists,
        branch: &'a mut Branch,
    ) -> BoxFuture<'a, Result<bool, EngineError>> {
        Box::pin(async move {
            lists.clear();
            match self.next_block(branch).await? {
                Some(block) => block.decode(lists).map(|_| true),
                None => Ok(false),
            }
        })
    }

    /// The next lists as they are stored, where a run can be handed on as it is; `None` behind the last. What they are is the
    /// same as of [`Self::next`]; several of them can be decoded at once, on any thread.
    ///
    /// # Errors
    /// The store's; [`EngineError::Format`] if a block is damaged.
    pub fn next_block<'a>(
        &'a mut self,
        branch: &'a mut Branch,
    ) -> BoxFuture<'a, Result<Option<ListBlock>, EngineError>> {
        Box::pin(async move {
            match &mut self.form {
                ScanStrategy::None => Ok(None),
                ScanStrategy::One(scan) => {
                    let Some(bytes) = scan.next(branch).await? else { return Ok(None) };
                    let block = Block::parse(&bytes).map_err(|error| scan.damaged(error))?;
                    let first = block.first_source();
                    let last = block.last_source();
                    let sources = first.max(self.range.sources.start)..(last + 1).min(self.range.sources.end);
                    let edges = block.edges_len();
                    let goes_on = block.continues();
                    let positions = block.first_edge()..block.first_edge() + edges as u64;
                    let form = BlockForm::Stored(bytes, scan.at());
                    let mut weights = Vec::new();
                    if let Some(own) = self.weights.iter_mut().flatten().next() {
                        own.take(positions, &mut weights, branch).await?;
                    }
                    Ok(Some(ListBlock { form, sources, edges, goes_on, weights }))
                }
                ScanStrategy::Patched(scan) => scan.next_block(branch).await,
                ScanStrategy::Merged { scan, removed, held_back } => {
                    let entries = next_entries(scan, removed, held_back, branch).await?;
                    let Some(((_, first), (_, last))) = entries.first().zip(entries.last()) else { return Ok(None) };
                    let sources = first.source..last.source + 1;
                    let goes_on = held_back.first().is_some_and(|(_, next)| next.source == last.source);
                    let mut lists = Lists::default();
                    entries.iter().for_each(|(_, edge)| lists.push(edge.source, edge.position, edge.target, true));
                    let mut weights = Vec::new();
                    if let Some(own) = &mut self.weights {
                        for (run, edge) in &entries {
                            own[*run].take([edge.position].into_iter(), &mut weights, branch).await?;
                        }
                    }
                    let edges = lists.targets.len();
                    Ok(Some(ListBlock { form: BlockForm::Decoded(lists), sources, edges, goes_on, weights }))
                }
            }
        })
    }
}

/// Some more entries, with their runs, of runs that are merged, of whole lists; or a part of a list that is longer than what is merged at once. None
/// behind the last.
async fn next_entries(
    scan: &mut MergedScan<ListEntry>,
    removed: &[bool],
    held_back: &mut Vec<(usize, ListEntry)>,
    branch: &mut Branch,
) -> Result<Vec<(usize, ListEntry)>, EngineError> {
    loop {
        let merged = scan.next(branch).await?;
        let is_ended = merged.is_empty();
        let mut entries = std::mem::take(held_back);
        entries.extend(merged.into_iter().filter(|(run, _)| !removed[*run]));
        if is_ended {
            return Ok(entries);
        }
        let Some(last) = entries.last().map(|(_, entry)| entry.source) else { continue };
        let begin = entries.partition_point(|(_, entry)| entry.source < last);
        // Of a list that is all there is, the last entry says whether it goes on.
        *held_back = entries.split_off(if begin == 0 { entries.len() - 1 } else { begin });
        if !entries.is_empty() {
            return Ok(entries);
        }
    }
}

/// Consecutive lists of a scan.
#[derive(Debug)]
pub struct ListBlock {
    pub(super) form: BlockForm,
    pub(super) sources: Range<u64>,
    pub(super) edges: usize,
    pub(super) goes_on: bool,
    pub(super) weights: Vec<f64>,
}

#[derive(Debug)]
pub(super) enum BlockForm {
    /// A block, and where it is from.
    Stored(Bytes, String),
    /// The same, with what newer runs say of its sources.
    Patched(Bytes, String, Vec<Patch>),
    Decoded(Lists),
}

impl ListBlock {
    /// A range that has all of its sources. The range of the next block begins behind this one, or with its last source.
    pub fn sources(&self) -> Range<u64> {
        self.sources.clone()
    }

    /// How many edges it has, or a few more.
    pub fn edges(&self) -> usize {
        self.edges
    }

    /// The block, if it is handed on as it is stored.
    pub fn stored(&self) -> Option<&Bytes> {
        match &self.form {
            BlockForm::Stored(bytes, _) => Some(bytes),
            BlockForm::Patched(..) | BlockForm::Decoded(_) => None,
        }
    }

    /// Whether its last list may go on in the next block.
    pub fn may_go_on(&self) -> bool {
        self.goes_on
    }

    /// Replaces the contents of `lists` by its lists, and returns the weights of their edges if they were asked for.
    ///
    /// # Errors
    /// [`EngineError::Format`] if it is damaged.
    pub fn decode(mut self, lists: &mut Lists) -> Result<Vec<f64>, EngineError> {
        match self.form {
            BlockForm::Stored(bytes, location) => {
                let decoded =
                    Block::parse(&bytes).and_then(|block| block.decode_all(lists).map(|()| block.first_edge()));
                let first_edge = decoded.map_err(EngineError::format(location))?;
                // The first and the last block of a range may have others, too.
                lists.keep_sources(&self.sources);
                if !self.weights.is_empty() {
                    let before = lists.first_edges.first().map_or(0, |first| first - first_edge);
                    self.weights.drain(..before as usize);
                    self.weights.truncate(lists.targets.len());
                }
            }
            BlockForm::Patched(bytes, location, patches) => {
                *lists = patched::decode(&bytes, &self.sources, &patches).map_err(EngineError::format(location))?;
            }
            BlockForm::Decoded(decoded) => *lists = decoded,
        }
        Ok(self.weights)
    }
}
