//! Jobs: start, list, look, cancel, and the result.
//!
//! A job holds no permit to run queries: it has its own bounds ([`crate::jobs`]). Starting one takes a permit while
//! names of vertices are looked up, so that a mistake is found at once; reading its result takes one as any answer
//! with rows does.

use std::{collections::HashMap, sync::Arc, time::Duration};

use arrow_array::UInt32Array;
use arrow_select::take::take_record_batch;
use hoplake::{Frontier, Graph, Query, StartKey, VertexId, compute::Computed};

use super::{
    Call, GraphRef, LabelRows, RequestedLimits, ResultBatch, ResultSink, ValueRows, VertexName,
    properties::{ROWS_FIRST, rows_at_a_time},
    requests::check_once,
    vertices::{ResolvedName, find_all, resolve},
};
use crate::{
    failure::{Failure, Reason},
    jobs::{JobGraph, JobInfo, JobRequest, NewJob, name_bytes},
};

/// Bytes a vertex while the top of a result is found: [`Computed::top`] has room for twice as many, and returns ids.
const TOP_BYTES: u64 = 16;
/// Bytes a row while rows are put into the order of values.
const PLACE_BYTES: u64 = 48;

/// Which part of a result.
#[derive(Debug, Clone, Default)]
pub(crate) struct JobResultRequest {
    pub(crate) id: String,
    /// So many of the top, in the order of values; without it, all in the order of label and position.
    pub(crate) top: Option<u64>,
    /// Of all, those to leave out first.
    pub(crate) skip: u64,
    /// Of all, the most rows; 0 is as many as there are.
    pub(crate) limit: u64,
    /// Properties in addition to the key.
    pub(crate) select: Vec<String>,
}

/// What a result says apart from its rows.
#[derive(Debug, Clone)]
pub(crate) struct ResultSummary {
    pub(crate) graph: JobGraph,
    pub(crate) value: String,
    /// Vertices that have a row in the whole result.
    pub(crate) vertices: u64,
}

/// Starts a job, once its graph, its names and its memory have been checked.
pub(crate) async fn start_job(call: &mut Call, graph: &GraphRef, request: &JobRequest) -> Result<JobInfo, Failure> {
    call.check_token()?;
    request.check()?;
    call.service.check_batch(&request.from)?;
    let open = call.graph(graph).await?;
    let limits = call.limits(&RequestedLimits { time_ms: 0, memory_bytes_max: 0, ..request.limits });
    let mut query = call.query(&open.graph, &limits);
    let outcome = call.bounded(starts(&open.graph, &mut query, &request.from)).await;
    let starts = call.settle(&query, &open.graph, outcome).await?;
    let name_bytes = name_bytes(&starts);
    let computation = request.computation(starts)?;
    let jobs = &call.service.jobs;
    let options = request.options(jobs.compute_workers());
    let needs = query.compute_needs(&computation, &options)?;
    let name = request.algorithm.name;
    if needs.vertices == 0 {
        let message =
            "no vertex takes part: no label of the graph has such edges; name labels for vertices without edges";
        return Err(Failure::invalid(message));
    }
    let bounds = jobs.settings();
    let memory_bytes_max = match request.limits.memory_bytes_max {
        0 => bounds.memory_bytes_max,
        request => request.min(bounds.memory_bytes_max),
    };
    let rejected = |what: &str, bytes: u64, most: u64| {
        let message = format!(
            "{name} of {} vertices takes at least {bytes} bytes of memory {what}, and this job may take {most}; select fewer edges \
             and labels, or raise the limit",
            needs.vertices
        );
        Err(Failure::new(Reason::Limit, message))
    };
    if needs.memory_bytes > memory_bytes_max {
        return rejected("while it runs", needs.memory_bytes, memory_bytes_max);
    }
    if needs.result_bytes > bounds.kept_bytes_max {
        return rejected("for its result", needs.result_bytes, bounds.kept_bytes_max);
    }
    let time_ms =
        if request.limits.time_ms == 0 { bounds.time_ms } else { request.limits.time_ms.min(bounds.time_ms_max) };
    jobs.start(NewJob {
        graph: JobGraph::of(&open),
        algorithm: request.algorithm,
        computation,
        options,
        limits: request.limits.within(&call.service.settings.limits),
        time: Duration::from_millis(time_ms),
        memory_bytes_max,
        vertices: needs.vertices,
        name_bytes,
        span: call.span.clone(),
    })
}

/// The labels and keys of vertices that are named, all of which must exist.
async fn starts(graph: &Graph, query: &mut Query, names: &[VertexName]) -> Result<Vec<StartKey>, Failure> {
    let named = resolve(graph, names)?;
    // What does not exist is an error of the request, and not of the job.
    find_all(query, &named).await?;
    let ids: Vec<VertexId> = named.iter().filter_map(ResolvedName::id).collect();
    // Only ids have keys that are not known yet.
    let keys = if ids.is_empty() { None } else { Some(query.keys_of(&ids).await?) };
    let mut keys = keys.iter().flat_map(|keys| keys.iter());
    let start = |named: &ResolvedName| match named {
        ResolvedName::Vertex(vertex) => Some(StartKey::key(query.label_of(*vertex), keys.next()?.to_string())),
        other => other.start(),
    };
    Ok(named.iter().filter_map(start).collect())
}

/// All jobs of this server. Everyone who may ask at all sees all of them: a server has one token.
pub(crate) fn list_jobs(call: &Call) -> Result<Vec<JobInfo>, Failure> {
    call.check_token()?;
    Ok(call.service.jobs.list())
}

