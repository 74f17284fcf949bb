//! `hoplake apply`: changes from files, as one version or several.

use std::{
    io::{BufReader, stdin},
    mem::take,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use bytesize::ByteSize;
use hoplake::{
    Batch, ChangeCounts, Cost, Error, ErrorKind, Graph, Operation, PriceList,
    changes::{ChangeReader, ChangeSettings, Changes, ReadChange, SourceLocation},
};
use serde_json::{Value, json};

use crate::{
    arguments,
    failure::Failure,
    opening::GraphArgs,
    output::{cost, numbers, print_line},
};

/// Operations of one commit, at most: it is put together in memory.
const COMMIT_OPERATIONS_MAX: usize = 1 << 20;

/// Change a graph: apply upserts and deletions from files
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A file is JSON Lines (.jsonl), CSV (.csv), each also as .gz or .zst, or Parquet (.parquet); - is JSON Lines on standard
input. All files together become one version of the graph, or nothing happens. docs/changes.md has the layouts:

  {\"op\": \"upsert_vertex\", \"label\": \"Person\", \"key\": 7, \"properties\": {\"name\": \"Ann\"}}
  {\"op\": \"upsert_edge\", \"label\": \"knows\", \"source\": [\"Person\", 7], \"target\": [\"Person\", 8]}
  {\"op\": \"delete_edge\", \"label\": \"knows\", \"source\": [\"Person\", 7], \"target\": [\"Person\", 9]}
  {\"op\": \"delete_vertex\", \"label\": \"Person\", \"key\": 9}

Example:
  hoplake apply s3://bucket/social changes.jsonl --message 'people of March' --source-position crm=2026-04-01")]
pub struct Args {
    /// Where the graph is: a folder, or s3://bucket/prefix, gs://, az://, file://
    pub url: String,
    /// Files of changes, or - for JSON Lines on standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Make vertices that edges name and that are not there; otherwise they are an error
    #[arg(long)]
    create_missing: bool,
    /// Reject labels, edge types and properties that the graph does not have yet; otherwise an upsert adds them
    #[arg(long)]
    strict: bool,
    /// The longest line of JSON that is read
    #[arg(long, value_name = "SIZE", default_value_t = ByteSize::mib(16), value_parser = arguments::size_from_1)]
    line_bytes_max: ByteSize,
    /// The most memory that the changes of one version may take as they are read. Putting them together takes two to three
    /// times as much
    #[arg(long, value_name = "SIZE", default_value_t = ByteSize::gib(1), value_parser = arguments::size_from_1)]
    memory: ByteSize,
    /// A message to keep with the version
    #[arg(long, value_name = "TEXT", default_value = "")]
    message: String,
    /// Up to where a source was read, to keep with the version; with --batch, with the last. May be repeated
    #[arg(long, value_name = "NAME=POSITION", value_parser = position)]
    source_position: Vec<(String, String)>,
    /// Apply only if the source was read up to this position so far, or not at all if it is empty (NAME=); otherwise it
    /// is a conflict, since another feed has read on. May be repeated
    #[arg(long, value_name = "NAME=POSITION", value_parser = position, conflicts_with = "batch")]
    if_position: Vec<(String, String)>,
    /// Commit a version for every N operations, instead of one for all: an error leaves those before it applied
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=COMMIT_OPERATIONS_MAX as u64))]
    batch: Option<u64>,
    /// The version that the changes were decided on: if what they change was changed since, it is a conflict
    #[arg(long, value_name = "VERSION", conflicts_with = "batch", value_parser = arguments::count::<u64>, allow_negative_numbers = true)]
    base: Option<u64>,
    /// How long opening the graph and each commit may take; then it ends, and reports whether it is known that nothing
    /// was applied
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = humantime::parse_duration)]
    timeout: Duration,
    /// Check everything and write nothing
    #[arg(long, conflicts_with = "batch")]
    dry_run: bool,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
}

fn position(text: &str) -> Result<(String, String), String> {
    let (name, position) = text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or("write NAME=POSITION")?;
    Ok((name.to_owned(), position.to_owned()))
}

/// The position that a source has to have, written: nothing stands for none.
fn expected(position: &str) -> Option<String> {
    (!position.is_empty()).then(|| position.to_owned())
}

/// The applied changes.
#[derive(Debug, Default)]
struct Applied {
    version: u64,
    commits: u64,
    operations: u64,
    counts: ChangeCounts,
    cost: Cost,
}

impl Args {
    /// Whether it changes the graph.
    pub fn commits(&self) -> bool {
        !self.dry_run
    }
}

