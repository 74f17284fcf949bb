//! What is sampled.

use hoplake_engine::{
    EdgesOf, EngineError, Snapshot,
    traversal::{Hop, HopDirection},
};
use hoplake_format::Direction;

/// The most hops of a sampler. Neural networks over graphs have two to four layers.
const HOPS_MAX: usize = 64;

/// How many neighbours of each vertex are sampled along the edges of one type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FanOut {
    /// The edges, from the vertex that has the neighbours.
    pub edges: EdgesOf,
    /// How many neighbours, hop by hop; `None` takes all. A hop behind the last takes none.
    pub counts: Vec<Option<u32>>,
}

impl FanOut {
    /// The fan-outs of all edge types that a hop follows, each with these counts.
    ///
    /// # Errors
    /// [`EngineError::NotFound`] if the graph has no edge label of that name; [`EngineError::Invalid`] if the hop has a condition.
    pub fn of_hop(snapshot: &Snapshot, hop: &Hop, counts: &[Option<u32>]) -> Result<Vec<Self>, EngineError> {
        if hop.condition.is_some() {
            return Err(EngineError::Invalid(format!("{hop} has a condition, which a sampler does not take")));
        }
        let edges = snapshot.edges_of(hop)?;
        Ok(edges.into_iter().map(|edges| Self { edges, counts: counts.to_vec() }).collect())
    }

    /// The count of a hop; none if it samples nothing there.
    pub(crate) fn count(&self, hop: usize) -> Option<Option<u32>> {
        self.counts.get(hop).copied().filter(|count| *count != Some(0))
    }
}

/// How a [`Sampler`](crate::Sampler) samples.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SamplerSettings {
    /// The edges, and how many neighbours; each edge type in each direction at most once.
    pub fan_outs: Vec<FanOut>,
    /// Whether an edge may be chosen more than once.
    pub replace: bool,
    /// The property of edges that their chances are proportional to: an int64 or float64 that every edge has, 0 or more. Edges with weight
    /// 0 are never chosen.
    pub weight: Option<String>,
    /// Whether the vertices of each seed are kept apart, so that a vertex near two seeds is in the sample twice.
    pub disjoint: bool,
    /// Whether the sample has all edges between its vertices, along the sampled edge types, in place of the chosen ones.
    pub induced: bool,
    /// What the random choices follow from.
    pub seed: u64,
    /// Whether a sample says where each edge is in the list that it was chosen from: features of edges are found by that.
    pub places: bool,
    /// Lets a seed see nothing that is later than it. Seeds have to be kept apart, since what one sees another may not.
    pub time: Option<TimeSettings>,
}

/// Where the time of an edge is, and which of those that a seed sees are chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeSettings {
    /// An int64, or a date or timestamp, which is in microseconds since 1970-01-01. An edge or vertex whose type does not have it is always
    /// seen; of a type that has it, each needs a value.
    pub property: String,
    /// Whether it is that of the neighbour, and not of the edge.
    pub of_vertices: bool,
    /// Whether the latest edges are chosen, and not random ones.
    pub last: bool,
}

impl SamplerSettings {
    /// How many hops it has.
    pub fn hops(&self) -> usize {
        self.fan_outs.iter().map(|fan_out| fan_out.counts.len()).max().unwrap_or(0)
    }

    pub(crate) fn check(&self, snapshot: &Snapshot) -> Result<(), EngineError> {
        if self.fan_outs.is_empty() {
            return Err(EngineError::Invalid("a sampler needs a fan-out: edges, and how many of each vertex".into()));
        }
        if self.hops() > HOPS_MAX {
            let message = format!("a sampler has at most {HOPS_MAX} hops, not {}", self.hops());
            return Err(EngineError::Invalid(message));
        }
        if self.time.is_some() && !self.disjoint {
            let message = "a sampler with a time has to keep seeds apart (disjoint): what one sees another may not";
            return Err(EngineError::Invalid(message.into()));
        }
        if self.time.as_ref().is_some_and(|time| time.last) && (self.weight.is_some() || self.replace) {
            let message = "the latest edges are chosen without weights and without replacement";
            return Err(EngineError::Invalid(message.into()));
        }
        for (number, fan_out) in self.fan_outs.iter().enumerate() {
            if self.fan_outs[..number].iter().any(|before| before.edges == fan_out.edges) {
                let hop = hop_along(snapshot, fan_out.edges)?;
                return Err(EngineError::Invalid(format!("the sampler has two fan-outs for {hop}; it takes one")));
            }
        }
        Ok(())
    }
}

/// The hop that follows the edges of a type, and others of its label.
pub(crate) fn hop_along(snapshot: &Snapshot, edges: EdgesOf) -> Result<Hop, EngineError> {
    let edge_type = snapshot.schema().edge_type(edges.edge_type);
    let label = edge_type.map(|edge_type| edge_type.label.as_str());
    let label = label.ok_or_else(|| EngineError::NotFound("the graph has no such edge type".into()))?;
    let direction = match edges.direction {
        Direction::Out => HopDirection::Out,
        Direction::In => HopDirection::In,
    };
    Ok(Hop::along(direction, label))
}
