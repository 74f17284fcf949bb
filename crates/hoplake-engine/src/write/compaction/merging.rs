//! What a merge reads from, how far it has come, and what it may take.

use std::{collections::BTreeSet, sync::Arc};

use arrow_array::RecordBatch;
use hoplake_format::{DegreeSummary, LabelId, TableOwner, segment::SectionKind};
use hoplake_storage::Branch;

use super::plan::Size;
use crate::{
    EngineError, Snapshot,
    read::{
        scan::{MergedScan, Order, Source},
        tables::EXTENT_BYTES,
    },
    snapshot::sections::Run,
};

/// Rows that are read and written together, at least.
const ROWS_MIN: usize = 8 << 10;

/// Rows that are read together, at most: some 25 MiB once decoded.
const ROWS_MAX: u64 = 256 << 10;

/// What some runs became.
#[derive(Debug, Default)]
pub(super) struct Merged {
    pub(super) size: Size,
    /// Objects that its runs are in.
    pub(super) inputs: BTreeSet<String>,
    /// Degrees out and in, if the oldest run was among them.
    pub(super) degrees: Option<[DegreeSummary; 2]>,
}

/// A merge under way.
pub(crate) struct Merging<'a> {
    /// A version that has nothing but the runs it merges.
    pub(crate) inputs: Arc<Snapshot>,
    pub(crate) memory: u64,
    /// What it asks for or sends next depends on what it waited for before.
    pub(crate) branch: &'a mut Branch,
}

impl Merging<'_> {
    /// All runs of some kinds as one stream, whose first extents are on their way, and of each run its kind and newest version.
    /// Of two sections of one run, that of the kind that is named first decides.
    pub(super) async fn merged<T: Clone>(
        &mut self,
        kinds: &[SectionKind],
        source: impl Fn(&Arc<Snapshot>, &Run) -> Source<T>,
        order: Order<T>,
    ) -> Result<(MergedScan<T>, Vec<(SectionKind, u64)>), EngineError> {
        let inputs = self.inputs.clone();
        let runs = inputs.sections().runs_newest_first(kinds);
        // The first piece of each; scans make the others resident as they reach them.
        inputs.sections().make_resident(runs.iter().filter_map(|(_, run)| run.location(0)), self.branch).await?;
        let sources = runs.iter().map(|(_, run)| source(&inputs, run)).collect();
        let mut merged = MergedScan::new(sources, self.memory / 8, order);
        merged.ask(self.branch).await?;
        Ok((merged, runs.into_iter().map(|(kind, run)| (kind, run.versions.until)).collect()))
    }

    /// How many rows of some tables are read together: about a piece, as long as that does not take too much memory.
    pub(super) fn rows_at_once(&self, owners: &[TableOwner]) -> usize {
        let tables = self.inputs.manifest().tables.iter().filter(|table| owners.contains(&table.owner));
        let (bytes, rows) = tables.fold((0, 0), |(bytes, rows), table| (bytes + table.length, rows + table.rows));
        let piece = EXTENT_BYTES.min(self.memory / 64);
        let at_once = piece.saturating_mul(rows) / bytes.max(1);
        at_once.min(ROWS_MAX).min(self.memory >> 10).max(ROWS_MIN as u64) as usize
    }

    /// Rows of vertices, as the newest of the runs has them.
    pub(super) async fn vertex_rows(
        &mut self,
        label: LabelId,
        ordinals: &[u64],
        columns: &[String],
    ) -> Result<RecordBatch, EngineError> {
        self.inputs.rows().of_vertices(label, ordinals, columns, self.branch).await
    }

    /// Notes round trips of writes that it waited for.
    pub(super) fn waited(&mut self, rounds: u32) {
        self.branch.then(rounds);
    }
}
