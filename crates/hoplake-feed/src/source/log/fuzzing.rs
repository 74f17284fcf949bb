//! A log that is read from memory, for the fuzz target.

use super::{
    Database, assembler::Assembler, catalog::CatalogFile, event::Tables, place::LogPosition, transport::Record,
    values::Style,
};
use crate::{DecimalHandling, FeedError, LogFormat, TimePrecision, source::Following};

/// Takes the lines of a log from its beginning, as a feed does that follows all columns of all tables, and returns how many changes its
/// transactions have.
///
/// # Errors
/// What a feed would stop with.
pub fn read_log(log: &[u8], format: LogFormat, times: TimePrecision, file: CatalogFile) -> Result<usize, FeedError> {
    let (database, _, catalog) = file.into_parts();
    if format == LogFormat::Maxwell && database == Database::Postgres {
        return Ok(0);
    }
    let columns = |table: &crate::Table| table.columns.iter().map(|column| column.name.clone()).collect();
    let following = Following {
        tables: catalog.tables.iter().map(|table| (table.name.clone(), columns(table))).collect(),
        transaction_bytes_max: 1 << 20,
        ..Following::default()
    };
    let style = Style { format, database, times, decimals: DecimalHandling::String };
    let tables = Tables::new(&catalog, &following, style);
    let mut assembler = Assembler::new(LogPosition::default(), tables, following, Vec::new(), false);
    let mut changes = 0;
    for (number, line) in log.split(|byte| *byte == b'\n').enumerate() {
        let record = Record {
            part: "log".into(),
            at: format!("log:{number}"),
            before: number.to_string(),
            after: (number + 1).to_string(),
            written_unix_ms: 0,
            value: line.to_vec().into(),
            is_line: true,
            is_mark: false,
        };
        let event = style.decode(&record, assembler.tables())?;
        assembler.take(&record, event)?;
        while let Some(transaction) = assembler.next()? {
            changes += transaction.changes.len();
        }
    }
    assembler.settle();
    while let Some(transaction) = assembler.next()? {
        changes += transaction.changes.len();
    }
    // A position is written as text, and read again.
    let position = assembler.position();
    assert_eq!(LogPosition::parse(&position.to_string()).ok(), Some(position), "a position is read as it was written");
    Ok(changes)
}
