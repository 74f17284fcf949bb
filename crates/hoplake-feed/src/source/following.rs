//! What a stream is asked for, and what of that its transactions change.

use std::collections::{BTreeMap, BTreeSet};

use hoplake::Name;
use tokio::sync::watch;

use super::{
    catalog::TableName,
    change::Transaction,
    shape::{ColumnShape, TableShape},
    spill::SpillSettings,
};

/// What of the transactions is wanted.
#[derive(Debug, Clone, Default)]
pub struct Following {
    /// The tables, and their columns that are carried into the graph.
    pub tables: BTreeMap<TableName, BTreeSet<Name>>,
    /// What they were at the position where the stream begins, as far as that is known.
    pub shapes: BTreeMap<TableName, TableShape>,
    /// Their columns that the mapping ignores: they are never carried, also if they are dropped and added again.
    pub ignored: BTreeMap<TableName, BTreeSet<Name>>,
    /// Row changes in memory may take this many bytes, of one transaction or of all that a log has not ended.
    pub transaction_bytes_max: u64,
    /// Where a database's transaction goes that is larger than a part of it; without, it is an error.
    pub spill: Option<SpillSettings>,
    /// The position of a statement that is passed over, whatever it does to the tables.
    pub accepted: Option<String>,
    /// Up to where the graph has followed, as it commits.
    pub committed: Option<watch::Receiver<String>>,
    /// Whether nothing more is wanted than what the source had when the stream began: it ends with `None` there, although others
    /// go on writing.
    pub once: bool,
    /// Whether errors may have what is in rows.
    pub show_rows: bool,
}

impl Following {
    /// The same where the mapping ignores these columns.
    #[must_use]
    pub(crate) fn ignoring(mut self, ignored: BTreeMap<TableName, BTreeSet<Name>>) -> Self {
        for (table, columns) in &ignored {
            if let Some(carried) = self.tables.get_mut(table) {
                carried.retain(|column| !columns.contains(column));
            }
        }
        self.ignored = ignored;
        self
    }

    /// Carries new columns of a table, unless the mapping ignores them.
    pub(crate) fn carry(&mut self, table: &TableName, new: Vec<Name>) {
        let ignored = self.ignored.get(table);
        let is_ignored = |column: &Name| ignored.is_some_and(|ignored| ignored.contains(column));
        let carried = self.tables.entry(table.clone()).or_default();
        carried.extend(new.into_iter().filter(|column| !is_ignored(column)));
    }

    /// Notes columns that are null in all rows of a table, or that the mapping ignores, and returns what the table is by now.
    pub(crate) fn add_columns(&mut self, table: &TableName, names: &[Name]) -> TableShape {
        let carried = self.tables.entry(table.clone()).or_default();
        // One that is not carried was dropped before: the new one may have another type.
        let was_dropped: Vec<_> = names.iter().filter(|name| !carried.contains(*name)).cloned().collect();
        self.carry(table, names.to_vec());
        let shape = self.shapes.entry(table.clone()).or_default();
        // Of a table of which nothing is known, nothing is known with them, either.
        if !shape.columns.is_empty() {
            shape.columns.retain(|column| !was_dropped.contains(&column.name));
            let new: Vec<_> = names.iter().filter(|name| !shape.has(name)).cloned().map(ColumnShape::named).collect();
            shape.columns.extend(new);
        }
        shape.clone()
    }

    /// Notes that ignored columns of a table were dropped, and returns what the table is by now.
    #[cfg(feature = "mariadb")]
    pub(crate) fn drop_ignored(&mut self, table: &TableName, names: &[Name]) -> TableShape {
        let shape = self.shapes.entry(table.clone()).or_default();
        shape.columns.retain(|column| !names.contains(&column.name));
        shape.clone()
    }

    /// Takes a table as it is seen next, whatever it was.
    pub(crate) fn forget(&mut self, table: &TableName) -> TableShape {
        self.shapes.remove(table);
        TableShape::default()
    }

    /// Takes over what a transaction says of tables.
    pub(crate) fn pass(&mut self, transaction: &Transaction) {
        for (table, shape) in &transaction.tables {
            let new = self.shapes.get(table).map_or_else(Vec::new, |was| was.new_in(shape));
            self.carry(table, new);
            self.shapes.insert(table.clone(), shape.clone());
        }
        // It was accepted once.
        if !transaction.tables.is_empty() || self.accepted.as_ref() == Some(&transaction.position) {
            self.accepted = None;
        }
    }
}
