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
//! | [`personalised_page_rank`] | 33 bytes a vertex, 8 of them for the result | the same iteration, from sources |
//! | [`connected_components`] | 8 bytes a vertex, 4 of them for the result | Sutton et al. 2018 (Afforest) |
//! | [`shortest_path_lengths`] | 8 bytes a vertex for the result, and 4 for each shorter path in the bins | Meyer, Sanders 2003 |
//! | [`count_triangles`] | 17 bytes a vertex and 2 an entry of the lists | Schank, Wagner 2005 |
//! | [`strongly_connected_components`] | 25 bytes a vertex, 4 of them for the result | Tarjan 1972, Slota et al. 2014 |
//! | [`triangles_per_vertex`] | 33 bytes a vertex and 2 an entry of the lists, 8 a vertex for the result | the same |
//! | [`eigenvector_centrality`] | 16 bytes a vertex, 8 of them for the result | Bonacich 1972 |
//! | [`hubs_and_authorities`] | 24 bytes a vertex, 16 of them for the result | Kleinberg 1999 (HITS) |
//! | [`leiden`] | 36 bytes an entry of the lists and 140 a vertex at most, 4 of them for the result | Traag et al. 2019 |
//! | [`local_clustering`] | 8 bytes a vertex for the result; the widest list on each thread | Watts, Strogatz 1998; Graphalytics |
//! | [`core_numbers`] | 16 bytes a vertex, 4 of them for the result | Batagelj, Zaveršnik 2003 |
//! | [`label_propagation`] | 8 bytes a vertex, 4 for the result; the widest list on each thread | Raghavan et al. 2007; Graphalytics |
//! | [`closeness`] | 36 bytes a vertex, and 8 a start for the result | Then et al. 2014 (MS-BFS) |
//! | [`betweenness`] | 8 bytes a vertex for the result; 32 on each thread | Brandes 2001 |
//! | [`degrees`] | 8 bytes a vertex for the result | |
//! | [`multiplicity`] | none | |
//! | [`similar_vertices`] | 4 bytes a vertex, 8 on each thread; 48 a start and 16 a similar vertex for the result | Jaccard 1912; Sarawagi, Kirpal 2004 |
//!
//! [`sample_vertices`] chooses starts for closeness and betweenness of large graphs.

mod betweenness;
mod breadth_first;
#[cfg(test)]
mod centrality_tests;
mod closeness;
mod components;
mod core_numbers;
mod degrees;
mod delta_stepping;
#[cfg(test)]
mod delta_stepping_tests;
mod eigenvector;
mod hits;
mod label_propagation;
mod leiden;
mod local_clustering;
mod multiplicity;
mod page_rank;
#[cfg(test)]
mod page_rank_tests;
mod sample;
mod similar_vertices;
mod strong_components;
#[cfg(test)]
mod tests;
mod triangles;
mod triangles_per_vertex;
#[cfg(test)]
mod triangles_tests;
mod vectors;
mod weights;

use hoplake_engine::Held;
use hoplake_storage::{MemoryHold, QueryContext, StorageError};
use rayon::prelude::*;

use crate::{Adjacency, Cursor};

pub(crate) use betweenness::BETWEENNESS;
pub use betweenness::betweenness;
pub(crate) use breadth_first::LEVELS;
pub use breadth_first::{UNREACHED, breadth_first_levels};
pub(crate) use closeness::CLOSENESS;
pub use closeness::closeness;
pub(crate) use components::COMPONENTS;
pub use components::connected_components;
pub(crate) use core_numbers::CORES;
pub use core_numbers::core_numbers;
pub(crate) use degrees::DEGREES;
pub use degrees::degrees;
pub(crate) use delta_stepping::PATHS;
pub use delta_stepping::{ShortestPathSettings, shortest_path_lengths};
pub(crate) use eigenvector::EIGENVECTOR;
pub use eigenvector::{Eigenvector, eigenvector_centrality};
pub(crate) use hits::{AUTHORITIES, HUBS};
pub use hits::{HubsAndAuthorities, hubs_and_authorities};
pub(crate) use label_propagation::COMMUNITIES;
pub use label_propagation::label_propagation;
pub(crate) use leiden::LEIDEN;
pub use leiden::{Communities, LeidenSettings, leiden};
pub(crate) use local_clustering::CLUSTERING;
pub use local_clustering::local_clustering;
pub(crate) use multiplicity::MULTIPLICITY;
pub use multiplicity::{Multiplicity, multiplicity};
pub(crate) use page_rank::{PAGE_RANK, pulled};
pub use page_rank::{PageRank, PageRankSettings, page_rank, personalised_page_rank};
pub use sample::sample_vertices;
pub(crate) use similar_vertices::SIMILARITY;
pub use similar_vertices::{SimilarVertex, similar_vertices};
pub(crate) use strong_components::STRONG_COMPONENTS;
pub use strong_components::strongly_connected_components;
pub(crate) use triangles::TRIANGLES;
pub use triangles::count_triangles;
pub(crate) use triangles_per_vertex::TRIANGLES_PER_VERTEX;
pub use triangles_per_vertex::triangles_per_vertex;

/// A result of this size, which counts until it is dropped; the rest of what its kernel held is given back.
fn held<T>(result: T, bytes: usize, mut memory: MemoryHold) -> Held<T> {
    // Less than before: that is never rejected.
    let _ = memory.resize(bytes as u64);
    Held::new(result, memory)
}

/// The most edges that one vertex has, at both of their ends if there are lists of both.
fn widest<A: Adjacency>(out: &A, against: Option<&A>) -> usize {
    if let Some(against) = against {
        assert_eq!(out.len(), against.len(), "the same vertices from both ends");
    }
    let edges = |vertex: u32| out.degree(vertex) + against.map_or(0, |lists| lists.degree(vertex));
    (0..out.len() as u32).into_par_iter().map(edges).max().unwrap_or(0)
}

/// The neighbours of a vertex other than itself, each once.
fn different_neighbours(lists: &mut impl Cursor, vertex: u32) -> impl Iterator<Item = u32> {
    let different = lists.neighbours(vertex).chunk_by(|a, b| a == b).map(|same| same[0]);
    different.filter(move |neighbour| *neighbour != vertex)
}

/// How many neighbours each vertex has other than itself, each once.
fn count_neighbours(lists: &impl Adjacency, context: &QueryContext) -> Result<Vec<u32>, StorageError> {
    let mut counts = vec![0; lists.len()];
    counts.par_chunks_mut(CHUNK).enumerate().try_for_each(|(number, counts)| {
        context.check_time()?;
        let mut cursor = lists.cursor();
        for (vertex, count) in (number * CHUNK..).zip(counts) {
            *count = different_neighbours(&mut cursor, vertex as u32).count() as u32;
        }
        Ok(())
    })?;
    Ok(counts)
}

/// Vertices between two looks at the deadline: some milliseconds where each has a few hundred edges.
const CHUNK: usize = 1 << 14;
