//! `hoplake query`: Gremlin.

use std::{
    fmt::Write as _,
    io::{BufWriter, Write},
};

use clap::ValueEnum;
use hoplake::{
    QueryContext,
    gremlin::{
        self, Names, Wanted,
        script::{Script, Statement},
        value::Value,
        value_bytes,
    },
};

use super::limits::LimitArgs;
use crate::{
    arguments,
    failure::Failure,
    opening::GraphArgs,
    output::{
        Pipe, numbers,
        profile::{Profile, ProfileArgs, Stopwatch},
        tables::Printable,
    },
};

/// Results that are taken at a time.
const RESULTS: usize = 1_000;

/// How many times what it takes a value takes as JSON, which is a tree of its own and then a text.
const JSON_COPIES: u64 = 3;

/// Results that are printed as text, without --limit.
const TEXT_RESULTS: u64 = 1_000;

/// How results are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A result a line, for people
    Text,
    /// A JSON value a line
    Json,
}

/// Run a Gremlin query
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Gremlin is the language of Apache TinkerPop; docs/gremlin.md has the steps that are supported.

Example: where one can fly to from Austin with one stop, and along how many routes
  hoplake query s3://bucket/routes \"g.V().has('airport', 'code', 'AUS').out().out().groupCount().by('code')\"

Example: add a vertex and an edge, as one version
  hoplake query graph --commit \"g.addV('person').property('name', 'Ann').addE('knows').to(__.V('person:2'))\"")]
pub struct Args {
    #[command(flatten)]
    pub graph: GraphArgs,
    /// The query; of several statements the results of the last
    query: String,
    /// Give a name in the query a value, NAME=JSON: text in quotes, a number, a list; may be repeated
    #[arg(long = "bind", value_name = "NAME=JSON")]
    bindings: Vec<String>,
    /// Let the query change the graph: all of its changes are one version
    #[arg(long)]
    commit: bool,
    #[command(flatten)]
    results: ResultArgs,
}

/// How results are printed, and what they may cost.
#[derive(Debug, clap::Args)]
pub(super) struct ResultArgs {
    /// How to write the results
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Print at most this many results; as text 1000 by default, as JSON all
    #[arg(long, value_name = "N", value_parser = arguments::count::<u64>, allow_negative_numbers = true)]
    limit: Option<u64>,
    #[command(flatten)]
    profile: ProfileArgs,
    #[command(flatten)]
    limits: LimitArgs,
}

impl Args {
    /// Whether it may change the graph.
    pub fn commits(&self) -> bool {
        self.commit
    }
}

impl ResultArgs {
    /// Reading and planning may take as much as the query that follows.
    fn planning_context(&self) -> QueryContext {
        let context = QueryContext::new();
        self.limits.limits_with_memory().apply(&context);
        context
    }
}

/// Runs the verb.
pub async fn run(args: &Args) -> anyhow::Result<()> {
    let script = gremlin::parse_within(&args.query, &args.results.planning_context())?;
    answer(&args.graph, &args.results, &script, &bindings(&args.bindings)?, args.commit).await
}

