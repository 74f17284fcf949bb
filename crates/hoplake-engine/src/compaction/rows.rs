//! Merges the parts of a label: its keys, the rows of vertices that they added, and the rows that they changed.

use std::{ops::Range, sync::Arc};

use hoplake_format::{FormatError, Key, KeyType, LabelId, TableOwner, constants::KEY_COLUMN, segment::SectionKind};
use hoplake_storage::planted::{Bug, planted};
use hoplake_storage::{QueryContext, Wave};

use super::{
    Merged,
    keys::{KeyStream, next, write_keys},
    lists::ROWS,
    part::PartWriter,
    plan::Merge,
};
use crate::{EngineError, Snapshot, sections::KeyWriter};

/// Merges all parts of a label that a version has.
pub(super) async fn merge_label(
    parts: &Arc<Snapshot>,
    label: LabelId,
    merge: &Merge,
    mut part: PartWriter,
    context: &QueryContext,
) -> Result<Merged, EngineError> {
    write_keys(parts, label, false, &mut part, context).await?;
    let gone = !parts.places(SectionKind::Gone(label)).is_empty() && !planted(Bug::GoneForgotten);
    if !merge.oldest && gone {
        write_keys(parts, label, true, &mut part, context).await?;
    }
    let properties = parts.schema().label(label).map_or(&[][..], |label| label.properties.as_slice());
    let names = properties.iter().map(|property| property.name.clone());
    let columns: Vec<String> = std::iter::once(KEY_COLUMN.to_owned()).chain(names).collect();
    let added = added(parts, label);
    write_added(parts, label, &added, &columns, &mut part, context).await?;
    write_changed(parts, label, &added, &columns, &mut part, context).await?;
    Ok(Merged { part: part.finish().await?, ..Merged::default() })
}

/// The ordinals of vertices that the parts added, as ranges that do not touch.
fn added(parts: &Snapshot, label: LabelId) -> Vec<Range<u64>> {
    let tables = parts.manifest().tables.iter().filter(|table| table.owner == TableOwner::Vertices(label));
    let mut ranges: Vec<_> = tables.map(|table| table.first_row..table.first_row + table.rows).collect();
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

/// Rows of vertices that the parts added, as the newest of the parts has them.
async fn write_added(
    parts: &Snapshot,
    label: LabelId,
    added: &[Range<u64>],
    columns: &[String],
    part: &mut PartWriter,
    context: &QueryContext,
) -> Result<(), EngineError> {
    for range in added {
        let mut table = part.table(TableOwner::Vertices(label), range.start);
        for start in range.clone().step_by(ROWS) {
            let ordinals: Vec<u64> = (start..range.end.min(start + ROWS as u64)).collect();
            let (batch, _) = parts.vertex_rows(label, &ordinals, columns, Wave(0), context).await?;
            part.write(&mut table, batch).await?;
        }
        part.end_table(&mut table).await?;
    }
    Ok(())
}

/// Rows that the parts changed of vertices that older ones added.
async fn write_changed(
    parts: &Snapshot,
    label: LabelId,
    added: &[Range<u64>],
    columns: &[String],
    part: &mut PartWriter,
    context: &QueryContext,
) -> Result<(), EngineError> {
    let failed = |error: FormatError| EngineError::format("a new segment")(error);
    let kind = SectionKind::Rows(label);
    let mut writer = KeyWriter::new(kind, KeyType::Int64);
    let mut streams = KeyStream::all(parts, kind, KeyType::Int64);
    let mut table = part.table(TableOwner::Changed(label), 0);
    let (mut ordinals, mut rows) = (Vec::new(), 0);
    loop {
        let changed = next(&mut streams, context).await?;
        if changed.is_none() || ordinals.len() == ROWS {
            let (batch, _) = parts.vertex_rows(label, &ordinals, columns, Wave(0), context).await?;
            part.write(&mut table, batch).await?;
            ordinals.clear();
        }
        let Some((Key::Int64(ordinal), ..)) = changed else { break };
        let ordinal = ordinal as u64;
        if added.iter().any(|range| range.contains(&ordinal)) {
            continue;
        }
        writer.push(Key::Int64(ordinal as i64), rows, &mut part.segment).map_err(failed)?;
        part.send().await?;
        rows += 1;
        ordinals.push(ordinal);
    }
    writer.finish(&mut part.segment).map_err(failed)?;
    part.end_table(&mut table).await
}
