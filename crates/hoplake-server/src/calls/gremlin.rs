//! A query of Gremlin, or a transaction's part of one.
//!
//! A script is planned before it waits for its turn, so that a mistake in it takes nobody's place. What it changes is one
//! version: at its end, or in a session when it says so. A commit is a task of its own, as that of a batch of changes is.

use std::{
    collections::HashSet,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::{FutureExt, future::BoxFuture};
use hoplake::{
    Committed, ErrorKind, MemoryHold, QueryContext,
    gremlin::{
        Names, Plan, Results, Transaction, Wanted, block_in_place_if, is_large, parse_within, plan_within,
        script::{Script, Statement, Terminal, Transaction as Verb},
        value::{Key, Value},
        value_bytes,
    },
};
use tokio::sync::OwnedSemaphorePermit;

use super::{Asked, Call, GraphRef, Service, changes::unknown_if_ended};
use crate::{
    catalog::OpenGraph,
    cost::PricedCost,
    failure::{Failure, Reason},
    results::{Filling, Found, KeptResults, ResultKey},
};

/// Results that are dropped at a time.
const DROPPED: usize = 1_000;
/// How many times a result is there while a message is made of it: as JSON, as text, and in the message.
const MESSAGE_COPIES: u64 = 3;
/// The memory of a result that is kept to know it again.
const KEPT_BYTES: u64 = 256;

/// What is asked.
#[derive(Debug)]
pub(crate) struct GremlinQuery {
    pub(crate) graph: GraphRef,
    /// Whether the name is what a driver calls the graph, which may be `g` for the usual one.
    pub(crate) is_alias: bool,
    pub(crate) script: Script,
    /// The prepared query that it calls, if that is all of it: that it does not exist is another failure than a wrong call.
    pub(crate) prepared: Option<String>,
    /// The values of names in it.
    pub(crate) names: Vec<(Box<str>, Value)>,
    /// Results that are taken at a time.
    pub(crate) batch: usize,
    /// Whether elements come with their properties.
    pub(crate) properties: bool,
    pub(crate) limits: Asked,
}

/// Which version was asked, and whether anything was computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Answered {
    /// 0 if no graph was needed.
    pub(crate) version: u64,
    /// Whether the results were kept from another request.
    pub(crate) cached: bool,
}

/// A transaction, and the graph that it is on.
#[derive(Debug)]
pub(crate) struct GremlinWork {
    open: Arc<OpenGraph>,
    transaction: Transaction,
}

/// The consumer of results.
pub(crate) trait GremlinResults: Send {
    /// Takes results, each with how many times it stands there, and waits until there is room for more.
    fn put(&mut self, results: Vec<(Value, u64)>) -> BoxFuture<'_, Result<(), Failure>>;

    /// No more follow, and what they changed is about to be committed: what can fail of the rest fails now.
    fn prepare(&mut self) -> Result<(), Failure>;
}

/// What a statement does.
enum Stage {
    /// What the plan takes is held until it runs, which holds it again.
    Run(Box<Plan>, Terminal, MemoryHold),
    Verb(Verb),
    Nothing,
}

