//! All rows of tables exactly where a new slot begins.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Connection, catalog, identifier, quoted, text};
use crate::{
    FeedError, Row, TableName,
    source::{RowSink, Snapshot},
};

/// Rows that are fetched at a time.
const ROWS: usize = 4_096;

/// A transaction that reads exactly what is before a slot. It ends with its connection.
pub(super) struct PostgresSnapshot {
    connection: Connection,
    position: String,
}

impl PostgresSnapshot {
    /// Makes the slot of a feed, in the place of one that a first copy has left.
    pub(super) async fn of_feed(mut connection: Connection, slot: &str) -> Result<Self, FeedError> {
        let known = format!("SELECT active FROM pg_replication_slots WHERE slot_name = {}", quoted(slot));
        match connection.value(&known).await?.as_deref() {
            None => {}
            Some("f") => drop(connection.query(&format!("SELECT pg_drop_replication_slot({})", quoted(slot))).await?),
            Some(_) => {
                let why = format!("another process uses the replication slot {slot}");
                return Err(FeedError::unavailable(why).hint("give each graph its own source.slot"));
            }
        }
        Self::begin(connection, &identifier(slot)).await
    }

    /// Makes a slot that the server removes with the connection.
    pub(super) async fn temporary(connection: Connection) -> Result<Self, FeedError> {
        Self::begin(connection, &format!("{} TEMPORARY", identifier(&temporary_name()))).await
    }

    async fn begin(mut connection: Connection, slot: &str) -> Result<Self, FeedError> {
        connection.query("BEGIN READ ONLY ISOLATION LEVEL REPEATABLE READ").await?;
        let made =
            connection.query(&format!("CREATE_REPLICATION_SLOT {slot} LOGICAL pgoutput (SNAPSHOT 'use')")).await?;
        let position = made.first().and_then(|row| text(row, 1));
        let position =
            position.ok_or_else(|| FeedError::unavailable("the server does not say where the slot begins"))?;
        Ok(Self { connection, position })
    }
}

/// A name for a slot of one connection.
pub(super) fn temporary_name() -> String {
    format!("hoplake_{:016x}", fastrand::u64(..))
}

#[async_trait]
impl Snapshot for PostgresSnapshot {
    fn position(&self) -> &str {
        &self.position
    }

    async fn rows(&mut self, tables: &[TableName], rows: &mut dyn RowSink) -> Result<(), FeedError> {
        for table in tables {
            table_rows(&mut self.connection, table, rows).await?;
        }
        Ok(())
    }
}

async fn table_rows(connection: &mut Connection, table: &TableName, sink: &mut dyn RowSink) -> Result<(), FeedError> {
    let (columns, decoders) = catalog::decoders(connection, table).await?;
    if columns.names.is_empty() {
        return Err(FeedError::invalid(format!("table {table} was dropped, or the user may not read it")));
    }
    let names: Vec<_> = columns.names.iter().map(|name| identifier(name)).collect();
    let from = catalog::rows_of(connection, table).await?;
    connection
        .query(&format!("DECLARE hoplake_rows NO SCROLL CURSOR FOR SELECT {} FROM {from}", names.join(", ")))
        .await?;
    let columns = Arc::new(columns);
    loop {
        let fetched = connection.query(&format!("FETCH {ROWS} FROM hoplake_rows")).await?;
        let is_last = fetched.len() < ROWS;
        let row = |row: Vec<Option<bytes::Bytes>>| -> Row {
            row.iter().zip(&decoders).map(|(cell, decoder)| decoder.decode(cell.as_deref())).collect()
        };
        sink.rows(&columns, fetched.into_iter().map(row).collect()).await?;
        if is_last {
            break;
        }
    }
    connection.query("CLOSE hoplake_rows").await.map(drop)
}
