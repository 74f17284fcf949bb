//! A complete traversal in one call.

use std::time::Instant;

use hoplake::{
    Cost, DepthProfile, Frontier, Graph, Held, PriceList, Query, Reached, Rows, Traversal, TraversalAnswer,
    TraversalRequest,
};

use super::{
    Call, GraphRef, Output, ResultBatch, ResultSink, TraversalSpec, TraverseRequest,
    properties::{ROWS_FIRST, RowReader},
    vertices::{ResolvedName, resolve},
};
use crate::{
    cost::{PricedCost, PricedStep},
    failure::Failure,
};

/// Ids of a part.
const IDS_MAX: usize = 8 << 10;
/// The memory of an id, with its text.
const ID_BYTES: usize = 64;

/// The cost of one depth.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct DepthStatistics {
    pub(crate) edges: u64,
    pub(crate) vertices: u64,
    pub(crate) step: PricedStep,
}

/// The cost of a traversal, and the sizes of its results.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Statistics {
    pub(crate) cost: PricedCost,
    pub(crate) time_us: u64,
    pub(crate) look_up: PricedStep,
    pub(crate) depths: Vec<DepthStatistics>,
    pub(crate) rows: PricedStep,
    pub(crate) results: u64,
    /// The number of vertices or walks, if only that was wanted.
    pub(crate) count: Option<u64>,
    pub(crate) truncated: bool,
    pub(crate) version: u64,
}

impl TraversalSpec {
    /// The request to the facade. Starts by id are part of the traversal.
    pub(super) fn request(&self, call: &Call, graph: &Graph) -> Result<TraversalRequest, Failure> {
        call.service.check_batch(&self.starts)?;
        let bounds = &call.service.settings.limits;
        if self.hops.len() > bounds.hops_max {
            let message = format!("{} hops are more than the {} of this server", self.hops.len(), bounds.hops_max);
            return Err(Failure::invalid(message));
        }
        let named = resolve(graph, &self.starts)?;
        let depth_first = self.strategy == hoplake::Strategy::Dfs;
        let usual = if depth_first { 1 } else { bounds.parallelism_max };
        let parallelism = if self.parallelism == 0 { usual } else { self.parallelism.min(bounds.parallelism_max) };
        let traversal = Traversal {
            starts: named.iter().filter_map(ResolvedName::id).collect(),
            hops: self.hops.clone(),
            strategy: self.strategy,
            visit: self.visit,
            parallelism,
            limits: call.limits(&self.limits),
            ..Traversal::default()
        };
        let starts = named.iter().filter_map(ResolvedName::start).collect();
        Ok(TraversalRequest { starts, traversal, select: None, limit: None })
    }
}

impl Statistics {
    /// Of a traversal whose result is still to be fetched.
    pub(super) fn of(graph: &Graph, look_up: PricedStep, reached: &Reached) -> Self {
        let depths = depths_of(&reached.profile, graph.prices());
        let results = reached.last().len() as u64;
        Self { look_up, depths, results, version: graph.version(), ..Self::default() }
    }

    /// Emits a trace event for each hop.
    pub(super) fn trace(&self) {
        for (depth, hop) in (1i64..).zip(&self.depths) {
            let Cost { waves, requests, store_bytes, memory, .. } = hop.step.cost.counters;
            // OpenTelemetry has no unsigned numbers; they would become text.
            let counts = [waves, requests, store_bytes, memory.blocks, hop.edges, hop.vertices, hop.step.time_us];
            let [waves, requests, bytes, cache_hits, edges, vertices, time_us] = counts.map(|count| count as i64);
            tracing::debug!(
                target: "hoplake::spans", depth, waves, requests, bytes, cache_hits, edges, vertices, time_us, "hop"
            );
        }
    }
}

/// The cost of each hop.
pub(super) fn depths_of(profile: &[DepthProfile], prices: &PriceList) -> Vec<DepthStatistics> {
    let step = |depth: &DepthProfile| PricedStep { cost: PricedCost::of(&depth.cost, prices), time_us: depth.time_us };
    let depth =
        |depth: &DepthProfile| DepthStatistics { edges: depth.edges, vertices: depth.vertices, step: step(depth) };
    profile.iter().map(depth).collect()
}

/// Runs a traversal from names to ids or rows.
pub(crate) async fn traverse(
    call: &mut Call,
    graph: &GraphRef,
    request: &TraverseRequest,
    sink: &mut dyn ResultSink,
) -> Result<Statistics, Failure> {
    let begun = Instant::now();
    call.limit_time(request.spec.limits.time_ms);
    let open = call.graph(graph).await?;
    let most = call.service.settings.limits.results_max;
    // The server's maximum truncates here and does not fail: the answer says so in `truncated`.
    let limit = if request.limit == 0 { most } else { request.limit.min(most) };
    let mut engine_request = request.spec.request(call, &open.graph)?;
    if let (Output::Rows(select), false) = (&request.output, request.all_depths) {
        // The metadata of these rows is read in parallel with the look-up; later rows are read while they are sent.
        engine_request.select = Some(select.clone());
        engine_request.limit = Some(limit.min(ROWS_FIRST));
    }
    let mut query = call.query(&open.graph, &engine_request.traversal.limits);
    // The work includes sending, which waits for the client, so a slow client cannot extend its query beyond the deadline.
    let work = async { run(&open.graph, &mut query, engine_request, request, limit, sink).await };
    let outcome = call.bounded(work).await;
    let mut statistics = call.settle(&query, &open.graph, outcome).await?;
    statistics.cost = call.cost;
    statistics.time_us = begun.elapsed().as_micros() as u64;
    Ok(statistics)
}

