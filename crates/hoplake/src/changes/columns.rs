//! Changes as rows of CSV, Parquet and Arrow: what each column is for, by its name.
//!
//! `op`, `label`, `key`, `source_label`, `source`, `target_label`, `target`, `edge_key` and `replace` define the
//! change; every other column is a property, and so is one of those names with a dot before it. A header of CSV may
//! have a type: `age:int`. An empty cell is not named: the property keeps its value. A line of JSON without an `op` is
//! such a row, too.

use std::{borrow::Cow, collections::HashSet, io::Read, sync::Arc};

use arrow_array::{Array, ArrayRef, RecordBatch, cast::AsArray};
use hoplake_engine::change::{Columns, Name, Operation, Value};
use hoplake_format::{PropertyType, ScalarType};
use hoplake_ingest::source::{
    plain::{CsvRecords, PlainFile},
    values,
};

use serde_json::value::RawValue;

use super::{
    Piece, Source, SourceLocation, json,
    resolved::{Kind, Raw, RawChange, ResolvedChange, parse},
};
use crate::Error;

/// The role of a column.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Role {
    Op,
    Label,
    Key,
    SourceLabel,
    Source,
    TargetLabel,
    Target,
    EdgeKey,
    Replace,
    /// The id of an edge, which is printed and not read: an edge is named by its ends.
    EdgeId,
    Property(Name),
}

impl Role {
    const NAMES: [(&str, Self); 10] = [
        ("op", Self::Op),
        ("label", Self::Label),
        ("key", Self::Key),
        ("source_label", Self::SourceLabel),
        ("source", Self::Source),
        ("target_label", Self::TargetLabel),
        ("target", Self::Target),
        ("edge_key", Self::EdgeKey),
        ("replace", Self::Replace),
        ("edge_id", Self::EdgeId),
    ];

    /// The role of a name; the error is the end of a sentence about the file.
    fn named(name: &str) -> Result<Self, String> {
        if let Some((_, role)) = Self::NAMES.iter().find(|(resolved, _)| *resolved == name) {
            return Ok(role.clone());
        }
        match name.strip_prefix('.').unwrap_or(name) {
            "" => Err("has a column without a name".into()),
            name => Ok(Self::Property(name.into())),
        }
    }

    fn name(&self) -> &str {
        match self {
            Self::Property(name) => name,
            role => Self::NAMES.iter().find(|(_, resolved)| resolved == role).map_or("", |(name, _)| name),
        }
    }
}

/// Other columns of rows that are printed.
const PRINTED: [&str; 3] = ["edge", "direction", "distance"];

/// The name of a property's column in rows that are printed, by which changes know it again: with a dot before it if
/// the name by itself means something else.
pub fn property_column(property: &str) -> String {
    let taken = Role::NAMES.iter().any(|(name, _)| *name == property) || PRINTED.contains(&property);
    if taken || property.starts_with('.') { format!(".{property}") } else { property.to_owned() }
}

/// A column, with the type that its header names.
#[derive(Debug, Clone)]
pub(super) struct Column {
    role: Role,
    header: String,
    kind: Option<PropertyType>,
}

impl Column {
    /// A column that is named as it stands: what its values are is known without that.
    fn named(header: &str) -> Result<Self, String> {
        Ok(Self { role: Role::named(header)?, header: header.to_owned(), kind: None })
    }

    /// A header of CSV, which may have a type; the error is the end of a sentence about the file.
    fn of(header: &str, is_quoted: bool) -> Result<Self, String> {
        let (name, kind) = match header.rsplit_once(':') {
            None => (header, None),
            Some((name, kind)) => {
                let unknown = || {
                    format!(
                        "has column {header:?}, and {kind:?} is not a type; there are bool, int, float, string, date and \
                             timestamp, and lists of these such as string[]"
                    )
                };
                (name, Some(values::type_named(kind).ok_or_else(unknown)?))
            }
        };
        let role = Role::named(if is_quoted { name } else { name.trim() })?;
        let key = [ScalarType::Int64, ScalarType::String].map(PropertyType::Scalar);
        if matches!(role, Role::Key | Role::Source | Role::Target) && kind.is_some_and(|kind| !key.contains(&kind)) {
            return Err(format!("has column {header:?}; keys are int or string"));
        }
        Ok(Self { role, header: header.to_owned(), kind })
    }
}

