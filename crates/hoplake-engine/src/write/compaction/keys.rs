//! Merges the keys of a label.

use std::sync::Arc;

use hoplake_format::{
    FormatError, Key, KeyType, LabelId,
    keys::decode_key_block,
    segment::{KeyWriter, SectionKind},
};

use super::{Merging, run_writer::RunWriter};
use crate::{
    EngineError,
    read::scan::{Decode, MergedScan, Source},
};

/// The entries of keys, in their order: of each key, what the newest run says.
pub(super) struct KeyEntries {
    merged: MergedScan<(Key, u64)>,
    /// Whether the keys of a run are tombstones.
    gone: Vec<bool>,
    batch: std::vec::IntoIter<(usize, (Key, u64))>,
}

impl KeyEntries {
    /// Those of all sections of some kinds.
    pub(super) async fn new(
        merging: &mut Merging<'_>,
        kinds: &[SectionKind],
        key_type: KeyType,
    ) -> Result<Self, EngineError> {
        let decode: Decode<(Key, u64)> = Arc::new(move |block| decode_key_block(block, key_type));
        let source = |inputs: &_, run: &_| Source::new(inputs, run, &decode);
        let (merged, runs) = merging.merged(kinds, source, |a, b| a.0.cmp(&b.0)).await?;
        let gone = runs
            .into_iter()
            .map(|(kind, _)| matches!(kind, SectionKind::Tombstones(_) | SectionKind::RemovedValues(_)))
            .collect();
        Ok(Self { merged, gone, batch: Vec::new().into_iter() })
    }

    /// The next key, its number, and whether it is a tombstone.
    pub(super) async fn next(&mut self, merging: &mut Merging<'_>) -> Result<Option<(Key, u64, bool)>, EngineError> {
        if self.batch.as_slice().is_empty() {
            self.batch = self.merged.next(merging.branch).await?.into_iter();
        }
        Ok(self.batch.next().map(|(run, (key, number))| (key, number, self.gone[run])))
    }
}

/// Writes the section of keys that exist, or of tombstones.
pub(super) async fn write_keys(
    merging: &mut Merging<'_>,
    label: LabelId,
    gone: bool,
    run: &mut RunWriter,
) -> Result<(), EngineError> {
    let key_type = merging.inputs.schema().label(label).map_or(KeyType::Int64, |label| label.key_type);
    // A key that went and came back in one run is in both of its sections: that it is there counts, and so comes first.
    write_section(merging, [SectionKind::Keys(label), SectionKind::Tombstones(label)], gone, key_type, run).await
}

/// Writes one of two sections, of what is there and of what went. That of the kind named first decides on what both of one run have.
pub(super) async fn write_section(
    merging: &mut Merging<'_>,
    kinds: [SectionKind; 2],
    gone: bool,
    key_type: KeyType,
    run: &mut RunWriter,
) -> Result<(), EngineError> {
    let failed = |error: FormatError| EngineError::format("a new segment")(error);
    let mut writer = KeyWriter::new(kinds[usize::from(gone)], key_type);
    let mut entries = KeyEntries::new(merging, &kinds, key_type).await?;
    while let Some((key, number, is_gone)) = entries.next(merging).await? {
        if is_gone == gone {
            match key {
                Key::String(item) if kinds[0].has_values() => writer.push_item(item, &mut run.segments),
                key => writer.push(key, number, &mut run.segments),
            }
            .map_err(failed)?;
            run.send(merging).await?;
        }
    }
    writer.finish(&mut run.segments).map_err(failed)
}

#[cfg(test)]
mod tests {
    use hoplake_storage::QueryContext;

    use super::*;
    use crate::read::scan::written::{KEYS, LABEL, RunsFixture, TOMBSTONES};

    #[tokio::test]
    async fn of_each_key_the_newest_run_says_whether_it_is_there() {
        let inputs = RunsFixture::new()
            .keys(1, KEYS, (0..100).map(|key| (key, key as u64)))
            // 7 goes, and 8 goes and comes back as another vertex.
            .keys(2, TOMBSTONES, [(7, 7), (8, 8)])
            .keys(2, KEYS, [(8, 100)])
            .keys(3, TOMBSTONES, [(50, 50)])
            .keys(4, KEYS, [(50, 101), (200, 102)])
            .open()
            .await;
        let mut branch = QueryContext::new().branch();
        let mut merging = Merging { inputs, memory: 64 << 20, branch: &mut branch };
        let kinds = [SectionKind::Keys(LABEL), SectionKind::Tombstones(LABEL)];
        let mut entries = KeyEntries::new(&mut merging, &kinds, KeyType::Int64).await.unwrap();
        let mut found = Vec::new();
        while let Some(entry) = entries.next(&mut merging).await.unwrap() {
            found.push(entry);
        }
        let expected = |key: i64| match key {
            7 => (Key::Int64(7), 7, true),
            8 => (Key::Int64(8), 100, false),
            50 => (Key::Int64(50), 101, false),
            200 => (Key::Int64(200), 102, false),
            key => (Key::Int64(key), key as u64, false),
        };
        assert_eq!(found, (0..100).chain([200]).map(expected).collect::<Vec<_>>());
    }
}
