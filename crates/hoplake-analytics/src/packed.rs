//! Adjacency in its stored form: compressed blocks, in memory or in mapped files, whose lists are decoded on each read.
//!
//! ```text
//! vertex ─ offsets ─▶ position of the first edge ─▶ block ─▶ chunks of 16 targets
//! ```
//! It takes 8 bytes per vertex for the positions, and 1.4 to 2 per edge, where a [`Csr`](crate::Csr) takes 4. Blocks of a mapped file take
//! no memory of the process. The load decodes all blocks once, to compute degrees and detect damage. Lists that are in several runs, or
//! that a commit has changed, are merged and encoded again.

use std::{
    ops::Range,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use bytes::Bytes;
use hoplake_engine::{EdgesOf, EngineError, ListBlock, ListRange, Snapshot};
use hoplake_format::{
    FormatError,
    adjacency::{BLOCK_BYTES_DEFAULT, Block, BlockEncoder, ListReader, Lists},
};
use hoplake_mapping::AccessPattern;
use hoplake_storage::{Branch, MemoryHold, QueryContext};
use rayon::prelude::*;

use crate::{
    Workers,
    adjacency::{Adjacency, Cursor},
    batches::Reach,
    selection::Selected,
};

/// Blocks that a load decodes at once, per worker.
const BLOCKS_A_WORKER: usize = 64;

/// The lists of all vertices, as stored blocks.
#[derive(Debug)]
pub struct Packed {
    /// The parts, sorted by label; a label has one for each edge type and direction.
    parts: Vec<PackedLists>,
    /// The vertices of each label, and its parts.
    labels: Vec<(Range<u32>, Range<usize>)>,
    edges: u64,
    /// Whether blocks are in mapped files, whose pages have to be requested.
    is_mapped: bool,
    /// Whether lists are read in the order of vertices, so that the system reads ahead.
    in_order: AtomicBool,
    /// The damage of a block that a read found, since its file changed after the load.
    damage: OnceLock<FormatError>,
    /// Its memory, until it is dropped.
    _memory: MemoryHold,
}

/// The lists of an edge type in one direction.
#[derive(Debug)]
struct PackedLists {
    /// The position of the first edge of each vertex of the label, and the number of edges at the end.
    offsets: Vec<u64>,
    blocks: Vec<Stored>,
    /// The first vertex of the label that lists reach.
    far: u32,
}

/// A block, and the position of its first edge.
#[derive(Debug)]
struct Stored {
    first_edge: u64,
    bytes: Bytes,
}

impl Packed {
    pub(crate) async fn load(
        snapshot: &Arc<Snapshot>,
        selected: &Selected,
        edges: &[EdgesOf],
        workers: &Workers,
        branch: &mut Branch,
    ) -> Result<Self, EngineError> {
        let mut memory = branch.context().hold(0)?;
        let mut parts = Vec::new();
        let mut labels = Vec::new();
        for (label, ids) in selected.ids.by_label() {
            let first = parts.len();
            for of in edges.iter().filter(|of| of.near == label) {
                let range = ListRange::all(of.edge_type, of.direction);
                if let Some(reach) = Reach::new(snapshot, &selected.ids, *of, &range) {
                    let loading = Loading::new(ids.end - ids.start, reach, &mut memory, branch)?;
                    parts.push(loading.load(snapshot, &range, workers, branch).await?);
                }
            }
            labels.push((ids.start as u32..ids.end as u32, first..parts.len()));
        }
        let edges = parts.iter().filter_map(|part: &PackedLists| part.offsets.last()).sum();
        let is_mapped = snapshot.reader().is_mapped();
        let in_order = AtomicBool::new(false);
        let damage = OnceLock::new();
        Ok(Self { parts, labels, edges, is_mapped, in_order, damage, _memory: memory })
    }

    /// Checks that all lists were read as they were loaded. Call it at the end of a computation: a list whose file has changed meanwhile is
    /// read as empty.
    ///
    /// # Errors
    /// [`EngineError::Format`] if one was damaged.
    pub fn check(&self) -> Result<(), EngineError> {
        let failed =
            |source: &FormatError| EngineError::Format { location: "blocks in memory".into(), source: source.clone() };
        self.damage.get().map_or(Ok(()), |source| Err(failed(source)))
    }

    /// The parts with lists of a vertex, and its index in them.
    #[inline]
    fn parts_of(&self, vertex: u32) -> (Range<usize>, usize) {
        let at = if self.labels.len() == 1 { 0 } else { self.labels.partition_point(|(ids, _)| ids.end <= vertex) };
        let (ids, parts) = &self.labels[at];
        (parts.clone(), (vertex - ids.start) as usize)
    }

    /// The stored blocks of a vertex's list.
    pub fn blocks_of(&self, vertex: u32) -> impl Iterator<Item = &Bytes> {
        let (parts, place) = self.parts_of(vertex);
        self.parts[parts].iter().flat_map(move |part| {
            let edges = part.edges(place);
            let blocks =
                if edges.is_empty() { 0..0 } else { part.block_of(edges.start)..part.block_of(edges.end - 1) + 1 };
            part.blocks[blocks].iter().map(|stored| &stored.bytes)
        })
    }

    /// The stored blocks from that of a vertex's list to the end of its label.
    pub fn blocks_from(&self, vertex: u32) -> impl Iterator<Item = &Bytes> {
        let (parts, place) = self.parts_of(vertex);
        self.parts[parts].iter().flat_map(move |part| {
            let first = if part.blocks.is_empty() { 0 } else { part.block_of(part.offsets[place]) };
            part.blocks[first..].iter().map(|stored| &stored.bytes)
        })
    }
}

impl PackedLists {
    /// The positions of a vertex's edges.
    #[inline]
    fn edges(&self, place: usize) -> Range<u64> {
        self.offsets[place]..self.offsets[place + 1]
    }

    /// The block of an edge.
    fn block_of(&self, edge: u64) -> usize {
        self.blocks.partition_point(|block| block.first_edge <= edge) - 1
    }
}

impl Adjacency for Packed {
    type Cursor<'a> = PackedCursor<'a>;

    fn len(&self) -> usize {
        self.labels.last().map_or(0, |(ids, _)| ids.end as usize)
    }

    fn edges(&self) -> u64 {
        self.edges
    }

    #[inline]
    fn degree(&self, vertex: u32) -> usize {
        let (parts, place) = self.parts_of(vertex);
        self.parts[parts].iter().map(|part| (part.offsets[place + 1] - part.offsets[place]) as usize).sum()
    }

    fn cursor(&self) -> PackedCursor<'_> {
        let ahead = (self.is_mapped && !self.in_order.load(Relaxed)).then_some(0);
        let open = self.parts.iter().map(|_| Open { ahead, ..Open::default() }).collect();
        PackedCursor { packed: self, open, list: Vec::new(), merged: Vec::new() }
    }

    fn expect_order(&self, in_order: bool) {
        if self.is_mapped {
            self.in_order.store(in_order, Relaxed);
            let blocks = self.parts.iter().flat_map(|part| &part.blocks).map(|stored| &stored.bytes[..]);
            hoplake_mapping::expect(blocks, if in_order { AccessPattern::Sequential } else { AccessPattern::Random });
        }
    }
}

