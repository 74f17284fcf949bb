//! Merges the keys of a label.

use std::cmp::Reverse;

use hoplake_format::{
    FormatError, Key, KeyType, LabelId,
    keys::decode_key_block,
    segment::{KeyWriter, SectionKind},
};

use super::{Merging, run_writer::RunWriter};
use crate::{EngineError, scan::Scan};

/// The keys of a section, in their order.
pub(super) struct KeyStream {
    scan: Scan,
    key_type: KeyType,
    gone: bool,
    entries: std::vec::IntoIter<(Key, u64)>,
}

impl KeyStream {
    /// The streams of all sections of some kinds, begun.
    pub(super) async fn all(
        merging: &mut Merging<'_>,
        kinds: &[SectionKind],
        key_type: KeyType,
    ) -> Result<Vec<Self>, EngineError> {
        let stream = |(kind, scan)| {
            let gone = matches!(kind, SectionKind::Tombstones(_));
            Self { scan, key_type, gone, entries: Vec::new().into_iter() }
        };
        Ok(merging.scans(kinds).await?.into_iter().map(stream).collect())
    }

    async fn fill(&mut self, merging: &mut Merging<'_>) -> Result<(), EngineError> {
        while self.entries.as_slice().is_empty() {
            let Some(block) = self.scan.next(merging.branch).await? else { return Ok(()) };
            let entries = decode_key_block(&block, self.key_type).map_err(EngineError::format(merging.location()))?;
            self.entries = entries.into_iter();
        }
        Ok(())
    }

    pub(super) fn key(&self) -> Option<&Key> {
        self.entries.as_slice().first().map(|(key, _)| key)
    }
}

/// Of the next key of all streams what the newest run says: its number, and whether it is gone.
pub(super) async fn next(
    streams: &mut [KeyStream],
    merging: &mut Merging<'_>,
) -> Result<Option<(Key, u64, bool)>, EngineError> {
    for stream in streams.iter_mut() {
        stream.fill(merging).await?;
    }
    let Some(key) = streams.iter().filter_map(KeyStream::key).min().cloned() else { return Ok(None) };
    let entries = streams.iter_mut().filter(|stream| stream.key() == Some(&key));
    // A key that went and came back in one run is in both of its sections: that it is there counts.
    let rank = |stream: &KeyStream| Reverse((stream.scan.versions().until, !stream.gone));
    let entries = entries.map(|stream| (rank(stream), stream.gone, stream.entries.next()));
    let newest = entries.min_by_key(|(rank, ..)| *rank);
    Ok(newest.and_then(|(_, gone, entry)| entry.map(|(key, number)| (key, number, gone))))
}

/// Writes the section of keys that are there, or of those that are gone.
pub(super) async fn write_keys(
    merging: &mut Merging<'_>,
    label: LabelId,
    gone: bool,
    run: &mut RunWriter,
) -> Result<(), EngineError> {
    let failed = |error: FormatError| EngineError::format("a new segment")(error);
    let key_type = merging.inputs.schema().label(label).map_or(KeyType::Int64, |label| label.key_type);
    let kind = if gone { SectionKind::Tombstones(label) } else { SectionKind::Keys(label) };
    let mut writer = KeyWriter::new(kind, key_type);
    let kinds = [SectionKind::Keys(label), SectionKind::Tombstones(label)];
    let mut streams = KeyStream::all(merging, &kinds, key_type).await?;
    while let Some((key, number, is_gone)) = next(&mut streams, merging).await? {
        if is_gone == gone {
            writer.push(key, number, &mut run.segments).map_err(failed)?;
            run.send(merging).await?;
        }
    }
    writer.finish(&mut run.segments).map_err(failed)
}
