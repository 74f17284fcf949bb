//! Seeded graphs for tests and benchmarks.
//!
//! * [`kronecker`]: the synthetic social graph of Graph500, skewed and without locality.
//! * [`log_normal`]: log-normal out-degrees and uniform targets, the least compressible one.
//! * [`SocialNetwork`]: labels, edge types, skew and locality of LDBC's social network.
//! * [`labelled_multigraph`]: small, with labels, parallel edges and self-loops, for properties.
//! * [`block_accesses`]: the accesses of queries to a cache. [`Zipf`]: numbers, few of them popular.
//!
//! Large graphs are iterators of edges, so that a hundred million of them need no memory, and
//! the random numbers are [`SplitMix64`]'s, so that a seed names the same graph for ever: a
//! library's generator may change between its versions.

mod accesses;
mod kronecker;
mod labelled;
mod log_normal;
mod random;
mod social_network;
mod zipf;

pub use accesses::{AccessPattern, BlockAccess, block_accesses};
pub use kronecker::{Kronecker, kronecker};
pub use labelled::{LabelledEdge, LabelledGraph, LabelledLimits, labelled_multigraph};
pub use log_normal::{LogNormal, log_normal};
pub use random::SplitMix64;
pub use social_network::{KeyedEdge, SocialLabel, SocialNetwork, SocialRelation, SocialVertex};
pub use zipf::Zipf;

/// A directed edge of a graph without labels: source and target, dense from 0.
pub type Edge = (u64, u64);
