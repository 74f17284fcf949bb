//! The vertex programs of `compute`, as programs of `hoplake-analytics`.
//!
//! They follow the reference in what they begin with and when they end. Edges that several programs could go along are those of the
//! [`Selection`](hoplake_analytics::Selection) that they run on.

use std::sync::Arc;

use hoplake_analytics::{Step, Vertex, VertexProgram};

/// Ranks change by less than this in sum: the computation is over.
const RESIDUAL_MAX: f64 = 1e-5;

/// What vertices begin with: by dense id, ascending; all with the same if there is nothing.
pub(crate) type Weights = Option<Arc<Vec<(u32, f64)>>>;

fn weight_of(weights: &[(u32, f64)], id: u32) -> f64 {
    weights.binary_search_by_key(&id, |(id, _)| *id).map_or(0.0, |at| weights[at].1)
}

/// PageRank: a vertex passes on a part of its rank along its edges, in equal shares, and the rest to all vertices alike; one without
/// edges passes all of it on to all.
#[derive(Debug)]
pub(crate) struct PageRank {
    pub(crate) damping: f64,
    /// The ranks at the beginning.
    pub(crate) initial: Weights,
}

/// Sums over all ranks.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sums {
    total: f64,
    /// Of the vertices without edges.
    dangling: f64,
    residual: f64,
}

impl VertexProgram for PageRank {
    type State = f64;
    type Signal = f64;
    type Aggregate = Sums;

    const NEEDS_DEGREES: bool = true;

    fn initial(&self, vertex: &Vertex) -> f64 {
        match &self.initial {
            None => 1.0 / vertex.vertices as f64,
            Some(weights) => weight_of(weights, vertex.id),
        }
    }

    fn signal(&self, vertex: &Vertex, rank: &f64) -> Option<f64> {
        (vertex.degree > 0).then(|| rank / f64::from(vertex.degree))
    }

    fn collect(&self, vertex: &Vertex, rank: &mut f64, signals: impl Iterator<Item = f64>, step: &Step<Sums>) -> bool {
        let Sums { total, dangling, .. } = step.aggregate;
        let to_all = (1.0 - self.damping) * total + self.damping * dangling;
        let before = *rank;
        *rank = to_all / vertex.vertices as f64 + self.damping * signals.sum::<f64>();
        *rank != before
    }

    fn aggregate(&self, vertex: &Vertex, before: &f64, rank: &f64, into: &mut Sums) {
        into.total += rank;
        into.dangling += if vertex.degree == 0 { *rank } else { 0.0 };
        into.residual += (rank - before).abs();
    }

    fn merge(&self, into: &mut Sums, other: Sums) {
        into.total += other.total;
        into.dangling += other.dangling;
        into.residual += other.residual;
    }

    fn is_converged(&self, sums: &Sums) -> bool {
        sums.residual < RESIDUAL_MAX
    }
}

/// Clusters by peer pressure: in each round a vertex joins the cluster that most of its neighbours vote for, itself included, and of
/// several the one that is called first.
#[derive(Debug)]
pub(crate) struct PeerPressure {
    /// The place of each vertex in the order of ids, by dense id. It is the name of a cluster.
    pub(crate) places: Arc<Vec<u32>>,
    /// How much the vote of a vertex counts.
    pub(crate) strengths: Weights,
}

impl VertexProgram for PeerPressure {
    /// A cluster, and how much the vertex's vote counts.
    type State = (u32, f64);
    type Signal = (u32, f64);
    type Aggregate = ();

    const NEEDS_SUPERSTEPS: bool = true;

    fn initial(&self, vertex: &Vertex) -> (u32, f64) {
        let strength = self.strengths.as_ref().map_or(1.0, |strengths| weight_of(strengths, vertex.id));
        (self.places[vertex.id as usize], strength)
    }

    fn signal(&self, _: &Vertex, vote: &(u32, f64)) -> Option<(u32, f64)> {
        Some(*vote)
    }

    fn collect(
        &self,
        vertex: &Vertex,
        state: &mut (u32, f64),
        votes: impl Iterator<Item = (u32, f64)>,
        _: &Step<()>,
    ) -> bool {
        let mut votes: Vec<(u32, f64)> = votes.chain([*state]).collect();
        votes.sort_by_key(|(cluster, _)| *cluster);
        // Without a vote that counts, it is a cluster of its own.
        let mut cluster = self.places[vertex.id as usize];
        let mut most = 0.0;
        for same in votes.chunk_by(|(a, _), (b, _)| a == b) {
            let sum: f64 = same.iter().map(|(_, strength)| strength).sum();
            if sum > most {
                (cluster, most) = (same[0].0, sum);
            }
        }
        let before = std::mem::replace(&mut state.0, cluster);
        before != cluster
    }
}

/// Connected components: the vertex with the first id among those from which a vertex is reached.
#[derive(Debug)]
pub(crate) struct Components {
    /// As in [`PeerPressure`].
    pub(crate) places: Arc<Vec<u32>>,
}

impl VertexProgram for Components {
    type State = u32;
    type Signal = u32;
    type Aggregate = ();

    const WAITS_FOR_SIGNALS: bool = true;

    fn initial(&self, vertex: &Vertex) -> u32 {
        self.places[vertex.id as usize]
    }

    fn signal(&self, _: &Vertex, component: &u32) -> Option<u32> {
        Some(*component)
    }

    fn collect(&self, _: &Vertex, component: &mut u32, signals: impl Iterator<Item = u32>, _: &Step<()>) -> bool {
        let before = *component;
        *component = signals.fold(before, u32::min);
        *component != before
    }
}
