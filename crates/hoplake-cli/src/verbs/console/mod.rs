//! `hoplake console`: a prompt for Gremlin.
//!
//! On a terminal it has history, completion and input of several lines; from a pipe it reads queries one after the other, so that it can be
//! a part of a script.

mod completion;
mod input;
mod results;

use std::{
    io::{IsTerminal, stdin},
    time::Instant,
};

use hoplake::{
    Cost,
    gremlin::{self, Names, Transaction, Wanted, script::Statement},
};

use self::{
    input::{Input, Read},
    results::Shown,
};
use super::{limits::LimitArgs, query::bindings};
use crate::{
    failure::{self, Failure},
    opening::{GraphArgs, Opened},
    output::numbers,
};

/// Results that are taken at a time.
const RESULTS: usize = 100;

/// Results that are shown, unless `:limit` says otherwise.
const SHOWN: usize = 100;

const HELP: &str = "\
A line is a query, as in g.V().has('airport', 'code', 'AUS').out('route').values('code').
While brackets are open, or behind a dot, it goes on in the next line. Tab completes. Ctrl-C ends a query, Ctrl-D the console.

:explain QUERY   how the query would run
:profile QUERY   what each step of it took
:bind NAME=JSON  gives a name in queries a value; without one, shows those there are
:limit N         shows at most so many results
:commit          makes what queries have changed a version (with --commit)
:rollback        forgets what they have changed
:refresh         goes on with the newest version
:help            this
:quit            ends the console";

/// Ask one Gremlin query after another
#[derive(Debug, clap::Args)]
#[command(after_help = "\
On a terminal it has history and completion; :help lists its commands. Otherwise it reads queries from standard input.

Example: a prompt
  hoplake console s3://bucket/routes

Example: queries of a file
  hoplake console graph < queries.txt")]
pub struct Args {
    #[command(flatten)]
    pub graph: GraphArgs,
    /// Give a name in queries a value, NAME=JSON: text in quotes, a number, a list; may be repeated
    #[arg(long = "bind", value_name = "NAME=JSON")]
    bindings: Vec<String>,
    /// Let queries change the graph: `:commit` makes all their changes one version
    #[arg(long)]
    commit: bool,
    /// Keep no history of what was typed, and use none
    #[arg(long)]
    no_history: bool,
    #[command(flatten)]
    limits: LimitArgs,
}

/// An open console.
struct Console<'a> {
    args: &'a Args,
    opened: Opened,
    transaction: Transaction,
    names: Vec<gremlin::Named>,
    shown: usize,
}

impl Args {
    /// Whether it may change the graph.
    pub fn commits(&self) -> bool {
        self.commit
    }
}

/// Runs the verb.
pub async fn run(args: &Args) -> anyhow::Result<()> {
    let names = bindings(&args.bindings)?;
    let opened = args.graph.open().await?;
    let on_terminal = stdin().is_terminal();
    let mut input = match on_terminal {
        true => Input::terminal(completion::words(&opened.graph), !args.no_history)?,
        false => Input::lines(),
    };
    let transaction = begin(args, &opened);
    let mut console = Console { args, opened, transaction, names, shown: SHOWN };
    if on_terminal {
        eprintln!("{}, version {}; :help shows the commands", args.graph.url, console.opened.graph.version());
    }
    let mut failed = 0;
    loop {
        // The thread waits for a person. Others go on.
        let text = match tokio::task::block_in_place(|| input.next())? {
            Read::Text(text) => text,
            Read::Cleared => continue,
            Read::Ended => break,
        };
        match console.answer(text.trim(), on_terminal).await {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => {
                failed += 1;
                failure::report(&error, "console", &args.graph.url);
            }
        }
    }
    let lost = console.transaction.changes();
    if lost > 0 {
        eprintln!("{} were not committed", numbers::counted(lost as u64, "change", "changes"));
    }
    if failed > 0 && !on_terminal {
        let message = format!("{} failed", numbers::counted(failed, "query", "queries"));
        return Err(Failure::usage(message, "their errors are above").into());
    }
    Ok(())
}

fn begin(args: &Args, opened: &Opened) -> Transaction {
    if args.commit { opened.graph.gremlin() } else { opened.graph.gremlin_read_only() }
}

