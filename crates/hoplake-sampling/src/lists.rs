//! Where the lists of neighbours are read: in memory, or in the bucket.

use std::{ops::Range, sync::Arc};

use futures::future::try_join;
use hoplake_analytics::{Csr, Selection, Topology, Workers};
use hoplake_engine::{Edges, EdgesOf, EngineError, Frontier, Held, Snapshot, traversal::Hop};
use hoplake_format::{LabelId, VertexId};
use hoplake_storage::Branch;

use crate::{
    compact::Compact,
    settings::{FanOut, TimeSettings, hop_along},
    times::{ALWAYS, Timeless, is_timeless, of_vertices, time_of, times, without_time},
};

/// The neighbours of a vertex along the edges of a type, ascending, and the weights of the edges.
#[derive(Debug, Clone, Copy)]
pub(crate) struct List<'a> {
    pub(crate) targets: Targets<'a>,
    pub(crate) weights: Option<&'a [f64]>,
    pub(crate) times: Option<Times<'a>>,
}

/// The times of the edges of a list.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Times<'a> {
    Each(&'a [i64]),
    /// Those of a stretch of edges, and where those of the list begin.
    OfEdges(&'a Compact, usize),
    /// Those of all vertices of the label that the edges lead to.
    OfVertices(&'a [Compact]),
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

    /// The time of an edge; every seed sees one of a sampler without times.
    #[inline]
    pub(crate) fn time(&self, at: usize) -> i64 {
        match self.times {
            None => ALWAYS,
            Some(Times::Each(times)) => times[at],
            Some(Times::OfEdges(times, begin)) => times.get(begin + at),
            Some(Times::OfVertices(times)) => time_of(times, self.ordinal(at)),
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
    of_fan_outs: Vec<OfFanOut>,
    times: InMemoryTimes,
}

/// Where the lists of a fan-out are.
#[derive(Debug)]
struct OfFanOut {
    /// Which of the topologies.
    topology: usize,
    /// The dense ids of the vertices at both ends.
    near: Range<u64>,
    far: Range<u64>,
    /// Which of the labels that have times.
    times: usize,
}

/// Times of all edges.
#[derive(Debug)]
enum InMemoryTimes {
    None,
    /// For each topology, stretches of its edges, and where each begins.
    OfEdges(Vec<Held<Vec<(usize, Compact)>>>),
    /// For each label, those of its vertices.
    OfVertices(Vec<Held<Vec<Compact>>>),
}

/// What an edge takes at most while its time is read, with its list.
const READ_BYTES: u64 = 64;

impl InMemory {
    /// Reads all lists. One wave for each edge label and direction, and then as fast as the store delivers.
    pub(crate) async fn load(
        snapshot: &Arc<Snapshot>,
        fan_outs: &[FanOut],
        weight: Option<&str>,
        time: Option<&TimeSettings>,
        workers: &Workers,
        branch: &mut Branch,
    ) -> Result<Self, EngineError> {
        let mut hops: Vec<Hop> = Vec::new();
        let mut labels: Vec<LabelId> = Vec::new();
        let mut loaded = Self { topologies: Vec::new(), of_fan_outs: Vec::new(), times: InMemoryTimes::None };
        for FanOut { edges, .. } in fan_outs {
            let hop = hop_along(snapshot, *edges)?;
            let topology = match hops.iter().position(|other| *other == hop) {
                Some(number) => number,
                None => {
                    let weight = weight.map(str::to_owned);
                    let selection = Selection { hop: hop.clone(), weight, ..Selection::default() };
                    loaded.topologies.push(Topology::load(snapshot, &selection, workers, branch).await?);
                    hops.push(hop);
                    hops.len() - 1
                }
            };
            let ids = |label| loaded.topologies[topology].ids.of_label(label).unwrap_or_default();
            let (near, far) = (ids(edges.near), ids(edges.far));
            let times = labels.iter().position(|label| *label == edges.far).unwrap_or(labels.len());
            if times == labels.len() {
                labels.push(edges.far);
            }
            loaded.of_fan_outs.push(OfFanOut { topology, near, far, times });
        }
        match time {
            None => {}
            Some(time) if time.of_vertices => {
                let mut times = Vec::new();
                for (number, label) in labels.into_iter().enumerate() {
                    let (of_label, timeless) = of_vertices(snapshot, label, time, branch).await?;
                    if !timeless.is_empty()
                        && let Some(ordinal) = loaded.leads_to(number, &timeless, fan_outs, branch).await?
                    {
                        return Err(without_time(snapshot, label, ordinal, time, branch).await);
                    }
                    times.push(of_label);
                }
                loaded.times = InMemoryTimes::OfVertices(times);
            }
            Some(time) => {
                let mut times = Vec::new();
                for topology in 0..loaded.topologies.len() {
                    times.push(loaded.times_of_edges(topology, snapshot, fan_outs, time, branch).await?);
                }
                loaded.times = InMemoryTimes::OfEdges(times);
            }
        }
        Ok(loaded)
    }

    /// The first vertex without a time, of a label, that an edge leads to.
    async fn leads_to(
        &self,
        label: usize,
        timeless: &Timeless,
        fan_outs: &[FanOut],
        branch: &Branch,
    ) -> Result<Option<u64>, EngineError> {
        let mut pace = branch.context().pace();
        for (number, of) in self.of_fan_outs.iter().enumerate().filter(|(_, of)| of.times == label) {
            for at in 0..of.near.end - of.near.start {
                let Some(vertex) = VertexId::new(fan_outs[number].edges.near, at) else { break };
                let (_, targets) = self.place(number, vertex);
                let mut ordinals = targets.iter().map(|target| u64::from(*target) - of.far.start);
                if let Some(found) = ordinals.find(|ordinal| is_timeless(timeless, *ordinal)) {
                    return Ok(Some(found));
                }
                pace.rest(1 + targets.len() as u64 / 8).await?;
            }
        }
        Ok(None)
    }

    /// Reads the times of the edges of a topology: as many lists at a time as there is memory for.
    async fn times_of_edges(
        &self,
        topology: usize,
        snapshot: &Arc<Snapshot>,
        fan_outs: &[FanOut],
        time: &TimeSettings,
        branch: &mut Branch,
    ) -> Result<Held<Vec<(usize, Compact)>>, EngineError> {
        let csr = &self.topologies[topology].out;
        let mut memory = branch.context().hold(0)?;
        let mut all = Vec::new();
        let of_topology =
            || self.of_fan_outs.iter().zip(fan_outs).enumerate().filter(|(_, (of, _))| of.topology == topology);
        let mut nears: Vec<(Range<u64>, LabelId)> =
            of_topology().map(|(_, (of, fan_out))| (of.near.clone(), fan_out.edges.near)).collect();
        nears.sort_unstable_by_key(|(ids, label)| (ids.start, *label));
        nears.dedup();
        for (ids, label) in nears {
            let mut next = ids.start;
            while next < ids.end {
                let edges_max = (snapshot.ahead_bytes(branch.context()) / READ_BYTES) as usize;
                let first = next;
                let begin = csr.range(first as u32).start;
                // At least one list, and no more vertices than edges.
                while next < ids.end
                    && (next == first || csr.range(next as u32).end - begin <= edges_max)
                    && next - first <= edges_max as u64
                {
                    next += 1;
                }
                let count = csr.range((next - 1) as u32).end - begin;
                if count == 0 {
                    continue;
                }
                let vertices = (first..next).filter(|id| !csr.range(*id as u32).is_empty());
                let vertices: Vec<_> = vertices.filter_map(|id| VertexId::new(label, id - ids.start)).collect();
                let copies = 1 + of_topology().count() as u64;
                let _read = branch.context().hold(vertices.len() as u64 * 8 * copies + count as u64 * 8)?;
                let wanted = of_topology().filter(|(_, (_, fan_out))| fan_out.edges.near == label);
                let wanted: Vec<_> =
                    wanted.map(|(number, (_, fan_out))| (number, fan_out.edges, vertices.clone())).collect();
                let read = Read::read(snapshot, &wanted, None, Some(time), branch).await?;
                let mut times = vec![ALWAYS; count];
                let mut pace = branch.context().pace();
                for (fan_out, _, _) in &wanted {
                    for vertex in &vertices {
                        let list = read.list(*fan_out, *vertex);
                        let (within, found) = self.place(*fan_out, *vertex);
                        if found.len() != list.len() {
                            return Err(EngineError::Internal("a list was read with other edges than before".into()));
                        }
                        (within - begin..).zip(0..list.len()).for_each(|(place, at)| times[place] = list.time(at));
                        pace.rest(8 + list.len() as u64).await?;
                    }
                }
                let compact = Compact::new(&times);
                let bytes = memory.bytes() + compact.bytes() + size_of::<usize>() as u64;
                branch.context().resize(&mut memory, bytes)?;
                all.push((begin, compact));
            }
        }
        Ok(Held::new(all, memory))
    }

    /// The edges of a vertex along those of a fan-out, and where they are among those of all lists.
    #[inline]
    fn place(&self, fan_out: usize, vertex: VertexId) -> (usize, &[u32]) {
        let OfFanOut { topology, near, far, .. } = &self.of_fan_outs[fan_out];
        let csr = &self.topologies[*topology].out;
        let id = near.start + vertex.ordinal();
        if id >= near.end {
            return (0, &[]);
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
        (csr.range(id as u32).start + within.start, &all[within])
    }

    /// The list of a vertex.
    #[inline]
    fn list(&self, fan_out: usize, vertex: VertexId) -> List<'_> {
        let OfFanOut { topology, far, times, .. } = &self.of_fan_outs[fan_out];
        let (begin, targets) = self.place(fan_out, vertex);
        if targets.is_empty() {
            return List::EMPTY;
        }
        let weights = self.topologies[*topology].out.weights().get(begin..begin + targets.len());
        let times = match &self.times {
            InMemoryTimes::None => None,
            InMemoryTimes::OfEdges(all) => {
                let stretches = &all[*topology];
                let stretch = stretches.partition_point(|(first, _)| *first <= begin).checked_sub(1);
                stretch.map(|at| Times::OfEdges(&stretches[at].1, begin - stretches[at].0))
            }
            InMemoryTimes::OfVertices(all) => Some(Times::OfVertices(&all[*times])),
        };
        List { targets: Targets::Dense(targets, far.start as u32), weights, times }
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
            let mut for_weights = branch.clone();
            let mut for_times = branch.clone();
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

    /// All edges along those of a fan-out, and others.
    pub(crate) fn edges(&self, fan_out: usize) -> Option<&Edges> {
        let has = |read: &&ReadOf| read.of_fan_outs.iter().any(|(number, _)| *number == fan_out);
        self.0.iter().find(has).map(|read| &*read.edges)
    }

    /// Where the list of a vertex is among them.
    pub(crate) fn range(&self, fan_out: usize, vertex: VertexId) -> Option<Range<usize>> {
        self.0.iter().find_map(|read| {
            let (_, lists) = read.of_fan_outs.iter().find(|(number, _)| *number == fan_out)?;
            let at = lists.binary_search_by_key(&vertex, |(vertex, _)| *vertex).ok()?;
            Some(lists[at].1.clone())
        })
    }

    #[inline]
    fn list(&self, fan_out: usize, vertex: VertexId) -> List<'_> {
        let found = self.0.iter().find_map(|read| {
            let (_, lists) = read.of_fan_outs.iter().find(|(number, _)| *number == fan_out)?;
            let at = lists.binary_search_by_key(&vertex, |(vertex, _)| *vertex).ok()?;
            let range = lists[at].1.clone();
            let weights = read.weights.as_ref().map(|weights| &weights[range.clone()]);
            let times = read.times.as_ref().map(|times| Times::Each(&times[range.clone()]));
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
