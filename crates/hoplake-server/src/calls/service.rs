//! The state that all calls of a server share.

use std::sync::Arc;

use hoplake::MemoryBudget;

use super::cursors::Cursors;
use crate::{
    Settings, access::ServedGraphs, admission::Admission, catalog::Catalog, jobs::Jobs, lifecycle::Lifecycle,
    results::ResultCache, telemetry::metrics::Metrics, workers::Workers,
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
    /// Graphs whose blocks other nodes may ask for.
    pub(crate) served: ServedGraphs,
    /// Reads for other nodes.
    pub(crate) fetches: Admission,
    /// Batches of changes.
    pub(crate) changes: Admission,
    pub(crate) cursors: Cursors,
    /// Results of queries that are request again, unless the settings have none.
    pub(crate) results: Option<ResultCache>,
    /// Computations over whole graphs.
    pub(crate) jobs: Arc<Jobs>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) lifecycle: Lifecycle,
}
