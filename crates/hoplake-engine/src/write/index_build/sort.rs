//! Items in any order, sorted within a budget: what does not fit goes to temporary files, which are merged. Sorting, merging and
//! writing rest on the way.

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    fs::File,
    io::{self, BufReader, BufWriter, Read, Seek, Write},
    mem::take,
};

use hoplake_storage::Pace;

use crate::EngineError;

/// The buffer of a file.
const BUFFER_BYTES: usize = 64 << 10;

/// Items that are sorted at once.
const RUN: usize = 1 << 13;

/// Files that are merged into one, so that never many are open.
const FILES_MAX: usize = 64;

/// Units of work that an item takes which is merged and written.
const ITEM_UNITS: u64 = 16;

/// Takes items and gives them back in order.
pub(super) struct ItemSorter {
    /// The last items, in no order.
    items: Vec<String>,
    /// Those before, in sorted runs.
    runs: Vec<Vec<String>>,
    bytes: usize,
    bytes_max: usize,
    /// Spilled files, and at each next place those that as many of the place before were merged into.
    files: Vec<Vec<File>>,
    files_max: usize,
}

/// All items, ascending.
pub(super) struct SortedItems {
    heads: BinaryHeap<Reverse<(String, usize)>>,
    sources: Vec<Source>,
}

enum Source {
    Memory(std::vec::IntoIter<String>),
    File(BufReader<File>),
}

impl ItemSorter {
    pub(super) fn new(bytes_max: u64) -> Self {
        let bytes_max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
        let items = Vec::new();
        let runs = Vec::new();
        let files = Vec::new();
        Self { items, runs, bytes: 0, bytes_max, files, files_max: FILES_MAX }
    }

    pub(super) async fn push(&mut self, item: String, pace: &mut Pace) -> Result<(), EngineError> {
        // The vector doubles as it grows.
        self.bytes += item.capacity() + 2 * size_of::<String>();
        self.items.push(item);
        if self.items.len() == RUN {
            self.end_run();
            pace.rest(RUN as u64 * ITEM_UNITS).await?;
        }
        if self.bytes > self.bytes_max { self.spill(pace).await } else { Ok(()) }
    }

    fn end_run(&mut self) {
        self.items.sort_unstable();
        self.runs.push(take(&mut self.items));
    }

    async fn spill(&mut self, pace: &mut Pace) -> Result<(), EngineError> {
        self.end_run();
        self.bytes = 0;
        let mut file = write(SortedItems::of(take(&mut self.runs), Vec::new())?, pace).await?;
        for place in 0.. {
            if place == self.files.len() {
                self.files.push(Vec::new());
            }
            self.files[place].push(file);
            if self.files[place].len() < self.files_max {
                break;
            }
            file = write(SortedItems::of(Vec::new(), take(&mut self.files[place]))?, pace).await?;
        }
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<SortedItems, EngineError> {
        self.end_run();
        SortedItems::of(self.runs, self.files.into_iter().flatten().collect())
    }
}

/// Writes items into a file, which is at its beginning then.
async fn write(mut items: SortedItems, pace: &mut Pace) -> Result<File, EngineError> {
    let mut file = BufWriter::with_capacity(BUFFER_BYTES, tempfile::tempfile().map_err(failed)?);
    while let Some(item) = items.next()? {
        file.write_all(&(item.len() as u32).to_le_bytes()).map_err(failed)?;
        file.write_all(item.as_bytes()).map_err(failed)?;
        pace.rest(ITEM_UNITS).await?;
    }
    let mut file = file.into_inner().map_err(|error| failed(error.into_error()))?;
    file.rewind().map_err(failed)?;
    Ok(file)
}

impl SortedItems {
    fn of(runs: Vec<Vec<String>>, files: Vec<File>) -> Result<Self, EngineError> {
        let files = files.into_iter().map(|file| Source::File(BufReader::with_capacity(BUFFER_BYTES, file)));
        let runs = runs.into_iter().map(|run| Source::Memory(run.into_iter()));
        let mut sorted = Self { heads: BinaryHeap::new(), sources: runs.chain(files).collect() };
        for source in 0..sorted.sources.len() {
            sorted.refill(source)?;
        }
        Ok(sorted)
    }

    /// The next item; `None` behind the last.
    pub(super) fn next(&mut self) -> Result<Option<String>, EngineError> {
        let Some(Reverse((item, source))) = self.heads.pop() else { return Ok(None) };
        self.refill(source)?;
        Ok(Some(item))
    }

    fn refill(&mut self, source: usize) -> Result<(), EngineError> {
        let next = match &mut self.sources[source] {
            Source::Memory(items) => items.next(),
            Source::File(file) => read(file).map_err(failed)?,
        };
        self.heads.extend(next.map(|item| Reverse((item, source))));
        Ok(())
    }
}

/// The next item of a file; `None` at its end.
fn read(file: &mut impl Read) -> io::Result<Option<String>> {
    let mut length = [0; 4];
    match file.read_exact(&mut length) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let mut item = vec![0; u32::from_le_bytes(length) as usize];
    file.read_exact(&mut item)?;
    String::from_utf8(item).map(Some).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

fn failed(error: io::Error) -> EngineError {
    EngineError::Invalid(format!("the temporary folder cannot be used: {error}"))
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;
    use hoplake_storage::QueryContext;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn items_come_in_order_whatever_fits(
            items in prop::collection::vec("[a-c\0]{0,6}", 0..200), bytes_max in 1u64..8_000, files_max in 2usize..6
        ) {
            let mut sorter = ItemSorter { files_max, ..ItemSorter::new(bytes_max) };
            let mut pace = QueryContext::new().pace();
            for item in &items {
                block_on(sorter.push(item.clone(), &mut pace)).unwrap();
                prop_assert!(sorter.files.iter().all(|files| files.len() < files_max));
            }
            let mut sorted = sorter.finish().unwrap();
            let found: Vec<_> = std::iter::from_fn(|| sorted.next().unwrap()).collect();
            let mut expected = items;
            expected.sort();
            prop_assert_eq!(found, expected);
        }
    }
}
