//! Which block goes when room is needed: one trait, one file per policy.
//!
//! | policy | keeps | a hit costs | retention cost ([`FetchCost`](super::FetchCost)) |
//! | --- | --- | --- | --- |
//! | [`lru`] | what was used last | O(1) | has no scores: ignored |
//! | [`lfu`] | what was used most | O(log n) | multiplies the count |
//! | [`lrfu`] | both, weighed by λ | O(log n) | multiplies the score |
//! | [`s3_fifo`] | what was used twice | O(1) | has no scores: ignored |
//! | [`w_tiny_lfu`] | what was used last, if used more than what it replaces | O(1) | multiplies the counts compared |
//!
//! A policy knows blocks by [`Slot`], a small number that the cache gives and uses again. So a policy's
//! books are arrays, a hit finds them without hashing, and nothing is allocated when a block is used. The policy
//! holds no keys and no bytes, so that it cannot leak or lose one.
//!
//! Rejected: a trait with types of its own for each policy, fixed at compile time. It makes every user of the
//! cache generic for the sake of one indirect call, which is about 2 ns of a hit's 40.

mod heap;
mod interface;
pub mod lfu;
pub mod lrfu;
pub mod lru;
mod policy;
mod queue;
pub mod s3_fifo;
pub(super) mod sketch;
pub mod w_tiny_lfu;

pub use interface::{Eviction, Incoming, Slot};
pub use policy::{Policy, PolicyError};
