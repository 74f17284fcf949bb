//! networkit in a process of its own.

use std::{path::Path, process::Command};

use anyhow::{Context, Result, ensure};
use hoplake_testkit::clock::median;
use serde::Deserialize;

use super::input::Input;

/// What the script prints.
#[derive(Deserialize)]
struct Answer {
    milliseconds: Vec<f64>,
    levels: Vec<(u64, u64)>,
}

/// The result of the breadth-first searches.
pub struct BfsResult {
    /// The median of the rounds, per source.
    pub milliseconds: f64,
    /// How many vertices each source reaches, and the sum of their levels.
    pub levels: Vec<(u64, u64)>,
}

/// Runs breadth-first searches from all sources.
pub fn breadth_first(python: &Path, input: &Input, rounds: usize) -> Result<BfsResult> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("edges");
    let bytes: Vec<u8> =
        input.edges.iter().flat_map(|(from, to)| [from.to_le_bytes(), to.to_le_bytes()]).flatten().collect();
    std::fs::write(&file, bytes)?;
    let mut command = Command::new(python);
    command.args(["-c", include_str!("networkit.py")]).arg(&file);
    command.args([input.topology.ids.len().to_string(), rounds.to_string()]);
    command.args(input.sources.iter().map(u32::to_string));
    let output = command.output().with_context(|| format!("could not run {}", python.display()))?;
    ensure!(output.status.success(), "networkit failed: {}", String::from_utf8_lossy(&output.stderr));
    let answer: Answer = serde_json::from_slice(&output.stdout).context("networkit printed something else")?;
    let median = median(answer.milliseconds).context("networkit ran no round")?;
    Ok(BfsResult { milliseconds: median / input.sources.len() as f64, levels: answer.levels })
}
