//! All edges of a type, as a stream of rows with the keys of both ends.
//!
//! ```text
//! keys of targets, as many as fit ──▶ lists of all runs, merged ── edges to those targets, some 8 MiB of rows at a time
//!     ──▶ keys of the sources, rows of the edges ──▶ a batch
//! ```
//! Lists ascend by source, and so do the positions of their edges in the table of a run. Keys of sources and rows of edges are
//! therefore read from one end to the other, in extents and past the caches. Targets come in any order, and a look-up of each
//! would read a page for every edge: their keys are held in memory instead. Where they do not fit, the lists are read once for
//! each range of targets that does.
//!
//! Edges between the same two vertices come one after the other, in their order.

mod part;
mod targets;

use std::{collections::VecDeque, ops::Range, sync::Arc};

use arrow_array::RecordBatch;
use futures::future::BoxFuture;
use hoplake_format::{Direction, EdgeTypeId, LabelId, TableOwner, constants::KEY_COLUMN, segment::SectionKind};
use hoplake_storage::{Branch, MemoryHold};

use crate::{
    EngineError, Held, Snapshot, VertexQuery,
    memory::bytes_of,
    read::{
        merge::ListEntry,
        scan::{ListRange, MergedScan, OnItsWay, Source, vertices::VertexScan},
    },
    snapshot::sections::Run,
};
use targets::TargetKeys;

/// The column of the keys of the vertices that edges leave.
pub const SOURCE_COLUMN: &str = "~source";

/// The column of the keys of the vertices that edges reach.
pub const TARGET_COLUMN: &str = "~target";

/// What the rows of a part take when they are decoded.
const PART_BYTES: u64 = 8 << 20;

/// The least, where the budget is small.
const PART_BYTES_MIN: u64 = 256 << 10;

/// Edges of a part, at most.
const PART_EDGES: usize = 1 << 17;

/// What the keys of an edge take at the least: an integer each.
const KEYS_BYTES_MIN: u64 = 16;

/// What the memory of a part is a multiple of: pages stored and decoded, rows decoded and arranged.
const COPIES: u64 = 8;

/// Parts that are read at a time, at most.
const PARTS_MAX: u64 = 16;

/// The shares of the memory that is left: one byte in so many for keys of targets, for lists that are read ahead, and for parts. What
/// the scan of further targets has on its way takes a quarter, and a third stays for the caller.
const TARGETS_SHARE: u64 = 6;
const AHEAD_SHARE: u64 = 8;
const PARTS_SHARE: u64 = 8;

/// The least that is read ahead.
const AHEAD_BYTES_MIN: u64 = 1 << 20;

/// Which edges a scan returns, and what of them.
#[derive(Debug, Clone)]
pub struct EdgeQuery {
    /// Their type.
    pub edge_type: EdgeTypeId,
    /// Properties to return.
    pub columns: Vec<String>,
}

/// A scan under way, from [`Snapshot::scan_edges`].
pub struct EdgeScan {
    plan: Arc<Plan>,
    /// Keys of targets that were not read yet.
    targets: VertexScan,
    /// The lists of the pass under way.
    pass: Option<Pass>,
    /// Ordinals of sources: those of all, or of a range.
    sources: Range<u64>,
    coming: VecDeque<OnItsWay<(Vec<Held<RecordBatch>>, Branch)>>,
    here: VecDeque<Held<RecordBatch>>,
    part_bytes: u64,
    /// About what the keys of an edge take.
    keys_bytes: u64,
    /// Parts that are read at a time.
    at_once: usize,
}

/// What all parts of a scan know.
struct Plan {
    snapshot: Arc<Snapshot>,
    edge_type: EdgeTypeId,
    source: LabelId,
    columns: Vec<String>,
    /// What is merged, the newest first.
    runs: Vec<RunRows>,
}

/// The rows of a run.
struct RunRows {
    /// Its newest version.
    until: u64,
    /// Whether it names pairs that have no edges any more.
    removed: bool,
    /// The first row of each row group of its tables, and what a row of it takes.
    groups: Vec<(u64, u64)>,
}

/// The lists, read for some targets.
struct Pass {
    targets: Arc<TargetKeys>,
    lists: MergedScan<ListEntry>,
    /// Entries that were merged and are in no part yet.
    entries: std::vec::IntoIter<(usize, ListEntry)>,
    ended: bool,
    _ahead: MemoryHold,
}

