//! Whether the log will have all changes of the tables that are followed.
//!
//! What a publication leaves out never arrives, and nothing in the log says that it is missing: the columns of a list, the rows of a
//! filter, kinds of changes, partitions that are published under their own names, partitions that log less of a row than their table says.
//! So each of these is rejected before anything is read, and again at each start, with the statements that correct it.
//!
//! **A hint is SQL as it is.** What follows `run: ` can be run in one piece, and leads to a feed that works, or to the next rejection. What is
//! not SQL is a comment in it.

use std::collections::{BTreeMap, BTreeSet};

use super::{Connection, identifier, quoted, text};
use crate::{FeedError, TableName};

/// What to do after what was left out is logged again.
const THEN: &str =
    "-- what was left out is not in the log: if the graph was fed before, run the feed with --resnapshot";

/// The first server that publishes partitions under the name of their table, and the first that publishes schemas, and
/// supports lists of columns and filters of rows.
const WITH_ROOTS: u32 = 130_000;
pub(super) const WITH_SCHEMAS: u32 = 150_000;

/// A table that is followed.
struct Followed {
    name: TableName,
    is_partitioned: bool,
    /// Tables that inherit from it, which are tables of their own.
    has_children: bool,
    is_logged: bool,
    identity: String,
}

impl Followed {
    /// The table alone, in a statement about a publication: children would be added to it, and those without a key could no longer
    /// be changed.
    fn alone(&self) -> String {
        let only = if self.has_children && !self.is_partitioned { "ONLY " } else { "" };
        format!("{only}{}", self.name.quoted('"'))
    }
}

/// A leaf of a partitioned table.
struct Partition {
    of: TableName,
    parent: TableName,
    name: TableName,
    is_foreign: bool,
    is_logged: bool,
    identity: String,
}

/// Rejects a server that does not log logically, and a publication that leaves out something of the tables.
pub(super) async fn check(
    connection: &mut Connection,
    publication: &str,
    tables: &[TableName],
) -> Result<(), FeedError> {
    let level = connection.value("SHOW wal_level").await?.unwrap_or_default();
    if level != "logical" {
        let why = format!("the server's wal_level is {level} and has to be logical");
        return Err(
            FeedError::invalid(why).hint("run: ALTER SYSTEM SET wal_level = 'logical' -- and start the server again")
        );
    }
    let version = connection.value("SHOW server_version_num").await?.and_then(|it| it.parse().ok()).unwrap_or(0);
    let tables = followed(connection, tables).await?;
    are_logged(&tables, &partitions(connection, &tables, version).await?)?;
    is_complete(connection, publication, &tables).await?;
    has_tables(connection, publication, &tables).await?;
    if version >= WITH_SCHEMAS {
        has_whole_tables(connection, publication, &tables).await?;
    }
    Ok(())
}

/// Rejects a table with `why`, and says which statements to run.
fn rejected(why: String, statements: impl std::fmt::Display) -> Result<(), FeedError> {
    Err(FeedError::invalid(why).hint(format!("run: {statements}")))
}

async fn followed(connection: &mut Connection, tables: &[TableName]) -> Result<Vec<Followed>, FeedError> {
    if tables.is_empty() {
        return Ok(Vec::new());
    }
    let name = |table: &TableName| format!("({}, {})", quoted(&table.schema), quoted(&table.name));
    let names: Vec<_> = tables.iter().map(name).collect();
    let rows = connection
        .query(&format!(
            "SELECT n.nspname, c.relname, c.relkind, c.relhassubclass, c.relpersistence, c.relreplident FROM pg_class c \
             JOIN pg_namespace n ON n.oid = c.relnamespace WHERE (n.nspname, c.relname) IN ({}) ORDER BY 1, 2",
            names.join(", ")
        ))
        .await?;
    let table = |row: &super::Row| {
        let value = |at: usize| text(row, at).unwrap_or_default();
        Followed {
            name: TableName::new(value(0), value(1)),
            is_partitioned: value(2) == "p",
            has_children: value(3) == "t",
            is_logged: value(4) == "p",
            identity: value(5),
        }
    };
    Ok(rows.iter().map(table).collect())
}

