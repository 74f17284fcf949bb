//! `hoplake feed`: a graph that follows the tables of a database.

mod catalog;
mod check;
mod dead_letters;
mod failure;
mod infer;
mod reconcile;
mod run;
mod status;

use std::path::{Path, PathBuf};

pub use failure::failed;

use hoplake_feed::{OneOrMore, Settings, SourceSettings};

use crate::opening::warn_of_mirror;

/// Feed a graph from an SQL database: a first copy, then every transaction, exactly once
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example:
  export HR_PASSWORD=…
  hoplake feed infer mysql://feed@db:3306/hr --password-env HR_PASSWORD --graph s3://bucket/staff > feed.toml
  hoplake feed check feed.toml
  hoplake feed run feed.toml")]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    Infer(infer::Args),
    #[command(alias = "catalogue")]
    Catalog(catalog::Args),
    /// Compare the database with the settings, and show what each table becomes
    Check(FileArgs),
    Run(run::Args),
    Reconcile(reconcile::Args),
    Status(status::Args),
    DeadLetters(dead_letters::Args),
}

/// The settings of a feed.
#[derive(Debug, clap::Args)]
pub struct FileArgs {
    /// The settings: source, graph, and what tables become
    #[arg(value_name = "FEED.TOML")]
    file: PathBuf,
}

/// A source that no settings name yet.
#[derive(Debug, clap::Args)]
struct SourceArgs {
    /// The database, as mysql://user@host:port/database or postgres://user@host:port/database; for `infer` also a change log, as
    /// kafka://host:port/topic or file:/path
    #[arg(value_name = "URL")]
    url: String,
    /// The environment variable that has the password
    #[arg(long, value_name = "NAME")]
    password_env: Option<String>,
}

impl SourceArgs {
    fn settings(&self, name: &str) -> SourceSettings {
        SourceSettings {
            password_env: self.password_env.clone(),
            ..SourceSettings::new(name, OneOrMore::One(self.url.clone()))
        }
    }
}

impl Args {
    /// The graph it is about, as far as the command names one.
    pub fn url(&self) -> &str {
        match &self.action {
            Action::Status(args) => &args.url,
            _ => "URL",
        }
    }
}

/// Reads settings for what changes their graph.
fn settings_to_change(file: &Path) -> anyhow::Result<Settings> {
    let settings = Settings::read(file).map_err(failed)?;
    warn_of_mirror(&settings.graph);
    Ok(settings)
}

/// Runs the verb.
pub async fn run(args: &Args) -> anyhow::Result<()> {
    match &args.action {
        Action::Infer(args) => infer::run(args).await,
        Action::Catalog(args) => catalog::run(args).await,
        Action::Check(args) => check::run(args).await,
        Action::Run(args) => run::run(args).await,
        Action::Reconcile(args) => reconcile::run(args).await,
        Action::Status(args) => status::run(args).await,
        Action::DeadLetters(args) => dead_letters::run(args).await,
    }
}
