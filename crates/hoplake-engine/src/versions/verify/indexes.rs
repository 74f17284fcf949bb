//! Property indexes against the rows: both have the same items.
//!
//! They come in different orders, by value and by ordinal, and neither is kept: what is compared are the number of items and the sum
//! of their hashes. Two sets of items that differ have one sum as rarely as two random numbers of 64 bits are equal.

use hoplake_format::{FormatError, Key, PropertyIndex};
use hoplake_storage::QueryContext;

use super::version::VersionCheck;
use crate::{EngineError, VertexQuery};

/// Bytes that are read ahead.
const AHEAD_BYTES: u64 = 16 << 20;

/// Items in any order.
#[derive(Debug, Default, PartialEq, Eq)]
struct Sum {
    items: u64,
    hashes: u64,
}

impl Sum {
    fn add(&mut self, item: Key) {
        self.items += 1;
        self.hashes = self.hashes.wrapping_add(item.hash());
    }
}

impl VersionCheck<'_> {
    /// Whether each index that is complete has the values of all rows, and no others.
    ///
    /// # Errors
    /// [`EngineError::Format`] that names the first that does not; the store's.
    pub(super) async fn verify_indexes(self) -> Result<(), EngineError> {
        for index in self.snapshot.manifest().indexes.iter().filter(|index| index.is_ready()) {
            let indexed = self.sum_of_index(index).await?;
            let stored = self.sum_of_rows(index).await?;
            if indexed != stored {
                let why = match indexed.items == stored.items {
                    true => format!("it has {} values, and not those of the rows", indexed.items),
                    false => format!("it has {} values, and the rows have {}", indexed.items, stored.items),
                };
                let location = format!("{}, index {}", self.snapshot.reader().store().url(), self.index_text(index.id));
                return Err(EngineError::format(location)(FormatError::corrupt("property index", why)));
            }
        }
        Ok(())
    }

    async fn sum_of_index(self, index: &PropertyIndex) -> Result<Sum, EngineError> {
        let mut branch = QueryContext::new().branch();
        let mut scan = self.snapshot.scan_items(index.id, AHEAD_BYTES);
        let mut sum = Sum::default();
        let mut items = Vec::new();
        while scan.next(&mut items, &mut branch).await? {
            items.drain(..).for_each(|(item, _)| sum.add(item));
        }
        Ok(sum)
    }

    async fn sum_of_rows(self, index: &PropertyIndex) -> Result<Sum, EngineError> {
        let mut branch = QueryContext::new().branch();
        let columns = vec![index.property.clone()];
        let query = VertexQuery { label: index.label, condition: None, columns, wanted: None };
        let mut scan = self.snapshot.scan_vertices(query, &mut branch).await?;
        let mut sum = Sum::default();
        while let Some(found) = scan.next(&mut branch).await? {
            let items = index.items(&found.batch, found.ordinals());
            let items = items.map_err(EngineError::format(self.snapshot.reader().store().url()))?;
            items.for_each(|item| sum.add(Key::String(item)));
        }
        Ok(sum)
    }
}
