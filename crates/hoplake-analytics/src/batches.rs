//! The lists of a selection as a stream of batches, in the order of dense ids. Topologies are loaded from it, and streamed programs read it.
//!
//! ```text
//! one scan   ─ stored blocks ─▶ group ─ decoded by workers, several groups at once ─▶ batches
//! many scans ─ each so ─▶ batches ─ merged by workers, range by range ──────────────▶ batches
//! hops with a condition ─ edges that match it ([`ConditionalLists`]) ──────────────▶ batches
//! ```
//! A caller that computes with one batch at a time takes [`Parcel`]s, which its workers decode or merge: lists are then in the processor's
//! caches when they are read, and the memory of one batch is reused for the next.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, VecDeque},
    ops::Range,
    sync::{Arc, Mutex, PoisonError},
};

use futures::future::BoxFuture;
use hoplake_engine::{DenseIds, EdgesOf, EngineError, ListBlock, ListRange, ListScan, Snapshot};
use hoplake_format::{FormatError, adjacency::Lists};
use hoplake_storage::{Branch, MemoryHold, QueryContext};
use rayon::prelude::*;

use crate::{Workers, batch::Batch, conditional::ConditionalLists, selection::Selected};

/// The number of edges at which a batch is complete: enough that the cost of handing it to a worker does not show, and few enough for a
/// processor's cache.
const BATCH_EDGES: usize = 1 << 16;

/// The memory of an edge of a batch, including its share of the stored block and of the list's bounds, and without its weight.
const EDGE_BYTES: u64 = 8;

/// Groups that are handed out at once, per worker; the caller waits for the slowest.
const GROUPS_A_WORKER: usize = 4;

/// The same for groups that each worker decodes one after the other, with the memory of one.
const PARCELS_A_WORKER: usize = 16;

/// A stream of batches. Each vertex of a range is in one of them, in the order of dense ids.
pub(crate) struct Batches {
    snapshot: Arc<Snapshot>,
    ids: Arc<DenseIds>,
    edges: Vec<EdgesOf>,
    /// The property that is the weight of edges.
    weight: Option<String>,
    workers: Workers,
    /// The remaining labels, with their first ids and their ids in the range.
    labels: VecDeque<(hoplake_format::LabelId, u64, Range<u64>)>,
    current: Option<Label>,
    /// Reads the lists instead if the selection has a condition; then there are no remaining labels.
    conditional: Option<ConditionalLists>,
    /// The memory of the batches that were handed out last, until the next are requested.
    memory: MemoryHold,
    spares: Arc<Spares>,
    /// What those take.
    spare_memory: MemoryHold,
    ahead_bytes: u64,
    /// The memory for reading ahead.
    _ahead: MemoryHold,
}

/// The label in progress.
struct Label {
    /// The id of its first vertex.
    base: u64,
    /// The first id that is not in the range.
    end: u64,
    /// The first vertex that was not in a batch yet.
    next: u64,
    parts: Vec<EdgeTypeScan>,
    /// Batches of parts, of which parcels that were handed out are merged.
    merged: Vec<Arc<Batch>>,
    /// What those take.
    merged_memory: MemoryHold,
}

impl Batches {
    /// The lists of a range of vertices for the edges of a selection, in its direction or against it.
    pub(crate) fn new(
        snapshot: &Arc<Snapshot>,
        selected: &Selected,
        edges: &[EdgesOf],
        vertices: Range<u32>,
        workers: &Workers,
        context: &QueryContext,
    ) -> Result<Self, EngineError> {
        Self::within(snapshot, selected, edges, vertices, workers, snapshot.ahead_bytes(context), context)
    }