/// Runs the verb.
pub async fn run(args: &Args) -> anyhow::Result<()> {
    let opened = GraphArgs::at(args.url.clone()).open_within(args.timeout).await?;
    // Each commit has the whole time again: with --batch there may be thousands.
    opened.graph.set_commit_timeout(args.timeout);
    let graph = opened.graph.clone();
    let mut run = Run {
        args,
        graph,
        batch: Batch::default(),
        locations: Vec::new(),
        changes: 0,
        bytes: 0,
        applied: Applied::default(),
    };
    run.applied.version = run.graph.version();
    // To open the graph is a part of it.
    run.applied.cost = opened.cost.cost;
    // Kept, so that an error of the middle can still say how far the commits before it came.
    let outcome = run.files().await;
    if outcome.is_err() {
        // Of commits before the one that failed.
        opened.settle().await;
    }
    outcome.map_err(|error| match error.downcast::<Error>() {
        Ok(error) => run.explain(&error),
        Err(other) => other,
    })?;
    let prices = run.graph.prices();
    print_line(if args.json {
        json_of(args, &run.applied, prices).to_string()
    } else {
        text_of(args, &run.applied, prices)
    })?;
    // The hint, for which no commit waits, would end with the process.
    opened.settle().await;
    Ok(())
}

struct Run<'a> {
    args: &'a Args,
    graph: Graph,
    batch: Batch,
    /// Where its operations are written.
    locations: Vec<SourceLocation>,
    /// How many changes they are.
    changes: usize,
    /// The memory that they take.
    bytes: u64,
    applied: Applied,
}

impl Run<'_> {
    async fn files(&mut self) -> anyhow::Result<()> {
        let settings = ChangeSettings { line_bytes_max: self.args.line_bytes_max.as_u64() as usize };
        let mut reader = ChangeReader::new(self.graph.schema()).with_settings(settings);
        for file in &self.args.files {
            // One reader for all files: a property that the first one adds has its type for the next.
            let changes = if file.as_os_str() == "-" {
                reader.lines("standard input", BufReader::new(stdin()))
            } else {
                reader.read(file)?
            };
            self.read(changes).await?;
        }
        self.commit(true).await
    }

    async fn read(&mut self, changes: Changes<'_>) -> anyhow::Result<()> {
        for change in changes {
            let ReadChange { operation, location } = change?;
            let full = self.args.batch.map_or(COMMIT_OPERATIONS_MAX, |batch| batch as usize);
            let mut taken = 0;
            // A row group of Parquet is one operation of many changes, and may have to be divided among commits.
            while taken < operation.changes() {
                if self.changes == full {
                    // Not committed early: without --batch all files are one version, or none.
                    if self.args.batch.is_none() {
                        return Err(too_many(&location.further(taken)).into());
                    }
                    self.commit(false).await?;
                }
                let some = (operation.changes() - taken).min(full - self.changes);
                let part = match &operation {
                    Operation::UpsertColumns(columns) if some < columns.len() => {
                        Operation::UpsertColumns(Arc::new(columns.slice(taken, some)))
                    }
                    entire => entire.clone(),
                };
                // Counted before it is kept, so that a file of any size ends here and not where memory does.
                self.bytes += part.memory_bytes() as u64;
                if self.bytes > self.args.memory.as_u64() {
                    return Err(self.too_large(&location.further(taken)).into());
                }
                self.batch.operations.push(part);
                self.locations.push(location.further(taken));
                self.changes += some;
                taken += some;
            }
        }
        Ok(())
    }

    fn too_large(&self, location: &SourceLocation) -> Failure {
        let memory = self.args.memory.display().iec();
        let message = format!("{location}: with it the changes of one version take more than {memory} of memory");
        let hint = match self.args.batch {
            None => "give --batch 10000 to apply them as several versions, or more --memory",
            Some(_) => "give a smaller --batch, or more --memory",
        };
        Failure::new(ErrorKind::Limit, format!("{message}{}", self.done()), hint)
    }

    /// What was applied before an error.
    fn done(&self) -> String {
        match self.applied.commits {
            0 => "; nothing is applied".into(),
            _ => format!("; {}", self.commits()),
        }
    }

    /// What the commits before an error have applied: not all that was read before it, since a batch may have been begun.
    fn commits(&self) -> String {
        let Applied { operations, version, .. } = self.applied;
        let first = if operations == 1 { "the first change is" } else { "the first {} changes are" };
        format!("{} applied, up to version {version}", first.replace("{}", &numbers::count(operations)))
    }

    /// Applies what was read; positions become visible with the last of it.
    async fn commit(&mut self, last: bool) -> anyhow::Result<()> {
        let args = self.args;
        let positions = if last { args.source_position.iter().cloned().collect() } else { Default::default() };
        let operations = take(&mut self.batch.operations);
        let changes = take(&mut self.changes) as u64;
        self.bytes = 0;
        // Without changes there is still a position to move on, or one to check.
        if operations.is_empty() && args.source_position.is_empty() && args.if_position.is_empty() {
            return Ok(());
        }
        let batch = Batch {
            operations,
            message: args.message.clone(),
            source_positions: positions,
            if_positions: args.if_position.iter().map(|(name, at)| (name.clone(), expected(at))).collect(),
            base: args.base,
            create_missing: args.create_missing,
            strict: args.strict,
            ..Batch::default()
        };
        if args.dry_run {
            self.applied.counts = self.graph.check(batch).await?;
            self.applied.operations += changes;
            return Ok(());
        }
        let committed = self.graph.apply(batch).await?;
        // An error of the next commit must not be explained with a line of this one.
        self.locations.clear();
        self.applied.version = committed.version;
        self.applied.commits += 1;
        self.applied.operations += changes;
        add(&mut self.applied.counts, committed.counts);
        self.applied.cost = self.applied.cost + committed.cost;
        Ok(())
    }

    /// The error with the source location of its change.
    fn explain(&self, error: &Error) -> anyhow::Error {
        let location = error.operation().and_then(|number| self.locations.get(number));
        // The error has the row within the columns; add it to the row of the file.
        let said = error.to_string();
        let said = error.row().and_then(|row| said.strip_prefix(&format!("row {row}, "))).unwrap_or(&said);
        let location = location.map(|location| location.further(error.row().unwrap_or(0)));
        let location = location.map(|location| format!("{location}: ")).unwrap_or_default();
        let done = match self.applied.commits {
            0 => String::new(),
            _ => format!(" ({})", self.commits()),
        };
        Failure::said(error, format!("{location}{said}{done}")).into()
    }
}

