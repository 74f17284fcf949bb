//! Prepared queries: list, save, delete and call them; and queries by text, for clients without a driver of Gremlin.

use std::sync::Arc;

use futures::{FutureExt, future::BoxFuture};
use hoplake::{
    Graph, QueryEdition,
    gremlin::{self, script::Script, value::Value},
};
use tokio::task::JoinHandle;

use super::{
    Asked, Call, GraphRef, Part, Parts,
    changes::unknown_if_ended,
    gremlin::{Answered, GremlinQuery, GremlinResults, read_script, run_gremlin},
};
use crate::{
    catalog::OpenGraph,
    failure::{Failure, Reason},
};

/// Results that are taken at a time.
const RESULTS: usize = 1_000;

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
    limits: Asked,
    parts: &mut dyn Parts,
) -> Result<Answered, Failure> {
    let script = gremlin::call(name, parameters);
    run(call, (graph, limits), script, Some(name.to_owned()), Vec::new(), parts).await
}

/// Runs a query of Gremlin that is given as text.
pub(crate) async fn dynamic_query(
    call: &mut Call,
    graph: GraphRef,
    text: &str,
    names: Vec<gremlin::Named>,
    limits: Asked,
    parts: &mut dyn Parts,
) -> Result<Answered, Failure> {
    // Before the text is read, which takes the time of who has no token.
    call.check_token()?;
    let script = read_script(call, text, &limits)?;
    run(call, (graph, limits), script, None, names, parts).await
}

async fn run(
    call: &mut Call,
    (graph, limits): (GraphRef, Asked),
    script: Script,
    prepared: Option<String>,
    names: Vec<gremlin::Named>,
    parts: &mut dyn Parts,
) -> Result<Answered, Failure> {
    let results_max = call.service.settings.limits.results_max as u64;
    let asked =
        GremlinQuery { graph, is_alias: false, script, prepared, names, batch: RESULTS, properties: true, limits };
    let mut results = Counted { parts, left: results_max, results_max };
    run_gremlin(call, &asked, None, &mut results).await
}

/// Hands results on, and counts them.
struct Counted<'a> {
    parts: &'a mut dyn Parts,
    left: u64,
    results_max: u64,
}

impl GremlinResults for Counted<'_> {
    fn put(&mut self, results: Vec<(Value, u64)>) -> BoxFuture<'_, Result<(), Failure>> {
        async move {
            for (_, bulk) in &results {
                self.left = self.left.checked_sub(*bulk).ok_or_else(|| {
                    let message = format!("there are more than {} results; narrow the query", self.results_max);
                    Failure::new(Reason::Limit, message)
                })?;
            }
            self.parts.put(Part::Results(&results)).await
        }
        .boxed()
    }

    fn prepare(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

/// A name and its value, which is JSON or GraphSON.
pub(crate) fn named_value(name: &str, json: &str) -> Result<gremlin::Named, Failure> {
    match gremlin::decode(json.len(), || gremlin::graphson::read_value(json.as_bytes())) {
        Ok(value) => Ok((name.into(), value)),
        Err(error) => Err(Failure::invalid(format!("the value of {name} cannot be read: {error}"))),
    }
}
