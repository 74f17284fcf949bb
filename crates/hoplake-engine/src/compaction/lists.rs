//! Merges the lists of an edge type, and the rows of its edges.

use std::{collections::BTreeMap, sync::Arc};

use arrow_array::RecordBatch;
use arrow_select::interleave::interleave_record_batch;
use hoplake_format::{
    DegreeSummary, Direction, EdgeTypeId, FormatError, TableOwner,
    adjacency::{Block, Lists},
    segment::{ListWriter, SectionKind},
};

use super::{
    DIRECTIONS, Merged, Merging,
    plan::Merge,
    run_writer::{RunTable, RunWriter},
};
use crate::{
    EngineError, Snapshot,
    adjacency::merge::{ListEntry, decided},
    rows::RowsOf,
    scan::Scan,
};

/// The lists of a section, in the order of their sources. A long one may come in pieces.
struct ListStream {
    scan: Scan,
    removed: bool,
    lists: Lists,
    at: usize,
}

impl ListStream {
    /// Makes sure that the next list is here, if there is one.
    async fn fill(&mut self, merging: &mut Merging<'_>) -> Result<(), EngineError> {
        while self.at == self.lists.len() {
            let Some(block) = self.scan.next(merging.branch).await? else { return Ok(()) };
            self.lists.clear();
            self.at = 0;
            let decoded = Block::parse(&block).and_then(|block| block.decode_all(&mut self.lists));
            decoded.map_err(EngineError::format(merging.location()))?;
        }
        Ok(())
    }

    fn source(&self) -> Option<u64> {
        self.lists.sources.get(self.at).copied()
    }

    /// Takes the list that is next.
    fn take(&mut self, entries: &mut Vec<ListEntry>) {
        let (at, until, removed) = (self.at, self.scan.versions().until, self.removed);
        let (source, first) = (self.lists.sources[at], self.lists.first_edges[at]);
        let targets = &self.lists.targets[self.lists.offsets[at]..self.lists.offsets[at + 1]];
        let entry = |(position, target): (u64, &u64)| ListEntry { source, target: *target, until, removed, position };
        entries.extend((first..).zip(targets).map(entry));
        self.at += 1;
    }
}

/// All streams of a direction.
struct Streams {
    streams: Vec<ListStream>,
}

impl Streams {
    async fn new(merging: &mut Merging<'_>, edge_type: EdgeTypeId, direction: Direction) -> Result<Self, EngineError> {
        let kinds = [SectionKind::Adjacency(edge_type, direction), SectionKind::Removed(edge_type, direction)];
        let stream = |(kind, scan)| {
            let removed = matches!(kind, SectionKind::Removed(..));
            ListStream { scan, removed, lists: Lists::default(), at: 0 }
        };
        Ok(Self { streams: merging.scans(&kinds).await?.into_iter().map(stream).collect() })
    }

    /// What all runs say of the next source, if there is one; of each pair, what the newest says.
    async fn next(&mut self, entries: &mut Vec<ListEntry>, merging: &mut Merging<'_>) -> Result<bool, EngineError> {
        entries.clear();
        for stream in &mut self.streams {
            stream.fill(merging).await?;
        }
        let Some(source) = self.streams.iter().filter_map(ListStream::source).min() else { return Ok(false) };
        for stream in &mut self.streams {
            while stream.source() == Some(source) {
                stream.take(entries);
                stream.fill(merging).await?;
            }
        }
        Ok(true)
    }
}

/// Merges all runs of an edge type that a version has.
pub(super) async fn merge_edges(
    merging: &mut Merging<'_>,
    edge_type: EdgeTypeId,
    merge: &Merge,
    run: &mut RunWriter,
) -> Result<Merged, EngineError> {
    let inputs = merging.inputs.clone();
    let described = inputs.schema().edge_type(edge_type);
    let has_rows = described.is_some_and(|edge_type| !edge_type.properties.is_empty());
    let mut merged = Merged::default();
    let mut degrees = [DegreeSummary::default(), DegreeSummary::default()];
    for (at, direction) in DIRECTIONS {
        let mut rows = has_rows.then(|| EdgeRows::new(merging, edge_type, direction, run));
        let there = SectionKind::Adjacency(edge_type, direction);
        let (edges, of_lists) = write_lists(merging, there, merge.oldest, run, rows.as_mut()).await?;
        if let Some(rows) = rows {
            rows.finish(run, merging).await?;
        }
        degrees[at] = of_lists;
        let gone = SectionKind::Removed(edge_type, direction);
        // Without edges, what was removed is all that tells later batches that something changed since their base.
        let remembered = !merge.oldest || edges == 0;
        if remembered && !inputs.runs(gone).is_empty() {
            write_lists(merging, gone, false, run, None).await?;
        }
    }
    merged.degrees = merge.oldest.then_some(degrees);
    Ok(merged)
}