    /// As [`Self::new`], with a limit on the bytes that are read ahead.
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
        let mut labels: VecDeque<_> = labels.filter(|(.., ids)| !ids.is_empty()).collect();
        let conditional = selected.conditional.as_ref().map(|hop| {
            let labels = std::mem::take(&mut labels);
            ConditionalLists::new(snapshot, selected, hop, edges, labels)
        });
        Ok(Self {
            ahead_bytes,
            _ahead: context.hold(ahead_bytes)?,
            snapshot: snapshot.clone(),
            ids: ids.clone(),
            edges: edges.to_vec(),
            weight: selected.weight.clone(),
            workers: workers.clone(),
            labels,
            current: None,
            conditional,
            memory: context.hold(0)?,
            spares: Arc::default(),
            spare_memory: context.hold(0)?,
        })
    }

    /// Requests the lists to read ahead, without waiting for them.
    pub(crate) async fn ask(&mut self, branch: &mut Branch) -> Result<(), EngineError> {
        if self.current.is_none() {
            self.begin(branch).await?;
        }
        Ok(())
    }

    /// The next batches; none after the last.
    pub(crate) fn next<'a>(&'a mut self, branch: &'a mut Branch) -> BoxFuture<'a, Result<Vec<Batch>, EngineError>> {
        Box::pin(async move {
            branch.context().resize(&mut self.memory, 0)?;
            let groups = self.workers.threads() * GROUPS_A_WORKER;
            let (parcels, memory) = self.parcels(groups, groups, branch).await?;
            self.memory = memory;
            open_all(parcels, &self.spares, &self.workers, branch).await
        })
    }

    /// The next batches, as parcels of which each worker opens one at a time, and the memory to open them; none after the last. They may be
    /// requested before all parcels of the last call are open.
    pub(crate) fn next_parcels<'a>(
        &'a mut self,
        branch: &'a mut Branch,
    ) -> BoxFuture<'a, Result<(Vec<Parcel>, MemoryHold), EngineError>> {
        let workers = self.workers.threads();
        Box::pin(self.parcels(workers * PARCELS_A_WORKER, workers, branch))
    }

    /// What parcels are opened into.
    pub(crate) fn spares(&self) -> &Arc<Spares> {
        &self.spares
    }

    /// The next parcels, at most about `parcels_max`, of which `open_max` are open at a time.
    async fn parcels(
        &mut self,
        parcels_max: usize,
        open_max: usize,
        branch: &mut Branch,
    ) -> Result<(Vec<Parcel>, MemoryHold), EngineError> {
        if let Some(conditional) = &mut self.conditional {
            let (batches, memory) = conditional.next(branch).await?;
            return Ok((batches.into_iter().map(Parcel::Batch).collect(), memory));
        }
        let mut memory = branch.context().hold(0)?;
        loop {
            if self.current.is_none() && !self.begin(branch).await? {
                return Ok((Vec::new(), memory));
            }
            let Some(label) = &mut self.current else { continue };
            branch.context().resize(&mut self.spare_memory, self.spares.bytes())?;
            let parcels = match &mut label.parts[..] {
                [part] => {
                    let groups = read_groups(part, label.base, parcels_max, open_max, &mut memory, branch).await?;
                    label.next = part.next;
                    groups.into_iter().map(Parcel::Group).collect()
                }
                _ => merge_parts(label, open_max, &self.workers, &self.spares, &mut memory, branch).await?,
            };
            if !parcels.is_empty() {
                return Ok((parcels, memory));
            }
            // The vertices after the last list.
            let rest = label.next as u32..label.end as u32;
            self.current = None;
            if !rest.is_empty() {
                return Ok((vec![Parcel::Merge(rest, Vec::new())], memory));
            }
        }
    }

    /// Moves on to the next label; `false` after the last.
    async fn begin(&mut self, branch: &mut Branch) -> Result<bool, EngineError> {
        let Some((label, base, ids)) = self.labels.pop_front() else { return Ok(false) };
        let of_label = self.edges.iter().filter(|of| of.near == label);
        let share = self.ahead_bytes / of_label.clone().count().max(1) as u64;
        let weight = self.weight.as_deref();
        let context = branch.context();
        let part = |of: &EdgesOf| {
            let vertices = (base, ids.clone());
            EdgeTypeScan::new(&self.snapshot, &self.ids, *of, vertices, weight, share, context).transpose()
        };
        let parts = of_label.filter_map(part);
        let mut parts: Vec<_> = parts.collect::<Result<_, EngineError>>()?;
        // All requests are sent before the first wait; otherwise each edge type would take a wave of its own.
        for part in &mut parts {
            part.scan.ask(branch).await?;
        }
        let merged_memory = branch.context().hold(0)?;
        self.current = Some(Label { base, end: ids.end, next: ids.start, parts, merged: Vec::new(), merged_memory });
        Ok(true)
    }
}