/// Reads lists of a [`Packed`].
#[derive(Debug)]
pub struct PackedCursor<'a> {
    packed: &'a Packed,
    /// The open block of each part.
    open: Vec<Open<'a>>,
    /// The last list that was read.
    list: Vec<u32>,
    /// Where two lists are merged.
    merged: Vec<u32>,
}

/// After this many consecutive lists, the rest of their block is unpacked at once. That costs less than chunk by chunk, but more if only some
/// lists are read.
const IN_ORDER: u32 = 8;

/// Blocks of a mapped file that are read ahead of one that follows the one before.
const BLOCKS_AHEAD: usize = 32;

/// The open block of a part.
#[derive(Debug, Default)]
struct Open<'a> {
    block: usize,
    /// The first block of a mapped file that was not requested yet, if blocks have to be requested.
    ahead: Option<usize>,
    /// Its edges.
    edges: Range<u64>,
    reader: Option<ListReader<'a>>,
    /// Its slots, if lists are read in their order.
    slots: Vec<u64>,
    is_unpacked: bool,
    /// The edge after the last list, and how many lists were read in order up to there.
    next: u64,
    in_order: u32,
}

impl<'a> Open<'a> {
    /// Opens the block of an edge of a part.
    #[inline]
    fn seek(&mut self, part: &'a PackedLists, edge: u64) -> Result<&mut ListReader<'a>, FormatError> {
        if self.reader.is_none() || !self.edges.contains(&edge) {
            self.change_block(part, edge)?;
        }
        self.reader.as_mut().ok_or_else(|| FormatError::corrupt("adjacency block", "it could not be opened"))
    }

    fn change_block(&mut self, part: &'a PackedLists, edge: u64) -> Result<(), FormatError> {
        // In order, it is the next one.
        let next = self.block + 1;
        let is_next = part.blocks.get(next).is_some_and(|stored| stored.first_edge == edge);
        self.block = if is_next { next } else { part.block_of(edge) };
        (self.reader, self.is_unpacked) = (None, false);
        if let Some(ahead) = &mut self.ahead {
            // The system does not read ahead. A block has several pages, which are read together if they are requested.
            let wanted =
                if is_next { (*ahead).max(self.block)..self.block + BLOCKS_AHEAD } else { self.block..self.block + 1 };
            *ahead = wanted.end.min(part.blocks.len());
            part.blocks.iter().take(*ahead).skip(wanted.start).for_each(|it| hoplake_mapping::will_need(&it.bytes));
        }
        let stored = &part.blocks[self.block];
        let block = Block::parse(&stored.bytes)?;
        self.edges = stored.first_edge..stored.first_edge + block.edges_len() as u64;
        if !self.edges.contains(&edge) {
            return Err(FormatError::corrupt("adjacency block", "it has fewer edges than when it was loaded"));
        }
        self.reader = Some(ListReader::new(block));
        Ok(())
    }

    /// Appends the targets of a list.
    #[inline]
    fn read(&mut self, part: &'a PackedLists, mut edges: Range<u64>, list: &mut Vec<u32>) -> Result<(), FormatError> {
        self.in_order = if edges.start == self.next { self.in_order + 1 } else { 0 };
        self.next = edges.end;
        let far = u64::from(part.far);
        while !edges.is_empty() {
            let block = *self.seek(part, edges.start)?.block();
            if self.in_order > IN_ORDER && !self.is_unpacked {
                block.slots(&mut self.slots)?;
                self.is_unpacked = true;
            }
            let end = edges.end.min(self.edges.end);
            let within = (edges.start - self.edges.start) as usize..(end - self.edges.start) as usize;
            if self.is_unpacked {
                let mut target = far + block.base();
                list.extend(self.slots[within].iter().map(|slot| {
                    target += slot;
                    target as u32
                }));
            } else if let Some(reader) = &mut self.reader {
                reader.read(within, |target| (far + target) as u32, list)?;
            }
            edges.start = end;
        }
        Ok(())
    }

    /// Searches the targets of a list until one matches.
    #[inline]
    fn any(
        &mut self,
        part: &'a PackedLists,
        mut edges: Range<u64>,
        is_wanted: &mut impl FnMut(u32) -> bool,
    ) -> Result<bool, FormatError> {
        let far = u64::from(part.far);
        while !edges.is_empty() {
            self.seek(part, edges.start)?;
            let first = self.edges.start;
            let end = edges.end.min(self.edges.end);
            let within = (edges.start - first) as usize..(end - first) as usize;
            if let Some(reader) = &mut self.reader
                && reader.any(within, |target| is_wanted((far + target) as u32))?
            {
                return Ok(true);
            }
            edges.start = end;
        }
        Ok(false)
    }
}

impl PackedCursor<'_> {
    /// Reads the lists of all parts, one after the other. Returns where the last of them begins, and whether there are more than two.
    #[inline]
    fn read(&mut self, vertex: u32) -> (usize, bool) {
        let packed = self.packed;
        let (parts, place) = packed.parts_of(vertex);
        self.list.clear();
        let mut lists = 0;
        let mut last = 0;
        for number in parts {
            let part = &packed.parts[number];
            let before = self.list.len();
            if let Err(error) = self.open[number].read(part, part.edges(place), &mut self.list) {
                self.damaged(number, error);
                return (0, false);
            }
            if self.list.len() > before {
                (lists, last) = (lists + 1, before);
            }
        }
        (last, lists > 2)
    }

