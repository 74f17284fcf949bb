//! What Debezium and Maxwell write is read as the database's own log: the same rows, in the same transactions, cell by cell.

use std::{collections::BTreeSet, path::Path, sync::Arc};

use async_trait::async_trait;
use hoplake::{Name, Value};
use hoplake_feed::{
    Catalog, Cell, Change, Columns, FeedError, Images, Row, Settings, TableName,
    source::{self, CatalogFile, Following, Purpose, RowSink, Source},
};
use hoplake_testkit::{MariaDbServer, PostgresServer};

/// A row of which nothing is known, or its cells by the names of their columns.
type Cells = Vec<(Name, Cell)>;

/// A change: what it does, and the row before and after.
#[derive(Debug, Clone, PartialEq)]
struct Seen {
    what: String,
    before: Option<Cells>,
    after: Option<Cells>,
}

/// Rows of a copy, and transactions.
#[derive(Debug, Default)]
struct History {
    copied: Vec<(String, Cells)>,
    transactions: Vec<Vec<Seen>>,
}

fn cells(columns: &Columns, row: &Row) -> Cells {
    columns.names.iter().cloned().zip(row.iter().cloned()).collect()
}

#[async_trait]
impl RowSink for History {
    async fn rows(&mut self, columns: &Arc<Columns>, rows: Vec<Row>) -> Result<(), FeedError> {
        self.copied.extend(rows.iter().map(|row| (columns.table.to_string(), cells(columns, row))));
        Ok(())
    }
}

impl History {
    /// All that a source has of some tables; `during` is done between the copy and the stream.
    async fn of(source: &dyn Source, tables: &[TableName], catalog: &Catalog, during: impl FnOnce()) -> Self {
        let mut history = Self::default();
        let mut snapshot = source.snapshot(Purpose::Copy).await.unwrap();
        snapshot.rows(tables, &mut history).await.unwrap();
        let from = snapshot.position().to_owned();
        drop(snapshot);
        during();
        let columns = |table: &TableName| -> BTreeSet<Name> {
            catalog.table(table).unwrap().columns.iter().map(|column| column.name.clone()).collect()
        };
        let following = Following {
            tables: tables.iter().map(|table| (table.clone(), columns(table))).collect(),
            transaction_bytes_max: 1 << 26,
            ..Following::default()
        };
        let mut stream = source.stream(&from, following).await.unwrap();
        while let Some(transaction) = stream.next().await.unwrap() {
            let changes: Vec<_> = transaction.changes.as_slice().unwrap().iter().map(seen).collect();
            if !changes.is_empty() {
                history.transactions.push(changes);
            }
        }
        history.copied.sort_by_key(|(table, cells)| format!("{table} {cells:?}"));
        history
    }
}

fn seen(change: &Change) -> Seen {
    let Change::Row(change) = change else {
        return Seen { what: format!("truncate {}", change.table()), before: None, after: None };
    };
    let cells = |row: &Row| cells(&change.columns, row);
    let (what, before, after) = match &change.images {
        Images::Insert(row) => ("insert", None, Some(cells(row))),
        Images::Update { before, after } => ("update", before.as_ref().map(cells), Some(cells(after))),
        Images::Delete(row) => ("delete", Some(cells(row)), None),
    };
    Seen { what: format!("{what} {}", change.columns.table), before, after }
}

/// Compares rows cell by cell. What the log says that it cannot tell is noted in place of that.
fn compare(what: &str, of_log: &Cells, of_database: &Cells, unclear: &mut BTreeSet<String>) {
    let cell = |cells: &Cells, name: &Name| cells.iter().find(|(other, _)| other == name).map(|(_, cell)| cell.clone());
    let names: BTreeSet<_> = of_log.iter().chain(of_database).map(|(name, _)| name.clone()).collect();
    for name in names {
        let log = cell(of_log, &name).unwrap_or_default();
        let database = cell(of_database, &name).unwrap_or_default();
        match (&log, &database) {
            (Cell::Bad(_), Cell::Bad(_)) => {}
            (Cell::Bad(_), _) => drop(unclear.insert(name.to_string())),
            // Composite types are not written, and enums without a label are, as null.
            (Cell::Absent, Cell::Value(_)) if name == "place" => drop(unclear.insert(name.to_string())),
            (Cell::Value(Value::Null), Cell::Value(Value::String(label))) if name == "colour" && label.is_empty() => {
                unclear.insert(name.to_string());
            }
            _ if log == database => {}
            _ => panic!("{what}, column {name}: the log has {log:?}, and the database {database:?}"),
        }
    }
}

