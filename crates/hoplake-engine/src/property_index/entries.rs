//! The items of rows, by index: what a commit adds and removes.

use std::collections::{BTreeMap, BTreeSet};

use arrow_array::RecordBatch;
use hoplake_format::{IndexId, PropertyIndex, property_index::ValueColumn};

/// Items of some rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Items(BTreeMap<IndexId, BTreeSet<String>>);

impl Items {
    /// Adds the items of rows, each of a vertex with an ordinal. A column that the batch lacks has no values.
    pub(crate) fn add<'a>(
        &mut self,
        indexes: impl Iterator<Item = &'a PropertyIndex>,
        rows: &RecordBatch,
        ordinals: &[u64],
    ) {
        for index in indexes {
            let column = rows.column_by_name(&index.property).map(AsRef::as_ref);
            let Some(values) = column.and_then(ValueColumn::of) else { continue };
            let items =
                ordinals.iter().enumerate().filter_map(|(row, ordinal)| Some(values.value(row)?.item(*ordinal)));
            self.0.entry(index.id).or_default().extend(items);
        }
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
