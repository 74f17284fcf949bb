//! The lists of a selection as a stream of batches, in the order of dense ids: what topologies are filled with, and what programs
//! stream.
//!
//! ```text
//! one scan  ─ stored blocks ─▶ group ─ decoded by workers, several groups at once ─▶ batches
//! many scans ─ decoded, merged source by source ───────────────────────────────────▶ batch
//! ```
//! Where the vertices of a label have lists of one edge type in one direction only, which is what most computations ask for,
//! blocks are decoded in parallel. Else their scans move on together, source by source, on one thread.

use std::{collections::VecDeque, ops::Range, sync::Arc};

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
    /// Sorts the list that begins there, which came in several parts.
    fn sort_from(&mut self, begin: usize) {
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
                let memory = &mut self.memory;
                let batches = match &mut label.parts[..] {
                    [part] => decode_blocks(part, label.base, &mut label.next, &self.workers, memory, branch).await?,
                    parts => merge_lists(parts, label.base, &mut label.next, memory, branch).await?,
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
        let sources = ids.start - base..ids.end - base;
        let parts =
            of_label.filter_map(|of| Part::new(&self.snapshot, &self.ids, *of, &sources, weight, share).transpose());
        let mut parts: Vec<_> = parts.collect::<Result<_, EngineError>>()?;
        // All ask before the first is waited for: else each edge type would take a wave of its own.
        for part in &mut parts {
            part.scan.ask(branch).await?;
        }
        self.current = Some(Label { base, end: ids.end, next: ids.start, parts });
        Ok(true)
    }
}

/// Batches of a label with one scan. `next` moves on behind them.
async fn decode_blocks(
    part: &mut Part,
    base: u64,
    next: &mut u64,
    workers: &Workers,
    memory: &mut MemoryHold,
    branch: &mut Branch,
) -> Result<Vec<Batch>, EngineError> {
    let mut groups = Vec::new();
    while groups.len() < workers.threads() * GROUPS_A_WORKER {
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
        let end = (base + last.sources().end).max(*next);
        groups.push(Group { blocks, vertices: *next as u32..end as u32, base, reach: part.reach.clone() });
        *next = end;
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

/// A batch of a label with several scans, or none.
async fn merge_lists(
    parts: &mut [Part],
    base: u64,
    next: &mut u64,
    memory: &mut MemoryHold,
    branch: &mut Branch,
) -> Result<Vec<Batch>, EngineError> {
    let mut batch = Batch { vertices: *next as u32..*next as u32, offsets: vec![0], ..Batch::default() };
    let mut pace = branch.context().pace();
    let edge_bytes = parts.first().map_or(EDGE_BYTES, |part| part.edge_bytes);
    while batch.targets.len() < BATCH_EDGES {
        let mut first = None;
        for part in parts.iter_mut() {
            let source = part.source(branch).await?;
            first = source.into_iter().chain(first).min();
        }
        let Some(source) = first else { break };
        let (begin, mut lists) = (batch.targets.len(), 0);
        for part in parts.iter_mut() {
            let before = batch.targets.len();
            // A hub's list goes on in the next block.
            while part.source(branch).await? == Some(source) {
                part.take(&mut batch)?;
            }
            lists += usize::from(batch.targets.len() > before);
        }
        let held = (batch.targets.len() + batch.offsets.len()) as u64 * edge_bytes;
        branch.context().resize(memory, held)?;
        pace.rest((batch.targets.len() - begin) as u64 + 16).await?;
        if lists > 1 {
            batch.sort_from(begin);
        }
        *next = base + source + 1;
        batch.with_lists.push((base + source) as u32);
        batch.offsets.push(batch.targets.len());
    }
    batch.vertices.end = *next as u32;
    Ok(if batch.with_lists.is_empty() { Vec::new() } else { vec![batch] })
}

/// The lists of an edge type in one direction.
struct Part {
    scan: ListScan,
    reach: Reach,
    lists: Lists,
    weights: Vec<f64>,
    edge_bytes: u64,
    /// The list that comes next.
    at: usize,
    is_ended: bool,
}

impl Part {
    fn new(
        snapshot: &Arc<Snapshot>,
        ids: &DenseIds,
        of: EdgesOf,
        sources: &Range<u64>,
        weight: Option<&str>,
        ahead_bytes: u64,
    ) -> Result<Option<Self>, EngineError> {
        let range = ListRange { edge_type: of.edge_type, direction: of.direction, sources: sources.clone() };
        let Some(reach) = Reach::new(snapshot, ids, of, &range) else { return Ok(None) };
        let scan = match weight {
            Some(weight) => snapshot.scan_weighted_lists(&range, weight, ahead_bytes)?,
            None => snapshot.scan_lists(&range, ahead_bytes),
        };
        let edge_bytes = EDGE_BYTES + if weight.is_some() { 8 } else { 0 };
        let (lists, weights) = (Lists::default(), Vec::new());
        Ok(Some(Self { scan, reach, lists, weights, edge_bytes, at: 0, is_ended: false }))
    }

    /// The source of the next list; `None` behind the last.
    async fn source(&mut self, branch: &mut Branch) -> Result<Option<u64>, EngineError> {
        while self.at == self.lists.len() {
            if self.is_ended {
                return Ok(None);
            }
            self.at = 0;
            self.lists.clear();
            match self.scan.next_block(branch).await? {
                Some(block) => self.weights = block.decode(&mut self.lists)?,
                None => self.is_ended = true,
            }
        }
        Ok(Some(self.lists.sources[self.at]))
    }

    /// Moves the next list to the end of a batch.
    fn take(&mut self, batch: &mut Batch) -> Result<(), EngineError> {
        let edges = self.lists.offsets[self.at]..self.lists.offsets[self.at + 1];
        self.at += 1;
        batch.weights.extend_from_slice(self.weights.get(edges.clone()).unwrap_or_default());
        batch.targets.extend(self.reach.ids_of(&self.lists.targets[edges])?);
        Ok(())
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
