//! What a statement in a log does to tables that are followed.
//!
//! Rows that change are in the log as rows. A statement is there if it changes a table as a whole, and then no row says what happened
//! to the values: either nothing did, or the feed cannot know it.

use std::collections::{BTreeMap, BTreeSet};

use hoplake::Name;
use sqlparser::{
    ast::{
        AlterTableOperation, ColumnDef, ColumnOption, Expr, ObjectName, ObjectType, Statement, TableConstraint, Value,
    },
    dialect::MySqlDialect,
    parser::Parser,
};

use crate::TableName;

/// The tables that are followed, and their columns that are carried into the graph.
pub(super) type Followed = BTreeMap<TableName, BTreeSet<Name>>;

/// What a statement does to a table that is followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Effect {
    /// Its rows are gone.
    Truncates(TableName),
    /// Something that no row change shows.
    Unfollowable(String),
}

/// The effects of a statement, which was given in a database.
pub(super) fn effects(statement: &str, database: &str, followed: &Followed) -> Vec<Effect> {
    let unfollowable = |why: String| vec![Effect::Unfollowable(why)];
    if let Some(verb) = changes_rows(statement) {
        // Whichever tables it names: views, triggers and functions hide them.
        let names_one = followed.keys().any(|table| *table.schema == *database || mentions(statement, table));
        let why = format!("the log has a statement ({verb}) in place of rows; set binlog_format=ROW also in sessions");
        return if names_one { unfollowable(why) } else { Vec::new() };
    }
    let Ok(statements) = Parser::parse_sql(&MySqlDialect {}, statement) else {
        let mentioned = followed.keys().find(|table| is_ddl(statement) && mentions(statement, table));
        return mentioned.map_or_else(Vec::new, |table| {
            unfollowable(format!("what the statement does to table {table} is not understood"))
        });
    };
    statements.iter().flat_map(|statement| of_statement(statement, database, followed)).collect()
}

/// The verb of a statement that changes rows.
fn changes_rows(statement: &str) -> Option<&'static str> {
    let text = statement.trim_start();
    ["INSERT", "UPDATE", "DELETE", "REPLACE", "LOAD DATA"]
        .into_iter()
        .find(|verb| text.get(..verb.len()).is_some_and(|start| start.eq_ignore_ascii_case(verb)))
}

fn is_ddl(statement: &str) -> bool {
    let text = statement.trim_start();
    ["ALTER", "DROP", "RENAME", "TRUNCATE", "CREATE OR REPLACE TABLE"]
        .into_iter()
        .any(|verb| text.get(..verb.len()).is_some_and(|start| start.eq_ignore_ascii_case(verb)))
}

/// Whether a statement has the name of a table as a word.
fn mentions(statement: &str, table: &TableName) -> bool {
    statement
        .split(|it: char| !(it.is_alphanumeric() || it == '_' || it == '$'))
        .any(|word| word.eq_ignore_ascii_case(&table.name))
}

fn of_statement(statement: &Statement, database: &str, followed: &Followed) -> Vec<Effect> {
    let known = |name: &ObjectName| Some(table_named(name, database)?).filter(|table| followed.contains_key(table));
    let all = |names: &[ObjectName], what: &str| {
        let tables = names.iter().filter_map(known);
        tables.map(|table| Effect::Unfollowable(format!("table {table} {what}"))).collect()
    };
    match statement {
        Statement::Truncate(truncate) => {
            let tables = truncate.table_names.iter().filter_map(|target| known(&target.name));
            tables.map(Effect::Truncates).collect()
        }
        Statement::AlterTable(alter) => {
            let Some(table) = known(&alter.name) else { return Vec::new() };
            let carried = &followed[&table];
            let unfollowable = alter.operations.iter().filter_map(|operation| altered(operation, carried));
            unfollowable.map(|why| Effect::Unfollowable(format!("table {table}: {why}"))).collect()
        }
        Statement::Drop { object_type: ObjectType::Table, names, .. } => all(names, "is dropped"),
        Statement::Drop { object_type: ObjectType::Schema | ObjectType::Database, names, .. } => {
            let is_dropped =
                |table: &&TableName| names.iter().any(|name| name.to_string().trim_matches('`') == table.schema);
            let tables = followed.keys().filter(is_dropped);
            tables.map(|table| Effect::Unfollowable(format!("table {table} is dropped"))).collect()
        }
        Statement::RenameTable(renames) => {
            let names: Vec<_> = renames.iter().flat_map(|it| [it.old_name.clone(), it.new_name.clone()]).collect();
            all(&names, "is renamed")
        }
        Statement::CreateTable(create) if create.or_replace => all(std::slice::from_ref(&create.name), "is replaced"),
        _ => Vec::new(),
    }
}

fn table_named(name: &ObjectName, database: &str) -> Option<TableName> {
    let mut parts = name.0.iter().rev().map(|part| part.as_ident().map(|ident| ident.value.clone()));
    let table = parts.next()??;
    let schema = parts.next().flatten().unwrap_or_else(|| database.to_owned());
    Some(TableName::new(schema, table))
}