/// The columns of a file.
fn columns(file: &PlainFile, columns: impl Iterator<Item = Result<Column, String>>) -> Result<Arc<[Column]>, Error> {
    let columns = columns.collect::<Result<Vec<_>, _>>();
    let columns = columns.map_err(|why| file.not_as_expected(why))?;
    // By hash: a line of 16 MiB may have a million members.
    let mut roles = HashSet::with_capacity(columns.len());
    if let Some(column) = columns.iter().find(|column| !roles.insert(&column.role)) {
        return Err(file.not_as_expected(format!("has column {:?} twice", column.header)).into());
    }
    let has = |role| columns.iter().any(|column| column.role == role);
    if !has(Role::Label) || !(has(Role::Key) || has(Role::Source) && has(Role::Target)) {
        let why = "has not the columns of changes: op, label, and key, or source_label, source, target_label, target";
        return Err(file.not_as_expected(why).into());
    }
    Ok(columns.into())
}

/// The changes of a CSV file.
pub(super) fn csv(file: &PlainFile) -> Result<Source, Error> {
    changes_of(file, file.records()?)
}

/// The changes of a text of CSV; `name` stands for the file in messages.
pub(super) fn csv_text(name: &str, text: impl Read + Send + 'static) -> Result<Source, Error> {
    let file = PlainFile::named(name);
    changes_of(&file, file.records_of(text)?)
}

fn changes_of(file: &PlainFile, mut records: CsvRecords) -> Result<Source, Error> {
    let headers = if records.advance()? { records.headers() } else { return Ok(Box::new(std::iter::empty())) };
    let columns = columns(file, headers.iter().map(|(header, is_quoted)| Column::of(header, *is_quoted)))?;
    let name: Arc<str> = file.path().display().to_string().into();
    Ok(Box::new(std::iter::from_fn(move || {
        match records.advance() {
            Ok(true) => {}
            Ok(false) => return None,
            Err(error) => return Some(Err(error.into())),
        }
        let location = SourceLocation { file: name.clone(), unit: "line", number: records.line() };
        if records.fields() != columns.len() {
            let why = format!("it has {} columns where {} are expected", records.fields(), columns.len());
            return Some(Err(location.invalid(why)));
        }
        let cell = |at: usize| {
            let text = records.field(at).ok_or("is not UTF-8 text")?;
            match columns[at].kind {
                _ if text.is_empty() => Ok(None),
                None => Ok(Some(Raw::Untyped(text.to_owned()))),
                Some(kind) => parse(text, kind).map(|value| Some(Raw::Typed(value))).map_err(Cow::Borrowed),
            }
        };
        let shown = |at| records.field(at).map(|text| format!("{text:?} ")).unwrap_or_default();
        let written = row(&columns, cell, shown);
        Some(written.map(|written| Piece::One(location.clone(), written)).map_err(|why| location.invalid(why)))
    })))
}

/// The changes of a Parquet file: its record batches, each for [`BatchRows::operation`] or row by row.
pub(super) fn parquet(file: &PlainFile) -> Result<Source, Error> {
    let mut batches = file.batches()?;
    let name: Arc<str> = file.path().display().to_string().into();
    let columns = named(file, batches.columns())?;
    Ok(Box::new(std::iter::from_fn(move || {
        let (first, batch) = match batches.next()? {
            Ok(next) => next,
            Err(error) => return Some(Err(error.into())),
        };
        Some(Ok(Piece::Rows(BatchRows::new(name.clone(), columns.clone(), first, batch))))
    })))
}

