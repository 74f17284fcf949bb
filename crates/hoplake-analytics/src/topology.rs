//! Loads the adjacency of a part of a graph into memory.
//!
//! The lists of each label come in the order of its ordinals, so offsets and targets are written once, in their order, and nothing
//! is sorted. Where a vertex has lists of several edge types or directions, their scans move on together, source by source.

use std::{collections::BTreeSet, sync::Arc};

use futures::future::BoxFuture;
use hoplake_engine::{DenseIds, EdgesOf, EngineError, Held, ListRange, ListScan, Snapshot, traversal::Hop};
use hoplake_format::{FormatError, LabelId, adjacency::Lists};
use hoplake_storage::{Branch, Pace};

use crate::{Csr, csr::CsrBuilder};

/// The bytes that a load reads ahead: some extents of 4 MiB are on their way while one is decoded.
const AHEAD_BYTES: u64 = 32 << 20;

/// Which part of a graph takes part in a computation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selection {
    /// The edges, and in which direction they are followed; no conditions.
    pub hop: Hop,
    /// Labels whose vertices take part, with or without such edges. Both ends of all selected edges take part in any case.
    pub labels: Vec<String>,
    /// Whether the edges are needed from their other ends, too.
    pub reversed: bool,
}

/// Who is adjacent to whom, by dense ids of 32 bits.
#[derive(Debug)]
pub struct Topology {
    /// The dense ids of the vertices.
    pub ids: DenseIds,
    /// The edges in the direction of the selection.
    pub out: Csr,
    /// The same edges from their other ends, if they were selected. A selection of both directions is its own reverse.
    pub against: Option<Csr>,
    /// Ids of vertices that were deleted, ascending. They have no edges, and count for nothing.
    pub deleted: Held<Vec<u32>>,
}

impl Topology {
    /// Loads the adjacency that a selection has. One wave, and then as fast as the store delivers: the size of the lists, with a
    /// request for 4 MiB. Memory: 8 bytes a vertex and 4 an edge, twice if it is reversed.
    ///
    /// # Errors
    /// [`EngineError::NotFound`] if the graph has no such label; [`EngineError::Invalid`] if the hop has conditions, or if the
    /// labels have more vertices than 32 bits number; [`EngineError::Limit`] if the budget is too small, before anything is read;
    /// the store's.
    pub fn load<'a>(
        snapshot: &'a Arc<Snapshot>,
        selection: &'a Selection,
        branch: &'a mut Branch,
    ) -> BoxFuture<'a, Result<Self, EngineError>> {
        Box::pin(async move {
            let Selection { hop, labels, reversed } = selection;
            if !hop.predicates.is_empty() {
                return Err(EngineError::Invalid(format!(
                    "{hop} has conditions, which whole-graph computations do not have"
                )));
            }
            let edges = snapshot.edges_of(hop)?;
            let mut taking_part: BTreeSet<LabelId> = edges.iter().flat_map(|of| [of.near, of.far]).collect();
            for name in labels {
                let label = snapshot.schema().label_id(name);
                taking_part.insert(
                    label.ok_or_else(|| EngineError::NotFound(format!("the graph has no vertex label {name:?}")))?,
                );
            }
            let ids = snapshot.dense_ids(taking_part);
            if ids.len() > u64::from(u32::MAX) {
                let message =
                    format!("{} vertices take part, and a topology in memory has at most {}", ids.len(), u32::MAX);
                return Err(EngineError::Invalid(message));
            }
            let out = load(snapshot, &ids, &edges, branch).await?;
            let against = match reversed {
                false => None,
                true => Some(load(snapshot, &ids, &snapshot.edges_of(&hop.reversed())?, branch).await?),
            };
            let deleted = deleted(snapshot, &ids, branch).await?;
            Ok(Self { ids, out, against, deleted })
        })
    }
}

/// The ids of vertices that were deleted. Keys are read only of labels that lost some.
async fn deleted(snapshot: &Arc<Snapshot>, ids: &DenseIds, branch: &mut Branch) -> Result<Held<Vec<u32>>, EngineError> {
    let gone =
        |label: LabelId| snapshot.manifest().vertex_counts.get(usize::from(label.0)).map_or(0, |count| count.gone);
    let memory = branch.context().hold(ids.by_label().map(|(label, _)| gone(label)).sum::<u64>() * 4)?;
    let mut deleted = Vec::new();
    let mut pace = branch.context().pace();
    for (label, own) in ids.by_label() {
        if gone(label) == 0 {
            continue;
        }
        let _memory = branch.context().hold(own.end - own.start)?;
        let mut exists = vec![false; (own.end - own.start) as usize];
        let (mut scan, mut keys) = (snapshot.scan_keys(label, AHEAD_BYTES), Vec::new());
        while scan.next(&mut keys, branch).await? {
            for (_, ordinal) in &keys {
                exists.get_mut(*ordinal as usize).into_iter().for_each(|exists| *exists = true);
            }
            pace.rest(keys.len() as u64 * 4).await?;
        }
        deleted.extend((own.start as u32..).zip(&exists).filter(|(_, exists)| !**exists).map(|(id, _)| id));
    }
    Ok(Held::new(deleted, memory))
}

