//! Writes sections over as many segments as they take.

use std::collections::VecDeque;

use super::{SectionKind, SegmentBuilder, SegmentSettings, index_block::ordered};
use crate::{
    DataNames, FormatError, KeyType, VersionRange,
    keys::Key,
    manifest::{First, SectionRef, SegmentRef},
};

/// Bytes of a segment on their way out.
#[derive(Debug)]
pub struct SegmentBytes {
    /// The segment's name.
    pub name: String,
    /// The bytes after those that were taken.
    pub bytes: Vec<u8>,
    /// Its entry in a manifest, if these are its last bytes.
    pub ended: Option<SegmentRef>,
}

/// How much was written of a section, or of a piece of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SectionSize {
    /// Its content.
    pub kind: SectionKind,
    /// Edges or keys.
    pub items: u64,
    /// Bytes of its blocks.
    pub bytes: u64,
}

/// Writes sections, block by block. A section that does not fit into a segment goes on in the next one.
///
/// Nothing is sent: the caller [takes](Self::take) bytes when it likes. [`KeyWriter`](super::KeyWriter) and
/// [`ListWriter`](super::ListWriter) make the blocks.
#[derive(Debug)]
pub struct SegmentWriter {
    names: DataNames,
    settings: SegmentSettings,
    versions: VersionRange,
    current: Option<Current>,
    /// The section under way, with the type of its keys.
    section: Option<(SectionKind, Option<KeyType>)>,
    ended: VecDeque<SegmentBytes>,
    sizes: Vec<SectionSize>,
}

/// The segment under way.
#[derive(Debug)]
struct Current {
    name: String,
    builder: SegmentBuilder,
    sections: Vec<SectionRef>,
    checksum: u32,
}

impl SegmentWriter {
    /// Writes what these versions changed into segments that are named as they are begun.
    ///
    /// # Errors
    /// [`FormatError::Invalid`] if readers could not read what is written so.
    pub fn new(names: &DataNames, versions: VersionRange, settings: SegmentSettings) -> Result<Self, FormatError> {
        settings.validate()?;
        Ok(Self {
            names: names.clone(),
            settings,
            versions,
            current: None,
            section: None,
            ended: VecDeque::new(),
            sizes: Vec::new(),
        })
    }

    /// Sections that begin from now on are of these versions.
    pub fn set_versions(&mut self, versions: VersionRange) {
        self.versions = versions;
    }

    /// When blocks, index blocks and segments end.
    pub fn settings(&self) -> SegmentSettings {
        self.settings
    }

    /// How much was written of each section, in their order, those of segments that have ended included.
    pub fn sizes(&self) -> &[SectionSize] {
        &self.sizes
    }

    /// Bytes that can be taken.
    pub fn buffered_bytes(&self) -> usize {
        let ended: usize = self.ended.iter().map(|segment| segment.bytes.len()).sum();
        ended + self.current.as_ref().map_or(0, |current| current.builder.buffered_bytes())
    }

    /// Takes bytes of the oldest segment that has any. Of a segment that has not ended it takes none as long as they
    /// are fewer than `bytes_min`.
    pub fn take(&mut self, bytes_min: usize) -> Option<SegmentBytes> {
        // The oldest first, so that uploads finish in order and at most one object is under way.
        if let Some(segment) = self.ended.pop_front() {
            return Some(segment);
        }
        // Parts of an upload have a least size; the last bytes of a segment are taken whatever their number.
        let current = self.current.as_mut().filter(|current| current.builder.buffered_bytes() >= bytes_min.max(1))?;
        Some(SegmentBytes { name: current.name.clone(), bytes: current.drain(), ended: None })
    }

    /// Ends the segment under way, if there is one.
    ///
    /// # Errors
    /// [`FormatError::Invalid`] if a filter cannot be built.
    pub fn finish(&mut self) -> Result<(), FormatError> {
        self.section = None;
        let Some(mut current) = self.current.take() else { return Ok(()) };
        let end = current.builder.finish()?;
        let bytes = current.drain();
        let Current { name, sections, checksum, .. } = current;
        let reference = SegmentRef { name: name.clone(), end, sections, checksum };
        self.ended.push_back(SegmentBytes { name, bytes, ended: Some(reference) });
        Ok(())
    }

