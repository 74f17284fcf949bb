//! `hoplake path`: a shortest path between two vertices.

use hoplake::{ErrorKind, Hop, PathQuery, StartKey};

use super::{limits::LimitArgs, paths::PathWriter};
use crate::{
    failure::Failure,
    opening::GraphArgs,
    output::{Format, OutputArgs, print_line},
};

/// Print a shortest path between two vertices
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Of several shortest paths it prints always the same one. Without a path the status is 3.

Example: how two people know each other
  hoplake path s3://bucket/social --from Person:933 --to Person:1129 --hop both:knows")]
pub struct Args {
    #[command(flatten)]
    pub graph: GraphArgs,
    /// Where the path begins
    #[arg(long, value_name = "LABEL:KEY")]
    from: StartKey,
    /// Where the path ends
    #[arg(long, value_name = "LABEL:KEY")]
    to: StartKey,
    /// Which edges it may take: a direction and edge labels
    #[arg(long, value_name = "HOP", default_value = "both")]
    hop: Hop,
    /// The longest path that counts, in edges
    #[arg(long, value_name = "N", default_value_t = 16)]
    max_depth: usize,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    limits: LimitArgs,
}

/// Runs the verb.
pub async fn run(args: &Args) -> anyhow::Result<()> {
    args.output.check_text("a path")?;
    let opened = args.graph.open().await?;
    let mut query = opened.graph.query();
    let ends = query.named(&[args.from.clone(), args.to.clone()]).await?;
    let path = PathQuery {
        from: ends[0],
        to: ends[1],
        hop: args.hop.clone(),
        depth_max: args.max_depth,
        limits: args.limits.limits(),
        after: Default::default(),
    };
    let Some(path) = query.shortest_path(path).await? else {
        if args.output.format() == Format::Json {
            print_line("null")?;
        }
        return Err(no_path(args).into());
    };
    let mut writer = PathWriter::new(&args.output)?;
    writer.write(&mut query, [path]).await?;
    writer.finish()
}

fn no_path(args: &Args) -> Failure {
    let (from, to) = (&args.from, &args.to);
    let message = format!(
        "there is no path from {}:{} to {}:{} along {} of at most {} edges",
        from.label, from.key, to.label, to.key, args.hop, args.max_depth
    );
    Failure::new(ErrorKind::NotFound, message, "raise --max-depth, or allow other edges with --hop")
}
