//! Asynchronous runs over streamed lists: ranges of vertices with a reason are read, and the others are not.
//!
//! Lists that are streamed are those against the edges, which do not say which vertices a signal reaches. The first step reads all
//! lists, and counts the edges from each range to each other. From then on a range whose signals have changed gives its score to
//! others in proportion to the edges that lead there. That is exact by range if degrees are known, and an estimate of what waits in
//! each of them; a range that no edge leads to gets nothing, so what has no reason has missed nothing.
//!
//! A range that signals mostly to itself, as on a road or a grid, is gone through several times while its lists are in memory.

use std::{collections::VecDeque, ops::Range, sync::Arc};

use hoplake_storage::{Branch, QueryContext};
use rayon::prelude::*;

use super::{AsyncSettings, Course, Done, Shared};
use crate::{
    Progress, RunError, Step, VertexProgram,
    batch::Batch,
    batches::Batches,
    lists::{AdjacencySlice, CHUNK, Lists, Origin, pieces_of},
    run::Waiting,
    stores::StateStore,
};

/// The most ranges: 4 MiB for the edges between each two of them.
const RANGES_MAX: u32 = 1 << 10;

/// Ranges that are apart and on their way at once, within the bytes that are read ahead.
const IN_FLIGHT: usize = 4;

/// How often a chunk is gone through at most while its lists are there. A path that turns around as often within a chunk is followed
/// to its end.
const SWEEPS_MAX: usize = 8;

/// Chunks that a worker goes through one after the other, and what they came to.
struct Item {
    range: usize,
    /// Consecutive, of one chunk.
    pieces: Vec<AdjacencySlice>,
    sweeps_max: usize,
    /// Whether it is all of its range.
    is_whole: bool,
}

struct Swept<A> {
    range: usize,
    done: Done<A>,
    /// The scores of signals that changed: each of them for the edges of its vertex, or, if degrees are unknown, for one.
    score: f64,
    /// Whether no signal within it changed any more, and it is all of the range.
    is_quiet: bool,
    /// The ranges that edges lead from, and how many, in the first step.
    edges: Vec<(u32, u32)>,
}

pub(super) async fn run<P: VertexProgram>(
    program: &Arc<P>,
    lists: &Lists,
    store: &Arc<dyn StateStore<P::State>>,
    settings: &AsyncSettings,
    mut observe: impl FnMut(&Progress<P::Aggregate>),
    branch: &mut Branch,
) -> Result<Progress<P::Aggregate>, RunError> {
    let size = range_size(lists.vertices());
    let bytes = Ranges::bytes(lists.vertices().div_ceil(size), settings.workers.threads());
    let (shared, _ended) = Shared::new(program, lists, store, bytes, &settings.workers, branch).await?;
    let mut ranges = Ranges::new(lists.vertices(), size, P::NEEDS_DEGREES, settings.threshold);
    let mut course = Course::begin(shared, size, settings).await?;
    loop {
        if course.progress.superstep > 0 {
            course.progress.waiting = Some(ranges.waiting(settings.threshold));
            observe(&course.progress);
        }
        if !course.goes_on(ranges.waiting(settings.threshold), f64::INFINITY) {
            return course.end().await;
        }
        let sum: f64 = ranges.reasons.iter().sum();
        let number = course.progress.superstep + 1;
        // What waits is an estimate by range. If it says that the run is over, all that wait go once more: what changes then is
        // all that anyone can have missed.
        let is_last = number > 1 && program.is_settled(sum, &course.progress.aggregate);
        let chosen = ranges.choose(number, settings, is_last);
        let missed = one_step(&mut course, &mut ranges, lists, &chosen, branch).await?;
        if is_last && program.is_settled(missed, &course.progress.aggregate) {
            course.progress.waiting = Some(ranges.waiting(settings.threshold));
            observe(&course.progress);
            return course.end().await;
        }
    }
}

/// Vertices of a range.
fn range_size(vertices: u32) -> u32 {
    vertices.div_ceil(RANGES_MAX).div_ceil(CHUNK).max(1).saturating_mul(CHUNK)
}

