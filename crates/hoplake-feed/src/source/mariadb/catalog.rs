//! Tables, columns, keys and rules, from `information_schema`; and whether the server is set up to be followed.

use std::collections::BTreeSet;

use hoplake::{Name, PropertyType, ScalarType};
use mysql_async::{Conn, prelude::Queryable};
use sqlparser::{
    ast::{AlterTableOperation, Ident, ReferentialAction, Statement, TableConstraint},
    dialect::MySqlDialect,
    parser::Parser,
};

use super::{Flavour, charsets::is_readable, failed, gtid::Gtids, table_version::OLD_FRACTIONS};
use crate::{
    BeforeImages, Catalog, Column, FeedError, ForeignKey, Rule, Table, TableName,
    source::{ComparedKey, UnequalKey},
};

/// What a server is, by its version.
pub(super) async fn flavour(conn: &mut Conn) -> Result<Flavour, FeedError> {
    let version: Option<String> =
        conn.query_first("SELECT VERSION()").await.map_err(|error| failed("ask for the version", &error))?;
    let is_mariadb = version.is_some_and(|version| version.contains("MariaDB"));
    Ok(if is_mariadb { Flavour::MariaDb } else { Flavour::MySql })
}

/// Rejects a server whose binlog does not have what a feed needs.
pub(super) async fn check(conn: &mut Conn) -> Result<(), FeedError> {
    let flavour = flavour(conn).await?;
    let mut needed = vec![
        ("log_bin", "ON", "start the server with --log-bin"),
        ("binlog_format", "ROW", "set binlog_format=ROW"),
        ("binlog_row_image", "FULL", "set binlog_row_image=FULL"),
        ("binlog_row_metadata", "FULL", "set binlog_row_metadata=FULL"),
    ];
    match flavour {
        Flavour::MariaDb => needed.push(("log_bin_compress", "OFF", "set log_bin_compress=OFF")),
        Flavour::MySql => needed.push(("gtid_mode", "ON", "set gtid_mode=ON and enforce_gtid_consistency=ON")),
    }
    for (variable, wanted, how) in needed {
        let statement = format!("SHOW GLOBAL VARIABLES LIKE '{variable}'");
        let found: Option<(String, String)> =
            conn.query_first(statement).await.map_err(|error| failed("ask for the server's settings", &error))?;
        let value = found.map(|(_, value)| value);
        // A server without the variable does not do what it is about.
        let is_right = value.as_deref().map_or(variable == "log_bin_compress", |value| value == wanted);
        if !is_right {
            let is = value.unwrap_or_else(|| "not there".to_owned());
            return Err(FeedError::invalid(format!("the server's {variable} is {is} and has to be {wanted}")).hint(how));
        }
    }
    Ok(())
}

/// What the catalog says of a column, and no table map does.
pub(super) struct ColumnDetail {
    pub(super) name: Name,
    /// Its type, as the server writes it.
    pub(super) declared: String,
    /// Whether rows have no value of it, but the server computes it.
    pub(super) is_virtual: bool,
    /// By what it is generated.
    expression: Option<String>,
}

impl ColumnDetail {
    /// Whether it is the end of a row's period.
    pub(super) fn is_row_end(&self) -> bool {
        self.expression.as_deref().is_some_and(is_row_end)
    }
}

/// Whether the expression of a generated column makes it the end of a row's period.
fn is_row_end(expression: &str) -> bool {
    expression.eq_ignore_ascii_case("ROW END")
}

/// The columns of a table; none if it is not there.
pub(super) async fn details(conn: &mut Conn, table: &TableName) -> Result<Vec<ColumnDetail>, FeedError> {
    let statement = format!(
        "SELECT column_name, column_type, extra, generation_expression FROM information_schema.columns \
         WHERE table_schema = {} AND table_name = {}",
        quoted(&table.schema),
        quoted(&table.name)
    );
    let columns: Vec<(String, String, String, Option<String>)> =
        conn.query(statement).await.map_err(|error| failed("read the columns of a table", &error))?;
    let detail = |(name, declared, extra, expression): (String, String, String, Option<String>)| {
        let is_virtual = extra.to_ascii_uppercase().contains("VIRTUAL GENERATED");
        ColumnDetail { name: name.into(), declared, is_virtual, expression }
    };
    Ok(columns.into_iter().map(detail).collect())
}

