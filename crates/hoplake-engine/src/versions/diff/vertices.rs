//! Vertices of a label: keys of which own runs have entries, then rows that they changed of vertices of whose keys they have
//! none.

use std::sync::Arc;

use hoplake_format::{Key, KeyType, LabelId, VertexId, keys::decode_key_block, segment::SectionKind};

use super::{Both, Difference, PAGE, Replaced, entries::Entries, same};
use crate::{
    EngineError,
    read::{
        keys::{Sought, entries},
        scan::{Decode, Source},
    },
    snapshot::sections::Run,
    value::Value,
    write::change::{Properties, VertexRef},
};

/// A label to compare.
#[derive(Debug)]
pub(super) struct VertexWork {
    label: String,
    keys: Entries<Key>,
    /// Ordinals whose rows were changed, and the version whose run says so.
    rows: Entries<(u64, usize)>,
}

impl VertexWork {
    pub(super) fn new(label: String, both: &Both) -> Self {
        let keys = key_sources(&label, both);
        let mut rows = Vec::new();
        // If they share nothing, own runs have entries of all keys.
        for side in (0..2).filter(|_| both.same_ids) {
            let Some(id) = both.schemas()[side].label_id(&label) else { continue };
            let decode: Decode<(u64, usize)> = Arc::new(move |block| {
                let ordinal = |(key, _)| if let Key::Int64(ordinal) = key { ordinal as u64 } else { 0 };
                let entries = decode_key_block(block, KeyType::Int64)?;
                Ok(entries.into_iter().map(|entry| (ordinal(entry), side)).collect())
            });
            let runs = both.own(side, SectionKind::Rows(id));
            rows.extend(runs.into_iter().map(|run| Source::new(&both.snapshots[side], run, &decode)));
        }
        Self { label, keys: Entries::new(keys), rows: Entries::new(rows) }
    }

    /// The differences among some more candidates; `None` if there are none left.
    pub(super) async fn page(
        &mut self,
        both: &mut Both,
        replaced: &mut Replaced,
    ) -> Result<Option<Vec<Difference>>, EngineError> {
        if !self.keys.is_empty() {
            let keys = self.keys.page(PAGE, |_, _| false, &mut both.branch).await?;
            return self.compare(keys, both, replaced).await.map(Some);
        }
        if !self.rows.is_empty() {
            let rows = self.rows.page(PAGE, |a, b| a.0 == b.0, &mut both.branch).await?;
            let keys = self.keys_of(rows, both).await?;
            return self.compare(keys, both, replaced).await.map(Some);
        }
        Ok(None)
    }

    /// The keys of changed rows, but for those of which own runs have entries: they were compared before.
    async fn keys_of(&self, mut rows: Vec<(u64, usize)>, both: &mut Both) -> Result<Vec<Key>, EngineError> {
        rows.dedup_by_key(|(ordinal, _)| *ordinal);
        let mut keys = Vec::new();
        for side in 0..2 {
            let Some(id) = both.schemas()[side].label_id(&self.label) else { continue };
            let ordinals = rows.iter().filter(|(_, of)| *of == side);
            let vertices: Vec<_> = ordinals.filter_map(|(ordinal, _)| VertexId::new(id, *ordinal)).collect();
            let found = both.snapshots[side].keys().of(&vertices, &mut both.branch).await?;
            keys.extend(found);
        }
        keys.sort_unstable();
        keys.dedup();
        for side in 0..2 {
            keys = self.without_entry(keys, side, both).await?;
        }
        Ok(keys)
    }

    async fn without_entry(&self, keys: Vec<Key>, side: usize, both: &mut Both) -> Result<Vec<Key>, EngineError> {
        let snapshot = both.snapshots[side].clone();
        let Some(id) = snapshot.schema().label_id(&self.label) else { return Ok(keys) };
        let runs = own_keys(both, side, id).into_iter().map(|run| (run, false)).collect();
        let sought = Sought { runs, keys: keys.iter().zip(0..).collect(), table: None };
        let mut branch = both.branch.clone();
        let named = entries(&snapshot, &[sought], keys.len(), &mut branch).await?;
        both.branch.join([&branch]);
        Ok(keys.into_iter().zip(named).filter(|(_, named)| named.is_none()).map(|(key, _)| key).collect())
    }

