//! Shortest paths from the vertices that come to all that can be reached, or to those of a target.
//!
//! ```text
//! starts ─▶ edges of the frontier, one wave a level ─▶ links in memory ─▶ Dijkstra from each start ─▶ paths, from the end back
//! ```
//! From one start to one target by a property of edges, the engine's search from both ends says first how long a path is, and nothing farther away
//! is read. All shortest paths are found as before: the search itself returns one.
//!
//! What cannot be reached within the greatest distance is not read, and the edges of a vertex are read once for all starts. Among equally
//! short paths all are given, without those that meet a vertex twice.

use std::{
    cmp::Ordering,
    collections::{BinaryHeap, HashMap, HashSet},
};

use foldhash::fast::RandomState;
use hoplake_engine::{
    Condition, EngineError, Neighbour, PropertyName, PropertyOf, traversal::Limits, weighted_path::WeightedPathQuery,
};
use hoplake_format::VertexId;
use hoplake_storage::MemoryHold;

use super::{
    HopConditions, HopWhere,
    hop::{Hop, as_vertices},
};
use crate::{
    operators::{conditions::Has, hop_along, prelude::*},
    plan::{ElementCondition, ElementTest, Reaches, Test},
    run::{Element, Row, paths::NO_PATH},
    tokens::T,
    value::{Path, kind_of, to_f64, value_bytes},
};

/// The shortest paths from the vertices that come.
#[derive(Debug, Clone, PartialEq)]
pub struct ShortestPaths {
    /// What a vertex has to match at which a path ends.
    pub target: Option<Steps>,
    /// The edges of a vertex that paths take.
    pub edges: Steps,
    /// How long an edge is; 1 without it.
    pub distance: Option<By>,
    /// How long a path may be.
    pub distance_max: Option<f64>,
    /// Whether paths have their edges, and not their vertices alone.
    pub with_edges: bool,
}

impl Operator for ShortestPaths {
    nested!(target, edges, distance);

    fn parameters(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.distance_max {
            Some(most) => write!(f, " of at most {most}"),
            None => Ok(()),
        }
    }

    fn is_barrier(&self) -> bool {
        true
    }

    fn reach(&self, reach: &mut Reach<'_>, _: Elements) -> Elements {
        reach.vertices_if(|_, _| true)
    }

    fn start(self: Arc<Self>) -> Running {
        AllInput::running(self)
    }
}

impl All for ShortestPaths {
    async fn all(&self, run: &mut Run, all: Batch, _: &Frames) -> Done<Output> {
        run.shortest_paths(self, all).await.map(Output::Next)
    }
}

/// By how much the length of a path may differ from what the engine says, as a part of it: sums are rounded, and a float of 32 bits is
/// the double next to its digits there, and here the float's own value, 6e-8 away at most.
const ROUNDING: f64 = 1e-6;

/// The same of lengths near 0, where floats of 32 bits have fewer digits.
const ROUNDING_NEAR_0: f64 = f32::MIN_POSITIVE as f64;

/// What a vertex takes in the maps of a search: an entry in each.
const VERTEX_BYTES: u64 = 96;

/// An edge as a search sees it.
#[derive(Debug, Clone, Copy)]
struct Link {
    edge: Neighbour,
    to: VertexId,
    length: f64,
}

type ByVertex<T> = HashMap<VertexId, T, RandomState>;

/// What was read of the graph.
#[derive(Debug)]
struct Links {
    of: ByVertex<Vec<Link>>,
    /// How far vertices are from the start that is next to them, as far as is known.
    nearest: ByVertex<f64>,
    distance_max: f64,
    hold: MemoryHold,
}

/// A vertex that a search will look at, the nearest first.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Reached {
    distance: f64,
    vertex: VertexId,
}

impl Eq for Reached {}

impl Ord for Reached {
    fn cmp(&self, other: &Self) -> Ordering {
        other.distance.total_cmp(&self.distance).then_with(|| other.vertex.cmp(&self.vertex))
    }
}