/// The columns of rows that have types of their own, as those of Parquet and Arrow: a colon in a name means nothing.
pub(super) fn named(file: &PlainFile, headers: &[String]) -> Result<Arc<[Column]>, Error> {
    columns(file, headers.iter().map(|header| Column::named(header)))
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
        SourceLocation { file: self.file.clone(), unit: "row", number: self.first + row as u64 }
    }

    /// One of them.
    pub(super) fn row(&self, at: usize) -> Result<RawChange, Error> {
        let cell = |column: usize| match Value::at(self.batch.column(column), at) {
            Value::Null => Ok(None),
            // A column of text may be of several labels, and of properties that are not text.
            Value::String(text) => Ok(Some(Raw::Untyped(text))),
            value => Ok(Some(Raw::Typed(value))),
        };
        row(&self.columns, cell, |_| String::new()).map_err(|why| self.location(at).invalid(why))
    }

    /// All of them as one operation, if they are upserts of one label, and their columns have the types that the graph
    /// has.
    pub(super) fn operation(&self, resolved: &mut ResolvedChange) -> Option<Operation> {
        let role = |role: Role| {
            let at = self.columns.iter().position(|column| column.role == role)?;
            Some(self.batch.column(at))
        };
        // Whatever is not uniform returns `None` and is read row by row, where an error names its row.
        let none = |of: Role| role(of).is_none_or(|column| column.null_count() == column.len());
        let label: Name = one_text(role(Role::Label)?)?.into();
        let op = if none(Role::Op) { None } else { Some(Kind::named(one_text(role(Role::Op)?)?.trim()).ok()?) };
        let replace = if none(Role::Replace) { false } else { one_bool(role(Role::Replace)?)? };
        if !none(Role::EdgeKey) || label.is_empty() {
            return None;
        }
        let of_vertices = none(Role::Source) && none(Role::Target);
        let of_edges = none(Role::Key);
        let owner = match op {
            Some(Kind::UpsertVertex) | None if of_vertices && !of_edges => [label, Name::default(), Name::default()],
            Some(Kind::UpsertEdge) | None if of_edges && !of_vertices => {
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
            if column.null_count() > 0 || !resolved.has_keys(label, column.data_type()) {
                return None;
            }
            named.push((name.to_owned(), column.clone()));
        }
        for (column, values) in self.columns.iter().zip(self.batch.columns()) {
            // A column without values names nothing.
            if let Role::Property(name) = &column.role
                && values.null_count() < values.len()
            {
                resolved.has_property(&owner, of_vertices, name, values.data_type()).then_some(())?;
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

/// A line of JSON whose members are columns.
pub(super) fn json_row(members: Vec<(Cow<'_, str>, &RawValue)>) -> Result<RawChange, String> {
    let (names, values): (Vec<_>, Vec<_>) = members.into_iter().unzip();
    let columns = names.iter().map(|name| Column::named(name)).collect::<Result<Vec<_>, _>>();
    let columns = columns.map_err(|why| format!("it {why}"))?;
    // By hash: a line of 16 MiB may have a million members.
    let mut roles = HashSet::with_capacity(columns.len());
    if let Some(column) = columns.iter().find(|column| !roles.insert(&column.role)) {
        return Err(format!("it has {:?} twice", column.role.name()));
    }
    if !columns.iter().any(|column| column.role == Role::Label) {
        return Err("it has neither an op nor a label".into());
    }
    let cell = |at: usize| match json::raw(values[at])? {
        Raw::Typed(Value::Null) => Ok(None),
        raw => Ok(Some(raw)),
    };
    row(&columns, |at| cell(at).map_err(Cow::Owned), |_| String::new())
}

/// A row as a change. `cell` gives the value of a column, or why it is none; `shown` what is written there.
fn row(
    columns: &[Column],
    cell: impl Fn(usize) -> Result<Option<Raw>, Cow<'static, str>>,
    shown: impl Fn(usize) -> String,
) -> Result<RawChange, String> {
    let cell = |at: usize| cell(at).map_err(|why| format!("column {}: {}{why}", columns[at].header, shown(at)));
    let find = |role: Role| match columns.iter().position(|column| column.role == role) {
        Some(at) => cell(at),
        None => Ok(None),
    };
    let text = |role: Role| match find(role.clone())? {
        None => Ok(None),
        Some(Raw::Untyped(text) | Raw::Typed(Value::String(text))) => Ok(Some(text)),
        Some(Raw::Typed(other)) => Err(format!("{} is {other}, and not text", role.name())),
    };
    let key = find(Role::Key)?;
    let source = find(Role::Source)?;
    let target = find(Role::Target)?;
    let kind = match text(Role::Op)? {
        Some(op) => Kind::named(op.trim())?,
        None if key.is_some() => Kind::UpsertVertex,
        None => Kind::UpsertEdge,
    };
    let end = |key: Option<Raw>, label: Role, name: &str| {
        let named = |key| match text(label)? {
            Some(label) => Ok((label.into(), key)),
            None => Err(format!("the {kind} has a {name} without {name}_label")),
        };
        key.map(named).transpose()
    };
    let mut properties = Vec::new();
    for (at, column) in columns.iter().enumerate() {
        if let (Role::Property(name), Some(value)) = (&column.role, cell(at)?) {
            properties.push((name.clone(), value));
        }
    }
    let edge_key = match text(Role::EdgeKey)? {
        None => None,
        Some(name) => {
            let at = properties.iter().position(|(property, _)| *property == name);
            let at = at.ok_or_else(|| format!("edge_key names {name:?}, a property that the row does not have"))?;
            // The edge gets it from its key.
            Some(properties.remove(at))
        }
    };
    let replace = match find(Role::Replace)? {
        None => false,
        Some(Raw::Typed(Value::Bool(replace))) => replace,
        Some(Raw::Untyped(text)) => values::boolean(&text).map_err(|why| format!("column replace: {text:?} {why}"))?,
        Some(Raw::Typed(other)) => return Err(format!("column replace: {other} is not true or false")),
    };
    Ok(RawChange {
        kind,
        label: text(Role::Label)?.unwrap_or_default().into(),
        key,
        source: end(source, Role::SourceLabel, "source")?,
        target: end(target, Role::TargetLabel, "target")?,
        edge_key,
        properties,
        replace,
    })
}
