//! Shortest paths by delta stepping (Meyer, Sanders: *Δ-stepping: a parallelizable shortest path algorithm*, 2003).
//!
//! Vertices wait in bins of tentative distances, each `delta` wide. The lowest bin is emptied in rounds: its vertices relax their
//! edges, which adds vertices to later bins, or to the same one for the next round. Within a bin the order is free, so threads share
//! it; a vertex is relaxed again when a shorter path turns up, and only then: entries whose path is no longer the shortest are skipped.
//!
//! As in the GAP suite, each thread has bins of its own, and empties a short bin itself before it meets the others (*bin fusion*,
//! Zhang et al., 2020): on a graph with long paths most rounds are short, and a meeting costs more than they do.
//!
//! Distances only fall, and addition of floats is monotonic. So what remains is the least sum over all paths, each added up from its
//! start, whatever the order of work, the width of a bin or the number of threads.

use std::{
    hint::black_box,
    ops::Range,
    sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
};

use hoplake_engine::{EngineError, Held};
use hoplake_storage::{MemoryHold, QueryContext, StorageError};
use rayon::prelude::*;

use super::{CHUNK, UNREACHED, breadth_first_levels, held, weights::source_of};
use crate::{
    Adjacency, Csr, programs,
    registry::{
        AlgorithmSpec, FROM, Kernel, KernelInput, KernelResult, OptionSpec, Program, ProgramInput, ProgramSpec,
        Runnable, Values,
    },
};

/// Lengths of shortest paths, as users see them.
pub(crate) const PATHS: AlgorithmSpec = AlgorithmSpec {
    name: "paths",
    value: Some("length"),
    help: "the length of a shortest path from `--from`, with a property of edges as weight; null if there is none",
    options: &[FROM, WEIGHT],
    program: Some(ProgramSpec { make: program, streamed_bytes: 26, synchronous: None }),
    kernel: Some(Kernel { decoded: run, packed: run }),
    ..AlgorithmSpec::USUAL
};

fn run<A: Adjacency>(input: &KernelInput<'_, A>) -> Result<KernelResult, EngineError> {
    let out = &input.topology.out;
    let start = input.start()?;
    if let Some(weighted) = out.weighted() {
        let settings = ShortestPathSettings::default();
        let found = shortest_path_lengths(weighted, weighted.weights(), start, &settings, input.context)?;
        return Ok(found.map(Values::Lengths).into());
    }
    let found = breadth_first_levels(out, Some(input.against()), start, input.context)?;
    let length = |level: &u32| if *level == UNREACHED { f64::INFINITY } else { (*level).into() };
    let memory = input.context.hold(out.len() as u64 * 8)?;
    Ok(Held::new(Values::Lengths(found.iter().map(length).collect()), memory).into())
}

fn program(input: ProgramInput<'_>) -> Result<Box<dyn Program>, EngineError> {
    Ok(Box::new(Runnable::new(programs::ShortestPaths { start: input.start()? }, Values::Lengths)))
}

const WEIGHT: OptionSpec = OptionSpec::weight(
    "The property of edges that is their length: a number, 0 or more, that every edge has; without it each edge is 1 long",
);

/// Vertices of a bin that a thread takes at a time.
const BATCH: usize = 64;
/// Vertices whose lists a thread begins to read together, and the cache lines of each: a list lies anywhere in main memory, and
/// waiting for it costs more than following its edges.
const GROUP: usize = 16;
const LINES: usize = 2;
/// Targets of a cache line.
const LINE: usize = 16;
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
        if let Some(sum) = sum_of(weights) {
            return Ok(sum);
        }
        let is_wrong = |weight: &W| {
            let weight: f64 = (*weight).into();
            weight.is_nan() || weight < 0.0
        };
        let place = weights.iter().position(is_wrong).expect("a weight of this chunk is wrong");
        let source = source_of(out, number * CHUNK * 16 + place);
        let weight = weights[place].into();
        Err(EngineError::Invalid(format!(
            "an edge of vertex {source} (by dense id) has the weight {weight}; \
            shortest paths need weights of 0 and more"
        )))
    });
    let sums: Vec<Result<f64, EngineError>> = chunks.collect();
    // The first error in the order of edges, whatever was found first.
    sums.into_iter().sum()
}