impl PartialOrd for Reached {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The shortest ways from a start.
#[derive(Debug)]
struct Ways {
    distances: ByVertex<f64>,
    /// The links that end shortest ways to a vertex, each with where it begins.
    before: ByVertex<Vec<(VertexId, Neighbour)>>,
    _hold: MemoryHold,
}

impl Run {
    pub(crate) async fn shortest_paths(&mut self, search: &ShortestPaths, all: Batch) -> Done<Batch> {
        let none = |run: &mut Self, all: Batch| run.derived(&all, &[], Items::default());
        if all.is_empty() {
            return none(self, all);
        }
        let all = as_vertices(all, "`shortestPath`")?;
        let Items::Vertices(vertices) = &all.items else { return none(self, all) };
        // However many traversers are on a vertex, the paths from there are the same.
        let mut seen = HashSet::new();
        let starts = vertices.iter().zip(&all.rows).zip(0u32..);
        let starts: Vec<(u32, VertexId)> = starts
            .filter(|((vertex, row), _)| seen.insert((row.frame, **vertex)))
            .map(|((vertex, _), at)| (at, *vertex))
            .collect();
        let distance_max = self.distance_max(search, &starts).await?;
        let links = self.links(search, distance_max, starts.iter().map(|(_, vertex)| *vertex)).await?;
        let targets = self.targets(search, &links).await?;
        let mut parents = Vec::new();
        let mut paths = Vec::new();
        let mut hold = self.branch.context().hold(0)?;
        for (at, start) in starts {
            let ways = self.ways(&links, start).await?;
            let mut ends: Vec<(f64, VertexId)> = ways
                .distances
                .iter()
                .filter(|(vertex, _)| targets.as_ref().is_none_or(|targets| targets.contains(*vertex)))
                .map(|(vertex, distance)| (*distance, *vertex))
                .collect();
            ends.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
            for (_, end) in ends {
                self.paths_between(&ways, start, end, search.with_edges, &mut hold, &mut paths).await?;
                parents.resize(paths.len(), at);
            }
        }
        let mut found = all.take_rows(&parents, &self.growth)?;
        found.rows.iter_mut().for_each(|row| row.bulk = 1);
        let mut found = found.on(Items::Values(paths));
        found.hold = Some(hold);
        Ok(found)
    }

    /// How far away from its start a path may lead: as far as the user allows, and no farther than a target that is the only one.
    async fn distance_max(&mut self, search: &ShortestPaths, starts: &[(u32, VertexId)]) -> Done<f64> {
        let most = search.distance_max.unwrap_or(f64::INFINITY);
        let ([(_, from)], Some(By::Property(weight)), Some(target)) = (starts, &search.distance, &search.target) else {
            return Ok(most);
        };
        let Some(hop) = self.hop_of(&search.edges, weight) else { return Ok(most) };
        let Some(ids) = ids_of(target) else { return Ok(most) };
        let vertices = self.vertices_of(ids).await?;
        let mut vertices = vertices.into_iter().flatten();
        let (Some(to), None) = (vertices.next(), vertices.next()) else { return Ok(most) };
        let from = *from;
        let weight = weight.to_string();
        let above = |length: f64| length * (1.0 + ROUNDING) + ROUNDING_NEAR_0;
        let length_max = search.distance_max.map(above);
        let query = WeightedPathQuery { from, to, hop, weight, edges: false, length_max, limits: Limits::default() };
        let snapshot = self.snapshot.clone();
        match snapshot.weighted_path(&query, &mut self.branch).await {
            Ok(Some(path)) => Ok(most.min(above(path.length))),
            // There may be one along edges of infinite length, which are on no path there.
            Ok(None) => Ok(most),
            // Whether a length is an error depends on where it is, and lengths of more types are allowed here.
            Err(EngineError::Invalid(_) | EngineError::NotFound(_)) => Ok(most),
            Err(error) => Err(error.into()),
        }
    }

    /// The hop along the edges of a vertex that paths take, if it is as simple: all in a direction, or those that have the property.
    fn hop_of(&self, edges: &Steps, weight: &Name) -> Option<hoplake_engine::traversal::Hop> {
        let [only] = &edges[..] else { return None };
        let (hop, conditions) = match (only.get::<Hop>(), only.get::<HopWhere>()) {
            (Some(hop), _) => (hop, &HopConditions::default()),
            (None, Some(HopWhere { hop, conditions })) => (hop, conditions),
            (None, None) => return None,
        };
        let Hop { direction, labels, reaches: Reaches::Edges } = hop else { return None };
        let along = hop_along(&self.snapshot, *direction, labels)?;
        let is_that_they_have_it = |condition: &ElementCondition| matches!(condition.formula.as_test(), Some(ElementTest::HasProperty(name)) if name == weight);
        match (&conditions.on_edges[..], &conditions.on_vertices[..]) {
            ([], []) => Some(along),
            ([condition], []) if is_that_they_have_it(condition) => {
                let weight = PropertyName { of: PropertyOf::Edge, name: weight.to_string() };
                Some(along.such_that(Condition::is_null(weight).negated()))
            }
            _ => None,
        }
    }