    /// Merges two lists that are one after the other.
    fn merge(&mut self, second: usize) {
        self.merged.clear();
        let mut a = self.list[..second].iter().peekable();
        let mut b = self.list[second..].iter().peekable();
        while let (Some(first), Some(other)) = (a.peek(), b.peek()) {
            let next = if first <= other { &mut a } else { &mut b };
            self.merged.extend(next.next());
        }
        self.merged.extend(a.chain(b));
        std::mem::swap(&mut self.list, &mut self.merged);
    }

    /// Records damage. A damaged list is read as empty.
    #[cold]
    fn damaged(&mut self, number: usize, error: FormatError) {
        self.open[number].reader = None;
        self.list.clear();
        let _ = self.packed.damage.set(error);
    }
}

impl Cursor for PackedCursor<'_> {
    #[inline]
    fn neighbours(&mut self, vertex: u32) -> &[u32] {
        let (last, are_many) = self.read(vertex);
        if are_many {
            // Each ascends: the stable sort merges such runs.
            self.list.sort();
        } else if last > 0 && self.list[last - 1] > self.list[last] {
            self.merge(last);
        }
        &self.list
    }

    #[inline]
    fn unordered(&mut self, vertex: u32) -> &[u32] {
        self.read(vertex);
        &self.list
    }

    #[inline]
    fn any(&mut self, vertex: u32, mut is_wanted: impl FnMut(u32) -> bool) -> bool {
        let packed = self.packed;
        let (parts, place) = packed.parts_of(vertex);
        for number in parts {
            let part = &packed.parts[number];
            match self.open[number].any(part, part.edges(place), &mut is_wanted) {
                Ok(true) => return true,
                Ok(false) => {}
                Err(error) => self.damaged(number, error),
            }
        }
        false
    }
}

