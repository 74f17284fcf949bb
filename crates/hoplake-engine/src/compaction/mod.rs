//! Compaction: adjacent parts of a label or an edge type become one, and no answer changes.
//!
//! ```text
//! plan: which parts ──▶ merge: streams of sections and rows ──▶ one object (and large tables) ──▶ publish on the newest
//! ```
//! Parts are a log-structured merge tree of their own for each label and edge type (O'Neil et al., *The log-structured
//! merge-tree*, 1996), compacted in tiers. A compaction reads a version that has nothing but the parts it merges, so it
//! uses what queries use, and writes what that version says. It announces itself ([`crate::intent`]), publishes each
//! merge as it is done, on whatever is the newest version then, and takes its name out at the end: what is interrupted is
//! continued by the next.

mod keys;
mod lists;
mod part;
mod plan;
mod rows;

use std::{collections::BTreeSet, sync::Arc};

use hoplake_format::{
    Change, ChangeKind, DegreeSummary, Direction, EdgeTypeId, LabelId, Manifest, TableOwner, VersionRange,
    segment::SectionKind,
};
use hoplake_storage::planted::{Bug, planted};
use hoplake_storage::{Cost, QueryContext, ReadPool, ReadSettings, Reader, Store};

use crate::{
    EngineError, OpenSettings, Snapshot, intent,
    publish::{amend, change},
};
use part::PartWriter;

pub(crate) use plan::spans;
use plan::{Merge, plan};

/// The least budget: below it, buffers that cannot be smaller would not fit.
pub const MEMORY_BYTES_MIN: u64 = 64 << 20;

/// How a graph is compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompactionSettings {
    /// Memory for it, in bytes.
    pub memory_bytes: u64,
    /// Whether all parts of each label and edge type become one; otherwise only what is due.
    pub everything: bool,
    /// Parts of less than this many bytes are all of the lowest tier. Default 64 KiB: smaller ones cost a request each,
    /// whatever they have.
    pub lowest_tier_bytes: u64,
}

impl Default for CompactionSettings {
    fn default() -> Self {
        Self { memory_bytes: 256 << 20, everything: false, lowest_tier_bytes: 64 << 10 }
    }
}

/// What a compaction did.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Compacted {
    /// How often parts became one.
    pub merges: u64,
    /// Parts that were merged.
    pub parts: u64,
    /// Their bytes.
    pub bytes_read: u64,
    /// Bytes of what they became.
    pub bytes_written: u64,
    /// The newest version after it.
    pub version: u64,
    /// What it took, with looking for what was due and publication.
    pub cost: Cost,
}

/// What parts belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Owner {
    Label(LabelId),
    EdgeType(EdgeTypeId),
}

impl Owner {
    pub(crate) fn of_section(kind: SectionKind) -> Self {
        match kind {
            SectionKind::Keys(label) | SectionKind::Gone(label) | SectionKind::Rows(label) => Self::Label(label),
            SectionKind::Adjacency(edge_type, _) | SectionKind::Removed(edge_type, _) => Self::EdgeType(edge_type),
        }
    }

    pub(crate) fn of_table(owner: TableOwner) -> Self {
        match owner {
            TableOwner::Vertices(label) | TableOwner::Changed(label) => Self::Label(label),
            TableOwner::Edges(edge_type, _) => Self::EdgeType(edge_type),
        }
    }
}

/// What some parts became.
#[derive(Debug, Default)]
struct Merged {
    part: part::Part,
    /// Edges, of an edge type.
    edges: u64,
    /// Degrees out and in, if the oldest part was among them.
    degrees: Option<[DegreeSummary; 2]>,
}

/// Compacts a graph until nothing is due.
///
/// # Errors
/// [`EngineError::Invalid`] if the budget is too small; [`EngineError::Conflict`] if a vacuum took it for dead; the
/// store's. What was published until then stays.
pub async fn compact(
    store: &Store,
    settings: &CompactionSettings,
    context: &QueryContext,
) -> Result<Compacted, EngineError> {
    compact_until(store, settings, std::future::pending(), context).await
}

/// As [`compact`], but breaks off when `stop` is ready: then it takes its name out, and what it was writing is garbage
/// that a vacuum removes.
///
/// # Errors
/// As [`compact`].
pub async fn compact_until(
    store: &Store,
    settings: &CompactionSettings,
    stop: impl Future<Output = ()>,
    context: &QueryContext,
) -> Result<Compacted, EngineError> {
    let memory = settings.memory_bytes;
    if memory < MEMORY_BYTES_MIN {
        let why = format!("compaction needs at least {MEMORY_BYTES_MIN} bytes of memory, not {memory}");
        return Err(EngineError::Invalid(why));
    }
    let read = ReadSettings {
        cache_bytes_max: memory / 4,
        in_flight_bytes_max: memory / 8,
        // A merge reads everything once: nothing is worth reading before its turn.
        whole_bytes_max: 0,
        ..ReadSettings::default()
    };
    let reader = Reader::new(store.on_account(context), ReadPool::new(read)?);
    let mut run = Run { reader, memory, writer: None, number: 0, compacted: Compacted::default() };
    let outcome = tokio::select! {
        biased;
        outcome = run.all(settings, context) => outcome,
        () = stop => Ok(()),
    };
    if let Some(writer) = &run.writer {
        let withdrawn = intent::withdraw(&run.reader, writer, context).await;
        // What failed first is what is to be told.
        outcome?;
        run.compacted.version = withdrawn?.unwrap_or(run.compacted.version);
    } else {
        outcome?;
    }
    Ok(Compacted { cost: run.compacted.cost + context.cost(), ..run.compacted })
}

