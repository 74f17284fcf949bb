//! Where the lists of neighbours are read: in memory, or in the bucket.

use std::{ops::Range, sync::Arc};

use futures::future::try_join;
use hoplake_analytics::{Csr, Selection, Topology, Workers};
use hoplake_engine::{Edges, EdgesOf, EngineError, Frontier, Held, Snapshot, traversal::Hop};
use hoplake_format::VertexId;
use hoplake_storage::Branch;

use crate::{
    settings::{FanOut, TimeSettings, hop_along},
    times::times,
};

/// The neighbours of a vertex along the edges of a type, ascending, and the weights of the edges.
#[derive(Debug, Clone, Copy)]
pub(crate) struct List<'a> {
    pub(crate) targets: Targets<'a>,
    pub(crate) weights: Option<&'a [f64]>,
    pub(crate) times: Option<&'a [i64]>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Targets<'a> {
    /// Dense ids, and that of the first vertex of the label.
    Dense(&'a [u32], u32),
    Vertices(&'a [VertexId]),
}

impl List<'_> {
    const EMPTY: Self = Self { targets: Targets::Vertices(&[]), weights: None, times: None };

    #[inline]
    pub(crate) fn len(&self) -> usize {
        match self.targets {
            Targets::Dense(ids, _) => ids.len(),
            Targets::Vertices(vertices) => vertices.len(),
        }
    }

    /// Whether a vertex of the label that the edges lead to is among them.
    pub(crate) fn has(&self, vertex: VertexId) -> bool {
        match self.targets {
            Targets::Dense(ids, base) => ids.binary_search_by(|id| u64::from(id - base).cmp(&vertex.ordinal())).is_ok(),
            Targets::Vertices(vertices) => vertices.binary_search(&vertex).is_ok(),
        }
    }

    /// The ordinal of a neighbour.
    #[inline]
    pub(crate) fn ordinal(&self, at: usize) -> u64 {
        match self.targets {
            Targets::Dense(ids, base) => u64::from(ids[at] - base),
            Targets::Vertices(vertices) => vertices[at].ordinal(),
        }
    }
}

/// The lists of all vertices, for the edge types of some fan-outs.
#[derive(Debug)]
pub(crate) struct InMemory {
    topologies: Vec<Topology<Csr>>,
    /// For each fan-out its topology, and where the dense ids of its ends are.
    of_fan_outs: Vec<(usize, Range<u64>, Range<u64>)>,
}

impl InMemory {
    /// Reads all lists. One wave for each edge label and direction, and then as fast as the store delivers.
    pub(crate) async fn load(
        snapshot: &Arc<Snapshot>,
        fan_outs: &[FanOut],
        weight: Option<&str>,
        workers: &Workers,
        branch: &mut Branch,
    ) -> Result<Self, EngineError> {
        let mut hops: Vec<Hop> = Vec::new();
        let mut topologies = Vec::new();
        let mut of_fan_outs = Vec::new();
        for FanOut { edges, .. } in fan_outs {
            let hop = hop_along(snapshot, *edges)?;
            let number = match hops.iter().position(|other| *other == hop) {
                Some(number) => number,
                None => {
                    let weight = weight.map(str::to_owned);
                    let selection = Selection { hop: hop.clone(), weight, ..Selection::default() };
                    topologies.push(Topology::load(snapshot, &selection, workers, branch).await?);
                    hops.push(hop);
                    hops.len() - 1
                }
            };
            let ids = |label| topologies[number].ids.of_label(label).unwrap_or_default();
            of_fan_outs.push((number, ids(edges.near), ids(edges.far)));
        }
        Ok(Self { topologies, of_fan_outs })
    }

    /// The list of a vertex.
    #[inline]
    fn list(&self, fan_out: usize, vertex: VertexId) -> List<'_> {
        let (topology, near, far) = &self.of_fan_outs[fan_out];
        let csr = &self.topologies[*topology].out;
        let id = near.start + vertex.ordinal();
        if id >= near.end {
            return List::EMPTY;
        }
        let all = csr.neighbours(id as u32);
        // A list has the neighbours of all labels that the edge label leads to, label by label.
        let within = match all {
            [first, .., last] | [first @ last] if u64::from(*first) >= far.start && u64::from(*last) < far.end => {
                0..all.len()
            }
            _ => {
                let before = |id: u64| all.partition_point(|target| u64::from(*target) < id);
                before(far.start)..before(far.end)
            }
        };
        let weights = csr.weights_of(id as u32).get(within.clone());
        let weights = weights.filter(|_| !csr.weights().is_empty());
        List { targets: Targets::Dense(&all[within], far.start as u32), weights, times: None }
    }
}

/// Lists of some vertices that were read from the bucket.
#[derive(Debug, Default)]
pub(crate) struct Read(Vec<ReadOf>);

/// The lists along one edge label in one direction.
#[derive(Debug)]
struct ReadOf {
    edges: Held<Edges>,
    weights: Option<Held<Vec<f64>>>,
    times: Option<Held<Vec<i64>>>,
    of_fan_outs: Vec<(usize, Held<Vec<Place>>)>,
}

