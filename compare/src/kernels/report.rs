//! The table.

use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;

use super::{Arguments, input::Input};
use hoplake_analytics::Adjacency;

/// All figures of a run.
#[derive(Debug, Serialize)]
pub struct Report {
    scale: u32,
    seed: u64,
    rounds: usize,
    threads: usize,
    vertices: usize,
    edges: u64,
    load_seconds: f64,
    topology_seconds: f64,
    pub rows: Vec<Row>,
}

/// A kernel's.
#[derive(Debug, Serialize)]
pub struct Row {
    kernel: &'static str,
    one_thread_ms: f64,
    all_threads_ms: f64,
    other: Option<&'static str>,
    other_ms: Option<f64>,
    ratio_max: Option<f64>,
}

impl Row {
    /// Milliseconds on one and on all threads, and those of the `graph` crate, if it has the kernel.
    pub fn new(kernel: &'static str, one_thread_ms: f64, all_threads_ms: f64, other_ms: Option<f64>) -> Self {
        let other = other_ms.map(|_| "graph");
        Self { kernel, one_thread_ms, all_threads_ms, other, other_ms, ratio_max: None }
    }

    pub fn against(self, other: &'static str, other_ms: f64) -> Self {
        Self { other: Some(other), other_ms: Some(other_ms), ..self }
    }

    pub fn goal(self, ratio_max: f64) -> Self {
        Self { ratio_max: Some(ratio_max), ..self }
    }
}

impl Report {
    pub fn new(arguments: &Arguments, input: &Input, threads: usize) -> Self {
        Self {
            scale: arguments.scale,
            seed: arguments.seed,
            rounds: arguments.rounds,
            threads,
            vertices: input.topology.out.len(),
            edges: input.edges.len() as u64,
            load_seconds: input.load_seconds,
            topology_seconds: input.topology_seconds,
            rows: Vec::new(),
        }
    }

    pub fn print(&self) {
        let Self { scale, vertices, edges, rounds, threads, load_seconds, topology_seconds, .. } = self;
        println!(
            "Kronecker, scale {scale}: {vertices} vertices, {edges} edges without direction. Medians of {rounds} rounds."
        );
        println!("Loaded in {load_seconds:.1} s, and into a topology in {topology_seconds:.2} s.\n");
        println!("| kernel | 1 thread, ms | {threads} threads, ms | speed-up | other, ms | ratio | goal |");
        println!("| --- | --- | --- | --- | --- | --- | --- |");
        let number = |number: Option<f64>| number.map_or(String::new(), |number| format!("{number:.3}"));
        for row in &self.rows {
            let other = row.other.zip(row.other_ms).map_or(String::new(), |(name, ms)| format!("{name}: {ms:.1}"));
            println!(
                "| {} | {:.1} | {:.1} | {:.2} | {other} | {} | {} |",
                row.kernel,
                row.one_thread_ms,
                row.all_threads_ms,
                row.one_thread_ms / row.all_threads_ms,
                number(row.other_ms.map(|other| row.all_threads_ms / other)),
                number(row.ratio_max),
            );
        }
    }

    pub fn write(&self, file: Option<&Path>) -> Result<()> {
        let Some(file) = file else { return Ok(()) };
        std::fs::write(file, serde_json::to_string_pretty(self)?)
            .with_context(|| format!("could not write {}", file.display()))
    }
}
