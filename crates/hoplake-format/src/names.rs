//! Names for the data objects of one writer.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use crate::constants::data_name;

/// Names objects, one after the other. Clones go on with one count, so that no name is given twice: they belong to one
/// thread. Threads that share a count would decide by their speed which object gets which number, so work that is divided
/// among threads [divides the numbers](Self::divided) first.
#[derive(Debug, Clone)]
pub struct DataNames {
    base: u64,
    writer: Arc<str>,
    next: Arc<AtomicU32>,
    /// From one number to the next.
    step: u32,
}

impl DataNames {
    /// Names for what a writer, by its ULID, adds to version `base`, with numbers from `number` on.
    pub fn new(base: u64, writer: &str, number: u32) -> Self {
        Self { base, writer: writer.into(), next: Arc::new(AtomicU32::new(number)), step: 1 }
    }

    /// Divides the numbers that are left among `N` threads: thread `n` gets each `N`th from the `n`th on. The clones of
    /// `self` must not be used any more.
    pub fn divided<const N: usize>(self) -> [Self; N] {
        let next = self.next.load(Ordering::Relaxed);
        std::array::from_fn(|thread| Self {
            base: self.base,
            writer: self.writer.clone(),
            next: Arc::new(AtomicU32::new(next + thread as u32 * self.step)),
            step: self.step * N as u32,
        })
    }

    /// A name that no other object of the graph has or will have.
    pub fn next(&self, ending: &str) -> String {
        data_name(self.base, &self.writer, self.next.fetch_add(self.step, Ordering::Relaxed), ending)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number within a name.
    fn number(names: &DataNames) -> u32 {
        let name = names.next("hls");
        name.rsplit(['-', '.']).nth(1).and_then(|number| number.parse().ok()).unwrap()
    }

    #[test]
    fn divided_numbers_are_each_given_once_and_in_whatever_order_threads_ask() {
        let names = DataNames::new(7, "01JDXAAAAAAAAAAAAAAAAAAAAA", 3);
        assert_eq!(number(&names), 3);
        let [one, other] = names.divided();
        // The second thread is faster.
        assert_eq!([number(&other), number(&other), number(&one), number(&other), number(&one)], [5, 7, 4, 9, 6]);
        let [first, second, third] = one.divided();
        assert_eq!([number(&third), number(&second), number(&first), number(&first)], [12, 10, 8, 14]);
    }
}