/// Whether [`compact`] would merge something of a version. No request, if its indexes are in memory.
///
/// # Errors
/// The store's.
pub async fn is_due(
    snapshot: &Snapshot,
    settings: &CompactionSettings,
    context: &QueryContext,
) -> Result<bool, EngineError> {
    Ok(!plan(snapshot, settings, context).await?.is_empty())
}

/// A compaction under way.
struct Run {
    reader: Reader,
    memory: u64,
    /// Its name, once it has announced itself.
    writer: Option<String>,
    /// Of the next object.
    number: u32,
    compacted: Compacted,
}

impl Run {
    async fn all(&mut self, settings: &CompactionSettings, context: &QueryContext) -> Result<(), EngineError> {
        let opened = Snapshot::open(self.reader.clone(), &OpenSettings::default()).await?;
        self.compacted.cost = opened.open_cost();
        let mut snapshot = Arc::new(opened);
        loop {
            self.compacted.version = snapshot.manifest().version;
            let due = plan(&snapshot, settings, context).await?;
            if due.is_empty() {
                return Ok(());
            }
            let writer = match &self.writer {
                Some(writer) => writer.clone(),
                None => {
                    let (writer, _) = intent::announce(&self.reader, ChangeKind::Compaction, context).await?;
                    self.writer.insert(writer).clone()
                }
            };
            for merge in due {
                self.one(&snapshot, &merge, &writer, context).await?;
            }
            snapshot = snapshot.newest(context).await?;
        }
    }

    /// Merges some parts and publishes what they became, unless somebody else has merged them meanwhile.
    async fn one(
        &mut self,
        snapshot: &Arc<Snapshot>,
        merge: &Merge,
        writer: &str,
        context: &QueryContext,
    ) -> Result<(), EngineError> {
        let within = |owner: Owner, versions: VersionRange| owner == merge.owner && merge.parts.contains(&versions);
        let parts = Arc::new(snapshot.only(within)?);
        let base = snapshot.manifest().version;
        let part = PartWriter::new(self.reader.store(), writer, base, self.number, merge.versions(), self.memory);
        let merged = match merge.owner {
            Owner::Label(label) => rows::merge_label(&parts, label, merge, part, context).await?,
            Owner::EdgeType(edge_type) => {
                lists::merge_edges(&parts, edge_type, merge, part, self.memory, context).await?
            }
        };
        self.number += merged.part.objects.len() as u32;
        let inputs: BTreeSet<_> = parts.manifest().objects().into_keys().map(str::to_owned).collect();
        let published = amend(&self.reader, context, |newest| {
            intent::check(newest, writer)?;
            if !merge.is_in(newest, &inputs) && !planted(Bug::MergedTwice) {
                return Ok(None);
            }
            let change = change(self.reader.store(), ChangeKind::Compaction, merge.message(newest));
            Ok(Some(replaced(newest, merge, &merged, change, self.reader.store().clock().unix_ms())))
        });
        match published.await? {
            Some(manifest) => {
                self.compacted.merges += 1;
                self.compacted.parts += merge.parts.len() as u64;
                self.compacted.bytes_read += merge.bytes;
                self.compacted.bytes_written += merged.part.bytes;
                self.compacted.version = manifest.version;
                Ok(())
            }
            // What stays of it is garbage that a vacuum knows once this writer is done.
            None => Ok(self.reader.store().delete(&merged.part.objects).await?),
        }
    }
}

/// The next version, with what some parts became in their place.
fn replaced(newest: &Manifest, merge: &Merge, merged: &Merged, change: Change, now_unix_ms: u64) -> Manifest {
    let mut next = newest.next(change, now_unix_ms);
    let goes = |owner: Owner, versions: VersionRange| owner == merge.owner && merge.parts.contains(&versions);
    for section in next.segments.iter_mut().flat_map(|segment| &mut segment.sections) {
        let kind = section.kind;
        section.versions = section.versions.filter(|versions| !goes(Owner::of_section(kind), *versions));
    }
    next.segments.retain(|segment| segment.sections.iter().any(|section| section.versions.is_some()));
    next.tables.retain(|table| !goes(Owner::of_table(table.owner), table.versions));
    next.segments.extend(merged.part.segment.iter().cloned());
    next.tables.extend(merged.part.tables.iter().cloned());
    if let Owner::EdgeType(edge_type) = merge.owner {
        let at = usize::from(edge_type.0);
        if let Some(count) = next.edge_counts.get_mut(at) {
            *count = count.saturating_sub(merge.edges) + merged.edges;
        }
        if let (Some(degrees), Some(found)) = (next.degrees.get_mut(at), &merged.degrees) {
            degrees.clone_from(found);
        }
    }
    next
}

/// The directions, with their place in a pair of summaries.
const DIRECTIONS: [(usize, Direction); 2] = [(0, Direction::Out), (1, Direction::In)];
