//! Walks and shortest paths.

use std::{sync::Arc, time::Instant};

use hoplake::{Graph, Key, PathQuery, Paths, Query, VertexId};

use super::{
    Call, GraphRef, PathsQuery, ShortestPathQuery, Statistics,
    vertices::{Named, find_all, labels_of, resolve},
};
use crate::{
    catalog::OpenGraph,
    cost::{Spent, Step},
    failure::Failure,
};

/// Walks that are named at a time: enough to share a look-up of keys, few enough for one message.
const CHUNK: usize = 1_024;
/// The longest path that counts, in edges, if the request does not say.
const DEPTH_MAX: usize = 16;

/// A list of vertices, and their labels and keys if they were asked for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NamedPath {
    pub(crate) vertices: Vec<VertexId>,
    pub(crate) keys: Vec<(String, Key)>,
}

/// Walks that are enumerated and named as they are read.
pub(crate) struct PathStream {
    open: Arc<OpenGraph>,
    query: Query,
    paths: Paths,
    keys: bool,
    left: usize,
    statistics: Statistics,
    begun: Instant,
    done: bool,
}

impl PathStream {
    /// The next walks; `None` after the last. The statistics come beside the last.
    ///
    /// # Errors
    /// The store's, and those of the call's deadline.
    pub(crate) async fn next(
        &mut self,
        call: &mut Call,
    ) -> Result<Option<(Vec<NamedPath>, Option<Statistics>)>, Failure> {
        if self.done {
            return Ok(None);
        }
        let walks: Vec<_> = self.paths.by_ref().take(CHUNK.min(self.left)).collect();
        self.left -= walks.len();
        self.statistics.results += walks.len() as u64;
        let (begun, before) = (Instant::now(), self.query.cost());
        let named = call.bounded(name(&mut self.query, walks, self.keys)).await;
        let named = call.settle(&self.query, &self.open.graph, named)?;
        self.statistics.rows.cost += Spent::since(&self.query, &before, self.open.graph.prices());
        self.statistics.rows.time_us += begun.elapsed().as_micros() as u64;
        if named.len() == CHUNK && self.left > 0 {
            return Ok(Some((named, None)));
        }
        self.done = true;
        self.statistics.truncated = self.left == 0 && self.paths.next().is_some();
        self.statistics.spent = call.spent;
        self.statistics.time_us = self.begun.elapsed().as_micros() as u64;
        Ok(Some((named, Some(self.statistics.clone()))))
    }
}

async fn name(query: &mut Query, walks: Vec<Vec<VertexId>>, keys: bool) -> Result<Vec<NamedPath>, Failure> {
    let mut names = if keys { query.name_paths(&walks).await? } else { Vec::new() }.into_iter();
    let named = |vertices| NamedPath { vertices, keys: names.next().unwrap_or_default() };
    Ok(walks.into_iter().map(named).collect())
}

/// The walks of a traversal.
pub(crate) async fn paths(call: &mut Call, graph: &GraphRef, asked: &PathsQuery) -> Result<PathStream, Failure> {
    let begun = Instant::now();
    call.limit_time(asked.spec.limits.time_ms);
    let open = call.graph(graph).await?;
    let most = call.service.settings.limits.results_max;
    let left = if asked.limit == 0 { most } else { asked.limit.min(most) };
    let request = asked.spec.request(call, &open.graph)?;
    let named = resolve(&open.graph, &asked.spec.starts)?;
    let mut query = open.graph.query();
    if asked.keys {
        query.expect_rows_on_the_way(&labels_of(&query, &named), &request.traversal.hops);
    }
    let outcome = call.bounded(walk(&open.graph, &mut query, request.traversal, &named)).await;
    let (paths, statistics) = call.settle(&query, &open.graph, outcome)?;
    Ok(PathStream { open, query, paths, keys: asked.keys, left, statistics, begun, done: false })
}

async fn walk(
    graph: &Graph,
    query: &mut Query,
    traversal: hoplake::Traversal,
    named: &[Named],
) -> Result<(Paths, Statistics), Failure> {
    let begun = Instant::now();
    let starts = find_all(query, named).await?;
    let look_up = Step { cost: Spent::of(&query.cost(), graph.prices()), time_us: begun.elapsed().as_micros() as u64 };
    let (paths, reached) = query.paths(hoplake::Traversal { starts, ..traversal }).await?;
    let statistics = Statistics { results: 0, ..Statistics::of(graph, look_up, &reached) };
    statistics.trace();
    Ok((paths, statistics))
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
    let depth_max = if asked.depth_max == 0 { DEPTH_MAX.min(bound) } else { asked.depth_max };
    if depth_max > bound {
        let message = format!("paths of {depth_max} edges are longer than the {bound} of this server");
        return Err(Failure::invalid(message));
    }
    let named = resolve(&open.graph, &[asked.from.clone(), asked.to.clone()])?;
    let limits = call.limits(&asked.limits);
    let mut query = open.graph.query();
    if asked.keys {
        query.expect_rows_on_the_way(&labels_of(&query, &named[..1]), &vec![asked.hop.clone(); depth_max]);
    }
    let work = async {
        let ends = find_all(&mut query, &named).await?;
        let (from, to, hop) = (ends[0], ends[1], asked.hop.clone());
        let path =
            query.shortest_path(PathQuery { from, to, hop, depth_max, limits, after: Default::default() }).await?;
        Ok(name(&mut query, path.into_iter().collect(), asked.keys).await?.pop())
    };
    let outcome = call.bounded(work).await;
    let path = call.settle(&query, &open.graph, outcome)?;
    Ok(ShortestPath { path, version: open.graph.version() })
}
