//! Commits by the real command line: `hoplake apply`, its deadline, its output and its exit status.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
};

use anyhow::{Context, bail};
use hoplake::{Batch, Committed, Error, ErrorKind, Key, Operation, Properties, Value as Property, VertexRef};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::roles::TIMEOUT;

/// What became of a batch.
pub(super) enum Applied {
    /// This version has it.
    Version(u64),
    /// The writer got this answer.
    Failed(ErrorKind, String),
}

impl Applied {
    /// The library's answer.
    pub(super) fn of(outcome: Result<Committed, Error>) -> Self {
        match outcome {
            Ok(done) => Self::Version(done.version),
            Err(error) => Self::Failed(error.kind(), error.to_string()),
        }
    }
}

/// The command that commits to a graph.
pub(super) struct CommandLine {
    hoplake: PathBuf,
    url: String,
    /// For the files of changes.
    folder: TempDir,
}

impl CommandLine {
    pub(super) fn new(hoplake: Option<&Path>, url: &str) -> anyhow::Result<Self> {
        let hoplake = hoplake.context("an applier needs --hoplake")?.to_owned();
        Ok(Self { hoplake, url: url.to_owned(), folder: tempfile::tempdir()? })
    }

    /// Applies a batch with a process of its own, and waits for its end however long it takes.
    pub(super) async fn apply(&self, batch: &Batch) -> Applied {
        match self.run(batch).await {
            Ok(applied) => applied,
            Err(error) => Applied::Failed(ErrorKind::Internal, format!("{error:#}")),
        }
    }

    async fn run(&self, batch: &Batch) -> anyhow::Result<Applied> {
        let file = self.folder.path().join("changes.jsonl");
        let lines = batch.operations.iter().map(line).collect::<anyhow::Result<Vec<_>>>()?;
        fs::write(&file, lines.concat())?;
        let mut command = tokio::process::Command::new(&self.hoplake);
        command.arg("apply").arg(&self.url).arg(&file).args(["--json", "--message", &batch.message]);
        command.args(["--timeout", &format!("{}s", TIMEOUT.as_secs())]);
        for (source, position) in &batch.source_positions {
            command.args(["--source-position", &format!("{source}={position}")]);
        }
        if let Some(base) = batch.base {
            command.args(["--base", &base.to_string()]);
        }
        let output = command.stdin(Stdio::null()).output().await?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        // As `hoplake --help` has them.
        let kind = match output.status.code() {
            Some(0) => {
                let done: Value = serde_json::from_slice(&output.stdout)?;
                return Ok(Applied::Version(done["version"].as_u64().context("it names no version")?));
            }
            Some(2) => ErrorKind::Invalid,
            Some(3) => ErrorKind::NotFound,
            Some(4) => ErrorKind::Conflict,
            Some(5) => ErrorKind::Unavailable,
            Some(6) => ErrorKind::Limit,
            Some(7) => ErrorKind::Corrupt,
            Some(8) => ErrorKind::Unknown,
            _ => ErrorKind::Internal,
        };
        Ok(Applied::Failed(kind, format!("{}: {said}", output.status)))
    }
}

/// An operation as a line of a file.
fn line(operation: &Operation) -> anyhow::Result<String> {
    let operation = match operation {
        Operation::UpsertVertex { vertex, properties, replace } => {
            let properties = properties_json(properties)?;
            json!({"op": "upsert_vertex", "label": vertex.label.as_str(), "key": key(&vertex.key), "replace": replace,
                "properties": properties})
        }
        Operation::UpsertEdge { label, source, target, properties, .. } => {
            let properties = properties_json(properties)?;
            json!({"op": "upsert_edge", "label": label.as_str(), "source": end(source), "target": end(target),
                "properties": properties})
        }
        Operation::DeleteVertex { vertex } => {
            json!({"op": "delete_vertex", "label": vertex.label.as_str(), "key": key(&vertex.key)})
        }
        other => bail!("no batch has {other:?}"),
    };
    Ok(format!("{operation}\n"))
}

fn properties_json(properties: &Properties) -> anyhow::Result<Value> {
    let mut members = serde_json::Map::new();
    for (name, value) in properties.iter() {
        let Property::Int64(value) = value else { bail!("no batch has the property {name} as {value:?}") };
        members.insert(name.to_string(), json!(value));
    }
    Ok(Value::Object(members))
}

fn end(end: &VertexRef) -> Value {
    json!([end.label.as_str(), key(&end.key)])
}

fn key(key: &Key) -> Value {
    match key {
        Key::Int64(key) => json!(key),
        Key::String(key) => json!(key.as_str()),
    }
}
