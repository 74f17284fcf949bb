//! Breadth-first levels, from whichever side is cheaper (Beamer, Asanović, Patterson: *Direction-optimizing breadth-first search*,
//! 2012).
//!
//! Top down, the vertices of a level look at all their edges. Where a level has a large part of all edges, most of these lead to
//! vertices that are known. Then it is cheaper bottom up: each unknown vertex looks for one neighbour in the level, and stops at
//! the first.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use hoplake_engine::{EngineError, Held};
use hoplake_storage::{QueryContext, StorageError};
use rayon::prelude::*;

use super::{CHUNK, held};
use crate::{
    Adjacency, Cursor, programs,
    registry::{
        AlgorithmSpec, FROM, Kernel, KernelInput, KernelResult, Program, ProgramInput, ProgramSpec, Runnable,
        ValueType, Values,
    },
};

/// Levels, as users see them.
pub(crate) const LEVELS: AlgorithmSpec = AlgorithmSpec {
    name: "levels",
    value: Some("level"),
    help: "the number of edges of a shortest path from `--from`; null if there is none",
    value_type: ValueType::Integer,
    options: &[FROM],
    program: Some(ProgramSpec { make: program, streamed_bytes: 14, synchronous: None }),
    kernel: Some(Kernel { decoded: run, packed: run }),
    ..AlgorithmSpec::USUAL
};

fn run<A: Adjacency>(input: &KernelInput<'_, A>) -> Result<KernelResult, EngineError> {
    let found = breadth_first_levels(&input.topology.out, Some(input.against()), input.start()?, input.context)?;
    Ok(found.map(Values::Integers).into())
}

fn program(input: ProgramInput<'_>) -> Result<Box<dyn Program>, EngineError> {
    Ok(Box::new(Runnable::new(programs::Levels { start: input.start()? }, Values::Integers)))
}

/// The level of a vertex that cannot be reached.
pub const UNREACHED: u32 = u32::MAX;

/// A level goes bottom up if it has more than this part of the edges that were not looked at, and top down again if it has less
/// than that part of the vertices. The values are the paper's, as the GAP suite has them.
const ALPHA: u64 = 15;
const BETA: usize = 18;

/// The number of edges of a shortest path from `start` to each vertex; [`UNREACHED`] where there is none. `against` has the same
/// edges from their other ends: `out` itself if edges have no direction. Without it every level goes top down.
///
/// # Errors
/// [`StorageError::Limit`] if the query's time is over, or its memory does not hold the levels.
///
/// # Panics
/// If there is no vertex `start`.
pub fn breadth_first_levels<A: Adjacency>(
    out: &A,
    against: Option<&A>,
    start: u32,
    context: &QueryContext,
) -> Result<Held<Vec<u32>>, StorageError> {
    // Levels, a frontier of at most all vertices, the next one in parts and in one piece, and three bitmaps.
    let memory = context.hold(out.len() as u64 * 17)?;
    let levels: Vec<AtomicU32> = (0..out.len()).map(|_| AtomicU32::new(UNREACHED)).collect();
    levels[start as usize].store(0, Relaxed);
    let mut search = Search { out, levels: &levels, level: 0, context };
    let mut frontier = vec![start];
    let mut edges_left = out.edges();
    while !frontier.is_empty() {
        let edges = search.edges_of(&frontier);
        match against.filter(|_| edges > edges_left / ALPHA) {
            Some(against) => frontier = search.bottom_up(against, &frontier)?,
            None => frontier = search.top_down(&frontier)?,
        }
        edges_left = edges_left.saturating_sub(edges);
    }
    Ok(held(levels.into_iter().map(AtomicU32::into_inner).collect(), 4 * out.len(), memory))
}

struct Search<'a, A> {
    out: &'a A,
    levels: &'a [AtomicU32],
    /// That of the frontier.
    level: u32,
    context: &'a QueryContext,
}

