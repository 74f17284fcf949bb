//! Loads the adjacency of a part of a graph into memory.
//!
//! Lists come in the order of dense ids, so offsets and targets are written once, in their order, and nothing is sorted.

use std::{collections::BTreeSet, sync::Arc};

use futures::future::BoxFuture;
use hoplake_engine::{DenseIds, EdgesOf, EngineError, Held, Snapshot, traversal::Hop};
use hoplake_format::LabelId;
use hoplake_storage::Branch;

use crate::{Csr, Packed, Workers, batches::Batches, csr::CsrBuilder};

/// Which part of a graph takes part in a computation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selection {
    /// The edges, and in which direction they are followed; no conditions.
    pub hop: Hop,
    /// Labels whose vertices take part, with or without such edges. Both ends of all selected edges take part in any case.
    pub labels: Vec<String>,
    /// Whether the edges are needed from their other ends, too.
    pub reversed: bool,
    /// The property of edges that is their weight: an int64 or float64 that every selected edge has.
    pub weight: Option<String>,
}

/// What a selection means in a version.
#[derive(Clone)]
pub(crate) struct Selected {
    pub(crate) ids: Arc<DenseIds>,
    pub(crate) edges: Vec<EdgesOf>,
    /// The same edges from their other ends.
    pub(crate) against: Vec<EdgesOf>,
    pub(crate) weight: Option<String>,
}

impl Selection {
    /// The dense ids of the vertices that take part.
    ///
    /// # Errors
    /// As [`Topology::load`], before anything is read.
    pub fn dense_ids(&self, snapshot: &Snapshot) -> Result<Arc<DenseIds>, EngineError> {
        Ok(self.resolve(snapshot)?.ids)
    }

    /// The memory that a topology of it and the arrays of a kernel take, at 40 bytes a vertex.
    ///
    /// # Errors
    /// As [`Topology::load`], before anything is read.
    pub fn memory_bytes(&self, snapshot: &Snapshot) -> Result<u64, EngineError> {
        self.bytes(snapshot, if self.weight.is_some() { 12 } else { 4 })
    }

    /// The same with lists as they are stored, at 2 bytes an edge.
    ///
    /// # Errors
    /// As [`Topology::load`], before anything is read.
    pub fn packed_bytes(&self, snapshot: &Snapshot) -> Result<u64, EngineError> {
        self.bytes(snapshot, 2)
    }

    fn bytes(&self, snapshot: &Snapshot, edge_bytes: u64) -> Result<u64, EngineError> {
        let Selected { ids, edges, .. } = self.resolve(snapshot)?;
        let lists = (ids.len() + 1) * 8 + edges_of(snapshot, &edges) * edge_bytes;
        Ok(lists * (1 + u64::from(self.reversed)) + ids.len() * 40)
    }

    /// Looks its labels up.
    pub(crate) fn resolve(&self, snapshot: &Snapshot) -> Result<Selected, EngineError> {
        let Self { hop, labels, .. } = self;
        if hop.condition.is_some() {
            let message = format!("{hop} has a condition, which whole-graph computations do not support");
            return Err(EngineError::Invalid(message));
        }
        let edges = snapshot.edges_of(hop)?;
        let mut taking_part: BTreeSet<LabelId> = edges.iter().flat_map(|of| [of.near, of.far]).collect();
        for name in labels {
            let label = snapshot.schema().label_id(name);
            taking_part
                .insert(label.ok_or_else(|| EngineError::NotFound(format!("the graph has no vertex label {name:?}")))?);
        }
        let ids = checked(snapshot.dense_ids(taking_part))?;
        let against = snapshot.edges_of(&hop.reversed())?;
        Ok(Selected { ids: Arc::new(ids), edges, against, weight: self.weight.clone() })
    }
}

/// Who is adjacent to whom, by dense ids of 32 bits.
#[derive(Debug)]
pub struct Topology<A = Csr> {
    /// The dense ids of the vertices.
    pub ids: Arc<DenseIds>,
    /// The edges in the direction of the selection.
    pub out: A,
    /// The same edges from their other ends, if they were selected. A selection of both directions is its own reverse.
    pub against: Option<A>,
    /// Ids of vertices that were deleted, ascending. They have no edges, and count for nothing.
    pub deleted: Held<Vec<u32>>,
}

