//! Walks and shortest paths.

use std::time::Instant;

use hoplake::{Graph, Key, PathQuery, Paths, Query, VertexId};

use super::{
    Call, GraphRef, Part, Parts, PathsQuery, Service, ShortestPathQuery, Statistics,
    neighbors::KEY_BYTES,
    traverse::depths_of,
    vertices::{Named, find_all, labels_of, resolve},
};
use crate::{
    cost::{PricedCost, Step},
    failure::Failure,
};

/// Walks that are named at a time: enough to share a look-up of keys, and no more vertices than a message holds.
const WALKS_MAX: usize = 1_024;
const VERTICES_MAX: usize = 8 << 10;
/// The default length of the longest path, in edges.
const DEPTH_MAX: usize = 16;

/// A list of vertices, and their labels and keys if requested.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NamedPath {
    pub(crate) vertices: Vec<VertexId>,
    pub(crate) keys: Vec<(String, Key)>,
}

/// Walks with the keys of their vertices, in one wave for all of them; without keys, no request.
async fn name(query: &mut Query, walks: Vec<Vec<VertexId>>, keys: bool) -> Result<Vec<NamedPath>, Failure> {
    let mut names = if keys { query.name_paths(&walks).await? } else { Vec::new() }.into_iter();
    let named = |vertices| NamedPath { vertices, keys: names.next().unwrap_or_default() };
    Ok(walks.into_iter().map(named).collect())
}

/// The walks of a traversal, enumerated and named as they are sent.
pub(crate) async fn paths(
    call: &mut Call,
    graph: &GraphRef,
    asked: &PathsQuery,
    parts: &mut dyn Parts,
) -> Result<Statistics, Failure> {
    let begun = Instant::now();
    call.limit_time(asked.spec.limits.time_ms);
    let open = call.graph(graph).await?;
    let most = call.service.settings.limits.results_max;
    let limit = if asked.limit == 0 { most } else { asked.limit.min(most) };
    let request = asked.spec.request(call, &open.graph)?;
    let named = resolve(&open.graph, &asked.spec.starts)?;
    let mut query = call.query(&open.graph, &request.traversal.limits);
    // The metadata for keys is read in parallel with the look-up of the starts, and takes no wave of its own.
    if asked.keys {
        query.expect_rows_on_the_way(&labels_of(&query, &named), &request.traversal.hops);
    }
    let work = async {
        let (paths, mut statistics) = walk(&open.graph, &mut query, request.traversal, &named, limit).await?;
        put_walks(&open.graph, &mut query, paths, limit, asked.keys, &mut statistics, parts).await?;
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
    keys: bool,
    statistics: &mut Statistics,
    parts: &mut dyn Parts,
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
        // Before the keys are read: a query without memory for them ends here and not after the read.
        let _hold = query.memory().hold((walks.iter().map(Vec::len).sum::<usize>() * KEY_BYTES) as u64)?;
        let named = name(query, walks.into_inner(), keys).await?;
        parts.put(Part::Paths(&named)).await?;
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
    named: &[Named],
    wanted: usize,
) -> Result<(Paths, Statistics), Failure> {
    let begun = Instant::now();
    let starts = find_all(query, named).await?;
    let look_up =
        Step { cost: PricedCost::of(&query.cost(), graph.prices()), time_us: begun.elapsed().as_micros() as u64 };
    // One more shows whether the answer is truncated.
    let paths = query.paths(hoplake::Traversal { starts, ..traversal }, Some(wanted.saturating_add(1))).await?;
    Ok((paths, Statistics { look_up, version: graph.version(), ..Statistics::default() }))
}

/// A shortest path, if there is one.
#[derive(Debug)]
pub(crate) struct ShortestPath {
    pub(crate) path: Option<NamedPath>,
    pub(crate) version: u64,
}

/// A shortest path by number of edges.
pub(crate) async fn shortest_path(
    call: &mut Call,
    graph: &GraphRef,
    asked: &ShortestPathQuery,
) -> Result<ShortestPath, Failure> {
    call.limit_time(asked.limits.time_ms);
    let open = call.graph(graph).await?;
    let bound = call.service.settings.limits.hops_max;
    // The default gives way to the server's bound; a client that asks for more gets an error and not a shorter search,
    // which would answer "no path" where there is one.
    let depth_max = if asked.depth_max == 0 { DEPTH_MAX.min(bound) } else { asked.depth_max };
    if depth_max > bound {
        let message = format!("paths of {depth_max} edges are longer than the {bound} of this server");
        return Err(Failure::invalid(message));
    }
    Service::check_single(&[asked.from.clone(), asked.to.clone()])?;
    let named = resolve(&open.graph, &[asked.from.clone(), asked.to.clone()])?;
    let limits = call.limits(&asked.limits);
    let mut query = call.query(&open.graph, &limits);
    if asked.keys {
        // Only the start: labels on the way to the target follow from the hops.
        query.expect_rows_on_the_way(&labels_of(&query, &named[..1]), &vec![asked.hop.clone(); depth_max]);
    }
    let work = async {
        let ends = find_all(&mut query, &named).await?;
        let from = ends[0];
        let to = ends[1];
        let hop = asked.hop.clone();
        let path = query.shortest_path(PathQuery { from, to, hop, depth_max, limits }).await?;
        Ok(name(&mut query, path.into_iter().collect(), asked.keys).await?.pop())
    };
    let outcome = call.bounded(work).await;
    let path = call.settle(&query, &open.graph, outcome).await?;
    Ok(ShortestPath { path, version: open.graph.version() })
}
