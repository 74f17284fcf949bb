//! Walks and shortest paths.

use std::{mem::take, time::Instant};

use hoplake::{
    DescribedWalks, Graph, Held, MemoryHold, PathQuery, Paths, PropertyRow, Query, VertexId, Walk, WalkEdge,
    WalkVertex, WeightedPathQuery,
};

use super::{
    Call, GraphRef, NamedPath, PathEdge, PathName, PathOutput, PathsRequest, ResultBatch, ResultSink,
    ShortestPathRequest, Statistics,
    neighbors::KEY_BYTES,
    traverse::depths_of,
    vertices::{ResolvedName, find_all, find_ends, labels_of, resolve},
};
use crate::{
    cost::{PricedCost, PricedStep},
    failure::Failure,
};

/// Walks that are named at a time: enough to share a look-up of keys, and no more vertices than a message holds.
const WALKS_MAX: usize = 1_024;
const VERTICES_MAX: usize = 8 << 10;
/// Walks with properties that are encoded in one go.
const WALKS_WITH_PROPERTIES: usize = 16;
/// What a property of a vertex or edge takes in addition to its value: a slice of its column.
const PROPERTY_BYTES: usize = 128;
/// The default length of the longest path, in edges.
const DEPTH_MAX: usize = 16;

/// What walks have, and the memory of it.
struct Described {
    paths: Vec<NamedPath>,
    _memory: (MemoryHold, Option<Held<DescribedWalks>>),
}

/// Walks with the keys of their vertices, and properties and edges, in one wave for all of them; without keys and edges, no request.
async fn describe(query: &mut Query, walks: &[Walk], output: &PathOutput) -> Result<Described, Failure> {
    // Before anything is read: a query without memory for it ends here and not after the read.
    let items: usize = walks.iter().map(|walk| walk.vertices.len() + walk.edges.len()).sum();
    let hold = query.memory().hold((items * (KEY_BYTES + output.select.len() * PROPERTY_BYTES)) as u64)?;
    if !output.keys && !output.edges {
        let bare = |walk: &Walk| NamedPath { vertices: walk.vertices.clone(), names: Vec::new(), edges: Vec::new() };
        return Ok(Described { paths: walks.iter().map(bare).collect(), _memory: (hold, None) });
    }
    let all = query.describe_walks(walks, &output.select).await?;
    let row = |row: PropertyRow<'_>| (!output.select.is_empty()).then(|| row.to_batch());
    let name = |vertex: &VertexId| {
        let WalkVertex { label, key, properties } = all.vertex(*vertex)?;
        Some(PathName { label: label.to_owned(), key, properties: row(properties) })
    };
    let edge = |walk: &Walk, at: usize| {
        let edge = walk.edges.get(at)?;
        let WalkEdge { label, properties } = all.edge(edge)?;
        let id = edge.id();
        let direction = walk.direction(at)?;
        Some(PathEdge { id, label: label.to_owned(), direction, properties: row(properties) })
    };
    let named = |walk: &Walk| NamedPath {
        vertices: walk.vertices.clone(),
        names: if output.keys { walk.vertices.iter().filter_map(name).collect() } else { Vec::new() },
        edges: (0..walk.edges.len()).filter_map(|at| edge(walk, at)).collect(),
    };
    let paths = walks.iter().map(named).collect();
    Ok(Described { paths, _memory: (hold, Some(all)) })
}

/// The walks of a traversal, enumerated and named as they are sent.
pub(crate) async fn paths(
    call: &mut Call,
    graph: &GraphRef,
    request: &PathsRequest,
    sink: &mut dyn ResultSink,
) -> Result<Statistics, Failure> {
    let begun = Instant::now();
    call.limit_time(request.spec.limits.time_ms);
    let open = call.graph(graph).await?;
    let most = call.service.settings.limits.results_max;
    let limit = if request.limit == 0 { most } else { request.limit.min(most) };
    let engine_request = request.spec.request(call, &open.graph)?;
    let named = resolve(&open.graph, &request.spec.starts)?;
    let mut query = call.query(&open.graph, &engine_request.traversal.limits);
    query.check_select(&request.output.select)?;
    // The metadata for keys is read in parallel with the look-up of the starts, and takes no wave of its own.
    if request.output.keys {
        query.expect_walks(&labels_of(&query, &named), &engine_request.traversal.hops, &request.output.select);
    }
    let work = async {
        let (mut paths, mut statistics) =
            walk(&open.graph, &mut query, engine_request.traversal, &named, limit).await?;
        if request.output.edges {
            paths = paths.with_edges();
        }
        put_walks(&open.graph, &mut query, paths, limit, &request.output, &mut statistics, sink).await?;
        Ok(statistics)
    };
    let outcome = call.bounded(work).await;
    let mut statistics = call.settle(&query, &open.graph, outcome).await?;
    statistics.cost = call.cost;
    statistics.time_us = begun.elapsed().as_micros() as u64;
    Ok(statistics)
}