/// Writes the section of pairs with edges, or of those without.
async fn write_lists(
    merging: &mut Merging<'_>,
    kind: SectionKind,
    oldest: bool,
    run: &mut RunWriter,
    mut rows: Option<&mut EdgeRows>,
) -> Result<(u64, DegreeSummary), EngineError> {
    let (edge_type, direction, removed) = match kind {
        SectionKind::Adjacency(edge_type, direction) => (edge_type, direction, false),
        SectionKind::Removed(edge_type, direction) => (edge_type, direction, true),
        other => return Err(EngineError::Internal(format!("{other:?} has no lists"))),
    };
    let failed = |error: FormatError| EngineError::format("a new segment")(error);
    // The oldest run has lists of most vertices: a filter would say nothing.
    let mut writer = ListWriter::new(kind, !oldest, &run.segments).map_err(failed)?;
    let mut streams = Streams::new(merging, edge_type, direction).await?;
    let (mut entries, mut targets, mut edges) = (Vec::new(), Vec::new(), 0);
    let mut degrees = DegreeSummary::default();
    while streams.next(&mut entries, merging).await? {
        let source = entries[0].source;
        targets.clear();
        for edge in decided(&mut entries).filter(|entry| entry.removed == removed) {
            targets.push(edge.target);
            if let Some(rows) = &mut rows {
                rows.origins.push((edge.until, edge.position));
            }
        }
        writer.push(source, &targets, &mut run.segments).map_err(failed)?;
        run.send(merging).await?;
        if let Some(rows) = &mut rows {
            rows.write_full(run, merging).await?;
        }
        edges += targets.len() as u64;
        degrees.add(targets.len() as u64);
    }
    writer.finish(&mut run.segments).map_err(failed)?;
    Ok((edges, degrees))
}

/// Brings the rows of edges into the order in which the edges are written.
struct EdgeRows {
    source: RowSource,
    /// Run and position of edges whose rows are not written yet.
    origins: Vec<(u64, u64)>,
    /// Rows that are read and written together.
    at_once: usize,
    table: RunTable,
}

/// Where rows of edges come from.
struct RowSource {
    inputs: Arc<Snapshot>,
    edge_type: EdgeTypeId,
    direction: Direction,
    columns: Vec<String>,
}

impl EdgeRows {
    fn new(merging: &Merging<'_>, edge_type: EdgeTypeId, direction: Direction, run: &RunWriter) -> Self {
        let (inputs, owner) = (merging.inputs.clone(), TableOwner::Edges(edge_type, direction));
        let properties = inputs.schema().edge_type(edge_type).map_or(&[][..], |it| it.properties.as_slice());
        let columns = properties.iter().map(|property| property.name.clone()).collect();
        let (table, at_once) = (run.table(owner, 0), merging.rows_at_once(&[owner]));
        Self { source: RowSource { inputs, edge_type, direction, columns }, origins: Vec::new(), at_once, table }
    }

    async fn write_full(&mut self, run: &mut RunWriter, merging: &mut Merging<'_>) -> Result<(), EngineError> {
        let full = self.origins.len() / self.at_once * self.at_once;
        if full == 0 {
            return Ok(());
        }
        let rest = self.origins.split_off(full);
        let origins = std::mem::replace(&mut self.origins, rest);
        for origins in origins.chunks(self.at_once) {
            let batch = self.source.read(origins, merging).await?;
            run.write(&mut self.table, batch, merging).await?;
        }
        Ok(())
    }

    async fn finish(mut self, run: &mut RunWriter, merging: &mut Merging<'_>) -> Result<(), EngineError> {
        if !self.origins.is_empty() {
            let batch = self.source.read(&self.origins, merging).await?;
            run.write(&mut self.table, batch, merging).await?;
        }
        run.end_table(self.table, merging).await
    }
}

impl RowSource {
    async fn read(&self, origins: &[(u64, u64)], merging: &mut Merging<'_>) -> Result<RecordBatch, EngineError> {
        let mut by_part: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        let mut order = Vec::with_capacity(origins.len());
        for (until, position) in origins {
            let rows = by_part.entry(*until).or_default();
            order.push((*until, rows.len()));
            rows.push(*position);
        }
        let reads = merging.branch.each(&by_part, |(until, rows), mut line| async move {
            let of = RowsOf::Edges(self.edge_type, self.direction, *until);
            Ok::<_, EngineError>((self.inputs.rows(of, rows, &self.columns, &mut line).await?, line))
        });
        let mut batches = reads.await?;
        if batches.len() == 1 {
            return Ok(batches.swap_remove(0));
        }
        let number: BTreeMap<u64, usize> = by_part.keys().enumerate().map(|(number, until)| (*until, number)).collect();
        let order: Vec<_> = order.into_iter().map(|(until, row)| (number[&until], row)).collect();
        Ok(interleave_record_batch(&batches.iter().collect::<Vec<_>>(), &order)?)
    }
}
