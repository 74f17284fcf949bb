//! `hoplake load`: files into a graph.

use std::{path::PathBuf, sync::Arc, time::Duration};

use bytesize::ByteSize;
use clap::ValueEnum;
use hoplake::{
    BadRowPolicy, Error, LoadOptions, LoadReport, PriceList, ReadLimits, SegmentSettings, VertexOrder, load_until,
};
use serde_json::json;
use tempfile::TempDir;

use crate::{
    arguments,
    failure::Failure,
    opening::open_store,
    output::{cost, numbers, print_line, progress::LoadBars},
    stopping::{interrupted, stopped, timeout_ms},
};

/// Load files into a graph
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The layout of the files is recognised: LDBC SNB, Gremlin CSV (~id, ~label, ~from, ~to), neo4j-admin CSV
(:ID, :LABEL, :START_ID, :END_ID, :TYPE), edge lists, CSV or Parquet, also as .gz or .zst. Anything else
is loaded with a mapping. Nothing of the graph is visible until all of it is.

Example:
  hoplake load s3://bucket/social --from ./social-network --memory 4GiB")]
pub struct Args {
    /// Where the graph is to be: a folder, or s3://bucket/prefix, gs://, az://, file://
    pub url: String,
    /// Files and folders to load, or s3://, gs://, az://, https://, 'names/*.csv', or - for CSV on standard input; may be repeated
    #[arg(long, value_name = "PATH|URL", num_args = 1.., required_unless_present = "mapping")]
    from: Vec<PathBuf>,
    /// A TOML file that assigns columns of files to the graph, here or at a URL; it may name the files by itself
    #[arg(long, value_name = "FILE.toml")]
    mapping: Option<PathBuf>,
    /// Budget of memory; what does not fit is sorted in temporary files
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = arguments::size_from_1)]
    memory: ByteSize,
    /// The longest field of a text file
    #[arg(long, value_name = "SIZE", default_value = "16MiB", value_parser = arguments::size_from_1)]
    field_bytes_max: ByteSize,
    /// The longest row of a text file, with all its lines
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = arguments::size_from_1)]
    row_bytes_max: ByteSize,
    /// The largest page of a Parquet file, decompressed
    #[arg(long, value_name = "SIZE", default_value = "128MiB", value_parser = arguments::size_from_1)]
    page_bytes_max: ByteSize,
    /// How many times as large .gz and .zst files may become when they are decompressed
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = arguments::count::<u64>, allow_negative_numbers = true)]
    decompression_ratio_max: u64,
    /// Threads; all processors by default
    #[arg(long, value_name = "N", value_parser = arguments::count::<usize>, allow_negative_numbers = true)]
    threads: Option<usize>,
    /// Where temporary files go; the system's folder by default
    #[arg(long, value_name = "FOLDER")]
    temp_dir: Option<PathBuf>,
    /// The order of vertices: by key, or neighbours close to each other
    #[arg(long, value_enum, default_value = "keys")]
    order: OrderName,
    /// Size of a block of adjacency, from 64 to 65536 bytes; 16 KiB without it
    #[arg(long, value_name = "SIZE", value_parser = arguments::size_from_1)]
    block_size: Option<ByteSize>,
    /// Make an index of a property of vertices, as in airport.code; may be repeated
    #[arg(long = "index", value_name = "LABEL.PROPERTY")]
    indexes: Vec<String>,
    /// What to do with rows that cannot be loaded
    #[arg(long, value_enum, default_value = "stop")]
    bad_rows: BadRowsName,
    /// Where rows go that are skipped, as CSV
    #[arg(long, value_name = "FILE", default_value = "rejects.csv")]
    rejects: PathBuf,
    /// Replace an existing graph; its versions stay readable
    #[arg(long)]
    replace: bool,
    /// A message to keep with the version
    #[arg(long, value_name = "TEXT", default_value = "")]
    message: String,
    /// How long publication may take once everything is written
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = humantime::parse_duration)]
    timeout: Duration,
    /// How long a web server may say nothing
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = humantime::parse_duration)]
    web_timeout: Duration,
    /// The most bytes of inputs elsewhere, which are copied to the temporary folder; no bound without it
    #[arg(long, value_name = "SIZE", value_parser = arguments::size_from_1)]
    copied_bytes_max: Option<ByteSize>,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
}

