//! Blocks between nodes. An *access node* has stores and caches; an *algorithm node* runs traversals and has its
//! blocks from access nodes. A server that is neither alone is both at once, and reads its own stores.
//!
//! * `graphs`: the graphs whose blocks an access node serves, by name. It opens none of them.
//! * `source`: a graph whose blocks come from access nodes; the library's `ObjectSource`.
//! * `nodes`: which access nodes there are, and which of them answer.
//! * `routing`: the choice of nodes for blocks.
//! * `wire`: between the messages and the library's types, in both directions.
//!
//! The library stands above the source: planning, hedges, repetition and checks are as for a store, and a node that
//! fails is a failed attempt. So nothing here decides whether a block is right, and nothing here repeats a fetch.

mod graphs;
mod nodes;
mod routing;
mod source;
mod wire;

pub(crate) use graphs::{ServedGraph, ServedGraphs};
pub use nodes::Resolver;
pub(crate) use nodes::{AccessNodes, parse_target};
pub(crate) use source::NodesSource;
pub(crate) use wire::{MESSAGE_BYTES_MAX, check_folder, check_object, listed, parts, wanted};
