//! Prepared queries: list, save, delete and call them; and queries by text, for clients without a driver of Gremlin.

use std::sync::Arc;

use futures::{FutureExt, future::BoxFuture};
use hoplake::{
    Graph, QueryEdition,
    gremlin::{self, script::Script},
};
use tokio::task::JoinHandle;

use super::{
    Call, GraphRef, RequestedLimits, ResultBatch, ResultSink,
    changes::unknown_if_ended,
    gremlin::{GremlinOptions, GremlinOutcome, GremlinRequest, GremlinSink, ResultValues, read_script, run_gremlin},
};
use crate::{catalog::OpenGraph, failure::Failure};

/// The prepared queries of a version.
#[derive(Debug, Clone)]
pub(crate) struct QueriesInfo {
    /// Each edition with the name of its query, by name and number.
    pub(crate) editions: Vec<(String, QueryEdition)>,
    pub(crate) version: u64,
}

/// What became of a query that was saved.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SavedInfo {
    pub(crate) number: u32,
    /// The version that has it.
    pub(crate) version: u64,
    /// Whether there was none with this name and these words.
    pub(crate) is_new: bool,
}

/// The prepared queries of a graph. No request, if it is open.
pub(crate) async fn list_queries(call: &mut Call, graph: &GraphRef) -> Result<QueriesInfo, Failure> {
    let open = call.graph(graph).await?;
    let all = open.graph.queries().0.iter();
    let editions = all.flat_map(|(name, query)| query.editions.iter().map(|edition| (name.clone(), edition.clone())));
    Ok(QueriesInfo { editions: editions.collect(), version: open.graph.version() })
}

/// Saves a query, in a version of its own that the server has open then.
pub(crate) async fn save_query(
    call: &mut Call,
    graph: &str,
    name: &str,
    edition: QueryEdition,
) -> Result<SavedInfo, Failure> {
    let open = open_to_change(call, graph).await?;
    let store = open.graph.store().clone();
    let name = name.to_owned();
    // A task of its own: it is saved whether its client still waits or not.
    let task = tokio::spawn(async move { Graph::save_query(&store, &name, &edition).await });
    let saved = published(call, task, "the query was saved").await?;
    let version = moved_on(call, graph).await?;
    let is_new = saved.version.is_some();
    Ok(SavedInfo { number: saved.number, version: saved.version.unwrap_or(version), is_new })
}

/// Deletes a query or one of its editions, and returns the version without it.
pub(crate) async fn delete_query(call: &mut Call, graph: &str, name: &str) -> Result<u64, Failure> {
    let open = open_to_change(call, graph).await?;
    let store = open.graph.store().clone();
    let name = name.to_owned();
    let task = tokio::spawn(async move { Graph::delete_query(&store, &name).await });
    let version = published(call, task, "the query was deleted").await?;
    moved_on(call, graph).await?;
    Ok(version)
}

async fn open_to_change(call: &mut Call, graph: &str) -> Result<Arc<OpenGraph>, Failure> {
    call.about(graph);
    call.check_token()?;
    call.service.check_writable()?;
    call.graph_to_change(&GraphRef { name: graph.to_owned(), version: 0 }).await
}

async fn published<T>(call: &Call, task: JoinHandle<Result<T, hoplake::Error>>, done: &str) -> Result<T, Failure> {
    let broken = |error| Failure::broken_off("the publication", &error);
    let outcome = call.bounded(async { task.await.map_err(broken) }).await;
    Ok(outcome.map_err(|failure| unknown_if_ended(failure, done))??)
}

/// The newest version, which has what was published before.
async fn moved_on(call: &Call, graph: &str) -> Result<u64, Failure> {
    let catalog = call.service.catalog.clone();
    Ok(call.bounded(catalog.refresh(graph)).await?.graph.version())
}

/// Calls a prepared query.
pub(crate) async fn call_query(
    call: &mut Call,
    graph: GraphRef,
    name: &str,
    parameters: Vec<gremlin::Named>,
    limits: RequestedLimits,
    sink: &mut dyn ResultSink,
) -> Result<GremlinOutcome, Failure> {
    let script = gremlin::call(name, parameters);
    run(call, (graph, limits), script, Some(name.to_owned()), Vec::new(), sink).await
}

/// Runs a query of Gremlin that is given as text.
pub(crate) async fn dynamic_query(
    call: &mut Call,
    graph: GraphRef,
    text: &str,
    names: Vec<gremlin::Named>,
    limits: RequestedLimits,
    sink: &mut dyn ResultSink,
) -> Result<GremlinOutcome, Failure> {
    // Before the text is read, which takes the time of who has no token.
    call.check_token()?;
    let script = read_script(call, text, &limits)?;
    run(call, (graph, limits), script, None, names, sink).await
}

async fn run(
    call: &mut Call,
    (graph, limits): (GraphRef, RequestedLimits),
    script: Script,
    prepared: Option<String>,
    names: Vec<gremlin::Named>,
    sink: &mut dyn ResultSink,
) -> Result<GremlinOutcome, Failure> {
    let options = GremlinOptions::default();
    let request = GremlinRequest { graph, is_alias: false, script, prepared, names, options, limits };
    run_gremlin(call, &request, None, &mut AsBatches(sink)).await
}

/// Results of Gremlin as a batch of any result.
struct AsBatches<'a>(&'a mut dyn ResultSink);

impl GremlinSink for AsBatches<'_> {
    fn put(&mut self, results: ResultValues) -> BoxFuture<'_, Result<(), Failure>> {
        async move { self.0.put(ResultBatch::Results(results.as_slice())).await }.boxed()
    }
}
