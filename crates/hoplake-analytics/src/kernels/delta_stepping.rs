//! Shortest paths by delta stepping (Meyer, Sanders: *Δ-stepping: a parallelizable shortest path algorithm*, 2003).
//!
//! Vertices wait in bins of tentative distances, each `delta` wide. The lowest bin is emptied in rounds: its vertices relax their
//! edges, which adds vertices to later bins, or to the same one for the next round. Within a bin the order is free, so threads share
//! it; a vertex may be relaxed again when a shorter path turns up.
//!
//! As in the GAP suite, each thread has bins of its own, and empties a short bin itself before it meets the others (*bin fusion*,
//! Zhang et al., 2020): on a graph with long paths most rounds are short, and a meeting costs more than they do.
//!
//! Distances only fall, and addition of floats is monotonic. So what remains is the least sum over all paths, each added up from its
//! start, whatever the order of work, the width of a bin or the number of threads.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use hoplake_engine::{EngineError, Held};
use hoplake_storage::{MemoryHold, QueryContext, StorageError};
use rayon::prelude::*;

use super::{CHUNK, held};
use crate::{Adjacency, Csr};

/// Vertices of a bin that a thread takes at a time.
const BATCH: usize = 64;
/// A thread empties its own part of the lowest bin alone while that has fewer vertices: the suite's value.
const FUSION_MAX: usize = 1000;
/// Bins at a time. What is farther waits in one more bin, and is distributed when the others are empty.
const BINS: usize = 1024;
/// The bin of all distances beyond it; sums of its number and [`BINS`] do not overflow.
const LAST_BIN: u64 = 1 << 62;

/// How shortest paths are computed. The result does not depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ShortestPathSettings {
    /// The width of a bin, above 0. Narrow bins relax few edges twice, wide ones give threads more to share. By default the
    /// mean weight by the mean degree, so that relaxing a vertex is expected to add one to its own bin.
    pub delta: Option<f64>,
}

/// The least sum of weights of a path from `start` to each vertex; infinite where there is none. `weights` are those of all edges
/// of `out`, in the order of its lists ([`Csr::range`]). Of parallel edges the lightest counts, and a self-loop never does. An edge
/// of infinite weight is none.
///
/// # Errors
/// [`EngineError::Invalid`] if a weight is negative or not a number, or if `delta` is not above 0, before anything is computed;
/// [`EngineError::Limit`] if the query's time is over, or its memory does not hold the distances.
///
/// # Panics
/// If there is no vertex `start`, or not a weight for each edge.
pub fn shortest_path_lengths<W: Copy + Into<f64> + Sync>(
    out: &Csr,
    weights: &[W],
    start: u32,
    settings: &ShortestPathSettings,
    context: &QueryContext,
) -> Result<Held<Vec<f64>>, EngineError> {
    assert_eq!(weights.len() as u64, out.edges(), "a weight for each edge");
    let total = total(out, weights, context)?;
    let delta = match settings.delta {
        Some(delta) if delta > 0.0 => delta,
        Some(delta) => return Err(EngineError::Invalid(format!("the width of a bin is {delta}, and must be above 0"))),
        // Σ weights / E by E / V.
        None if total > 0.0 => total / out.edges() as f64 * out.len() as f64 / out.edges() as f64,
        None => 1.0,
    };
    let memory = context.hold(out.len() as u64 * 8)?;
    let distances: Vec<AtomicU64> = (0..out.len()).map(|_| AtomicU64::new(f64::INFINITY.to_bits())).collect();
    distances[start as usize].store(0f64.to_bits(), Relaxed);
    let search = Search { out, weights, distances: &distances, bins_per_unit: 1.0 / delta, context };
    search.run(start)?;
    let distances = distances.into_iter().map(|bits| f64::from_bits(bits.into_inner())).collect();
    Ok(held(distances, 8 * out.len(), memory))
}

