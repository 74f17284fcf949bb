//! The keys of the targets of a pass.

use std::ops::Range;

use arrow_array::{Array, ArrayRef, cast::AsArray};
use hoplake_storage::{Branch, MemoryHold};

use crate::{EngineError, memory::bytes_of, read::scan::vertices::VertexScan};

/// The keys of vertices whose ordinals are in a range.
pub(super) struct TargetKeys {
    range: Range<u64>,
    batches: Vec<KeyBatch>,
    _memory: MemoryHold,
}

/// Keys as the scan of vertices returned them.
struct KeyBatch {
    /// The first ordinal.
    first: u64,
    /// All of them, unless they follow each other.
    ordinals: Option<Vec<u64>>,
    keys: ArrayRef,
}

impl TargetKeys {
    /// Reads keys until they take `share` bytes; `None` if there are none left.
    pub(super) async fn read(
        scan: &mut VertexScan,
        share: u64,
        branch: &mut Branch,
    ) -> Result<Option<Self>, EngineError> {
        let context = branch.context().clone();
        let mut memory = context.hold(0)?;
        let mut batches: Vec<KeyBatch> = Vec::new();
        let mut end = 0;
        while memory.bytes() < share
            && let Some(found) = scan.next(branch).await?
        {
            let found = found.into_inner();
            let keys = found.batch.column(0).clone();
            let bounds = found.bounds();
            let is_gapless = bounds.end - bounds.start == found.len() as u64;
            let ordinals = (!is_gapless).then(|| found.ordinals().collect::<Vec<u64>>());
            let bytes = keys.get_array_memory_size() as u64 + bytes_of::<u64>(ordinals.as_ref().map_or(0, Vec::len));
            let held = memory.bytes() + bytes;
            context.resize(&mut memory, held)?;
            end = bounds.end;
            batches.push(KeyBatch { first: bounds.start, ordinals, keys });
        }
        let Some(first) = batches.first().map(|batch| batch.first) else { return Ok(None) };
        Ok(Some(Self { range: first..end, batches, _memory: memory }))
    }

    /// A range that has all of their ordinals.
    pub(super) fn range(&self) -> Range<u64> {
        self.range.clone()
    }

    /// The arrays of the keys.
    pub(super) fn arrays(&self) -> Vec<&dyn Array> {
        self.batches.iter().map(|batch| batch.keys.as_ref()).collect()
    }

    /// Which of the arrays has the key of a vertex, and where.
    pub(super) fn find(&self, ordinal: u64) -> Option<(usize, usize)> {
        let batch = self.batches.partition_point(|batch| batch.first <= ordinal).checked_sub(1)?;
        let KeyBatch { first, ordinals, keys } = &self.batches[batch];
        let at = match ordinals {
            None => usize::try_from(ordinal - first).ok()?,
            Some(ordinals) => ordinals.binary_search(&ordinal).ok()?,
        };
        (at < keys.len()).then_some((batch, at))
    }
}

/// The bytes that a key takes.
pub(super) fn key_bytes(keys: &dyn Array, at: usize) -> u64 {
    keys.as_string_opt::<i32>().map_or(8, |texts| u64::try_from(texts.value_length(at)).unwrap_or(0) + 4)
}
