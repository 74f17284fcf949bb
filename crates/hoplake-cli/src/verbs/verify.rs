//! `hoplake verify`: reads everything and says whether it is whole.

use serde_json::json;

use crate::{
    opening::GraphArgs,
    output::{numbers, print_line, progress::bytes_bar},
};

/// Read a whole graph and check every byte of it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
It reads every object from end to end; a damaged one is named with its block, and the status is 7.

Example:
  hoplake verify s3://bucket/social")]
pub struct Args {
    #[command(flatten)]
    pub graph: GraphArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the verb.
pub async fn run(args: &Args) -> anyhow::Result<()> {
    let opened = args.graph.open().await?;
    let total = opened.graph.info().await?.total_bytes;
    let bar = bytes_bar("verifying", total);
    let verified = opened.graph.verify(|bytes| bar.set_position(bytes)).await;
    bar.finish_and_clear();
    let verified = verified?;
    let version = opened.graph.version();
    if args.json {
        return print_line(json!({
            "version": version,
            "objects": verified.objects,
            "bytes": verified.bytes,
            "blocks": verified.blocks,
        }));
    }
    print_line(format_args!(
        "version {version} is whole: {}, {}, {}",
        numbers::counted(verified.objects, "object", "objects"),
        numbers::bytes(verified.bytes),
        numbers::counted(verified.blocks, "block", "blocks"),
    ))
}
