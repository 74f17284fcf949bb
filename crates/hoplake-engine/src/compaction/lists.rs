//! Merges the lists of an edge type, and the rows of its edges.

use arrow_array::RecordBatch;
use arrow_select::interleave::interleave_record_batch;
use bytes::Bytes;
use hoplake_format::{
    DegreeSummary, Direction, EdgeTypeId, FormatError, TableOwner,
    adjacency::{Block, Lists},
    segment::SectionKind,
};
use hoplake_storage::planted::{Bug, planted};
use hoplake_storage::{QueryContext, Wave};
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use super::{
    DIRECTIONS, Merged,
    part::{PartWriter, TableWriter},
    plan::Merge,
};
use crate::{
    EngineError, Snapshot,
    adjacency::merge::{Mention, decided},
    rows::RowsOf,
    sections::ListWriter,
    snapshot::SectionPlace,
};

/// Rows that are read and written together.
pub(super) const ROWS: usize = 8 << 10;

/// The blocks of a section, in their order, some of them ahead.
pub(super) struct Blocks<'a> {
    snapshot: &'a Snapshot,
    pub(super) place: SectionPlace,
    next: usize,
    ahead: VecDeque<Bytes>,
    ahead_bytes: u64,
}

impl<'a> Blocks<'a> {
    pub(super) fn new(snapshot: &'a Snapshot, place: SectionPlace, ahead_bytes: u64) -> Self {
        Self { snapshot, place, next: 0, ahead: VecDeque::new(), ahead_bytes }
    }

    pub(super) async fn next(&mut self, context: &QueryContext) -> Result<Option<Bytes>, EngineError> {
        if self.ahead.is_empty() {
            let section = self.snapshot.section(self.place)?;
            let count = section.index.block_count();
            if self.next == count {
                return Ok(None);
            }
            let start = section.index.positions[self.next];
            let until = section.index.positions.partition_point(|position| *position <= start + self.ahead_bytes);
            let until = (until.saturating_sub(1)).clamp(self.next + 1, count);
            let requests: Vec<_> = (self.next..until).map(|block| section.request(block)).collect();
            let (blocks, _) = self.snapshot.reader().read(Wave(0), &requests, context).await?;
            self.next = until;
            self.ahead.extend(blocks);
        }
        Ok(self.ahead.pop_front())
    }
}

/// The lists of a section, in the order of their sources. A long one may come in pieces.
struct ListStream<'a> {
    blocks: Blocks<'a>,
    removed: bool,
    lists: Lists,
    at: usize,
}

impl ListStream<'_> {
    /// Makes sure that the next list is here, if there is one.
    async fn fill(&mut self, context: &QueryContext) -> Result<(), EngineError> {
        while self.at == self.lists.len() {
            let Some(block) = self.blocks.next(context).await? else { return Ok(()) };
            (self.at, _) = (0, self.lists.clear());
            let decoded = Block::parse(&block).and_then(|block| block.decode_all(&mut self.lists));
            decoded.map_err(EngineError::format(self.blocks.snapshot.reader().store().url()))?;
        }
        Ok(())
    }

    fn source(&self) -> Option<u64> {
        self.lists.sources.get(self.at).copied()
    }

    /// Takes the list that is next.
    fn take(&mut self, mentions: &mut Vec<Mention>) {
        let (at, until, removed) = (self.at, self.blocks.place.versions.until, self.removed);
        let (source, first) = (self.lists.sources[at], self.lists.first_edges[at]);
        let targets = &self.lists.targets[self.lists.offsets[at]..self.lists.offsets[at + 1]];
        let mention = |(position, target): (u64, &u64)| Mention { source, target: *target, until, removed, position };
        mentions.extend((first..).zip(targets).map(mention));
        self.at += 1;
    }
}

/// All streams of a direction.
struct Streams<'a> {
    streams: Vec<ListStream<'a>>,
}

