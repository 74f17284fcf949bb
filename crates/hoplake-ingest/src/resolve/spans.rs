//! Integer keys that count up with their ordinals: nothing to store but where the counting starts.

use hoplake_format::LabelId;

use super::{UNKNOWN, with_label};

/// With more spans than this, a hash table is faster: a search among these still stays in the cache.
pub(super) const SPANS_MAX: usize = 512;

/// Consecutive keys whose vertices are consecutive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) key: i64,
    pub(super) vertex: u64,
    pub(super) len: u64,
}

impl Span {
    /// How far into the span `key` is; beyond its length if it is not in it.
    #[inline]
    fn offset(&self, key: i64) -> u64 {
        // Keys below the first wrap to offsets beyond any length.
        (key as u64).wrapping_sub(self.key as u64)
    }

    /// Takes one more key at the end, if it continues the span.
    pub(super) fn extend(&mut self, key: i64, vertex: u64) -> bool {
        let continues = self.offset(key) == self.len && self.vertex + self.len == vertex;
        self.len += u64::from(continues);
        continues
    }

    /// Every key with its vertex.
    pub(super) fn keys(self) -> impl Iterator<Item = (i64, u64)> {
        (0..self.len).map(move |offset| (self.key.wrapping_add(offset as i64), self.vertex + offset))
    }
}

/// Looks keys up in spans that ascend.
pub(super) fn resolve(spans: &[Span], keys: &[i64], label: Option<LabelId>, vertices: &mut Vec<u64>) {
    let Some(mut span) = spans.first() else {
        vertices.extend(keys.iter().map(|_| UNKNOWN));
        return;
    };
    vertices.extend(keys.iter().map(|&key| {
        if span.offset(key) >= span.len {
            let position = spans.partition_point(|span| span.key <= key);
            span = &spans[position.saturating_sub(1)];
        }
        let offset = span.offset(key);
        if offset < span.len { with_label(span.vertex + offset, label) } else { UNKNOWN }
    }));
}
