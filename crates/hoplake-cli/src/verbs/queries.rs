//! `hoplake queries`: prepared queries of a graph.
//!
//! A verb of its own and not verbs below `query`: there the URL comes first, and a folder may be called `save`.

use std::{io::Read, time::Duration};

use hoplake::{ErrorKind, Graph, QueryEdition, QueryParameter, gremlin};
use serde_json::{Value, json};

use super::query::{self, ResultArgs};
use crate::{
    failure::Failure,
    opening::{GraphArgs, open_store},
    output::{print_line, tables::table},
    stopping::{in_time, within},
};

/// Save, list, show, delete or call prepared queries: Gremlin that a graph keeps under names
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A query has parameters with types, and its name is called with values for them: here, over HTTP and gRPC, and by drivers of
Gremlin as g.call('NAME', [PARAMETER: VALUE]). A name that is saved again gets another number; NAME@NUMBER calls an older one.

Example:
  hoplake queries save graph routes --param code:string --param most:int64=10 \\
    \"g.V().has('airport', 'code', code).out('route').limit(most).values('code')\"
  hoplake queries call graph routes --bind code='\"AUS\"'")]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    Save(SaveArgs),
    List(ListArgs),
    Show(ShowArgs),
    Delete(DeleteArgs),
    Call(CallArgs),
}

/// Save a query under a name, as a version of its own
#[derive(Debug, clap::Args)]
struct SaveArgs {
    /// Where the graph is: a folder, or s3://bucket/prefix, gs://, az://, file://
    url: String,
    /// The name; one that exists gets another number
    name: String,
    /// The query: one traversal, or - for standard input
    text: String,
    /// A name in the text that a call gives a value, and its type: string, int64, float64, bool, date, timestamp, list<string> or
    /// list<int64>; may be repeated
    #[arg(long = "param", value_name = "NAME:TYPE[=DEFAULT]")]
    parameters: Vec<String>,
    /// What it is for, in one line
    #[arg(long, value_name = "TEXT", default_value = "")]
    description: String,
    /// How long it may take; then it ends, and reports whether the graph is known to be unchanged
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = humantime::parse_duration)]
    timeout: Duration,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Print the prepared queries of a graph
#[derive(Debug, clap::Args)]
struct ListArgs {
    #[command(flatten)]
    graph: GraphArgs,
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

/// Print all editions of a prepared query
#[derive(Debug, clap::Args)]
struct ShowArgs {
    #[command(flatten)]
    graph: GraphArgs,
    /// The name, or NAME@NUMBER
    name: String,
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

/// Delete a prepared query; older versions of the graph keep it
#[derive(Debug, clap::Args)]
struct DeleteArgs {
    /// Where the graph is: a folder, or s3://bucket/prefix, gs://, az://, file://
    url: String,
    /// The name, or NAME@NUMBER for one edition
    name: String,
    /// How long it may take; then it ends, and reports whether the graph is known to be unchanged
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = humantime::parse_duration)]
    timeout: Duration,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Call a prepared query
#[derive(Debug, clap::Args)]
struct CallArgs {
    #[command(flatten)]
    graph: GraphArgs,
    /// The name, or NAME@NUMBER for an older edition
    name: String,
    /// Give a parameter a value, NAME=JSON: text in quotes, a number, a list; may be repeated
    #[arg(long = "bind", value_name = "NAME=JSON")]
    bindings: Vec<String>,
    /// Let the query change the graph: all of its changes are one version
    #[arg(long)]
    commit: bool,
    #[command(flatten)]
    results: ResultArgs,
}

impl Args {
    /// Whether it changes the graph.
    pub fn changes(&self) -> bool {
        match &self.action {
            Action::Save(_) | Action::Delete(_) => true,
            Action::Call(args) => args.commit,
            Action::List(_) | Action::Show(_) => false,
        }
    }

