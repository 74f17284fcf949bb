//! `hoplake export`: a graph as files.

use bytesize::ByteSize;
use clap::ValueEnum;
use hoplake::{ErrorKind, ExportFormat, ExportOptions, Exported, Limits};
use serde_json::json;

use crate::{
    arguments,
    failure::Failure,
    opening::{GraphArgs, open_store},
    output::{cost, numbers, print_line, progress::items_bar},
    stopping::{interrupted, stopped},
};

/// Write a graph as files
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A file for each vertex label and edge type, and a mapping.toml that loads them back as an equal graph. The mapping is
written last: where it is, the export is complete. GraphML is one file, and does not load back.

Examples:
  hoplake export s3://bucket/social --to ./social --format parquet
  hoplake load ./again --mapping ./social/mapping.toml")]
pub struct Args {
    #[command(flatten)]
    pub graph: GraphArgs,
    /// Where the files are to be: an empty folder, or a URL
    #[arg(long, value_name = "FOLDER|URL")]
    to: String,
    /// The form of the files
    #[arg(long, value_enum)]
    format: FormatName,
    /// Vertices with this label, and edges between them; may be repeated; by default all
    #[arg(long = "label", value_name = "LABEL")]
    labels: Vec<String>,
    /// Budget of memory, in addition to --cache
    #[arg(long, value_name = "SIZE", default_value = "512MiB", value_parser = arguments::size_from_1)]
    memory: ByteSize,
    /// Replace an earlier export, or write next to other files
    #[arg(long)]
    overwrite: bool,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
}

/// The form of the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FormatName {
    /// Parquet, for any tool
    Parquet,
    /// CSV, for any tool
    Csv,
    /// CSV for neo4j-admin database import
    Neo4j,
    /// Gremlin CSV, for Amazon Neptune
    Gremlin,
    /// One XML document, which does not load back
    Graphml,
}

/// The least budget: two parts of the graph, and one of an upload.
const MEMORY_MIN: ByteSize = ByteSize::mib(32);

impl Args {
    fn options(&self) -> ExportOptions {
        let format = match self.format {
            FormatName::Parquet => ExportFormat::Parquet,
            FormatName::Csv => ExportFormat::Csv,
            FormatName::Neo4j => ExportFormat::Neo4j,
            FormatName::Gremlin => ExportFormat::Gremlin,
            FormatName::Graphml => ExportFormat::GraphMl,
        };
        let labels = self.labels.clone();
        let overwrite = self.overwrite;
        ExportOptions { labels, overwrite, ..ExportOptions::new(format) }
    }
}

/// Runs the verb.
pub async fn run(args: &Args) -> anyhow::Result<()> {
    if args.memory < MEMORY_MIN {
        let message = format!("--memory {} is too little for an export", args.memory);
        return Err(Failure::new(ErrorKind::Invalid, message, format!("give it {MEMORY_MIN} or more")).into());
    }
    let opened = args.graph.open().await?;
    let target = open_store(&args.to)?;
    let mut query = opened.graph.query();
    query.limit(&Limits { memory_bytes_max: Some(args.memory.as_u64()), ..Limits::default() });
    let manifest = opened.graph.manifest();
    let vertices: u64 = manifest.vertex_counts.iter().map(|count| count.live()).sum();
    let bar = items_bar("exporting", vertices + manifest.edge_counts.iter().sum::<u64>());
    let options = args.options();
    let progress = |rows| bar.inc(rows);
    let exported = tokio::select! {
        exported = query.export(&target, &options, &progress) => exported,
        () = stopped() => {
            bar.finish_and_clear();
            interrupted("the files are not complete", "export again with --overwrite, or remove them")
        }
    };
    bar.finish_and_clear();
    let exported = exported.map_err(|error| match error.kind() {
        ErrorKind::Conflict if args.overwrite => error.into(),
        ErrorKind::Conflict => {
            let hint = "choose another place; --overwrite replaces an earlier export, and leaves other files alone";
            anyhow::Error::from(Failure::of(&error, hint.to_owned()))
        }
        _ => error.into(),
    })?;
    if args.json {
        let cost = cost::json(&query.cost(), opened.graph.prices());
        let Exported { vertices, edges, files, bytes, has_mapping } = exported;
        let mapping = has_mapping.then(|| format!("{}/mapping.toml", args.to.trim_end_matches('/')));
        return print_line(json!({
            "version": opened.graph.version(), "vertices": vertices, "edges": edges, "files": files, "bytes": bytes,
            "mapping": mapping, "cost": cost,
        }));
    }
    print_line(format_args!(
        "exported {} and {} of version {} to {}: {} in {}",
        numbers::counted(exported.vertices, "vertex", "vertices"),
        numbers::counted(exported.edges, "edge", "edges"),
        opened.graph.version(),
        args.to,
        numbers::bytes(exported.bytes),
        numbers::counted(exported.files, "file", "files"),
    ))
}
