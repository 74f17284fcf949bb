//! All rows of tables exactly where a new slot begins.

use std::sync::Arc;

use super::{Connection, catalogue, identifier, quoted, text};
use crate::{FeedError, Row, TableName, source::RowSink};

/// Rows that are fetched at a time.
const ROWS: usize = 4_096;

/// Makes the slot, reads tables in its snapshot, and returns the position.
pub(super) async fn copy(
    connection: &mut Connection,
    slot: &str,
    tables: &[TableName],
    rows: &mut dyn RowSink,
) -> Result<String, FeedError> {
    // A slot of a copy that was not completed: nothing has been read from it.
    let known = format!("SELECT active FROM pg_replication_slots WHERE slot_name = {}", quoted(slot));
    match connection.value(&known).await?.as_deref() {
        None => {}
        Some("f") => drop(connection.query(&format!("SELECT pg_drop_replication_slot({})", quoted(slot))).await?),
        Some(_) => {
            let why = format!("another feed uses the replication slot {slot}");
            return Err(FeedError::invalid(why).hint("give each graph its own source.slot"));
        }
    }
    connection.query("BEGIN READ ONLY ISOLATION LEVEL REPEATABLE READ").await?;
    let made = connection
        .query(&format!("CREATE_REPLICATION_SLOT {} LOGICAL pgoutput (SNAPSHOT 'use')", identifier(slot)))
        .await?;
    let position = made.first().and_then(|row| text(row, 1));
    let position = position.ok_or_else(|| FeedError::unavailable("the server does not say where the slot begins"))?;
    for table in tables {
        copy_table(connection, table, rows).await?;
    }
    connection.query("COMMIT").await?;
    Ok(position)
}

async fn copy_table(connection: &mut Connection, table: &TableName, sink: &mut dyn RowSink) -> Result<(), FeedError> {
    let (columns, decoders) = catalogue::decoders(connection, table).await?;
    if columns.names.is_empty() {
        return Err(FeedError::invalid(format!("table {table} was dropped, or the user may not read it")));
    }
    let names: Vec<_> = columns.names.iter().map(|name| identifier(name)).collect();
    let from = format!("{}.{}", identifier(&table.schema), identifier(&table.name));
    connection
        .query(&format!("DECLARE hoplake_copy NO SCROLL CURSOR FOR SELECT {} FROM {from}", names.join(", ")))
        .await?;
    let columns = Arc::new(columns);
    loop {
        let fetched = connection.query(&format!("FETCH {ROWS} FROM hoplake_copy")).await?;
        let is_last = fetched.len() < ROWS;
        let row = |row: Vec<Option<bytes::Bytes>>| -> Row {
            row.iter().zip(&decoders).map(|(cell, decoder)| decoder.decode(cell.as_deref())).collect()
        };
        sink.rows(&columns, fetched.into_iter().map(row).collect()).await?;
        if is_last {
            break;
        }
    }
    connection.query("CLOSE hoplake_copy").await.map(drop)
}