/// A part that is being loaded.
struct Loading<'a> {
    reach: Reach,
    /// The number of edges of each vertex, and one more entry.
    degrees: Vec<u64>,
    blocks: Vec<Stored>,
    edges: u64,
    /// The last source so far, and whether its list may continue.
    last: Option<(u64, bool)>,
    memory: &'a mut MemoryHold,
}

impl<'a> Loading<'a> {
    fn new(vertices: u64, reach: Reach, memory: &'a mut MemoryHold, branch: &Branch) -> Result<Self, EngineError> {
        let held = memory.bytes() + (vertices + 1) * 8;
        branch.context().resize(memory, held)?;
        let degrees = vec![0; vertices as usize + 1];
        Ok(Self { reach, degrees, blocks: Vec::new(), edges: 0, last: None, memory })
    }

    async fn load(
        mut self,
        snapshot: &Arc<Snapshot>,
        range: &ListRange,
        workers: &Workers,
        branch: &mut Branch,
    ) -> Result<PackedLists, EngineError> {
        let mut scan = snapshot.scan_lists(range, snapshot.ahead_bytes(branch.context()));
        // Stored blocks of a mapped file are slices.
        let stored_takes = if snapshot.reader().is_mapped() { 0 } else { 1 };
        let reach = self.reach.clone();
        let mut encoder = Encoder::new(&reach)?;
        let mut is_ended = false;
        while !is_ended {
            let mut blocks = Vec::new();
            let mut bytes = 0;
            while blocks.len() < workers.threads() * BLOCKS_A_WORKER && !is_ended {
                let next = scan.next_block(branch).await?;
                is_ended = next.is_none();
                let (encoded, stored) = match next {
                    Some(block) if encoder.takes(&block) => (encoder.add(block)?, None),
                    Some(block) => (encoder.finish()?, block.stored().cloned()),
                    None => (encoder.finish()?, None),
                };
                bytes += encoded.iter().map(|block| block.len() as u64).sum::<u64>();
                bytes += stored.as_ref().map_or(0, |stored| stored.len() as u64 * stored_takes);
                blocks.extend(encoded);
                blocks.extend(stored);
            }
            let held = self.memory.bytes() + bytes;
            branch.context().resize(self.memory, held)?;
            let reach = self.reach.clone();
            let decode = move |context: &QueryContext| {
                let decode =
                    |bytes| context.check_time().map_err(EngineError::from).and_then(|()| Degrees::of(bytes, &reach));
                blocks.into_par_iter().map(decode).collect()
            };
            let decoded: Result<Vec<_>, EngineError> = workers.run(branch.context(), decode).await?;
            for (bytes, lists) in decoded? {
                self.add(bytes, lists)?;
            }
        }
        Ok(self.finish())
    }

