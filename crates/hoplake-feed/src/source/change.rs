//! What a source yields: transactions of row changes.

use std::{borrow::Cow, sync::Arc};

use hoplake::{Name, PropertyType, Value};

use crate::{
    FeedError, TableName,
    source::{shape::TableShape, spill::Spilled},
};

/// A transaction that the source has committed.
#[derive(Debug, Clone, PartialEq)]
pub struct Transaction {
    /// The position after it: a stream from there begins with what comes next.
    pub position: String,
    /// When it was committed, in milliseconds since 1970, as the source says.
    pub committed_unix_ms: i64,
    /// Its changes of tables that are mapped, in their order.
    pub changes: ChangeList,
    /// About the memory that it takes, or would without a file.
    pub bytes: usize,
    /// Tables that have changed by its end, though not in what the graph has from them.
    pub tables: Vec<(TableName, TableShape)>,
}

/// The changes of a transaction, in their order. If they are too many for memory, the first of them are in a file, which goes with the
/// last value that has them.
#[derive(Debug, Clone, Default)]
pub struct ChangeList {
    spilled: Option<Arc<Spilled>>,
    kept: Vec<Change>,
}

impl ChangeList {
    pub(crate) fn new(spilled: Option<Spilled>, kept: Vec<Change>) -> Self {
        Self { spilled: spilled.map(Arc::new), kept }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.spilled.as_ref().map_or(0, |spilled| spilled.len()) + self.kept.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All of them, from the first on. Of those in a file one is in memory at a time.
    ///
    /// An item is [`Unavailable`](crate::FeedErrorKind::Unavailable) if the file cannot be read.
    pub fn iter(&self) -> impl Iterator<Item = Result<Cow<'_, Change>, FeedError>> {
        let (spilled, error) = match self.spilled.as_ref().map(|spilled| spilled.iter()) {
            None => (None, None),
            Some(Ok(spilled)) => (Some(spilled), None),
            Some(Err(error)) => (None, Some(Err(error))),
        };
        let spilled = spilled.into_iter().flatten().map(|change| change.map(Cow::Owned));
        error.into_iter().chain(spilled).chain(self.kept.iter().map(|change| Ok(Cow::Borrowed(change))))
    }

    /// All of them, unless some are in a file.
    pub fn as_slice(&self) -> Option<&[Change]> {
        self.spilled.is_none().then_some(&self.kept)
    }
}

impl From<Vec<Change>> for ChangeList {
    fn from(kept: Vec<Change>) -> Self {
        Self { spilled: None, kept }
    }
}

impl FromIterator<Change> for ChangeList {
    fn from_iter<I: IntoIterator<Item = Change>>(changes: I) -> Self {
        changes.into_iter().collect::<Vec<_>>().into()
    }
}

/// Of changes in a file only whether they are those of the same file.
impl PartialEq for ChangeList {
    fn eq(&self, other: &Self) -> bool {
        let file = |changes: &Self| changes.spilled.as_ref().map(Arc::as_ptr);
        file(self) == file(other) && self.kept == other.kept
    }
}

/// A change of a table.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// A row.
    Row(RowChange),
    /// All rows are gone.
    Truncate(TableName),
}

impl Change {
    /// The table.
    pub fn table(&self) -> &TableName {
        match self {
            Self::Row(row) => &row.columns.table,
            Self::Truncate(table) => table,
        }
    }

    /// About the memory that it takes.
    pub fn bytes(&self) -> usize {
        let of_rows = match self {
            Self::Truncate(_) => 0,
            Self::Row(change) => match &change.images {
                Images::Insert(row) | Images::Delete(row) => row_bytes(row),
                Images::Update { before, after } => before.as_ref().map_or(0, row_bytes) + row_bytes(after),
            },
        };
        of_rows + size_of::<Self>()
    }
}

/// A row that was inserted, updated or deleted.
#[derive(Debug, Clone, PartialEq)]
pub struct RowChange {
    /// The columns of its rows.
    pub columns: Arc<Columns>,
    /// What happened.
    pub images: Images,
    /// Whether the log says that the database checked foreign keys and followed their rules; a session may do without.
    pub checks_keys: bool,
}

impl RowChange {
    /// A change under the rules of foreign keys.
    pub fn new(columns: Arc<Columns>, images: Images) -> Self {
        Self { columns, images, checks_keys: true }
    }
}

/// A row before and after a change.
#[derive(Debug, Clone, PartialEq)]
pub enum Images {
    /// It is new.
    Insert(Row),
    /// It has changed.
    Update {
        /// The row before; `None` if the log has nothing of it, and then its key is as it was.
        before: Option<Row>,
        /// The row after.
        after: Row,
    },
    /// It is gone: the row as it was, or its key.
    Delete(Row),
}

/// The columns of a table in one version of its schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Columns {
    /// The table.
    pub table: TableName,
    /// The names, in the order of cells in a row.
    pub names: Vec<Name>,
    /// The types that their values have; `None` if no property holds them.
    pub kinds: Vec<Option<PropertyType>>,
}

impl Columns {
    /// Where a column is.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|column| column == name)
    }
}

/// The cells of a row.
pub type Row = Box<[Cell]>;

/// A value of a row.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Cell {
    /// The log does not say what it is.
    #[default]
    Absent,
    /// The value, in the type that the column naturally has.
    Value(Value),
    /// An integer beyond those of 64 bits, in decimal digits.
    Digits(Box<str>),
    /// A value that no property holds, and why.
    Bad(Box<str>),
}

impl Cell {
    /// About the memory that it takes on the heap.
    pub fn heap_bytes(&self) -> usize {
        match self {
            Self::Value(Value::String(text)) => text.len(),
            Self::Value(Value::List(items)) => items
                .iter()
                .map(|item| size_of::<Value>() + if let Value::String(text) = item { text.len() } else { 0 })
                .sum(),
            Self::Digits(text) | Self::Bad(text) => text.len(),
            _ => 0,
        }
    }
}

/// About the memory that a row takes.
fn row_bytes(row: &Row) -> usize {
    row.len() * size_of::<Cell>() + row.iter().map(Cell::heap_bytes).sum::<usize>()
}