/// Reads and computes the chosen ranges. Returns the scores of the signals that changed.
async fn one_step<P: VertexProgram>(
    course: &mut Course<P>,
    ranges: &mut Ranges,
    lists: &Lists,
    chosen: &[usize],
    branch: &mut Branch,
) -> Result<f64, RunError> {
    let step = course.next_step();
    let workers = course.settings.workers.clone();
    chosen.iter().for_each(|range| course.blocks[*range] = P::Aggregate::default());
    let next_to = |a: &usize, b: &usize| a + 1 == *b;
    let runs = chosen.chunk_by(next_to).filter_map(|run| Some((*run.first()?, *run.last()?)));
    let mut runs: VecDeque<_> =
        runs.map(|(first, last)| ranges.vertices(first).start..ranges.vertices(last).end).collect();
    // Each has its share from the beginning, so that the last that is asked for finds room.
    let ahead_bytes = lists.ahead_bytes(branch.context()) / runs.len().clamp(1, IN_FLIGHT) as u64;
    let mut in_flight: VecDeque<Batches> = VecDeque::new();
    let mut missed = 0.0;
    loop {
        while in_flight.len() < IN_FLIGHT
            && let Some(vertices) = runs.pop_front()
            && let Some(mut batches) = lists.batches(vertices, &workers, ahead_bytes, branch.context())?
        {
            batches.ask(branch).await?;
            in_flight.push_back(batches);
        }
        let Some(mut batches) = in_flight.pop_front() else { break };
        loop {
            let next = batches.next(branch).await?;
            if next.is_empty() {
                break;
            }
            let items = ranges.items(next, step.number);
            items.iter().for_each(|item| ranges.begin(item));
            let shared = course.shared.clone();
            let step = step.clone();
            let by_edges = ranges.by_edges;
            let count = (step.number == 1).then_some((ranges.size, ranges.reasons.len()));
            let sweep = move |_: &QueryContext| {
                let swept = items.par_iter().map(|item| sweep(&shared, item, count, by_edges, &step));
                swept.collect::<Result<Vec<_>, RunError>>()
            };
            let swept = workers.run(&course.shared.context, sweep).await??;
            // All edges first: each of these may have missed what the others changed meanwhile.
            swept.iter().for_each(|swept| ranges.learn(swept));
            for swept in swept {
                course.count(&swept.done);
                ranges.take(&swept);
                missed += ranges.weighted(&swept);
                course.shared.program.merge(&mut course.blocks[swept.range], swept.done.aggregate);
            }
        }
    }
    course.progress.aggregate = course.shared.sum(&course.blocks);
    Ok(missed)
}

