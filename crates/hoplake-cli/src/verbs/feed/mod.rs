//! `hoplake feed`: a graph that follows the tables of a database.

mod arguments;
mod catalog;
mod check;
mod dead_letters;
mod failure;
mod infer;
mod reconcile;
mod run;
mod status;

use self::arguments::FileArgs;
pub use self::failure::failed;

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

impl Args {
    /// The graph it is about, as far as the command names one.
    pub fn url(&self) -> &str {
        match &self.action {
            Action::Status(args) => &args.url,
            _ => "URL",
        }
    }
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
