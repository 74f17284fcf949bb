//! Which vertices of a label have rows that newer runs wrote.

use std::sync::Arc;

use futures::future::BoxFuture;
use hoplake_format::{Key, LabelId, segment::SectionKind};
use hoplake_storage::{Branch, MemoryHold};

use crate::{EngineError, Snapshot, memory::bytes_of};

/// A vertex whose newest row is not that with which it was added.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChangedRow {
    pub(super) ordinal: u64,
    /// The newest version of the run, and the row of its table.
    pub(super) row: (u64, u64),
}

/// All vertices of a label whose rows newer runs changed, by ordinal, each with the newest of its rows.
pub(super) fn all_changed_rows<'a>(
    snapshot: &'a Arc<Snapshot>,
    label: LabelId,
    branch: &'a mut Branch,
) -> BoxFuture<'a, Result<(Vec<ChangedRow>, MemoryHold), EngineError>> {
    Box::pin(async move {
        let kind = SectionKind::Rows(label);
        let versions: Vec<u64> = snapshot.sections().runs(kind).iter().map(|run| run.versions.until).collect();
        let context = branch.context().clone();
        if versions.is_empty() {
            return Ok((Vec::new(), context.hold(0)?));
        }
        let ahead = context.hold(snapshot.ahead_bytes(&context))?;
        let mut scan = snapshot.scan_key_runs(label, kind, ahead.bytes());
        let mut changed = Vec::new();
        let mut memory = context.hold(0)?;
        let mut pace = context.pace();
        loop {
            let entries = scan.next(branch).await?;
            if entries.is_empty() {
                return Ok((changed, memory));
            }
            // Twice, as vectors grow.
            context.resize(&mut memory, bytes_of::<[ChangedRow; 2]>(changed.len() + entries.len()))?;
            let row = |(run, (key, row)): &(usize, (Key, u64))| match key {
                Key::Int64(ordinal) => Some(ChangedRow { ordinal: *ordinal as u64, row: (versions[*run], *row) }),
                Key::String(_) => None,
            };
            changed.extend(entries.iter().filter_map(row));
            pace.rest(entries.len() as u64).await?;
        }
    })
}
