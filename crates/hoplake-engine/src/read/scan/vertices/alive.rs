//! Which vertices of a label were not deleted.
//!
//! A deleted vertex keeps its ordinal, and its row. The tombstones of the runs have the ordinals of those that were deleted since the
//! oldest run was written; a compaction into the oldest drops them. If they are not all, the keys say who is left.

use std::sync::Arc;

use futures::future::BoxFuture;
use hoplake_format::{Key, KeyType, LabelId, keys::decode_key_block, segment::SectionKind};
use hoplake_storage::{Branch, MemoryHold};

use super::{Vertices, plan::ChangedRow};
use crate::{
    EngineError, Ordinals, Snapshot,
    memory::bytes_of,
    read::{
        frontier::{OrdinalCollector, SinkError},
        scan::{Decode, MergedScan, Source},
    },
};

/// Which vertices exist.
pub(super) enum Alive {
    All,
    /// All but these.
    AllBut(Ordinals, #[expect(dead_code, reason = "held for the ordinals")] MemoryHold),
    /// These.
    Only(Ordinals, #[expect(dead_code, reason = "held for the ordinals")] MemoryHold),
}

impl Alive {
    pub(super) async fn of(snapshot: &Arc<Snapshot>, label: LabelId, branch: &mut Branch) -> Result<Self, EngineError> {
        let counts = snapshot.manifest().vertex_counts.get(usize::from(label.0));
        let Some(counts) = counts.filter(|counts| counts.gone > 0) else { return Ok(Self::All) };
        let location = snapshot.reader().store().url();
        let failed = |error: SinkError| error.at(location);
        let context = branch.context().clone();
        let universe = snapshot.ordinal_count(label);
        let mut pace = context.pace();
        let mut dead = OrdinalCollector::new(universe, &context)?;
        let ahead = context.hold(snapshot.ahead_bytes(&context))?;
        let mut tombstones = snapshot.scan_key_runs(label, SectionKind::Tombstones(label), ahead.bytes());
        loop {
            let entries = tombstones.next(branch).await?;
            if entries.is_empty() {
                break;
            }
            let ordinals: Vec<u64> = entries.iter().map(|(_, (_, ordinal))| *ordinal).collect();
            dead.extend(&ordinals).map_err(failed)?;
            pace.rest(ordinals.len() as u64).await?;
        }
        let (dead, memory) = dead.finish(&mut pace).await.map_err(failed)?;
        if dead.len() as u64 == counts.gone {
            return Ok(Self::AllBut(dead, memory));
        }
        drop((dead, memory));
        let mut alive = OrdinalCollector::new(universe, &context)?;
        let (mut keys, mut entries) = (snapshot.scan_keys(label, ahead.bytes()), Vec::new());
        while keys.next(&mut entries, branch).await? {
            let ordinals: Vec<u64> = entries.iter().map(|(_, ordinal)| *ordinal).collect();
            alive.extend(&ordinals).map_err(failed)?;
            pace.rest(ordinals.len() as u64).await?;
        }
        let (alive, memory) = alive.finish(&mut pace).await.map_err(failed)?;
        Ok(Self::Only(alive, memory))
    }

    /// Those of some vertices that exist.
    pub(super) fn among(&self, vertices: Vertices) -> Vertices {
        let (listed, are_alive) = match self {
            Self::All => return vertices,
            Self::AllBut(dead, _) => (dead, false),
            Self::Only(alive, _) => (alive, true),
        };
        let mut ordinals = vertices.into_vec();
        ordinals.retain(|ordinal| listed.contains(*ordinal) == are_alive);
        Vertices::These(ordinals)
    }
}

impl Snapshot {
    /// The entries of all runs of a section of keys, of each key that of the newest run.
    fn scan_key_runs(self: &Arc<Self>, label: LabelId, kind: SectionKind, ahead_bytes: u64) -> MergedScan<(Key, u64)> {
        let key_type = match kind {
            SectionKind::Rows(_) => KeyType::Int64,
            _ => self.schema().label(label).map_or(KeyType::Int64, |label| label.key_type),
        };
        let decode: Decode<(Key, u64)> = Arc::new(move |block| decode_key_block(block, key_type));
        let sources = self.sections().runs(kind).iter().map(|run| Source::new(self, run, &decode)).collect();
        MergedScan::new(sources, ahead_bytes, |a, b| a.0.cmp(&b.0))
    }

    /// All vertices of a label whose rows newer runs changed, by ordinal, each with the newest of its rows.
    pub(super) fn all_changed_rows<'a>(
        self: &'a Arc<Self>,
        label: LabelId,
        branch: &'a mut Branch,
    ) -> BoxFuture<'a, Result<(Vec<ChangedRow>, MemoryHold), EngineError>> {
        Box::pin(async move {
            let kind = SectionKind::Rows(label);
            let versions: Vec<u64> = self.sections().runs(kind).iter().map(|run| run.versions.until).collect();
            let context = branch.context().clone();
            if versions.is_empty() {
                return Ok((Vec::new(), context.hold(0)?));
            }
            let ahead = context.hold(self.ahead_bytes(&context))?;
            let mut scan = self.scan_key_runs(label, kind, ahead.bytes());
            let (mut changed, mut memory, mut pace) = (Vec::new(), context.hold(0)?, context.pace());
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
}