/// The leaves of partitioned tables, which have the rows.
async fn partitions(
    connection: &mut Connection,
    tables: &[Followed],
    version: u32,
) -> Result<Vec<Partition>, FeedError> {
    let partitioned: Vec<_> = tables.iter().filter(|table| table.is_partitioned).collect();
    let Some(first) = partitioned.first() else { return Ok(Vec::new()) };
    if version < WITH_ROOTS {
        let why =
            format!("table {} is partitioned, and PostgreSQL before 13 does not log such a table as one", first.name);
        return Err(FeedError::invalid(why).hint("update the server, or remove the table from feed.toml"));
    }
    let roots: Vec<_> = partitioned.iter().map(|table| quoted(&table.name.quoted('"'))).collect();
    let rows = connection
        .query(&format!(
            "SELECT rn.nspname, r.relname, pn.nspname, p.relname, n.nspname, c.relname, c.relkind, c.relpersistence, c.relreplident \
             FROM unnest(ARRAY[{}]::regclass[]) AS root(id) CROSS JOIN LATERAL pg_partition_tree(root.id) AS t \
             JOIN pg_class r ON r.oid = root.id JOIN pg_namespace rn ON rn.oid = r.relnamespace \
             JOIN pg_class p ON p.oid = t.parentrelid JOIN pg_namespace pn ON pn.oid = p.relnamespace \
             JOIN pg_class c ON c.oid = t.relid JOIN pg_namespace n ON n.oid = c.relnamespace \
             WHERE c.relkind <> 'p' ORDER BY 1, 2, 5, 6",
            roots.join(", ")
        ))
        .await?;
    let partition = |row: &super::Row| {
        let value = |at: usize| text(row, at).unwrap_or_default();
        Partition {
            of: TableName::new(value(0), value(1)),
            parent: TableName::new(value(2), value(3)),
            name: TableName::new(value(4), value(5)),
            is_foreign: value(6) == "f",
            is_logged: value(7) == "p",
            identity: value(8),
        }
    };
    Ok(rows.iter().map(partition).collect())
}

/// Rejects tables and partitions whose changes are not in the server's log, or not as their table says.
fn are_logged(tables: &[Followed], partitions: &[Partition]) -> Result<(), FeedError> {
    if let Some(foreign) = partitions.iter().find(|partition| partition.is_foreign) {
        let why = format!(
            "the partition {} of table {} is on another server, which logs its changes",
            foreign.name, foreign.of
        );
        let parent = foreign.parent.quoted('"');
        let name = foreign.name.quoted('"');
        return rejected(why, format!("ALTER TABLE {parent} DETACH PARTITION {name}"));
    }
    let unlogged = tables.iter().filter(|table| !table.is_partitioned).map(|table| (&table.name, table.is_logged));
    let unlogged = unlogged.chain(partitions.iter().map(|partition| (&partition.name, partition.is_logged)));
    if let Some((name, _)) = unlogged.into_iter().find(|(_, is_logged)| !is_logged) {
        return rejected(
            format!("table {name} is unlogged: its changes are not in the log"),
            format!("ALTER TABLE {} SET LOGGED {THEN}", name.quoted('"')),
        );
    }
    // The log says of a row how its table identifies rows, and has what its partition does.
    let of_tables: BTreeMap<&TableName, &str> =
        tables.iter().map(|table| (&table.name, table.identity.as_str())).collect();
    let is_other = |partition: &&Partition| match of_tables.get(&partition.of).copied() {
        Some("f") => partition.identity != "f",
        // More than the key is not trusted.
        Some("d") => !matches!(partition.identity.as_str(), "d" | "f"),
        _ => false,
    };
    let others: Vec<_> = partitions.iter().filter(is_other).collect();
    let Some(first) = others.first() else { return Ok(()) };
    let is_full = of_tables.get(&first.of).copied() == Some("f");
    let identity = if is_full { "FULL" } else { "DEFAULT" };
    let same = others.iter().filter(|partition| partition.of == first.of);
    let statements: Vec<_> =
        same.map(|it| format!("ALTER TABLE {} REPLICA IDENTITY {identity};", it.name.quoted('"'))).collect();
    let why = format!(
        "the partition {} of table {} logs less of a row than its table says: a table's REPLICA IDENTITY is not that of its partitions",
        first.name, first.of
    );
    rejected(why, format!("{} {THEN}", statements.join(" ")))
}

