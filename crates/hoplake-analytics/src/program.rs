//! Vertex programs: computations that are written for one vertex, and run for all.
//!
//! The model is Signal/Collect (Stutz, Bernstein, Cohen: *Signal/Collect: graph algorithms for the (semantic) web*, 2010). A
//! vertex has a *state*. In a superstep each vertex *signals* along its edges, and *collects* what arrives into its state.

use crate::Value;

/// A vertex, as its program sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vertex {
    /// Its dense id.
    pub id: u32,
    /// How many edges it signals along; 0 unless [`VertexProgram::NEEDS_DEGREES`].
    pub degree: u32,
    /// How many vertices take part, itself included.
    pub vertices: u64,
}

/// An edge, as its program sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Edge {
    /// The value of the property that was chosen as weight; 1 if none was.
    pub weight: f64,
}

/// What is known of all vertices when a superstep begins, or a step of an asynchronous run.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Step<A> {
    /// Its number, from 1 on.
    pub number: usize,
    /// What the states before it add up to.
    pub aggregate: A,
    /// Whether the run is asynchronous: some vertices collect, and signals are the latest, of this step or of those before.
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
    /// What a vertex keeps from one superstep to the next.
    type State: Value;
    /// What it sends along its edges.
    type Signal: Value;
    /// What is added up over all vertices: `()` if nothing is.
    type Aggregate: Clone + Default + Send + Sync + 'static;

    /// Whether it asks for [`Vertex::degree`]. If lists are streamed, that is a scan more, once.
    const NEEDS_DEGREES: bool = false;

    /// Whether it makes no sense unless all vertices see the signals of the same superstep: then it is not run asynchronously.
    const NEEDS_SUPERSTEPS: bool = false;

    /// Whether a vertex that no signal reaches keeps its state. Then it need not collect in an asynchronous run, in which otherwise
    /// all vertices do once.
    const WAITS_FOR_SIGNALS: bool = false;

    /// What tells a run of this program from one of another, or with other parameters: a run goes on from a
    /// [`Checkpoint`](crate::Checkpoint) with the same name only. By default the name of its type.
    fn name(&self) -> String {
        std::any::type_name::<Self>().into()
    }

    /// The state of a vertex before the first superstep.
    fn initial(&self, vertex: &Vertex) -> Self::State;

    /// What a vertex in this state sends along each of its edges; `None` if nothing. It depends on nothing else, so that a run
    /// that was stopped can go on from its states.
    fn signal(&self, vertex: &Vertex, state: &Self::State) -> Option<Self::Signal>;

    /// What arrives of a signal at the other end of an edge.
    fn along(&self, signal: Self::Signal, edge: &Edge) -> Self::Signal {
        let _ = edge;
        signal
    }

    /// How much it matters to a vertex at the other end of an edge that a signal has changed, from 0 on; for asynchronous runs.
    /// Scores add up to that vertex's reason to collect, and the greatest go first. With a score of 0 or less, or NaN, the signal that was
    /// there stays, and is the `before` of the next change. By default all changes matter the same.
    fn score(&self, before: Option<Self::Signal>, after: Option<Self::Signal>) -> f64 {
        if before == after { 0.0 } else { 1.0 }
    }

    /// Takes the signals of a superstep into the state, and returns whether that changed it. They come in the order of the
    /// vertices that sent them, once for each edge; there may be none. In an asynchronous run signals are what the others send
    /// now, also if the vertex has collected them before.
    fn collect(
        &self,
        vertex: &Vertex,
        state: &mut Self::State,
        signals: impl Iterator<Item = Self::Signal>,
        step: &Step<Self::Aggregate>,
    ) -> bool;

    /// Adds a vertex's part to the aggregate, after a superstep; before the first, both states are the same.
    fn aggregate(&self, vertex: &Vertex, before: &Self::State, after: &Self::State, into: &mut Self::Aggregate) {
        let _ = (vertex, before, after, into);
    }

    /// Adds the aggregate of some vertices to that of those before them.
    fn merge(&self, into: &mut Self::Aggregate, other: Self::Aggregate) {
        let _ = (into, other);
    }

    /// Whether the computation is over, though states still change: by default it goes on until none does.
    fn is_converged(&self, aggregate: &Self::Aggregate) -> bool {
        let _ = aggregate;
        false
    }

    /// Whether an asynchronous run is over, though vertices wait to collect whose scores add up to `waiting`: by default it goes on
    /// until none does.
    fn is_settled(&self, waiting: f64, aggregate: &Self::Aggregate) -> bool {
        let _ = (waiting, aggregate);
        false
    }

    /// Turns the state at the end of an asynchronous run into the result, when all states add up to `aggregate`: by default it is
    /// the result.
    fn settle(&self, vertex: &Vertex, state: &mut Self::State, aggregate: &Self::Aggregate) {
        let _ = (vertex, state, aggregate);
    }
}
