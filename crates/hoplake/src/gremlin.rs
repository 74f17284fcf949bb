//! Gremlin, the query language of Apache TinkerPop.
//!
//! ```
//! # async fn example() -> Result<(), hoplake::Error> {
//! use hoplake::{Graph, Store, gremlin::value::Value};
//!
//! let store = Store::open("memory://docs/gremlin")?;
//! Graph::create(&store).await?;
//! let mut graph = Graph::open("memory://docs/gremlin").await?;
//!
//! let mut transaction = graph.gremlin();
//! transaction.query("g.addV('person').property('name', 'Ann').as('a').addV('person').property('name', 'Bo').addE('knows').from('a')").await?;
//! transaction.commit().await?; // one version
//!
//! graph.refresh().await?;
//! let names = graph.gremlin().query("g.V().has('name', 'Ann').out('knows').values('name')").await?;
//! assert_eq!(names, [Value::from("Bo")]);
//! # Ok(())
//! # }
//! # tokio::runtime::Runtime::new().unwrap().block_on(example()).unwrap();
//! ```
//! A transaction reads what it wrote. Without [`Transaction::commit`] nothing of it stays.
//!
//! A server, which reads queries in other forms than text and hands out results as they come, takes the same in parts: a
//! [`script`] from [`parse`] or [`bytecode`], [`plan`], [`Transaction::run`], [`Results::next`].

use hoplake_engine::change::Committed;
pub use hoplake_gremlin::{
    bytecode, graphbinary, graphson,
    lower::{Names, STEPS},
    message,
    prepared::{Named, call, signature},
    script, text,
};
pub use hoplake_query::{
    block_in_place_if, literal, mark_worker_thread, moment,
    plan::Plan,
    run::Wanted,
    tokens,
    value::{self, value_bytes},
};
use hoplake_query::{error::QueryError, run};
use hoplake_storage::{Cost, QueryContext};

use self::{
    script::{Script, Statement},
    value::Value,
};
pub use crate::prepared::{parameter, parameter_type};
use crate::{Error, ErrorKind, Graph, Reason};

/// Results that are taken at a time.
const RESULTS: usize = 1_000;

/// Results of [`Transaction::query`], at most.
const RESULTS_MAX: u64 = 10_000_000;

/// Reads a query.
///
/// # Errors
/// [`Invalid`](ErrorKind::Invalid) with [`Reason::Syntax`] and the place of the mistake.
pub fn parse(text: &str) -> Result<Script, Error> {
    parse_within(text, &QueryContext::new())
}

/// As [`parse`], as a part of a query's work: it ends at its deadline.
///
/// # Errors
/// As [`parse`], and [`Limit`](ErrorKind::Limit) at the deadline.
pub fn parse_within(text: &str, context: &QueryContext) -> Result<Script, Error> {
    Ok(decode(text.len(), || text::parse_within(text, context))?)
}

/// What a request in GraphBinary or GraphSON takes while it is decoded and after that, as a multiple of its bytes. Measured are 25 for nulls
/// of GraphBinary, which take two bytes, and 44 for steps and numbers of GraphSON.
pub const DECODED_FACTOR: u64 = 50;

/// The same for [`parameters_within`]: measured are 96 for entries of four bytes, such as `a:1,`.
pub const PARAMETERS_FACTOR: u64 = 100;

/// A text of which reading and planning takes more than a millisecond or two.
const LARGE_TEXT_BYTES: usize = 32 << 10;

/// A script of more [weight](Script::weight) is [large](is_large).
const LARGE_WEIGHT: usize = 16_000;

/// Reads a message of so many bytes, or a part of one, without holding up the tasks that share the thread.
pub fn decode<T>(bytes: usize, read: impl FnOnce() -> T) -> T {
    block_in_place_if(bytes > LARGE_TEXT_BYTES, read)
}

/// Whether planning a script takes more than a millisecond or two.
pub fn is_large(script: &Script) -> bool {
    script.weight() > LARGE_WEIGHT
}