/// The sum of the finite weights; `None` if one is negative or not a number.
fn sum_of<W: Copy + Into<f64>>(weights: &[W]) -> Option<f64> {
    // Eight sums, which the processor adds to at once.
    let mut sums = [0.0; 8];
    let mut valid = true;
    for weights in weights.chunks(8) {
        for (sum, weight) in sums.iter_mut().zip(weights) {
            let weight: f64 = (*weight).into();
            valid &= weight >= 0.0;
            *sum += if weight < f64::INFINITY { weight } else { 0.0 };
        }
    }
    valid.then(|| sums.iter().sum())
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
        let mut memory = self.context.hold(ENTRY_BYTES)?;
        let mut frontier = vec![Entry::new(start, 0.0)];
        let mut lowest = 0;
        loop {
            let next = AtomicUsize::new(0);
            let rounds = workers.par_iter_mut().with_max_len(1);
            rounds.try_for_each(|bins| self.empty(&frontier, &next, lowest, bins))?;
            frontier.clear();
            let Some(bin) = workers.iter().filter_map(|bins| bins.lowest_from(lowest)).min() else { return Ok(()) };
            let length: usize = workers.iter().map(|bins| bins.len(bin)).sum();
            self.context.resize(&mut memory, ENTRY_BYTES * length.max(frontier.capacity()) as u64)?;
            frontier.reserve_exact(length);
            workers.iter_mut().for_each(|bins| bins.drain(bin, &mut frontier));
            lowest = bin;
            if bin == workers[0].base + BINS as u64 {
                lowest = self.distribute(&mut frontier, &mut workers)?;
            }
        }
    }

    /// Takes batches of the frontier, which is the lowest bin, until there are none, and then empties what it added to that bin.
    fn empty(&self, frontier: &[Entry], next: &AtomicUsize, lowest: u64, bins: &mut Bins) -> Result<(), StorageError> {
        loop {
            let begin = next.fetch_add(BATCH, Relaxed);
            let Some(rest) = frontier.get(begin..) else { break };
            self.context.check_time()?;
            self.relax_all(&rest[..BATCH.min(rest.len())], bins)?;
        }
        let mut own = Vec::new();
        while (1..FUSION_MAX).contains(&bins.len(lowest)) {
            self.context.check_time()?;
            own.clear();
            bins.drain(lowest, &mut own);
            self.relax_all(&own, bins)?;
        }
        Ok(())
    }

    /// Offers paths through vertices to all of their neighbours.
    fn relax_all(&self, entries: &[Entry], bins: &mut Bins) -> Result<(), StorageError> {
        for entries in entries.chunks(GROUP) {
            let mut lists = [const { 0..0 }; GROUP];
            for (list, entry) in lists.iter_mut().zip(entries) {
                // Else a shorter path was found since, which has an entry of its own.
                if self.distance(entry.vertex) as f32 == entry.distance {
                    *list = self.out.range(entry.vertex);
                }
            }
            for edge in lists.iter().flat_map(|list| list.clone().step_by(LINE).take(LINES)) {
                black_box((self.out.target(edge), self.weights[edge]));
            }
            // Those of entries that are skipped are empty.
            for (list, entry) in lists.into_iter().zip(entries).filter(|(list, _)| !list.is_empty()) {
                self.relax(entry.vertex, list, bins)?;
            }
        }
        Ok(())
    }

    /// Offers paths through a vertex to the ends of its edges.
    fn relax(&self, vertex: u32, edges: Range<usize>, bins: &mut Bins) -> Result<(), StorageError> {
        let distance = self.distance(vertex);
        for (target, weight) in self.out.neighbours(vertex).iter().zip(&self.weights[edges]) {
            let through = distance + (*weight).into();
            let known = &self.distances[*target as usize];
            // Read first: a write takes the cache line from the other processors.
            if through.to_bits() < known.load(Relaxed)
                && through.to_bits() < known.fetch_min(through.to_bits(), Relaxed)
            {
                bins.add(self.bin_of(through), Entry::new(*target, through), self.context)?;
            }
        }
        Ok(())
    }

    /// Puts the entries of the bin of what is farther into bins, and returns the lowest of them.
    fn distribute(&self, frontier: &mut Vec<Entry>, workers: &mut [Bins]) -> Result<u64, StorageError> {
        let before = workers[0].base + BINS as u64;
        let bin = |entry: &Entry| self.bin_of(self.distance(entry.vertex));
        frontier.retain(|entry| self.distance(entry.vertex) as f32 == entry.distance);
        let lowest = frontier.iter().map(bin).min().unwrap_or(before);
        workers.iter_mut().for_each(|bins| bins.base = lowest);
        let count = workers.len();
        for (number, entry) in frontier.drain(..).enumerate() {
            workers[number / BATCH % count].add(bin(&entry), entry, self.context)?;
        }
        Ok(lowest)
    }
}

/// A vertex that was reached on a shorter path than before, and that path's length, rounded: an entry of 8 bytes, where one in
/// many million is taken for current though it is not, which costs time only.
#[derive(Debug, Clone, Copy)]
struct Entry {
    vertex: u32,
    distance: f32,
}

const ENTRY_BYTES: u64 = size_of::<Entry>() as u64;

impl Entry {
    fn new(vertex: u32, distance: f64) -> Self {
        Self { vertex, distance: distance as f32 }
    }
}

/// The bins of a thread.
struct Bins {
    /// The number of the first bin.
    base: u64,
    /// [`BINS`] bins, and one for what is farther.
    bins: Vec<Vec<Entry>>,
    /// What they can take without growing.
    memory: MemoryHold,
}

impl Bins {
    fn new(context: &QueryContext) -> Result<Self, StorageError> {
        let memory = context.hold(((BINS + 1) * size_of::<Vec<Entry>>()) as u64)?;
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

    fn add(&mut self, bin: u64, entry: Entry, context: &QueryContext) -> Result<(), StorageError> {
        let place = self.place(bin);
        if self.bins[place].len() == self.bins[place].capacity() {
            self.grow(place, context)?;
        }
        self.bins[place].push(entry);
        Ok(())
    }

    #[cold]
    fn grow(&mut self, place: usize, context: &QueryContext) -> Result<(), StorageError> {
        let more = self.bins[place].capacity().max(BATCH);
        let bytes = self.memory.bytes() + ENTRY_BYTES * more as u64;
        context.resize(&mut self.memory, bytes)?;
        self.bins[place].reserve_exact(more);
        Ok(())
    }

    /// Moves the entries of a bin behind others, whose memory counts elsewhere.
    fn drain(&mut self, bin: u64, into: &mut Vec<Entry>) {
        let place = self.place(bin);
        into.append(&mut self.bins[place]);
    }
}
