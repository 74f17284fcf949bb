//! What a database says of its tables: columns, keys, foreign keys.

use std::fmt;

use hoplake::{Name, PropertyType};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

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

    /// Reads `schema.table`, or `table` of a default schema. A name with a dot in it stands in double quotes or in backticks, and such a
    /// quote in it is written twice: `"t.x"` is a table of the default schema.
    pub fn parse(text: &str, default_schema: &str) -> Self {
        let parts =
            quoted_part(text).or_else(|| text.split_once('.').map(|(schema, name)| (schema.to_owned(), Some(name))));
        match parts {
            None => Self::new(default_schema, text),
            Some((name, None)) => Self::new(default_schema, name),
            Some((schema, Some(rest))) => match quoted_part(rest) {
                Some((name, None)) => Self::new(schema, name),
                _ => Self::new(schema, rest),
            },
        }
    }

    /// What [`Self::parse`] reads as this table.
    pub fn written(&self, default_schema: &str) -> String {
        if self.schema == default_schema { written_part(&self.name) } else { self.to_string() }
    }

    /// The name in SQL, with each part in quotes: `"` or, in MariaDB and MySQL, a backtick.
    pub fn quoted(&self, quote: char) -> String {
        format!("{}.{}", in_quotes(&self.schema, quote), in_quotes(&self.name, quote))
    }

    /// Whether a text without quotes is the schema and the name with a dot between them.
    pub(crate) fn is(&self, text: &str) -> bool {
        let name = text.strip_prefix(self.schema.as_str()).and_then(|rest| rest.strip_prefix('.'));
        name == Some(self.name.as_str())
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", written_part(&self.schema), written_part(&self.name))
    }
}

const QUOTES: [char; 2] = ['"', '`'];

/// A name in quotes at the beginning of a text, and what follows a dot after it; `None` if the text is not of this form.
fn quoted_part(text: &str) -> Option<(String, Option<&str>)> {
    let quote = text.chars().next().filter(|first| QUOTES.contains(first))?;
    let mut name = String::new();
    let mut rest = &text[1..];
    loop {
        let (before, after) = rest.split_once(quote)?;
        name.push_str(before);
        match after.strip_prefix(quote) {
            Some(more) => {
                name.push(quote);
                rest = more;
            }
            None if after.is_empty() => return Some((name, None)),
            None => return Some((name, Some(after.strip_prefix('.')?))),
        }
    }
}

/// A name as [`TableName::parse`] reads it.
fn written_part(name: &str) -> String {
    let is_plain = !name.is_empty() && !name.contains('.') && !name.starts_with(QUOTES);
    if is_plain { name.to_owned() } else { in_quotes(name, '"') }
}

fn in_quotes(name: &str, quote: char) -> String {
    let twice = String::from_iter([quote, quote]);
    format!("{quote}{}{quote}", name.replace(quote, &twice))
}

/// The tables of a database.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Catalog {
    /// Ascending by name.
    pub tables: Vec<Table>,
    /// Whether the log has a row change for each row that a foreign key's rule changes or deletes.
    pub logs_cascades: bool,
}

impl Catalog {
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
    /// The collation by which the database compares its values, if different texts are equal by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared_by: Option<Name>,
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
    name.map(|name| PropertyType::from_name(&name).ok_or_else(|| unknown(&name))).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for name in ["t", "t.x", "\"", "`", "a\"b", "\"a\".b", "`a`", ".", "", "a b", "Ä.ö", "\"\""] {
            for schema in ["s", "s.t", "\"s", "`s.t`"] {
                let table = TableName::new(schema, name);
                assert_eq!(TableName::parse(&table.to_string(), "other"), table, "{table}");
                assert_eq!(TableName::parse(&table.written(schema), schema), table, "{table}");
                assert_eq!(TableName::parse(&table.written("other"), "other"), table, "{table}");
                assert_eq!(TableName::parse(&table.quoted('"'), "other"), table, "{table}");
                assert_eq!(TableName::parse(&table.quoted('`'), "other"), table, "{table}");
                assert!(table.is(&format!("{schema}.{name}")));
            }
        }
        // What is not in quotes is read up to its first dot.
        assert_eq!(TableName::parse("s.t.x", "other"), TableName::new("s", "t.x"));
        assert_eq!(TableName::parse("\"s.t", "other"), TableName::new("\"s", "t"));
    }
}
