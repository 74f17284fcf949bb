//! The two ends of a feed: the tables that it reads, and the store of the graph that it writes.

use std::{fmt, sync::Arc};

use hoplake::Store;

use crate::{
    FeedError, Settings,
    source::{self, Source},
};

/// A source, and the store of a graph.
///
/// [`Ends::open`] makes both of the URLs of the settings. A caller with other ones, such as a database of a kind that this crate does not
/// know, puts them here: what runs on them is the same.
#[derive(Clone)]
pub struct Ends {
    /// Where the tables are.
    pub source: Arc<dyn Source>,
    /// Where the graph is.
    pub store: Store,
}

impl Ends {
    /// Those that settings name. Nothing is connected.
    ///
    /// # Errors
    /// [`Invalid`](crate::FeedErrorKind::Invalid) if one of the URLs is of no kind that this build has.
    pub fn open(settings: &Settings) -> Result<Self, FeedError> {
        let store = Store::open(&settings.graph).map_err(hoplake::Error::from)?;
        Ok(Self { source: source::open(settings)?, store })
    }
}

impl fmt::Debug for Ends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ends").field("store", &self.store).finish_non_exhaustive()
    }
}
