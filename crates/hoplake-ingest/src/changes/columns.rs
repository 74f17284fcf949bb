//! Changes as rows of CSV, Parquet and Arrow: what each column is for, by its name.
//!
//! `op`, `label`, `key`, `source_label`, `source`, `target_label`, `target`, `edge_key` and `replace` define the
//! change; every other column is a property, and so is one of those names with a dot before it. A header of CSV may
//! have a type: `age:int`. An empty cell is not named: the property keeps its value. A line of JSON without an `op` is
//! such a row, too.

use std::{borrow::Cow, collections::HashSet, sync::Arc};

use hoplake_engine::change::{Name, Value};
use hoplake_format::{PropertyType, ScalarType};

use super::raw::{ChangeOp, Raw, RawChange};
use crate::{
    IngestError,
    source::{plain::PlainFile, values},
};

/// The role of a column.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Role {
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
        if let Some((_, role)) = Self::NAMES.iter().find(|(known, _)| *known == name) {
            return Ok(role.clone());
        }
        match name.strip_prefix('.').unwrap_or(name) {
            "" => Err("has a column without a name".into()),
            name => Ok(Self::Property(name.into())),
        }
    }

    pub(super) fn name(&self) -> &str {
        match self {
            Self::Property(name) => name,
            role => Self::NAMES.iter().find(|(_, known)| known == role).map_or("", |(name, _)| name),
        }
    }
}

/// Other columns of rows that are printed.
const PRINTED: [&str; 5] = ["edge", "direction", "distance", "from_label", "from_key"];

/// The name of a property's column in rows that are printed, by which changes know it again: with a dot before it if
/// the name by itself means something else.
pub fn property_column(property: &str) -> String {
    let taken = Role::NAMES.iter().any(|(name, _)| *name == property) || PRINTED.contains(&property);
    if taken || property.starts_with('.') { format!(".{property}") } else { property.to_owned() }
}

/// A column, with the type that its header names.
#[derive(Debug, Clone)]
pub(super) struct Column {
    pub(super) role: Role,
    header: String,
    pub(super) kind: Option<PropertyType>,
}

impl Column {
    /// A column that is named as it stands: what its values are is known without that.
    pub(super) fn named(header: &str) -> Result<Self, String> {
        Ok(Self { role: Role::named(header)?, header: header.to_owned(), kind: None })
    }

    /// A header of CSV, which may have a type; the error is the end of a sentence about the file.
    pub(super) fn of(header: &str, is_quoted: bool) -> Result<Self, String> {
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
pub(super) fn columns(
    file: &PlainFile,
    columns: impl Iterator<Item = Result<Column, String>>,
) -> Result<Arc<[Column]>, IngestError> {
    let columns = columns.collect::<Result<Vec<_>, _>>();
    let columns = columns.map_err(|why| file.not_as_expected(why))?;
    // By hash: a line of 16 MiB may have a million members.
    let mut roles = HashSet::with_capacity(columns.len());
    if let Some(column) = columns.iter().find(|column| !roles.insert(&column.role)) {
        return Err(file.not_as_expected(format!("has column {:?} twice", column.header)));
    }
    let has = |role| columns.iter().any(|column| column.role == role);
    if !has(Role::Label) || !(has(Role::Key) || has(Role::Source) && has(Role::Target)) {
        let why = "is missing columns of a change file: expected op, label and key, \
                   or op, label, source_label, source, target_label and target";
        return Err(file.not_as_expected(why));
    }
    Ok(columns.into())
}

/// The columns of rows that have types of their own, as those of Parquet and Arrow: a colon in a name means nothing.
pub(super) fn named(file: &PlainFile, headers: &[String]) -> Result<Arc<[Column]>, IngestError> {
    columns(file, headers.iter().map(|header| Column::named(header)))
}

/// A row as a change. `cell` gives the value of a column, or why it is none; `shown` what is written there.
pub(super) fn row(
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
        Some(op) => ChangeOp::named(op.trim())?,
        None if key.is_some() => ChangeOp::UpsertVertex,
        None => ChangeOp::UpsertEdge,
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
