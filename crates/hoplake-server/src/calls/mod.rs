//! The calls of the service, independent of protocols.
//!
//! One file a call. Each takes a request in types of its own, which a protocol's `receive` has made, and returns an
//! answer that its `send` writes, part by part where it may be long; nothing here knows the wire formats. [`Call`] is
//! their common part: a token, a deadline, a permit to run, one line in the log.

pub(crate) mod blocks;
mod bounds;
mod call;
mod changes;
mod counts;
mod cursor;
mod edge_columns;
mod gremlin;
mod info;
mod jobs;
mod neighbors;
mod outlet;
mod paths;
mod properties;
mod queries;
mod refresh;
mod request;
mod scan;
mod traverse;
mod vertices;

pub(crate) use bounds::Bounds;
pub(crate) use call::{Call, Protocol, REQUEST_ID, is_trusted};
pub(crate) use changes::{AppliedChanges, ChangesFormat, ChangesOptions, ChangesQuery, EmptyGraph, apply, create};
pub(crate) use counts::count_walks;
pub(crate) use cursor::{NextQuery, Traversals, close, next_neighbors, open};
pub(crate) use edge_columns::EdgeColumns;
pub(crate) use gremlin::{
    Answered, GremlinQuery, GremlinResults, GremlinWork, planning_context, planning_failure, read_script, run_gremlin,
};
pub(crate) use info::{EdgeTypeInfo, Info, LabelInfo, PropertyInfo, info};
pub(crate) use jobs::{ResultQuery, ResultSummary, ValueRows, cancel_job, get_job, job_result, list_jobs, start_job};
pub(crate) use neighbors::{Edges, Neighbors, look_up, neighbors, stream_neighbors};
pub(crate) use outlet::{Outlet, Part, Parts, Sent, outlet};
pub(crate) use paths::{NamedPath, PathEdge, PathName, paths, shortest_path};
pub(crate) use properties::{LabelRows, properties};
pub(crate) use queries::{QueriesInfo, call_query, delete_query, dynamic_query, list_queries, named_value, save_query};
pub(crate) use refresh::refresh;
pub(crate) use request::{
    Asked, GraphRef, NeighborsQuery, Output, PathOutput, PathsQuery, PropertiesQuery, ScanQuery, ShortestPathQuery,
    TraversalSpec, TraverseQuery, VertexName,
};
pub(crate) use scan::{Scanned, scan};
pub(crate) use traverse::{DepthStatistics, Statistics, traverse};
pub(crate) use vertices::{parse_id, raw_id};

use std::sync::Arc;

use axum::body::Bytes;
use hoplake::MemoryBudget;
use tokio::sync::Semaphore;

use crate::{
    Settings,
    access::ServedGraphs,
    admission::Admission,
    catalog::Catalog,
    doors::Connections,
    gremlin::GremlinState,
    jobs::{JobState, Jobs},
    lifecycle::Lifecycle,
    results::ResultCache,
    telemetry::{
        counters_text::CountersText,
        metrics::{Metrics, Readings},
    },
    workers::Workers,
};

/// The state that all calls of a server share.
pub(crate) struct Service {
    pub(crate) settings: Settings,
    /// Where calls run.
    pub(crate) workers: Workers,
    /// The budget of all queries, including requests on arrival and unsent answers.
    pub(crate) memory: MemoryBudget,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) admission: Admission,
    pub(crate) connections: Arc<Connections>,
    /// Streams of gRPC's reflection.
    pub(crate) reflections: Arc<Semaphore>,
    /// The counters as a text, for all that ask at the same time.
    pub(crate) counters: CountersText,
    /// Graphs whose blocks other nodes may ask for.
    pub(crate) served: ServedGraphs,
    /// Reads for other nodes.
    pub(crate) fetches: Admission,
    /// Batches of changes.
    pub(crate) changes: Admission,
    pub(crate) traversals: Traversals,
    /// Connections and sessions of Gremlin.
    pub(crate) gremlin: GremlinState,
    /// Results of queries that are asked again, unless the settings have none.
    pub(crate) results: Option<ResultCache>,
    /// Computations over whole graphs.
    pub(crate) jobs: Arc<Jobs>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) lifecycle: Lifecycle,
}

impl Service {
    /// The counters, with what is going on now.
    pub(crate) async fn metrics_text(&self) -> Bytes {
        self.counters.newest(|| self.write_metrics()).await
    }

    fn write_metrics(&self) -> String {
        let (connections, half_open) = self.connections.count();
        self.metrics.text(&Readings {
            connections,
            half_open,
            running: self.admission.running(),
            waiting: self.admission.waiting(),
            fetches: self.fetches.running(),
            changes: self.changes.running(),
            traversals: self.traversals.len(),
            jobs_running: self.jobs.count(JobState::Running),
            jobs_waiting: self.jobs.count(JobState::Waiting),
            background: self.catalog.background(),
            tasks: self.workers.tasks(),
            memory_bytes: self.memory.used(),
            gremlin_connections: self.gremlin.connections(),
            gremlin_sessions: self.gremlin.sessions(),
            results: self.results.as_ref().map(ResultCache::counts).unwrap_or_default(),
        })
    }
}
