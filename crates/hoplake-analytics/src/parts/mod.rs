//! Programs over columns by parts: each part of the vertices may be on another machine, and has no column that is longer than itself.
//!
//! ```text
//! part j:  a signal for each of its vertices ──▶ gather, for each part i, those that i needs ─┐
//! part i:  lists, read once ──▶ tiles by source part ──▶ fold tile (i, j) ◀───────────────────┘ ──▶ a value for each of its vertices
//! ```
//! [`plan`] cuts dense ids into parts. A [`Part`] reads its lists once, from the bucket, and regroups them into *tiles*, one for each part that edges come
//! from: sources are then positions in the list of *needed* sources, which that part is sent once. In each superstep part j gathers the
//! needed signals into a short column, and part i folds the columns into its [`Fold`], one after the other, in the order of parts. So a signal travels once
//! to each part that needs it, however many edges lead there, and sums of floats depend on the plan alone.
//!
//! Columns have a row for each vertex that exists; deleted ids have none. The transport is the caller's: `python/hoplake/ray` uses Ray. RFC 0015 has the
//! design.

mod fold;
mod plan;
mod tile;

use std::ops::Range;

use hoplake_engine::{EngineError, Held};
use hoplake_storage::{Branch, MemoryHold, QueryContext};
use rayon::prelude::*;

pub use fold::{ColumnSlice, Fold, SignalSlice, gather};
pub use plan::plan;

use crate::{
    Lists, Workers,
    batch::Batch,
    batches::Batches,
    columns::Column,
    parts::tile::{Rows, Tile, deleted_in},
};

/// The vertices of a part and the edges that lead to them.
#[derive(Debug)]
pub struct Part {
    range: Range<u32>,
    rows: usize,
    /// By the part of their sources.
    tiles: Vec<Tile>,
    edges: u64,
    negative: Option<f64>,
    memory: MemoryHold,
}

impl Part {
    /// Reads the lists of a part, of those that begin at `bounds`, and regroups them. 4 bytes an edge and 8 more for its weight, half as much again
    /// while it reads, 8 for each target of a tile and 4 for each source.
    ///
    /// # Errors
    /// [`EngineError::Invalid`] if there is no such part; [`EngineError::Limit`] at a limit of time or memory; the store's.
    pub async fn load(
        lists: &Lists,
        bounds: &[u32],
        number: usize,
        workers: &Workers,
        branch: &mut Branch,
    ) -> Result<Self, EngineError> {
        let range = check_bounds(lists, bounds, number)?;
        let context = branch.context().clone();
        let (snapshot, selected) = lists.stored()?;
        let mut batches = Batches::new(snapshot, selected, &selected.against, range.clone(), workers, &context)?;
        let mut rows = Rows::new(&range, &lists.deleted);
        let mut tiles: Vec<Tile> = (1..bounds.len()).map(|_| Tile::default()).collect();
        let mut memory = context.hold(0)?;
        let mut pace = context.pace();
        let mut negative = None;
        loop {
            let next = batches.next(branch).await?;
            if next.is_empty() {
                break;
            }
            for batch in next {
                let edges = batch.targets.len() as u64;
                reserve(&mut tiles, &batch, bounds, &mut memory, &context)?;
                let is_negative = |weight: &&f64| !weight.is_finite() || **weight < 0.0;
                negative = negative.or_else(|| batch.weights.iter().find(is_negative).copied());
                append(&mut tiles, &batch, bounds, &mut rows);
                pace.rest(edges / 2 + u64::from(batch.vertices.end - batch.vertices.start)).await?;
                batches.spares().put(batch);
            }
        }
        drop(batches);
        let ranges: Vec<Range<u32>> = bounds.windows(2).map(|ends| ends[0]..ends[1]).collect();
        let needed = tiles.iter().zip(&ranges).map(|(tile, range)| tile.finish_bytes(range)).sum::<u64>();
        let taken = tiles.iter().map(Tile::bytes).sum::<u64>();
        context.resize(&mut memory, taken + needed)?;
        let deleted = lists.deleted.clone();
        let finish = move |context: &QueryContext| {
            let all = tiles.par_iter_mut().zip(&ranges);
            all.try_for_each(|(tile, range)| tile.finish(range, &deleted, context))?;
            Ok::<_, EngineError>(tiles)
        };
        let tiles = workers.run(&context, finish).await??;
        context.resize(&mut memory, tiles.iter().map(Tile::bytes).sum())?;
        let edges = tiles.iter().map(|tile| tile.sources.len() as u64).sum();
        let rows = range.len() - deleted_in(&lists.deleted, &range).len();
        Ok(Self { range, rows, tiles, edges, negative, memory })
    }

    /// The dense ids of its vertices, deleted ones included.
    pub fn range(&self) -> &Range<u32> {
        &self.range
    }

    /// How many vertices it has: a column has as many numbers.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether it has no vertices.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// How many edges lead to them.
    pub fn edges(&self) -> u64 {
        self.edges
    }

    /// A weight that is negative, infinite or not a number, if an edge has one.
    pub fn negative_weight(&self) -> Option<f64> {
        self.negative
    }

    /// What its tiles take, in bytes.
    pub fn bytes(&self) -> u64 {
        self.memory.bytes()
    }