/// Rejects a publication that is not there, leaves out kinds of changes, or publishes partitions under their own names.
async fn is_complete(connection: &mut Connection, publication: &str, tables: &[Followed]) -> Result<(), FeedError> {
    let has_roots = tables.iter().any(|table| table.is_partitioned);
    // Servers before 13 do not know the second.
    let via_root = if has_roots { "pubviaroot" } else { "true" };
    let known = connection
        .query(&format!(
            "SELECT pubinsert AND pubupdate AND pubdelete AND pubtruncate, {via_root} FROM pg_publication WHERE pubname = {}",
            quoted(publication)
        ))
        .await?;
    let name = identifier(publication);
    let is = |at: usize| known.first().and_then(|row| text(row, at)).as_deref() == Some("t");
    if known.is_empty() {
        let all: Vec<_> = tables.iter().map(Followed::alone).collect();
        let with = if has_roots { " WITH (publish_via_partition_root = true)" } else { "" };
        return rejected(
            format!("the database has no publication {publication}"),
            format!("CREATE PUBLICATION {name} FOR TABLE {}{with}", all.join(", ")),
        );
    }
    if !is(0) {
        return rejected(
            format!("the publication {publication} leaves out inserts, updates, deletions or truncations"),
            format!("ALTER PUBLICATION {name} SET (publish = 'insert, update, delete, truncate') {THEN}"),
        );
    }
    if !is(1) {
        let first = tables.iter().find(|table| table.is_partitioned).map(|table| table.name.to_string());
        return rejected(
            format!(
                "the publication {publication} has the partitions of {} in place of the table",
                first.unwrap_or_default()
            ),
            format!("ALTER PUBLICATION {name} SET (publish_via_partition_root = true) {THEN}"),
        );
    }
    Ok(())
}

/// Rejects a publication that does not have all of the tables.
async fn has_tables(connection: &mut Connection, publication: &str, tables: &[Followed]) -> Result<(), FeedError> {
    let published =
        format!("SELECT schemaname, tablename FROM pg_publication_tables WHERE pubname = {}", quoted(publication));
    let published = connection.query(&published).await?;
    let name = |row: &super::Row| TableName::new(text(row, 0).unwrap_or_default(), text(row, 1).unwrap_or_default());
    let published: BTreeSet<_> = published.iter().map(name).collect();
    let missing: Vec<_> = tables.iter().filter(|table| !published.contains(&table.name)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<_> = missing.iter().map(|table| table.name.to_string()).collect();
    let tables: Vec<_> = missing.iter().map(|table| table.alone()).collect();
    rejected(
        format!("the publication {publication} does not have {}", names.join(", ")),
        format!("ALTER PUBLICATION {} ADD TABLE {} {THEN}", identifier(publication), tables.join(", ")),
    )
}

/// Rejects a publication that leaves out rows or columns of the tables. A row that it no longer has looks as if it were deleted, and stays
/// in the first copy; a column keeps what the first copy had.
async fn has_whole_tables(
    connection: &mut Connection,
    publication: &str,
    tables: &[Followed],
) -> Result<(), FeedError> {
    let restricted = connection
        .query(&format!(
            "SELECT n.nspname, c.relname, pg_get_expr(r.prqual, r.prrelid), (SELECT string_agg(a.attname, ', ' ORDER BY a.attnum) \
             FROM pg_attribute a WHERE a.attrelid = r.prrelid AND a.attnum = ANY (r.prattrs)) \
             FROM pg_publication_rel r JOIN pg_publication p ON p.oid = r.prpubid JOIN pg_class c ON c.oid = r.prrelid \
             JOIN pg_namespace n ON n.oid = c.relnamespace \
             WHERE p.pubname = {} AND (r.prqual IS NOT NULL OR r.prattrs IS NOT NULL) ORDER BY 1, 2",
            quoted(publication)
        ))
        .await?;
    for row in restricted {
        let value = |at: usize| text(&row, at);
        let name = TableName::new(value(0).unwrap_or_default(), value(1).unwrap_or_default());
        let Some(table) = tables.iter().find(|table| table.name == name) else { continue };
        let (what, instead) = match (value(2), value(3)) {
            (Some(filter), _) => {
                (format!("rows of {name} with {filter}"), "write the condition as where = in feed.toml")
            }
            (None, columns) => {
                let columns = columns.unwrap_or_default();
                (format!("columns {columns} of {name}"), "list the other columns under ignore = in feed.toml")
            }
        };
        let publication_name = identifier(publication);
        let table = table.alone();
        return rejected(
            format!("the publication {publication} has only the {what}"),
            // At once: what is changed while the table is not published would be lost.
            format!(
                "BEGIN; ALTER PUBLICATION {publication_name} DROP TABLE {table}; ALTER PUBLICATION {publication_name} ADD TABLE {table}; \
                 COMMIT; -- {instead}; {}",
                THEN.trim_start_matches("-- ")
            ),
        );
    }
    Ok(())
}