    /// Adds the next block, of which sources and degrees are known.
    fn add(&mut self, bytes: Bytes, lists: Degrees) -> Result<(), EngineError> {
        let first_edge = self.edges;
        for (at, (source, degree)) in lists.lists.iter().enumerate() {
            let goes_on = at == 0 && lists.is_continued;
            let is_next = match self.last {
                Some((last, may_go_on)) => {
                    if goes_on {
                        may_go_on && *source == last
                    } else {
                        *source > last
                    }
                }
                None => !goes_on,
            };
            // Positions are counted in the order of sources.
            let slot = self.degrees.get_mut(*source as usize).filter(|_| is_next);
            *slot.ok_or_else(|| self.reach.damaged("its sources are not those that follow"))? += u64::from(*degree);
            self.last = Some((*source, false));
            self.edges += u64::from(*degree);
        }
        if let Some((_, may_go_on)) = &mut self.last {
            *may_go_on = lists.may_go_on;
        }
        self.blocks.push(Stored { first_edge, bytes });
        Ok(())
    }

    fn finish(self) -> PackedLists {
        let Self { reach, degrees: mut offsets, blocks, .. } = self;
        let mut before = 0;
        for offset in &mut offsets {
            before += std::mem::replace(offset, before);
        }
        PackedLists { offsets, blocks, far: reach.first() }
    }
}

/// The lists of a block: sources, each with its number of edges.
struct Degrees {
    lists: Vec<(u64, u32)>,
    is_continued: bool,
    may_go_on: bool,
}

impl Degrees {
    /// Decodes a block, to check that it is not damaged.
    fn of(bytes: Bytes, reach: &Reach) -> Result<(Bytes, Self), EngineError> {
        let mut lists = Lists::default();
        let block = Block::parse(&bytes).map_err(|error| reach.failed(error))?;
        block.decode_all(&mut lists).map_err(|error| reach.failed(error))?;
        let each = lists.iter().map(|(source, _, targets)| {
            reach.check(targets)?;
            Ok((source, targets.len() as u32))
        });
        let is_continued = block.is_continued();
        let may_go_on = block.continues();
        let lists = each.collect::<Result<_, EngineError>>()?;
        Ok((bytes, Self { lists, is_continued, may_go_on }))
    }
}

/// Encodes lists whose content differs from the stored blocks.
struct Encoder<'a> {
    encoder: BlockEncoder,
    /// The list that may continue.
    open: Option<(u64, Vec<u64>)>,
    lists: Lists,
    /// What the lists reach, for errors.
    reach: &'a Reach,
}

impl<'a> Encoder<'a> {
    fn new(reach: &'a Reach) -> Result<Self, EngineError> {
        Ok(Self { encoder: encoder(reach)?, open: None, lists: Lists::default(), reach })
    }

    /// Whether the next lists have to be encoded: they are not as they are stored, or their first goes on with one that is not.
    fn takes(&self, block: &ListBlock) -> bool {
        let goes_on = |(source, _): &(u64, Vec<u64>)| block.sources().start == *source;
        block.stored().is_none() || self.open.as_ref().is_some_and(goes_on)
    }

    /// Adds lists, and returns the blocks that are complete.
    fn add(&mut self, block: ListBlock) -> Result<Vec<Bytes>, EngineError> {
        let may_go_on = block.may_go_on();
        let mut lists = std::mem::take(&mut self.lists);
        let mut blocks = Vec::new();
        block.decode(&mut lists)?;
        for (source, _, targets) in lists.iter() {
            match &mut self.open {
                Some((open, list)) if *open == source => list.extend_from_slice(targets),
                _ => {
                    self.close(&mut blocks)?;
                    self.open = Some((source, targets.to_vec()));
                }
            }
        }
        self.lists = lists;
        if !may_go_on {
            self.close(&mut blocks)?;
        }
        Ok(blocks)
    }

    fn close(&mut self, blocks: &mut Vec<Bytes>) -> Result<(), EngineError> {
        let Some((source, list)) = self.open.take() else { return Ok(()) };
        let mut encoded = Vec::new();
        self.encoder.push(source, &list, &mut encoded).map_err(|error| self.reach.failed(error))?;
        blocks.extend(encoded.into_iter().map(|block| Bytes::from(block.bytes)));
        Ok(())
    }

    /// The blocks of all lists so far; others begin a block of their own.
    fn finish(&mut self) -> Result<Vec<Bytes>, EngineError> {
        let mut blocks = Vec::new();
        self.close(&mut blocks)?;
        let encoder = std::mem::replace(&mut self.encoder, encoder(self.reach)?);
        blocks.extend(encoder.finish().map(|block| Bytes::from(block.bytes)));
        Ok(blocks)
    }
}

fn encoder(reach: &Reach) -> Result<BlockEncoder, EngineError> {
    BlockEncoder::new(BLOCK_BYTES_DEFAULT).map_err(|error| reach.failed(error))
}
