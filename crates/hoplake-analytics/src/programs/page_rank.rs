//! PageRank by power iteration, and as a linear system.

use serde::{Deserialize, Serialize};

use crate::{Step, Vertex, VertexProgram, kernels::PageRankSettings};

/// PageRank by power iteration, along the edges of the selection. As [`page_rank`](crate::kernels::page_rank) and
/// [`personalised_page_rank`](crate::kernels::personalised_page_rank), whose conventions it has; the result is the same but for the
/// last bits. [`PageRankSettings::iterations_max`] is the run's number of supersteps.
///
/// In an asynchronous run it solves x = damping · A x + (1 − damping) · v, where A passes ranks on along edges and v is what each vertex
/// gets of the rest, by Gauss-Seidel iteration. Ranks are x divided by its sum: the mass of vertices without edges goes to v as
/// the rest does, so it changes the length of x and not its direction (Del Corso, Gullì, Romani: *Fast PageRank computation via a
/// sparse linear system*, 2005). The score of a change is its size, so that what waits bounds by how much x is off; the run ends
/// when one more iteration would change ranks by no more than the tolerance in sum.
#[derive(Debug, Clone, Default)]
pub struct PageRank {
    settings: PageRankSettings,
    /// The vertices that get what edges do not pass on, ascending; all without it.
    sources: Option<Vec<u32>>,
}

impl PageRank {
    /// The ranks as seen from `sources`, ids of vertices of which none is deleted; without them, from all.
    pub fn new(settings: PageRankSettings, sources: Option<Vec<u32>>) -> Self {
        let in_order = |mut sources: Vec<u32>| {
            sources.sort_unstable();
            sources.dedup();
            sources
        };
        Self { settings, sources: sources.map(in_order) }
    }

    /// The part of what edges do not pass on that a vertex gets.
    fn part(&self, vertex: &Vertex) -> f64 {
        match &self.sources {
            None => 1.0 / vertex.vertices as f64,
            Some(sources) if sources.binary_search(&vertex.id).is_ok() => 1.0 / sources.len() as f64,
            Some(_) => 0.0,
        }
    }
}

/// Sums over all ranks.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct RankSums {
    /// Of the vertices without out-edges.
    pub dangling: f64,
    /// By how much ranks changed.
    pub residual: f64,
    /// Of all: 1, but in an asynchronous run, whose end divides by it.
    pub total: f64,
}

impl VertexProgram for PageRank {
    type State = f64;
    type Signal = f64;
    type Aggregate = RankSums;

    const NEEDS_DEGREES: bool = true;

    fn name(&self) -> String {
        let PageRankSettings { damping, tolerance, iterations_max: _ } = self.settings;
        let sources = self.sources.as_ref().map(|sources| format!(" from {sources:?}")).unwrap_or_default();
        format!("PageRank with damping {damping} and tolerance {tolerance}{sources}")
    }

    fn initial(&self, vertex: &Vertex) -> f64 {
        self.part(vertex)
    }

    fn signal(&self, vertex: &Vertex, rank: &f64) -> Option<f64> {
        (vertex.degree > 0).then(|| rank / f64::from(vertex.degree))
    }

    fn collect(
        &self,
        vertex: &Vertex,
        rank: &mut f64,
        signals: impl Iterator<Item = f64>,
        step: &Step<RankSums>,
    ) -> bool {
        let damping = self.settings.damping;
        let before = *rank;
        let dangling = if step.is_asynchronous { 0.0 } else { step.aggregate.dangling };
        let base = (1.0 - damping + damping * dangling) * self.part(vertex);
        *rank = base + damping * sum(signals);
        *rank != before
    }

    fn score(&self, before: Option<f64>, after: Option<f64>) -> f64 {
        (after.unwrap_or(0.0) - before.unwrap_or(0.0)).abs()
    }

    fn aggregate(&self, vertex: &Vertex, before: &f64, rank: &f64, into: &mut RankSums) {
        into.dangling += if vertex.degree == 0 { *rank } else { 0.0 };
        into.residual += (rank - before).abs();
        into.total += rank;
    }

    fn merge(&self, into: &mut RankSums, other: RankSums) {
        into.dangling += other.dangling;
        into.residual += other.residual;
        into.total += other.total;
    }

    fn is_converged(&self, sums: &RankSums) -> bool {
        sums.residual <= self.settings.tolerance && self.settings.tolerance > 0.0
    }

    fn is_settled(&self, waiting: f64, sums: &RankSums) -> bool {
        // What waits changes x by no more than `damping` of it. Ranks change by as much again, since their sum does.
        let residual = 2.0 * self.settings.damping * waiting / sums.total;
        residual <= self.settings.tolerance && self.settings.tolerance > 0.0
    }

    fn settle(&self, _: &Vertex, rank: &mut f64, sums: &RankSums) {
        *rank /= sums.total;
    }
}

/// The sum of some signals, as two sums in turn, which the processor adds to at once.
fn sum(mut signals: impl Iterator<Item = f64>) -> f64 {
    let mut odd = 0.0;
    let mut even = 0.0;
    while let Some(signal) = signals.next() {
        odd += signal;
        even += signals.next().unwrap_or(0.0);
    }
    odd + even
}
