//! Where graphs are.

use std::sync::Arc;

use hoplake::{ReadPool, Reader, Store};

use crate::{
    access::{AccessNodes, NodesSource},
    failure::Failure,
    names::{Source, StoreOpener},
};

/// The origin of graphs.
pub(crate) enum Origin {
    /// Stores, by rules that lead from names to URLs.
    Stores { sources: Vec<Source>, opener: StoreOpener },
    /// Access nodes, which have such rules.
    Nodes(Arc<AccessNodes>),
}

impl Origin {
    /// The URLs where a graph of this name may be, the most likely first.
    pub(super) fn urls(&self, name: &str) -> Vec<String> {
        match self {
            Self::Stores { sources, .. } => sources.iter().flat_map(|source| source.urls(name)).collect(),
            // One URL: each access node has the rules, and searches the locations itself.
            Self::Nodes(nodes) => vec![NodesSource::new(nodes.clone(), name).url()],
        }
    }

    /// A reader of the graph of this name at one of its URLs.
    pub(super) async fn reader(&self, name: &str, url: &str, pool: Arc<ReadPool>) -> Result<Reader, Failure> {
        match self {
            Self::Stores { opener, .. } => Ok(Reader::new(opener(url)?, pool)),
            Self::Nodes(nodes) => {
                let source = NodesSource::new(nodes.clone(), name);
                // The profile of the real store, so that reads are planned and priced as if this node read the store itself.
                let store = Store::elsewhere(url, source.profile().await?);
                Ok(Reader::from_source(store, Arc::new(source), pool))
            }
        }
    }

    /// The only source, if there is one alone.
    pub(super) fn only_source(&self) -> Option<&Source> {
        match self {
            Self::Stores { sources, .. } if sources.len() == 1 => sources.first(),
            _ => None,
        }
    }

    /// Names that are configured, not found below a prefix.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let sources = match self {
            Self::Stores { sources, .. } => &sources[..],
            Self::Nodes(_) => &[],
        };
        sources.iter().filter_map(Source::name)
    }
}