/// The values of names as drivers of TinkerPop 4 write them: a map in the language itself, as in `[code: 'AUS', most: 3]`.
///
/// # Errors
/// [`Invalid`](ErrorKind::Invalid) if it is not a map of names to values; [`Limit`](ErrorKind::Limit) at the query's deadline.
pub fn parameters_within(text: &str, context: &QueryContext) -> Result<Vec<Named>, Error> {
    Ok(decode(text.len(), || hoplake_gremlin::lower::parameters(text, context))?)
}

/// Makes a plan of a traversal. Nothing is read. A call of a prepared query needs the graph that has it: [`Transaction::plan`].
///
/// # Errors
/// [`Invalid`](ErrorKind::Invalid) with [`Reason::Step`], and the name of a step that is not supported or has wrong arguments.
pub fn plan(traversal: &script::Traversal, names: Names<'_>) -> Result<Plan, Error> {
    plan_within(traversal, names, &QueryContext::new())
}

/// As [`plan`], as a part of a query's work: it ends at its deadline, which the traversal's own `evaluationTimeout` may bring forward.
///
/// # Errors
/// As [`plan`], and [`Limit`](ErrorKind::Limit) at the deadline, or if the plan does not fit the memory of the query.
pub fn plan_within(traversal: &script::Traversal, names: Names<'_>, context: &QueryContext) -> Result<Plan, Error> {
    let queries = hoplake_format::PreparedQueries::default();
    lowered(traversal, names, &queries, context)
}

fn lowered(
    traversal: &script::Traversal,
    names: Names<'_>,
    queries: &hoplake_format::PreparedQueries,
    context: &QueryContext,
) -> Result<Plan, Error> {
    let is_long = traversal.weight() > LARGE_WEIGHT;
    let plan = || hoplake_gremlin::lower::lower_within(traversal, names, queries, context);
    Ok(block_in_place_if(is_long, plan)?)
}

impl Graph {
    /// Begins a transaction of Gremlin on the open version.
    pub fn gremlin(&self) -> Transaction {
        let graph = run::Graph { snapshot: self.snapshot().clone(), committer: Some(self.committer().clone()) };
        Transaction { inner: run::Transaction::new(&graph) }
    }

    /// As [`Self::gremlin`]; queries that write are rejected.
    pub fn gremlin_read_only(&self) -> Transaction {
        let graph = run::Graph { snapshot: self.snapshot().clone(), committer: None };
        Transaction { inner: run::Transaction::new(&graph) }
    }
}

/// Queries that are committed together. A clone is the transaction as it is now: a query that fails takes the one that it ran in
/// with it.
#[derive(Debug, Clone)]
pub struct Transaction {
    inner: run::Transaction,
}

impl Transaction {
    /// Runs all statements of a text, and returns the results of the last one.
    ///
    /// # Errors
    /// As [`parse`], [`plan`] and [`Results::next`]; the transaction is then as it was before the text.
    pub async fn query(&mut self, text: &str) -> Result<Vec<Value>, Error> {
        let context = QueryContext::new();
        let mut last = Vec::new();
        let mut transaction = self.inner.clone();
        for statement in parse(text)?.statements {
            let Statement::Traversal(traversal, _) = statement else { continue };
            let current = Self { inner: transaction };
            let plan = current.plan_within(&traversal, Names::default(), &context)?;
            let (results, current) = all(current, &plan, &context).await?;
            last = results;
            transaction = current.inner;
        }
        self.inner = transaction;
        Ok(last)
    }

    /// Makes a plan of a traversal, in which it may call the prepared queries of the graph. Nothing is read.
    ///
    /// # Errors
    /// As [`plan`]; [`Invalid`](ErrorKind::Invalid) if a call names no prepared query of the graph, or its parameters are wrong.
    pub fn plan(&self, traversal: &script::Traversal, names: Names<'_>) -> Result<Plan, Error> {
        self.plan_within(traversal, names, &QueryContext::new())
    }

