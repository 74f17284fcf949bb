//! Breadth-first levels.

use crate::{Step, Vertex, VertexProgram};

pub use crate::kernels::UNREACHED;

/// The number of edges of a shortest path from a vertex to each other; [`UNREACHED`] where there is none.
#[derive(Debug, Clone, Copy)]
pub struct Levels {
    /// The dense id of the first vertex.
    pub start: u32,
}

impl VertexProgram for Levels {
    type State = u32;
    type Signal = u32;
    type Aggregate = ();

    const WAITS_FOR_SIGNALS: bool = true;

    fn name(&self) -> String {
        format!("levels from {}", self.start)
    }

    fn initial(&self, vertex: &Vertex) -> u32 {
        if vertex.id == self.start { 0 } else { UNREACHED }
    }

    fn signal(&self, _: &Vertex, level: &u32) -> Option<u32> {
        (*level != UNREACHED).then(|| level + 1)
    }

    /// The nearest first: their levels do not change any more.
    fn score(&self, before: Option<u32>, after: Option<u32>) -> f64 {
        if before == after { 0.0 } else { after.map_or(0.0, |level| 1.0 / f64::from(level)) }
    }

    fn collect(&self, _: &Vertex, level: &mut u32, mut signals: impl Iterator<Item = u32>, step: &Step<()>) -> bool {
        if step.is_asynchronous {
            let before = *level;
            *level = signals.fold(before, u32::min);
            return *level != before;
        }
        // In a superstep only those of the last level are new, and all before them are known.
        let reached = if *level == UNREACHED { signals.next() } else { None };
        reached.into_iter().for_each(|reached| *level = reached);
        reached.is_some()
    }
}