/// Rejects tables whose rows in the log cannot be read, whatever of them is mapped.
pub(super) async fn check_tables(conn: &mut Conn, tables: &[TableName]) -> Result<(), FeedError> {
    for table in tables {
        for column in details(conn, table).await? {
            let ColumnDetail { name, declared, .. } = &column;
            let rejected = |why: &str| FeedError::invalid(format!("table {table}: column {name} ({declared}) {why}"));
            if declared.contains("mariadb-5.3") && declared.contains('(') {
                return Err(rejected("cannot be read from the log").hint(OLD_FRACTIONS));
            }
            if column.is_row_end() && !declared.starts_with("timestamp") {
                let hint = "leave the table out, or give it a period of timestamps";
                return Err(
                    rejected("ends a period of transactions, and which rows are current is not known").hint(hint)
                );
            }
        }
    }
    Ok(())
}

/// The newest position of the log.
pub(super) async fn newest_position(conn: &mut Conn) -> Result<String, FeedError> {
    let variable = match flavour(conn).await? {
        Flavour::MariaDb => "SELECT @@GLOBAL.gtid_binlog_pos",
        Flavour::MySql => "SELECT REPLACE(@@GLOBAL.gtid_executed, '\\n', '')",
    };
    let position: Option<String> =
        conn.query_first(variable).await.map_err(|error| failed("ask for the position", &error))?;
    Ok(Gtids::parse(&position.unwrap_or_default())?.to_string())
}

/// The tables of some databases.
pub(super) async fn read(conn: &mut Conn, databases: &BTreeSet<String>) -> Result<Catalog, FeedError> {
    let names: Vec<_> = databases.iter().map(|name| quoted(name)).collect();
    let names = names.join(", ");
    let mut tables = columns(conn, &names).await?;
    primary_keys(conn, &names, &mut tables).await?;
    foreign_keys(conn, &mut tables).await?;
    tables.sort_by(|a, b| a.name.cmp(&b.name));
    // Rows that InnoDB deletes and changes by the rules of foreign keys are not in the binlog.
    Ok(Catalog { tables, logs_cascades: false })
}

/// A text as a literal.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

