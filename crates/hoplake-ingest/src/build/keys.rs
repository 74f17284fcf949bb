//! Writes key sections from sorted keys.

use hoplake_format::{Key, KeyType, LabelId, keys::encode_key_block, segment::SectionKind};

use super::objects::SegmentWriter;
use crate::IngestError;

/// Bytes of a key block, about: a look-up reads one and decodes it from the front.
const KEY_BLOCK_BYTES: usize = 4 << 10;

/// A section that is being written: keys arrive strictly ascending.
pub(crate) struct KeyWriter<'a> {
    segment: &'a mut SegmentWriter,
    block: Vec<(Key, u64)>,
    block_bytes: usize,
}

impl<'a> KeyWriter<'a> {
    pub(crate) fn new(segment: &'a mut SegmentWriter, label: LabelId, key_type: KeyType) -> Result<Self, IngestError> {
        segment.builder.begin_keys(SectionKind::Keys(label), key_type)?;
        Ok(Self { segment, block: Vec::new(), block_bytes: 0 })
    }

    pub(crate) fn push(&mut self, key: Key, ordinal: u64) -> Result<(), IngestError> {
        self.block_bytes += key.encoded_bytes();
        self.block.push((key, ordinal));
        if self.block_bytes >= KEY_BLOCK_BYTES { self.end_block() } else { Ok(()) }
    }

    fn end_block(&mut self) -> Result<(), IngestError> {
        if !self.block.is_empty() {
            let payload = encode_key_block(&self.block)?;
            self.segment.builder.key_block(&self.block, &payload)?;
            self.segment.send()?;
        }
        self.block.clear();
        self.block_bytes = 0;
        Ok(())
    }

    pub(crate) fn finish(mut self) -> Result<(), IngestError> {
        self.end_block()
    }
}
