//! Runs the statements of a script.

use hoplake::{
    MemoryHold,
    gremlin::{
        Plan, Wanted, is_large,
        script::{Terminal, Transaction as Verb},
    },
};

use super::{
    commit::commit,
    plan::{Stage, check_writes, stages},
    request::GremlinRequest,
    results::{GremlinSink, ResultStream},
    transaction::{GremlinWork, ready},
};
use crate::{
    calls::call::Call,
    failure::Failure,
    results::{CacheLookup, ResultKey},
};

/// Which version was read, and whether the results came from the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct GremlinOutcome {
    /// 0 if no graph was needed.
    pub(crate) version: u64,
    /// Whether the results were kept from another request.
    pub(crate) cached: bool,
}

/// Runs a script. In a session its changes stay in the session's transaction, and else they are committed at its end.
pub(crate) async fn run_gremlin(
    call: &mut Call,
    request: &GremlinRequest,
    session: Option<&mut Option<GremlinWork>>,
    sink: &mut dyn GremlinSink,
) -> Result<GremlinOutcome, Failure> {
    call.about(&request.graph.name);
    call.check_token()?;
    call.limit_time(request.limits.time_ms);
    let mut own = None;
    let is_session = session.is_some();
    let work = session.unwrap_or(&mut own);
    let mut stages = match request.script.calls() {
        // A large script is admitted before it is planned, so that planning is bounded as other work is.
        false if is_large(&request.script) => {
            call.enter().await?;
            let stages = stages(call, request, None)?;
            check_writes(call, &stages)?;
            stages
        }
        false => {
            let stages = stages(call, request, None)?;
            check_writes(call, &stages)?;
            call.enter().await?;
            stages
        }
        true => {
            call.enter().await?;
            let GremlinWork { open, transaction } = ready(call, request, work, false).await?;
            if let Some(name) = &request.prepared {
                open.graph.check_query(name)?;
            }
            let stages = stages(call, request, Some(transaction))?;
            check_writes(call, &stages)?;
            stages
        }
    };
    let is_kept =
        !is_session && matches!(&stages[..], [Stage::Run(plan, ..)] if !plan.writes() && !plan.settings.varies);
    if is_kept && let Some(Stage::Run(plan, terminal, hold)) = stages.pop() {
        return run_kept(call, request, work, (&plan, terminal, hold), sink).await;
    }
    let mut results = ResultStream::new(call, request, sink);
    let last = stages.len().saturating_sub(1);
    for (number, stage) in stages.into_iter().enumerate() {
        match stage {
            Stage::Run(plan, terminal, hold) => {
                let terminal = if number == last { Some(terminal) } else { None };
                run(call, request, work, (&plan, terminal, hold), &mut results).await?;
            }
            Stage::Verb(Verb::Commit) => commit(call, work.take()).await?,
            Stage::Verb(Verb::Rollback) => *work = None,
            // A transaction begins with its first query.
            Stage::Verb(Verb::Begin) | Stage::Nothing => {}
        }
    }
    results.prepare()?;
    let version = work.as_ref().map_or(0, |work| work.open.graph.version());
    if !is_session {
        commit(call, own).await?;
    }
    Ok(GremlinOutcome { version, cached: false })
}

/// Runs a query whose results depend on the version and its parameters alone, or takes those that the cache has.
async fn run_kept(
    call: &mut Call,
    request: &GremlinRequest,
    work: &mut Option<GremlinWork>,
    (plan, terminal, hold): (&Plan, Terminal, MemoryHold),
    sink: &mut dyn GremlinSink,
) -> Result<GremlinOutcome, Failure> {
    let open = ready(call, request, work, false).await?.open.clone();
    let version = open.graph.version();
    let service = call.service.clone();
    let mut results = ResultStream::new(call, request, sink);
    let key = || ResultKey::new(&open.graph, &request.script, &request.names, request.options.properties);
    let found = match service.results.as_ref().and_then(|cache| Some((cache, key()?))) {
        None => CacheLookup::Bypass,
        Some((cache, key)) => call.bounded(async { Ok(cache.look_up(&key).await) }).await?,
    };
    let cached = matches!(found, CacheLookup::Hit(_));
    // What is sent of those in the cache counts against the memory of the request, too.
    call.limits(&request.limits);
    match found {
        CacheLookup::Hit(kept) => {
            call.cached = true;
            let sent = results.put_cached(&kept);
            call.bounded(sent).await?;
        }
        CacheLookup::Bypass => run(call, request, work, (plan, Some(terminal), hold), &mut results).await?,
        CacheLookup::Compute(filling) => {
            results.collect_for(filling)?;
            run(call, request, work, (plan, Some(terminal), hold), &mut results).await?;
            let sent = results.keep();
            call.bounded(sent).await?;
        }
    }
    results.prepare()?;
    Ok(GremlinOutcome { version, cached })
}

/// Runs one statement on the transaction, which stays as it was if the statement fails. Its results are dropped without a terminal.
async fn run(
    call: &mut Call,
    request: &GremlinRequest,
    work: &mut Option<GremlinWork>,
    (plan, terminal, hold): (&Plan, Option<Terminal>, MemoryHold),
    results: &mut ResultStream<'_>,
) -> Result<(), Failure> {
    let GremlinWork { open, transaction } = ready(call, request, work, plan.writes()).await?;
    let limits = call.limits(&request.limits);
    let query = call.query(&open.graph, &limits);
    let begun = transaction.clone();
    let properties = request.options.properties && terminal.is_some();
    let taken = async {
        drop(hold);
        let mut computed = begun.run(plan, Wanted { properties }, query.context())?;
        results.take(&mut computed, terminal.unwrap_or(Terminal::Iterate)).await?;
        Ok(computed.into_transaction())
    };
    let before = call.cost;
    let outcome = call.bounded(taken).await;
    let outcome = call.settle(&query, &open.graph, outcome).await;
    call.cost += before;
    *transaction = outcome?;
    Ok(())
}