impl<'a> Streams<'a> {
    fn new(snapshot: &'a Snapshot, edge_type: EdgeTypeId, direction: Direction, memory: u64) -> Self {
        let places = |kind, removed| snapshot.places(kind).iter().map(move |place| (*place, removed));
        let there = places(SectionKind::Adjacency(edge_type, direction), false);
        let places: Vec<_> = there.chain(places(SectionKind::Removed(edge_type, direction), true)).collect();
        let ahead_bytes = (memory / 16 / places.len().max(1) as u64).clamp(64 << 10, 4 << 20);
        let stream = |(place, removed)| ListStream {
            blocks: Blocks::new(snapshot, place, ahead_bytes),
            removed,
            lists: Lists::default(),
            at: 0,
        };
        Self { streams: places.into_iter().map(stream).collect() }
    }

    /// What all parts say of the next source, if there is one; of each pair, what the newest says.
    async fn next(&mut self, mentions: &mut Vec<Mention>, context: &QueryContext) -> Result<bool, EngineError> {
        mentions.clear();
        for stream in &mut self.streams {
            stream.fill(context).await?;
        }
        let Some(source) = self.streams.iter().filter_map(ListStream::source).min() else { return Ok(false) };
        for stream in &mut self.streams {
            while stream.source() == Some(source) {
                stream.take(mentions);
                stream.fill(context).await?;
            }
        }
        Ok(true)
    }
}

/// Merges all parts of an edge type that a version has.
pub(super) async fn merge_edges(
    parts: &Arc<Snapshot>,
    edge_type: EdgeTypeId,
    merge: &Merge,
    mut part: PartWriter,
    memory: u64,
    context: &QueryContext,
) -> Result<Merged, EngineError> {
    let described = parts.schema().edge_type(edge_type);
    let has_rows = described.is_some_and(|edge_type| !edge_type.properties.is_empty());
    let mut merged = Merged::default();
    let mut degrees = [DegreeSummary::default(), DegreeSummary::default()];
    for (at, direction) in DIRECTIONS {
        let mut rows = has_rows.then(|| EdgeRows::new(parts, edge_type, direction, &part));
        let there = SectionKind::Adjacency(edge_type, direction);
        let lists = write_lists(parts, there, merge.oldest, &mut part, rows.as_mut(), memory, context);
        let (edges, of_lists) = lists.await?;
        if let Some(rows) = rows {
            rows.finish(&mut part, context).await?;
        }
        degrees[at] = of_lists;
        merged.edges = edges;
        let gone = SectionKind::Removed(edge_type, direction);
        // Without edges, what was removed is all that tells later batches that something changed since their base.
        let remembered = !merge.oldest || edges == 0;
        if remembered && !parts.places(gone).is_empty() && !planted(Bug::GoneForgotten) {
            write_lists(parts, gone, false, &mut part, None, memory, context).await?;
        }
    }
    merged.degrees = merge.oldest.then_some(degrees);
    merged.part = part.finish().await?;
    Ok(merged)
}

/// Writes the section of pairs with edges, or of those without.
async fn write_lists(
    parts: &Snapshot,
    kind: SectionKind,
    oldest: bool,
    part: &mut PartWriter,
    mut rows: Option<&mut EdgeRows<'_>>,
    memory: u64,
    context: &QueryContext,
) -> Result<(u64, DegreeSummary), EngineError> {
    let (edge_type, direction, removed) = match kind {
        SectionKind::Adjacency(edge_type, direction) => (edge_type, direction, false),
        SectionKind::Removed(edge_type, direction) => (edge_type, direction, true),
        other => return Err(EngineError::Invalid(format!("{other:?} has no lists"))),
    };
    let failed = |error: FormatError| EngineError::format("a new segment")(error);
    // The oldest part has lists of most vertices: a filter would say nothing.
    let mut writer = ListWriter::new(kind, !oldest).map_err(failed)?;
    let mut streams = Streams::new(parts, edge_type, direction, memory);
    let (mut mentions, mut targets, mut edges) = (Vec::new(), Vec::new(), 0);
    let mut degrees = DegreeSummary::default();
    while streams.next(&mut mentions, context).await? {
        let source = mentions[0].source;
        targets.clear();
        for edge in decided(&mut mentions).filter(|mention| mention.removed == removed) {
            targets.push(edge.target);
            if let Some(rows) = &mut rows {
                rows.origins.push((edge.until, edge.position));
            }
        }
        writer.push(source, &targets, &mut part.segment).map_err(failed)?;
        part.send().await?;
        if let Some(rows) = &mut rows {
            rows.write_full(part, context).await?;
        }
        edges += targets.len() as u64;
        degrees.add(targets.len() as u64);
    }
    writer.finish(&mut part.segment).map_err(failed)?;
    Ok((edges, degrees))
}