    /// The rows of another part whose signals this one needs, ascending; none if there is no such part.
    pub fn needed(&self, part: usize) -> &[u32] {
        self.tiles.get(part).map_or(&[], |tile| &tile.needed)
    }
}

/// How many edges each vertex of a range signals along, or the sum of their weights. Reads their lists in the direction of edges, once. 8 bytes a
/// vertex of the range.
///
/// # Errors
/// As [`Part::load`].
pub async fn signalled(
    lists: &Lists,
    range: &Range<u32>,
    by_weight: bool,
    workers: &Workers,
    branch: &mut Branch,
) -> Result<Held<Column>, EngineError> {
    let memory = branch.context().hold(range.len() as u64 * 16)?;
    let column = match by_weight {
        true => Column::Floats(lists.of_edges::<f64>(range, workers, branch).await?),
        false => {
            Column::Integers(lists.of_edges::<u32>(range, workers, branch).await?.into_iter().map(i64::from).collect())
        }
    };
    let deleted = deleted_in(&lists.deleted, range);
    let column = column.without(deleted, range.start);
    drop(memory);
    Ok(Held::counted(column, range.len() as u64 * 8, branch.context())?)
}

fn check_bounds(lists: &Lists, bounds: &[u32], number: usize) -> Result<Range<u32>, EngineError> {
    let is_plan = bounds.is_sorted() && bounds.first() == Some(&0) && bounds.last() == Some(&lists.vertices());
    let ends = bounds.get(number..).and_then(|rest| rest.get(..2)).filter(|_| is_plan);
    let message = || {
        let parts = bounds.len().saturating_sub(1);
        EngineError::Invalid(format!(
            "there is no part {number} of {parts}, or they are not parts of {} ids",
            lists.vertices()
        ))
    };
    ends.map(|ends| ends[0]..ends[1]).ok_or_else(message)
}

/// Calls with each part that a list has sources in, and which of its edges these are.
fn by_part(list: &[u32], bounds: &[u32], mut of: impl FnMut(usize, Range<usize>)) {
    let mut begin = 0;
    while let Some(first) = list.get(begin) {
        let part = bounds.partition_point(|bound| bound <= first) - 1;
        let end = begin + list[begin..].partition_point(|source| *source < bounds[part + 1]);
        of(part, begin..end);
        begin = end;
    }
}

/// Makes room for the lists of a batch, whose memory counts first.
fn reserve(
    tiles: &mut [Tile],
    batch: &Batch,
    bounds: &[u32],
    memory: &mut MemoryHold,
    context: &QueryContext,
) -> Result<(), EngineError> {
    let mut counts = vec![(0, 0); tiles.len()];
    for (_, list, _) in batch.lists() {
        by_part(list, bounds, |part, edges| {
            counts[part].0 += 1;
            counts[part].1 += edges.len();
        });
    }
    let is_weighted = !batch.weights.is_empty();
    for (at, (lists, edges)) in counts.into_iter().enumerate() {
        let own = tiles[at].bytes();
        let more = |len: usize, capacity: usize, more: usize| match len + more <= capacity {
            true => 0,
            // By half: growth by itself may double what was counted.
            false => (len + more).max(capacity + capacity / 2) - len,
        };
        let tile = &tiles[at];
        let lists = more(tile.targets.len(), tile.targets.capacity(), lists);
        let edges = more(tile.sources.len(), tile.sources.capacity(), edges);
        if (lists, edges) == (0, 0) {
            continue;
        }
        let edge_bytes = if is_weighted { 12 } else { 4 };
        let grown =
            (lists as u64 + tile.targets.len() as u64) * 8 + (edges as u64 + tile.sources.len() as u64) * edge_bytes;
        let before = memory.bytes();
        // The old arrays are there until the new ones are filled.
        context.resize(memory, before + grown)?;
        let tile = &mut tiles[at];
        tile.targets.reserve_exact(lists);
        tile.lengths.reserve_exact(lists);
        tile.sources.reserve_exact(edges);
        if is_weighted {
            tile.weights.reserve_exact(edges);
        }
        let after = tile.bytes();
        context.resize(memory, before + after - own)?;
    }
    Ok(())
}

fn append(tiles: &mut [Tile], batch: &Batch, bounds: &[u32], rows: &mut Rows<'_>) {
    for (vertex, list, weights) in batch.lists() {
        if list.is_empty() {
            continue;
        }
        let row = rows.of(vertex);
        by_part(list, bounds, |part, edges| {
            let weights = weights.get(edges.clone()).unwrap_or_default();
            tiles[part].push(row, &list[edges], weights);
        });
    }
}

impl Column {
    /// The column without the numbers of deleted ids, of ids from `start` on.
    fn without(self, deleted: &[u32], start: u32) -> Self {
        fn kept<T>(values: Vec<T>, deleted: &[u32], start: u32) -> Vec<T> {
            let mut gone = deleted.iter().peekable();
            (start..)
                .zip(values)
                .filter(|(id, _)| gone.next_if(|gone| *gone == id).is_none())
                .map(|(_, value)| value)
                .collect()
        }
        match self {
            column if deleted.is_empty() => column,
            Self::Integers(values) => Self::Integers(kept(values, deleted, start)),
            Self::Floats(values) => Self::Floats(kept(values, deleted, start)),
        }
    }
}
