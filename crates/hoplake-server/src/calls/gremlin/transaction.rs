//! The transaction of a script, and the graph that it is on.

use std::sync::Arc;

use hoplake::gremlin::Transaction;

use super::request::GremlinRequest;
use crate::{
    calls::call::Call,
    catalog::OpenGraph,
    failure::{Failure, Reason},
};

/// A transaction, and the graph that it is on.
#[derive(Debug)]
pub(crate) struct GremlinWork {
    pub(super) open: Arc<OpenGraph>,
    pub(super) transaction: Transaction,
}

/// The open transaction, or a new one. One that will write begins on a version that is known to exist.
pub(super) async fn ready<'a>(
    call: &mut Call,
    request: &GremlinRequest,
    work: &'a mut Option<GremlinWork>,
    writes: bool,
) -> Result<&'a mut GremlinWork, Failure> {
    let begun = match work.take() {
        Some(begun) => {
            let checked = check_graph(call, request, &begun);
            if writes && checked.is_ok() && !begun.transaction.has_changes() {
                let catalog = call.service.catalog.clone();
                // A look alone: the transaction stays on the version that it began on.
                if let Err(failure) = call.bounded(catalog.seen(begun.open.clone())).await {
                    *work = Some(begun);
                    return Err(failure);
                }
            }
            if let Err(failure) = checked {
                *work = Some(begun);
                return Err(failure);
            }
            begun
        }
        None => begin(call, request, writes).await?,
    };
    Ok(work.insert(begun))
}

/// A session is on one graph.
fn check_graph(call: &Call, request: &GremlinRequest, work: &GremlinWork) -> Result<(), Failure> {
    let own = &work.open.name;
    if candidates(call, request).contains(own) {
        return Ok(());
    }
    let message =
        format!("the transaction of this session is on {own:?}; commit it before a query on {:?}", request.graph.name);
    Err(Failure::invalid(message))
}

/// The names that a graph may have: its own, or for `g` the usual one.
fn candidates(call: &Call, request: &GremlinRequest) -> Vec<String> {
    let name = &request.graph.name;
    let usual = match &call.service.settings.gremlin.graph {
        _ if !request.is_alias || name != "g" => None,
        Some(usual) => return vec![usual.clone()],
        None => call.service.catalog.only_name(),
    };
    usual.into_iter().chain([name.clone()]).collect()
}

/// Begins a transaction on the newest version that the server knows.
async fn begin(call: &mut Call, request: &GremlinRequest, writes: bool) -> Result<GremlinWork, Failure> {
    let catalog = call.service.catalog.clone();
    let version = request.graph.version;
    for name in candidates(call, request) {
        let found = async {
            let open = catalog.acquire(&name, version).await?;
            if writes { catalog.seen(open).await } else { Ok(open) }
        };
        let open = match call.bounded(found).await {
            Ok(open) => open,
            Err(failure) if failure.reason == Reason::NotFound => continue,
            Err(failure) => return Err(failure),
        };
        call.about(&open.name);
        // A version that a request names by its number is read-only.
        let writable = version == 0 && call.service.check_writable().is_ok();
        let transaction = if writable { open.graph.gremlin() } else { open.graph.gremlin_read_only() };
        return Ok(GremlinWork { open, transaction });
    }
    let known: Vec<_> = catalog.names().into_iter().map(|(name, _)| name).collect();
    let known = match &known[..] {
        [] => "as the alias of g, give the name of one below the URLs that are served".to_owned(),
        known => format!("this server knows {}", known.join(", ")),
    };
    Err(Failure::new(Reason::NotFound, format!("there is no graph {:?}; {known}", request.graph.name)))
}
