//! The lists of an edge type in one direction as a stream, in the order of sources, whatever runs they are in.
//!
//! A run that nothing changed is handed on as its blocks are decoded, at the decoder's rate. Several runs are merged entry by
//! entry, which costs some ten times as much: compaction is the cure.

use std::{cmp::Reverse, ops::Range, sync::Arc};

use bytes::Bytes;
use futures::future::BoxFuture;
use hoplake_format::adjacency::{Block, Lists};
use hoplake_storage::Branch;

use super::{Ahead, ListRange, MergedScan, Scan, Source};
use crate::{EngineError, Snapshot, merge::ListEntry};

/// A scan of lists, from [`Snapshot::scan_lists`].
pub struct ListScan {
    range: ListRange,
    form: Form,
}

enum Form {
    /// Nothing has such lists.
    None,
    One(Scan),
    Merged {
        scan: MergedScan<ListEntry>,
        /// For each run, whether it names removed pairs.
        removed: Vec<bool>,
        /// Entries of the last source so far, which may go on.
        held_back: Vec<ListEntry>,
    },
}

impl Snapshot {
    /// Scans the lists of a range, reading up to `ahead_bytes` ahead. Nothing is read before the first lists are asked for.
    pub fn scan_lists(self: &Arc<Self>, range: &ListRange, ahead_bytes: u64) -> ListScan {
        let mut runs: Vec<_> = range
            .kinds()
            .into_iter()
            .zip([false, true])
            .flat_map(|(kind, removed)| self.runs(kind).iter().map(move |run| (run, removed)))
            .collect();
        // The newest first, as the merge has it decide. What one version removes and adds of one pair is added.
        runs.sort_by_key(|(run, removed)| (Reverse(run.versions.until), *removed));
        let form = match &runs[..] {
            [] | [(_, true)] => Form::None,
            [(run, false)] => Form::One(Scan::new(self, run, Some(range.sources.clone()), Ahead::of(ahead_bytes, 1))),
            _ => Form::Merged {
                removed: runs.iter().map(|(_, removed)| *removed).collect(),
                held_back: Vec::new(),
                scan: MergedScan::new(
                    runs.into_iter().map(|(run, _)| Source::lists(self, run, range)).collect(),
                    ahead_bytes,
                    ListEntry::by_pair,
                ),
            },
        };
        ListScan { range: range.clone(), form }
    }
}

impl ListScan {
    /// Asks for what is read ahead, and does not wait for it: of scans that are read together, all ask first.
    ///
    /// # Errors
    /// The store's, of index blocks that are not in memory.
    pub fn ask<'a>(&'a mut self, branch: &'a mut Branch) -> BoxFuture<'a, Result<(), EngineError>> {
        Box::pin(async move {
            match &mut self.form {
                Form::None => Ok(()),
                Form::One(scan) => scan.ask(branch).await,
                Form::Merged { scan, .. } => scan.ask(branch).await,
            }
        })
    }

    /// Replaces the contents of `lists` by the next ones; `false` behind the last. Sources ascend. The list of a source may go on
    /// in the lists after. Positions of edges are those in the run that has them, which is not told apart here.
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
                Some(block) => block.decode(lists).map(|()| true),
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
                Form::None => Ok(None),
                Form::One(scan) => {
                    let Some(bytes) = scan.next(branch).await? else { return Ok(None) };
                    let block = Block::parse(&bytes).map_err(|error| scan.damaged(error))?;
                    let (first, last) = (block.first_source(), block.last_source());
                    let sources = first.max(self.range.sources.start)..(last + 1).min(self.range.sources.end);
                    let (edges, goes_on) = (block.edges_len(), block.continues());
                    let form = BlockForm::Stored(bytes, scan.at());
                    Ok(Some(ListBlock { form, sources, edges, goes_on }))
                }
                Form::Merged { scan, removed, held_back } => {
                    let entries = next_entries(scan, removed, held_back, branch).await?;
                    let Some((first, last)) = entries.first().zip(entries.last()) else { return Ok(None) };
                    let sources = first.source..last.source + 1;
                    let mut lists = Lists::default();
                    entries.iter().for_each(|edge| lists.push(edge.source, edge.position, edge.target, true));
                    let goes_on = held_back.first().is_some_and(|next| next.source == last.source);
                    let edges = lists.targets.len();
                    Ok(Some(ListBlock { form: BlockForm::Decoded(lists), sources, edges, goes_on }))
                }
            }
        })
    }
}

/// Some more entries of runs that are merged, of whole lists; or a part of a list that is longer than what is merged at once. None
/// behind the last.
async fn next_entries(
    scan: &mut MergedScan<ListEntry>,
    removed: &[bool],
    held_back: &mut Vec<ListEntry>,
    branch: &mut Branch,
) -> Result<Vec<ListEntry>, EngineError> {
    loop {
        let merged = scan.next(branch).await?;
        let is_ended = merged.is_empty();
        let mut entries = std::mem::take(held_back);
        entries.extend(merged.into_iter().filter(|(run, _)| !removed[*run]).map(|(_, entry)| entry));
        if is_ended {
            return Ok(entries);
        }
        let Some(last) = entries.last().map(|entry| entry.source) else { continue };
        let begin = entries.partition_point(|entry| entry.source < last);
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
    form: BlockForm,
    sources: Range<u64>,
    edges: usize,
    goes_on: bool,
}

#[derive(Debug)]
enum BlockForm {
    /// A block, and where it is from.
    Stored(Bytes, String),
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

    /// Whether its last list may go on in the next block.
    pub fn may_go_on(&self) -> bool {
        self.goes_on
    }

    /// Replaces the contents of `lists` by its lists.
    ///
    /// # Errors
    /// [`EngineError::Format`] if it is damaged.
    pub fn decode(self, lists: &mut Lists) -> Result<(), EngineError> {
        match self.form {
            BlockForm::Stored(bytes, location) => {
                let decoded = Block::parse(&bytes).and_then(|block| block.decode_all(lists));
                decoded.map_err(EngineError::format(location))?;
                // The first and the last block of a range may have others, too.
                lists.keep_sources(&self.sources);
            }
            BlockForm::Decoded(decoded) => *lists = decoded,
        }
        Ok(())
    }
}
