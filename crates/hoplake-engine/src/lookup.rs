//! From user keys to vertices and back.

use std::collections::BTreeMap;

use arrow_array::{ArrayRef, cast::AsArray, types::Int64Type};
use futures::future::try_join_all;
use hoplake_format::{
    FormatError, Key, KeyType, LabelId, TableOwner, VertexId, constants::KEY_COLUMN, keys::find_in_key_block,
    segment::SectionKind,
};
use hoplake_storage::{QueryContext, Wave};

use crate::{EngineError, Snapshot};

impl Snapshot {
    /// The vertices with these keys, in their order; `None` where there is none. One wave.
    ///
    /// # Errors
    /// [`EngineError::Invalid`] if a key is not of its label's type; the store's.
    pub async fn look_up(
        &self,
        keys: &[(LabelId, Key)],
        after: Wave,
        context: &QueryContext,
    ) -> Result<(Vec<Option<VertexId>>, Wave), EngineError> {
        for (label, key) in keys {
            self.check_key_type(*label, key)?;
        }
        let kinds: Vec<_> = keys.iter().map(|(label, _)| SectionKind::Keys(*label)).collect();
        let (sections, wave) = self.sections_of(&kinds, after, context).await?;
        let places = sections.into_iter().zip(keys).map(|(section, (_, key))| {
            let section = section?;
            Some((section, section.block_that_may_hold(key)?))
        });
        let places: Vec<_> = places.collect();
        let requests: Vec<_> = places.iter().flatten().map(|(section, block)| section.request(*block)).collect();
        let (blocks, came) = self.reader().read(wave, &requests, context).await?;
        if came > wave {
            self.read_whole(kinds);
        }
        let mut blocks = blocks.into_iter();
        let mut found = Vec::with_capacity(keys.len());
        for ((label, key), place) in keys.iter().zip(&places) {
            let Some((section, _)) = place else {
                found.push(None);
                continue;
            };
            let block = blocks.next().expect("one payload comes for each request");
            let failed = EngineError::format(self.reader().store().place(&section.object.name));
            let ordinal = find_in_key_block(&block, key).map_err(failed)?;
            found.push(ordinal.and_then(|ordinal| VertexId::new(*label, ordinal)));
        }
        Ok((found, came))
    }

    fn check_key_type(&self, label: LabelId, key: &Key) -> Result<(), EngineError> {
        let known = self.schema().label(label).ok_or_else(|| EngineError::NotFound("no such vertex label".into()))?;
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
    pub async fn keys(
        &self,
        vertices: &[VertexId],
        after: Wave,
        context: &QueryContext,
    ) -> Result<(Vec<Key>, Wave), EngineError> {
        let mut by_label: BTreeMap<LabelId, Vec<u64>> = BTreeMap::new();
        for vertex in vertices {
            by_label.entry(vertex.label()).or_default().push(vertex.ordinal());
        }
        let column = [KEY_COLUMN.to_owned()];
        let reads = by_label
            .iter()
            .map(|(label, ordinals)| self.table_rows(TableOwner::Vertices(*label), ordinals, &column, after, context));
        let read = try_join_all(reads).await?;
        let wave = read.iter().map(|(_, wave)| *wave).max().unwrap_or(after);
        let mut columns = BTreeMap::new();
        for (label, (batch, _)) in by_label.keys().zip(read) {
            let keys =
                key_column(self.schema().label(*label).map(|label| label.key_type), batch.column_by_name(KEY_COLUMN));
            let keys = keys.map_err(EngineError::format(self.reader().store().url()))?;
            columns.insert(*label, keys.into_iter());
        }
        let take = |vertex: &VertexId| columns.get_mut(&vertex.label()).and_then(Iterator::next);
        Ok((vertices.iter().filter_map(take).collect(), wave))
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