/// The sum of all finite weights, none of which is negative.
fn total<W: Copy + Into<f64> + Sync>(out: &Csr, weights: &[W], context: &QueryContext) -> Result<f64, EngineError> {
    let chunks = weights.par_chunks(CHUNK * 16).enumerate().map(|(number, weights)| {
        context.check_time()?;
        let of_chunk = || weights.iter().map(|weight| -> f64 { (*weight).into() });
        // One pass that vectorizes; which weight it was is looked up only if there is one.
        if of_chunk().fold(true, |valid, weight| valid & (weight >= 0.0)) {
            return Ok(of_chunk().map(|weight| if weight < f64::INFINITY { weight } else { 0.0 }).sum());
        }
        let wrong = of_chunk().position(|weight| weight.is_nan() || weight < 0.0).expect("it is in this chunk");
        let edge = number * CHUNK * 16 + wrong;
        let (source, weight) = (source_of(out, edge), of_chunk().nth(wrong).expect("it is in this chunk"));
        Err(EngineError::Invalid(format!(
            "an edge of vertex {source} (by dense id) has the weight {weight}; \
            shortest paths need weights of 0 and more"
        )))
    });
    let sums: Vec<Result<f64, EngineError>> = chunks.collect();
    // The first error in the order of edges, whatever was found first.
    sums.into_iter().sum()
}

/// The vertex whose list has an edge.
fn source_of(out: &Csr, edge: usize) -> u32 {
    let (mut low, mut high) = (0, out.len() as u32);
    while low < high {
        let middle = low + (high - low) / 2;
        match out.range(middle).end <= edge {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    low
}

struct Search<'a, W> {
    out: &'a Csr,
    weights: &'a [W],
    /// The bits of tentative distances. Those of floats that are not negative have the order of the floats.
    distances: &'a [AtomicU64],
    bins_per_unit: f64,
    context: &'a QueryContext,
}

impl<W: Copy + Into<f64> + Sync> Search<'_, W> {
    /// The number of the bin of a distance. A greater distance never has a lower one, which is all that correctness needs.
    fn bin_of(&self, distance: f64) -> u64 {
        ((distance * self.bins_per_unit) as u64).min(LAST_BIN)
    }

    fn distance(&self, vertex: u32) -> f64 {
        f64::from_bits(self.distances[vertex as usize].load(Relaxed))
    }

    fn run(&self, start: u32) -> Result<(), StorageError> {
        let mut workers = Vec::new();
        for _ in 0..rayon::current_num_threads() {
            workers.push(Bins::new(self.context)?);
        }
        let mut memory = self.context.hold(4)?;
        let mut frontier = vec![start];
        let mut lowest = 0;
        loop {
            let next = AtomicUsize::new(0);
            let rounds = workers.par_iter_mut().with_max_len(1);
            rounds.try_for_each(|bins| self.empty(&frontier, &next, lowest, bins))?;
            frontier.clear();
            let Some(bin) = workers.iter().filter_map(|bins| bins.lowest_from(lowest)).min() else { return Ok(()) };
            let length: usize = workers.iter().map(|bins| bins.len(bin)).sum();
            self.context.resize(&mut memory, 4 * length.max(frontier.capacity()) as u64)?;
            frontier.reserve_exact(length);
            workers.iter_mut().for_each(|bins| bins.drain(bin, &mut frontier));
            lowest = bin;
            if bin == workers[0].base + BINS as u64 {
                lowest = self.distribute(&mut frontier, &mut workers)?;
            }
        }
    }

    /// Takes batches of the frontier, which is the lowest bin, until there are none, and then empties what it added to that bin.
    fn empty(&self, frontier: &[u32], next: &AtomicUsize, lowest: u64, bins: &mut Bins) -> Result<(), StorageError> {
        loop {
            let begin = next.fetch_add(BATCH, Relaxed);
            let Some(rest) = frontier.get(begin..) else { break };
            self.context.check_time()?;
            for vertex in &rest[..BATCH.min(rest.len())] {
                self.relax(*vertex, lowest, bins)?;
            }
        }
        let mut own = Vec::new();
        while (1..FUSION_MAX).contains(&bins.len(lowest)) {
            self.context.check_time()?;
            own.clear();
            bins.drain(lowest, &mut own);
            for vertex in &own {
                self.relax(*vertex, lowest, bins)?;
            }
        }
        Ok(())
    }

    /// Offers a path through a vertex to all of its neighbours.
    fn relax(&self, vertex: u32, lowest: u64, bins: &mut Bins) -> Result<(), StorageError> {
        let distance = self.distance(vertex);
        // Reached on a shorter path since it was added, and relaxed with an earlier bin.
        if self.bin_of(distance) < lowest {
            return Ok(());
        }
        let edges = self.out.range(vertex);
        for (target, weight) in self.out.neighbours(vertex).iter().zip(&self.weights[edges]) {
            let through = distance + (*weight).into();
            let known = &self.distances[*target as usize];
            // Read first: a write takes the cache line from the other processors.
            if through.to_bits() < known.load(Relaxed)
                && through.to_bits() < known.fetch_min(through.to_bits(), Relaxed)
            {
                bins.add(self.bin_of(through), *target, self.context)?;
            }
        }
        Ok(())
    }

    /// Puts the vertices of the bin of what is farther into bins, and returns the lowest of them.
    fn distribute(&self, frontier: &mut Vec<u32>, workers: &mut [Bins]) -> Result<u64, StorageError> {
        let before = workers[0].base + BINS as u64;
        // Those below were reached on a shorter path since, and are done.
        frontier.retain(|vertex| self.bin_of(self.distance(*vertex)) >= before);
        let bin = |vertex: &u32| self.bin_of(self.distance(*vertex));
        let lowest = frontier.iter().map(bin).min().unwrap_or(before);
        workers.iter_mut().for_each(|bins| bins.base = lowest);
        let count = workers.len();
        for (number, vertex) in frontier.drain(..).enumerate() {
            workers[number / BATCH % count].add(self.bin_of(self.distance(vertex)), vertex, self.context)?;
        }
        Ok(lowest)
    }
}

