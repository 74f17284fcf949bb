//! Kernels: functions over the lists of a [`Csr`](crate::Csr), each in a file of its own.
//!
//! They run on rayon's current pool; call them within [`rayon::ThreadPool::install`] to choose another. Their results do not depend
//! on the number of threads. Between chunks of vertices they look at the deadline of the query that they are passed, and what they
//! build counts against its memory.
//!
//! | kernel | memory, without the lists | source |
//! | --- | --- | --- |
//! | [`breadth_first_levels`] | 17 bytes a vertex, 4 of them for the result | Beamer et al. 2012 |
//! | [`page_rank`] | 33 bytes a vertex, 8 of them for the result | Page et al. 1999, by pulling |
//! | [`connected_components`] | 8 bytes a vertex, 4 of them for the result | Sutton et al. 2018 (Afforest) |
//! | [`shortest_path_lengths`] | 8 bytes a vertex for the result, and 4 for each shorter path in the bins | Meyer, Sanders 2003 |
//! | [`count_triangles`] | 17 bytes a vertex and 2 an entry of the lists | Schank, Wagner 2005 |

mod breadth_first;
mod components;
mod delta_stepping;
#[cfg(test)]
mod delta_stepping_tests;
mod page_rank;
#[cfg(test)]
mod tests;
mod triangles;
#[cfg(test)]
mod triangles_tests;

use hoplake_engine::Held;
use hoplake_storage::MemoryHold;

pub use breadth_first::{UNREACHED, breadth_first_levels};
pub use components::connected_components;
pub use delta_stepping::{ShortestPathSettings, shortest_path_lengths};
pub use page_rank::{PageRank, PageRankSettings, page_rank};
pub use triangles::count_triangles;

/// A result of this size, which counts until it is dropped; the rest of what its kernel held is given back.
fn held<T>(result: T, bytes: usize, mut memory: MemoryHold) -> Held<T> {
    // Less than before: that is never refused.
    let _ = memory.resize(bytes as u64);
    Held::new(result, memory)
}

/// Vertices between two looks at the deadline: some milliseconds where each has a few hundred edges.
const CHUNK: usize = 1 << 14;
