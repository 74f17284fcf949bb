//! Rows of a binlog without a server, for the fuzz target.

use super::{
    Flavour,
    charsets::Charset,
    logged::{Hint, Logged, row},
    table_map::{Bytes, LoggedColumn, TableMap},
};
use crate::Row;

/// Values that are inflated may have as many bytes.
const BYTES_MAX: u64 = 1 << 16;

/// Reads a table map, and rows by it up to the first that does not fit. `None` if the map is damaged, or has a type that cannot be read.
/// What the server would say of charsets follows from their numbers here.
pub fn read_rows(table_map: &[u8], rows: &[u8], is_mysql: bool) -> Option<Vec<Row>> {
    let flavour = if is_mysql { Flavour::MySql } else { Flavour::MariaDb };
    let map = TableMap::read(table_map, flavour)?;
    let columns: Vec<_> = map.columns.iter().map(logged).collect::<Option<_>>()?;
    let mut bytes = Bytes(rows);
    let mut all = Vec::new();
    while !bytes.0.is_empty() {
        let Some(row) = row(&columns, &mut bytes) else { break };
        all.push(row);
    }
    Some(all)
}

fn logged(column: &LoggedColumn) -> Option<Logged> {
    let number = column.collation.unwrap_or(0);
    let charset = match number % 7 {
        0 => Charset::Utf8,
        1 => Charset::Ucs2,
        2 => Charset::Utf16 { is_little: false },
        3 => Charset::Utf16 { is_little: true },
        4 => Charset::Utf32,
        5 => Charset::Binary,
        _ => Charset::Unknown("klingon".into()),
    };
    let hint = [Hint::Binary, Hint::Uuid, Hint::Inet4, Hint::Inet6, Hint::Unknown][(number / 7 % 5) as usize];
    Logged::new(column, &charset, hint, BYTES_MAX).ok()
}