async fn put_walks(
    graph: &Graph,
    query: &mut Query,
    mut paths: Paths,
    limit: usize,
    output: &PathOutput,
    statistics: &mut Statistics,
    sink: &mut dyn ResultSink,
) -> Result<(), Failure> {
    let mut left = limit;
    let begun = Instant::now();
    let before = query.cost();
    // A walk of n hops has n + 1 vertices. Bounded by vertices and not by walks alone, since walks may have 64 hops.
    let at_a_time = (VERTICES_MAX / (paths.profile().len() + 1)).clamp(1, WALKS_MAX);
    loop {
        let walks = query.next_walks(&mut paths, at_a_time.min(left)).await?;
        let is_last = walks.len() < at_a_time;
        left -= walks.len();
        statistics.results += walks.len() as u64;
        let described = describe(query, &walks, output).await?;
        // Properties can be long, and those of one vertex are encoded with each walk through it: some walks at a time.
        for paths in described.paths.chunks(if output.select.is_empty() { WALKS_MAX } else { WALKS_WITH_PROPERTIES }) {
            sink.put(ResultBatch::Paths(paths)).await?;
        }
        if is_last || left == 0 {
            break;
        }
    }
    statistics.truncated = left == 0 && !query.next_walks(&mut paths, 1).await?.is_empty();
    statistics.depths = depths_of(paths.profile(), graph.prices());
    statistics.trace();
    statistics.rows.cost += PricedCost::since(query, &before, graph.prices());
    statistics.rows.time_us += begun.elapsed().as_micros() as u64;
    Ok(())
}

async fn walk(
    graph: &Graph,
    query: &mut Query,
    traversal: hoplake::Traversal,
    named: &[ResolvedName],
    wanted: usize,
) -> Result<(Paths, Statistics), Failure> {
    let begun = Instant::now();
    let mut starts = find_all(query, named).await?;
    let look_up =
        PricedStep { cost: PricedCost::of(&query.cost(), graph.prices()), time_us: begun.elapsed().as_micros() as u64 };
    // One more shows whether the answer is truncated.
    let traversal = hoplake::Traversal { starts: take(&mut starts), ..traversal };
    let paths = query.paths(traversal, Some(wanted.saturating_add(1))).await?;
    Ok((paths, Statistics { look_up, version: graph.version(), ..Statistics::default() }))
}

/// A shortest path, if there is one.
#[derive(Debug)]
pub(crate) struct ShortestPath {
    pub(crate) path: Option<NamedPath>,
    /// The sum of its weights; none if the search counted edges.
    pub(crate) length: Option<f64>,
    pub(crate) version: u64,
}

/// A shortest path by number of edges or by weight.
pub(crate) async fn shortest_path(
    call: &mut Call,
    graph: &GraphRef,
    request: &ShortestPathRequest,
) -> Result<ShortestPath, Failure> {
    call.limit_time(request.limits.time_ms);
    let open = call.graph(graph).await?;
    if request.weight.is_some() && request.depth_max > 0 {
        return Err(Failure::invalid("depth_max has no effect with weight; leave it out"));
    }
    let bound = call.service.settings.limits.hops_max;
    // The default gives way to the server's bound; a client that asks for more gets an error and not a shorter search,
    // which would answer "no path" where there is one.
    let depth_max = if request.depth_max == 0 { DEPTH_MAX.min(bound) } else { request.depth_max };
    if depth_max > bound {
        let message = format!("paths of {depth_max} edges are longer than the {bound} of this server");
        return Err(Failure::invalid(message));
    }
    let named = resolve(&open.graph, &[request.from.clone(), request.to.clone()])?;
    let limits = call.limits(&request.limits);
    let mut query = call.query(&open.graph, &limits);
    query.check_select(&request.output.select)?;
    if request.output.keys {
        // Only the start: labels on the way to the target follow from the hops.
        let from = labels_of(&query, &named[..1]);
        query.expect_walks(&from, &vec![request.hop.clone(); depth_max], &request.output.select);
    }
    if !request.output.select.is_empty() {
        // The search also follows edges from the target, whose rows are tables of their own.
        let to = labels_of(&query, &named[1..]);
        query.expect_walks(&to, &vec![request.hop.reversed(); depth_max], &request.output.select);
    }
    let work = async {
        let [from, to] = find_ends(&mut query, &named).await?;
        let hop = request.hop.clone();
        let edges = request.output.edges;
        let (path, length) = match request.weight.clone() {
            None => {
                let path = PathQuery { from, to, hop, depth_max, edges, limits };
                (query.shortest_path(path).await?.into_path(), None)
            }
            Some(weight) => {
                match query
                    .weighted_path(WeightedPathQuery { from, to, hop, weight, edges, length_max: None, limits })
                    .await?
                {
                    Some(found) => (Some(found.walk), Some(found.length)),
                    None => (None, None),
                }
            }
        };
        Ok((describe(&mut query, path.as_slice(), &request.output).await?.paths.pop(), length))
    };
    let outcome = call.bounded(work).await;
    let (path, length) = call.settle(&query, &open.graph, outcome).await?;
    Ok(ShortestPath { path, length, version: open.graph.version() })
}
