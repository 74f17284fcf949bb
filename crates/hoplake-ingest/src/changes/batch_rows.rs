//! Rows of Parquet and Arrow that are changes: as one operation of columns where they are uniform, else one by one.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, cast::AsArray};
use hoplake_engine::change::{Columns, Name, Operation, Value};

use super::{
    columns::{Column, Role, named, row},
    location::SourceLocation,
    raw::{ChangeOp, Raw, RawChange},
    types::GraphTypes,
};
use crate::{IngestError, source::plain::PlainFile};

/// Changes as they are written, one after another.
pub(super) type Source = Box<dyn Iterator<Item = Result<ChangeInput, IngestError>> + Send>;

/// An item of an input: one change, or a batch of rows.
#[expect(clippy::large_enum_variant, reason = "nearly all are the large one, and each is taken at once")]
pub(super) enum ChangeInput {
    One(SourceLocation, RawChange),
    Rows(BatchRows),
}

/// The changes of a Parquet file: its record batches, each for [`BatchRows::operation`] or row by row.
pub(super) fn parquet(file: &PlainFile) -> Result<Source, IngestError> {
    let mut batches = file.batches()?;
    let name: Arc<str> = file.path().display().to_string().into();
    let columns = named(file, batches.columns())?;
    Ok(Box::new(std::iter::from_fn(move || {
        let (first, batch) = match batches.next()? {
            Ok(next) => next,
            Err(error) => return Some(Err(error)),
        };
        Some(Ok(ChangeInput::Rows(BatchRows::new(name.clone(), columns.clone(), first, batch))))
    })))
}

/// Rows of a Parquet file, or of an Arrow stream.
pub(super) struct BatchRows {
    file: Arc<str>,
    columns: Arc<[Column]>,
    /// The number of the first in the file, from 1.
    first: u64,
    batch: RecordBatch,
}

impl BatchRows {
    /// Rows of a file from a number on; the columns are those of the batch.
    pub(super) fn new(file: Arc<str>, columns: Arc<[Column]>, first: u64, batch: RecordBatch) -> Self {
        Self { file, columns, first, batch }
    }

    pub(super) fn len(&self) -> usize {
        self.batch.num_rows()
    }

    pub(super) fn location(&self, row: usize) -> SourceLocation {
        SourceLocation::row(&self.file, self.first + row as u64)
    }

    /// One of them.
    pub(super) fn row(&self, at: usize) -> Result<RawChange, IngestError> {
        let cell = |column: usize| match Value::at(self.batch.column(column), at) {
            Value::Null => Ok(None),
            // A column of text may be of several labels, and of properties that are not text.
            Value::String(text) => Ok(Some(Raw::Untyped(text))),
            value => Ok(Some(Raw::Typed(value))),
        };
        row(&self.columns, cell, |_| String::new()).map_err(|why| IngestError::change(self.location(at), why))
    }

    /// All of them as one operation, if they are upserts of one label, and their columns have the types that the graph
    /// has.
    pub(super) fn operation(&self, types: &mut GraphTypes) -> Option<Operation> {
        let role = |role: Role| {
            let at = self.columns.iter().position(|column| column.role == role)?;
            Some(self.batch.column(at))
        };
        // Whatever is not uniform returns `None` and is read row by row, where an error names its row.
        let none = |of: Role| role(of).is_none_or(|column| column.null_count() == column.len());
        let label: Name = one_text(role(Role::Label)?)?.into();
        let op = if none(Role::Op) { None } else { Some(ChangeOp::named(one_text(role(Role::Op)?)?.trim()).ok()?) };
        let replace = if none(Role::Replace) { false } else { one_bool(role(Role::Replace)?)? };
        if !none(Role::EdgeKey) || label.is_empty() {
            return None;
        }
        let of_vertices = none(Role::Source) && none(Role::Target);
        let of_edges = none(Role::Key);
        let owner = match op {
            Some(ChangeOp::UpsertVertex) | None if of_vertices && !of_edges => {
                [label, Name::default(), Name::default()]
            }
            Some(ChangeOp::UpsertEdge) | None if of_edges && !of_vertices => {
                let end = |of| one_text(role(of)?).map(Name::from);
                [label, end(Role::SourceLabel)?, end(Role::TargetLabel)?]
            }
            _ => return None,
        };
        let keys = match of_vertices {
            true => vec![("key", &owner[0], role(Role::Key)?)],
            false => vec![("source", &owner[1], role(Role::Source)?), ("target", &owner[2], role(Role::Target)?)],
        };
        let mut named = Vec::new();
        for (name, label, column) in keys {
            if column.null_count() > 0 || !types.has_keys(label, column.data_type()) {
                return None;
            }
            named.push((name.to_owned(), column.clone()));
        }
        for (column, values) in self.columns.iter().zip(self.batch.columns()) {
            // A column without values names nothing.
            if let Role::Property(name) = &column.role
                && values.null_count() < values.len()
            {
                types.has_property(&owner, of_vertices, name, values.data_type()).then_some(())?;
                // With the dot, a property that is called `key` or `source` is not taken for a key.
                named.push((format!(".{name}"), values.clone()));
            }
        }
        let rows =
            RecordBatch::try_from_iter_with_nullable(named.into_iter().map(|(name, it)| (name, it, true))).ok()?;
        let [label, source, target] = owner;
        let columns = match of_vertices {
            true => Columns::vertices(label, &rows),
            false => Columns::edges(label, source, target, &rows),
        };
        let columns = columns.ok()?;
        Some(Operation::UpsertColumns(Arc::new(if replace { columns.replacing() } else { columns })))
    }
}

/// The text that all rows of a column have.
fn one_text(column: &ArrayRef) -> Option<&str> {
    let texts = column.as_string_opt::<i32>().filter(|texts| texts.null_count() == 0 && !texts.is_empty())?;
    (1..texts.len()).all(|row| texts.value(row) == texts.value(0)).then(|| texts.value(0))
}

fn one_bool(column: &ArrayRef) -> Option<bool> {
    let bools = column.as_boolean_opt().filter(|bools| bools.null_count() == 0)?;
    match bools.true_count() {
        0 => Some(false),
        all if all == bools.len() => Some(true),
        _ => None,
    }
}
