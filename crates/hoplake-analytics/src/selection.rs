//! Which vertices and edges take part in a computation.

use std::{collections::BTreeSet, sync::Arc};

use hoplake_engine::{
    DenseIds, EdgesOf, EngineError, Snapshot,
    traversal::{Hop, HopDirection},
};
use hoplake_format::LabelId;

/// Which part of a graph takes part in a computation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selection {
    /// The edges, and in which direction they are followed. Only those that match its condition take part. A condition on the vertex that
    /// an edge reaches needs a direction: `out` or `in`.
    pub hop: Hop,
    /// The direction in which an edge reaches the vertex that a condition is on; without it, the direction of the hop. For algorithms that
    /// follow the edges of a user's hop against its direction, or both ways.
    pub condition_direction: Option<HopDirection>,
    /// Labels whose vertices take part, with or without such edges. Both ends of all selected edges take part in any case.
    pub labels: Vec<String>,
    /// Whether the edges are needed from their other ends, too.
    pub reversed: bool,
    /// The property of edges that is their weight: an int64 or float64 that every selected edge has.
    pub weight: Option<String>,
}

/// What a selection means in a version.
#[derive(Clone, Debug)]
pub(crate) struct Selected {
    pub(crate) ids: Arc<DenseIds>,
    pub(crate) edges: Vec<EdgesOf>,
    /// The same edges from their other ends.
    pub(crate) against: Vec<EdgesOf>,
    pub(crate) weight: Option<String>,
    /// The hop whose condition edges match, in the direction in which it is evaluated; `None` if all edges take part.
    pub(crate) conditional: Option<Arc<Hop>>,
}

impl Selection {
    /// The dense ids of the vertices that take part.
    ///
    /// # Errors
    /// As [`Topology::load`](crate::Topology::load), before anything is read.
    pub fn dense_ids(&self, snapshot: &Snapshot) -> Result<Arc<DenseIds>, EngineError> {
        Ok(self.resolve(snapshot)?.ids)
    }

    /// The memory that a topology of it and the arrays of a kernel take, at 40 bytes a vertex.
    ///
    /// # Errors
    /// As [`Topology::load`](crate::Topology::load), before anything is read.
    pub fn memory_bytes(&self, snapshot: &Snapshot) -> Result<u64, EngineError> {
        self.bytes(snapshot, if self.weight.is_some() { 12 } else { 4 })
    }

    /// The same with lists as they are stored, at 2 bytes an edge.
    ///
    /// # Errors
    /// As [`Topology::load_packed`](crate::Topology::load_packed), before anything is read.
    pub fn packed_bytes(&self, snapshot: &Snapshot) -> Result<u64, EngineError> {
        self.check_packed()?;
        self.bytes(snapshot, 2)
    }

    /// Rejects what lists as they are stored do not have.
    pub(crate) fn check_packed(&self) -> Result<(), EngineError> {
        let what = match (&self.weight, &self.hop.condition) {
            (None, None) => return Ok(()),
            (Some(_), _) => "weights",
            (None, Some(_)) => "conditions on edges",
        };
        Err(EngineError::Invalid(format!("packed lists do not support {what}: use lists in memory or streamed")))
    }

    fn bytes(&self, snapshot: &Snapshot, edge_bytes: u64) -> Result<u64, EngineError> {
        let Selected { ids, edges, .. } = self.resolve(snapshot)?;
        let lists = (ids.len() + 1) * 8 + edge_count(snapshot, &edges) * edge_bytes;
        Ok(lists * (1 + u64::from(self.reversed)) + ids.len() * 40)
    }

    /// Looks its labels up.
    pub(crate) fn resolve(&self, snapshot: &Snapshot) -> Result<Selected, EngineError> {
        let conditional = self.conditional(snapshot)?;
        let hop = Hop { condition: None, ..self.hop.clone() };
        let edges = snapshot.edges_of(&hop)?;
        let mut taking_part: BTreeSet<LabelId> = edges.iter().flat_map(|of| [of.near, of.far]).collect();
        for name in &self.labels {
            let label = snapshot.schema().label_id(name);
            taking_part
                .insert(label.ok_or_else(|| EngineError::NotFound(format!("the graph has no vertex label {name:?}")))?);
        }
        let ids = checked(snapshot.dense_ids(taking_part))?;
        let against = snapshot.edges_of(&hop.reversed())?;
        Ok(Selected { ids: Arc::new(ids), edges, against, weight: self.weight.clone(), conditional })
    }

    /// The hop that evaluates the condition of the selection, if there is one.
    fn conditional(&self, snapshot: &Snapshot) -> Result<Option<Arc<Hop>>, EngineError> {
        if self.hop.condition.is_none() {
            return Ok(None);
        }
        let direction = self.condition_direction.unwrap_or(self.hop.direction);
        let hop = Hop { direction, ..self.hop.clone() };
        snapshot.edges_of(&hop)?;
        if direction != HopDirection::Both {
            return Ok(Some(Arc::new(hop)));
        }
        if snapshot.is_on_vertices(&hop) {
            let message = format!(
                "the condition of {hop} tests the vertex that an edge reaches, so the hop needs a direction (out or in)"
            );
            return Err(EngineError::Invalid(message));
        }
        // From both of its ends, an edge has the same properties.
        Ok(Some(Arc::new(Hop { direction: HopDirection::Out, ..hop })))
    }
}

/// Dense ids of which 32 bits number all.
pub(crate) fn checked(ids: DenseIds) -> Result<DenseIds, EngineError> {
    if ids.len() > u64::from(u32::MAX) {
        let message = format!("{} vertices take part, and a computation has at most {}", ids.len(), u32::MAX);
        return Err(EngineError::Invalid(message));
    }
    Ok(ids)
}

/// How many edges lists have; an upper bound, if commits were not compacted.
pub(crate) fn edge_count(snapshot: &Snapshot, edges: &[EdgesOf]) -> u64 {
    let counts = &snapshot.manifest().edge_counts;
    edges.iter().filter_map(|of| counts.get(usize::from(of.edge_type.0))).sum()
}
