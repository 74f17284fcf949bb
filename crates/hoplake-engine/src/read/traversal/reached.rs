//! What a traversal returns: the set at each depth, and what it took.

use hoplake_storage::Cost;

use crate::Frontier;

/// What one depth took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DepthProfile {
    /// Edges that were followed to it.
    pub edges: u64,
    /// Vertices in its set.
    pub vertices: u64,
    /// What it cost. Only level by level are depths apart in time; elsewhere all is put on the last.
    pub cost: Cost,
    /// How long it took, in microseconds.
    pub time_us: u64,
}

/// What a traversal found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reached {
    /// The set at each depth, from the start at 0 to the last hop.
    pub depths: Vec<Frontier>,
    /// What each hop took.
    pub profile: Vec<DepthProfile>,
}

impl Reached {
    /// The set at the last hop.
    pub fn last(&self) -> &Frontier {
        self.depths.last().expect("depth 0 is always there")
    }
}
