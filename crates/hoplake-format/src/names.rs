//! The names of the objects that one writer writes.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use crate::constants::data_name;

/// Numbers of a span: more objects than the sections and tables of one take.
const SPAN_NUMBERS: u64 = 1 << 20;

/// Names objects, one after the other. Clones go on with one count, so that no name is given twice: they belong to one
/// thread. Threads that shared a count would decide by their speed which object gets which number, so each names the objects of
/// [its own spans](Self::begin_span).
#[derive(Debug, Clone)]
pub struct DataNames {
    base: u64,
    writer: Arc<str>,
    next: Arc<AtomicU64>,
}

impl DataNames {
    /// Names for what a writer, by its ULID, adds to version `base`, with numbers from `number` on.
    pub fn new(base: u64, writer: &str, number: u64) -> Self {
        Self { base, writer: writer.into(), next: Arc::new(AtomicU64::new(number)) }
    }

    /// Goes on with the names of a span, which has 2²⁰ of them.
    pub fn begin_span(&self, span: u64) {
        self.next.store(span * SPAN_NUMBERS, Ordering::Relaxed);
    }

    /// A name that no other object of the graph has or will have.
    pub fn next(&self, ending: &str) -> String {
        data_name(self.base, &self.writer, self.next.fetch_add(1, Ordering::Relaxed), ending)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number within a name.
    fn number(names: &DataNames) -> u64 {
        let name = names.next("hls");
        name.rsplit(['-', '.']).nth(1).and_then(|number| number.parse().ok()).unwrap()
    }

    #[test]
    fn numbers_are_given_once_whatever_order_spans_ask_in() {
        let names = DataNames::new(7, "01JDXAAAAAAAAAAAAAAAAAAAAA", 3);
        assert_eq!(number(&names), 3);
        let [zero, one] = [0, 1].map(|span| {
            let names = DataNames::new(7, "01JDXAAAAAAAAAAAAAAAAAAAAA", 3);
            names.begin_span(span);
            names
        });
        // The second span is faster.
        let found = [number(&one), number(&one.clone()), number(&zero), number(&one), number(&zero)];
        assert_eq!(found, [1 << 20, (1 << 20) + 1, 0, (1 << 20) + 2, 1]);
        zero.begin_span(2);
        assert_eq!((number(&zero), number(&one)), (2 << 20, (1 << 20) + 3));
    }
}