    /// Reads the edges of all vertices within reach, level by level.
    async fn links(
        &mut self,
        search: &ShortestPaths,
        distance_max: f64,
        starts: impl Iterator<Item = VertexId>,
    ) -> Done<Links> {
        let mut links = Links {
            of: HashMap::default(),
            nearest: starts.map(|vertex| (vertex, 0.0)).collect(),
            distance_max,
            hold: self.branch.context().hold(0)?,
        };
        let mut pace = self.branch.context().pace();
        loop {
            let is_next = |vertex: &VertexId| !links.of.contains_key(vertex);
            let mut frontier: Vec<VertexId> = links.nearest.keys().copied().filter(is_next).collect();
            if frontier.is_empty() {
                return Ok(links);
            }
            frontier.sort_unstable();
            self.read_links(search, &frontier, &mut links).await?;
            let mut heap: BinaryHeap<Reached> =
                frontier.iter().map(|vertex| Reached { distance: links.nearest[vertex], vertex: *vertex }).collect();
            while let Some(Reached { distance, vertex }) = heap.pop() {
                if distance > links.nearest[&vertex] {
                    continue;
                }
                let of_vertex = links.of.get(&vertex).map_or(&[][..], Vec::as_slice);
                for link in of_vertex {
                    let distance = distance + link.length;
                    let known = links.nearest.get(&link.to);
                    if distance <= links.distance_max && known.is_none_or(|known| distance < *known) {
                        links.nearest.insert(link.to, distance);
                        heap.push(Reached { distance, vertex: link.to });
                    }
                }
                pace.rest(1 + of_vertex.len() as u64).await?;
            }
            let bytes = links.nearest.len() as u64 * VERTEX_BYTES
                + links.of.values().map(|of| size_of_val(&of[..]) as u64).sum::<u64>();
            self.branch.context().resize(&mut links.hold, bytes)?;
        }
    }

    /// Reads the edges of some vertices.
    async fn read_links(&mut self, search: &ShortestPaths, frontier: &[VertexId], links: &mut Links) -> Done<()> {
        let rows = vec![Row { bulk: 1, frame: 0, path: NO_PATH }; frontier.len()];
        let sacks = self.settings.sack.as_ref().map(|sack| vec![sack.clone(); rows.len()]);
        let batch = Batch { items: Items::Vertices(frontier.to_vec()), rows, sacks, hold: None };
        let found = self.child(&search.edges, &batch).await?;
        let lengths = match &search.distance {
            None => None,
            Some(by) => Some(self.lengths(by, &found).await?),
        };
        links.of.extend(frontier.iter().map(|vertex| (*vertex, Vec::new())));
        for (at, row) in found.rows.iter().enumerate() {
            let Some(Element::Edge(edge)) = found.items.element(at) else {
                let what = kind_of(&found.items.get(at));
                return Err(QueryError::wrong_type(format!("`shortestPath` goes along edges, and this is {what}")));
            };
            let from = frontier[row.frame as usize];
            let to = if edge.from == from { edge.to } else { edge.from };
            let length = lengths.as_ref().map_or(1.0, |lengths| lengths[at]);
            links.of.entry(from).or_default().push(Link { edge, to, length });
        }
        Ok(())
    }

    /// How long edges are.
    async fn lengths(&mut self, by: &By, edges: &Batch) -> Done<Vec<f64>> {
        let length = |value: Option<Value>| match value {
            Some(Value::Number(number)) => Some(to_f64(&number)).filter(|length| *length >= 0.0).ok_or_else(|| {
                let why = format!("an edge is {number} long, and `shortestPath` takes lengths from 0 on");
                QueryError::wrong_type(why)
            }),
            Some(other) => Err(QueryError::wrong_type(format!(
                "the length of an edge is a number, and this is {}",
                kind_of(&other)
            ))),
            None => Err(QueryError::wrong_type(
                "an edge has no length for `shortestPath`: give it one with coalesce(…, constant(…)), or leave it out in `edges`",
            )),
        };
        self.by(by, edges).await?.into_iter().map(length).collect()
    }

