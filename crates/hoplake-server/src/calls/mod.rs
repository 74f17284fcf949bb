//! What can be asked, whatever the protocol.
//!
//! One file a call. Each takes a request in types of its own, which a protocol's `receive` has made, and returns an
//! answer that its `send` writes; nothing here knows how either looks on a wire. [`Call`] is what all have in
//! common: a token, a deadline, a place among the queries that run, one line in the log.

pub(crate) mod blocks;
mod bounds;
mod call;
mod info;
mod neighbors;
mod paths;
mod properties;
mod refresh;
mod request;
mod steered;
mod traverse;
mod vertices;

pub(crate) use bounds::Bounds;
pub(crate) use call::{Call, Protocol, REQUEST_ID};
pub(crate) use info::{EdgeTypeInfo, Info, LabelInfo, PropertyInfo, info};
pub(crate) use neighbors::{EdgeRun, Neighbors, look_up, neighbors, stream_neighbors};
pub(crate) use paths::{NamedPath, PathStream, paths, shortest_path};
pub(crate) use properties::{LabelRows, properties};
pub(crate) use refresh::refresh;
pub(crate) use request::{
    Asked, GraphRef, NeighborsQuery, Output, PathsQuery, PropertiesQuery, ShortestPathQuery, TraversalSpec,
    TraverseQuery, VertexName,
};
pub(crate) use steered::{NextQuery, Traversals, close, next_neighbors, open};
pub(crate) use traverse::{DepthStatistics, Statistics, Traversed, traverse};
pub(crate) use vertices::{parse_id, raw_id};

use std::sync::Arc;

use crate::{
    Settings,
    access::ServedGraphs,
    admission::Admission,
    catalog::Catalog,
    lifecycle::Lifecycle,
    telemetry::metrics::{Metrics, Readings},
};

/// What all calls of a server share.
pub(crate) struct Service {
    pub(crate) settings: Settings,
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) admission: Admission,
    /// Graphs whose blocks other nodes may ask for.
    pub(crate) served: ServedGraphs,
    /// Reads for other nodes.
    pub(crate) fetches: Admission,
    pub(crate) traversals: Traversals,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) lifecycle: Lifecycle,
}

impl Service {
    /// The counters, with what is going on now.
    pub(crate) fn metrics_text(&self) -> String {
        self.metrics.text(&Readings {
            running: self.admission.running(),
            waiting: self.admission.waiting(),
            fetches: self.fetches.running(),
            traversals: self.traversals.len(),
            background: self.catalog.background(),
        })
    }
}