impl<A: Adjacency> Search<'_, A> {
    fn edges_of(&self, frontier: &[u32]) -> u64 {
        frontier.par_iter().map(|vertex| self.out.degree(*vertex) as u64).sum()
    }

    /// The next level, from the edges of this one.
    fn top_down(&mut self, frontier: &[u32]) -> Result<Vec<u32>, StorageError> {
        self.level += 1;
        let found = frontier.par_chunks(CHUNK.min(64)).map(|chunk| {
            self.context.check_time()?;
            let mut found = Vec::new();
            let mut lists = self.out.cursor();
            for vertex in chunk {
                let targets = lists.unordered(*vertex).iter();
                found.extend(targets.filter(|target| self.reach(**target)));
            }
            Ok(found)
        });
        let found: Vec<Vec<u32>> = found.collect::<Result<_, StorageError>>()?;
        Ok(found.concat())
    }

    /// Whether this level is the first to reach a vertex.
    fn reach(&self, vertex: u32) -> bool {
        let level = &self.levels[vertex as usize];
        // Read first: an exchange that fails takes the cache line from the other processors.
        level.load(Relaxed) == UNREACHED && level.compare_exchange(UNREACHED, self.level, Relaxed, Relaxed).is_ok()
    }

    /// Levels from unknown vertices, until one is small again; returns that one.
    fn bottom_up(&mut self, against: &A, frontier: &[u32]) -> Result<Vec<u32>, StorageError> {
        let mut members = vec![0u64; self.levels.len().div_ceil(64)];
        frontier.iter().for_each(|vertex| members[*vertex as usize / 64] |= 1 << (vertex % 64));
        let mut unknown = self.unknown(against)?;
        let mut before = frontier.len();
        loop {
            self.level += 1;
            let mut next = vec![0u64; members.len()];
            let words = next.par_chunks_mut(CHUNK / 64).zip(unknown.par_chunks_mut(CHUNK / 64)).enumerate();
            let found = words.map(|(chunk, (words, unknown))| {
                self.context.check_time()?;
                Ok(self.find_parents(against, &members, chunk * CHUNK, unknown, words))
            });
            let found: usize = found.sum::<Result<usize, StorageError>>()?;
            members = next;
            // A tail of one vertex a level stays as small as it is, and a pass for each of them would be quadratic.
            if found == 0 || (found <= before && found < self.levels.len() / BETA) {
                return Ok(vertices_of(&members));
            }
            before = found;
        }
    }

    /// The vertices that were not reached and may be: a vertex without edges is not looked at again in every level.
    fn unknown(&self, against: &A) -> Result<Vec<u64>, StorageError> {
        let mut unknown = vec![0u64; self.levels.len().div_ceil(64)];
        let chunks = unknown.par_chunks_mut(CHUNK / 64).zip(self.levels.par_chunks(CHUNK)).enumerate();
        chunks.try_for_each(|(chunk, (words, levels))| {
            self.context.check_time()?;
            for (vertex, level) in levels.iter().enumerate() {
                let is_unknown =
                    level.load(Relaxed) == UNREACHED && against.degree((chunk * CHUNK + vertex) as u32) > 0;
                words[vertex / 64] |= u64::from(is_unknown) << (vertex % 64);
            }
            Ok(())
        })?;
        Ok(unknown)
    }

    /// Looks for a member among the neighbours of each unknown vertex from `first` on, and moves the bits of those that have one.
    fn find_parents(
        &self,
        against: &A,
        members: &[u64],
        first: usize,
        unknown: &mut [u64],
        found: &mut [u64],
    ) -> usize {
        let mut count = 0;
        let mut lists = against.cursor();
        let is_member = |parent: u32| members[parent as usize / 64] & (1 << (parent % 64)) != 0;
        for (number, (unknown, found)) in unknown.iter_mut().zip(found).enumerate() {
            for bit in bits_of(*unknown) {
                let vertex = first + number * 64 + bit as usize;
                if lists.any(vertex as u32, is_member) {
                    self.levels[vertex].store(self.level, Relaxed);
                    *found |= 1 << bit;
                }
            }
            *unknown &= !*found;
            count += found.count_ones() as usize;
        }
        count
    }
}

/// The positions of the bits that are set, ascending.
fn bits_of(mut word: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let bit = (word != 0).then(|| word.trailing_zeros())?;
        word &= word - 1;
        Some(bit)
    })
}

/// The vertices whose bits are set, ascending.
fn vertices_of(members: &[u64]) -> Vec<u32> {
    let of_word = |(number, word): (usize, &u64)| bits_of(*word).map(move |bit| number as u32 * 64 + bit);
    members.par_iter().enumerate().flat_map_iter(of_word).collect()
}
