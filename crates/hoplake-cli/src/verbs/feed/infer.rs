//! `hoplake feed infer`: a first mapping, from the database's own keys.

use std::collections::BTreeSet;

use hoplake_feed::{LogFormat, Settings, SourceSettings, mapping, source};

use super::{arguments::SourceArgs, failure::failed};
use crate::output::print_line;

/// Write settings for all tables of a database, from its primary and foreign keys
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    source: SourceArgs,
    /// The name under which the graph will keep the position; the database's by default
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Where the graph will be
    #[arg(long, value_name = "URL", default_value = "graph")]
    graph: String,
    /// What wrote the log
    #[arg(long, value_name = "FORMAT", requires = "catalog")]
    log_format: Option<Format>,
    /// The tables of the log: a file that hoplake feed catalog wrote, or the URL of the database
    #[arg(long, alias = "catalogue", value_name = "FILE", requires = "log_format")]
    catalog: Option<String>,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Format {
    Debezium,
    Maxwell,
}

/// Runs the verb.
pub async fn run(args: &Args) -> anyhow::Result<()> {
    let source = SourceSettings {
        log_format: args.log_format.map(|format| match format {
            Format::Debezium => LogFormat::Debezium,
            Format::Maxwell => LogFormat::Maxwell,
        }),
        catalog: args.catalog.clone(),
        ..args.source.settings(args.name.as_deref().unwrap_or("source"))
    };
    let mut settings = Settings::new(args.graph.clone(), source);
    settings.validate().map_err(failed)?;
    let source = source::open(&settings).map_err(failed)?;
    let schema = source.default_schema().to_owned();
    if args.name.is_none() {
        settings.source.name.clone_from(&schema);
        settings.validate().map_err(failed)?;
    }
    let catalog = source.catalog(&BTreeSet::from([schema.clone()])).await.map_err(failed)?;
    let (tables, remarks) = mapping::infer(&catalog, &schema);
    settings.tables = tables;
    remarks.iter().for_each(|remark| eprintln!("note: {remark}"));
    print_line(toml::to_string(&settings)?.trim_end())
}