/// Runs a script. In a session its changes stay in the session's transaction, and else they are committed at its end.
pub(crate) async fn run_gremlin(
    call: &mut Call,
    asked: &GremlinQuery,
    session: Option<&mut Option<GremlinWork>>,
    results: &mut dyn GremlinResults,
) -> Result<Answered, Failure> {
    call.about(&asked.graph.name);
    call.check_token()?;
    call.limit_time(asked.limits.time_ms);
    let mut own = None;
    let is_session = session.is_some();
    let work = session.unwrap_or(&mut own);
    let stages = match asked.script.calls() {
        // What takes long to plan has its turn first, so that no more of it goes on at a time than of other work.
        false if is_large(&asked.script) => {
            call.enter().await?;
            let stages = stages(call, asked, None)?;
            check_writes(call, &stages)?;
            stages
        }
        false => {
            let stages = stages(call, asked, None)?;
            check_writes(call, &stages)?;
            call.enter().await?;
            stages
        }
        true => {
            call.enter().await?;
            let GremlinWork { open, transaction } = ready(call, asked, work, false).await?;
            if let Some(name) = &asked.prepared {
                open.graph.check_query(name)?;
            }
            let stages = stages(call, asked, Some(transaction))?;
            check_writes(call, &stages)?;
            stages
        }
    };
    let last = stages.len().saturating_sub(1);
    for (number, stage) in stages.into_iter().enumerate() {
        match stage {
            Stage::Run(plan, terminal, hold) => {
                let is_kept = last == 0 && !is_session && !plan.writes() && !plan.settings.varies;
                if is_kept {
                    return run_kept(call, asked, work, (&plan, terminal, hold), results).await;
                }
                let terminal = if number == last { Some(terminal) } else { None };
                run(call, asked, work, (&plan, terminal, hold), results).await?;
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
    Ok(Answered { version, cached: false })
}

fn check_writes(call: &Call, stages: &[Stage]) -> Result<(), Failure> {
    match stages.iter().any(Stage::writes) {
        true => call.service.check_writable(),
        false => Ok(()),
    }
}

/// Runs a query whose results depend on the version and its parameters alone, or takes those that were kept.
async fn run_kept(
    call: &mut Call,
    asked: &GremlinQuery,
    work: &mut Option<GremlinWork>,
    (plan, terminal, hold): (&Plan, Terminal, MemoryHold),
    results: &mut dyn GremlinResults,
) -> Result<Answered, Failure> {
    let open = ready(call, asked, work, false).await?.open.clone();
    let version = open.graph.version();
    let service = call.service.clone();
    let key = || ResultKey::new(&open.graph, &asked.script, &asked.names, asked.properties);
    let found = match service.results.as_ref().and_then(|cache| Some((cache, key()?))) {
        None => Found::Pass,
        Some((cache, key)) => call.bounded(async { Ok(cache.look_up(&key).await) }).await?,
    };
    let cached = matches!(found, Found::Results(_));
    // Those that were kept count against the memory that was asked for, too.
    call.limits(&asked.limits);
    match found {
        Found::Results(kept) => {
            call.cached = true;
            // For the copy, which the consumer takes.
            let _hold = call.memory.hold(kept.iter().map(|(value, _)| value_bytes(value) as u64).sum())?;
            let taken = results.put(kept.to_vec());
            call.bounded(taken).await?;
        }
        Found::Pass => run(call, asked, work, (plan, Some(terminal), hold), results).await?,
        Found::Compute(filling) => {
            let mut keeping = Keeping::new(call, filling, results)?;
            run(call, asked, work, (plan, Some(terminal), hold), &mut keeping).await?;
            let sent = keeping.finish();
            call.bounded(sent).await?;
        }
    }
    results.prepare()?;
    Ok(Answered { version, cached })
}

impl Stage {
    fn writes(&self) -> bool {
        matches!(self, Self::Run(plan, ..) if plan.writes())
    }
}

/// The memory and the time that reading and planning a script may take: those of the call.
pub(crate) fn planning_context(call: &mut Call, asked: &Asked) -> QueryContext {
    call.limit_time(asked.time_ms);
    call.limit_time(call.service.settings.limits.time_ms);
    let context = QueryContext::within(&call.memory);
    call.limits(asked).apply(&context);
    context
}

/// Why a script was not read or planned. Its deadline may be one that the script itself sets, of which the call does not know yet.
pub(crate) fn planning_failure(call: &Call, context: &QueryContext, error: hoplake::Error) -> Failure {
    // What is wrong about a text is wrong at any time.
    let is_late = error.kind() == ErrorKind::Limit && context.check_time().is_err();
    if is_late { call.bounds.time_is_over() } else { error.into() }
}

/// Reads a text as a part of a call.
pub(crate) fn read_script(call: &mut Call, text: &str, asked: &Asked) -> Result<Script, Failure> {
    let context = planning_context(call, asked);
    parse_within(text, &context).map_err(|error| planning_failure(call, &context, error))
}

/// Plans all statements, before anything is done; those that call prepared queries on the graph of a transaction.
fn stages(call: &mut Call, asked: &GremlinQuery, transaction: Option<&Transaction>) -> Result<Vec<Stage>, Failure> {
    // A text of a megabyte may have a hundred thousand statements, none of which is large.
    block_in_place_if(is_large(&asked.script), || {
        asked.script.statements.iter().map(|statement| stage(call, asked, statement, transaction)).collect()
    })
}

fn stage(
    call: &mut Call,
    asked: &GremlinQuery,
    statement: &Statement,
    transaction: Option<&Transaction>,
) -> Result<Stage, Failure> {
    let (traversal, terminal) = match statement {
        Statement::Traversal(traversal, terminal) => (traversal, *terminal),
        Statement::Transaction(verb) => return Ok(Stage::Verb(*verb)),
        Statement::Nothing => return Ok(Stage::Nothing),
    };
    let names = Names(&asked.names);
    let context = planning_context(call, &asked.limits);
    let plan = match transaction {
        Some(transaction) => transaction.plan_within(traversal, names, &context),
        None => plan_within(traversal, names, &context),
    };
    let plan = plan.map_err(|error| planning_failure(call, &context, error))?;
    call.limit_time(plan.settings.timeout_ms.unwrap_or(0));
    call.bounds.check()?;
    let hold = call.memory.hold(plan.settings.plan_bytes)?;
    Ok(Stage::Run(Box::new(plan), terminal, hold))
}

/// Runs one statement on the transaction, which stays as it was if the statement fails. Its results are dropped without a terminal.
async fn run(
    call: &mut Call,
    asked: &GremlinQuery,
    work: &mut Option<GremlinWork>,
    (plan, terminal, hold): (&Plan, Option<Terminal>, MemoryHold),
    results: &mut dyn GremlinResults,
) -> Result<(), Failure> {
    let GremlinWork { open, transaction } = ready(call, asked, work, plan.writes()).await?;
    let limits = call.limits(&asked.limits);
    let query = call.query(&open.graph, &limits);
    let memory = call.memory.clone();
    let begun = transaction.clone();
    let properties = asked.properties && terminal.is_some();
    let taken = async {
        drop(hold);
        let mut computed = begun.run(plan, Wanted { properties }, query.context())?;
        let hold = memory.hold(0)?;
        let mut taking = Taking { results: &mut computed, batch: asked.batch, hold, memory };
        match terminal {
            Some(terminal) => taking.take(terminal, results).await?,
            None => taking.drop_all().await?,
        }
        Ok(computed.into_transaction())
    };
    let before = call.cost;
    let outcome = call.bounded(taken).await;
    let outcome = call.settle(&query, &open.graph, outcome).await;
    call.cost += before;
    *transaction = outcome?;
    Ok(())
}

/// The transaction that goes on, or one that begins. One that will write begins on a version that is known to be there.
async fn ready<'a>(
    call: &mut Call,
    asked: &GremlinQuery,
    work: &'a mut Option<GremlinWork>,
    writes: bool,
) -> Result<&'a mut GremlinWork, Failure> {
    let begun = match work.take() {
        Some(begun) => {
            let checked = check_graph(call, asked, &begun);
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
        None => begin(call, asked, writes).await?,
    };
    Ok(work.insert(begun))
}

/// A session is on one graph.
fn check_graph(call: &Call, asked: &GremlinQuery, work: &GremlinWork) -> Result<(), Failure> {
    let own = &work.open.name;
    if candidates(call, asked).contains(own) {
        return Ok(());
    }
    let message =
        format!("the transaction of this session is on {own:?}; commit it before a query on {:?}", asked.graph.name);
    Err(Failure::invalid(message))
}

/// The names that a graph may have: its own, or for `g` the usual one.
fn candidates(call: &Call, asked: &GremlinQuery) -> Vec<String> {
    let name = &asked.graph.name;
    let usual = match &call.service.settings.gremlin.graph {
        _ if !asked.is_alias || name != "g" => None,
        Some(usual) => return vec![usual.clone()],
        None => call.service.catalog.only_name(),
    };
    usual.into_iter().chain([name.clone()]).collect()
}

/// Begins a transaction on the newest version that the server knows.
async fn begin(call: &mut Call, asked: &GremlinQuery, writes: bool) -> Result<GremlinWork, Failure> {
    let catalog = call.service.catalog.clone();
    let version = asked.graph.version;
    for name in candidates(call, asked) {
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
        // A version that is asked for by its number is read alone.
        let writable = version == 0 && call.service.check_writable().is_ok();
        let transaction = if writable { open.graph.gremlin() } else { open.graph.gremlin_read_only() };
        return Ok(GremlinWork { open, transaction });
    }
    let known: Vec<_> = catalog.names().into_iter().map(|(name, _)| name).collect();
    let known = match &known[..] {
        [] => "as the alias of g, give the name of one below the URLs that are served".to_owned(),
        known => format!("this server knows {}", known.join(", ")),
    };
    Err(Failure::new(Reason::NotFound, format!("there is no graph {:?}; {known}", asked.graph.name)))
}

/// Collects results that are to be kept, before they go on: who waits for them does not wait for a client. Those that turn out to be too
/// large go on as they come.
struct Keeping<'a> {
    results: &'a mut dyn GremlinResults,
    filling: Option<Filling<'a>>,
    collected: Vec<(Value, u64)>,
    bytes: u64,
    hold: MemoryHold,
}

impl<'a> Keeping<'a> {
    fn new(call: &Call, filling: Filling<'a>, results: &'a mut dyn GremlinResults) -> Result<Self, Failure> {
        let hold = call.memory.hold(0)?;
        Ok(Self { results, filling: Some(filling), collected: Vec::new(), bytes: 0, hold })
    }

    /// No more follow.
    async fn finish(mut self) -> Result<(), Failure> {
        let Some(filling) = self.filling.take() else { return Ok(()) };
        let kept: KeptResults = self.collected.into();
        filling.keep(kept.clone(), self.bytes);
        self.results.put(kept.to_vec()).await
    }
}

impl GremlinResults for Keeping<'_> {
    fn put(&mut self, results: Vec<(Value, u64)>) -> BoxFuture<'_, Result<(), Failure>> {
        async move {
            let Some(filling) = &self.filling else { return self.results.put(results).await };
            self.bytes += results.iter().map(|(value, _)| (value_bytes(value) + size_of::<u64>()) as u64).sum::<u64>();
            if self.bytes <= filling.bytes_max() {
                // Twice: for what is kept, and for what goes on.
                self.hold.resize(self.bytes * 2)?;
                self.collected.extend(results);
                return Ok(());
            }
            if let Some(filling) = self.filling.take() {
                filling.give_up();
            }
            let mut all = std::mem::take(&mut self.collected);
            all.extend(results);
            self.results.put(all).await?;
            Ok(self.hold.resize(0)?)
        }
        .boxed()
    }

    fn prepare(&mut self) -> Result<(), Failure> {
        self.results.prepare()
    }
}

