//! What commits have left since the last load or compaction, and whether a compaction is due.
//!
//! A look-up or a hop reads every sorted run of a label or an edge type. Which runs are to be merged is for the planner of compaction to
//! say: this only adds up.

use std::io::Write;

use hoplake::{CompactionSettings, Graph, Owner, RunsOf};
use serde_json::{Value, json};

use super::facts::Facts;
use crate::output::{
    numbers::{bytes, count, counted},
    tables::table,
};

/// The sorted runs of a graph.
pub struct Upkeep(Vec<RunsOf>);

impl Upkeep {
    /// Those of the open version.
    pub async fn of(graph: &Graph) -> anyhow::Result<Self> {
        Ok(Self(graph.runs(&CompactionSettings::default()).await?))
    }

    /// Whether `hoplake compact` would merge something.
    pub fn is_due(&self) -> bool {
        self.0.iter().any(|runs| runs.due)
    }

    /// Of all labels, edge types and indexes.
    pub fn json(&self, facts: &Facts<'_>) -> Value {
        let each = self.0.iter().map(|runs| {
            let (kind, name) = owner(facts, runs.owner);
            json!({
                "kind": kind,
                "label": name,
                "runs": runs.runs,
                "bytes": runs.bytes,
                "delta_bytes": runs.delta_bytes,
                "extra_requests": extra(runs),
                "compaction_due": runs.due,
            })
        });
        each.collect()
    }

    /// Writes a line for each label and edge type with more than one run, and whether a compaction is due.
    pub fn write(&self, facts: &Facts<'_>, out: &mut impl Write) -> anyhow::Result<()> {
        let several: Vec<_> = self.0.iter().filter(|runs| runs.runs > 1).collect();
        if !several.is_empty() {
            let header =
                ["left by commits", "sorted runs", "bytes in deltas", "of bytes", "extra requests", "compaction"];
            let mut text = table(&header, &[1, 2, 3, 4]).wrapped();
            for runs in several {
                let (kind, name) = owner(facts, runs.owner);
                text.add_row([
                    format!("{} {name}", kind.replace('_', " ")),
                    count(runs.runs as u64),
                    bytes(runs.delta_bytes),
                    bytes(runs.bytes),
                    format!("≤ {:.0} %", extra(runs) * 100.0),
                    if runs.due { "due" } else { "" }.to_owned(),
                ]);
            }
            writeln!(out, "\n{text}")?;
        }
        let retained = counted(facts.versions.len() as u64, "version", "versions");
        match self.is_due() {
            true => writeln!(out, "\n{retained} retained; compaction is due: hoplake compact {}", facts.url)?,
            false => writeln!(out, "\n{retained} retained; no compaction is due")?,
        }
        Ok(())
    }
}

/// The share of a read's requests that one run would save: it reads each run at most once.
fn extra(runs: &RunsOf) -> f64 {
    match runs.runs {
        0 => 0.0,
        count => (count - 1) as f64 / count as f64,
    }
}

/// What it is, and its name.
fn owner(facts: &Facts<'_>, owner: Owner) -> (&'static str, String) {
    let schema = facts.graph.schema();
    match owner {
        Owner::Label(label) => ("label", schema.label(label).map(|label| label.name.clone()).unwrap_or_default()),
        Owner::EdgeType(id) => {
            ("edge_type", schema.edge_type(id).map(|edge_type| edge_type.label.clone()).unwrap_or_default())
        }
        Owner::Index(index) => ("index", facts.index_name(index)),
    }
}
