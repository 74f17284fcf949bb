//! Kernels as the registry has them: what they get, and what they return.

use hoplake_engine::{EngineError, Held};
use hoplake_storage::QueryContext;

use super::Options;
use crate::{Csr, Packed, Topology, kernels::sample_vertices};

/// The one vertex of an algorithm that has one, as [`OptionKind::Vertex`] demands.
pub(super) fn first(starts: &[u32]) -> Result<u32, EngineError> {
    let none = || EngineError::Internal("a search has no start".into());
    starts.first().copied().ok_or_else(none)
}

/// A kernel, over lists in each form in which they are kept.
#[derive(Debug, Clone, Copy)]
pub struct Kernel {
    /// Over lists in memory.
    pub decoded: fn(&KernelInput<'_, Csr>) -> Result<KernelResult, EngineError>,
    /// Over lists as they are stored.
    pub packed: fn(&KernelInput<'_, Packed>) -> Result<KernelResult, EngineError>,
}

/// What a kernel gets.
#[derive(Debug)]
pub struct KernelInput<'a, A> {
    /// The lists that the algorithm reads ([`AlgorithmSpec::neighbours`](super::AlgorithmSpec::neighbours)), with weights if the user named
    /// a property.
    pub topology: &'a Topology<A>,
    /// Whether each edge is in the lists of both its ends.
    pub is_undirected: bool,
    /// The options that the user gave.
    pub options: &'a Options,
    /// The vertices that the user named, or those of the sample; none stands for all.
    pub starts: &'a [u32],
    /// The place of each vertex by label and key, if the algorithm reads them; the greatest number for deleted ones.
    pub places: Option<&'a [u32]>,
    /// The query, for its deadline and its memory.
    pub context: &'a QueryContext,
}

/// What a kernel returns.
#[derive(Debug)]
pub struct KernelResult {
    /// How many iterations it took, if it took any.
    pub iterations: Option<usize>,
    /// A value for each vertex, unless the result is a figure.
    pub values: Option<Held<Values>>,
    /// Numbers for the whole graph.
    pub figures: Vec<(&'static str, Figure)>,
}

/// A number for the whole graph.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Figure {
    /// How many there are.
    Count(u64),
    /// Any other.
    Number(f64),
}

/// The values of vertices by dense id.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// The least first; the greatest number stands for no value.
    Integers(Vec<u32>),
    /// The greatest first.
    Counts(Vec<u64>),
    /// The greatest first, and numbers below 0, too.
    Numbers(Vec<i64>),
    /// The greatest first; NaN stands for no value.
    Floats(Vec<f64>),
    /// The least first; infinity stands for no value.
    Lengths(Vec<f64>),
}

impl Figure {
    /// As a float, which has all counts below 2^53 exactly.
    pub fn number(self) -> f64 {
        match self {
            Self::Count(count) => count as f64,
            Self::Number(number) => number,
        }
    }
}

impl<A> KernelInput<'_, A> {
    /// The lists against the direction of [`Topology::out`]: itself if edges have no direction.
    pub fn against(&self) -> &A {
        self.topology.against.as_ref().unwrap_or(&self.topology.out)
    }

    /// The one vertex at which the algorithm begins.
    ///
    /// # Errors
    /// [`EngineError::Internal`] if there is none: callers check options before.
    pub fn start(&self) -> Result<u32, EngineError> {
        first(self.starts)
    }
}

impl<A: crate::Adjacency> KernelInput<'_, A> {
    /// The vertices of the sample, or all that exist.
    ///
    /// # Errors
    /// [`EngineError::Limit`] if the query's memory does not hold them.
    pub fn drawn(&self) -> Result<Held<Vec<u32>>, EngineError> {
        if !self.starts.is_empty() {
            return Ok(Held::counted(self.starts.to_vec(), self.starts.len() as u64 * 4, self.context)?);
        }
        let Topology { out, deleted, .. } = self.topology;
        Ok(sample_vertices(out.len() as u32, deleted, usize::MAX, 0, self.context)?)
    }

    /// The values of some vertices; others have none.
    ///
    /// # Errors
    /// [`EngineError::Limit`] if the query's memory does not hold them.
    pub fn scattered(&self, found: impl Iterator<Item = (u32, f64)>) -> Result<Held<Values>, EngineError> {
        let vertices = self.topology.out.len();
        let memory = self.context.hold(vertices as u64 * 8)?;
        let mut values = vec![f64::NAN; vertices];
        found.for_each(|(vertex, value)| values[vertex as usize] = value);
        Ok(Held::new(Values::Floats(values), memory))
    }
}

impl KernelResult {
    /// The number of iterations, too.
    #[must_use]
    pub fn after(self, iterations: usize) -> Self {
        Self { iterations: Some(iterations), ..self }
    }

    /// A figure, too.
    #[must_use]
    pub fn with_figure(mut self, name: &'static str, figure: Figure) -> Self {
        self.figures.push((name, figure));
        self
    }
}

impl From<Held<Values>> for KernelResult {
    fn from(values: Held<Values>) -> Self {
        Self { iterations: None, values: Some(values), figures: Vec::new() }
    }
}

impl From<(&'static str, Figure)> for KernelResult {
    fn from(figure: (&'static str, Figure)) -> Self {
        Self { iterations: None, values: None, figures: vec![figure] }
    }
}
