//! The lists of a selection as a stream of batches, in the order of dense ids: what topologies are filled with, and what programs
//! stream.
//!
//! ```text
//! one scan   ─ stored blocks ─▶ group ─ decoded by workers, several groups at once ─▶ batches
//! many scans ─ each so ─▶ batches ─ merged by workers, range by range ──────────────▶ batches
//! ```

use std::{
    collections::{BTreeSet, VecDeque},
    ops::Range,
    sync::Arc,
};

use futures::future::BoxFuture;
use hoplake_engine::{DenseIds, EdgesOf, EngineError, ListBlock, ListRange, ListScan, Snapshot};
use hoplake_format::{FormatError, adjacency::Lists};
use hoplake_storage::{Branch, MemoryHold, QueryContext};
use rayon::prelude::*;

use crate::{Workers, topology::Selected};

/// The most bytes that are read ahead: some extents of 4 MiB are on their way while one is decoded. It is a quarter of the memory
/// that is left where that is less, down to two short extents.
const AHEAD_BYTES: u64 = 32 << 20;
const AHEAD_BYTES_MIN: u64 = 1 << 20;

/// The bytes to read ahead within the memory that a query has left.
pub(crate) fn ahead_bytes(context: &QueryContext) -> u64 {
    (context.memory().left() / 4).clamp(AHEAD_BYTES_MIN, AHEAD_BYTES)
}

/// Edges of a batch, from which on no list is added to it: enough that handing it to a worker costs nothing, and so few that it stays
/// in a processor's cache.
const BATCH_EDGES: usize = 1 << 16;

/// What an edge of a batch takes, with its part of the block that it is decoded from and of the list's bounds; its weight comes on
/// top.
const EDGE_BYTES: u64 = 8;

/// Groups that are decoded at once, for each worker: the slowest of them is waited for.
const GROUPS_A_WORKER: usize = 4;

/// Lists of consecutive vertices.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// The vertices, of which many may have no list.
    pub(crate) vertices: Range<u32>,
    /// Those that have one, ascending.
    pub(crate) with_lists: Vec<u32>,
    /// Where each list begins, and at the end where the last one ends.
    pub(crate) offsets: Vec<usize>,
    /// The other ends, each list ascending.
    pub(crate) targets: Vec<u32>,
    /// The weights of the edges, if they were asked for.
    pub(crate) weights: Vec<f64>,
}

impl Batch {
    /// The lists: a vertex, its neighbours, and the weights of its edges if they were asked for.
    pub(crate) fn lists(&self) -> impl DoubleEndedIterator<Item = (u32, &[u32], &[f64])> + ExactSizeIterator {
        let list = |ends: &[usize]| {
            let weights = self.weights.get(ends[0]..ends[1]).unwrap_or_default();
            (&self.targets[ends[0]..ends[1]], weights)
        };
        let lists = self.offsets.windows(2).map(list);
        self.with_lists.iter().zip(lists).map(|(vertex, (targets, weights))| (*vertex, targets, weights))
    }

    /// The lists of some vertices.
    pub(crate) fn lists_of(&self, vertices: &Range<u32>) -> impl DoubleEndedIterator<Item = (u32, &[u32], &[f64])> {
        let [first, end] = [vertices.start, vertices.end].map(|end| self.with_lists.partition_point(|it| *it < end));
        self.lists().skip(first).take(end - first)
    }

    /// The lists of a vertex and those after it.
    pub(crate) fn lists_from(&self, vertex: u32) -> impl Iterator<Item = (u32, &[u32], &[f64])> {
        self.lists().skip(self.with_lists.partition_point(|with_list| *with_list < vertex))
    }
}

impl Batch {
    /// How many edges some vertices have.
    fn edges_of(&self, vertices: &Range<u32>) -> usize {
        let [first, end] = [vertices.start, vertices.end].map(|end| self.with_lists.partition_point(|it| *it < end));
        self.offsets[end] - self.offsets[first]
    }

