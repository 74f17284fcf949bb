//! Arguments that several of the feed's verbs take.

use std::path::PathBuf;

use hoplake_feed::{OneOrMore, Settings, SourceSettings};

use super::failure::failed;
use crate::opening::warn_of_mirror;

/// The settings of a feed.
#[derive(Debug, clap::Args)]
pub struct FileArgs {
    /// The settings: source, graph, and what tables become
    #[arg(value_name = "FEED.TOML")]
    file: PathBuf,
}

impl FileArgs {
    pub fn settings(&self) -> anyhow::Result<Settings> {
        Settings::read(&self.file).map_err(failed)
    }

    /// For verbs that change the graph: warns if it is a mirror.
    pub fn settings_to_change(&self) -> anyhow::Result<Settings> {
        let settings = self.settings()?;
        warn_of_mirror(&settings.graph);
        Ok(settings)
    }
}

/// A source that no settings name yet.
#[derive(Debug, clap::Args)]
pub struct SourceArgs {
    /// The database, as mysql://user@host:port/database or postgres://user@host:port/database; for `infer` also a change log, as
    /// kafka://host:port/topic or file:/path
    #[arg(value_name = "URL")]
    pub url: String,
    /// The environment variable that has the password
    #[arg(long, value_name = "NAME")]
    password_env: Option<String>,
}

impl SourceArgs {
    /// A source of this name.
    pub fn settings(&self, name: &str) -> SourceSettings {
        SourceSettings {
            password_env: self.password_env.clone(),
            ..SourceSettings::new(name, OneOrMore::One(self.url.clone()))
        }
    }
}