impl Topology<Csr> {
    /// Loads the adjacency that a selection has. One wave, and then as fast as the store delivers or the workers decode: the size
    /// of the lists, with a request for 4 MiB. Memory: 8 bytes a vertex and 4 an edge, twice if it is reversed.
    ///
    /// # Errors
    /// [`EngineError::NotFound`] if the graph has no such label; [`EngineError::Invalid`] if the hop has conditions, or if the
    /// labels have more vertices than 32 bits number; [`EngineError::Limit`] if the budget is too small, before anything is read;
    /// the store's.
    pub fn load<'a>(
        snapshot: &'a Arc<Snapshot>,
        selection: &'a Selection,
        workers: &'a Workers,
        branch: &'a mut Branch,
    ) -> BoxFuture<'a, Result<Self, EngineError>> {
        Box::pin(async move {
            let selected = selection.resolve(snapshot)?;
            let out = load(snapshot, &selected, &selected.edges, workers, branch).await?;
            let against = match selection.reversed {
                false => None,
                true => Some(load(snapshot, &selected, &selected.against, workers, branch).await?),
            };
            let deleted = deleted(snapshot, &selected.ids, branch).await?;
            Ok(Self { ids: selected.ids, out, against, deleted })
        })
    }

    /// All vertices of a version, and no edge. Memory: 8 bytes a vertex.
    ///
    /// # Errors
    /// As [`Topology::load`].
    pub async fn without_edges(snapshot: &Arc<Snapshot>, branch: &mut Branch) -> Result<Self, EngineError> {
        let labels = (0u16..).map(LabelId).take(snapshot.schema().vertex_labels.len());
        let ids = checked(snapshot.dense_ids(labels))?;
        let out = CsrBuilder::new(ids.len(), 0, false, branch.context())?.finish(ids.len());
        let deleted = deleted(snapshot, &ids, branch).await?;
        // Both directions of nothing are the same.
        Ok(Self { ids: Arc::new(ids), out, against: None, deleted })
    }
}

impl Topology<Packed> {
    /// Loads the adjacency that a selection has as stored blocks, which kernels decode as they read: 8 bytes a vertex, and what the
    /// blocks take. As [`Topology::load`] otherwise.
    ///
    /// # Errors
    /// As [`Topology::load`]; [`EngineError::Invalid`] if the selection has weights.
    pub fn load_packed<'a>(
        snapshot: &'a Arc<Snapshot>,
        selection: &'a Selection,
        workers: &'a Workers,
        branch: &'a mut Branch,
    ) -> BoxFuture<'a, Result<Self, EngineError>> {
        Box::pin(async move {
            if selection.weight.is_some() {
                return Err(EngineError::Invalid(
                    "weights of edges are read into memory or streamed, not packed".into(),
                ));
            }
            let selected = selection.resolve(snapshot)?;
            let out = Packed::load(snapshot, &selected, &selected.edges, workers, branch).await?;
            let against = match selection.reversed {
                false => None,
                true => Some(Packed::load(snapshot, &selected, &selected.against, workers, branch).await?),
            };
            let deleted = deleted(snapshot, &selected.ids, branch).await?;
            Ok(Self { ids: selected.ids, out, against, deleted })
        })
    }
}

/// Dense ids of which 32 bits number all.
fn checked(ids: DenseIds) -> Result<DenseIds, EngineError> {
    if ids.len() > u64::from(u32::MAX) {
        let message = format!("{} vertices take part, and a computation has at most {}", ids.len(), u32::MAX);
        return Err(EngineError::Invalid(message));
    }
    Ok(ids)
}

/// The ids of vertices that were deleted. Keys are read only of labels that lost some.
pub(crate) async fn deleted(
    snapshot: &Arc<Snapshot>,
    ids: &DenseIds,
    branch: &mut Branch,
) -> Result<Held<Vec<u32>>, EngineError> {
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
        let (mut scan, mut keys) = (snapshot.scan_keys(label, snapshot.ahead_bytes(branch.context())), Vec::new());
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

/// How many edges lists have; an upper bound, if commits were not compacted.
fn edges_of(snapshot: &Snapshot, edges: &[EdgesOf]) -> u64 {
    let counts = &snapshot.manifest().edge_counts;
    edges.iter().filter_map(|of| counts.get(usize::from(of.edge_type.0))).sum()
}

async fn load(
    snapshot: &Arc<Snapshot>,
    selected: &Selected,
    edges: &[EdgesOf],
    workers: &Workers,
    branch: &mut Branch,
) -> Result<Csr, EngineError> {
    let (vertices, count) = (selected.ids.len(), edges_of(snapshot, edges));
    let mut builder = CsrBuilder::new(vertices, count, selected.weight.is_some(), branch.context())?;
    let all = 0..selected.ids.len() as u32;
    let mut batches = Batches::new(snapshot, selected, edges, all, workers, branch.context())?;
    let mut pace = branch.context().pace();
    loop {
        let next = batches.next(branch).await?;
        if next.is_empty() {
            return Ok(builder.finish(vertices));
        }
        for batch in next {
            builder.append(&batch);
            pace.rest(batch.targets.len() as u64 / 4 + u64::from(batch.vertices.end - batch.vertices.start)).await?;
            batches.spares().put(batch);
        }
    }
}
