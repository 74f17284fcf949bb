//! Triangles, each counted once from lists that lead to vertices of higher degree (Schank, Wagner: *Finding, counting and listing
//! all triangles in large graphs*, 2005; Latapy: *Main-memory triangle computations for very large (sparse (power-law)) graphs*, 2008).
//!
//! Vertices are numbered by falling degree, and each keeps only the neighbours with lower numbers. No list is then longer than
//! √(2 E) or the mean degree, not even that of a hub, and a triangle is found once: where the lists of two adjacent vertices meet.
//!
//! The list of a vertex is set in a bitmap, and those of its neighbours are looked up there. The GAP suite merges two lists, where
//! each comparison is a branch that goes either way; a look into the bitmap has none, and needs no sorted lists. Most entries are
//! hubs, which have the lowest numbers, so the part of the bitmap that is used stays in the processor's cache.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use hoplake_storage::{MemoryHold, QueryContext, StorageError};
use rayon::prelude::*;

use crate::{
    Adjacency, Cursor,
    registry::{AlgorithmSpec, Figure, Kernel, KernelInput, KernelResult, Neighbours, ValueType},
};
use hoplake_engine::{EngineError, Held, traversal::HopDirection};

/// The number of triangles, as users see it.
pub(crate) const TRIANGLES: AlgorithmSpec = AlgorithmSpec {
    name: "triangles",
    value: None,
    help: "one row: the number of triangles in the graph; the direction of edges is ignored",
    value_type: ValueType::Integer,
    direction: HopDirection::Both,
    neighbours: Neighbours::Undirected,
    kernel: Some(Kernel { decoded: run, packed: run }),
    ..AlgorithmSpec::USUAL
};

fn run<A: Adjacency>(input: &KernelInput<'_, A>) -> Result<KernelResult, EngineError> {
    let triangles = count_triangles(&input.topology.out, input.context)?;
    Ok(("triangles", Figure::Count(triangles)).into())
}

/// Vertices whose lists are in one piece.
const PART: usize = 256;
/// Vertices that a thread takes at a time. Few: a vertex may cost a million looks.
const BATCH: usize = 16;

/// How many sets of three vertices are adjacent to one another. `lists` are those of edges without direction: each edge is in the
/// lists of both its ends. Parallel edges count as one, and self-loops not at all. O(E √E).
///
/// # Errors
/// [`StorageError::Limit`] if the query's time is over, or its memory does not hold the ordered lists.
pub fn count_triangles<A: Adjacency>(lists: &A, context: &QueryContext) -> Result<u64, StorageError> {
    let (ordered, _) = Ordered::of(lists, context)?;
    ordered.visit_all(context, |number, members| ordered.triangles_of(number, members))
}

/// The neighbours of each vertex that precede it in the order of falling degree, each once, by their numbers in that order.
pub(super) struct Ordered {
    parts: Vec<ListChunk>,
    vertices: usize,
    _memory: MemoryHold,
}

/// The lists of [`PART`] consecutive vertices.
struct ListChunk {
    /// One more than there are vertices.
    offsets: Vec<u32>,
    targets: Vec<u32>,
}

impl Ordered {
    /// The lists, and the vertex of each number, which takes 4 bytes a vertex until it is dropped.
    pub(super) fn of<A: Adjacency>(lists: &A, context: &QueryContext) -> Result<(Self, Held<Vec<u32>>), StorageError> {
        let _temporary = context.hold(lists.len() as u64 * 8)?;
        let memory_of_order = context.hold(lists.len() as u64 * 4)?;
        let order = by_falling_degree(lists);
        let mut numbers = vec![0; lists.len()];
        (0..).zip(&order).for_each(|(number, vertex)| numbers[*vertex as usize] = number);
        let bound = |vertices: &[u32]| vertices.iter().map(|vertex| lists.degree(*vertex)).sum::<usize>();
        // Half of all entries lead to a vertex that precedes, and parts that are being built have room for all of theirs.
        let largest = order.par_chunks(PART).map(bound).max().unwrap_or(0);
        let building = (rayon::current_num_threads() * largest) as u64 * 4;
        let mut memory = context.hold(lists.len() as u64 * 5 + lists.edges() * 2 + building)?;
        let parts = order.par_chunks(PART).enumerate().map(|(part, vertices)| {
            context.check_time()?;
            Ok(ListChunk::of(lists, &numbers, part * PART, vertices, bound(vertices)))
        });
        let parts: Vec<ListChunk> = parts.collect::<Result<_, StorageError>>()?;
        let bytes = |part: &ListChunk| (size_of::<ListChunk>() + 4 * (part.offsets.len() + part.targets.len())) as u64;
        context.resize(&mut memory, parts.iter().map(bytes).sum())?;
        Ok((Self { parts, vertices: lists.len(), _memory: memory }, Held::new(order, memory_of_order)))
    }

