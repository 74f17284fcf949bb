//! The items of rows, by index: what a commit adds and removes.

use std::collections::{BTreeMap, BTreeSet};

use arrow_array::RecordBatch;
use hoplake_format::{FormatError, IndexId, PropertyIndex};

/// Items of some rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Items(BTreeMap<IndexId, BTreeSet<String>>);

impl Items {
    /// Adds the items of rows, each of a vertex with an ordinal.
    ///
    /// # Errors
    /// As [`PropertyIndex::items`].
    pub(crate) fn add<'a>(
        &mut self,
        indexes: impl Iterator<Item = &'a PropertyIndex>,
        rows: &RecordBatch,
        ordinals: &[u64],
    ) -> Result<(), FormatError> {
        for index in indexes {
            let items = index.items(rows, ordinals.iter().copied())?;
            self.0.entry(index.id).or_default().extend(items);
        }
        Ok(())
    }

    /// Adds all of others.
    pub(crate) fn extend(&mut self, others: &Self) {
        for (index, items) in &others.0 {
            self.0.entry(*index).or_default().extend(items.iter().cloned());
        }
    }

    /// The items of an index, ascending, that `other` does not have.
    pub(crate) fn without<'a>(&'a self, index: IndexId, other: &'a Self) -> impl Iterator<Item = &'a String> {
        let others = other.0.get(&index);
        let items = self.0.get(&index).into_iter().flatten();
        items.filter(move |item| !others.is_some_and(|others| others.contains(*item)))
    }
}