/// The lists of consecutive vertices, from which a worker builds a batch.
pub(crate) enum Parcel {
    /// Blocks to decode.
    Group(Group),
    /// The lists of some vertices in several scans, to merge.
    Merge(Range<u32>, Vec<Arc<Batch>>),
    /// A batch that was read as one.
    Batch(Batch),
}

impl Parcel {
    /// Its batch, in place of what `batch` was.
    fn open_into(self, batch: &mut Batch) -> Result<(), EngineError> {
        batch.clear();
        match self {
            Self::Group(group) => group.decode(batch),
            Self::Merge(vertices, inputs) => {
                merge_lists(vertices, &inputs, batch);
                Ok(())
            }
            Self::Batch(read) => {
                *batch = read;
                Ok(())
            }
        }
    }

    /// Its batch, which the caller returns to the spares.
    pub(crate) fn open(self, spares: &Spares) -> Result<Batch, EngineError> {
        let mut batch = spares.take();
        self.open_into(&mut batch)?;
        Ok(batch)
    }
}

/// Opens parcels on all workers.
async fn open_all(
    parcels: Vec<Parcel>,
    spares: &Arc<Spares>,
    workers: &Workers,
    branch: &mut Branch,
) -> Result<Vec<Batch>, EngineError> {
    let spares = spares.clone();
    let open = move |context: &QueryContext| {
        let opened = parcels.into_par_iter().map(|parcel| {
            context.check_time()?;
            parcel.open(&spares)
        });
        opened.collect::<Result<Vec<_>, EngineError>>()
    };
    workers.run(branch.context(), open).await?
}

/// Batches whose memory is reused for the next ones: the system clears each page of new memory first, which costs as much as decoding
/// lists.
#[derive(Debug, Default)]
pub(crate) struct Spares(Mutex<Vec<Batch>>);