impl Snapshot {
    /// Scans the edges of a type. Batches have the columns [`SOURCE_COLUMN`] and [`TARGET_COLUMN`] with the keys of the ends, and
    /// then those asked for.
    ///
    /// # Errors
    /// [`EngineError::NotFound`] if there is no such edge type, or it lacks a property that is to be returned; the store's.
    pub fn scan_edges<'a>(
        self: &'a Arc<Self>,
        query: EdgeQuery,
        branch: &'a mut Branch,
    ) -> BoxFuture<'a, Result<EdgeScan, EngineError>> {
        Box::pin(async move {
            let described = self.schema().edge_type(query.edge_type);
            let described =
                described.ok_or_else(|| EngineError::NotFound("the graph has no such edge type".to_owned()))?;
            let lacks = |name: &&String| !described.properties.iter().any(|property| property.name == **name);
            if let Some(missing) = query.columns.iter().find(lacks) {
                let message = format!("edges {} have no property {missing:?}", described.label);
                return Err(EngineError::NotFound(message));
            }
            let source = described.source;
            let target = described.target;
            let context = branch.context().clone();
            let left = context.memory().left();
            let part_bytes = (left / (PARTS_SHARE * COPIES)).clamp(PART_BYTES_MIN, PART_BYTES);
            let by_memory = (left / PARTS_SHARE / (part_bytes * COPIES)).max(1);
            let by_network = self.ahead_bytes(&context).div_ceil(part_bytes).max(2);
            let columns = vec![KEY_COLUMN.to_owned()];
            let keys = VertexQuery { label: target, condition: None, columns, wanted: None };
            let mut line = branch.clone();
            let (targets, runs) =
                futures::future::try_join(self.scan_vertices(keys, &mut line), self.runs_of_edges(&query, branch))
                    .await?;
            branch.join([&line]);
            let mut keys_bytes = 0;
            for label in [source, target] {
                keys_bytes += self.key_bytes(label, branch).await?;
            }
            let EdgeQuery { edge_type, columns } = query;
            let plan = Plan { snapshot: self.clone(), edge_type, source, columns, runs };
            Ok(EdgeScan {
                sources: ListRange::all(edge_type, Direction::Out).sources,
                plan: Arc::new(plan),
                targets,
                pass: None,
                coming: VecDeque::new(),
                here: VecDeque::new(),
                part_bytes,
                keys_bytes: keys_bytes.max(KEYS_BYTES_MIN),
                at_once: by_memory.min(by_network).min(PARTS_MAX) as usize,
            })
        })
    }

    /// What a key of a label takes, on average.
    async fn key_bytes(&self, label: LabelId, branch: &mut Branch) -> Result<u64, EngineError> {
        let tables = self.tables().of(TableOwner::Vertices(label), None);
        let layouts = self.tables().layouts(tables.into_iter(), branch).await?;
        let groups: Vec<_> = layouts.iter().flat_map(|layout| layout.groups(&[KEY_COLUMN.to_owned()])).collect();
        let rows: u64 = groups.iter().map(|group| group.rows.end - group.rows.start).sum();
        Ok(groups.iter().map(|group| group.bytes).sum::<u64>() / rows.max(1))
    }

    /// The runs that say something of edges of a type, the newest first, and how large the rows of their tables are.
    async fn runs_of_edges(&self, query: &EdgeQuery, branch: &mut Branch) -> Result<Vec<RunRows>, EngineError> {
        let kinds = ListRange::all(query.edge_type, Direction::Out).kinds();
        let of_run = |(kind, run): (SectionKind, &Run)| {
            let removed = kind == kinds[1];
            RunRows { until: run.versions.until, removed, groups: Vec::new() }
        };
        let mut runs: Vec<_> = self.sections().runs_newest_first(&kinds).into_iter().map(of_run).collect();
        if query.columns.is_empty() {
            return Ok(runs);
        }
        for run in runs.iter_mut().filter(|run| !run.removed) {
            let tables = self.tables().of(TableOwner::Edges(query.edge_type, Direction::Out), Some(run.until));
            let mut line = branch.clone();
            let layouts = self.tables().layouts(tables.iter().copied(), &mut line).await?;
            branch.join([&line]);
            for (table, layout) in tables.iter().zip(layouts) {
                let groups = layout.groups(&query.columns).into_iter();
                let first = table.reference.first_row;
                run.groups.extend(groups.map(|group| (first + group.rows.start, group.row_bytes())));
            }
            run.groups.sort_unstable();
        }
        Ok(runs)
    }
}

