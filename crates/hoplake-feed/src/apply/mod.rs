//! Transactions become commits of the graph.
//!
//! ```text
//! opening     the graph of a feed, where it is
//! applier     fold, look up, commit, until it is known to be done
//! fold        row changes -> changes of the graph
//! lookups     what a fold has to know of the graph
//! state       what a feed remembers with a position          letters   changes that were set aside
//! objects     where both are kept                            progress  events, for a listener
//! ```

pub(crate) mod applier;
pub(crate) mod element;
pub(crate) mod ends;
pub mod fold;
pub mod letters;
pub mod lookups;
pub(crate) mod objects;
pub(crate) mod opening;
pub(crate) mod position;
pub(crate) mod progress;
pub mod state;
