//! Items in any order, sorted within a budget: what does not fit goes to temporary files, which are merged.

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    fs::File,
    io::{self, BufReader, BufWriter, Read, Seek, Write},
};

use crate::EngineError;

/// The buffer of a file.
const BUFFER_BYTES: usize = 64 << 10;

/// Takes items and gives them back in order.
pub(super) struct ItemSorter {
    items: Vec<String>,
    bytes: usize,
    bytes_max: usize,
    files: Vec<File>,
}

/// All items, ascending.
pub(super) struct SortedItems {
    heads: BinaryHeap<Reverse<(String, usize)>>,
    files: Vec<BufReader<File>>,
    /// What never left memory, the greatest first.
    kept: Vec<String>,
}

impl ItemSorter {
    pub(super) fn new(bytes_max: u64) -> Self {
        let bytes_max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
        Self { items: Vec::new(), bytes: 0, bytes_max, files: Vec::new() }
    }

    pub(super) fn push(&mut self, item: String) -> Result<(), EngineError> {
        // The vector doubles as it grows.
        self.bytes += item.capacity() + 2 * size_of::<String>();
        self.items.push(item);
        if self.bytes > self.bytes_max { self.spill().map_err(failed) } else { Ok(()) }
    }

    fn spill(&mut self) -> io::Result<()> {
        self.items.sort_unstable();
        let mut file = BufWriter::with_capacity(BUFFER_BYTES, tempfile::tempfile()?);
        for item in self.items.drain(..) {
            file.write_all(&(item.len() as u32).to_le_bytes())?;
            file.write_all(item.as_bytes())?;
        }
        let mut file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.rewind()?;
        self.files.push(file);
        self.bytes = 0;
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<SortedItems, EngineError> {
        self.items.sort_unstable_by(|a, b| b.cmp(a));
        let files = self.files.into_iter().map(|file| BufReader::with_capacity(BUFFER_BYTES, file)).collect();
        let mut sorted = SortedItems { heads: BinaryHeap::new(), files, kept: self.items };
        for file in 0..sorted.files.len() {
            sorted.refill(file).map_err(failed)?;
        }
        Ok(sorted)
    }
}

impl SortedItems {
    /// The next item; `None` behind the last.
    pub(super) fn next(&mut self) -> Result<Option<String>, EngineError> {
        let kept_first = match (self.kept.last(), self.heads.peek()) {
            (Some(kept), Some(Reverse((head, _)))) => kept < head,
            (kept, _) => kept.is_some(),
        };
        if kept_first {
            return Ok(self.kept.pop());
        }
        let Some(Reverse((item, file))) = self.heads.pop() else { return Ok(None) };
        self.refill(file).map_err(failed)?;
        Ok(Some(item))
    }

    fn refill(&mut self, file: usize) -> io::Result<()> {
        let mut length = [0; 4];
        match self.files[file].read_exact(&mut length) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            read => read?,
        }
        let mut item = vec![0; u32::from_le_bytes(length) as usize];
        self.files[file].read_exact(&mut item)?;
        let item = String::from_utf8(item).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        self.heads.push(Reverse((item, file)));
        Ok(())
    }
}

fn failed(error: io::Error) -> EngineError {
    EngineError::Invalid(format!("the temporary folder cannot be used: {error}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn items_come_in_order_whatever_fits(items in prop::collection::vec("[a-c\0]{0,6}", 0..200), bytes_max in 1u64..8_000) {
            let mut sorter = ItemSorter::new(bytes_max);
            items.iter().for_each(|item| sorter.push(item.clone()).unwrap());
            let mut sorted = sorter.finish().unwrap();
            let found: Vec<_> = std::iter::from_fn(|| sorted.next().unwrap()).collect();
            let mut expected = items;
            expected.sort();
            prop_assert_eq!(found, expected);
        }
    }
}