impl Spares {
    fn take(&self) -> Batch {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    /// Returns a batch. A batch with the list of a hub is not kept.
    pub(crate) fn put(&self, batch: Batch) {
        if batch.targets.capacity() <= 2 * BATCH_EDGES {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(batch);
        }
    }

    /// The memory of the spares that are not in use.
    fn bytes(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().map(Batch::bytes).sum()
    }
}

/// Groups of blocks of a scan, at most `groups_max`; none after the last. Memory for `open_max` batches of them counts.
async fn read_groups(
    part: &mut EdgeTypeScan,
    base: u64,
    groups_max: usize,
    open_max: usize,
    memory: &mut MemoryHold,
    branch: &mut Branch,
) -> Result<Vec<Group>, EngineError> {
    let mut groups = Vec::new();
    let before = memory.bytes();
    let mut largest = 0;
    while groups.len() < groups_max {
        let mut blocks = Vec::new();
        let mut edges = 0;
        let mut may_go_on = false;
        // A list is not divided, so that a program sees all of it.
        while edges < BATCH_EDGES || may_go_on {
            let Some(block) = part.scan.next_block(branch).await? else { break };
            edges += block.edges();
            largest = largest.max(edges as u64);
            let open = open_max.min(groups.len() + 1) as u64;
            let held = before + largest * open * part.edge_bytes;
            if held > memory.bytes() {
                branch.context().resize(memory, held)?;
            }
            may_go_on = block.may_go_on();
            blocks.push(block);
        }
        let Some(last) = blocks.last() else { break };
        // Vertices before the first list and after the last group have none, and are in this batch, too.
        let end = (base + last.sources().end).max(part.next);
        groups.push(Group { blocks, vertices: part.next as u32..end as u32, base, reach: part.reach.clone() });
        part.next = end;
    }
    Ok(groups)
}

/// The blocks of one batch.
pub(crate) struct Group {
    blocks: Vec<ListBlock>,
    vertices: Range<u32>,
    base: u64,
    reach: Reach,
}

impl Group {
    fn decode(self, batch: &mut Batch) -> Result<(), EngineError> {
        let mut lists = Lists::default();
        batch.vertices = self.vertices;
        batch.targets.reserve(self.blocks.iter().map(ListBlock::edges).sum());
        for block in self.blocks {
            batch.weights.extend(block.decode(&mut lists)?);
            for (source, _, targets) in lists.iter() {
                let vertex = (self.base + source) as u32;
                if !batch.vertices.contains(&vertex) {
                    return Err(self.reach.damaged("its sources are not those that its header says"));
                }
                batch.targets.extend(self.reach.ids_of(targets)?);
                // A hub's list continues from the block before.
                if batch.with_lists.last() == Some(&vertex) {
                    batch.offsets.pop();
                } else {
                    batch.with_lists.push(vertex);
                }
                batch.offsets.push(batch.targets.len());
            }
        }
        Ok(())
    }
}

/// Parcels of a label with several scans, or none. Each scan is decoded separately, as far ahead as the others need. Vertices that all scans
/// have reached are merged, range by range.
async fn merge_parts(
    label: &mut Label,
    open_max: usize,
    workers: &Workers,
    spares: &Arc<Spares>,
    memory: &mut MemoryHold,
    branch: &mut Branch,
) -> Result<Vec<Parcel>, EngineError> {
    let Label { base, next, parts, merged, merged_memory, .. } = label;
    let done = merged.extract_if(.., |batch| Arc::strong_count(batch) == 1);
    done.filter_map(Arc::into_inner).for_each(|batch| spares.put(batch));
    branch.context().resize(merged_memory, merged.iter().map(|batch| batch.bytes()).sum())?;
    let groups_max = (workers.threads() * GROUPS_A_WORKER).div_ceil(parts.len().max(1));
    for part in parts.iter_mut() {
        while !part.is_ended && part.next <= *next {
            let mut held = std::mem::replace(&mut part.memory, branch.context().hold(0)?);
            let groups = read_groups(part, *base, groups_max, groups_max, &mut held, branch).await?;
            let decoded = open_all(groups.into_iter().map(Parcel::Group).collect(), spares, workers, branch).await?;
            part.memory = held;
            part.is_ended = decoded.is_empty();
            part.decoded.extend(decoded.into_iter().map(Arc::new));
        }
    }
    // Vertices that one scan has not reached yet cannot be merged.
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
    let bytes = |(vertices, inputs): &(Range<u32>, Vec<Arc<Batch>>)| -> u64 {
        let edges: usize = inputs.iter().map(|batch| batch.edges_of(vertices)).sum();
        (edges as u64 + u64::from(vertices.end - vertices.start)) * edge_bytes
    };
    let mut open: Vec<u64> = pieces.iter().map(bytes).collect();
    open.sort_unstable_by_key(|bytes| Reverse(*bytes));
    branch.context().resize(memory, open.iter().take(open_max).sum())?;
    for part in parts.iter_mut() {
        while let Some(batch) = part.decoded.pop_front_if(|batch| u64::from(batch.vertices.end) <= bound) {
            merged.push(batch);
        }
        let left = part.decoded.iter().map(|batch| batch.bytes()).sum();
        branch.context().resize(&mut part.memory, left)?;
    }
    branch.context().resize(merged_memory, merged.iter().map(|batch| batch.bytes()).sum())?;
    Ok(pieces.into_iter().map(|(vertices, inputs)| Parcel::Merge(vertices, inputs)).collect())
}

/// The lists that some vertices have in several batches.
fn merge_lists(vertices: Range<u32>, inputs: &[Arc<Batch>], merged: &mut Batch) {
    merged.targets.reserve(inputs.iter().map(|batch| batch.edges_of(&vertices)).sum());
    let mut lists: Vec<_> = inputs.iter().map(|batch| batch.lists_of(&vertices).peekable()).collect();
    merged.vertices = vertices.clone();
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
}

/// A scan of the lists of an edge type in one direction.
struct EdgeTypeScan {
    scan: ListScan,
    reach: Reach,
    edge_bytes: u64,
    /// The first vertex that was not decoded yet.
    next: u64,
    /// The decoded lists that have to be merged with other parts.
    decoded: VecDeque<Arc<Batch>>,
    /// What that takes.
    memory: MemoryHold,
    is_ended: bool,
}

impl EdgeTypeScan {
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
        let decoded = VecDeque::new();
        let memory = context.hold(0)?;
        Ok(Some(Self { scan, reach, edge_bytes, next: vertices.start, decoded, memory, is_ended: false }))
    }
}

/// The target label of lists.
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
