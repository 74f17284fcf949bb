//! What an `ALTER TABLE` does to columns that the mapping ignores.
//!
//! Their values are not in the graph, so whatever rows have in them does not stop the feed: they may be dropped and added, also with a
//! default. Only that is read here. A statement that this does not understand is left to [`effects`](super::effects), which stops where it has to.

use std::collections::{BTreeMap, BTreeSet};

use hoplake::Name;
use sqlparser::{
    ast::{AlterTable, AlterTableOperation, ColumnDef, ColumnOption, ObjectName, Statement},
    dialect::MySqlDialect,
    parser::Parser,
};

use crate::TableName;

/// Columns of a table that a statement drops and adds, and that the mapping ignores.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct IgnoredChanges {
    pub(crate) table: TableName,
    pub(crate) dropped: Vec<Name>,
    pub(crate) added: Vec<Name>,
    /// Whether the statement does nothing else.
    pub(crate) are_all: bool,
}

/// What a statement, which was given in a database, does to ignored columns; nothing if there are none, or if it is not understood.
pub(crate) fn ignored_changes(
    statement: &str,
    database: &str,
    ignored: &BTreeMap<TableName, BTreeSet<Name>>,
) -> Option<IgnoredChanges> {
    let start = statement.trim_start().get(..5)?;
    // The server runs what is in some comments, and the parser does not.
    if ignored.is_empty() || !start.eq_ignore_ascii_case("ALTER") || statement.contains("/*") {
        return None;
    }
    let mut statements = Parser::parse_sql(&MySqlDialect {}, statement).ok()?;
    let Some(Statement::AlterTable(AlterTable { name, operations, .. })) =
        statements.pop().filter(|_| statements.is_empty())
    else {
        return None;
    };
    let (table, ignored) = ignored.iter().find(|(table, _)| is_named(table, &name, database))?;
    // A server takes names of columns in any case.
    let ignored = |name: &str| ignored.iter().find(|it| it.to_lowercase() == name.to_lowercase()).cloned();
    let mut changes = IgnoredChanges { table: table.clone(), dropped: Vec::new(), added: Vec::new(), are_all: true };
    for operation in &operations {
        let found = match operation {
            AlterTableOperation::DropColumn { column_names, .. } => {
                let names: Option<Vec<_>> = column_names.iter().map(|it| ignored(&it.value)).collect();
                names.map(|names| changes.dropped.extend(names))
            }
            AlterTableOperation::AddColumn { column_def, .. } if is_plain(column_def) => {
                ignored(&column_def.name.value).map(|name| changes.added.push(name))
            }
            _ => None,
        };
        changes.are_all &= found.is_some();
    }
    (!changes.dropped.is_empty() || !changes.added.is_empty()).then_some(changes)
}

fn is_named(table: &TableName, name: &ObjectName, database: &str) -> bool {
    let mut parts = name.0.iter().rev().filter_map(|part| part.as_ident());
    let is = |name: &str, other: &str| name.to_lowercase() == other.to_lowercase();
    let is_table = parts.next().is_some_and(|ident| is(&table.name, &ident.value));
    is_table && is(&table.schema, parts.next().map_or(database, |ident| &ident.value))
}

/// Whether a new column is nothing but a column: no key, and no foreign key whose rules change rows.
fn is_plain(column: &ColumnDef) -> bool {
    column.options.iter().all(|it| {
        matches!(
            it.option,
            ColumnOption::Null
                | ColumnOption::NotNull
                | ColumnOption::Default(_)
                | ColumnOption::Comment(_)
                | ColumnOption::CharacterSet(_)
                | ColumnOption::Collation(_)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_drops_and_additions_of_ignored_columns_are_taken() {
        let ignored = BTreeMap::from([(TableName::new("hr", "t"), BTreeSet::from(["c".into(), "d".into()]))]);
        let said = |statement: &str| {
            let of = |changes: IgnoredChanges| {
                let all = if changes.are_all { "all" } else { "some" };
                format!("-{} +{} {all}", changes.dropped.join(","), changes.added.join(","))
            };
            ignored_changes(statement, "hr", &ignored).map_or_else(String::new, of)
        };
        for (statement, expected) in [
            ("ALTER TABLE t DROP COLUMN c", "-c + all"),
            ("alter table `hr`.`T` DROP C", "-c + all"),
            ("ALTER TABLE t ADD COLUMN c INT", "- +c all"),
            ("ALTER TABLE t ADD c INT NOT NULL DEFAULT 7 COMMENT 'x' AFTER a", "- +c all"),
            ("ALTER TABLE t DROP COLUMN IF EXISTS c, ADD COLUMN d VARCHAR(20) DEFAULT 'x'", "-c +d all"),
            ("ALTER TABLE t DROP c, ADD COLUMN e INT DEFAULT 7", "-c + some"),
            ("ALTER TABLE t DROP c, DROP a", "-c + some"),
            ("ALTER TABLE t ADD c INT PRIMARY KEY", ""),
            ("ALTER TABLE t ADD c INT REFERENCES u (id) ON DELETE CASCADE", ""),
            ("ALTER TABLE t ADD c INT /*! , DROP a */", ""),
            ("ALTER TABLE t ADD e INT", ""),
            ("ALTER TABLE other.t DROP c", ""),
            ("ALTER TABLE u DROP c", ""),
            ("ALTER TABLE t CHANGE c e INT", ""),
            ("ALTER TABLE t DROP", ""),
            ("DROP TABLE t", ""),
        ] {
            assert_eq!(said(statement), expected, "{statement}");
        }
    }
}
