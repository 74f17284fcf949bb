//! A whole traversal in one call.

use std::time::Instant;

use hoplake::{DepthProfile, Frontier, Graph, PriceList, Query, Reached, Traversal, TraversalAnswer, TraversalRequest};

use super::{
    Call, GraphRef, LabelRows, Output, TraversalSpec, TraverseQuery,
    vertices::{Named, resolve},
};
use crate::{
    cost::{Spent, Step},
    failure::Failure,
};

/// What one depth took.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct DepthStatistics {
    pub(crate) edges: u64,
    pub(crate) vertices: u64,
    pub(crate) step: Step,
}

/// What a traversal took, and how much it found.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Statistics {
    pub(crate) spent: Spent,
    pub(crate) time_us: u64,
    pub(crate) look_up: Step,
    pub(crate) depths: Vec<DepthStatistics>,
    pub(crate) rows: Step,
    pub(crate) results: u64,
    pub(crate) truncated: bool,
    pub(crate) version: u64,
}

/// What a traversal found: ids or rows, by depth.
#[derive(Debug)]
pub(crate) struct Traversed {
    pub(crate) vertices: Vec<(u32, Frontier)>,
    pub(crate) rows: Vec<LabelRows>,
    pub(crate) statistics: Statistics,
}

impl TraversalSpec {
    /// As the facade takes it, beside the starts that are known by id.
    pub(super) fn request(&self, call: &Call, graph: &Graph) -> Result<TraversalRequest, Failure> {
        call.service.check_batch(&self.starts)?;
        let bounds = &call.service.settings.limits;
        if self.hops.len() > bounds.hops_max {
            let message = format!("{} hops are more than the {} of this server", self.hops.len(), bounds.hops_max);
            return Err(Failure::invalid(message));
        }
        let named = resolve(graph, &self.starts)?;
        let known = |named: &Named| if let Named::Vertex(vertex) = named { Some(*vertex) } else { None };
        let depth_first = self.strategy == hoplake::Strategy::Dfs;
        let usual = if depth_first { 1 } else { bounds.parallelism_max };
        let parallelism = if self.parallelism == 0 { usual } else { self.parallelism.min(bounds.parallelism_max) };
        let traversal = Traversal {
            starts: named.iter().filter_map(known).collect(),
            hops: self.hops.clone(),
            strategy: self.strategy,
            visit: self.visit,
            parallelism,
            limits: call.limits(&self.limits),
            ..Traversal::default()
        };
        let starts = named.iter().filter_map(Named::start).collect();
        Ok(TraversalRequest { starts, traversal, select: None, limit: None })
    }
}

impl Statistics {
    /// Of a traversal whose result is still to be fetched.
    pub(super) fn of(graph: &Graph, look_up: Step, reached: &Reached) -> Self {
        let depth = |profile: &DepthProfile| depth_of(profile, graph.prices());
        let depths = reached.profile.iter().map(depth).collect();
        let results = reached.last().len() as u64;
        Self { look_up, depths, results, version: graph.version(), ..Self::default() }
    }

    /// Tells each hop to whoever traces the request.
    pub(super) fn trace(&self) {
        for (depth, hop) in (1i64..).zip(&self.depths) {
            let Spent { waves, requests, bytes, cache_hits, .. } = hop.step.cost;
            // OpenTelemetry has no unsigned numbers; they would become text.
            let counts = [waves, requests, bytes, cache_hits, hop.edges, hop.vertices, hop.step.time_us];
            let [waves, requests, bytes, cache_hits, edges, vertices, time_us] = counts.map(|count| count as i64);
            tracing::debug!(
                target: "hoplake::spans", depth, waves, requests, bytes, cache_hits, edges, vertices, time_us, "hop"
            );
        }
    }
}

fn depth_of(profile: &DepthProfile, prices: &PriceList) -> DepthStatistics {
    let step = Step { cost: Spent::of(&profile.cost, prices), time_us: profile.time_us };
    DepthStatistics { edges: profile.edges, vertices: profile.vertices, step }
}

