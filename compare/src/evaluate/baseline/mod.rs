//! The baseline of the study that is repeated (A. Chandla, TU Eindhoven, 2024), built as it is described there.
//!
//! * [`Adjacency`]: the lists of all vertices in one space of numbers, taken from a loaded graph.
//! * `file`: what a file holds: a range of vertices, for each the offsets of its incoming and of its outgoing edges, and
//!   the edges of both directions with their labels in one array.
//! * [`Files`]: which file holds which vertices, in memory; whole files are fetched and parsed, and the least
//!   recently used go when a budget is full.
//! * [`search`]: textbook breadth-first and depth-first search, one vertex at a time, with a set of the (vertex, depth)
//!   that were seen.
//!
//! Where the study leaves a choice open, the one that favours the baseline is taken: parsing is a pass over
//! little-endian numbers, hashing is fast, traversals at once wait together for a file that one of them
//! fetches, and the number of the start vertex is known, while Hoplake looks its key up in the store.

mod adjacency;
mod file;
mod files;
pub mod search;

pub use adjacency::Adjacency;
pub use files::{Files, Partitions};
