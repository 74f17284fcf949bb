//! Single-source shortest paths.

use crate::{Edge, Step, Vertex, VertexProgram};

/// The length of a shortest path from a vertex to each other, by the weights of edges; infinity where there is none. Weights are not
/// negative.
#[derive(Debug, Clone, Copy)]
pub struct ShortestPaths {
    /// The dense id of the first vertex.
    pub start: u32,
}

impl VertexProgram for ShortestPaths {
    type State = f64;
    type Signal = f64;
    type Aggregate = ();

    const WAITS_FOR_SIGNALS: bool = true;

    fn name(&self) -> String {
        format!("shortest paths from {}", self.start)
    }

    fn initial(&self, vertex: &Vertex) -> f64 {
        if vertex.id == self.start { 0.0 } else { f64::INFINITY }
    }

    fn signal(&self, _: &Vertex, length: &f64) -> Option<f64> {
        length.is_finite().then_some(*length)
    }

    fn along(&self, length: f64, edge: &Edge) -> f64 {
        length + edge.weight
    }

    /// The nearest first: fewer paths are shorter than theirs.
    fn score(&self, before: Option<f64>, after: Option<f64>) -> f64 {
        // A length of 0 has the greatest score that there is.
        if before == after { 0.0 } else { after.map_or(0.0, |length| 1.0 / length) }
    }

    fn collect(&self, _: &Vertex, length: &mut f64, signals: impl Iterator<Item = f64>, _: &Step<()>) -> bool {
        let before = *length;
        *length = signals.fold(before, f64::min);
        *length < before
    }
}
