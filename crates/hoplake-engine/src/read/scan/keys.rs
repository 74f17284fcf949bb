//! The vertices of a label as a stream of keys and ordinals, in the order of keys; and the items of a property index.

use std::sync::Arc;

use futures::future::BoxFuture;
use hoplake_format::{IndexId, Key, KeyType, LabelId, keys::decode_key_block, segment::SectionKind};
use hoplake_storage::Branch;

use super::{Decode, MergedScan, Source};
use crate::{EngineError, Snapshot};

/// A scan of keys, from [`Snapshot::scan_keys`].
pub struct KeyScan {
    scan: MergedScan<(Key, u64)>,
    /// For each run, whether its vertices are deleted.
    deleted: Vec<bool>,
}

impl Snapshot {
    /// Scans the keys of the vertices that a label has in this version, reading up to `ahead_bytes` ahead. Nothing is read
    /// before the first keys are asked for.
    pub fn scan_keys(self: &Arc<Self>, label: LabelId, ahead_bytes: u64) -> KeyScan {
        let key_type = self.schema().label(label).map_or(KeyType::Int64, |label| label.key_type);
        self.scan_kinds([SectionKind::Keys(label), SectionKind::Tombstones(label)], key_type, ahead_bytes)
    }

    /// Scans the items that a property index has in this version.
    pub(crate) fn scan_items(self: &Arc<Self>, index: IndexId, ahead_bytes: u64) -> KeyScan {
        let kinds = [SectionKind::Values(index), SectionKind::RemovedValues(index)];
        self.scan_kinds(kinds, KeyType::String, ahead_bytes)
    }

    /// The entries of all runs of a section of keys, of each key that of the newest run.
    pub(super) fn scan_key_runs(
        self: &Arc<Self>,
        label: LabelId,
        kind: SectionKind,
        ahead_bytes: u64,
    ) -> MergedScan<(Key, u64)> {
        let key_type = match kind {
            SectionKind::Rows(_) => KeyType::Int64,
            _ => self.schema().label(label).map_or(KeyType::Int64, |label| label.key_type),
        };
        let decode: Decode<(Key, u64)> = Arc::new(move |block| decode_key_block(block, key_type));
        let sources = self.sections().runs(kind).iter().map(|run| Source::new(self, run, &decode)).collect();
        MergedScan::new(sources, ahead_bytes, |a, b| a.0.cmp(&b.0))
    }

    /// Scans what sections of one kind have and those of another do not take out.
    fn scan_kinds(self: &Arc<Self>, [there, gone]: [SectionKind; 2], key_type: KeyType, ahead_bytes: u64) -> KeyScan {
        let decode: Decode<(Key, u64)> = Arc::new(move |block| decode_key_block(block, key_type));
        let runs = self.sections().runs_newest_first(&[there, gone]);
        let deleted = runs.iter().map(|(kind, _)| *kind == gone).collect();
        let sources = runs.into_iter().map(|(_, run)| Source::new(self, run, &decode)).collect();
        KeyScan { scan: MergedScan::new(sources, ahead_bytes, |a, b| a.0.cmp(&b.0)), deleted }
    }
}

impl KeyScan {
    /// Replaces the contents of `keys` by the next ones, ascending, with their vertices' ordinals; `false` behind the last.
    ///
    /// # Errors
    /// The store's; [`EngineError::Format`] if a block is damaged.
    pub fn next<'a>(
        &'a mut self,
        keys: &'a mut Vec<(Key, u64)>,
        branch: &'a mut Branch,
    ) -> BoxFuture<'a, Result<bool, EngineError>> {
        Box::pin(async move {
            keys.clear();
            let batch = self.scan.next(branch).await?;
            let is_ended = batch.is_empty();
            keys.extend(batch.into_iter().filter(|(run, _)| !self.deleted[*run]).map(|(_, entry)| entry));
            Ok(!is_ended)
        })
    }
}