/// Runs a script and prints the results of its last statement.
pub(super) async fn answer(
    graph: &GraphArgs,
    args: &ResultArgs,
    script: &Script,
    names: &[gremlin::Named],
    commit: bool,
) -> anyhow::Result<()> {
    let traversals = || {
        script.statements.iter().filter_map(|statement| match statement {
            Statement::Traversal(traversal, _) => Some(traversal),
            _ => None,
        })
    };
    let check_writes = |plans: &[gremlin::Plan]| match !commit && plans.iter().any(gremlin::Plan::writes) {
        true => Err(Failure::usage("the query changes the graph", "add --commit to let it")),
        false => Ok(()),
    };
    // A mistake in any of them is one before anything is read; but the steps of a call are in the graph.
    let before = match script.calls() {
        true => None,
        false => {
            let context = args.planning_context();
            let plan = |traversal| gremlin::plan_within(traversal, Names(names), &context);
            Some(traversals().map(plan).collect::<Result<Vec<_>, _>>()?)
        }
    };
    before.as_deref().map_or(Ok(()), check_writes)?;
    let opened = graph.open().await?;
    let mut query = opened.graph.query();
    query.limit(&args.limits.limits_with_memory());
    let stopwatch = Stopwatch::start(&query);
    let graph = &opened.graph;
    let mut transaction = if commit { graph.gremlin() } else { graph.gremlin_read_only() };
    let plans = match before {
        Some(plans) => plans,
        None => {
            let plan = |traversal| transaction.plan_within(traversal, Names(names), query.context());
            traversals().map(plan).collect::<Result<_, _>>()?
        }
    };
    check_writes(&plans)?;
    let last = plans.len().saturating_sub(1);
    for (number, plan) in plans.iter().enumerate() {
        let mut results = transaction.run(plan, Wanted { properties: args.format == Format::Json }, query.context())?;
        let mut printed = Printed::new(args);
        loop {
            let next = results.next(RESULTS).await?;
            if next.is_empty() {
                break;
            }
            // What was taken is this function's to count: the values, and the largest as JSON.
            let json = if args.format == Format::Json { JSON_COPIES } else { 0 };
            let bytes = || next.iter().map(|(value, _)| value_bytes(value) as u64);
            let bytes = bytes().sum::<u64>() + json * bytes().max().unwrap_or(0);
            let _hold = query.context().hold(bytes).map_err(hoplake::Error::from)?;
            if number == last && !printed.print(&next)? && !plan.writes() {
                break;
            }
        }
        printed.finish()?;
        transaction = results.into_transaction();
    }
    if transaction.has_changes() {
        transaction.commit().await?;
    }
    let profile = Profile::default().step("query", stopwatch.stop(&query));
    args.profile.end(&opened, &query, profile).await;
    Ok(())
}

/// Results on standard output.
struct Printed<'a> {
    args: &'a ResultArgs,
    sink: BufWriter<Pipe>,
    count: u64,
    /// How many are printed, at most.
    most: u64,
}

impl<'a> Printed<'a> {
    fn new(args: &'a ResultArgs) -> Self {
        let most = args.limit.unwrap_or(if args.format == Format::Text { TEXT_RESULTS } else { u64::MAX });
        Self { args, sink: BufWriter::new(Pipe::stdout()), count: 0, most }
    }

    /// Prints results, and returns whether more are wanted.
    fn print(&mut self, results: &[(Value, u64)]) -> anyhow::Result<bool> {
        for (value, bulk) in results {
            for _ in 0..*bulk {
                if self.count == self.most {
                    if self.args.limit.is_none() {
                        let shown = numbers::counted(self.most, "result", "results");
                        eprintln!("the first {shown}; --limit shows more");
                    }
                    return Ok(false);
                }
                match self.args.format {
                    // Written as it is read: its error is that of the sink, which the next write has again.
                    Format::Text => drop(write!(Printable(&mut self.sink), "{value}")),
                    Format::Json => write!(self.sink, "{}", value.to_json())?,
                }
                writeln!(self.sink)?;
                self.count += 1;
            }
            if Pipe::is_closed() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn finish(mut self) -> anyhow::Result<()> {
        Ok(self.sink.flush()?)
    }
}

/// Reads names and values.
pub(super) fn bindings(texts: &[String]) -> Result<Vec<gremlin::Named>, Failure> {
    texts.iter().map(|text| binding_of(text)).collect()
}

/// Reads `NAME=JSON`.
fn binding_of(text: &str) -> Result<gremlin::Named, Failure> {
    let wrong =
        |why: &str| Failure::usage(format!("{text:?} {why}"), "write --bind name='\"Ann\"' or --bind ages='[30, 40]'");
    let (name, json) = text.split_once('=').ok_or_else(|| wrong("has no \"=\""))?;
    let value =
        gremlin::graphson::read_value(json.as_bytes()).map_err(|error| wrong(&format!("is not JSON: {error}")))?;
    Ok((name.into(), value))
}
