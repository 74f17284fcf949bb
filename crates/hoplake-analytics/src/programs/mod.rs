//! Programs that come with Hoplake, each a file that can be read as an example.
//!
//! | program | result | ends |
//! | --- | --- | --- |
//! | [`PageRank`] | a rank for each vertex, which add up to 1 | when ranks have changed by no more than a bound in sum |
//! | [`ShortestPaths`] | the length of a shortest path from a vertex, by weight | when none gets shorter |
//! | [`Levels`] | the number of its edges | when none is new |
//! | [`Components`] | the least id that can be reached | when none spreads |
//! | [`Labels`] | the label that most neighbours have | after a number of supersteps |

mod components;
mod labels;
mod levels;
mod page_rank;
mod shortest_paths;

pub use components::{Components, LeastSpread};
pub use labels::Labels;
pub use levels::{Levels, UNREACHED};
pub use page_rank::{PageRank, RankSums};
pub use shortest_paths::ShortestPaths;
