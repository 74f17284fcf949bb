//! Vertex programs: computations that are written for one vertex and run for all.
//!
//! The model is Signal/Collect (Stutz, Bernstein, Cohen: *Signal/Collect: graph algorithms for the (semantic) web*, 2010). A
//! vertex has a *state*. In a superstep each vertex *signals* along its edges, and *collects* what arrives into its state.

use crate::Value;

/// A vertex, as its program sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vertex {
    /// Its dense id.
    pub id: u32,
    /// The number of edges along which it signals; 0 unless [`VertexProgram::NEEDS_DEGREES`].
    pub degree: u32,
    /// The number of vertices in the computation, itself included.
    pub vertices: u64,
}

/// An edge, as its program sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Edge {
    /// The value of the weight property; 1 if there is none.
    pub weight: f64,
}

/// The global state at the beginning of a superstep, or of a step of an asynchronous run.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Step<A> {
    /// Its number, from 1 on.
    pub number: usize,
    /// The aggregate of the states before it.
    pub aggregate: A,
    /// Whether the run is asynchronous: only some vertices collect, and each signal is the latest, of this step or an earlier one.
    pub is_asynchronous: bool,
}

/// A computation, written for one vertex.
///
/// ```
/// use hoplake_analytics::{Edge, Step, Vertex, VertexProgram};
///
/// /// The least id of the vertices from which a vertex can be reached.
/// struct LeastAncestor;
///
/// impl VertexProgram for LeastAncestor {
///     type State = u32;
///     type Signal = u32;
///     type Aggregate = ();
///
///     fn initial(&self, vertex: &Vertex) -> u32 {
///         vertex.id
///     }
///
///     fn signal(&self, _: &Vertex, state: &u32) -> Option<u32> {
///         Some(*state)
///     }
///
///     fn collect(&self, _: &Vertex, state: &mut u32, signals: impl Iterator<Item = u32>, _: &Step<()>) -> bool {
///         let before = *state;
///         *state = signals.fold(before, u32::min);
///         *state != before
///     }
/// }
/// ```
pub trait VertexProgram: Send + Sync + 'static {
    /// The state that a vertex keeps from one superstep to the next.
    type State: Value;
    /// The signal that it sends along its edges.
    type Signal: Value;
    /// The value that is added up over all vertices; `()` if there is none.
    type Aggregate: Clone + Default + Send + Sync + 'static;

    /// Whether it uses [`Vertex::degree`]. With streamed lists, that takes one more scan.
    const NEEDS_DEGREES: bool = false;

    /// Whether all vertices must see the signals of the same superstep. Then asynchronous runs are rejected.
    const NEEDS_SUPERSTEPS: bool = false;

    /// Whether a vertex without incoming signals keeps its state. Then an asynchronous run skips it; otherwise all vertices collect at
    /// least once.
    const WAITS_FOR_SIGNALS: bool = false;

    /// Identifies the program with its parameters: a run resumes only from a [`Checkpoint`](crate::Checkpoint) with the same name. By
    /// default the name of its type.
    fn name(&self) -> String {
        std::any::type_name::<Self>().into()
    }

    /// The state of a vertex before the first superstep.
    fn initial(&self, vertex: &Vertex) -> Self::State;

    /// The signal that a vertex in this state sends along each of its edges; `None` for no signal. It must depend on nothing else, so that
    /// a stopped run can resume from its states.
    fn signal(&self, vertex: &Vertex, state: &Self::State) -> Option<Self::Signal>;

    /// The signal as it arrives at the other end of an edge.
    fn along(&self, signal: Self::Signal, edge: &Edge) -> Self::Signal {
        let _ = edge;
        signal
    }

    /// The importance of a changed signal for the vertex at the other end of an edge, 0 or more; for asynchronous runs. The scores of a
    /// vertex's changed signals add up, and the vertices with the highest sums collect first. If the score is 0 or less, or NaN, the old
    /// signal stays, and is the `before` of the next change. By default all changes score the same.
    fn score(&self, before: Option<Self::Signal>, after: Option<Self::Signal>) -> f64 {
        if before == after { 0.0 } else { 1.0 }
    }

    /// Updates the state from the signals of a superstep, and returns whether it changed. The signals are in the order of the vertices that
    /// sent them, one for each edge; there may be none. In an asynchronous run they are the latest signals of the neighbours, including
    /// signals that the vertex has collected before.
    fn collect(
        &self,
        vertex: &Vertex,
        state: &mut Self::State,
        signals: impl Iterator<Item = Self::Signal>,
        step: &Step<Self::Aggregate>,
    ) -> bool;

    /// Adds a vertex's contribution to the aggregate, after a superstep; before the first superstep, both states are the same.
    fn aggregate(&self, vertex: &Vertex, before: &Self::State, after: &Self::State, into: &mut Self::Aggregate) {
        let _ = (vertex, before, after, into);
    }

    /// Adds the aggregate of some vertices to that of the vertices before them.
    fn merge(&self, into: &mut Self::Aggregate, other: Self::Aggregate) {
        let _ = (into, other);
    }

    /// Whether the computation has converged although states still change. By default it runs until no state changes.
    fn is_converged(&self, aggregate: &Self::Aggregate) -> bool {
        let _ = aggregate;
        false
    }

    /// Whether an asynchronous run has converged although the scores of pending vertices add up to `waiting`. By default it runs until no
    /// vertex is pending.
    fn is_settled(&self, waiting: f64, aggregate: &Self::Aggregate) -> bool {
        let _ = (waiting, aggregate);
        false
    }

    /// Converts the state at the end of an asynchronous run into the result, given the aggregate of all states. By default the state is the
    /// result.
    fn settle(&self, vertex: &Vertex, state: &mut Self::State, aggregate: &Self::Aggregate) {
        let _ = (vertex, state, aggregate);
    }
}