/// Has all vertices of an item collect, and goes through their lists in the other direction as long as signals within it change.
/// `count` is the size and number of ranges if edges are to be counted.
fn sweep<P: VertexProgram>(
    shared: &Shared<P>,
    item: &Item,
    count: Option<(u32, usize)>,
    by_edges: bool,
    step: &Step<P::Aggregate>,
) -> Result<Swept<P::Aggregate>, RunError> {
    let edges = count.map_or_else(Vec::new, |(size, ranges)| item.count(size, ranges));
    let (Some(first), Some(last)) = (item.pieces.first(), item.pieces.last()) else {
        return Err(hoplake_engine::EngineError::Internal("an item has no vertices".into()).into());
    };
    let vertices = first.vertices.start..last.vertices.end;
    let mut collections = 0;
    let mut changed = 0;
    let mut score = 0.0;
    let mut sweeps = 1;
    // Signals that changed in the last sweep.
    let mut latest = 0;
    let (_, aggregate) = shared.change(vertices.clone(), |states| {
        let mut collect = |id: u32, list: &[u32], weights: &[f64]| {
            let vertex = shared.vertex(id);
            let state = &mut states[(id - vertices.start) as usize];
            collections += 1;
            changed += u64::from(shared.collect(&vertex, state, list, weights, step));
            let scored = shared.signal(&vertex, state);
            score += scored * if by_edges { f64::from(vertex.degree) } else { 1.0 };
            u64::from(scored > 0.0)
        };
        for piece in &item.pieces {
            let mut lists = piece.batch().into_iter().flat_map(|batch| batch.lists_of(&piece.vertices)).peekable();
            for id in shared.present(piece.vertices.clone()) {
                let list = lists.next_if(|(with_list, ..)| *with_list == id);
                let (list, weights) = list.map_or_else(Default::default, |(_, list, weights)| (list, weights));
                latest += collect(id, list, weights);
            }
        }
        while latest > 0 && sweeps < item.sweeps_max {
            latest = 0;
            let lists = item.pieces.iter().flat_map(|piece| piece.batch().map(|batch| batch.lists_of(&piece.vertices)));
            let lists = lists.flatten();
            if sweeps % 2 == 1 {
                lists.rev().for_each(|(id, list, weights)| latest += collect(id, list, weights));
            } else {
                lists.for_each(|(id, list, weights)| latest += collect(id, list, weights));
            }
            sweeps += 1;
        }
    })?;
    let done = Done { collections, changed, aggregate };
    Ok(Swept { range: item.range, done, score, is_quiet: latest == 0 && item.is_whole, edges })
}

impl Item {
    /// Counts the edges of its lists by the range that they come from, of `ranges` ranges of `size` vertices.
    fn count(&self, size: u32, ranges: usize) -> Vec<(u32, u32)> {
        let mut counts = vec![0u32; ranges];
        let lists = self.pieces.iter().flat_map(|piece| piece.batch().map(|batch| batch.lists_of(&piece.vertices)));
        for (_, list, _) in lists.flatten() {
            list.iter().for_each(|source| counts[(source / size) as usize] += 1);
        }
        // Few are left where vertices have few edges, of which many items may wait for their turn.
        (0..).zip(counts).filter(|(_, count)| *count > 0).collect()
    }
}

impl AdjacencySlice {
    fn batch(&self) -> Option<&Batch> {
        match &self.origin {
            Origin::Batch(batch) => Some(batch),
            Origin::Topology(_) => None,
        }
    }
}

/// Ranges of vertices, and what reason each has to be read.
struct Ranges {
    len: u32,
    size: u32,
    /// What may wait in each.
    reasons: Vec<f64>,
    /// The step before which each was first seen to wait; 0 if it does not.
    since: Vec<usize>,
    /// The edges from each range to each other, row by row.
    edges: Vec<u32>,
    /// The edges from each to all.
    edges_from: Vec<u64>,
    /// Whether scores are of edges, and not of vertices.
    by_edges: bool,
}

impl Ranges {
    /// What a number of ranges takes, with what each worker counts in the first step.
    fn bytes(ranges: u32, threads: usize) -> u64 {
        let ranges = u64::from(ranges);
        ranges * ranges * 4 + ranges * (32 + threads as u64 * 64)
    }

    fn new(vertices: u32, size: u32, by_edges: bool, threshold: f64) -> Self {
        let ranges = vertices.div_ceil(size) as usize;
        Self {
            len: vertices,
            size,
            // All go in the first step.
            reasons: vec![threshold.max(1.0); ranges],
            since: vec![0; ranges],
            edges: vec![0; ranges * ranges],
            edges_from: vec![0; ranges],
            by_edges,
        }
    }

    fn vertices(&self, range: usize) -> Range<u32> {
        let first = range as u32 * self.size;
        first..self.len.min(first.saturating_add(self.size))
    }

    fn has_reason(&self, range: usize, threshold: f64) -> bool {
        self.reasons[range] > 0.0 && self.reasons[range] >= threshold
    }

    fn waiting(&self, threshold: f64) -> Waiting {
        let waiting = (0..self.reasons.len()).filter(|range| self.has_reason(*range, threshold));
        let none = Waiting { count: 0, greatest_score: 0.0 };
        waiting.fold(none, |so_far, range| Waiting {
            count: so_far.count + self.vertices(range).len() as u64,
            greatest_score: so_far.greatest_score.max(self.reasons[range]),
        })
    }