/// Takes the results of a statement.
struct Taking<'a> {
    results: &'a mut Results,
    batch: usize,
    /// For results that are kept to know them again.
    hold: MemoryHold,
    memory: hoplake::MemoryBudget,
}

impl Taking<'_> {
    async fn take(&mut self, terminal: Terminal, wanted: &mut dyn GremlinResults) -> Result<(), Failure> {
        match terminal {
            Terminal::All | Terminal::List | Terminal::BulkSet => loop {
                let next = self.results.next(self.batch).await?;
                if next.is_empty() {
                    return Ok(());
                }
                self.give(next, wanted).await?;
            },
            Terminal::Set => self.take_distinct(wanted).await,
            Terminal::Next(None) => match self.take_some(1, wanted).await? {
                0 => {
                    let failure = Failure::invalid("`next()` found no result; `tryNext()` may find none");
                    Err(Failure { cause: Some(hoplake::Reason::Query), ..failure })
                }
                _ => Ok(()),
            },
            Terminal::TryNext => self.take_some(1, wanted).await.map(drop),
            Terminal::Next(Some(most)) => self.take_some(most, wanted).await.map(drop),
            Terminal::HasNext => {
                let has_next = !self.results.next(1).await?.is_empty();
                wanted.put(vec![(has_next.into(), 1)]).await
            }
            Terminal::Iterate => self.drop_all().await,
        }
    }

    /// Hands results on, with memory for them, and for what messages are made of them.
    async fn give(&self, results: Vec<(Value, u64)>, wanted: &mut dyn GremlinResults) -> Result<(), Failure> {
        let copies = |bulk: u64| 1 + bulk.min(self.batch as u64);
        let bytes = results.iter().map(|(value, bulk)| (value_bytes(value) as u64, copies(*bulk)));
        let sum = bytes.clone().fold(0, |sum: u64, (bytes, copies)| sum.saturating_add(bytes.saturating_mul(copies)));
        let largest = bytes.map(|(bytes, _)| bytes).max().unwrap_or(0);
        let _hold = self.memory.hold(sum.saturating_add(largest * MESSAGE_COPIES))?;
        wanted.put(results).await
    }

    async fn drop_all(&mut self) -> Result<(), Failure> {
        while !self.results.next(DROPPED).await?.is_empty() {}
        Ok(())
    }

    /// The first results, and how many there are of `most`.
    async fn take_some(&mut self, most: u64, wanted: &mut dyn GremlinResults) -> Result<u64, Failure> {
        let mut taken = 0;
        while taken < most {
            let at_a_time = usize::try_from(most - taken).map_or(self.batch, |left| left.min(self.batch));
            let mut next = self.results.next(at_a_time).await?;
            if next.is_empty() {
                break;
            }
            for (_, bulk) in &mut next {
                *bulk = (*bulk).min(most - taken);
                taken += *bulk;
            }
            next.retain(|(_, bulk)| *bulk > 0);
            self.give(next, wanted).await?;
        }
        Ok(taken)
    }

    /// Each result once.
    async fn take_distinct(&mut self, wanted: &mut dyn GremlinResults) -> Result<(), Failure> {
        let mut seen: HashSet<Known> = HashSet::new();
        let mut kept = 0;
        loop {
            let next = self.results.next(self.batch).await?;
            if next.is_empty() {
                return Ok(());
            }
            let bytes = |some: &[(Value, u64)]| {
                some.iter().map(|(value, _)| value_bytes(value) as u64 + KEPT_BYTES).sum::<u64>()
            };
            self.hold.resize(kept + bytes(&next))?;
            let new = next.into_iter().filter(|(value, _)| seen.insert(Known(value.clone())));
            let new: Vec<_> = new.map(|(value, _)| (value, 1)).collect();
            kept += bytes(&new);
            self.hold.resize(kept)?;
            self.give(new, wanted).await?;
        }
    }
}

