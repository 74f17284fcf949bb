//! Merges the lists of an edge type, and the rows of its edges.

use std::{collections::BTreeMap, sync::Arc};

use arrow_array::RecordBatch;
use arrow_select::interleave::interleave_record_batch;
use hoplake_format::{
    DegreeSummary, Direction, EdgeTypeId, FormatError, TableOwner,
    segment::{ListWriter, SectionKind},
};

use super::{
    merging::{Merged, Merging},
    plan::Merge,
    run_writer::{RunTable, RunWriter},
};
use crate::{
    EngineError, Snapshot,
    read::{
        merge::ListEntry,
        properties::RowsOf,
        scan::{ListRange, MergedScan, Source},
    },
};

/// Entries of pairs of vertices, list by list: of each pair, what the newest run says.
struct PairEntries {
    merged: MergedScan<ListEntry>,
    /// Of each run, its newest version, and whether its pairs have no edges any more.
    runs: Vec<(u64, bool)>,
    batch: std::vec::IntoIter<(usize, ListEntry)>,
}

impl PairEntries {
    async fn new(merging: &mut Merging<'_>, edge_type: EdgeTypeId, direction: Direction) -> Result<Self, EngineError> {
        let range = ListRange::all(edge_type, direction);
        let source = |inputs: &_, run: &_| Source::lists(inputs, run, &range);
        let (merged, runs) = merging.merged(&range.kinds(), source, ListEntry::by_pair).await?;
        let removed = |kind| matches!(kind, SectionKind::Removed(..));
        let runs = runs.into_iter().map(|(kind, until)| (until, removed(kind))).collect();
        Ok(Self { merged, runs, batch: Vec::new().into_iter() })
    }

    /// Takes the entries of the next source into `list`, each with the version of its run: those of pairs with edges, or of pairs
    /// that have none any more. Returns the source, or `None` behind the last.
    async fn next(
        &mut self,
        removed: bool,
        list: &mut Vec<(u64, ListEntry)>,
        merging: &mut Merging<'_>,
    ) -> Result<Option<u64>, EngineError> {
        list.clear();
        let mut of = None;
        loop {
            if self.batch.as_slice().is_empty() {
                // A long list goes on in the next batch.
                self.batch = self.merged.next(merging.branch).await?.into_iter();
            }
            let Some((_, ListEntry { source, .. })) = self.batch.as_slice().first() else { return Ok(of) };
            let source = *source;
            if of.is_some_and(|of| of != source) {
                return Ok(of);
            }
            of = Some(source);
            let entries = self.batch.as_slice().partition_point(|(_, entry)| entry.source == source);
            for (run, entry) in self.batch.by_ref().take(entries) {
                let (until, is_removed) = self.runs[run];
                list.extend((is_removed == removed).then_some((until, entry)));
            }
        }
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
    // Of each pair one run has all edges, so parallel edges keep the order that both directions share.
    for (at, direction) in [(0, Direction::Out), (1, Direction::In)] {
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
        if remembered && !inputs.sections().runs(gone).is_empty() {
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
    let mut entries = PairEntries::new(merging, edge_type, direction).await?;
    let mut list = Vec::new();
    let mut targets = Vec::new();
    let mut edges = 0;
    let mut degrees = DegreeSummary::default();
    while let Some(source) = entries.next(removed, &mut list, merging).await? {
        targets.clear();
        targets.extend(list.iter().map(|(_, edge)| edge.target));
        if let Some(rows) = &mut rows {
            rows.origins.extend(list.iter().map(|(until, edge)| (*until, edge.position)));
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
        let inputs = merging.inputs.clone();
        let owner = TableOwner::Edges(edge_type, direction);
        let properties = inputs.schema().edge_type(edge_type).map_or(&[][..], |it| it.properties.as_slice());
        let columns = properties.iter().map(|property| property.name.clone()).collect();
        let table = run.table(owner, 0);
        let at_once = merging.rows_at_once(&[owner]);
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
        // Rows of different runs are in different tables, which are read in one wave.
        let mut by_run: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        let mut order = Vec::with_capacity(origins.len());
        for (until, position) in origins {
            let rows = by_run.entry(*until).or_default();
            order.push((*until, rows.len()));
            rows.push(*position);
        }
        let reads = merging.branch.each(&by_run, |(until, rows), mut line| async move {
            let of = RowsOf::Edges(self.edge_type, self.direction, *until);
            Ok::<_, EngineError>((self.inputs.rows().of(of, rows, &self.columns, &mut line).await?, line))
        });
        let mut batches = reads.await?;
        if batches.len() == 1 {
            return Ok(batches.swap_remove(0));
        }
        let number: BTreeMap<u64, usize> = by_run.keys().enumerate().map(|(number, until)| (*until, number)).collect();
        let order: Vec<_> = order.into_iter().map(|(until, row)| (number[&until], row)).collect();
        Ok(interleave_record_batch(&batches.iter().collect::<Vec<_>>(), &order)?)
    }
}

#[cfg(test)]
mod tests {
    use hoplake_storage::QueryContext;

    use super::*;
    use crate::read::scan::written::{EDGE_TYPE, LISTS, REMOVED, RunsFixture};

    /// Source by source, what is left: targets with the version of their run.
    async fn left(merging: &mut Merging<'_>, removed: bool) -> Vec<(u64, Vec<(u64, u64)>)> {
        let mut entries = PairEntries::new(merging, EDGE_TYPE, Direction::Out).await.unwrap();
        let mut list = Vec::new();
        let mut all = Vec::new();
        while let Some(source) = entries.next(removed, &mut list, merging).await.unwrap() {
            all.push((source, list.iter().map(|(until, edge)| (edge.target, *until)).collect()));
        }
        all
    }

    #[tokio::test]
    async fn a_list_is_whole_however_many_blocks_it_is_in() {
        let hub: Vec<u64> = (0..5000).map(|number| number * 91).collect();
        let inputs = RunsFixture::new()
            .lists(1, LISTS, [(3, &[1, 2][..]), (4, &hub), (9, &[5])])
            .lists(2, LISTS, [(4, &[91, 91, 92][..])])
            .lists(2, REMOVED, [(3, &[1, 2][..]), (4, &[182])])
            .open()
            .await;
        let mut branch = QueryContext::new().branch();
        let mut merging = Merging { inputs, memory: 64 << 20, branch: &mut branch };
        let mut expected: Vec<_> =
            hub.iter().filter(|target| ![91, 182].contains(*target)).map(|it| (*it, 1)).collect();
        expected.extend([(91, 2), (91, 2), (92, 2)]);
        expected.sort_unstable();
        // Of source 3 nothing is left.
        assert_eq!(left(&mut merging, false).await, [(3, vec![]), (4, expected), (9, vec![(5, 1)])]);
        let gone = [(3, vec![(1, 2), (2, 2)]), (4, vec![(182, 2)]), (9, vec![])];
        assert_eq!(left(&mut merging, true).await, gone);
    }
}
