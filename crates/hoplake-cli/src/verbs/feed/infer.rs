//! `hoplake feed infer`: a first mapping, from the database's own keys.

use std::collections::BTreeSet;

use hoplake_feed::{OneOrMore, Settings, SourceSettings, mapping, source};

use super::failure::failed;
use crate::output::print_line;

/// Write settings for all tables of a database, from its primary and foreign keys
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The database, as mysql://user@host:port/database or postgres://user@host:port/database
    #[arg(value_name = "DATABASE")]
    database: String,
    /// The environment variable that has the password
    #[arg(long, value_name = "NAME")]
    password_env: Option<String>,
    /// The name under which the graph will keep the position; the database's by default
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Where the graph will be
    #[arg(long, value_name = "URL", default_value = "graph")]
    graph: String,
}

/// Runs the verb.
pub async fn run(args: &Args) -> anyhow::Result<()> {
    let mut settings = Settings {
        graph: args.graph.clone(),
        source: SourceSettings {
            name: args.name.clone().unwrap_or_else(|| "source".to_owned()),
            url: OneOrMore::One(args.database.clone()),
            password_env: args.password_env.clone(),
            timeout_ms: 30_000,
            server_id: None,
            slot: None,
            publication: None,
        },
        stream: Default::default(),
        copy: Default::default(),
        reconcile: Default::default(),
        http: Default::default(),
        tables: Vec::new(),
    };
    settings.validate().map_err(failed)?;
    let source = source::open(&settings).map_err(failed)?;
    let schema = source.default_schema().to_owned();
    if args.name.is_none() {
        settings.source.name.clone_from(&schema);
        settings.validate().map_err(failed)?;
    }
    let catalogue = source.catalogue(&BTreeSet::from([schema.clone()])).await.map_err(failed)?;
    let (tables, remarks) = mapping::infer(&catalogue, &schema);
    settings.tables = tables;
    remarks.iter().for_each(|remark| eprintln!("note: {remark}"));
    print_line(toml::to_string(&settings)?.trim_end())
}
