//! The calls of the service, independent of protocols.
//!
//! One file a call. Each takes a request in types of its own, which a protocol's `receive` has made, and returns an
//! answer that its `send` writes, part by part where it may be long; nothing here knows the wire formats. [`Call`] is
//! their common part: a token, a deadline, a permit to run, one line in the log.

pub(crate) mod blocks;
mod bounds;
mod call;
mod context;
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
mod service;
mod traverse;
mod vertices;

pub(crate) use bounds::Bounds;
pub(crate) use call::Call;
pub(crate) use changes::{AppliedChanges, ChangesFormat, ChangesOptions, ChangesQuery, EmptyGraph, apply, create};
pub(crate) use context::RequestContext;
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
pub(crate) use service::Service;
pub(crate) use traverse::{DepthStatistics, Statistics, traverse};
pub(crate) use vertices::{parse_id, raw_id};