/// What there is to know of a job.
pub(crate) fn get_job(call: &mut Call, id: &str) -> Result<JobInfo, Failure> {
    // Before the look-up: without a token, a client must not find out which ids there are.
    call.check_token()?;
    let info = call.service.jobs.info(id)?;
    call.about(&info.graph.name);
    Ok(info)
}

/// Cancels a job, or drops its result. Without a permit, so that it works while the queue is full.
pub(crate) fn cancel_job(call: &mut Call, id: &str) -> Result<JobInfo, Failure> {
    call.check_token()?;
    let info = call.service.jobs.cancel(id)?;
    call.about(&info.graph.name);
    Ok(info)
}

/// The result of a job, or a part of it.
pub(crate) async fn job_result(
    call: &mut Call,
    request: &JobResultRequest,
    sink: &mut dyn ResultSink,
) -> Result<ResultSummary, Failure> {
    call.check_token()?;
    if request.top.is_some() && (request.skip > 0 || request.limit > 0) {
        return Err(Failure::invalid(
            "skip and limit are of all rows, and top is of the first by value; leave one of them out",
        ));
    }
    check_once(&request.select)?;
    let job = call.service.jobs.get(&request.id)?;
    call.about(&job.graph.name);
    // Held from here on: a result that is dropped meanwhile is still read to its end.
    let computed = job.result()?;
    let rows = requested_rows(request, computed.len());
    let most = call.service.settings.limits.results_max;
    if rows > most {
        let message = format!(
            "the answer would have {rows} rows, more than the {most} of this server; ask for the top of it, or for a part with skip \
             and limit"
        );
        return Err(Failure::new(Reason::Limit, message));
    }
    let open = call.graph(&GraphRef { name: job.graph.name.clone(), version: job.graph.version }).await?;
    job.graph.check(&open.graph)?;
    let limits = call.limits(&RequestedLimits::default());
    let mut query = call.query(&open.graph, &limits);
    let work = async {
        let mut reader =
            ValueReader { graph: &open.graph, select: &request.select, computed: &computed, rows: ROWS_FIRST };
        if request.top.is_none() {
            let skip = usize::try_from(request.skip).unwrap_or(usize::MAX);
            return reader.put(&mut query, computed.vertices().skip(skip).take(rows), sink).await;
        }
        let _memory = query.context().memory().hold(rows as u64 * TOP_BYTES)?;
        let top = query.top(&computed, rows).await?;
        reader.put(&mut query, top.into_iter(), sink).await
    };
    let outcome = call.bounded(work).await;
    call.settle(&query, &open.graph, outcome).await?;
    Ok(ResultSummary { graph: job.graph.clone(), value: computed.name().to_owned(), vertices: computed.len() as u64 })
}

/// How many rows the answer has.
fn requested_rows(request: &JobResultRequest, all: usize) -> usize {
    let number = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let rest = all.saturating_sub(number(request.skip));
    match (request.top, request.limit) {
        (Some(top), _) => number(top).min(all),
        (None, 0) => rest,
        (None, limit) => number(limit).min(rest),
    }
}

/// Reads keys and properties of vertices piece by piece, and puts them with their values, in the order of the vertices.
struct ValueReader<'a> {
    graph: &'a Graph,
    select: &'a [String],
    computed: &'a Arc<Computed>,
    rows: usize,
}

impl ValueReader<'_> {
    async fn put(
        &mut self,
        query: &mut Query,
        mut vertices: impl Iterator<Item = VertexId> + Send,
        sink: &mut dyn ResultSink,
    ) -> Result<(), Failure> {
        loop {
            let _memory = query.context().memory().hold(self.rows as u64 * PLACE_BYTES)?;
            let wanted: Vec<VertexId> = vertices.by_ref().take(self.rows).collect();
            if wanted.is_empty() {
                return Ok(());
            }
            self.put_piece(query, &wanted, sink).await?;
        }
    }

    async fn put_piece(
        &mut self,
        query: &mut Query,
        wanted: &[VertexId],
        sink: &mut dyn ResultSink,
    ) -> Result<(), Failure> {
        let set: Frontier = wanted.iter().copied().collect();
        let read = query.properties(&set, self.select).await?;
        // By label and position; the order of values is another one.
        let all = read.map(|rows| LabelRows::of(self.graph, 0, rows, &set));
        let bytes: usize = all.iter().map(LabelRows::bytes).sum();
        self.rows = rows_at_a_time(bytes / wanted.len());
        // For the same rows in another order.
        let _memory = query.context().memory().hold(bytes as u64)?;
        let places =
            all.iter().zip(0usize..).flat_map(|(rows, of)| rows.ids.iter().zip((0u32..).map(move |row| (of, row))));
        let places: HashMap<VertexId, (usize, u32)> = places.map(|(id, place)| (*id, place)).collect();
        // A part has rows of one label: it ends where the next vertex is of another.
        for run in wanted.chunk_by(|one, other| one.label() == other.label()) {
            let Some((of, _)) = places.get(&run[0]) else { continue };
            let rows: UInt32Array = run.iter().filter_map(|id| places.get(id)).map(|(_, row)| *row).collect();
            let unreadable = |error| Failure::new(Reason::Internal, format!("rows cannot be put in order: {error}"));
            let batch = take_record_batch(&all[*of].batch, &rows).map_err(unreadable)?;
            let rows = LabelRows { label: all[*of].label.clone(), depth: 0, ids: run.to_vec(), batch };
            sink.put(ResultBatch::Values(&ValueRows { rows, values: self.computed.column(run) })).await?;
        }
        Ok(())
    }
}