impl Console<'_> {
    /// Runs a query or a command; `false` if it is the last.
    async fn answer(&mut self, text: &str, on_terminal: bool) -> anyhow::Result<bool> {
        let Some(command) = text.strip_prefix(':') else {
            if !text.is_empty() {
                self.query(text, on_terminal).await?;
            }
            return Ok(true);
        };
        let (name, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        match (name, rest.trim()) {
            ("explain", query) => self.query(&format!("{}.explain()", ended(query)), on_terminal).await?,
            ("profile", query) => self.query(&format!("{}.profile()", ended(query)), on_terminal).await?,
            ("bind", "") => {
                for (name, value) in &self.names {
                    println!("{name} = {}", value.to_json());
                }
            }
            ("bind", named) => {
                let new = bindings(&[named.to_owned()])?;
                self.names.retain(|(name, _)| new.iter().all(|(other, _)| other != name));
                self.names.extend(new);
            }
            ("limit", number) => {
                let wrong = || Failure::usage(format!("{number:?} is not a number of results"), "write :limit 20");
                self.shown = number.parse().map_err(|_| wrong())?;
            }
            ("commit", "") => self.commit().await?,
            ("rollback", "") => self.transaction = begin(self.args, &self.opened),
            ("refresh", "") => self.refresh().await?,
            ("help", "") => println!("{HELP}"),
            ("quit" | "exit" | "q", "") => return Ok(false),
            _ => return Err(Failure::usage(format!(":{command} is not a command"), ":help lists them").into()),
        }
        Ok(true)
    }

    async fn commit(&mut self) -> anyhow::Result<()> {
        let transaction = std::mem::replace(&mut self.transaction, begin(self.args, &self.opened));
        let Some(committed) = transaction.commit().await? else {
            eprintln!("nothing was changed");
            return Ok(());
        };
        eprintln!("version {}", committed.version);
        self.refresh().await
    }

    async fn refresh(&mut self) -> anyhow::Result<()> {
        if self.transaction.has_changes() {
            return Err(Failure::usage("there are changes that are not committed", ":commit or :rollback first").into());
        }
        self.opened.graph.refresh().await?;
        self.transaction = begin(self.args, &self.opened);
        Ok(())
    }

    async fn query(&mut self, text: &str, on_terminal: bool) -> anyhow::Result<()> {
        // A query that fails or is ended takes the transaction with it, and this one stays as it was.
        let transaction = self.transaction.clone();
        // Of a script, Ctrl-C ends the whole: without a handler it ends the process.
        let interrupted = async {
            match on_terminal {
                true => tokio::signal::ctrl_c().await,
                false => std::future::pending().await,
            }
        };
        let (transaction, shown, cost, begun) = tokio::select! {
            asked = self.ask(transaction, text) => asked?,
            Ok(()) = interrupted => {
                eprintln!("the query was ended");
                return Ok(());
            }
        };
        self.transaction = transaction;
        shown.print()?;
        if on_terminal {
            let time = numbers::time(begun.elapsed());
            let (waves, requests) = (
                numbers::counted(cost.waves, "round trip", "round trips"),
                numbers::counted(cost.requests, "request", "requests"),
            );
            eprintln!("{} in {time}: {waves}, {requests}, {}", shown.count(), numbers::bytes(cost.store_bytes));
        }
        Ok(())
    }

    async fn ask(
        &self,
        mut transaction: Transaction,
        text: &str,
    ) -> anyhow::Result<(Transaction, Shown, Cost, Instant)> {
        let begun = Instant::now();
        let mut query = self.opened.graph.query();
        query.limit(&self.args.limits.limits_with_memory());
        let script = gremlin::parse_within(text, query.context())?;
        let mut shown = Shown::new(self.shown);
        for statement in &script.statements {
            let Statement::Traversal(traversal, _) = statement else {
                let hint = "the console has :commit and :rollback";
                return Err(Failure::usage("a query of the console is a traversal", hint).into());
            };
            let plan = transaction.plan_within(traversal, Names(&self.names), query.context())?;
            if plan.writes() && !self.args.commit {
                let hint = format!("hoplake console {} --commit lets queries change it", self.args.graph.url);
                return Err(Failure::usage("the query changes the graph", hint).into());
            }
            shown = Shown::new(self.shown);
            let mut results = transaction.run(&plan, Wanted { properties: false }, query.context())?;
            loop {
                let next = results.next(RESULTS).await?;
                // What was taken is this function's to count: the values, and the table that shows them.
                let bytes = next.iter().map(|(value, bulk)| Shown::bytes(value, (*bulk).min(self.shown as u64))).sum();
                let hold = query.context().hold(bytes).map_err(hoplake::Error::from)?;
                if next.is_empty() || (!shown.add(next, hold) && !plan.writes()) {
                    break;
                }
            }
            transaction = results.into_transaction();
        }
        Ok((transaction, shown, query.context().cost(), begun))
    }
}

/// A query that a step can be added to.
fn ended(query: &str) -> &str {
    query.trim_end_matches([';', ' '])
}