    /// The ranges of a step, ascending: the greatest that have half of all that waits, and those that have waited long enough;
    /// or all that wait.
    fn choose(&mut self, step: usize, settings: &AsyncSettings, all: bool) -> Vec<usize> {
        let staleness_max = settings.staleness_max;
        let mut waiting = Vec::new();
        for range in 0..self.reasons.len() {
            if self.has_reason(range, settings.threshold) {
                waiting.push(range);
                self.since[range] = if self.since[range] == 0 { step } else { self.since[range] };
            }
        }
        waiting.sort_by(|a, b| self.reasons[*b].total_cmp(&self.reasons[*a]));
        let half = waiting.iter().map(|range| self.reasons[*range]).sum::<f64>() / 2.0;
        let mut above = 0.0;
        waiting.retain(|range| {
            let is_great = above < half;
            above += self.reasons[*range];
            all || is_great || step == 1 || step - self.since[*range] >= staleness_max
        });
        waiting.sort_unstable();
        waiting
    }

    /// What workers do with some batches.
    fn items(&self, batches: Vec<Batch>, step: usize) -> Vec<Item> {
        let mut items: Vec<Item> = Vec::new();
        for piece in batches.into_iter().map(Arc::new).flat_map(pieces_of) {
            let range = (piece.vertices.start / self.size) as usize;
            let is_local = step > 1 && self.is_local(range);
            match items.last_mut() {
                Some(last) if is_local && last.pieces[0].vertices.start / CHUNK == piece.vertices.start / CHUNK => {
                    last.pieces.push(piece);
                }
                _ => {
                    let sweeps_max = if is_local { SWEEPS_MAX } else { 1 };
                    items.push(Item { range, pieces: vec![piece], sweeps_max, is_whole: false });
                }
            }
        }
        for item in &mut items {
            let vertices: usize = item.pieces.iter().map(|piece| piece.vertices.len()).sum();
            item.is_whole = vertices == self.vertices(item.range).len();
        }
        items
    }

    /// Whether at least half of a range's edges lead to itself.
    fn is_local(&self, range: usize) -> bool {
        u64::from(self.edges[range * self.reasons.len() + range]) * 2 > self.edges_from[range]
    }

    /// Notes that a range is about to see all signals.
    fn begin(&mut self, item: &Item) {
        let is_first = item.pieces.first().is_some_and(|piece| piece.vertices.start % self.size == 0);
        if is_first {
            self.reasons[item.range] = 0.0;
            self.since[item.range] = 0;
        }
    }

    /// What the changes of an item matter to all ranges together.
    fn weighted(&self, swept: &Swept<impl Sized>) -> f64 {
        let vertices = self.vertices(swept.range).len().max(1) as f64;
        if self.by_edges { swept.score } else { swept.score * self.edges_from[swept.range] as f64 / vertices }
    }

    /// Adds the edges that an item has counted.
    fn learn(&mut self, swept: &Swept<impl Sized>) {
        let ranges = self.reasons.len();
        for (from, edges) in &swept.edges {
            let known = &mut self.edges[*from as usize * ranges + swept.range];
            *known = known.saturating_add(*edges);
            self.edges_from[*from as usize] += u64::from(*edges);
        }
    }

    /// Gives the score of an item to those that it signals to.
    fn take(&mut self, swept: &Swept<impl Sized>) {
        let ranges = self.reasons.len();
        if swept.score <= 0.0 {
            return;
        }
        let total = self.edges_from[swept.range];
        let score = self.weighted(swept);
        let row = &self.edges[swept.range * ranges..][..ranges];
        for (to, edges) in row.iter().enumerate() {
            let is_heard = to == swept.range && swept.is_quiet;
            if *edges > 0 && !is_heard {
                self.reasons[to] += score * f64::from(*edges) / total as f64;
            }
        }
    }
}
