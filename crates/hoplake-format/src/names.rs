//! Names for the data objects of one writer.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use crate::constants::data_name;

/// Names objects, one after the other. Clones go on with one count, so that no name is given twice.
#[derive(Debug, Clone)]
pub struct DataNames {
    base: u64,
    writer: Arc<str>,
    next: Arc<AtomicU32>,
}

impl DataNames {
    /// Names for what a writer, by its ULID, adds to version `base`, with numbers from `number` on.
    pub fn new(base: u64, writer: &str, number: u32) -> Self {
        Self { base, writer: writer.into(), next: Arc::new(AtomicU32::new(number)) }
    }

    /// A name that no other object of the graph has or will have.
    pub fn next(&self, ending: &str) -> String {
        data_name(self.base, &self.writer, self.next.fetch_add(1, Ordering::Relaxed), ending)
    }
}