impl RunRows {
    /// About what the row of an edge takes.
    fn row_bytes(&self, position: u64) -> u64 {
        let behind = self.groups.partition_point(|(first, _)| *first <= position);
        behind.checked_sub(1).map_or(0, |group| self.groups[group].1)
    }
}

impl EdgeScan {
    /// The scan of those edges alone whose sources have ordinals in a range.
    pub fn within(self, sources: Range<u64>) -> Self {
        Self { sources, ..self }
    }

    /// The next edges; `None` behind the last.
    ///
    /// # Errors
    /// The store's; [`EngineError::Format`] or [`EngineError::Table`] if a block or table is damaged; that a limit of the query was
    /// reached.
    pub fn next<'a>(
        &'a mut self,
        branch: &'a mut Branch,
    ) -> BoxFuture<'a, Result<Option<Held<RecordBatch>>, EngineError>> {
        Box::pin(async move {
            loop {
                if let Some(batch) = self.here.pop_front() {
                    return Ok(Some(batch));
                }
                while self.coming.len() < self.at_once {
                    let Some((targets, entries, memory)) = self.next_part(branch).await? else { break };
                    let plan = self.plan.clone();
                    let branch = branch.clone();
                    let read = async move {
                        let _memory = memory;
                        part::read(&plan, &targets, &entries, branch).await
                    };
                    self.coming.push_back(OnItsWay::begin(read));
                }
                let Some(coming) = self.coming.pop_front() else { return Ok(None) };
                let (batches, came) = coming.arrived().await?;
                branch.join([&came]);
                self.here.extend(batches);
            }
        })
    }

    /// The edges of the next part, with the keys of their targets.
    async fn next_part(
        &mut self,
        branch: &mut Branch,
    ) -> Result<Option<(Arc<TargetKeys>, Vec<(usize, ListEntry)>, MemoryHold)>, EngineError> {
        let context = branch.context().clone();
        loop {
            let Some(pass) = &mut self.pass else {
                // A pass that has ended is still in memory while parts of it are read: they come first.
                if !self.coming.is_empty() {
                    return Ok(None);
                }
                let share = context.memory().left() / TARGETS_SHARE;
                let Some(targets) = TargetKeys::read(&mut self.targets, share, branch).await? else { return Ok(None) };
                self.pass = Some(self.begin_pass(targets, branch)?);
                continue;
            };
            let edges = PART_EDGES.min((self.part_bytes / self.keys_bytes) as usize).max(1);
            let memory = context.hold(bytes_of::<(usize, ListEntry)>(edges))?;
            let mut part = Vec::with_capacity(edges);
            let mut bytes = 0;
            let mut pace = context.pace();
            while part.len() < edges && bytes < self.part_bytes && !pass.ended {
                let Some((run, entry)) = pass.entries.next() else {
                    let merged = pass.lists.next(branch).await?;
                    pace.rest(merged.len() as u64).await?;
                    pass.ended = merged.is_empty();
                    pass.entries = merged.into_iter();
                    continue;
                };
                let of = &self.plan.runs[run];
                if !of.removed && pass.targets.range().contains(&entry.target) {
                    bytes += of.row_bytes(entry.position) + self.keys_bytes;
                    part.push((run, entry));
                }
            }
            let targets = pass.targets.clone();
            if pass.ended {
                self.pass = None;
            }
            if !part.is_empty() {
                return Ok(Some((targets, part, memory)));
            }
        }
    }

    fn begin_pass(&self, targets: TargetKeys, branch: &Branch) -> Result<Pass, EngineError> {
        let Plan { snapshot, edge_type, runs, .. } = &*self.plan;
        let sources = self.sources.clone();
        let range = ListRange { edge_type: *edge_type, direction: Direction::Out, sources };
        let share = (branch.context().memory().left() / AHEAD_SHARE).max(AHEAD_BYTES_MIN);
        let ahead = branch.context().hold(snapshot.ahead_bytes(branch.context()).min(share))?;
        let source = |run: &RunRows| {
            let kind = range.kinds()[usize::from(run.removed)];
            let found = snapshot.sections().runs(kind).iter().find(|found| found.versions.until == run.until)?;
            Some(Source::lists(snapshot, found, &range))
        };
        let sources = runs.iter().filter_map(source).collect();
        let lists = MergedScan::new(sources, ahead.bytes(), ListEntry::by_pair);
        Ok(Pass { targets: Arc::new(targets), lists, entries: Vec::new().into_iter(), ended: false, _ahead: ahead })
    }
}
