//! The calls of the service, whatever the protocol.
//!
//! One file per call. Each takes a request in types of its own, which an adapter has made of a message, and puts the batches of its
//! result into a sink of the adapter, or returns a small result whole. Nothing here knows a protocol. [`Call`] is their common part: a
//! token, a deadline, a permit to run, one line in the log.

pub(crate) mod blocks;
mod bounds;
mod call;
mod changes;
mod chunks;
mod context;
mod counts;
mod cursor;
mod cursors;
mod edge_columns;
mod gremlin;
mod info;
mod jobs;
mod neighbors;
mod paths;
mod properties;
mod queries;
mod refresh;
mod requests;
mod results;
mod scan;
mod service;
mod traverse;
mod vertices;

pub(crate) use crate::{limits::RequestedLimits, vertex_name::VertexName};
pub(crate) use bounds::Bounds;
pub(crate) use call::Call;
pub(crate) use changes::{AppliedChanges, ChangesFormat, ChangesOptions, ChangesRequest, EmptyGraph, apply, create};
pub(crate) use chunks::{Chunk, ChunkSender, Chunks, chunk_channel};
pub(crate) use context::RequestContext;
pub(crate) use counts::count_walks;
pub(crate) use cursor::{NextNeighborsRequest, close, next_neighbors, open};
pub(crate) use cursors::Cursors;
pub(crate) use edge_columns::EdgeColumns;
pub(crate) use gremlin::{
    DriverOptions, GremlinOptions, GremlinOutcome, GremlinRequest, GremlinSink, GremlinWork, ResultValues, named_value,
    names_of, planning_context, planning_failure, read_script, run_gremlin,
};
pub(crate) use info::{EdgeTypeInfo, Info, LabelInfo, PropertyInfo, info};
pub(crate) use jobs::{JobResultRequest, ResultSummary, cancel_job, get_job, job_result, list_jobs, start_job};
pub(crate) use neighbors::{Edges, Neighbors, look_up, neighbors, stream_neighbors};
pub(crate) use paths::{paths, shortest_path};
pub(crate) use properties::properties;
pub(crate) use queries::{QueriesInfo, call_query, delete_query, dynamic_query, list_queries, save_query};
pub(crate) use refresh::refresh;
pub(crate) use requests::{
    GraphRef, NeighborsRequest, Output, PathOutput, PathsRequest, PropertiesRequest, ScanRequest, ShortestPathRequest,
    TraversalSpec, TraverseRequest,
};
pub(crate) use results::{LabelRows, NamedPath, PathEdge, PathName, ResultBatch, ResultSink, ValueRows};
pub(crate) use scan::{Scanned, scan};
pub(crate) use service::Service;
pub(crate) use traverse::{DepthStatistics, Statistics, traverse};
pub(crate) use vertices::{parse_id, raw_id};
