//! Edges per second, peak memory and size of a load.
//!
//! The graph is written to a file once. Each load is a process of its own, whose peak resident memory the
//! system counts.

use std::{
    fs::{self, File},
    io::{BufWriter, Write},
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};
use hoplake::{LoadOptions, VertexOrder};
use hoplake_testkit::generate::{kronecker, log_normal};
use serde::{Deserialize, Serialize};

use crate::parquet_pairs;

/// What is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum GraphName {
    /// Graph500's generator, 2^scale vertices, 16 edges a vertex.
    Kronecker,
    /// Log-normal out-degrees (mu 4, sigma 1.3), uniform targets, 2^scale vertices.
    LogNormal,
}

/// The format of the input files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum InputFormat {
    /// Two columns of int64, Snappy.
    Parquet,
    /// Two columns of text, separated by a comma.
    Csv,
    /// The same with ids that are text and begin alike, and a weight: keys and rows take the most memory.
    Text,
}

/// What to load, and how.
#[derive(Debug, Clone, Args)]
pub struct Arguments {
    /// The graph.
    #[arg(long, value_enum, default_value = "log-normal")]
    graph: GraphName,
    /// The number of vertices is two to the power of this.
    #[arg(long, default_value_t = 20)]
    scale: u32,
    /// The form of the file.
    #[arg(long, value_enum, default_value = "parquet")]
    form: InputFormat,
    /// Budgets of memory in MiB, a load for each.
    #[arg(long, value_delimiter = ',', default_value = "1024")]
    memory_mib: Vec<u64>,
    /// Orders ordinals for locality.
    #[arg(long)]
    locality: bool,
    /// Loads every form in both orders: the shapes in which a load has exceeded its budget.
    #[arg(long, conflicts_with_all = ["form", "locality"])]
    every_mode: bool,
    /// Where files and graphs go.
    #[arg(long, default_value = "bench-data")]
    folder: PathBuf,
    /// Loads in this process and prints a line of JSON; what the measurement starts.
    #[arg(long, hide = true)]
    child: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct Measured {
    vertices: u64,
    edges: u64,
    seconds: f64,
    peak_bytes: u64,
    bytes_per_directed_edge: f64,
}

impl Arguments {
    fn name(&self) -> String {
        let graph = if self.graph == GraphName::Kronecker { "kronecker" } else { "log-normal" };
        format!("{graph}-{}", self.scale)
    }

    fn input(&self) -> PathBuf {
        let ending = match self.form {
            InputFormat::Parquet => "parquet",
            InputFormat::Csv => "csv",
            InputFormat::Text => "text.csv",
        };
        self.folder.join(format!("{}.{ending}", self.name()))
    }

    fn graph_folder(&self) -> PathBuf {
        self.folder.join(format!("{}{}.hoplake", self.name(), if self.locality { "-locality" } else { "" }))
    }
}

/// Prints a row for each budget, and in every mode if that is asked.
pub fn run(arguments: &Arguments) -> Result<()> {
    if arguments.child {
        return load_here(arguments);
    }
    fs::create_dir_all(&arguments.folder)?;
    println!(
        "| graph | form | memory, MiB | vertices | edges | seconds | M edges/s | peak, MiB | over, MiB | bytes per directed \
         edge |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    if !arguments.every_mode {
        return run_mode(arguments);
    }
    for form in [InputFormat::Parquet, InputFormat::Csv, InputFormat::Text] {
        for locality in [false, true] {
            run_mode(&Arguments { form, locality, every_mode: false, ..arguments.clone() })?;
        }
    }
    Ok(())
}

/// Prints a row for each budget, of one form and order.
fn run_mode(arguments: &Arguments) -> Result<()> {
    let input = arguments.input();
    if !input.exists() {
        write_input(arguments, &input)?;
    }
    for memory in &arguments.memory_mib {
        let mut child = Command::new(std::env::current_exe()?);
        child.args([
            "load",
            "--child",
            "--graph",
            value(&arguments.graph).as_str(),
            "--form",
            value(&arguments.form).as_str(),
        ]);
        child.args(["--scale", &arguments.scale.to_string(), "--memory-mib", &memory.to_string()]);
        child.arg("--folder").arg(&arguments.folder);
        if arguments.locality {
            child.arg("--locality");
        }
        let output = child.output()?;
        ensure!(output.status.success(), "the load failed: {}", String::from_utf8_lossy(&output.stderr));
        let measured: Measured = serde_json::from_slice(&output.stdout)?;
        println!(
            "| {}{} | {} | {memory} | {} | {} | {:.1} | {:.2} | {} | {} | {:.3} |",
            arguments.name(),
            if arguments.locality { ", locality" } else { "" },
            value(&arguments.form),
            measured.vertices,
            measured.edges,
            measured.seconds,
            measured.edges as f64 / measured.seconds / 1e6,
            measured.peak_bytes >> 20,
            (measured.peak_bytes >> 20) as i64 - *memory as i64,
            measured.bytes_per_directed_edge,
        );
    }
    Ok(())
}

fn value(of: &impl ValueEnum) -> String {
    of.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

fn load_here(arguments: &Arguments) -> Result<()> {
    let mut options = LoadOptions::from_paths([arguments.input()]);
    options.memory_bytes = arguments.memory_mib[0] << 20;
    options.order = if arguments.locality { VertexOrder::Locality } else { VertexOrder::Keys };
    options.temp_dir = Some(arguments.folder.clone());
    let target = arguments.graph_folder();
    if target.exists() {
        fs::remove_dir_all(&target)?;
    }
    let report = hoplake::blocking::load(target.to_str().context("the folder is not UTF-8")?, options)?;
    let measured = Measured {
        vertices: report.vertices,
        edges: report.edges,
        seconds: report.time.as_secs_f64(),
        peak_bytes: peak_resident_bytes()?,
        bytes_per_directed_edge: report.bytes_per_directed_edge,
    };
    println!("{}", serde_json::to_string(&measured)?);
    Ok(())
}

/// The most memory that was ever resident, as Linux counts it.
pub fn peak_resident_bytes() -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status").context("peak memory is read from Linux's /proc")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).context("/proc/self/status has no VmHWM")?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kib << 10)
}

fn write_input(arguments: &Arguments, path: &Path) -> Result<()> {
    let edges: Box<dyn Iterator<Item = (u64, u64)>> = match arguments.graph {
        GraphName::Kronecker => Box::new(kronecker(arguments.scale, 16, 1)),
        GraphName::LogNormal => Box::new(log_normal(1 << arguments.scale, 4.0, 1.3, 1)),
    };
    let unfinished = path.with_extension("unfinished");
    let file = File::create(&unfinished)?;
    match arguments.form {
        InputFormat::Parquet => {
            let edges = edges.map(|(source, target)| (source as i64, target as i64));
            parquet_pairs::write(file, ["source", "target"], edges)?;
        }
        InputFormat::Text => {
            let mut out = BufWriter::with_capacity(1 << 20, file);
            writeln!(out, "source,target,weight")?;
            for (source, target) in edges {
                writeln!(
                    out,
                    "https://example.org/vertex/{source},https://example.org/vertex/{target},{}",
                    target % 100
                )?;
            }
            out.flush()?;
        }
        InputFormat::Csv => {
            let mut out = BufWriter::with_capacity(1 << 20, file);
            for (source, target) in edges {
                writeln!(out, "{source},{target}")?;
            }
            out.flush()?;
        }
    }
    Ok(fs::rename(unfinished, path)?)
}