    /// Merges two ascending parts of the last list, which begin there.
    fn merge(&mut self, begin: usize, middle: usize) {
        let is_before = |a: usize, b: usize| self.targets[a] <= self.targets[b];
        let end = self.targets.len();
        if middle == begin || middle == end || is_before(middle - 1, middle) {
            return;
        }
        // Edges of both directions, where ids ascend along edges: one part is before the other.
        if is_before(end - 1, begin) {
            self.targets[begin..].rotate_left(middle - begin);
            if let Some(weights) = self.weights.get_mut(begin..).filter(|weights| !weights.is_empty()) {
                weights.rotate_left(middle - begin);
            }
            return;
        }
        let targets = &mut self.targets[begin..];
        // Each part ascends: the stable sort merges such runs, where the unstable one would begin from scratch.
        let Some(weights) = self.weights.get_mut(begin..).filter(|weights| !weights.is_empty()) else {
            return targets.sort();
        };
        let mut edges: Vec<(u32, f64)> = targets.iter().copied().zip(weights.iter().copied()).collect();
        edges.sort_by_key(|(target, _)| *target);
        for ((target, weight), edge) in targets.iter_mut().zip(weights).zip(edges) {
            (*target, *weight) = edge;
        }
    }
}

/// A stream of batches. Each vertex of a range is in one of them, in the order of dense ids.
pub(crate) struct Batches {
    snapshot: Arc<Snapshot>,
    ids: Arc<DenseIds>,
    edges: Vec<EdgesOf>,
    /// The property that is the weight of edges.
    weight: Option<String>,
    workers: Workers,
    /// Labels to come, the first id of each, and the ids of it that are in the range.
    labels: VecDeque<(hoplake_format::LabelId, u64, Range<u64>)>,
    current: Option<Label>,
    /// What the batches that were handed out last take, until the next are asked for.
    memory: MemoryHold,
    ahead_bytes: u64,
    /// What is read ahead.
    _ahead: MemoryHold,
}

/// The label that is being read.
struct Label {
    /// The id of its first vertex.
    base: u64,
    /// The first id that is not in the range.
    end: u64,
    /// The first vertex that was in no batch yet.
    next: u64,
    parts: Vec<Part>,
}

impl Batches {
    /// The lists that a range of vertices has of edges of a selection, in its direction or against it.
    pub(crate) fn new(
        snapshot: &Arc<Snapshot>,
        selected: &Selected,
        edges: &[EdgesOf],
        vertices: Range<u32>,
        workers: &Workers,
        context: &QueryContext,
    ) -> Result<Self, EngineError> {
        Self::within(snapshot, selected, edges, vertices, workers, ahead_bytes(context), context)
    }

    /// As [`Self::new`], with a bound on the bytes that are read ahead.
    pub(crate) fn within(
        snapshot: &Arc<Snapshot>,
        selected: &Selected,
        edges: &[EdgesOf],
        vertices: Range<u32>,
        workers: &Workers,
        ahead_bytes: u64,
        context: &QueryContext,
    ) -> Result<Self, EngineError> {
        let ids = &selected.ids;
        let within =
            |of_label: Range<u64>| of_label.start.max(vertices.start.into())..of_label.end.min(vertices.end.into());
        let labels = ids.by_label().map(|(label, ids)| (label, ids.start, within(ids)));
        Ok(Self {
            ahead_bytes,
            _ahead: context.hold(ahead_bytes)?,
            snapshot: snapshot.clone(),
            ids: ids.clone(),
            edges: edges.to_vec(),
            weight: selected.weight.clone(),
            workers: workers.clone(),
            labels: labels.filter(|(.., ids)| !ids.is_empty()).collect(),
            current: None,
            memory: context.hold(0)?,
        })
    }

    /// Asks for what is read ahead, and does not wait for it.
    pub(crate) async fn ask(&mut self, branch: &mut Branch) -> Result<(), EngineError> {
        if self.current.is_none() {
            self.begin(branch).await?;
        }
        Ok(())
    }

