//! Keys to vertices, and vertices to their edges.

use std::sync::Arc;

use hoplake::{Direction, EdgeTypeId, Graph, Hop, Key, Limits, Neighbour, Query, VertexId};

use super::{
    Asked, Bounds, Call, GraphRef, NeighborsQuery, Service, VertexName,
    vertices::{find, find_all, labels_of, resolve},
};
use crate::{
    catalog::OpenGraph,
    cost::Spent,
    failure::{Failure, Reason},
};

/// The edges of a hop.
#[derive(Debug)]
pub(crate) struct Neighbors {
    /// In the order of vertex left, type, direction and position.
    pub(crate) edges: Vec<Neighbour>,
    /// The keys of the vertices reached, if they were asked for.
    pub(crate) keys: Option<Vec<Key>>,
    pub(crate) spent: Spent,
    /// The graph they are of.
    pub(crate) open: Arc<OpenGraph>,
}

/// The edges of one type that leave one vertex in one direction: a range of [`Neighbors::edges`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EdgeRun {
    pub(crate) from: VertexId,
    pub(crate) edge_type: EdgeTypeId,
    pub(crate) direction: Direction,
    pub(crate) range: std::ops::Range<usize>,
}

impl EdgeRun {
    /// All runs, in their order, none longer than `most`.
    pub(crate) fn all(edges: &[Neighbour], most: usize) -> impl Iterator<Item = Self> + '_ {
        let same =
            |a: &Neighbour, b: &Neighbour| (a.from, a.edge_type, a.direction) == (b.from, b.edge_type, b.direction);
        let mut start = 0;
        edges.chunk_by(same).flat_map(move |run| run.chunks(most)).map(move |run| {
            let range = start..start + run.len();
            start = range.end;
            Self { from: run[0].from, edge_type: run[0].edge_type, direction: run[0].direction, range }
        })
    }
}

/// The vertices with these names; `None` where there is none.
pub(crate) async fn look_up(
    call: &mut Call,
    graph: &GraphRef,
    names: &[VertexName],
) -> Result<(Vec<Option<VertexId>>, u64), Failure> {
    let open = call.graph(graph).await?;
    call.service.check_batch(names)?;
    let named = resolve(&open.graph, names)?;
    let mut query = open.graph.query();
    let found = call.bounded(find(&mut query, &named)).await;
    let found = call.settle(&query, &open.graph, found)?;
    Ok((found, open.graph.version()))
}

/// The edges of a hop from some vertices.
pub(crate) async fn neighbors(call: &mut Call, graph: &GraphRef, asked: &NeighborsQuery) -> Result<Neighbors, Failure> {
    call.limit_time(asked.limits.time_ms);
    let open = call.graph(graph).await?;
    call.service.check_batch(&asked.vertices)?;
    let limits = call.limits(&asked.limits);
    let mut query = open.graph.query();
    let work = edges_of(&open.graph, &mut query, &asked.vertices, &asked.hop, asked.keys, &limits);
    let outcome = call.bounded(work).await;
    let (edges, keys) = call.settle(&query, &open.graph, outcome)?;
    Ok(Neighbors { edges, keys, spent: call.spent, open })
}

/// One of many queries on a stream. It waits its turn like any other, and has the server's limits.
pub(crate) async fn stream_neighbors(
    service: &Arc<Service>,
    graph: &GraphRef,
    names: &[VertexName],
    hop: &Hop,
) -> Result<(Vec<Neighbour>, Spent), Failure> {
    service.metrics.stream_query();
    service.check_batch(names)?;
    let mut bounds = Bounds::begin(&service.lifecycle);
    bounds.shorten_ms(service.settings.limits.time_ms);
    let limits = Asked::default().within(&service.settings.limits);
    let work = async {
        let _permit = service.admission.admit().await?;
        let open = service.catalog.acquire(&graph.name, graph.version).await?;
        let mut query = open.graph.query();
        let (edges, _) = edges_of(&open.graph, &mut query, names, hop, false, &limits).await?;
        Ok((edges, Spent::of(&query.cost(), open.graph.prices())))
    };
    bounds.bounded(work).await
}

/// The edges of a hop from vertices that are named, and the keys of the vertices reached.
pub(super) async fn edges_of(
    graph: &Graph,
    query: &mut Query,
    names: &[VertexName],
    hop: &Hop,
    keys: bool,
    limits: &Limits,
) -> Result<(Vec<Neighbour>, Option<Vec<Key>>), Failure> {
    let named = resolve(graph, names)?;
    if keys {
        // What the keys need to know comes with the look-up.
        query.expect_rows_at_end(&labels_of(query, &named), std::slice::from_ref(hop));
    }
    let vertices = find_all(query, &named).await?;
    let edges = query.neighbors(&vertices, hop).await?;
    check_limits(graph, query, edges.len(), limits)?;
    if !keys {
        return Ok((edges, None));
    }
    let ends: Vec<_> = edges.iter().map(|edge| edge.to).collect();
    let keys = query.keys_of(&ends).await?;
    check_limits(graph, query, 0, limits)?;
    Ok((edges, Some(keys)))
}

/// Refuses an answer that took more than the limits allow. A single hop has no earlier moment to be ended at.
pub(super) fn check_limits(graph: &Graph, query: &Query, vertices: usize, limits: &Limits) -> Result<(), Failure> {
    // What was begun for later queries is none of its limits.
    let cost = Spent::of(&query.cost().foreground(), graph.prices());
    let over = |limit: Option<u64>, value: u64| limit.filter(|limit| value > *limit);
    let reached = if let Some(limit) = over(limits.vertices_max, vertices as u64) {
        Some(format!("{limit} vertices"))
    } else if let Some(limit) = over(limits.requests_max, cost.requests) {
        Some(format!("{limit} requests"))
    } else if let Some(limit) = over(limits.bytes_max, cost.bytes) {
        Some(format!("{limit} bytes"))
    } else {
        limits.usd_max.filter(|limit| cost.usd > *limit).map(|limit| format!("{limit} US dollars"))
    };
    let ended = |limit| Failure::new(Reason::Limit, format!("the query was ended at its limit of {limit}"));
    reached.map_or(Ok(()), |limit| Err(ended(limit)))
}