/// A vertex that has neighbours, and where its list is among the edges. Places of a fan-out ascend.
type Place = (VertexId, Range<usize>);

/// What is read along one edge label in one direction: for which fan-outs, and of which vertices.
struct Reading {
    hop: Hop,
    fan_outs: Vec<(usize, EdgesOf)>,
    vertices: Vec<VertexId>,
}

/// What an entry of `ReadOf::of_fan_outs` takes, in a list that is doubled as it grows.
const ENTRY_BYTES: u64 = 2 * size_of::<Place>() as u64;

impl Read {
    /// Reads the lists of some vertices for each fan-out. One wave, and with weights or times one more.
    pub(crate) async fn read(
        snapshot: &Arc<Snapshot>,
        wanted: &[(usize, EdgesOf, Vec<VertexId>)],
        weight: Option<&str>,
        time: Option<&TimeSettings>,
        branch: &mut Branch,
    ) -> Result<Self, EngineError> {
        let mut readings: Vec<Reading> = Vec::new();
        for (fan_out, edges, vertices) in wanted {
            let hop = hop_along(snapshot, *edges)?;
            match readings.iter_mut().find(|reading| reading.hop == hop) {
                Some(reading) => {
                    reading.fan_outs.push((*fan_out, *edges));
                    reading.vertices.extend(vertices);
                }
                None => {
                    readings.push(Reading { hop, fan_outs: vec![(*fan_out, *edges)], vertices: vertices.clone() });
                }
            }
        }
        let read = branch.each(&readings, |Reading { hop, fan_outs, vertices }, mut branch| async move {
            let frontier = Frontier::held(vertices, branch.context()).await?;
            let edges = snapshot.adjacency().neighbours(&frontier, hop, &mut branch).await?;
            let (mut for_weights, mut for_times) = (branch.clone(), branch.clone());
            let weights = async {
                match weight {
                    Some(weight) => snapshot.edge_weights(&edges, weight, &mut for_weights).await.map(Some),
                    None => Ok(None),
                }
            };
            let times = async {
                match time {
                    Some(time) => times(snapshot, &edges, time, &mut for_times).await.map(Some),
                    None => Ok(None),
                }
            };
            let (weights, times) = try_join(weights, times).await?;
            branch.join(&[for_weights, for_times]);
            Ok::<_, EngineError>((ReadOf::new(edges, weights, times, fan_outs, &branch).await?, branch))
        });
        Ok(Self(read.await?))
    }

    #[inline]
    fn list(&self, fan_out: usize, vertex: VertexId) -> List<'_> {
        let found = self.0.iter().find_map(|read| {
            let (_, lists) = read.of_fan_outs.iter().find(|(number, _)| *number == fan_out)?;
            let at = lists.binary_search_by_key(&vertex, |(vertex, _)| *vertex).ok()?;
            let range = lists[at].1.clone();
            let weights = read.weights.as_ref().map(|weights| &weights[range.clone()]);
            let times = read.times.as_ref().map(|times| &times[range.clone()]);
            Some(List { targets: Targets::Vertices(&read.edges.targets()[range]), weights, times })
        });
        found.unwrap_or(List::EMPTY)
    }
}

impl ReadOf {
    async fn new(
        edges: Held<Edges>,
        weights: Option<Held<Vec<f64>>>,
        times: Option<Held<Vec<i64>>>,
        fan_outs: &[(usize, EdgesOf)],
        branch: &Branch,
    ) -> Result<Self, EngineError> {
        let mut of_fan_outs = Vec::new();
        let mut pace = branch.context().pace();
        for (fan_out, of) in fan_outs {
            let is_one = |list: &hoplake_engine::EdgeList<'_>| {
                list.edge_type == of.edge_type && list.direction == of.direction && list.from.label() == of.near
            };
            let count = edges.lists().filter(is_one).count() as u64;
            let memory = branch.context().hold(count * ENTRY_BYTES)?;
            let mut lists = Vec::new();
            let mut begin = 0;
            for list in edges.lists() {
                let range = begin..begin + list.targets.len();
                begin = range.end;
                if is_one(&list) {
                    lists.push((list.from, range));
                }
                pace.rest(16).await?;
            }
            of_fan_outs.push((*fan_out, Held::new(lists, memory)));
        }
        Ok(Self { edges, weights, times, of_fan_outs })
    }
}

/// Lists that are there.
#[derive(Debug, Clone)]
pub(crate) enum Lists {
    InMemory(Arc<InMemory>),
    Read(Arc<Read>),
}

impl Lists {
    /// The list of a vertex along the edges of a fan-out.
    #[inline]
    pub(crate) fn list(&self, fan_out: usize, vertex: VertexId) -> List<'_> {
        match self {
            Self::InMemory(lists) => lists.list(fan_out, vertex),
            Self::Read(lists) => lists.list(fan_out, vertex),
        }
    }
}
