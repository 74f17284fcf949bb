//! Writes sections of keys and lists, item by item, into a segment.

use hoplake_format::{
    FormatError, Key, KeyType,
    adjacency::{BLOCK_BYTES_DEFAULT, BlockEncoder, EncodedBlock},
    keys::encode_key_block,
    segment::{SectionKind, SegmentBuilder},
};

/// Bytes of a key block, about.
const KEY_BLOCK_BYTES: usize = 4 << 10;

/// Writes a section of keys, which is there only if there is a key.
pub(crate) struct KeyWriter {
    kind: SectionKind,
    key_type: KeyType,
    block: Vec<(Key, u64)>,
    bytes: usize,
    begun: bool,
}

impl KeyWriter {
    pub(crate) fn new(kind: SectionKind, key_type: KeyType) -> Self {
        Self { kind, key_type, block: Vec::new(), bytes: 0, begun: false }
    }

    /// Adds a key, which is greater than all before.
    pub(crate) fn push(&mut self, key: Key, number: u64, segment: &mut SegmentBuilder) -> Result<(), FormatError> {
        if !self.begun {
            segment.begin_keys(self.kind, self.key_type)?;
            self.begun = true;
        }
        self.bytes += key.encoded_bytes();
        self.block.push((key, number));
        if self.bytes >= KEY_BLOCK_BYTES { self.end_block(segment) } else { Ok(()) }
    }

    pub(crate) fn finish(mut self, segment: &mut SegmentBuilder) -> Result<(), FormatError> {
        if self.block.is_empty() { Ok(()) } else { self.end_block(segment) }
    }

    fn end_block(&mut self, segment: &mut SegmentBuilder) -> Result<(), FormatError> {
        segment.key_block(&self.block, &encode_key_block(&self.block)?)?;
        self.block.clear();
        self.bytes = 0;
        Ok(())
    }
}

/// Writes a section of lists, which is there only if there is an edge.
pub(crate) struct ListWriter {
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
    pub(crate) fn new(kind: SectionKind, filtered: bool) -> Result<Self, FormatError> {
        let encoder = BlockEncoder::new(BLOCK_BYTES_DEFAULT)?;
        Ok(Self { kind, encoder, filtered, sources: Vec::new(), held: None, finished: Vec::new(), begun: false })
    }

    /// Adds the list of a source, which is greater than all before.
    pub(crate) fn push(
        &mut self,
        source: u64,
        targets: &[u64],
        segment: &mut SegmentBuilder,
    ) -> Result<(), FormatError> {
        if targets.is_empty() {
            return Ok(());
        }
        if !self.begun {
            segment.begin_lists(self.kind)?;
            self.begun = true;
        }
        if self.filtered {
            self.sources.push(source);
        }
        self.encoder.push(source, targets, &mut self.finished)?;
        for block in std::mem::take(&mut self.finished) {
            self.next_block(Some(block), segment)?;
        }
        Ok(())
    }

    pub(crate) fn finish(mut self, segment: &mut SegmentBuilder) -> Result<(), FormatError> {
        let encoder = std::mem::replace(&mut self.encoder, BlockEncoder::new(BLOCK_BYTES_DEFAULT)?);
        if let Some(block) = encoder.finish() {
            self.next_block(Some(block), segment)?;
        }
        self.next_block(None, segment)
    }

    /// Writes the block that was held, now that it is known with which source the next begins.
    fn next_block(&mut self, next: Option<EncodedBlock>, segment: &mut SegmentBuilder) -> Result<(), FormatError> {
        if let Some(block) = self.held.take() {
            // Who looks for a source asks the filter of the first block that can have it: where its list begins.
            let bound = next.as_ref().map_or(u64::MAX, |next| next.entry.first_source);
            let begun = self.sources.partition_point(|source| *source < bound || *source <= block.entry.first_source);
            segment.filter_sources(&self.sources[..begun])?;
            self.sources.drain(..begun);
            segment.adjacency_block(block.entry.first_source, block.entry.edges.into(), &block.bytes);
        }
        self.held = next;
        Ok(())
    }
}