    /// Compares the vertices of these keys.
    async fn compare(
        &self,
        keys: Vec<Key>,
        both: &mut Both,
        replaced: &mut Replaced,
    ) -> Result<Vec<Difference>, EngineError> {
        let before = self.vertices(&keys, 0, both).await?;
        let after = self.vertices(&keys, 1, both).await?;
        let mut differences = Vec::new();
        for ((key, before), after) in keys.into_iter().zip(before).zip(after) {
            // Deleted and added again: its edges have other ordinals on each side, so `EdgeWork` compares all of them.
            if let (Some((old, _)), Some((new, _)), true) = (&before, &after, both.same_ids)
                && old != new
            {
                replaced.entry(self.label.clone()).or_default().push([*old, *new]);
            }
            let before = before.map(|it| it.1);
            let after = after.map(|it| it.1);
            let differ = match (&before, &after) {
                (Some(before), Some(after)) => !same(before, after),
                (before, after) => before.is_some() || after.is_some(),
            };
            if differ {
                let vertex = VertexRef::new(&self.label, key);
                differences.push(Difference::Vertex { vertex, before, after });
            }
        }
        Ok(differences)
    }

    /// The ordinals and properties of the vertices with these keys in one version.
    async fn vertices(
        &self,
        keys: &[Key],
        side: usize,
        both: &mut Both,
    ) -> Result<Vec<Option<(u64, Properties)>>, EngineError> {
        let ordinals = ordinals(&self.label, keys, side, both).await?;
        let snapshot = both.snapshots[side].clone();
        let Some(id) = snapshot.schema().label_id(&self.label) else { return Ok(vec![None; keys.len()]) };
        let label = snapshot.schema().label(id).into_iter();
        let names: Vec<_> = label.flat_map(|label| &label.properties).map(|property| property.name.clone()).collect();
        let there: Vec<u64> = ordinals.iter().flatten().copied().collect();
        let batch = snapshot.rows().of_vertices(id, &there, &names, &mut both.branch).await?;
        let mut rows = (0..there.len()).map(|row| properties_at(&batch, row));
        Ok(ordinals.into_iter().map(|ordinal| Some((ordinal?, rows.next()?))).collect())
    }
}

/// What a row of a batch says, without what is null.
pub(super) fn properties_at(batch: &arrow_array::RecordBatch, row: usize) -> Properties {
    // A property that was added to the schema later is null in the newer version and absent in the older one: not a difference.
    Properties::at(batch, row).into_iter().filter(|(_, value)| *value != Value::Null).collect()
}

/// The ordinals of keys in one version.
pub(super) async fn ordinals(
    label: &str,
    keys: &[Key],
    side: usize,
    both: &mut Both,
) -> Result<Vec<Option<u64>>, EngineError> {
    let snapshot = both.snapshots[side].clone();
    let id = snapshot.schema().label_id(label);
    let Some((id, described)) = id.and_then(|id| Some((id, snapshot.schema().label(id)?))) else {
        return Ok(vec![None; keys.len()]);
    };
    // After a load, keys may be of another type.
    let fits = |key: &&Key| key.key_type() == described.key_type;
    let asked: Vec<_> = keys.iter().filter(fits).map(|key| (id, key.clone())).collect();
    let found = snapshot.keys().look_up(&asked, &mut both.branch).await?;
    let mut found = found.into_iter();
    // One answer for each key that was asked, none for the others.
    Ok(keys.iter().map(|key| found.by_ref().take(usize::from(fits(&key))).next()?.map(VertexId::ordinal)).collect())
}

/// The own runs that have entries of keys of a label.
fn own_keys(both: &Both, side: usize, label: LabelId) -> Vec<&Run> {
    let mut runs = both.own(side, SectionKind::Keys(label));
    runs.extend(both.own(side, SectionKind::Tombstones(label)));
    runs
}

/// The own runs of either version that have entries of keys of a label, as sources of the keys.
pub(super) fn key_sources(label: &str, both: &Both) -> Vec<Source<Key>> {
    let mut sources = Vec::new();
    for (side, snapshot) in both.snapshots.iter().enumerate() {
        let schema = snapshot.schema();
        let Some((id, described)) = schema.label_id(label).and_then(|id| Some((id, schema.label(id)?))) else {
            continue;
        };
        let key_type = described.key_type;
        let decode: Decode<Key> =
            Arc::new(move |block| Ok(decode_key_block(block, key_type)?.into_iter().map(|(key, _)| key).collect()));
        let runs = own_keys(both, side, id);
        sources.extend(runs.into_iter().map(|run| Source::new(snapshot, run, &decode)));
    }
    sources
}
