//! Which vertices of a label were not deleted.
//!
//! A deleted vertex keeps its ordinal, and its row. The tombstones of the runs have the ordinals of those that were deleted since the
//! oldest run was written; a compaction into the oldest drops them. If they are not all, the keys say who is left.

use std::sync::Arc;

use hoplake_format::{LabelId, segment::SectionKind};
use hoplake_storage::{Branch, MemoryHold};

use super::stretches::Vertices;
use crate::{
    EngineError, Ordinals, Snapshot,
    read::frontier::{OrdinalCollector, SinkError},
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
        let mut keys = snapshot.scan_keys(label, ahead.bytes());
        let mut entries = Vec::new();
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