/// Brings the rows of edges into the order in which the edges are written.
struct EdgeRows<'a> {
    source: RowSource<'a>,
    /// Part and position of edges whose rows are not written yet.
    origins: Vec<(u64, u64)>,
    table: TableWriter,
}

/// Where rows of edges come from.
struct RowSource<'a> {
    parts: &'a Arc<Snapshot>,
    edge_type: EdgeTypeId,
    direction: Direction,
    columns: Vec<String>,
}

impl<'a> EdgeRows<'a> {
    fn new(parts: &'a Arc<Snapshot>, edge_type: EdgeTypeId, direction: Direction, part: &PartWriter) -> Self {
        let properties = parts.schema().edge_type(edge_type).map_or(&[][..], |it| it.properties.as_slice());
        let columns = properties.iter().map(|property| property.name.clone()).collect();
        let table = part.table(TableOwner::Edges(edge_type, direction), 0);
        Self { source: RowSource { parts, edge_type, direction, columns }, origins: Vec::new(), table }
    }

    async fn write_full(&mut self, part: &mut PartWriter, context: &QueryContext) -> Result<(), EngineError> {
        let full = self.origins.len() / ROWS * ROWS;
        let rest = self.origins.split_off(full);
        let origins = std::mem::replace(&mut self.origins, rest);
        for origins in origins.chunks(ROWS) {
            let batch = self.source.read(origins, context).await?;
            part.write(&mut self.table, batch).await?;
        }
        Ok(())
    }

    async fn finish(mut self, part: &mut PartWriter, context: &QueryContext) -> Result<(), EngineError> {
        if !self.origins.is_empty() {
            let batch = self.source.read(&self.origins, context).await?;
            part.write(&mut self.table, batch).await?;
        }
        part.end_table(&mut self.table).await
    }
}

impl RowSource<'_> {
    async fn read(&self, origins: &[(u64, u64)], context: &QueryContext) -> Result<RecordBatch, EngineError> {
        let mut by_part: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        let mut order = Vec::with_capacity(origins.len());
        let oldest = origins.iter().map(|(until, _)| until).min();
        for (until, position) in origins {
            let until = oldest.filter(|_| planted(Bug::RowsSwapped)).unwrap_or(until);
            let rows = by_part.entry(*until).or_default();
            order.push((*until, rows.len()));
            rows.push(*position);
        }
        let mut batches = Vec::with_capacity(by_part.len());
        for (until, rows) in &by_part {
            let of = RowsOf::Edges(self.edge_type, self.direction, *until);
            batches.push(self.parts.rows(of, rows, &self.columns, Wave(0), context).await?.0);
        }
        if batches.len() == 1 {
            return Ok(batches.swap_remove(0));
        }
        let number: BTreeMap<u64, usize> = by_part.keys().enumerate().map(|(number, until)| (*until, number)).collect();
        let order: Vec<_> = order.into_iter().map(|(until, row)| (number[&until], row)).collect();
        Ok(interleave_record_batch(&batches.iter().collect::<Vec<_>>(), &order)?)
    }
}
