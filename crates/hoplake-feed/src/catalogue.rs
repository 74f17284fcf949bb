//! What a database says of its tables: columns, keys, foreign keys.

use std::fmt;

use hoplake::{Name, PropertyType};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use crate::value;

/// A table by its schema (in MariaDB and MySQL: its database) and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableName {
    /// The schema or database.
    pub schema: Name,
    /// The table's own name.
    pub name: Name,
}

impl TableName {
    /// A table of a schema.
    pub fn new(schema: impl Into<Name>, name: impl Into<Name>) -> Self {
        Self { schema: schema.into(), name: name.into() }
    }

    /// Reads `schema.table`, or `table` of a default schema.
    pub fn parse(text: &str, default_schema: &str) -> Self {
        match text.split_once('.') {
            Some((schema, name)) => Self::new(schema, name),
            None => Self::new(default_schema, text),
        }
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.schema, self.name)
    }
}

/// The tables of a database.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Catalogue {
    /// Ascending by name.
    pub tables: Vec<Table>,
    /// Whether the log has a row change for each row that a foreign key's rule changes or deletes.
    pub logs_cascades: bool,
}

impl Catalogue {
    /// The table of a name.
    pub fn table(&self, name: &TableName) -> Option<&Table> {
        self.tables.iter().find(|table| table.name == *name)
    }
}

/// A table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// Its name.
    pub name: TableName,
    /// In their order in the table.
    pub columns: Vec<Column>,
    /// The columns of the primary key, in its order; none without one.
    pub primary_key: Vec<Name>,
    /// The foreign keys that it declares.
    pub foreign_keys: Vec<ForeignKey>,
    /// How much of a row the log has before an update or a deletion.
    pub before_images: BeforeImages,
}

impl Table {
    /// The column of a name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// The foreign key that has exactly these columns, in this order.
    pub fn foreign_key(&self, columns: &[Name]) -> Option<&ForeignKey> {
        self.foreign_keys.iter().find(|key| key.columns == columns)
    }
}

/// How much of a row the log has before an update or a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BeforeImages {
    /// All columns.
    Complete,
    /// The primary key of a row that is deleted, or whose key changes.
    Keys,
    /// Nothing: updates and deletions are not logged.
    Nothing,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// Its name.
    pub name: Name,
    /// Its type as the database writes it; of a domain its base.
    pub declared: String,
    /// The type of a property that holds its values; `None` if none does.
    #[serde(serialize_with = "type_name", deserialize_with = "type_of_name")]
    pub kind: Option<PropertyType>,
    /// A better type that its declaration suggests, such as bool of `tinyint(1)`.
    #[serde(serialize_with = "type_name", deserialize_with = "type_of_name")]
    pub suggested: Option<PropertyType>,
    /// Whether it may be null.
    pub is_nullable: bool,
}

/// A foreign key that a table declares.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForeignKey {
    /// Its columns.
    pub columns: Vec<Name>,
    /// The table that it names rows of.
    pub target: TableName,
    /// The columns there, in the order of its own.
    pub target_columns: Vec<Name>,
    /// What happens to a row whose target is deleted.
    pub on_delete: Rule,
    /// What happens to a row whose target's key changes.
    pub on_update: Rule,
}

/// What a foreign key does when its target goes or changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// It forbids that.
    Restrict,
    /// The row goes or changes, too.
    Cascade,
    /// Its columns become null.
    SetNull,
    /// Its columns get their defaults.
    SetDefault,
}

fn type_name<S: Serializer>(kind: &Option<PropertyType>, serializer: S) -> Result<S::Ok, S::Error> {
    kind.map(|kind| kind.to_string()).serialize(serializer)
}

fn type_of_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<PropertyType>, D::Error> {
    let unknown = |name: &str| D::Error::custom(format!("{name:?} is not a type"));
    let name = Option::<String>::deserialize(deserializer)?;
    name.map(|name| value::type_named(&name).ok_or_else(|| unknown(&name))).transpose()
}
