//! Loads the adjacency of a part of a graph into memory.
//!
//! Lists come in the order of dense ids, so offsets and targets are written once, in their order, and nothing is sorted.

use std::sync::Arc;

use futures::future::BoxFuture;
use hoplake_engine::{DenseIds, EdgesOf, EngineError, Held, Snapshot};
use hoplake_format::LabelId;
use hoplake_storage::Branch;

use crate::{
    Csr, Packed, Selection, Workers,
    batches::Batches,
    csr::CsrBuilder,
    selection::{Selected, checked, edge_count},
};

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
    /// Edges with a condition are read as hops are, of up to 65,536 vertices at a time and one direction after the other: two waves each,
    /// and one more for weights. A selection of both directions takes twice as many.
    ///
    /// # Errors
    /// [`EngineError::NotFound`] if the graph has no such label, or no edge or vertex has a property named in the condition;
    /// [`EngineError::Invalid`] if the condition is invalid, or if the labels have more vertices than 32 bits number;
    /// [`EngineError::Limit`] if the budget is too small, before anything is read; the store's.
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
    /// As [`Topology::load`]; [`EngineError::Invalid`] if the selection has weights or a condition.
    pub fn load_packed<'a>(
        snapshot: &'a Arc<Snapshot>,
        selection: &'a Selection,
        workers: &'a Workers,
        branch: &'a mut Branch,
    ) -> BoxFuture<'a, Result<Self, EngineError>> {
        Box::pin(async move {
            selection.check_packed()?;
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
        let mut scan = snapshot.scan_keys(label, snapshot.ahead_bytes(branch.context()));
        let mut keys = Vec::new();
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
    selected: &Selected,
    edges: &[EdgesOf],
    workers: &Workers,
    branch: &mut Branch,
) -> Result<Csr, EngineError> {
    let vertices = selected.ids.len();
    // How many edges match a condition is known when they were read.
    let count = if selected.conditional.is_some() { 0 } else { edge_count(snapshot, edges) };
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
            if selected.conditional.is_some() {
                builder.reserve(batch.targets.len() as u64, branch.context())?;
            }
            builder.append(&batch);
            pace.rest(batch.targets.len() as u64 / 4 + u64::from(batch.vertices.end - batch.vertices.start)).await?;
            batches.spares().put(batch);
        }
    }
}
