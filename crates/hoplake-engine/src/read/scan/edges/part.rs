//! Reads a part: the keys of the sources, the rows of the edges, and the keys of the targets from memory.

use std::{collections::BTreeMap, sync::Arc};

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{Field, Schema as ArrowSchema};
use arrow_select::interleave::{interleave, interleave_record_batch};
use hoplake_format::{Direction, FormatError, TableOwner, constants::KEY_COLUMN};
use hoplake_storage::Branch;

use super::{
    COPIES, PART_BYTES, Plan, SOURCE_COLUMN, TARGET_COLUMN,
    targets::{TargetKeys, key_bytes},
};
use crate::{
    EngineError, Held,
    memory::bytes_of,
    read::{merge::ListEntry, properties::nulls, tables::Through},
};

/// Keys of a batch take no more: one long key may be that of many edges.
const KEYS_BYTES_MAX: u64 = COPIES * PART_BYTES;

/// The edges of some entries, in their order: one batch, or several where keys are long.
pub(super) async fn read(
    plan: &Plan,
    targets: &TargetKeys,
    entries: &[(usize, ListEntry)],
    mut branch: Branch,
) -> Result<(Vec<Held<RecordBatch>>, Branch), EngineError> {
    let context = branch.context().clone();
    // For each edge where its keys and its row are, and the numbers of sources and rows that are asked for.
    let _memory = context.hold(bytes_of::<[u64; 10]>(entries.len()))?;
    let mut sources: Vec<u64> = entries.iter().map(|(_, entry)| entry.source).collect();
    sources.dedup();
    let mut line = branch.clone();
    let (sources_keys, rows) =
        futures::future::try_join(keys(plan, &sources, &mut line), rows(plan, entries, &mut branch)).await?;
    branch.join([&line]);
    let mut pace = context.pace();
    let mut source_at = Vec::with_capacity(entries.len());
    let mut target_at = Vec::with_capacity(entries.len());
    let mut at = 0;
    let mut key_bytes_of_batch = 0;
    let mut cuts = vec![0];
    let arrays = targets.arrays();
    for (number, (_, entry)) in entries.iter().enumerate() {
        while sources.get(at).is_some_and(|source| *source != entry.source) {
            at += 1;
        }
        let target = targets.find(entry.target).ok_or_else(|| missing(plan, entry.target))?;
        let bytes = key_bytes(&sources_keys, at) + key_bytes(arrays[target.0], target.1);
        if key_bytes_of_batch + bytes > KEYS_BYTES_MAX && key_bytes_of_batch > 0 {
            cuts.push(number);
            key_bytes_of_batch = 0;
        }
        key_bytes_of_batch += bytes;
        source_at.push((0, at));
        target_at.push(target);
        if number % 4096 == 0 {
            pace.rest(4096).await?;
        }
    }
    cuts.push(entries.len());
    let mut batches = Vec::new();
    for cut in cuts.windows(2) {
        let range = cut[0]..cut[1];
        let ends: [ArrayRef; 2] = [
            interleave(&[sources_keys.as_ref()], &source_at[range.clone()])?,
            interleave(&arrays, &target_at[range.clone()])?,
        ];
        let rows = rows.slice(range.start, range.len());
        let batch = with_ends(ends, &rows)?;
        let bytes = batch.get_array_memory_size() as u64;
        batches.push(Held::counted(batch, bytes, &context)?);
        pace.rest(range.len() as u64).await?;
    }
    Ok((batches, branch))
}

fn missing(plan: &Plan, target: u64) -> EngineError {
    let why = format!("an edge reaches vertex {target}, which does not exist");
    EngineError::format(plan.snapshot.reader().store().url())(FormatError::corrupt("list", why))
}

fn with_ends(ends: [ArrayRef; 2], rows: &RecordBatch) -> Result<RecordBatch, EngineError> {
    let names = [SOURCE_COLUMN, TARGET_COLUMN];
    let of_ends =
        ends.iter().zip(names).map(|(keys, name)| Arc::new(Field::new(name, keys.data_type().clone(), false)));
    let fields: Vec<_> = of_ends.chain(rows.schema_ref().fields().iter().cloned()).collect();
    let columns = ends.iter().cloned().chain(rows.columns().iter().cloned()).collect();
    Ok(RecordBatch::try_new(Arc::new(ArrowSchema::new(fields)), columns)?)
}

/// The keys of sources, which ascend. The key of a vertex is in the row with which it was added, whatever changed it since.
async fn keys(plan: &Plan, sources: &[u64], branch: &mut Branch) -> Result<ArrayRef, EngineError> {
    let columns = [KEY_COLUMN.to_owned()];
    let batch = plan.snapshot.rows().added(plan.source, sources, &columns, Through::Extents, branch).await?;
    Ok(batch.column(0).clone())
}

/// The rows of edges, each from the table of its run.
async fn rows(plan: &Plan, entries: &[(usize, ListEntry)], branch: &mut Branch) -> Result<RecordBatch, EngineError> {
    let owner = TableOwner::Edges(plan.edge_type, Direction::Out);
    let fields = plan.snapshot.rows().fields(owner, &plan.columns);
    if fields.is_empty() {
        return nulls(&fields, entries.len());
    }
    let mut by_run: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
    let mut order = Vec::with_capacity(entries.len());
    for (run, entry) in entries {
        let rows = by_run.entry(*run).or_default();
        order.push((*run, rows.len()));
        rows.push(entry.position);
    }
    let fields = &fields;
    let reads = branch.each(&by_run, |(run, rows), mut line| async move {
        let tables = plan.snapshot.tables().of(owner, Some(plan.runs[*run].until));
        let batch = match tables.is_empty() {
            // The type had no properties then.
            true => nulls(fields, rows.len())?,
            false => plan.snapshot.tables().cells(&tables, rows, fields, Through::Extents, &mut line).await?,
        };
        Ok::<_, EngineError>((batch, line))
    });
    let mut batches = reads.await?;
    if batches.len() == 1 {
        return Ok(batches.swap_remove(0));
    }
    let numbers: BTreeMap<usize, usize> = by_run.keys().enumerate().map(|(number, run)| (*run, number)).collect();
    order.iter_mut().for_each(|(run, _)| *run = numbers[run]);
    Ok(interleave_record_batch(&batches.iter().collect::<Vec<_>>(), &order)?)
}
