//! Connected components.

use crate::{Step, Vertex, VertexProgram};

/// The least dense id that can be reached from each vertex: its connected component, if the edges of the selection are followed in
/// both directions.
#[derive(Debug, Clone, Copy, Default)]
pub struct Components;

impl VertexProgram for Components {
    type State = u32;
    type Signal = u32;
    type Aggregate = ();

    fn name(&self) -> String {
        "components".into()
    }

    fn initial(&self, vertex: &Vertex) -> u32 {
        vertex.id
    }

    fn signal(&self, _: &Vertex, component: &u32) -> Option<u32> {
        Some(*component)
    }

    /// How many ids lower: the lowest spread first, since they stay.
    fn score(&self, before: Option<u32>, after: Option<u32>) -> f64 {
        let id = |signal: Option<u32>| f64::from(signal.unwrap_or(u32::MAX));
        id(before) - id(after)
    }

    fn collect(&self, _: &Vertex, component: &mut u32, signals: impl Iterator<Item = u32>, _: &Step<()>) -> bool {
        let before = *component;
        *component = signals.fold(before, u32::min);
        *component != before
    }
}
