//! Where tables are: a catalog, a consistent copy, and the transactions after it.
//!
//! ```text
//! interface   what a source has to do          following   what a stream is asked for
//! catalog     tables, keys, foreign keys       shape       a table at a position, and how it has changed since
//! change      transactions of row changes      spill       those of a transaction that is larger than memory
//! log         change logs                      mariadb, postgres    the databases
//! ```

mod address;
pub(crate) mod catalog;
pub(crate) mod change;
mod declared;
mod following;
mod interface;
mod log;
#[cfg(feature = "mariadb")]
pub mod mariadb;
#[cfg(any(feature = "mariadb", feature = "postgres"))]
mod open_transaction;
#[cfg(feature = "postgres")]
pub mod postgres;
pub(crate) mod shape;
pub(crate) mod spill;
mod statements;
#[cfg(feature = "tls")]
mod tls;

use std::sync::Arc;

/// For a test that runs each of them.
#[doc(hidden)]
pub use self::statements::HARMLESS as HARMLESS_CLAUSES;
pub use self::{
    address::shown,
    following::Following,
    interface::{Backlog, ComparedKey, Purpose, RowSink, Snapshot, Source, TransactionStream, UnequalKey},
    log::CatalogFile,
};
use crate::{FeedError, Settings};

/// What the fuzz targets read without a server (`docs/fuzzing.md`). It may change at any time.
#[cfg(feature = "fuzzing")]
pub mod fuzzing {
    #[cfg(feature = "mariadb")]
    pub use super::mariadb::fuzzing::*;
    #[cfg(feature = "postgres")]
    pub use super::postgres::fuzzing::*;
    pub use super::{log::fuzzing::*, statements::fuzzing::*};
}

/// The source that settings name.
///
/// # Errors
/// [`Invalid`](crate::FeedErrorKind::Invalid) if the URL is of no kind that this build has.
pub fn open(settings: &Settings) -> Result<Arc<dyn Source>, FeedError> {
    let url = settings.source.url.all().first().map(String::as_str).unwrap_or_default();
    if log::is_log(url) {
        return Ok(Arc::new(log::ChangeLog::new(settings)?));
    }
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
    match scheme {
        #[cfg(feature = "mariadb")]
        "mysql" | "mariadb" => Ok(Arc::new(mariadb::MariaDb::new(settings)?)),
        #[cfg(feature = "postgres")]
        "postgres" | "postgresql" => Ok(Arc::new(postgres::Postgres::new(settings)?)),
        _ => {
            let message = format!("source.url {url:?} is not of a kind of database that is supported");
            Err(FeedError::invalid(message)
                .hint("write mysql://user@host:port/database or postgres://user@host:port/database, or file:/path of a change log"))
        }
    }
}
