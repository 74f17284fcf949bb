//! All rows of tables at one position, while others write.

use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt;
use mysql_async::{Conn, Row as MyRow, prelude::Queryable};

use super::{Flavour, catalog, failed, gtid::Gtids, values::Decoder};
use crate::{
    Cell, Columns, FeedError, Row, TableName,
    source::{RowSink, Snapshot},
};

/// Rows that are passed on at a time.
const ROWS: usize = 2_048;

/// A transaction that reads, and the position of what it sees. It ends with its connection.
pub(super) struct MariaDbSnapshot {
    conn: Conn,
    position: String,
}

impl MariaDbSnapshot {
    pub(super) async fn begin(mut conn: Conn) -> Result<Self, FeedError> {
        let position = begin(&mut conn).await?;
        Ok(Self { conn, position })
    }
}

#[async_trait]
impl Snapshot for MariaDbSnapshot {
    fn position(&self) -> &str {
        &self.position
    }

    async fn rows(&mut self, tables: &[TableName], rows: &mut dyn RowSink) -> Result<(), FeedError> {
        for table in tables {
            table_rows(&mut self.conn, table, rows).await?;
        }
        Ok(())
    }
}

/// Begins a snapshot, and returns its position in the log.
async fn begin(conn: &mut Conn) -> Result<String, FeedError> {
    let flavour = catalog::flavour(conn).await?;
    let isolation = "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ";
    let begin = "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY";
    let position: Option<String> = async {
        conn.query_drop(isolation).await?;
        match flavour {
            Flavour::MariaDb => {
                // The server notes where the snapshot is in its binlog, so that no lock is needed.
                conn.query_drop("START TRANSACTION WITH CONSISTENT SNAPSHOT").await?;
                let status: Vec<(String, String)> = conn.query("SHOW STATUS LIKE 'binlog_snapshot_%'").await?;
                let value = |name: &str| {
                    let found = status.iter().find(|(variable, _)| variable.eq_ignore_ascii_case(name));
                    found.map(|(_, value)| value.clone()).unwrap_or_default()
                };
                let file = value("binlog_snapshot_file");
                let position = value("binlog_snapshot_position");
                let statement = format!("SELECT BINLOG_GTID_POS({}, {position})", catalog::quoted(&file));
                conn.query_first(statement).await
            }
            Flavour::MySql => {
                // Only for as long as it takes to begin.
                conn.query_drop("FLUSH TABLES WITH READ LOCK").await?;
                conn.query_drop(begin).await?;
                let position = conn.query_first("SELECT REPLACE(@@GLOBAL.gtid_executed, '\\n', '')").await?;
                conn.query_drop("UNLOCK TABLES").await?;
                Ok(position)
            }
        }
    }
    .await
    .map_err(|error: mysql_async::Error| failed("begin a snapshot", &error))?;
    let position =
        position.ok_or_else(|| FeedError::unavailable("the server does not say where the snapshot is in its log"))?;
    Ok(Gtids::parse(&position)?.to_string())
}

/// How the columns of a table are read, by their declarations.
async fn decoders(conn: &mut Conn, table: &TableName) -> Result<(Columns, Vec<Decoder>), FeedError> {
    let statement = format!(
        "SELECT column_name, data_type, column_type FROM information_schema.columns \
         WHERE table_schema = {} AND table_name = {} AND extra NOT LIKE '%VIRTUAL GENERATED%' ORDER BY ordinal_position",
        catalog::quoted(&table.schema),
        catalog::quoted(&table.name)
    );
    let found: Vec<(String, String, String)> =
        conn.query(statement).await.map_err(|error| failed("read the columns of a table", &error))?;
    let mut columns = Columns { table: table.clone(), names: Vec::new(), kinds: Vec::new() };
    let mut decoders = Vec::new();
    for (name, data_type, declared) in found {
        columns.names.push(name.into());
        columns.kinds.push(catalog::kind(&data_type));
        decoders.push(Decoder::new(&declared));
    }
    Ok((columns, decoders))
}

async fn table_rows(conn: &mut Conn, table: &TableName, sink: &mut dyn RowSink) -> Result<(), FeedError> {
    let (columns, decoders) = decoders(conn, table).await?;
    if columns.names.is_empty() {
        return Err(FeedError::invalid(format!("table {table} was dropped, or the user may not read it")));
    }
    let names: Vec<_> = columns.names.iter().map(|name| catalog::identifier(name)).collect();
    let from = format!("{}.{}", catalog::identifier(&table.schema), catalog::identifier(&table.name));
    let statement = format!("SELECT {} FROM {from}", names.join(", "));
    let columns = Arc::new(columns);
    let what = format!("read table {table}");
    let reading = |error: mysql_async::Error| failed(&what, &error);
    // Prepared, so that numbers come as numbers.
    let mut stream = conn.exec_stream::<MyRow, _, _>(statement, ()).await.map_err(reading)?;
    let mut rows = Vec::with_capacity(ROWS);
    while let Some(row) = stream.next().await {
        let values = row.map_err(reading)?.unwrap();
        let cells = values.into_iter().zip(&decoders).map(|(value, decoder)| decoder.of_query(value));
        rows.push(cells.collect::<Vec<Cell>>().into_boxed_slice() as Row);
        if rows.len() == ROWS {
            sink.rows(&columns, std::mem::replace(&mut rows, Vec::with_capacity(ROWS))).await?;
        }
    }
    // Also if there are none: the table is there.
    sink.rows(&columns, rows).await
}
