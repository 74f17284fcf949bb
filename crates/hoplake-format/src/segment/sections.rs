//! Makes the blocks of sections, item by item.

use super::{SectionKind, SegmentWriter};
use crate::{
    FormatError, Key, KeyType,
    adjacency::{BlockEncoder, EncodedBlock},
    keys::encode_key_block,
};

/// Writes a section of keys, unless it has no key.
#[derive(Debug)]
pub struct KeyWriter {
    kind: SectionKind,
    key_type: KeyType,
    block: Vec<(Key, u64)>,
    bytes: usize,
    begun: bool,
    items: u64,
}

impl KeyWriter {
    /// Writes keys of this type.
    pub fn new(kind: SectionKind, key_type: KeyType) -> Self {
        Self { kind, key_type, block: Vec::new(), bytes: 0, begun: false, items: 0 }
    }

    /// Goes on with a section that another writer began.
    pub fn resumed(kind: SectionKind, key_type: KeyType, segments: &mut SegmentWriter) -> Self {
        segments.resume(kind, Some(key_type));
        Self { begun: true, ..Self::new(kind, key_type) }
    }

    /// Adds an item of a property index, which is greater than all before. Its number counts up, and so takes no bytes.
    ///
    /// # Errors
    /// As [`Self::push`].
    pub fn push_item(&mut self, item: String, segments: &mut SegmentWriter) -> Result<(), FormatError> {
        self.items += 1;
        self.push(Key::String(item), self.items - 1, segments)
    }

    /// Adds a key, which is greater than all before.
    ///
    /// # Errors
    /// [`FormatError::Invalid`] if it is not, or not of the section's type.
    pub fn push(&mut self, key: Key, number: u64, segments: &mut SegmentWriter) -> Result<(), FormatError> {
        if !self.begun {
            segments.begin_keys(self.kind, self.key_type)?;
            self.begun = true;
        }
        self.bytes += key.encoded_bytes();
        self.block.push((key, number));
        if self.bytes >= segments.settings().key_block_bytes { self.end_block(segments) } else { Ok(()) }
    }

    /// Ends the block under way, so that another segment can begin with the next key.
    ///
    /// # Errors
    /// As [`Self::push`].
    pub fn flush(&mut self, segments: &mut SegmentWriter) -> Result<(), FormatError> {
        if self.block.is_empty() { Ok(()) } else { self.end_block(segments) }
    }

    /// Ends the section.
    ///
    /// # Errors
    /// As [`Self::push`].
    pub fn finish(mut self, segments: &mut SegmentWriter) -> Result<(), FormatError> {
        self.flush(segments)
    }

    fn end_block(&mut self, segments: &mut SegmentWriter) -> Result<(), FormatError> {
        segments.key_block(&self.block, &encode_key_block(&self.block)?)?;
        self.block.clear();
        self.bytes = 0;
        Ok(())
    }
}

/// Writes a section of lists, unless it has no edge.
#[derive(Debug)]
pub struct ListWriter {
    kind: SectionKind,
    encoder: BlockEncoder,
    /// Whether the section has filters over its sources: one that holds lists of most vertices needs none.
    filtered: bool,
    /// Sources that no filter has yet, ascending.
    sources: Vec<u64>,
    /// The last block, whose sources are known when the next one begins.
    held: Option<EncodedBlock>,
    finished: Vec<EncodedBlock>,
    begun: bool,
}

impl ListWriter {
    /// Writes lists into these segments.
    ///
    /// # Errors
    /// [`FormatError::Invalid`] if blocks of their size cannot be.
    pub fn new(kind: SectionKind, filtered: bool, segments: &SegmentWriter) -> Result<Self, FormatError> {
        Ok(Self {
            kind,
            encoder: BlockEncoder::new(segments.settings().list_block_bytes)?,
            filtered,
            sources: Vec::new(),
            held: None,
            finished: Vec::new(),
            begun: false,
        })
    }

    /// Goes on with a section of which another writer wrote this many edges.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn resumed(
        kind: SectionKind,
        filtered: bool,
        edges: u64,
        segments: &mut SegmentWriter,
    ) -> Result<Self, FormatError> {
        segments.resume(kind, None);
        let begun = Self::new(kind, filtered, segments)?;
        Ok(Self { encoder: begun.encoder.after(edges), begun: true, ..begun })
    }

    /// Adds the list of a source, which is greater than all before.
    ///
    /// # Errors
    /// [`FormatError::Invalid`] if it is not, or if targets do not ascend.
    pub fn push(&mut self, source: u64, targets: &[u64], segments: &mut SegmentWriter) -> Result<(), FormatError> {
        if targets.is_empty() {
            return Ok(());
        }
        if !self.begun {
            segments.begin_lists(self.kind)?;
            self.begun = true;
        }
        if self.filtered {
            self.sources.push(source);
        }
        self.encoder.push(source, targets, &mut self.finished)?;
        for block in std::mem::take(&mut self.finished) {
            self.next_block(Some(block), segments)?;
        }
        Ok(())
    }

    /// Ends the block under way, so that another segment can begin with the next list.
    ///
    /// # Errors
    /// As [`Self::push`].
    pub fn flush(&mut self, segments: &mut SegmentWriter) -> Result<(), FormatError> {
        if let Some(block) = self.encoder.flush() {
            self.next_block(Some(block), segments)?;
        }
        self.next_block(None, segments)
    }

    /// Ends the section.
    ///
    /// # Errors
    /// As [`Self::push`].
    pub fn finish(mut self, segments: &mut SegmentWriter) -> Result<(), FormatError> {
        self.flush(segments)
    }

    /// Writes the block that was held, now that it is known with which source the next begins.
    fn next_block(&mut self, next: Option<EncodedBlock>, segments: &mut SegmentWriter) -> Result<(), FormatError> {
        if let Some(block) = self.held.take() {
            // A look-up asks the filter of the first block that can have a source: where its list begins.
            let bound = next.as_ref().map_or(u64::MAX, |next| next.entry.first_source);
            // The encoder splits only lists that begin a block, so a list that goes on in the next block is the first of this one.
            let begun = self.sources.partition_point(|source| *source < bound || *source <= block.entry.first_source);
            let first = block.entry.first_source;
            let edges = block.entry.edges.into();
            segments.adjacency_block(first, edges, &block.bytes, &self.sources[..begun])?;
            self.sources.drain(..begun);
        }
        self.held = next;
        Ok(())
    }
}
