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

    fn name(&self) -> String {
        format!("levels from {}", self.start)
    }

    fn initial(&self, vertex: &Vertex) -> u32 {
        if vertex.id == self.start { 0 } else { UNREACHED }
    }

    fn signal(&self, _: &Vertex, level: &u32) -> Option<u32> {
        (*level != UNREACHED).then(|| level + 1)
    }

    fn collect(&self, _: &Vertex, level: &mut u32, mut signals: impl Iterator<Item = u32>, _: &Step<()>) -> bool {
        // In a superstep only those of the last level are new, and all before them are known.
        let reached = if *level == UNREACHED { signals.next() } else { None };
        reached.into_iter().for_each(|reached| *level = reached);
        reached.is_some()
    }
}
