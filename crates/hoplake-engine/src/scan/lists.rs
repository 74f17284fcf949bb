//! The lists of an edge type in one direction as a stream, in the order of sources, whatever runs they are in.
//!
//! A run that nothing changed is handed on as its blocks are decoded, at the decoder's rate. Several runs are merged entry by
//! entry, which costs some ten times as much: compaction is the cure.

use std::{cmp::Reverse, sync::Arc};

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
            match &mut self.form {
                Form::None => Ok(false),
                Form::One(scan) => {
                    let Some(block) = scan.next(branch).await? else { return Ok(false) };
                    let decoded = Block::parse(&block).and_then(|block| block.decode_all(lists));
                    decoded.map_err(|error| scan.damaged(error))?;
                    // The first and the last block may have others, too.
                    lists.keep_sources(&self.range.sources);
                    Ok(true)
                }
                Form::Merged { scan, removed } => {
                    let entries = scan.next(branch).await?;
                    let kept = entries.iter().filter(|(run, _)| !removed[*run]);
                    kept.for_each(|(_, edge)| lists.push(edge.source, edge.position, edge.target, true));
                    Ok(!entries.is_empty())
                }
            }
        })
    }
}
