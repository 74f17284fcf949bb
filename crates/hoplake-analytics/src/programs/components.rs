//! Connected components.

use std::ops::ControlFlow;

use crate::{Step, Vertex, VertexProgram};

/// The least dense id that can be reached from each vertex: its connected component, if the edges of the selection are followed in
/// both directions.
///
/// In supersteps a vertex that has the [least component that spreads](LeastSpread) is done, and looks at no more signals. That is most
/// vertices of a graph that has one great component, from the third superstep on.
#[derive(Debug, Clone, Copy, Default)]
pub struct Components;

/// The least component of a vertex that does not have its number; `None` before the first superstep. After it, each component of
/// several vertices has such a one, whose component is at most the least id of these: so the least of all spreads no further down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct LeastSpread(Option<u32>);

impl LeastSpread {
    fn add(&mut self, other: Option<u32>) {
        self.0 = self.0.into_iter().chain(other).min();
    }
}

impl VertexProgram for Components {
    type State = u32;
    type Signal = u32;
    type Aggregate = LeastSpread;

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

    fn collect(
        &self,
        _: &Vertex,
        component: &mut u32,
        mut signals: impl Iterator<Item = u32>,
        step: &Step<LeastSpread>,
    ) -> bool {
        let before = *component;
        *component = match step.aggregate.0 {
            // A step of an asynchronous run may not have brought the least ids anywhere yet.
            Some(least) if !step.is_asynchronous => {
                if before == least {
                    return false;
                }
                let until_least = signals.try_fold(before, |component, signal| match signal {
                    signal if signal == least => ControlFlow::Break(least),
                    signal => ControlFlow::Continue(component.min(signal)),
                });
                match until_least {
                    ControlFlow::Break(component) | ControlFlow::Continue(component) => component,
                }
            }
            _ => signals.fold(before, u32::min),
        };
        *component != before
    }

    fn aggregate(&self, vertex: &Vertex, _: &u32, component: &u32, into: &mut LeastSpread) {
        into.add((*component != vertex.id).then_some(*component));
    }

    fn merge(&self, into: &mut LeastSpread, other: LeastSpread) {
        into.add(other.0);
    }
}
