//! `hoplake feed catalog`: the tables of a database, for feeds from a log of its changes.

use std::collections::BTreeSet;

use hoplake_feed::{
    Settings,
    source::{self, CatalogFile},
};

use super::{arguments::SourceArgs, failure::failed};
use crate::output::print_line;

/// Write the tables of a database as JSON, for a feed from a change log, which does not say what tables there are
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    source: SourceArgs,
    /// Another schema (in MariaDB: another database) whose tables are wanted, too
    #[arg(long, value_name = "NAME")]
    schema: Vec<String>,
}

/// Runs the verb.
pub async fn run(args: &Args) -> anyhow::Result<()> {
    let settings = Settings::new("graph", args.source.settings("source"));
    let source = source::open(&settings).map_err(failed)?;
    let schema = source.default_schema().to_owned();
    let schemas: BTreeSet<String> = args.schema.iter().cloned().chain([schema.clone()]).collect();
    let catalog = source.catalog(&schemas).await.map_err(failed)?;
    let file = CatalogFile::new(&args.source.url, &schema, catalog).map_err(failed)?;
    print_line(file.to_json())
}
