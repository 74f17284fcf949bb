//! Merges the keys of a label.

use std::cmp::Reverse;

use hoplake_format::{FormatError, Key, KeyType, LabelId, keys::decode_key_block, segment::SectionKind};
use hoplake_storage::QueryContext;

use super::{lists::Blocks, part::PartWriter};
use crate::{EngineError, Snapshot, sections::KeyWriter};

/// Bytes that are read ahead of each section.
const AHEAD_BYTES: u64 = 1 << 20;

/// The keys of a section, in their order.
pub(super) struct KeyStream<'a> {
    blocks: Blocks<'a>,
    snapshot: &'a Snapshot,
    key_type: KeyType,
    gone: bool,
    entries: std::vec::IntoIter<(Key, u64)>,
}

impl<'a> KeyStream<'a> {
    /// The streams of all sections of a kind.
    pub(super) fn all(snapshot: &'a Snapshot, kind: SectionKind, key_type: KeyType) -> Vec<Self> {
        let gone = matches!(kind, SectionKind::Gone(_));
        let stream = |place| Self {
            blocks: Blocks::new(snapshot, place, AHEAD_BYTES),
            snapshot,
            key_type,
            gone,
            entries: Vec::new().into_iter(),
        };
        snapshot.places(kind).iter().copied().map(stream).collect()
    }

    pub(super) async fn fill(&mut self, context: &QueryContext) -> Result<(), EngineError> {
        while self.entries.as_slice().is_empty() {
            let Some(block) = self.blocks.next(context).await? else { return Ok(()) };
            let place = self.snapshot.reader().store().url();
            let entries = decode_key_block(&block, self.key_type).map_err(EngineError::format(place))?;
            self.entries = entries.into_iter();
        }
        Ok(())
    }

    pub(super) fn key(&self) -> Option<&Key> {
        self.entries.as_slice().first().map(|(key, _)| key)
    }
}

/// Of the next key of all streams what the newest part says: its number, and whether it is gone.
pub(super) async fn next(
    streams: &mut [KeyStream<'_>],
    context: &QueryContext,
) -> Result<Option<(Key, u64, bool)>, EngineError> {
    for stream in streams.iter_mut() {
        stream.fill(context).await?;
    }
    let Some(key) = streams.iter().filter_map(KeyStream::key).min().cloned() else { return Ok(None) };
    let mentions = streams.iter_mut().filter(|stream| stream.key() == Some(&key));
    // A key that went and came back in one part is in both of its sections: that it is there counts.
    let rank = |stream: &KeyStream<'_>| Reverse((stream.blocks.place.versions.until, !stream.gone));
    let mentions = mentions.map(|stream| (rank(stream), stream.gone, stream.entries.next()));
    let newest = mentions.min_by_key(|(rank, ..)| *rank);
    Ok(newest.and_then(|(_, gone, entry)| entry.map(|(key, number)| (key, number, gone))))
}

/// Writes the section of keys that are there, or of those that are gone.
pub(super) async fn write_keys(
    parts: &Snapshot,
    label: LabelId,
    gone: bool,
    part: &mut PartWriter,
    context: &QueryContext,
) -> Result<(), EngineError> {
    let failed = |error: FormatError| EngineError::format("a new segment")(error);
    let key_type = parts.schema().label(label).map_or(KeyType::Int64, |label| label.key_type);
    let kind = if gone { SectionKind::Gone(label) } else { SectionKind::Keys(label) };
    let mut writer = KeyWriter::new(kind, key_type);
    let mut streams = KeyStream::all(parts, SectionKind::Keys(label), key_type);
    streams.extend(KeyStream::all(parts, SectionKind::Gone(label), key_type));
    while let Some((key, number, is_gone)) = next(&mut streams, context).await? {
        if is_gone == gone {
            writer.push(key, number, &mut part.segment).map_err(failed)?;
            part.send().await?;
        }
    }
    writer.finish(&mut part.segment).map_err(failed)
}