/// A name as an identifier.
pub(super) fn identifier(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

async fn columns(conn: &mut Conn, databases: &str) -> Result<Vec<Table>, FeedError> {
    type Row = (String, String, String, String, String, String, Option<String>, Option<String>, Option<u64>, String);
    let statement = format!(
        "SELECT c.table_schema, c.table_name, c.column_name, c.data_type, c.column_type, c.is_nullable, c.character_set_name, c.collation_name, \
         s.maxlen, c.extra FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name) \
         LEFT JOIN information_schema.character_sets s ON s.character_set_name = c.character_set_name \
         WHERE c.table_schema IN ({databases}) AND t.table_type IN ('BASE TABLE', 'SYSTEM VERSIONED') \
         ORDER BY c.table_schema, c.table_name, c.ordinal_position"
    );
    let rows: Vec<Row> = conn.query(statement).await.map_err(|error| failed("read the columns", &error))?;
    let mut tables: Vec<Table> = Vec::new();
    for (schema, table, name, data_type, mut declared, nullable, charset, collation, longest, extra) in rows {
        let table_name = TableName::new(schema, table);
        if tables.last().is_none_or(|last| last.name != table_name) {
            tables.push(Table {
                name: table_name,
                columns: Vec::new(),
                primary_key: Vec::new(),
                foreign_keys: Vec::new(),
                before_images: BeforeImages::Complete,
            });
        }
        let Some(table) = tables.last_mut() else { continue };
        let is_virtual = extra.to_ascii_uppercase().contains("VIRTUAL GENERATED");
        let unread = charset.filter(|name| !is_readable(name, longest.unwrap_or(u64::MAX)));
        let kind = kind(&data_type).filter(|_| !is_virtual && unread.is_none());
        let suggested =
            (declared == "tinyint(1)" || declared == "bit(1)").then_some(PropertyType::Scalar(ScalarType::Bool));
        if let Some(charset) = unread {
            declared = format!("{declared} in charset {charset}");
        }
        let name = name.into();
        let is_nullable = nullable == "YES";
        let compared_by = collation.filter(|collation| !is_exact(collation)).map(Name::from);
        table.columns.push(Column { name, declared, kind, suggested, is_nullable, compared_by });
    }
    Ok(tables)
}

/// Whether only the same text is equal by a collation. By others also letters are that differ in case or accents, or blanks at the end.
fn is_exact(collation: &str) -> bool {
    collation == "binary" || collation.ends_with("_nopad_bin")
}

/// A row whose foreign key is not the same text as the key that it names.
pub(super) async fn unequal(conn: &mut Conn, key: &ComparedKey) -> Result<Option<UnequalKey>, FeedError> {
    let of = |alias: char, name: &Name| format!("{alias}.{}", identifier(name));
    let text = |alias: char, names: &[Name]| {
        let columns: Vec<_> = names.iter().map(|name| of(alias, name)).collect();
        format!("CONVERT(CONCAT_WS(':', {}) USING utf8mb4)", columns.join(", "))
    };
    let row: Vec<_> =
        key.row.iter().map(|name| format!("CONCAT({}, {})", quoted(&format!("{name}=")), of('c', name))).collect();
    let pairs = || key.columns.iter().zip(&key.target_columns);
    let equal: Vec<_> = pairs().map(|(from, to)| format!("{} = {}", of('c', from), of('p', to))).collect();
    let same: Vec<_> = pairs().map(|(from, to)| format!("BINARY {} = BINARY {}", of('c', from), of('p', to))).collect();
    let table = |table: &TableName| format!("{}.{}", identifier(&table.schema), identifier(&table.name));
    let statement = format!(
        "SELECT CONVERT(CONCAT_WS(' ', {}) USING utf8mb4), {}, {} FROM {} c JOIN {} p ON {} WHERE NOT ({}) LIMIT 1",
        row.join(", "),
        text('c', &key.columns),
        text('p', &key.target_columns),
        table(&key.table),
        table(&key.target),
        equal.join(" AND "),
        same.join(" AND ")
    );
    let found: Option<(String, String, String)> =
        conn.query_first(statement).await.map_err(|error| failed("compare foreign keys", &error))?;
    Ok(found.map(|(row, names, target)| UnequalKey { row, names, target }))
}

/// The type of property that holds the values of a type of columns.
pub(super) fn kind(data_type: &str) -> Option<PropertyType> {
    let scalar = match data_type {
        "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "year" | "bit" => ScalarType::Int64,
        "float" | "double" => ScalarType::Float64,
        "date" => ScalarType::Date,
        "datetime" | "timestamp" => ScalarType::Timestamp,
        "decimal" | "time" | "char" | "varchar" | "tinytext" | "text" | "mediumtext" | "longtext" | "enum" | "json"
        | "uuid" | "inet4" | "inet6" | "binary" | "varbinary" | "tinyblob" | "blob" | "mediumblob" | "longblob" => {
            ScalarType::String
        }
        "set" => return Some(PropertyType::List(ScalarType::String)),
        _ => return None,
    };
    Some(PropertyType::Scalar(scalar))
}

async fn primary_keys(conn: &mut Conn, databases: &str, tables: &mut [Table]) -> Result<(), FeedError> {
    let statement = format!(
        "SELECT s.table_schema, s.table_name, s.column_name, c.generation_expression \
         FROM information_schema.statistics s JOIN information_schema.columns c USING (table_schema, table_name, column_name) \
         WHERE s.table_schema IN ({databases}) AND s.index_name = 'PRIMARY' \
         ORDER BY s.table_schema, s.table_name, s.seq_in_index"
    );
    let rows: Vec<(String, String, String, Option<String>)> =
        conn.query(statement).await.map_err(|error| failed("read the primary keys", &error))?;
    for (schema, table, column, expression) in rows {
        // The server adds it to the key of each table with system versioning; of current rows it is the same.
        if expression.as_deref().is_some_and(is_row_end) {
            continue;
        }
        let name = TableName::new(schema, table);
        if let Some(table) = tables.iter_mut().find(|table| table.name == name) {
            table.primary_key.push(column.into());
        }
    }
    Ok(())
}

/// From the text of each table: `information_schema` hides foreign keys from a user who may only read, without saying so.
async fn foreign_keys(conn: &mut Conn, tables: &mut [Table]) -> Result<(), FeedError> {
    for table in tables {
        let name = format!("{}.{}", identifier(&table.name.schema), identifier(&table.name.name));
        let found: Option<(String, String)> = conn
            .query_first(format!("SHOW CREATE TABLE {name}"))
            .await
            .map_err(|error| failed(&format!("read the definition of table {}", table.name), &error))?;
        let (_, definition) = found.unwrap_or_default();
        table.foreign_keys =
            definition.lines().filter_map(|line| foreign_key(line, &table.name)).collect::<Result<_, _>>()?;
    }
    Ok(())
}

/// A line of a table's definition, if it is a foreign key. The server writes each constraint on a line of its own.
fn foreign_key(line: &str, table: &TableName) -> Option<Result<ForeignKey, FeedError>> {
    let line = line.trim().trim_end_matches(',');
    if !line.starts_with("CONSTRAINT ") || !line.contains(" FOREIGN KEY ") {
        return None;
    }
    let parsed = Parser::parse_sql(&MySqlDialect {}, &format!("ALTER TABLE t ADD {line}"));
    let constraint = parsed.ok().and_then(|statements| match statements.into_iter().next()? {
        Statement::AlterTable(alter) => match alter.operations.into_iter().next()? {
            AlterTableOperation::AddConstraint { constraint: TableConstraint::ForeignKey(key), .. } => Some(key),
            _ => None,
        },
        _ => None,
    });
    let unread = || FeedError::invalid(format!("table {table}: the foreign key `{line}` is not understood"));
    Some(constraint.ok_or_else(unread).and_then(|key| {
        let mut parts = key.foreign_table.0.iter().rev().filter_map(|part| part.as_ident());
        let target = parts.next().ok_or_else(unread)?;
        let schema = parts.next().map_or_else(|| table.schema.clone(), |schema| Name::from(&schema.value));
        let names = |idents: &[Ident]| idents.iter().map(|ident| Name::from(&ident.value)).collect();
        let rule = |action: Option<ReferentialAction>| match action {
            Some(ReferentialAction::Cascade) => Rule::Cascade,
            Some(ReferentialAction::SetNull) => Rule::SetNull,
            Some(ReferentialAction::SetDefault) => Rule::SetDefault,
            Some(ReferentialAction::Restrict | ReferentialAction::NoAction) | None => Rule::Restrict,
        };
        Ok(ForeignKey {
            columns: names(&key.columns),
            target: TableName { schema, name: Name::from(&target.value) },
            target_columns: names(&key.referred_columns),
            on_delete: rule(key.on_delete),
            on_update: rule(key.on_update),
        })
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_keys_are_read_from_definitions() {
        let table = TableName::new("hr", "t");
        let line = "  CONSTRAINT `a` FOREIGN KEY (`x`,`y`) REFERENCES `other`.`u` (`v`, `w`) ON DELETE SET NULL ON UPDATE CASCADE,";
        let key = foreign_key(line, &table).unwrap().unwrap();
        assert_eq!(
            (key.target.to_string().as_str(), key.columns.len(), key.target_columns[1].as_str()),
            ("other.u", 2, "w")
        );
        assert_eq!((key.on_delete, key.on_update), (Rule::SetNull, Rule::Cascade));
        assert!(foreign_key("  PRIMARY KEY (`x`),", &table).is_none());
        assert!(foreign_key("  CONSTRAINT `a` CHECK (`x` > 0)", &table).is_none());
    }
}