    /// The vertices at which paths end; all if there is no target.
    async fn targets(&mut self, search: &ShortestPaths, links: &Links) -> Done<Option<HashSet<VertexId, RandomState>>> {
        let Some(target) = &search.target else { return Ok(None) };
        let mut reached: Vec<VertexId> = links.nearest.keys().copied().collect();
        reached.sort_unstable();
        let rows = vec![Row { bulk: 1, frame: 0, path: NO_PATH }; reached.len()];
        let sacks = self.settings.sack.as_ref().map(|sack| vec![sack.clone(); rows.len()]);
        let batch = Batch { items: Items::Vertices(reached.clone()), rows, sacks, hold: None };
        let are = self.exists(target, &batch).await?;
        Ok(Some(reached.into_iter().zip(are).filter(|(_, is)| *is).map(|(vertex, _)| vertex).collect()))
    }

    /// Dijkstra's algorithm, with all of the last links of equally short ways.
    async fn ways(&self, links: &Links, start: VertexId) -> Done<Ways> {
        // As many vertices and links as were read, at most.
        let hold = self.branch.context().hold(links.hold.bytes())?;
        let mut ways = Ways { distances: HashMap::default(), before: HashMap::default(), _hold: hold };
        let mut pace = self.branch.context().pace();
        ways.distances.insert(start, 0.0);
        let mut heap = BinaryHeap::from([Reached { distance: 0.0, vertex: start }]);
        let mut done: HashSet<VertexId, RandomState> = HashSet::default();
        while let Some(Reached { distance, vertex }) = heap.pop() {
            if !done.insert(vertex) {
                continue;
            }
            let of_vertex = links.of.get(&vertex).map_or(&[][..], Vec::as_slice);
            for link in of_vertex {
                let distance = distance + link.length;
                if distance > links.distance_max {
                    continue;
                }
                let known = ways.distances.get(&link.to).copied().unwrap_or(f64::INFINITY);
                if distance < known {
                    ways.distances.insert(link.to, distance);
                    ways.before.insert(link.to, vec![(vertex, link.edge)]);
                    heap.push(Reached { distance, vertex: link.to });
                } else if distance == known && link.to != start {
                    ways.before.entry(link.to).or_default().push((vertex, link.edge));
                }
            }
            pace.rest(1 + of_vertex.len() as u64).await?;
        }
        Ok(ways)
    }

    /// All shortest paths to a vertex, from its end back.
    async fn paths_between(
        &self,
        ways: &Ways,
        start: VertexId,
        end: VertexId,
        with_edges: bool,
        hold: &mut MemoryHold,
        paths: &mut Vec<Value>,
    ) -> Done<()> {
        let context = self.branch.context();
        let mut pace = context.pace();
        // The way so far from the end, and which of the links before each of its vertices is next.
        let mut way: Vec<(VertexId, usize, Option<Neighbour>)> = vec![(end, 0, None)];
        while let Some((vertex, next, _)) = way.last_mut() {
            pace.rest(1).await?;
            let vertex = *vertex;
            if vertex == start {
                let path = path_of(&way, with_edges);
                let bytes = value_bytes(&path) as u64;
                context.resize(hold, hold.bytes() + bytes)?;
                paths.push(path);
                pace.rest(bytes / 8).await?;
                way.pop();
                continue;
            }
            let before = ways.before.get(&vertex).map_or(&[][..], Vec::as_slice);
            let at = *next;
            *next += 1;
            let Some((previous, edge)) = before.get(at) else {
                way.pop();
                continue;
            };
            // Without edges, parallel ones make the same path.
            let is_same = !with_edges && before[..at].iter().any(|(other, _)| other == previous);
            if !is_same && way.iter().all(|(met, ..)| met != previous) {
                way.push((*previous, 0, Some(*edge)));
            }
        }
        Ok(())
    }
}

/// The ids of targets, if they are named by them.
fn ids_of(target: &Steps) -> Option<&[Value]> {
    let [only] = &target[..] else { return None };
    let Has { by: By::Token(T::Id), predicate } = only.get::<Has>()? else { return None };
    match &**predicate {
        Predicate::Test(Test::Eq | Test::Within, ids) => Some(ids),
        _ => None,
    }
}

/// The path of a way, which begins at its end. Each edge stands with the vertex before it.
fn path_of(way: &[(VertexId, usize, Option<Neighbour>)], with_edges: bool) -> Value {
    let mut steps: Vec<(Value, Vec<Box<str>>)> = Vec::with_capacity(way.len() * 2);
    for (vertex, _, edge) in way.iter().rev() {
        steps.push(((*vertex).into(), Vec::new()));
        steps.extend(edge.filter(|_| with_edges).map(|edge| (edge.into(), Vec::new())));
    }
    Value::Path(Box::new(Path { steps }))
}
