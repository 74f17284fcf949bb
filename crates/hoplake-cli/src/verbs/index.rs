//! `hoplake index`: property indexes of a graph that is there.

use std::time::Duration;

use bytesize::ByteSize;
use hoplake::{ErrorKind, Graph, IndexSettings};
use serde_json::json;

use crate::{
    arguments,
    failure::Failure,
    opening::{GraphArgs, open_store},
    output::{cost, numbers, print_line, tables::table},
    stopping::{in_time, interrupted, stopped, timeout_ms, within},
};

/// Create, drop or list indexes of properties, which find vertices in one round trip
#[derive(Debug, clap::Args)]
#[command(after_help = "\
An index is named by the label and the property. Scans and starts with a condition use it by themselves: comparisons, in,
between and starts with. Commits keep it; readers and writers go on while it is built.

Example:
  hoplake index create s3://bucket/air airport.code
  hoplake scan s3://bucket/air --label airport --where 'code = \"AUS\"'")]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    Create(CreateArgs),
    Drop(DropArgs),
    List(ListArgs),
}

/// Build an index of a property of the vertices of a label
#[derive(Debug, clap::Args)]
struct CreateArgs {
    /// Where the graph is: a folder, or s3://bucket/prefix, gs://, az://, file://
    url: String,
    /// The label and the property, as in airport.code; not a list
    #[arg(value_name = "LABEL.PROPERTY")]
    name: String,
    /// Memory for it, at least 64MiB; what does not fit is sorted in temporary files
    #[arg(long, value_name = "SIZE", default_value_t = ByteSize::mib(256), value_parser = arguments::size_from_1)]
    memory: ByteSize,
    /// How long it may take; then it ends, and the graph is as before
    #[arg(long, value_name = "TIME", default_value = "1day", value_parser = humantime::parse_duration)]
    timeout: Duration,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Take an index out; older versions keep it
#[derive(Debug, clap::Args)]
struct DropArgs {
    /// Where the graph is: a folder, or s3://bucket/prefix, gs://, az://, file://
    url: String,
    /// The label and the property, as in airport.code
    #[arg(value_name = "LABEL.PROPERTY")]
    name: String,
    /// How long it may take; then it ends, and reports whether the graph is known to be unchanged
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = humantime::parse_duration)]
    timeout: Duration,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Print the indexes of a graph and how large they are
#[derive(Debug, clap::Args)]
struct ListArgs {
    #[command(flatten)]
    graph: GraphArgs,
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Whether it changes the graph.
    pub fn changes(&self) -> bool {
        !matches!(self.action, Action::List(_))
    }

    /// The graph that it is about.
    pub fn url(&self) -> &str {
        match &self.action {
            Action::Create(args) => &args.url,
            Action::Drop(args) => &args.url,
            Action::List(args) => &args.graph.url,
        }
    }
}

/// Runs the verb.
pub async fn run(args: &Args) -> anyhow::Result<()> {
    match &args.action {
        Action::Create(args) => create(args).await,
        Action::Drop(args) => drop(args).await,
        Action::List(args) => list(args).await,
    }
}

async fn create(args: &CreateArgs) -> anyhow::Result<()> {
    let settings = IndexSettings {
        memory_bytes: args.memory.as_u64(),
        timeout_ms: Some(timeout_ms(args.timeout)),
        ..IndexSettings::default()
    };
    let store = open_store(&args.url)?;
    let built = Graph::create_index_until(&store, &args.name, &settings, stopped()).await;
    let built = built.map_err(|error| match error.kind() {
        ErrorKind::Limit => {
            let message = format!("the index was not built within {}", humantime::format_duration(args.timeout));
            let hint = "the graph is as before; raise --timeout";
            Failure::new(ErrorKind::Limit, message, hint).into()
        }
        ErrorKind::Conflict => {
            Failure::of(&error, format!("hoplake index list {} shows the indexes there are", args.url)).into()
        }
        ErrorKind::Invalid => {
            let hint = format!("hoplake info {} lists the labels and their properties", args.url);
            Failure::of(&error, hint).into()
        }
        _ => anyhow::Error::from(error),
    })?;
    let Some(built) = built else {
        interrupted("the graph is as before", "run it again");
    };
    if args.json {
        return print_line(json!({
            "index": args.name, "version": built.version, "entries": built.entries, "bytes_written": built.bytes,
            "cost": cost::json(&built.cost, store.prices()),
        }));
    }
    print_line(format_args!(
        "index {}: {}, {}; version {}: {}",
        args.name,
        numbers::counted(built.entries, "entry", "entries"),
        numbers::bytes(built.bytes),
        built.version,
        cost::text(&built.cost, store.prices())
    ))
}

async fn drop(args: &DropArgs) -> anyhow::Result<()> {
    let store = within(&open_store(&args.url)?, args.timeout);
    let version = Graph::drop_index(&store, &args.name).await;
    let version = version.map_err(|error| match (error.kind(), error.reason()) {
        (ErrorKind::NotFound, None) => {
            Failure::of(&error, format!("hoplake index list {} shows the indexes there are", args.url)).into()
        }
        _ => in_time(error, "the index was not dropped", args.timeout),
    })?;
    if args.json {
        return print_line(json!({"index": args.name, "version": version}));
    }
    print_line(format_args!("version {version} has no index {} any more", args.name))
}

async fn list(args: &ListArgs) -> anyhow::Result<()> {
    let opened = args.graph.open().await?;
    let schema = opened.graph.schema();
    let mut text = table(&["index", "type", "entries", "bytes", "sorted runs", "state"], &[2, 3, 4]).wrapped();
    let mut rows = Vec::new();
    for size in opened.graph.indexes().await? {
        let label = schema.label(size.index.label);
        let property = label.and_then(|label| label.properties.iter().find(|it| it.name == size.index.property));
        let kind = property.map_or_else(String::new, |property| property.kind.to_string());
        let name = format!("{}.{}", label.map_or("?", |label| &label.name), size.index.property);
        rows.push(json!({
            "index": name, "type": kind, "entries": size.entries, "bytes": size.bytes, "sorted_runs": size.runs,
            "ready": size.index.is_ready(),
        }));
        let state = if size.index.is_ready() { "ready" } else { "being built" };
        let [entries, runs] = [size.entries, size.runs].map(numbers::count);
        text.add_row([name, kind, entries, numbers::bytes(size.bytes), runs, state.to_owned()]);
    }
    match (args.json, rows.is_empty()) {
        (true, _) => print_line(json!(rows)),
        (false, true) => print_line("no indexes"),
        (false, false) => print_line(text),
    }
}