async fn run(
    graph: &Graph,
    query: &mut Query,
    engine_request: TraversalRequest,
    request: &TraverseRequest,
    limit: usize,
    sink: &mut dyn ResultSink,
) -> Result<Statistics, Failure> {
    if request.all_depths && matches!(request.output, Output::Rows(_)) {
        let ids = engine_request.traversal.starts.iter().map(|vertex| vertex.label());
        let keys = query.label_ids(engine_request.starts.iter().map(|start| start.label()));
        // Rows of all depths have the labels on the way, not only those at the end, which the facade would expect.
        query.expect_rows_on_the_way(&ids.chain(keys).collect::<Vec<_>>(), &engine_request.traversal.hops);
    }
    let TraversalAnswer { reached, rows, start_cost, rows_cost } = query.run(&engine_request).await?;
    let mut statistics = Statistics::of(graph, PricedStep::of(&start_cost, graph.prices()), &reached);
    statistics.trace();
    let wanted = Wanted::of(&reached, request.all_depths, limit);
    let is_listed = !matches!(request.output, Output::Nothing | Output::Count);
    statistics.truncated = wanted.truncated && is_listed;
    match &request.output {
        Output::Nothing => {}
        Output::Count => {
            let skipped = if request.all_depths { 0 } else { reached.depths.len().saturating_sub(1) };
            statistics.count = Some(reached.depths.iter().skip(skipped).map(|set| set.len() as u64).sum());
        }
        Output::Ids => put_ids(query, &reached, &wanted, sink).await?,
        Output::Rows(select) => {
            let begun = Instant::now();
            let before = query.cost();
            let first = if request.all_depths { None } else { Some(rows) };
            put_rows(graph, query, select, &wanted.sets(&reached), first, sink).await?;
            statistics.rows = PricedStep::of(&rows_cost, graph.prices());
            statistics.rows.cost += PricedCost::since(query, &before, graph.prices());
            statistics.rows.time_us += begun.elapsed().as_micros() as u64;
        }
    }
    Ok(statistics)
}

/// Rows of sets by depth; of one set, the first ones may have been read.
async fn put_rows(
    graph: &Graph,
    query: &mut Query,
    select: &[String],
    sets: &[(u32, Frontier)],
    first: Option<Held<Vec<Rows>>>,
    sink: &mut dyn ResultSink,
) -> Result<(), Failure> {
    let mut reader = RowReader::new(graph, select);
    if let (Some(rows), [(depth, set)]) = (first, sets) {
        // The facade cut at the same limit, in the same order.
        let read: Frontier = set.vertices().take(ROWS_FIRST).collect();
        reader.put_read(*depth, rows, &read, sink).await?;
        return reader.put(query, *depth, set, read.len(), sink).await;
    }
    // Depths are often small; one after the other, each would take a wave.
    if sets.iter().map(|(_, set)| set.len()).sum::<usize>() <= ROWS_FIRST {
        // Few enough for one wave.
        let only: Vec<_> = sets.iter().map(|(_, set)| set.clone()).collect();
        let rows = query.properties_of_each(&only, select).await?;
        for ((depth, set), rows) in sets.iter().zip(rows.split()) {
            reader.put_read(*depth, rows, set, sink).await?;
        }
        return Ok(());
    }
    for (depth, set) in sets {
        reader.put(query, *depth, set, 0, sink).await?;
    }
    Ok(())
}

async fn put_ids(query: &Query, reached: &Reached, wanted: &Wanted, sink: &mut dyn ResultSink) -> Result<(), Failure> {
    let most = wanted.depths.iter().map(|(_, count)| IDS_MAX.min(*count)).max().unwrap_or(0);
    // One part at a time is in memory, so the largest is held and not the sum.
    let _hold = query.memory().hold((most * ID_BYTES) as u64)?;
    for (depth, count) in &wanted.depths {
        let mut vertices = reached.depths[*depth].vertices().take(*count);
        loop {
            let ids: Vec<_> = vertices.by_ref().take(IDS_MAX).collect();
            // A depth of exactly one part gets an empty second one, and an empty depth gets one: `ResultBatch::Vertices` promises that
            // each depth has a part.
            let is_last = ids.len() < IDS_MAX;
            sink.put(ResultBatch::Vertices { depth: *depth as u32, vertices: &ids }).await?;
            if is_last {
                break;
            }
        }
    }
    Ok(())
}

/// Which depths to return, how many vertices of each, and whether the limit kept some back.
struct Wanted {
    depths: Vec<(usize, usize)>,
    truncated: bool,
}

impl Wanted {
    fn of(reached: &Reached, all_depths: bool, limit: usize) -> Self {
        let last = reached.depths.len().saturating_sub(1);
        let skipped = if all_depths { 0 } else { last };
        let mut wanted = Self { depths: Vec::new(), truncated: false };
        let mut left = limit;
        for (depth, set) in reached.depths.iter().enumerate().skip(skipped) {
            let count = set.len().min(left);
            left -= count;
            wanted.truncated |= count < set.len();
            // Also with 0 vertices, so that a client sees every depth that the traversal reached.
            wanted.depths.push((depth, count));
        }
        wanted
    }

    fn sets(&self, reached: &Reached) -> Vec<(u32, Frontier)> {
        let set =
            |(depth, count): &(usize, usize)| (*depth as u32, reached.depths[*depth].vertices().take(*count).collect());
        self.depths.iter().map(set).collect()
    }
}