/// Why rows may be other than the graph has them after a change of their table.
fn altered(operation: &AlterTableOperation, carried: &BTreeSet<Name>) -> Option<String> {
    use AlterTableOperation as Alter;
    let is_carried = |name: &str| carried.contains(name);
    match operation {
        Alter::AddColumn { column_def, .. } => added(column_def),
        Alter::DropColumn { column_names, .. } => {
            let dropped = column_names.iter().find(|name| is_carried(&name.value))?;
            Some(format!("column {dropped} is dropped, and the graph has it"))
        }
        Alter::RenameColumn { old_column_name, new_column_name } => is_carried(&old_column_name.value)
            .then(|| format!("column {old_column_name} is renamed to {new_column_name}")),
        Alter::ModifyColumn { col_name, .. } => {
            is_carried(&col_name.value).then(|| format!("column {col_name} gets another type"))
        }
        Alter::ChangeColumn { old_name, new_name, .. } => is_carried(&old_name.value)
            .then(|| format!("column {old_name} becomes {new_name}, perhaps of another type")),
        Alter::AddConstraint { constraint: TableConstraint::ForeignKey(_), .. } | Alter::DropForeignKey { .. } => {
            Some("its foreign keys change, by whose rules the feed follows cascades; start it again".into())
        }
        Alter::AddConstraint { .. }
        | Alter::DropIndex { .. }
        | Alter::AlterColumn { .. }
        | Alter::DropConstraint { .. }
        | Alter::AutoIncrement { .. }
        | Alter::Algorithm { .. }
        | Alter::Lock { .. } => None,
        other => Some(format!("what `{other}` does to its rows is not known")),
    }
}

/// A column is followed if all rows have null in it.
fn added(column: &ColumnDef) -> Option<String> {
    let name = &column.name;
    for option in &column.options {
        match &option.option {
            ColumnOption::NotNull => return Some(format!("column {name} is added, which has a value in each row")),
            ColumnOption::Generated { .. } => return Some(format!("the generated column {name} is added")),
            ColumnOption::Default(Expr::Value(value)) if value.value == Value::Null => {}
            ColumnOption::Default(default) => {
                return Some(format!("column {name} is added with the default {default}, which each row gets"));
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_followed_where_that_is_safe() {
        let columns = |names: &[&str]| names.iter().map(|name| Name::from(*name)).collect::<BTreeSet<_>>();
        let followed = Followed::from([(TableName::new("hr", "person"), columns(&["id", "name"]))]);
        let why = |statement: &str| match effects(statement, "hr", &followed).first() {
            None => String::new(),
            Some(Effect::Truncates(table)) => format!("truncates {table}"),
            Some(Effect::Unfollowable(why)) => why.clone(),
        };
        for (statement, expected) in [
            ("ALTER TABLE person ADD COLUMN nick VARCHAR(20)", ""),
            ("ALTER TABLE `hr`.`person` ADD COLUMN `nick` int DEFAULT NULL, ADD INDEX (nick)", ""),
            ("ALTER TABLE person ADD COLUMN n int NOT NULL", "has a value in each row"),
            ("ALTER TABLE person ADD COLUMN n int DEFAULT 7", "the default 7"),
            ("ALTER TABLE person DROP COLUMN name", "column name is dropped"),
            ("ALTER TABLE person DROP COLUMN other", ""),
            ("ALTER TABLE person MODIFY COLUMN name text", "another type"),
            ("ALTER TABLE person CHANGE COLUMN name n text", "column name becomes n"),
            ("ALTER TABLE person DROP PARTITION p0", "not understood"),
            ("ALTER TABLE other.person DROP COLUMN name", ""),
            ("ALTER TABLE person SOMETHING NEW", "not understood"),
            ("TRUNCATE TABLE person", "truncates hr.person"),
            ("truncate `person`", "truncates hr.person"),
            ("DROP TABLE IF EXISTS `person` /* generated by server */", "is dropped"),
            ("DROP TABLE other", ""),
            ("RENAME TABLE a TO person", "is renamed"),
            ("DROP DATABASE hr", "is dropped"),
            ("CREATE OR REPLACE TABLE person (id int)", "is replaced"),
            ("CREATE TABLE person2 (id int)", ""),
            ("CREATE INDEX i ON person (name)", ""),
            ("GRANT SELECT ON person TO someone", ""),
            ("INSERT INTO person VALUES (1)", "in place of rows"),
            ("update x set y = 1", "in place of rows"),
        ] {
            let found = why(statement);
            assert!(
                if expected.is_empty() { found.is_empty() } else { found.contains(expected) },
                "{statement}: {found:?}"
            );
        }
        assert_eq!(effects("INSERT INTO t VALUES (1)", "elsewhere", &followed), []);
    }
}