    /// Does some work with each number on all threads, and returns the sum of what it comes to. It gets a bitmap of numbers, which is
    /// empty, and has to be so again afterwards.
    pub(super) fn visit_all(
        &self,
        context: &QueryContext,
        work: impl Fn(usize, &mut [u64]) -> u64 + Sync,
    ) -> Result<u64, StorageError> {
        let threads = rayon::current_num_threads();
        let words = self.vertices.div_ceil(64);
        let _memory = context.hold((threads * words * 8) as u64)?;
        let next = AtomicUsize::new(0);
        let workers = (0..threads).into_par_iter().with_max_len(1).map(|_| {
            let mut members = vec![0u64; words];
            let mut found = 0;
            loop {
                let first = next.fetch_add(BATCH, Relaxed);
                if first >= self.vertices {
                    return Ok(found);
                }
                context.check_time()?;
                let numbers = first..self.vertices.min(first + BATCH);
                found += numbers.map(|number| work(number, &mut members)).sum::<u64>();
            }
        });
        workers.sum()
    }

    pub(super) fn list(&self, number: usize) -> &[u32] {
        let part = &self.parts[number / PART];
        &part.targets[part.offsets[number % PART] as usize..part.offsets[number % PART + 1] as usize]
    }

    /// The triangles whose last vertex is this one. All bits of `members` are 0, and are again afterwards.
    fn triangles_of(&self, number: usize, members: &mut [u64]) -> u64 {
        let own = self.list(number);
        // A triangle takes two.
        if own.len() < 2 {
            return 0;
        }
        own.iter().for_each(|target| members[*target as usize / 64] |= 1 << (target % 64));
        let bit = |target: &u32| members[*target as usize / 64] >> (target % 64) & 1;
        let found = own.iter().map(|target| self.list(*target as usize).iter().map(bit).sum::<u64>()).sum();
        own.iter().for_each(|target| members[*target as usize / 64] = 0);
        found
    }
}

impl ListChunk {
    /// The lists of the vertices whose numbers begin at `first`; `bound` is the sum of their degrees.
    fn of<A: Adjacency>(lists: &A, numbers: &[u32], first: usize, vertices: &[u32], bound: usize) -> Self {
        let mut offsets = Vec::with_capacity(vertices.len() + 1);
        offsets.push(0);
        let mut targets = Vec::with_capacity(bound);
        let mut cursor = lists.cursor();
        for (own, vertex) in (first as u32..).zip(vertices) {
            // Lists ascend, so parallel edges are next to each other; a self-loop leads to the own number.
            let different = cursor.neighbours(*vertex).chunk_by(|a, b| a == b).map(|same| numbers[same[0] as usize]);
            targets.extend(different.filter(|number| *number < own));
            offsets.push(targets.len() as u32);
        }
        targets.shrink_to_fit();
        Self { offsets, targets }
    }
}

/// All vertices by falling degree, by a counting sort. Those with less than the mean keep their order: their lists are short however
/// they are ordered, and are read faster where they lie next to each other.
fn by_falling_degree<A: Adjacency>(lists: &A) -> Vec<u32> {
    let mean = lists.edges() / lists.len().max(1) as u64;
    // More edges than vertices have only those with parallel ones, and their order is free.
    let degree = |vertex: u32| lists.degree(vertex).clamp(mean.min(lists.len() as u64) as usize, lists.len());
    let mut places = vec![0u32; lists.len() + 1];
    let vertices = 0..lists.len() as u32;
    vertices.clone().for_each(|vertex| places[degree(vertex)] += 1);
    let mut begin = 0;
    for place in places.iter_mut().rev() {
        begin += std::mem::replace(place, begin);
    }
    let mut order = vec![0; lists.len()];
    for vertex in vertices {
        let place = &mut places[degree(vertex)];
        order[*place as usize] = vertex;
        *place += 1;
    }
    order
}