    /// Ends the segment under way. A section under way, whose writer was [flushed](super::ListWriter::flush), goes on in another one.
    ///
    /// # Errors
    /// [`FormatError::Invalid`] if a filter cannot be built.
    pub fn end_segment(&mut self) -> Result<(), FormatError> {
        let section = self.section;
        self.finish()?;
        self.section = section;
        Ok(())
    }

    /// Goes on with a section that another writer began, in a segment of its own.
    pub(super) fn resume(&mut self, kind: SectionKind, key_type: Option<KeyType>) {
        self.section = Some((kind, key_type));
    }

    /// Begins a section of keys.
    pub(super) fn begin_keys(&mut self, kind: SectionKind, key_type: KeyType) -> Result<(), FormatError> {
        self.begin(kind, Some(key_type), None)
    }

    /// Begins a section of lists.
    pub(super) fn begin_lists(&mut self, kind: SectionKind) -> Result<(), FormatError> {
        self.begin(kind, None, None)
    }

    /// Adds a block of keys, which was encoded from `entries`.
    pub(super) fn key_block(&mut self, entries: &[(Key, u64)], payload: &[u8]) -> Result<(), FormatError> {
        let first = entries.first().map(|(key, _)| match key {
            Key::Int64(key) => First::Number(ordered(*key)),
            Key::String(key) => First::Text(key.clone()),
        });
        let builder = self.with_room(first)?;
        builder.key_block(entries, payload)?;
        self.count(entries.len() as u64, payload);
        Ok(())
    }

    /// Adds a block of lists that begins with `first_source`. `filtered` are the sources that begin in it and go into a
    /// filter.
    pub(super) fn adjacency_block(
        &mut self,
        first_source: u64,
        edges: u64,
        payload: &[u8],
        filtered: &[u64],
    ) -> Result<(), FormatError> {
        let builder = self.with_room(Some(First::Number(first_source)))?;
        builder.filter_sources(filtered)?;
        builder.adjacency_block(first_source, edges, payload)?;
        self.count(edges, payload);
        Ok(())
    }

    fn begin(
        &mut self,
        kind: SectionKind,
        key_type: Option<KeyType>,
        continues: Option<First>,
    ) -> Result<(), FormatError> {
        // A small section shares the segment of those before it: one object for each would be a request for each.
        if self.current.as_ref().is_some_and(|current| current.builder.is_full()) {
            self.finish()?;
        }
        let current = self.current.get_or_insert_with(|| {
            let name = self.names.next("hls");
            let builder = SegmentBuilder::new(&name, self.settings);
            Current { name, builder, sections: Vec::new(), checksum: 0 }
        });
        match key_type {
            Some(key_type) => current.builder.begin_keys(kind, key_type)?,
            None => current.builder.begin_lists(kind)?,
        }
        current.sections.push(SectionRef { kind, versions: Some(self.versions), continues });
        self.section = Some((kind, key_type));
        self.sizes.push(SectionSize { kind, items: 0, bytes: 0 });
        Ok(())
    }

    /// The segment that the next block goes into, which begins with `first`: another one if that under way is full.
    fn with_room(&mut self, first: Option<First>) -> Result<&mut SegmentBuilder, FormatError> {
        // Not before the section has a block: a piece without one would begin with nothing.
        let is_full = |current: &Current| current.builder.is_full() && current.builder.has_begun();
        // Or there is none: the last one was ended, or another writer wrote it.
        if let Some((kind, key_type)) = self.section.filter(|_| self.current.as_ref().is_none_or(is_full)) {
            self.finish()?;
            self.begin(kind, key_type, first)?;
        }
        Ok(&mut self.current.as_mut().expect("a section has begun").builder)
    }

    fn count(&mut self, items: u64, payload: &[u8]) {
        let size = self.sizes.last_mut().expect("a section has begun");
        size.items += items;
        size.bytes += (payload.len() + crate::constants::CHECKSUM_BYTES) as u64;
    }
}

impl Current {
    fn drain(&mut self) -> Vec<u8> {
        let bytes = self.builder.drain();
        self.checksum = crc32c::crc32c_append(self.checksum, &bytes);
        bytes
    }
}
