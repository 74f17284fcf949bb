//! Walks: vertices that follow each other along edges, and the edges if they were asked for.
//!
//! Most callers want the vertices alone, and an edge takes five times as much memory as a vertex, so the enumeration of walks collects
//! edges only on demand.

use hoplake_format::{Direction, VertexId};

use crate::Neighbour;

/// A walk through a graph.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Walk {
    /// Its vertices, the start first.
    pub vertices: Vec<VertexId>,
    /// The edge between each vertex and the next, one fewer than vertices; none if edges were not asked for. A shortest path is
    /// searched from both ends, so an edge of it may be seen from the later vertex: [`Self::direction`] is that of the walk.
    pub edges: Vec<Neighbour>,
}

impl Walk {
    /// The direction in which the walk follows its edge at a position; `None` without that edge.
    pub fn direction(&self, at: usize) -> Option<Direction> {
        let edge = self.edges.get(at)?;
        let from = self.vertices.get(at)?;
        Some(match edge.from == *from {
            true => edge.direction,
            false => edge.direction.reverse(),
        })
    }

    /// The memory that it takes.
    pub fn bytes(&self) -> u64 {
        (size_of::<Self>() + size_of_val(&self.vertices[..]) + size_of_val(&self.edges[..])) as u64
    }
}
