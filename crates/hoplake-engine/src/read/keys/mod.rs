//! From user keys to vertices and back.

mod entries;

use std::collections::{BTreeMap, BTreeSet};

use arrow_array::{ArrayRef, cast::AsArray, types::Int64Type};
use futures::future::BoxFuture;
use hoplake_format::{FormatError, Key, KeyType, LabelId, VertexId, constants::KEY_COLUMN, segment::SectionKind};
use hoplake_storage::Branch;

use crate::{EngineError, Snapshot, snapshot::sections::Run};

pub(crate) use entries::{KeyEntry, Sought, entries};

/// The keys of a version: from user keys to vertices and back.
#[derive(Debug, Clone, Copy)]
pub struct Keys<'a> {
    snapshot: &'a Snapshot,
}

impl<'a> Keys<'a> {
    pub(crate) fn new(snapshot: &'a Snapshot) -> Self {
        Self { snapshot }
    }

    /// The vertices with these keys, in their order; `None` where there is none. One wave.
    ///
    /// # Errors
    /// [`EngineError::Invalid`] if a key is not of its label's type; the store's.
    pub fn look_up(
        self,
        keys: &'a [(LabelId, Key)],
        branch: &'a mut Branch,
    ) -> BoxFuture<'a, Result<Vec<Option<VertexId>>, EngineError>> {
        self.look_up_before_rows(keys, BTreeSet::new(), branch)
    }

    /// As [`Self::look_up`], for a caller that then reads rows of `tables` that were found: what that needs is in the same wave, unless
    /// it is known without a read that no key of the label is there.
    pub(crate) fn look_up_before_rows(
        self,
        keys: &'a [(LabelId, Key)],
        tables: BTreeSet<LabelId>,
        branch: &'a mut Branch,
    ) -> BoxFuture<'a, Result<Vec<Option<VertexId>>, EngineError>> {
        Box::pin(async move {
            for (label, key) in keys {
                self.check_key_type(*label, key)?;
            }
            let entries = self.newest_entries(keys, 0, &tables, branch).await?;
            let vertex = |((label, _), entry): (&(LabelId, Key), Option<KeyEntry>)| {
                entry.filter(|entry| !entry.gone).and_then(|entry| VertexId::new(*label, entry.number))
            };
            Ok(keys.iter().zip(entries).map(vertex).collect())
        })
    }

    /// The entry of each key in the newest run that has one, among those that have changes of later versions than
    /// `newer_than`, and with them the ends of `tables`. One wave.
    pub(crate) async fn newest_entries(
        self,
        keys: &[(LabelId, Key)],
        newer_than: u64,
        tables: &BTreeSet<LabelId>,
        branch: &mut Branch,
    ) -> Result<Vec<Option<KeyEntry>>, EngineError> {
        let mut order: Vec<usize> = (0..keys.len()).collect();
        // In order, keys of one block follow each other, and each block is asked for once.
        order.sort_unstable_by(|a, b| keys[*a].cmp(&keys[*b]));
        let of_label = |order: &[usize]| {
            let label = keys[order[0]].0;
            Sought {
                runs: self.key_runs(label, newer_than),
                keys: order.iter().map(|number| (&keys[*number].1, *number)).collect(),
                table: tables.contains(&label).then_some(label),
            }
        };
        let sought: Vec<_> = order.chunk_by(|a, b| keys[*a].0 == keys[*b].0).map(of_label).collect();
        entries(self.snapshot, &sought, keys.len(), branch).await
    }

    /// The runs with entries for keys of a label, newest first, and whether these are tombstones.
    fn key_runs(self, label: LabelId, newer_than: u64) -> Vec<(&'a Run, bool)> {
        let keys = SectionKind::Keys(label);
        let tombstones = SectionKind::Tombstones(label);
        let mut runs = self.snapshot.sections().runs_newest_first(&[keys, tombstones]);
        runs.retain(|(_, run)| run.versions.until > newer_than);
        runs.into_iter().map(|(kind, run)| (run, kind == tombstones)).collect()
    }

    fn check_key_type(self, label: LabelId, key: &Key) -> Result<(), EngineError> {
        let known =
            self.snapshot.schema().label(label).ok_or_else(|| EngineError::NotFound("no such vertex label".into()))?;
        if known.key_type != key.key_type() {
            let message = format!("keys of {} are {}, but {key:?} is {}", known.name, known.key_type, key.key_type());
            return Err(EngineError::Invalid(message));
        }
        Ok(())
    }

    /// The keys of vertices, in their order. One wave, and one more if the ends of the labels' tables were
    /// not read before.
    ///
    /// # Errors
    /// The store's; [`EngineError::Format`] if a table lacks a vertex.
    pub fn of(self, vertices: &'a [VertexId], branch: &'a mut Branch) -> BoxFuture<'a, Result<Vec<Key>, EngineError>> {
        Box::pin(async move {
            let mut by_label: BTreeMap<LabelId, Vec<u64>> = BTreeMap::new();
            for vertex in vertices {
                by_label.entry(vertex.label()).or_default().push(vertex.ordinal());
            }
            let column = [KEY_COLUMN.to_owned()];
            let column = &column;
            let reads = branch.each(&by_label, |(label, ordinals), mut line| async move {
                Ok::<_, EngineError>((
                    self.snapshot.rows().of_vertices(*label, ordinals, column, &mut line).await?,
                    line,
                ))
            });
            let read = reads.await?;
            let mut columns = BTreeMap::new();
            for (label, batch) in by_label.keys().zip(read) {
                let keys = key_column(
                    self.snapshot.schema().label(*label).map(|label| label.key_type),
                    batch.column_by_name(KEY_COLUMN),
                );
                let keys = keys.map_err(EngineError::format(self.snapshot.reader().store().url()))?;
                columns.insert(*label, keys.into_iter());
            }
            // Rows come in the order of the ordinals above, so each label's keys are taken one by one.
            let take = |vertex: &VertexId| columns.get_mut(&vertex.label()).and_then(Iterator::next);
            Ok(vertices.iter().filter_map(take).collect())
        })
    }
}

/// The keys in a column of a vertex table.
pub(crate) fn key_column(key_type: Option<KeyType>, column: Option<&ArrayRef>) -> Result<Vec<Key>, FormatError> {
    let damaged = || FormatError::corrupt("table", format!("it has no column {KEY_COLUMN} of the label's key type"));
    let column = column.ok_or_else(damaged)?;
    match key_type.ok_or_else(damaged)? {
        KeyType::Int64 => {
            let column = column.as_primitive_opt::<Int64Type>().ok_or_else(damaged)?;
            Ok(column.values().iter().map(|key| Key::Int64(*key)).collect())
        }
        KeyType::String => {
            let column = column.as_string_opt::<i32>().ok_or_else(damaged)?;
            Ok(column.iter().map(|key| Key::String(key.unwrap_or_default().to_owned())).collect())
        }
    }
}