    /// The next batches; none behind the last.
    pub(crate) fn next<'a>(&'a mut self, branch: &'a mut Branch) -> BoxFuture<'a, Result<Vec<Batch>, EngineError>> {
        Box::pin(async move {
            loop {
                if self.current.is_none() && !self.begin(branch).await? {
                    return Ok(Vec::new());
                }
                let Some(label) = &mut self.current else { continue };
                branch.context().resize(&mut self.memory, 0)?;
                let (workers, memory) = (&self.workers, &mut self.memory);
                let batches = match &mut label.parts[..] {
                    [part] => {
                        let groups_max = workers.threads() * GROUPS_A_WORKER;
                        let batches = decode_blocks(part, label.base, groups_max, workers, memory, branch).await?;
                        label.next = part.next;
                        batches
                    }
                    _ => merge_parts(label, workers, memory, branch).await?,
                };
                if !batches.is_empty() {
                    return Ok(batches);
                }
                // Those behind the last list.
                let rest = label.next as u32..label.end as u32;
                self.current = None;
                if !rest.is_empty() {
                    return Ok(vec![Batch { vertices: rest, offsets: vec![0], ..Batch::default() }]);
                }
            }
        })
    }

    /// Goes on to the next label; `false` behind the last.
    async fn begin(&mut self, branch: &mut Branch) -> Result<bool, EngineError> {
        let Some((label, base, ids)) = self.labels.pop_front() else { return Ok(false) };
        let of_label = self.edges.iter().filter(|of| of.near == label);
        let share = self.ahead_bytes / of_label.clone().count().max(1) as u64;
        let weight = self.weight.as_deref();
        let context = branch.context();
        let part = |of: &EdgesOf| {
            let vertices = (base, ids.clone());
            Part::new(&self.snapshot, &self.ids, *of, vertices, weight, share, context).transpose()
        };
        let parts = of_label.filter_map(part);
        let mut parts: Vec<_> = parts.collect::<Result<_, EngineError>>()?;
        // All ask before the first is waited for: else each edge type would take a wave of its own.
        for part in &mut parts {
            part.scan.ask(branch).await?;
        }
        self.current = Some(Label { base, end: ids.end, next: ids.start, parts });
        Ok(true)
    }
}

/// Batches of a scan, at most `groups_max`; none behind the last.
async fn decode_blocks(
    part: &mut Part,
    base: u64,
    groups_max: usize,
    workers: &Workers,
    memory: &mut MemoryHold,
    branch: &mut Branch,
) -> Result<Vec<Batch>, EngineError> {
    let mut groups = Vec::new();
    while groups.len() < groups_max {
        let (mut blocks, mut edges, mut may_go_on) = (Vec::new(), 0, false);
        // A list is not divided, so that a program sees all of it.
        while edges < BATCH_EDGES || may_go_on {
            let Some(block) = part.scan.next_block(branch).await? else { break };
            edges += block.edges();
            let held = memory.bytes() + block.edges() as u64 * part.edge_bytes;
            branch.context().resize(memory, held)?;
            may_go_on = block.may_go_on();
            blocks.push(block);
        }
        let Some(last) = blocks.last() else { break };
        // Vertices before the first list and after the last group have none, and are in this batch, too.
        let end = (base + last.sources().end).max(part.next);
        groups.push(Group { blocks, vertices: part.next as u32..end as u32, base, reach: part.reach.clone() });
        part.next = end;
    }
    let decode = |context: &QueryContext| {
        let decoded = groups.into_par_iter().map(|group| {
            context.check_time()?;
            group.decode()
        });
        decoded.collect::<Result<Vec<_>, EngineError>>()
    };
    workers.run(branch.context(), decode).await?
}

/// Blocks that make a batch.
struct Group {
    blocks: Vec<ListBlock>,
    vertices: Range<u32>,
    base: u64,
    reach: Reach,
}