/// Compares two histories, and returns the columns of which the log cannot tell a value.
fn compared(of_log: &History, of_database: &History) -> BTreeSet<String> {
    let mut unclear = BTreeSet::new();
    assert_eq!(of_log.copied.len(), of_database.copied.len());
    for (table, database) in &of_database.copied {
        // The rows of a table are told apart by their first two columns.
        let key = |cells: &Cells| cells[..2.min(cells.len())].to_vec();
        let log = of_log.copied.iter().find(|(other, cells)| other == table && cells[0] == key(database)[0]);
        let (_, log) = log.unwrap_or_else(|| panic!("the log has no row {:?} of {table}", key(database)));
        compare(table, log, database, &mut unclear);
    }
    let what = |history: &History| {
        let of = |changes: &Vec<Seen>| changes.iter().map(|seen| seen.what.clone()).collect::<Vec<_>>();
        history.transactions.iter().map(of).collect::<Vec<_>>()
    };
    assert_eq!(what(of_log), what(of_database));
    for (log, database) in of_log.transactions.iter().flatten().zip(of_database.transactions.iter().flatten()) {
        let what = format!("{} {:?}", database.what, database.after.as_ref().map(|cells| &cells[0]));
        for (log, database, image) in
            [(&log.before, &database.before, "before"), (&log.after, &database.after, "after")]
        {
            match (log, database) {
                (None, None) => {}
                (Some(log), Some(database)) => compare(&format!("{what} {image}"), log, database, &mut unclear),
                _ => panic!("{what} {image}: the log has {log:?}, and the database {database:?}"),
            }
        }
    }
    unclear
}

fn sample(name: &str) -> String {
    format!("{}/tests/samples/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn settings(url: &str, more: &str) -> Settings {
    Settings::parse(&format!("graph = 'memory://'\n[source]\nname = 'x'\nurl = '{url}'\nquiet_ms = 10\n{more}"))
        .unwrap()
}

/// The log of a sample, with the catalog of the database by its file.
async fn of_sample(
    name: &str,
    more: &str,
    url: &str,
    schema: &str,
    catalog: &Catalog,
    tables: &[TableName],
) -> History {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("catalog.json");
    std::fs::write(&path, CatalogFile::new(url, schema, catalog.clone()).unwrap().to_json()).unwrap();
    let settings = settings(&format!("file:{}", sample(name)), &format!("catalog = {path:?}\n{more}"));
    let log = source::open(&settings).unwrap();
    assert_eq!(log.catalog(&BTreeSet::from([schema.to_owned()])).await.unwrap(), *catalog);
    History::of(&*log, tables, catalog, || ()).await
}

fn names(schema: &str, tables: &[&str]) -> Vec<TableName> {
    tables.iter().map(|table| TableName::new(schema, *table)).collect()
}

/// Of Debezium as the samples were written.
const DEBEZIUM: &str = "log_format = 'debezium'\ndecimal_handling_mode = 'string'";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_of_mariadb_are_those_of_its_log() {
    let server = MariaDbServer::start(&[]).unwrap();
    server.sql_file("test", Path::new(&sample("tables-mariadb.sql"))).unwrap();
    let source = source::open(&settings(&server.url("test"), "")).unwrap();
    let tables = names("test", &["kinds", "person", "member", "visit"]);
    let schemas = BTreeSet::from(["test".to_owned()]);
    let catalog = source.catalog(&schemas).await.unwrap();
    let database = History::of(&*source, &tables, &catalog, || {
        server.sql_file("test", Path::new(&sample("changes-mariadb.sql"))).unwrap();
    })
    .await;
    // With the column that was added.
    let catalog = source.catalog(&schemas).await.unwrap();
    let url = server.url("test");
    let debezium = of_sample("debezium-mariadb.jsonl", DEBEZIUM, &url, "test", &catalog, &tables).await;
    assert_eq!(compared(&debezium, &database), BTreeSet::new());
    let maxwell = of_sample("maxwell.jsonl", "log_format = 'maxwell'", &url, "test", &catalog, &tables).await;
    // It does not write TRUNCATE.
    let mut without_truncate = database;
    without_truncate.transactions.retain(|changes| !changes[0].what.starts_with("truncate"));
    let unclear = compared(&maxwell, &without_truncate);
    assert_eq!(unclear, ["bit_10", "bit_64", "colour", "time_0", "time_3", "time_6"].map(str::to_owned).into());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_of_postgres_are_those_of_its_log() {
    let server = PostgresServer::start(&[]).unwrap();
    server.sql("test", &std::fs::read_to_string(sample("tables-postgres.sql")).unwrap()).unwrap();
    server.sql("test", "CREATE PUBLICATION hoplake_x FOR ALL TABLES").unwrap();
    let source = source::open(&settings(&server.url("test"), "")).unwrap();
    let tables = names("public", &["kinds", "person", "member", "visit", "letter"]);
    let schemas = BTreeSet::from(["public".to_owned()]);
    let catalog = source.catalog(&schemas).await.unwrap();
    let database = History::of(&*source, &tables, &catalog, || {
        server.sql("test", &std::fs::read_to_string(sample("changes-postgres.sql")).unwrap()).unwrap();
    })
    .await;
    let catalog = source.catalog(&schemas).await.unwrap();
    let log = of_sample("debezium-postgres.jsonl", DEBEZIUM, &server.url("test"), "public", &catalog, &tables).await;
    let unclear = compared(&log, &database);
    assert_eq!(unclear, ["bits", "cash", "place", "span", "time_z"].map(str::to_owned).into());
}