    /// The graph that it is about.
    pub fn url(&self) -> &str {
        match &self.action {
            Action::Save(args) => &args.url,
            Action::List(args) => &args.graph.url,
            Action::Show(args) => &args.graph.url,
            Action::Delete(args) => &args.url,
            Action::Call(args) => &args.graph.url,
        }
    }
}

/// Runs the verb.
pub async fn run(args: &Args) -> anyhow::Result<()> {
    match &args.action {
        Action::Save(args) => save(args).await,
        Action::List(args) => list(args).await,
        Action::Show(args) => show(args).await,
        Action::Delete(args) => delete(args).await,
        Action::Call(args) => {
            let script = gremlin::call(&args.name, query::bindings(&args.bindings)?);
            query::answer(&args.graph, &args.results, &script, &[], args.commit).await
        }
    }
}

async fn save(args: &SaveArgs) -> anyhow::Result<()> {
    let mut text = args.text.clone();
    if text == "-" {
        text.clear();
        // More than a query may have, so that a long one is rejected by its size.
        std::io::stdin().take(1 << 20).read_to_string(&mut text)?;
    }
    let parameters = args.parameters.iter().map(|text| gremlin::parameter(text)).collect::<Result<_, _>>()?;
    let description = args.description.clone();
    let edition = QueryEdition { text: text.trim().to_owned(), parameters, description, ..QueryEdition::default() };
    let store = within(&open_store(&args.url)?, args.timeout);
    let saved = Graph::save_query(&store, &args.name, &edition).await;
    let saved = saved.map_err(|error| in_time(error, "the query was not saved", args.timeout))?;
    let call = format!("{}@{}", args.name, saved.number);
    if args.json {
        return print_line(json!({"name": args.name, "number": saved.number, "version": saved.version}));
    }
    match saved.version {
        Some(version) => print_line(format_args!("version {version} has {call}")),
        None => print_line(format_args!("{call} is the same already")),
    }
}

async fn list(args: &ListArgs) -> anyhow::Result<()> {
    let opened = args.graph.open().await?;
    let queries = &opened.graph.queries().0;
    let newest = queries.iter().filter_map(|(name, query)| Some((name.as_str(), query.editions.last()?)));
    if args.json {
        return print_line(newest.map(|(name, edition)| edition_json(name, edition)).collect::<Value>());
    }
    if queries.is_empty() {
        return print_line("no prepared queries");
    }
    let mut text = table(&["query", "parameters", "description"], &[]).wrapped();
    for (name, edition) in newest {
        let parameters = edition.parameters.iter().map(parameter_text).collect::<Vec<_>>().join(", ");
        text.add_row([format!("{name}@{}", edition.number), parameters, edition.description.clone()]);
    }
    print_line(text)
}

async fn show(args: &ShowArgs) -> anyhow::Result<()> {
    let opened = args.graph.open().await?;
    let queries = opened.graph.queries();
    let missing = || {
        let message = format!("{} has no prepared query {:?}", args.graph.url, args.name);
        let hint = format!("hoplake queries list {} shows those there are", args.graph.url);
        Failure::new(ErrorKind::NotFound, message, hint)
    };
    let (name, newest) = queries.find(&args.name).ok_or_else(missing)?;
    let editions = match args.name == name {
        true => queries.0[name].editions.iter().collect(),
        false => vec![newest],
    };
    if args.json {
        return print_line(editions.into_iter().map(|edition| edition_json(name, edition)).collect::<Value>());
    }
    for edition in editions {
        let parameters = edition.parameters.iter().map(parameter_text).collect::<Vec<_>>().join(", ");
        let description = match edition.description.is_empty() {
            true => String::new(),
            false => format!(": {}", edition.description),
        };
        print_line(format_args!("{name}@{}({parameters}){description}", edition.number))?;
        print_line(&edition.text)?;
    }
    Ok(())
}

async fn delete(args: &DeleteArgs) -> anyhow::Result<()> {
    let store = within(&open_store(&args.url)?, args.timeout);
    let version = match Graph::delete_query(&store, &args.name).await {
        Ok(version) => version,
        Err(error) if error.kind() == ErrorKind::NotFound && error.reason().is_none() => {
            let hint = format!("hoplake queries list {} shows those there are", args.url);
            return Err(Failure::of(&error, hint).into());
        }
        Err(error) => return Err(in_time(error, "the query was not deleted", args.timeout)),
    };
    if args.json {
        return print_line(json!({"query": args.name, "version": version}));
    }
    print_line(format_args!("version {version} has no {} any more", args.name))
}

/// `most: int64 = 10`
fn parameter_text(QueryParameter { name, kind, default }: &QueryParameter) -> String {
    let default = default.as_ref().map_or_else(String::new, |default| format!(" = {default}"));
    format!("{name}: {kind}{default}")
}

fn edition_json(name: &str, edition: &QueryEdition) -> Value {
    let parameter = |QueryParameter { name, kind, default }: &QueryParameter| {
        let default: Option<Value> = default.as_ref().and_then(|json| serde_json::from_str(json).ok());
        json!({"name": name, "type": kind.to_string(), "default": default})
    };
    json!({
        "name": name,
        "number": edition.number,
        "text": edition.text,
        "parameters": edition.parameters.iter().map(parameter).collect::<Value>(),
        "description": edition.description,
        "saved_unix_ms": edition.saved_unix_ms,
    })
}