impl Group {
    fn decode(self) -> Result<Batch, EngineError> {
        let mut lists = Lists::default();
        let edges = self.blocks.iter().map(ListBlock::edges).sum();
        let mut batch =
            Batch { vertices: self.vertices, offsets: vec![0], targets: Vec::with_capacity(edges), ..Batch::default() };
        for block in self.blocks {
            batch.weights.extend(block.decode(&mut lists)?);
            for (source, _, targets) in lists.iter() {
                let vertex = (self.base + source) as u32;
                if !batch.vertices.contains(&vertex) {
                    return Err(self.reach.damaged("its sources are not those that its header says"));
                }
                batch.targets.extend(self.reach.ids_of(targets)?);
                // A hub's list goes on from the block before.
                if batch.with_lists.last() == Some(&vertex) {
                    batch.offsets.pop();
                } else {
                    batch.with_lists.push(vertex);
                }
                batch.offsets.push(batch.targets.len());
            }
        }
        Ok(batch)
    }
}

/// Batches of a label with several scans, or none. Each scan is decoded by itself, as far ahead as the others need; what all have is
/// merged, range by range on all workers.
async fn merge_parts(
    label: &mut Label,
    workers: &Workers,
    memory: &mut MemoryHold,
    branch: &mut Branch,
) -> Result<Vec<Batch>, EngineError> {
    let Label { base, next, parts, .. } = label;
    let groups_max = (workers.threads() * GROUPS_A_WORKER).div_ceil(parts.len().max(1));
    for part in parts.iter_mut() {
        while !part.is_ended && part.next <= *next {
            let mut held = std::mem::replace(&mut part.memory, branch.context().hold(0)?);
            let decoded = decode_blocks(part, *base, groups_max, workers, &mut held, branch).await?;
            part.memory = held;
            part.is_ended = decoded.is_empty();
            part.decoded.extend(decoded.into_iter().map(Arc::new));
        }
    }
    // Of what one scan has not read yet, nothing can be merged.
    let going_on = parts.iter().filter(|part| !part.is_ended).map(|part| part.next).min();
    let bound = going_on.or_else(|| parts.iter().map(|part| part.next).max()).unwrap_or(*next);
    let ends = parts.iter().flat_map(|part| &part.decoded).map(|batch| u64::from(batch.vertices.end));
    let cuts: BTreeSet<u64> = ends.filter(|end| (*next + 1..bound).contains(end)).chain([bound]).collect();
    let mut pieces: Vec<(Range<u32>, Vec<Arc<Batch>>)> = Vec::new();
    for cut in cuts {
        let vertices = *next as u32..cut as u32;
        // No batch ends within.
        let overlaps = |batch: &&Arc<Batch>| batch.vertices.start < vertices.end && batch.vertices.end > vertices.start;
        let inputs = parts.iter().flat_map(|part| part.decoded.iter().filter(overlaps)).cloned().collect();
        if !vertices.is_empty() {
            pieces.push((vertices, inputs));
        }
        *next = (*next).max(cut);
    }
    let edge_bytes = parts.first().map_or(EDGE_BYTES, |part| part.edge_bytes);
    let edges = |(vertices, inputs): &(Range<u32>, Vec<Arc<Batch>>)| -> u64 {
        inputs.iter().map(|batch| batch.edges_of(vertices) as u64).sum()
    };
    let held = pieces.iter().map(|piece| (edges(piece) + u64::from(piece.0.end - piece.0.start)) * edge_bytes).sum();
    branch.context().resize(memory, held)?;
    for part in parts.iter_mut() {
        part.decoded.retain(|batch| u64::from(batch.vertices.end) > bound);
        let left = part.decoded.iter().map(|batch| batch.targets.len() as u64 * part.edge_bytes).sum();
        branch.context().resize(&mut part.memory, left)?;
    }
    let merge = |context: &QueryContext| {
        let merged = pieces.into_par_iter().map(|(vertices, inputs)| {
            context.check_time()?;
            Ok(merge_lists(vertices, &inputs))
        });
        merged.collect::<Result<Vec<_>, EngineError>>()
    };
    workers.run(branch.context(), merge).await?
}