/// The bins of a thread.
struct Bins {
    /// The number of the first bin.
    base: u64,
    /// [`BINS`] bins, and one for what is farther.
    bins: Vec<Vec<u32>>,
    /// What they can take without growing.
    memory: MemoryHold,
}

impl Bins {
    fn new(context: &QueryContext) -> Result<Self, StorageError> {
        let memory = context.hold(((BINS + 1) * size_of::<Vec<u32>>()) as u64)?;
        Ok(Self { base: 0, bins: vec![Vec::new(); BINS + 1], memory })
    }

    fn place(&self, bin: u64) -> usize {
        (bin - self.base).min(BINS as u64) as usize
    }

    fn len(&self, bin: u64) -> usize {
        self.bins[self.place(bin)].len()
    }

    /// The first bin from this one on that has a vertex.
    fn lowest_from(&self, bin: u64) -> Option<u64> {
        let from = self.place(bin);
        let found = self.bins[from..].iter().position(|bin| !bin.is_empty())?;
        Some(self.base + (from + found) as u64)
    }

    fn add(&mut self, bin: u64, vertex: u32, context: &QueryContext) -> Result<(), StorageError> {
        let place = self.place(bin);
        if self.bins[place].len() == self.bins[place].capacity() {
            self.grow(place, context)?;
        }
        self.bins[place].push(vertex);
        Ok(())
    }

    #[cold]
    fn grow(&mut self, place: usize, context: &QueryContext) -> Result<(), StorageError> {
        let more = self.bins[place].capacity().max(BATCH);
        let bytes = self.memory.bytes() + 4 * more as u64;
        context.resize(&mut self.memory, bytes)?;
        self.bins[place].reserve_exact(more);
        Ok(())
    }

    /// Moves the vertices of a bin behind others, whose memory counts elsewhere.
    fn drain(&mut self, bin: u64, into: &mut Vec<u32>) {
        let place = self.place(bin);
        into.append(&mut self.bins[place]);
    }
}