fn too_many(location: &SourceLocation) -> Failure {
    let most = numbers::count(COMMIT_OPERATIONS_MAX as u64);
    let message =
        format!("{location}: there are more than {most} changes, too many for one version; nothing is applied");
    Failure::new(ErrorKind::Limit, message, "give --batch 100000 to apply them as several versions")
}

fn add(sum: &mut ChangeCounts, more: ChangeCounts) {
    let ChangeCounts { vertices_added, vertices_changed, vertices_removed, edges_written, pairs_removed } = more;
    sum.vertices_added += vertices_added;
    sum.vertices_changed += vertices_changed;
    sum.vertices_removed += vertices_removed;
    sum.edges_written += edges_written;
    sum.pairs_removed += pairs_removed;
}

/// `2 vertices added, 1 vertex changed`, without what is none.
pub fn counts_text(counts: &ChangeCounts) -> String {
    let parts = [
        (counts.vertices_added, "vertex added", "vertices added"),
        (counts.vertices_changed, "vertex changed", "vertices changed"),
        (counts.vertices_removed, "vertex removed", "vertices removed"),
        (counts.edges_written, "edge written", "edges written"),
        (counts.pairs_removed, "pair without edges", "pairs without edges"),
    ];
    let parts: Vec<_> = parts.iter().filter(|it| it.0 > 0).map(|it| numbers::counted(it.0, it.1, it.2)).collect();
    if parts.is_empty() { "nothing changed".into() } else { parts.join(", ") }
}

/// The counts as members of a JSON object.
pub fn counts_json(counts: &ChangeCounts) -> Value {
    json!({
        "vertices_added": counts.vertices_added,
        "vertices_changed": counts.vertices_changed,
        "vertices_removed": counts.vertices_removed,
        "edges_written": counts.edges_written,
        "pairs_removed": counts.pairs_removed,
    })
}

fn text_of(args: &Args, applied: &Applied, prices: &PriceList) -> String {
    let what = counts_text(&applied.counts);
    let operations = numbers::counted(applied.operations, "operation", "operations");
    if args.dry_run {
        return format!("nothing is written; {operations} on version {} would be: {what}", applied.version);
    }
    if applied.commits == 0 {
        return format!("no changes; {} stays at version {}", args.url, applied.version);
    }
    format!(
        "version {}: {what}; {operations} in {}: {}",
        applied.version,
        numbers::counted(applied.commits, "commit", "commits"),
        cost::text(&applied.cost, prices)
    )
}

fn json_of(args: &Args, applied: &Applied, prices: &PriceList) -> Value {
    json!({
        "version": applied.version,
        "commits": applied.commits,
        "operations": applied.operations,
        "counts": counts_json(&applied.counts),
        "dry_run": args.dry_run,
        "cost": cost::json(&applied.cost, prices),
    })
}