/// The order of vertices.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum OrderName {
    /// By key
    Keys,
    /// Neighbours close to each other
    Locality,
}

/// What to do with rows that cannot be loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum BadRowsName {
    /// The first ends the load
    Stop,
    /// They are left out, and written to --rejects
    Skip,
}

impl Args {
    fn options(&self) -> LoadOptions {
        let defaults = LoadOptions::from_paths(&self.from);
        LoadOptions {
            mapping: self.mapping.clone(),
            memory_bytes: self.memory.as_u64(),
            limits: ReadLimits {
                field_bytes_max: self.field_bytes_max.as_u64(),
                row_bytes_max: self.row_bytes_max.as_u64(),
                page_bytes_max: self.page_bytes_max.as_u64(),
                decompression_ratio_max: self.decompression_ratio_max,
                ..defaults.limits
            },
            threads: self.threads.unwrap_or(defaults.threads).max(1),
            temp_dir: self.temp_dir.clone(),
            order: match self.order {
                OrderName::Keys => VertexOrder::Keys,
                OrderName::Locality => VertexOrder::Locality,
            },
            segments: self
                .block_size
                .map_or(defaults.segments, |size| SegmentSettings::with_list_blocks(size.as_u64() as usize)),
            indexes: self.indexes.clone(),
            bad_rows: match self.bad_rows {
                BadRowsName::Stop => BadRowPolicy::Stop,
                BadRowsName::Skip => BadRowPolicy::Skip(self.rejects.clone()),
            },
            replace: self.replace,
            message: self.message.clone(),
            publish_timeout_ms: timeout_ms(self.timeout),
            web_timeout_ms: timeout_ms(self.web_timeout),
            copied_bytes_max: self.copied_bytes_max.map(|size| size.as_u64()),
            ..defaults
        }
    }
}

/// Runs the verb.
pub async fn run(args: &Args) -> anyhow::Result<()> {
    let report = load(&args.url, args.options()).await??;
    if report.bad_rows > 0 {
        eprintln!(
            "{} left out; see {}",
            numbers::counted(report.bad_rows, "row was", "rows were"),
            args.rejects.display()
        );
    }
    if args.json {
        print_line(report_json(&report, open_store(&args.url)?.prices()))
    } else {
        print_line(report_text(&args.url, &report))
    }
}

/// Loads with bars, and leaves no temporary files when it is interrupted.
pub async fn load(url: &str, mut options: LoadOptions) -> anyhow::Result<Result<LoadReport, Error>> {
    let store = open_store(url)?;
    let temp = match &options.temp_dir {
        Some(folder) => TempDir::with_prefix_in("hoplake-load-", folder),
        None => TempDir::with_prefix("hoplake-load-"),
    };
    let temp = temp.map_err(|error| Failure::file("make a folder for temporary files", &error))?;
    options.temp_dir = Some(temp.path().to_owned());
    let bars = Arc::new(LoadBars::new());
    let outcome = load_until(store, options, bars.clone(), stopped()).await;
    bars.clear();
    match outcome {
        Ok(Some(report)) => Ok(Ok(report)),
        Err(error) => Ok(Err(error)),
        Ok(None) => {
            // Its threads cannot be waited for: they may be in the middle of a long step.
            let _ = temp.close();
            let hint = format!("the next load removes what it left, and so does: hoplake vacuum {url} --min-age 0s");
            interrupted("nothing of this load is visible, and nothing is left announced", &hint)
        }
    }
}

/// One line on what a load did.
pub fn report_text(url: &str, report: &LoadReport) -> String {
    format!(
        "loaded {} and {} into {url}, version {}: {}, {:.2} bytes per directed edge, in {}",
        numbers::counted(report.vertices, "vertex", "vertices"),
        numbers::counted(report.edges, "edge", "edges"),
        report.version,
        numbers::bytes(report.bytes),
        report.bytes_per_directed_edge,
        numbers::time(report.time)
    )
}

fn report_json(report: &LoadReport, prices: &PriceList) -> serde_json::Value {
    json!({
        "version": report.version,
        "vertices": report.vertices,
        "edges": report.edges,
        "bad_rows": report.bad_rows,
        "bytes": report.bytes,
        "bytes_per_directed_edge": report.bytes_per_directed_edge,
        "time_ms": report.time.as_millis() as u64,
        "cost": cost::json(&report.cost, prices),
    })
}