/// The lists that some vertices have in several batches.
fn merge_lists(vertices: Range<u32>, inputs: &[Arc<Batch>]) -> Batch {
    let edges = inputs.iter().map(|batch| batch.edges_of(&vertices)).sum();
    let mut lists: Vec<_> = inputs.iter().map(|batch| batch.lists_of(&vertices).peekable()).collect();
    let (offsets, targets) = (vec![0], Vec::with_capacity(edges));
    let mut merged = Batch { vertices: vertices.clone(), offsets, targets, ..Batch::default() };
    while let Some(vertex) = lists.iter_mut().filter_map(|lists| lists.peek().map(|(vertex, ..)| *vertex)).min() {
        let begin = merged.targets.len();
        for lists in &mut lists {
            if let Some((_, targets, weights)) = lists.next_if(|(with_list, ..)| *with_list == vertex) {
                let middle = merged.targets.len();
                merged.targets.extend_from_slice(targets);
                merged.weights.extend_from_slice(weights);
                merged.merge(begin, middle);
            }
        }
        merged.with_lists.push(vertex);
        merged.offsets.push(merged.targets.len());
    }
    merged
}

/// The lists of an edge type in one direction.
struct Part {
    scan: ListScan,
    reach: Reach,
    edge_bytes: u64,
    /// The first vertex that was not decoded yet.
    next: u64,
    /// What was decoded, and has to be merged with other parts.
    decoded: VecDeque<Arc<Batch>>,
    /// What that takes.
    memory: MemoryHold,
    is_ended: bool,
}

impl Part {
    fn new(
        snapshot: &Arc<Snapshot>,
        ids: &DenseIds,
        of: EdgesOf,
        vertices: (u64, Range<u64>),
        weight: Option<&str>,
        ahead_bytes: u64,
        context: &QueryContext,
    ) -> Result<Option<Self>, EngineError> {
        let (base, vertices) = vertices;
        let sources = vertices.start - base..vertices.end - base;
        let range = ListRange { edge_type: of.edge_type, direction: of.direction, sources };
        let Some(reach) = Reach::new(snapshot, ids, of, &range) else { return Ok(None) };
        let scan = match weight {
            Some(weight) => snapshot.scan_weighted_lists(&range, weight, ahead_bytes)?,
            None => snapshot.scan_lists(&range, ahead_bytes),
        };
        let edge_bytes = EDGE_BYTES + if weight.is_some() { 8 } else { 0 };
        let (decoded, memory) = (VecDeque::new(), context.hold(0)?);
        Ok(Some(Self { scan, reach, edge_bytes, next: vertices.start, decoded, memory, is_ended: false }))
    }
}

/// The label that lists reach.
#[derive(Clone)]
pub(crate) struct Reach {
    ids: Range<u64>,
    /// Which lists, for errors.
    location: String,
}

impl Reach {
    /// What some lists reach; `None` if that label does not take part.
    pub(crate) fn new(snapshot: &Snapshot, ids: &DenseIds, of: EdgesOf, lists: &ListRange) -> Option<Self> {
        let location = format!("{}, lists {lists}", snapshot.reader().store().url());
        Some(Self { ids: ids.of_label(of.far)?, location })
    }

    /// The dense id of its first vertex.
    pub(crate) fn first(&self) -> u32 {
        self.ids.start as u32
    }

    /// That a list, which ascends, names vertices of the label.
    pub(crate) fn check(&self, targets: &[u64]) -> Result<(), EngineError> {
        match targets.last() {
            Some(last) if *last >= self.ids.end - self.ids.start => {
                Err(self.damaged("it names a vertex that the label does not have"))
            }
            _ => Ok(()),
        }
    }

    /// The dense ids of a list's targets, which ascend.
    fn ids_of<'a>(&self, targets: &'a [u64]) -> Result<impl Iterator<Item = u32> + use<'a>, EngineError> {
        self.check(targets)?;
        let base = self.ids.start;
        Ok(targets.iter().map(move |target| (base + target) as u32))
    }

    pub(crate) fn damaged(&self, why: &str) -> EngineError {
        self.failed(FormatError::corrupt("adjacency block", why))
    }

    pub(crate) fn failed(&self, source: FormatError) -> EngineError {
        EngineError::Format { location: self.location.clone(), source }
    }
}
