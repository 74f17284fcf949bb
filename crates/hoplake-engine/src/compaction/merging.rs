//! What a merge reads from, how far it has come, and what it may take.

use std::sync::Arc;

use arrow_array::RecordBatch;
use hoplake_format::{LabelId, TableOwner, segment::SectionKind};
use hoplake_storage::Branch;

use crate::{
    EngineError, Snapshot,
    scan::{Ahead, EXTENT_BYTES, Scan},
};

/// Rows that are read and written together, at least.
const ROWS_MIN: usize = 8 << 10;

/// Rows that are read together, at most: some 25 MiB once decoded.
const ROWS_MAX: u64 = 256 << 10;

/// A merge under way.
pub(super) struct Merging<'a> {
    /// A version that has nothing but the runs it merges.
    pub(super) inputs: Arc<Snapshot>,
    pub(super) memory: u64,
    /// What it asks for or sends next depends on what it waited for before.
    pub(super) branch: &'a mut Branch,
}

impl Merging<'_> {
    /// Scans of all runs of some kinds, of which the first extents are on their way.
    pub(super) async fn scans(&mut self, kinds: &[SectionKind]) -> Result<Vec<(SectionKind, Scan)>, EngineError> {
        let inputs = self.inputs.clone();
        let runs: Vec<_> =
            kinds.iter().flat_map(|kind| inputs.runs(*kind).iter().map(move |run| (*kind, run))).collect();
        // The first piece of each; scans make the others resident as they reach them.
        inputs.make_resident(runs.iter().filter_map(|(_, run)| run.location(0)), self.branch).await?;
        let ahead = Ahead::of(self.memory / 8, runs.len());
        let mut scans: Vec<_> = runs.into_iter().map(|(kind, run)| (kind, Scan::new(&inputs, run, ahead))).collect();
        for (_, scan) in &mut scans {
            scan.ask(self.branch).await?;
        }
        Ok(scans)
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
        self.inputs.vertex_rows(label, ordinals, columns, self.branch).await
    }

    /// Notes round trips of writes that it waited for.
    pub(super) fn waited(&mut self, rounds: u32) {
        self.branch.then(rounds);
    }

    /// Where it reads, for messages.
    pub(super) fn location(&self) -> &str {
        self.inputs.reader().store().url()
    }
}
