//! `hoplake diff`: what is different between two versions.

use std::{collections::BTreeSet, fmt::Write as _, io::Write as _, time::Instant};

use hoplake::{
    Difference, Graph, Key, Name, OpenSettings, Properties, Reader, StepCost, Value, VertexRef, changes::value_to_json,
    same_value,
};
use serde_json::{Map, Value as Json, json};

use crate::{
    opening::{ReadingArgs, VersionArg, open_store},
    output::{
        Pipe, numbers,
        profile::{Profile, ProfileArgs},
    },
};

/// Print what was added, removed and changed between two versions
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Lines begin with + for items only in the second version, - for items only in the first, and ~ for changed properties.
The versions may be in either order. After some commits only what they wrote is read; after a load, all of both versions.

Example: which people a month of changes added
  hoplake diff s3://bucket/social 41 44 --label Person --json | jq 'select(.change == \"added\").key'")]
pub struct Args {
    /// Where the graph is: a folder, or s3://bucket/prefix, gs://, az://, file://
    pub url: String,
    /// From this version
    #[arg(value_name = "A")]
    from: VersionArg,
    /// To this version; the newest by default
    #[arg(value_name = "B")]
    to: Option<VersionArg>,
    /// Only vertices and edges of this label; may be repeated
    #[arg(long, value_name = "LABEL")]
    label: Vec<String>,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    profile: ProfileArgs,
    #[command(flatten)]
    reading: ReadingArgs,
}

/// The number of differences, by kind.
#[derive(Debug, Default)]
struct DiffCounts {
    added: u64,
    removed: u64,
    changed: u64,
}

/// Runs the verb.
pub async fn run(args: &Args) -> anyhow::Result<()> {
    let begun = Instant::now();
    // One pool for both versions, which share most blocks.
    let reader = Reader::new(open_store(&args.url)?, args.reading.pool()?);
    let before = open(&reader, Some(&args.from)).await?;
    let after = open(&reader, args.to.as_ref()).await?;
    let opened = StepCost { cost: before.open_cost() + after.open_cost(), time_us: begun.elapsed().as_micros() as u64 };
    let begun = Instant::now();
    let mut diff = before.diff(&after, &args.label)?;
    let mut vertices = DiffCounts::default();
    let mut edges = DiffCounts::default();
    let mut out = std::io::BufWriter::new(Pipe::stdout());
    while let Some(page) = diff.next_page().await? {
        for difference in &page {
            match difference {
                Difference::Vertex { .. } => vertices.count(difference),
                Difference::Edge { .. } => edges.count(difference),
            }
            match args.json {
                true => writeln!(out, "{}", json_of(difference))?,
                false => writeln!(out, "{}", text_of(difference))?,
            }
        }
        out.flush()?;
        if Pipe::is_closed() {
            return Ok(());
        }
    }
    if !args.json {
        let cost = diff.cost();
        let read = numbers::bytes(cost.store_bytes);
        let requests = numbers::counted(cost.requests, "request", "requests");
        eprintln!("vertices: {}; edges: {}; {requests}, {read}", vertices.text(), edges.text());
    }
    let compared = StepCost { cost: diff.cost(), time_us: begun.elapsed().as_micros() as u64 };
    args.profile.print(Profile::default().open(opened).step("compare", compared), after.prices());
    Ok(())
}

async fn open(reader: &Reader, version: Option<&VersionArg>) -> anyhow::Result<Graph> {
    let version = match version {
        Some(version) => Some(version.find(reader.store()).await?),
        None => None,
    };
    let settings = OpenSettings { version, ..OpenSettings::default() };
    Graph::open_through(reader.clone(), &settings).await.map_err(Into::into)
}

/// Both versions of its properties.
fn sides(difference: &Difference) -> (Option<&Properties>, Option<&Properties>) {
    match difference {
        Difference::Vertex { before, after, .. } | Difference::Edge { before, after, .. } => {
            (before.as_ref(), after.as_ref())
        }
    }
}

impl DiffCounts {
    fn count(&mut self, difference: &Difference) {
        match sides(difference) {
            (None, _) => self.added += 1,
            (_, None) => self.removed += 1,
            _ => self.changed += 1,
        }
    }

    fn text(&self) -> String {
        let Self { added, removed, changed } = self;
        format!(
            "{} added, {} removed, {} changed",
            numbers::count(*added),
            numbers::count(*removed),
            numbers::count(*changed)
        )
    }
}

/// `+ Person:7 -knows-> Person:8 since=2020`, `~ Person:1 age=31 → 32`.
fn text_of(difference: &Difference) -> String {
    let item = match difference {
        Difference::Vertex { vertex, .. } => vertex.to_string(),
        Difference::Edge { label, source, target, .. } => format!("{source} -{label}-> {target}"),
    };
    let all = |sign: &str, properties: &Properties| {
        properties.iter().fold(format!("{sign} {item}"), |mut line, (name, value)| {
            let _ = write!(line, " {name}={value}");
            line
        })
    };
    match sides(difference) {
        (None, None) => item,
        (None, Some(after)) => all("+", after),
        (Some(before), None) => all("-", before),
        (Some(before), Some(after)) => {
            let names: BTreeSet<_> = before.names().chain(after.names()).collect();
            let value = |properties: &Properties, name: &Name| properties.get(name).cloned().unwrap_or(Value::Null);
            // Bit by bit, unlike in conditions: -0.0 for 0.0 is a change, and NaN for NaN is none (docs/text-forms.md).
            let changed = names.into_iter().filter(|name| !same_value(&value(before, name), &value(after, name)));
            changed.fold(format!("~ {item}"), |mut line, name| {
                let _ = write!(line, " {name}={} → {}", value(before, name), value(after, name));
                line
            })
        }
    }
}

fn json_of(difference: &Difference) -> Json {
    let mut line = Map::new();
    let change = match sides(difference) {
        (None, _) => "added",
        (_, None) => "removed",
        _ => "changed",
    };
    line.insert("change".into(), change.into());
    match difference {
        Difference::Vertex { vertex, .. } => {
            line.insert("label".into(), vertex.label.as_str().into());
            line.insert("key".into(), key_json(&vertex.key));
        }
        Difference::Edge { label, source, target, .. } => {
            let end = |end: &VertexRef| json!([end.label.as_str(), key_json(&end.key)]);
            line.insert("label".into(), label.as_str().into());
            line.insert("source".into(), end(source));
            line.insert("target".into(), end(target));
        }
    }
    let (before, after) = sides(difference);
    for (name, properties) in [("before", before), ("after", after)] {
        if let Some(properties) = properties {
            let values = properties.iter().map(|(name, value)| (name.to_string(), value_to_json(value)));
            line.insert(name.into(), Json::Object(values.collect()));
        }
    }
    line.into()
}

fn key_json(key: &Key) -> Json {
    match key {
        Key::Int64(key) => json!(key),
        Key::String(key) => json!(key),
    }
}