/// Runs a traversal from names to ids or rows.
pub(crate) async fn traverse(call: &mut Call, graph: &GraphRef, asked: &TraverseQuery) -> Result<Traversed, Failure> {
    let begun = Instant::now();
    call.limit_time(asked.spec.limits.time_ms);
    let open = call.graph(graph).await?;
    let most = call.service.settings.limits.results_max;
    let limit = if asked.limit == 0 { most } else { asked.limit.min(most) };
    let mut request = asked.spec.request(call, &open.graph)?;
    if let (Output::Rows(select), false) = (&asked.output, asked.all_depths) {
        (request.select, request.limit) = (Some(select.clone()), Some(limit));
    }
    let mut query = open.graph.query();
    let outcome = call.bounded(run(&open.graph, &mut query, &request, asked, limit)).await;
    let mut traversed = call.settle(&query, &open.graph, outcome)?;
    traversed.statistics.spent = call.spent;
    traversed.statistics.time_us = begun.elapsed().as_micros() as u64;
    Ok(traversed)
}

async fn run(
    graph: &Graph,
    query: &mut Query,
    request: &TraversalRequest,
    asked: &TraverseQuery,
    limit: usize,
) -> Result<Traversed, Failure> {
    if asked.all_depths && matches!(asked.output, Output::Rows(_)) {
        let ids = request.traversal.starts.iter().map(|vertex| vertex.label());
        let keys = query.label_ids(request.starts.iter().map(|start| start.label.as_str()));
        query.expect_rows_on_the_way(&ids.chain(keys).collect::<Vec<_>>(), &request.traversal.hops);
    }
    let answer = query.run(request).await?;
    let TraversalAnswer { reached, rows, start_cost, rows_cost } = answer;
    let mut statistics = Statistics::of(graph, Step::of(&start_cost, graph.prices()), &reached);
    statistics.trace();
    statistics.rows = Step::of(&rows_cost, graph.prices());
    let (vertices, truncated) = wanted(reached, asked.all_depths, limit);
    statistics.truncated = truncated && asked.output != Output::Nothing;
    let mut traversed = Traversed { vertices, rows: Vec::new(), statistics };
    match &asked.output {
        Output::Ids => {}
        Output::Nothing => traversed.vertices.clear(),
        Output::Rows(_) if !asked.all_depths => {
            for (depth, wanted) in std::mem::take(&mut traversed.vertices) {
                // The facade cut at the same limit, in the same order.
                traversed.rows = LabelRows::of(graph, depth, rows.clone(), &wanted);
            }
        }
        Output::Rows(select) => {
            let (begun, before) = (Instant::now(), query.cost());
            let (depths, sets): (Vec<_>, Vec<_>) = std::mem::take(&mut traversed.vertices).into_iter().unzip();
            let rows = query.properties_of_each(&sets, select).await?;
            for ((depth, wanted), rows) in depths.into_iter().zip(&sets).zip(rows) {
                traversed.rows.extend(LabelRows::of(graph, depth, rows, wanted));
            }
            let cost = Spent::since(query, &before, graph.prices());
            traversed.statistics.rows = Step { cost, time_us: begun.elapsed().as_micros() as u64 };
        }
    }
    Ok(traversed)
}

/// The sets to return, and whether the limit kept some vertices back.
fn wanted(reached: Reached, all_depths: bool, limit: usize) -> (Vec<(u32, Frontier)>, bool) {
    let last = reached.depths.len().saturating_sub(1);
    let skipped = if all_depths { 0 } else { last };
    let (mut left, mut truncated) = (limit, false);
    let cut = |(depth, set): (u32, Frontier)| {
        if set.len() <= left {
            left -= set.len();
            return (depth, set);
        }
        truncated = true;
        let kept = set.vertices().take(left).collect();
        left = 0;
        (depth, kept)
    };
    let sets = (0..).zip(reached.depths).skip(skipped).map(cut).collect();
    (sets, truncated)
}
