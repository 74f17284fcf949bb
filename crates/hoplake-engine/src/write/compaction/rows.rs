//! Merges the runs of a label: its keys, the rows of vertices that they added, and the rows that they changed.

use std::ops::Range;

use hoplake_format::{
    FormatError, Key, KeyType, LabelId, TableOwner,
    constants::KEY_COLUMN,
    segment::{KeyWriter, SectionKind},
};

use super::{
    keys::{KeyEntries, write_keys},
    merging::{Merged, Merging},
    plan::Merge,
    run_writer::RunWriter,
};
use crate::{EngineError, Snapshot};

/// Merges all runs of a label that a version has.
pub(super) async fn merge_label(
    merging: &mut Merging<'_>,
    label: LabelId,
    merge: &Merge,
    run: &mut RunWriter,
) -> Result<Merged, EngineError> {
    let inputs = merging.inputs.clone();
    write_keys(merging, label, false, run).await?;
    if !merge.oldest && !inputs.sections().runs(SectionKind::Tombstones(label)).is_empty() {
        write_keys(merging, label, true, run).await?;
    }
    let properties = inputs.schema().label(label).map_or(&[][..], |label| label.properties.as_slice());
    let names = properties.iter().map(|property| property.name.clone());
    let columns: Vec<String> = std::iter::once(KEY_COLUMN.to_owned()).chain(names).collect();
    // A vertex that one of these runs added is written with its newest row. Only rows of vertices from older runs stay changes.
    let added = added(&inputs, label);
    let rows = merging.rows_at_once(&[TableOwner::Vertices(label), TableOwner::Changed(label)]);
    for range in &added {
        write_added(merging, label, range, rows, &columns, run).await?;
    }
    write_changed(merging, label, &added, rows, &columns, run).await?;
    Ok(Merged::default())
}

/// The ordinals of vertices that the runs added, as ranges that do not touch.
fn added(inputs: &Snapshot, label: LabelId) -> Vec<Range<u64>> {
    let tables = inputs.manifest().tables.iter().filter(|table| table.owner == TableOwner::Vertices(label));
    joined(tables.map(|table| table.first_row..table.first_row + table.rows).collect())
}

/// Ranges that touch, as one. Each range becomes tables of its own, so that a table stays one stretch of ordinals.
fn joined(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.sort_unstable_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => joined.push(range),
        }
    }
    joined
}

/// Rows of vertices that the runs added, as the newest of the runs has them.
async fn write_added(
    merging: &mut Merging<'_>,
    label: LabelId,
    range: &Range<u64>,
    rows: usize,
    columns: &[String],
    run: &mut RunWriter,
) -> Result<(), EngineError> {
    let mut table = run.table(TableOwner::Vertices(label), range.start);
    for start in range.clone().step_by(rows) {
        let ordinals: Vec<u64> = (start..range.end.min(start + rows as u64)).collect();
        let batch = merging.vertex_rows(label, &ordinals, columns).await?;
        run.write(&mut table, batch, merging).await?;
    }
    run.end_table(table, merging).await
}

/// Rows that the runs changed of vertices that older ones added.
async fn write_changed(
    merging: &mut Merging<'_>,
    label: LabelId,
    added: &[Range<u64>],
    at_once: usize,
    columns: &[String],
    run: &mut RunWriter,
) -> Result<(), EngineError> {
    let failed = |error: FormatError| EngineError::format("a new segment")(error);
    let kind = SectionKind::Rows(label);
    let mut writer = KeyWriter::new(kind, KeyType::Int64);
    let mut entries = KeyEntries::new(merging, &[kind], KeyType::Int64).await?;
    let mut table = run.table(TableOwner::Changed(label), 0);
    let mut ordinals = Vec::new();
    let mut rows = 0;
    loop {
        let changed = entries.next(merging).await?;
        // Rows are read and written many at a time: each read waits for the store.
        if changed.is_none() || ordinals.len() == at_once {
            let batch = merging.vertex_rows(label, &ordinals, columns).await?;
            run.write(&mut table, batch, merging).await?;
            ordinals.clear();
        }
        let Some((Key::Int64(ordinal), ..)) = changed else { break };
        let ordinal = ordinal as u64;
        // Written above.
        if added.iter().any(|range| range.contains(&ordinal)) {
            continue;
        }
        writer.push(Key::Int64(ordinal as i64), rows, &mut run.segments).map_err(failed)?;
        run.send(merging).await?;
        rows += 1;
        ordinals.push(ordinal);
    }
    writer.finish(&mut run.segments).map_err(failed)?;
    run.end_table(table, merging).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_are_one() {
        assert_eq!(joined(vec![20..30, 0..10, 10..15, 15..20, 40..41]), [0..30, 40..41]);
        assert_eq!(joined(vec![]), []);
    }
}
