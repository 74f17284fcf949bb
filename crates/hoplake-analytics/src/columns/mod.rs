//! Programs over whole columns: the caller computes a signal for every vertex at once, and one pass over the lists combines, for each
//! vertex, the signals that arrive along its edges.
//!
//! ```text
//! caller:  state ──▶ a signal for each vertex ─┐          ┌─▶ a value for each vertex ──▶ new state
//! here:              lists, range by range ────┴─▶ combine ┘
//! ```
//! A [`VertexProgram`](crate::VertexProgram) is compiled for one vertex. Where that is not possible, as in Python, a call for each vertex
//! would cost more than the walk over its edges; a call for each superstep costs nothing next to it. So what a vertex does with its signals is
//! one of the combinators of [`Combine`], and the rest is the caller's, column by column.
//!
//! As in [`run`](crate::run()), a vertex pulls: lists follow edges against their direction, and are in memory or streamed. Signals are combined in the
//! order of a list, so that results do not depend on the number of threads.

pub(crate) mod combine;
mod edges;

use std::sync::Arc;

use hoplake_engine::{EngineError, Held};
use hoplake_storage::{Branch, QueryContext};

use crate::{
    Lists, Workers,
    lists::{AdjacencySlice, Origin},
};

pub use combine::combine;
pub use edges::{edge_counts, weight_sums};

/// A number for each vertex.
#[derive(Debug, Clone, PartialEq)]
pub enum Column {
    /// int64.
    Integers(Vec<i64>),
    /// float64.
    Floats(Vec<f64>),
}

/// A number of either type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// int64.
    Integer(i64),
    /// float64.
    Float(f64),
}

/// What a vertex makes of the signals that it receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Combine {
    /// Their sum; 0 if there are none.
    Sum,
    /// The least; infinity or the greatest int64 if there are none.
    Min,
    /// The greatest; minus infinity or the least int64 if there are none.
    Max,
    /// Their mean, as a float; NaN if there are none.
    Mean,
    /// How many there are, as an integer.
    Count,
    /// The most frequent, and the least of these; if there are none, the signal of the vertex itself.
    Mode,
}

/// What the weight of an edge does to a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Along {
    /// The signal is multiplied by it.
    Times,
    /// It is added to the signal.
    Plus,
}

/// How signals are combined.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Combination {
    /// The combinator.
    pub combine: Combine,
    /// The effect of weights; `None` if the lists have none.
    pub along: Option<Along>,
    /// The value of a vertex that receives no signal, instead of that of the combinator. Its type is that of the result.
    pub default: Option<Number>,
}

/// The signals of all vertices, by dense id.
#[derive(Debug, Clone, PartialEq)]
pub struct SignalColumn {
    /// The signals. NaN is none.
    pub values: Column,
    /// Which vertices send theirs; `None` for all.
    pub is_sent: Option<Vec<bool>>,
}

/// Bytes for each vertex while signals are combined: signals as they were given, as they are combined, and the result twice, when a part of it is
/// added to the rest.
pub const COMBINE_BYTES: u64 = 9 + 9 + 8 + 8;

impl Column {
    /// How many numbers it has.
    pub fn len(&self) -> usize {
        match self {
            Self::Integers(values) => values.len(),
            Self::Floats(values) => values.len(),
        }
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Combine {
    /// All of them, with the names that users write.
    pub const ALL: [(&'static str, Self); 6] = [
        ("sum", Self::Sum),
        ("min", Self::Min),
        ("max", Self::Max),
        ("mean", Self::Mean),
        ("count", Self::Count),
        ("mode", Self::Mode),
    ];

    /// Whether weights of edges have an effect on it.
    pub fn has_weights(self) -> bool {
        !matches!(self, Self::Count | Self::Mode)
    }

    /// Whether the result is of floats, if signals are.
    pub fn is_float(self, signals: bool) -> bool {
        match self {
            Self::Mean => true,
            Self::Count => false,
            Self::Sum | Self::Min | Self::Max | Self::Mode => signals,
        }
    }
}

/// Computes a value for each vertex from its list, in parallel. `of` gets a vertex, its neighbours, the weights of its edges, and room that the
/// vertices of a piece share.
async fn each<R: Send + 'static, S: Default>(
    lists: &Lists,
    workers: &Workers,
    branch: &mut Branch,
    of: impl Fn(u32, &[u32], &[f64], &mut S) -> Result<R, EngineError> + Send + Sync + 'static,
    room: impl Fn(usize) -> u64 + Send + Sync + 'static,
) -> Result<Vec<R>, EngineError> {
    let shared = Arc::new((of, room));
    let context = branch.context().clone();
    let mut found = Vec::with_capacity(lists.vertices() as usize);
    let mut pass = lists.pass(&(0..lists.vertices()), workers, &context)?;
    let mut next = pass.next(branch).await?;
    while let Some(portion) = next {
        let shared = shared.clone();
        let work = move |context: &QueryContext| {
            portion.each(|piece| {
                let (of, room) = &*shared;
                piece_of(piece, context, of, room)
            })
        };
        // The next lists are read meanwhile.
        let (done, read) = futures::future::join(workers.run(&context, work), pass.next(branch)).await;
        done??.into_iter().for_each(|piece| found.extend(piece));
        next = read?;
    }
    Ok(found)
}

fn piece_of<R, S: Default>(
    piece: &AdjacencySlice,
    context: &QueryContext,
    of: &impl Fn(u32, &[u32], &[f64], &mut S) -> Result<R, EngineError>,
    room: &impl Fn(usize) -> u64,
) -> Result<Vec<R>, EngineError> {
    context.check_time()?;
    let mut shared = S::default();
    let mut found = Vec::with_capacity(piece.vertices.len());
    match &piece.origin {
        Origin::Topology(topology) => {
            let lists = topology.against.as_ref().unwrap_or(&topology.out);
            let widest = piece.vertices.clone().map(|vertex| lists.neighbours(vertex).len()).max();
            let _memory = context.hold(room(widest.unwrap_or(0)))?;
            for vertex in piece.vertices.clone() {
                found.push(of(vertex, lists.neighbours(vertex), lists.weights_of(vertex), &mut shared)?);
            }
        }
        Origin::Batch(batch) => {
            let widest = batch.lists_of(&piece.vertices).map(|(_, list, _)| list.len()).max();
            let _memory = context.hold(room(widest.unwrap_or(0)))?;
            let mut lists = batch.lists_from(piece.vertices.start).peekable();
            for vertex in piece.vertices.clone() {
                let list = lists.next_if(|(with_list, ..)| *with_list == vertex);
                let (list, weights) = list.map_or_else(Default::default, |(_, list, weights)| (list, weights));
                found.push(of(vertex, list, weights, &mut shared)?);
            }
        }
    }
    Ok(found)
}

/// A column whose memory counts.
fn held(column: Column, context: &QueryContext) -> Result<Held<Column>, EngineError> {
    let bytes = column.len() as u64 * 8;
    Ok(Held::counted(column, bytes, context)?)
}