async fn load(
    snapshot: &Arc<Snapshot>,
    ids: &DenseIds,
    edges: &[EdgesOf],
    branch: &mut Branch,
) -> Result<Csr, EngineError> {
    // An upper bound, if commits were not compacted.
    let count = |of: &EdgesOf| snapshot.manifest().edge_counts.get(usize::from(of.edge_type.0)).copied().unwrap_or(0);
    let mut builder = CsrBuilder::new(ids.len(), edges.iter().map(count).sum(), branch.context())?;
    let mut pace = branch.context().pace();
    for (label, own) in ids.by_label() {
        let of_label = edges.iter().filter(|of| of.near == label);
        let mut parts: Vec<_> = of_label.filter_map(|of| Part::new(snapshot, ids, *of, branch)).collect();
        // All ask before the first is waited for: else each edge type would take a wave of its own.
        for part in &mut parts {
            part.scan.ask(&mut part.branch).await?;
        }
        fill(&mut builder, own.start, &mut parts, &mut pace).await?;
        builder.end_before(own.end);
        branch.join(parts.iter().map(|part| &part.branch));
    }
    Ok(builder.finish(ids.len()))
}

/// Adds the lists of a label, whose ids begin at `base`.
async fn fill(builder: &mut CsrBuilder, base: u64, parts: &mut [Part], pace: &mut Pace) -> Result<(), EngineError> {
    loop {
        let mut next = None;
        for part in parts.iter_mut() {
            let source = part.source().await?;
            next = source.into_iter().chain(next).min();
        }
        let Some(source) = next else { return Ok(()) };
        builder.end_before(base + source);
        let mut lists = 0;
        for part in parts.iter_mut() {
            let mut has = false;
            // A hub's list goes on in the next block.
            while part.source().await? == Some(source) {
                let targets = part.take()?;
                builder.extend(targets.iter().map(|target| *target as u32));
                pace.rest(targets.len() as u64 + 16).await?;
                has = true;
            }
            lists += usize::from(has);
        }
        if lists > 1 {
            builder.sort_open();
        }
    }
}

/// The lists of an edge type in one direction.
struct Part {
    scan: ListScan,
    lists: Lists,
    /// The list that comes next.
    at: usize,
    is_ended: bool,
    /// Where the ids of the label begin that they reach, and how many it has.
    base: u64,
    count: u64,
    targets: Vec<u64>,
    branch: Branch,
    location: String,
}

impl Part {
    fn new(snapshot: &Arc<Snapshot>, ids: &DenseIds, of: EdgesOf, branch: &Branch) -> Option<Self> {
        let far = ids.of_label(of.far)?;
        let range = ListRange::all(of.edge_type, of.direction);
        Some(Self {
            scan: snapshot.scan_lists(&range, AHEAD_BYTES),
            lists: Lists::default(),
            at: 0,
            is_ended: false,
            base: far.start,
            count: far.end - far.start,
            targets: Vec::new(),
            branch: branch.clone(),
            location: format!("{}, lists {range}", snapshot.reader().store().url()),
        })
    }

    /// The source of the next list; `None` behind the last.
    async fn source(&mut self) -> Result<Option<u64>, EngineError> {
        while self.at == self.lists.len() {
            if self.is_ended {
                return Ok(None);
            }
            self.is_ended = !self.scan.next(&mut self.lists, &mut self.branch).await?;
            self.at = 0;
        }
        Ok(Some(self.lists.sources[self.at]))
    }

    /// The dense ids that the next list reaches.
    fn take(&mut self) -> Result<&[u64], EngineError> {
        let targets = &self.lists.targets[self.lists.offsets[self.at]..self.lists.offsets[self.at + 1]];
        self.at += 1;
        if targets.iter().any(|target| *target >= self.count) {
            let source = FormatError::corrupt("adjacency block", "it names a vertex that the label does not have");
            return Err(EngineError::Format { location: self.location.clone(), source });
        }
        self.targets.clear();
        self.targets.extend(targets.iter().map(|target| self.base + target));
        Ok(&self.targets)
    }
}
