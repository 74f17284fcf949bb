//! How many triangles each vertex is in, by the ordered lists of [`count_triangles`](super::count_triangles) (Schank, Wagner: *Finding,
//! counting and listing all triangles in large graphs*, 2005).
//!
//! Ordered lists find each triangle once, at the vertex that comes last. It counts for all three.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use hoplake_engine::{EngineError, Held, traversal::HopDirection};
use hoplake_storage::{QueryContext, StorageError};

use super::{held, triangles::Ordered};
use crate::{
    Adjacency,
    registry::{AlgorithmSpec, Kernel, KernelInput, KernelResult, Neighbours, ValueType, Values},
};

/// Triangles of each vertex, as users see them.
pub(crate) const TRIANGLES_PER_VERTEX: AlgorithmSpec = AlgorithmSpec {
    name: "triangles-per-vertex",
    value: Some("triangles"),
    value_type: ValueType::Integer,
    help: "the number of triangles that contain the vertex; the direction of edges is ignored",
    direction: HopDirection::Both,
    neighbours: Neighbours::Undirected,
    kernel: Some(Kernel { decoded: run, packed: run }),
    ..AlgorithmSpec::USUAL
};

fn run<A: Adjacency>(input: &KernelInput<'_, A>) -> Result<KernelResult, EngineError> {
    let found = triangles_per_vertex(&input.topology.out, input.context)?;
    Ok(found.map(Values::Counts).into())
}

/// How many sets of three vertices that are adjacent to one another have each vertex: three times
/// [`count_triangles`](super::count_triangles) in sum. `lists` are those of edges without direction: each edge is in the lists of both
/// its ends. Parallel edges count as one, and self-loops not at all. O(E √E).
///
/// Takes 33 bytes a vertex, 8 of them for the result, and 2 an entry of the lists.
///
/// # Errors
/// [`StorageError::Limit`] if the query's time is over, or its memory does not hold the ordered lists.
pub fn triangles_per_vertex<A: Adjacency>(lists: &A, context: &QueryContext) -> Result<Held<Vec<u64>>, StorageError> {
    let memory = context.hold(lists.len() as u64 * 16)?;
    let (ordered, order) = Ordered::of(lists, context)?;
    let counts: Vec<AtomicU64> = (0..lists.len()).map(|_| AtomicU64::new(0)).collect();
    ordered.visit_all(context, |number, members| count_at(&ordered, number, members, &counts))?;
    let mut of_vertices = vec![0; lists.len()];
    for (vertex, count) in order.iter().zip(counts) {
        of_vertices[*vertex as usize] = count.into_inner();
    }
    Ok(held(of_vertices, 8 * lists.len(), memory))
}

/// Counts the triangles whose last vertex is this one, for all of their vertices. `counts` are by number.
fn count_at(ordered: &Ordered, number: usize, members: &mut [u64], counts: &[AtomicU64]) -> u64 {
    let own = ordered.list(number);
    if own.len() < 2 {
        return 0;
    }
    own.iter().for_each(|target| members[*target as usize / 64] |= 1 << (target % 64));
    let mut found = 0;
    for middle in own {
        let mut at_middle = 0;
        for first in ordered.list(*middle as usize) {
            if members[*first as usize / 64] >> (first % 64) & 1 == 1 {
                counts[*first as usize].fetch_add(1, Relaxed);
                at_middle += 1;
            }
        }
        if at_middle > 0 {
            counts[*middle as usize].fetch_add(at_middle, Relaxed);
        }
        found += at_middle;
    }
    own.iter().for_each(|target| members[*target as usize / 64] = 0);
    counts[number].fetch_add(found, Relaxed);
    found
}