/// A value by equivalence.
struct Known(Value);

impl PartialEq for Known {
    fn eq(&self, other: &Self) -> bool {
        Key(&self.0) == Key(&other.0)
    }
}

impl Eq for Known {}

impl std::hash::Hash for Known {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        Key(&self.0).hash(state);
    }
}

/// Commits what a transaction changed, if it changed something.
async fn commit(call: &mut Call, work: Option<GremlinWork>) -> Result<(), Failure> {
    let Some(work) = work.filter(|work| work.transaction.has_changes()) else { return Ok(()) };
    call.about(&work.open.name);
    call.service.check_writable()?;
    let service = call.service.clone();
    let changes = work.transaction.changes();
    let most = service.settings.limits.batch_max;
    if changes > most {
        return Err(Failure::invalid(format!("the transaction has {changes} changes, and one may have {most}")));
    }
    let permit = call.bounded(service.changes.admit()).await?;
    let name = work.open.name.clone();
    let time_ms = service.settings.limits.time_ms;
    if time_ms > 0 {
        // The bound of the server and not of this call: a version is made of the batches of many.
        work.open.graph.set_commit_timeout(Duration::from_millis(time_ms));
    }
    let task = tokio::spawn(publish(service.clone(), work, permit));
    let broken = |error| Failure::broken_off("the commit", &error);
    let outcome = call.bounded(async { task.await.map_err(broken) }).await;
    let failure = match outcome {
        Ok(Ok(cost)) => {
            call.cost += cost;
            return Ok(());
        }
        Ok(Err(failure)) => failure,
        Err(failure) => unknown_if_ended(failure, "the changes were committed"),
    };
    service.metrics.changes(failure.reason.name());
    if failure.reason == Reason::Conflict {
        // So that the client's next attempt begins on the version that was in its way.
        let _ = call.bounded(service.catalog.refresh(&name)).await;
    }
    Err(failure)
}

/// Commits, and moves the catalog on to the version before anyone is told. Returns what it cost.
async fn publish(
    service: Arc<Service>,
    work: GremlinWork,
    _permit: OwnedSemaphorePermit,
) -> Result<PricedCost, Failure> {
    let begun = Instant::now();
    let GremlinWork { open, transaction } = work;
    let changes = transaction.changes() as u64;
    let Some(committed) = transaction.commit().await? else { return Ok(PricedCost::default()) };
    let Committed { version, place, batches, .. } = committed;
    if !service.catalog.advance(&open, version)
        && let Err(failure) = service.catalog.refresh(&open.name).await
    {
        // It is published; only readers of this server find it later.
        tracing::warn!(graph = open.name, version, %failure, "could not move on to a version that was committed");
    }
    service.metrics.committed(changes, place == 0);
    if place > 0 {
        // Once for a version, or the sums of the counters would have it once for each transaction.
        return Ok(PricedCost::default());
    }
    let time_ms = begun.elapsed().as_millis() as u64;
    tracing::debug!(graph = open.name, version, batches, time_ms, "committed");
    Ok(PricedCost::of(&committed.cost, open.graph.prices()))
}