    /// As [`Self::plan`], as a part of a query's work, as [`plan_within`].
    ///
    /// # Errors
    /// As [`Self::plan`] and [`plan_within`].
    pub fn plan_within(
        &self,
        traversal: &script::Traversal,
        names: Names<'_>,
        context: &QueryContext,
    ) -> Result<Plan, Error> {
        lowered(traversal, names, self.inner.queries(), context)
    }

    /// Runs a plan, as a query of `context`, which has no more time than the plan's own `evaluationTimeout`.
    ///
    /// # Errors
    /// [`Invalid`](ErrorKind::Invalid) with [`Reason::ReadOnly`] if the plan writes and the transaction may not.
    pub fn run(self, plan: &Plan, wanted: Wanted, context: &QueryContext) -> Result<Results, Error> {
        // As in TinkerPop, 0 is no limit.
        if let Some(timeout_ms) = plan.settings.timeout_ms.filter(|timeout_ms| *timeout_ms > 0) {
            context.give_time_at_most(timeout_ms);
        }
        Ok(Results { inner: run::Results::begin(plan, self.inner, wanted, context.branch())? })
    }

    /// Whether it has changed something.
    pub fn has_changes(&self) -> bool {
        self.inner.has_changes()
    }

    /// How many changes a commit would have.
    pub fn changes(&self) -> usize {
        self.inner.changes()
    }

    /// Commits what was changed, as one version; `None` if nothing was.
    ///
    /// # Errors
    /// [`Conflict`](ErrorKind::Conflict) if another writer changed the same elements since it began;
    /// [`Unknown`](ErrorKind::Unknown) if it is unknown whether it was published; the store's, and then it was not.
    pub async fn commit(self) -> Result<Option<Committed>, Error> {
        Ok(self.inner.commit().await?)
    }
}

/// All results of a plan, and the transaction after it.
pub(crate) async fn all(
    transaction: Transaction,
    plan: &Plan,
    context: &QueryContext,
) -> Result<(Vec<Value>, Transaction), Error> {
    let mut results = transaction.run(plan, Wanted { properties: true }, context)?;
    let mut all = Vec::new();
    loop {
        let next = results.next(RESULTS).await?;
        if next.is_empty() {
            return Ok((all, results.into_transaction()));
        }
        for (value, bulk) in next {
            if all.len() as u64 + bulk > RESULTS_MAX {
                let why = format!(
                    "the query has more than {RESULTS_MAX} results: count them, or take them with Transaction::run"
                );
                return Err(Error::new(ErrorKind::Limit, why));
            }
            all.extend(std::iter::repeat_n(value, bulk as usize));
        }
    }
}

/// Results, which are computed as they are taken.
#[derive(Debug)]
pub struct Results {
    inner: run::Results,
}

impl Results {
    /// The next results, `most` of them at most, each with how many times it stands there; none at the end.
    ///
    /// # Errors
    /// [`Invalid`](ErrorKind::Invalid) with [`Reason::Query`] if the query fails on what it finds, such as a sum of texts;
    /// [`Limit`](ErrorKind::Limit); the store's.
    pub async fn next(&mut self, most: usize) -> Result<Vec<(Value, u64)>, Error> {
        Ok(self.inner.next(most).await?)
    }

    /// What the query has cost so far.
    pub fn cost(&self) -> Cost {
        self.inner.branch().context().cost()
    }

    /// The transaction, with what the query has changed, once all results were taken.
    pub fn into_transaction(self) -> Transaction {
        Transaction { inner: self.inner.into_transaction() }
    }
}

impl From<QueryError> for Error {
    fn from(error: QueryError) -> Self {
        let reason = match error {
            QueryError::Engine(error) => return error.into(),
            QueryError::Unsupported(_) | QueryError::Invalid(_) => Reason::Step,
            QueryError::Syntax(_) => Reason::Syntax,
            QueryError::Call(_) => Reason::Call,
            QueryError::ReadOnly(_) => Reason::ReadOnly,
            QueryError::Type(_) | QueryError::Arithmetic(_) => Reason::Query,
            QueryError::Failed(_) => Reason::Fail,
        };
        Self::new(ErrorKind::Invalid, error.to_string()).with_reason(reason)
    }
}
