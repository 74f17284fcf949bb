//! The databases whose logs are read.

use serde::{Deserialize, Serialize};

/// What wrote the changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Database {
    /// Or MySQL.
    MariaDb,
    Postgres,
}

impl Database {
    pub(super) fn of_url(url: &str) -> Option<Self> {
        match url.split_once("://")?.0 {
            "mysql" | "mariadb" => Some(Self::MariaDb),
            "postgres" | "postgresql" => Some(Self::Postgres),
            _ => None,
        }
    }
}
