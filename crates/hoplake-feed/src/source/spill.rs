//! Changes of a transaction that is too large for memory, in a file.
//!
//! They are written one after the other as they arrive, compressed, and read again from the beginning for each fold. A table's columns are
//! written once, before its first row. The file is in a temporary folder of its own, so it goes with its value, or at the next start if
//! the process is killed.

use std::{
    fs::File,
    io::{self, BufReader, BufWriter, Read, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use hoplake::{PropertyType, Value};

use crate::{
    Cell, Change, Columns, FeedError, Images, Row, RowChange, Settings, StreamSettings, TableName, scratch::Scratch,
};

/// Where changes go that are too many for memory, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpillSettings {
    /// The folder of temporary folders.
    pub place: PathBuf,
    /// Bytes of the changes of one transaction that are kept in memory.
    pub memory_bytes_max: u64,
    /// Bytes of all of them, before they are compressed.
    pub bytes_max: u64,
}

impl SpillSettings {
    /// Those of a feed.
    pub(crate) fn of(settings: &Settings) -> Self {
        let StreamSettings { bytes_max, spill_bytes_max, .. } = settings.stream;
        Self { place: settings.copy.place(), memory_bytes_max: bytes_max, bytes_max: spill_bytes_max }
    }
}

/// The level of zstd: fast.
const LEVEL: i32 = 1;

/// A file that changes are added to.
pub(crate) struct Spilling {
    scratch: Scratch,
    out: zstd::Encoder<'static, BufWriter<File>>,
    /// Those that were written, by number.
    columns: Vec<Arc<Columns>>,
    changes: usize,
}

/// Changes in a file.
#[derive(Debug)]
pub(crate) struct Spilled {
    scratch: Scratch,
    changes: usize,
}

fn failed(what: &str, error: &io::Error) -> FeedError {
    let why = format!("could not {what} a large transaction: {}", hoplake::system_text(error));
    FeedError::unavailable(why).hint("give copy.temp_dir as much space as the largest transaction takes")
}

fn file(folder: &Path) -> PathBuf {
    folder.join("changes.zst")
}

impl std::fmt::Debug for Spilling {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Spilling")
            .field("scratch", &self.scratch)
            .field("changes", &self.changes)
            .finish_non_exhaustive()
    }
}

impl Spilling {
    pub(crate) fn begin(settings: &SpillSettings) -> Result<Self, FeedError> {
        let begun = || {
            let scratch = Scratch::within(&settings.place)?;
            let out = zstd::Encoder::new(BufWriter::new(File::create_new(file(scratch.path()))?), LEVEL)?;
            Ok(Self { scratch, out, columns: Vec::new(), changes: 0 })
        };
        begun().map_err(|error| failed("keep", &error))
    }

    pub(crate) fn push(&mut self, change: &Change) -> Result<(), FeedError> {
        self.changes += 1;
        self.write(change).map_err(|error| failed("keep", &error))
    }

    pub(crate) fn finish(self) -> Result<Spilled, FeedError> {
        let Self { scratch, out, changes, .. } = self;
        let finished = out.finish().and_then(|mut out| out.flush());
        finished.map_err(|error| failed("keep", &error))?;
        Ok(Spilled { scratch, changes })
    }

    fn write(&mut self, change: &Change) -> io::Result<()> {
        let RowChange { columns, images, checks_keys } = match change {
            Change::Row(row) => row,
            Change::Truncate(table) => {
                self.out.write_all(&[TRUNCATE])?;
                return write_table(&mut self.out, table);
            }
        };
        // Nearly always those of the row before, which are last.
        let number = match self.columns.iter().rposition(|known| Arc::ptr_eq(known, columns)) {
            Some(number) => number,
            None => {
                self.out.write_all(&[COLUMNS])?;
                write_columns(&mut self.out, columns)?;
                self.columns.push(columns.clone());
                self.columns.len() - 1
            }
        };
        let out = &mut self.out;
        let begin = |out: &mut zstd::Encoder<'static, BufWriter<File>>, kind: u8| {
            out.write_all(&[if *checks_keys { kind } else { kind | UNCHECKED }])?;
            write_number(out, number as u64)
        };
        match images {
            Images::Insert(row) => begin(out, INSERT).and_then(|()| write_row(out, row)),
            Images::Delete(row) => begin(out, DELETE).and_then(|()| write_row(out, row)),
            Images::Update { before: None, after } => begin(out, UPDATE).and_then(|()| write_row(out, after)),
            Images::Update { before: Some(before), after } => {
                begin(out, UPDATE_FROM)?;
                write_row(out, before)?;
                write_row(out, after)
            }
        }
    }
}

impl Spilled {
    pub(crate) fn len(&self) -> usize {
        self.changes
    }

    /// The changes, in their order.
    pub(crate) fn iter(&self) -> Result<impl Iterator<Item = Result<Change, FeedError>> + use<>, FeedError> {
        let opened = File::open(file(self.scratch.path())).and_then(zstd::Decoder::new);
        let mut from = BufReader::new(opened.map_err(|error| failed("read", &error))?);
        let mut columns = Vec::new();
        let mut left = self.changes;
        Ok(std::iter::from_fn(move || {
            left = left.checked_sub(1)?;
            Some(read_change(&mut from, &mut columns).map_err(|error| failed("read", &error)))
        }))
    }
}

const COLUMNS: u8 = 0;
const INSERT: u8 = 1;
const UPDATE: u8 = 2;
const UPDATE_FROM: u8 = 3;
const DELETE: u8 = 4;
const TRUNCATE: u8 = 5;
/// Added to the kind of a row that was written without checks of foreign keys.
const UNCHECKED: u8 = 0x80;

fn write_number(out: &mut impl Write, number: u64) -> io::Result<()> {
    out.write_all(&number.to_le_bytes())
}

fn write_text(out: &mut impl Write, text: &str) -> io::Result<()> {
    write_number(out, text.len() as u64)?;
    out.write_all(text.as_bytes())
}

fn write_table(out: &mut impl Write, table: &TableName) -> io::Result<()> {
    write_text(out, &table.schema)?;
    write_text(out, &table.name)
}

fn write_columns(out: &mut impl Write, columns: &Columns) -> io::Result<()> {
    write_table(out, &columns.table)?;
    write_number(out, columns.names.len() as u64)?;
    for (name, kind) in columns.names.iter().zip(&columns.kinds) {
        write_text(out, name)?;
        write_text(out, &kind.map(|kind| kind.to_string()).unwrap_or_default())?;
    }
    Ok(())
}

fn write_row(out: &mut impl Write, row: &Row) -> io::Result<()> {
    for cell in row {
        match cell {
            Cell::Absent => out.write_all(b"-")?,
            Cell::Digits(digits) => tagged(out, b'D', digits)?,
            Cell::Bad(why) => tagged(out, b'B', why)?,
            Cell::Value(value) => write_value(out, value)?,
        }
    }
    Ok(())
}

fn tagged(out: &mut impl Write, tag: u8, text: &str) -> io::Result<()> {
    out.write_all(&[tag])?;
    write_text(out, text)
}

fn write_value(out: &mut impl Write, value: &Value) -> io::Result<()> {
    let mut fixed = |tag: u8, bytes: &[u8]| {
        out.write_all(&[tag])?;
        out.write_all(bytes)
    };
    match value {
        Value::Null => fixed(b'n', &[]),
        Value::Bool(it) => fixed(b'b', &[u8::from(*it)]),
        Value::Int64(it) => fixed(b'i', &it.to_le_bytes()),
        Value::Float64(it) => fixed(b'f', &it.to_le_bytes()),
        Value::Date(it) => fixed(b'd', &it.to_le_bytes()),
        Value::Timestamp(it) => fixed(b't', &it.to_le_bytes()),
        Value::String(it) => tagged(out, b's', it),
        Value::List(items) => {
            fixed(b'l', &(items.len() as u64).to_le_bytes())?;
            items.iter().try_for_each(|item| write_value(out, item))
        }
    }
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the temporary file is damaged")
}

fn bytes<const N: usize>(from: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn read_number(from: &mut impl Read) -> io::Result<usize> {
    usize::try_from(u64::from_le_bytes(bytes(from)?)).map_err(|_| damaged())
}

fn read_text(from: &mut impl Read) -> io::Result<String> {
    let length = read_number(from)?;
    let mut text = Vec::new();
    // No more than there is, whatever the length says.
    if from.take(length as u64).read_to_end(&mut text)? != length {
        return Err(damaged());
    }
    String::from_utf8(text).map_err(|_| damaged())
}

fn read_table(from: &mut impl Read) -> io::Result<TableName> {
    Ok(TableName::new(read_text(from)?, read_text(from)?))
}

fn read_columns(from: &mut impl Read) -> io::Result<Columns> {
    let mut columns = Columns { table: read_table(from)?, names: Vec::new(), kinds: Vec::new() };
    for _ in 0..read_number(from)? {
        columns.names.push(read_text(from)?.into());
        columns.kinds.push(PropertyType::from_name(&read_text(from)?));
    }
    Ok(columns)
}

fn read_change(from: &mut impl Read, known: &mut Vec<Arc<Columns>>) -> io::Result<Change> {
    let mut kind = bytes::<1>(from)?;
    while kind == [COLUMNS] {
        known.push(Arc::new(read_columns(from)?));
        kind = bytes(from)?;
    }
    if kind == [TRUNCATE] {
        return read_table(from).map(Change::Truncate);
    }
    let checks_keys = kind[0] & UNCHECKED == 0;
    kind[0] &= !UNCHECKED;
    let columns = known.get(read_number(from)?).ok_or_else(damaged)?.clone();
    let mut row = || (0..columns.names.len()).map(|_| read_cell(from)).collect::<io::Result<Row>>();
    let images = match kind {
        [INSERT] => Images::Insert(row()?),
        [UPDATE] => Images::Update { before: None, after: row()? },
        [UPDATE_FROM] => Images::Update { before: Some(row()?), after: row()? },
        [DELETE] => Images::Delete(row()?),
        _ => return Err(damaged()),
    };
    Ok(Change::Row(RowChange { columns, images, checks_keys }))
}

fn read_cell(from: &mut impl Read) -> io::Result<Cell> {
    let [tag] = bytes(from)?;
    Ok(match tag {
        b'-' => Cell::Absent,
        b'D' => Cell::Digits(read_text(from)?.into()),
        b'B' => Cell::Bad(read_text(from)?.into()),
        tag => Cell::Value(read_value(tag, from)?),
    })
}

fn read_value(tag: u8, from: &mut impl Read) -> io::Result<Value> {
    Ok(match tag {
        b'n' => Value::Null,
        b'b' => Value::Bool(bytes(from)? == [1]),
        b'i' => Value::Int64(i64::from_le_bytes(bytes(from)?)),
        b'f' => Value::Float64(f64::from_le_bytes(bytes(from)?)),
        b'd' => Value::Date(i32::from_le_bytes(bytes(from)?)),
        b't' => Value::Timestamp(i64::from_le_bytes(bytes(from)?)),
        b's' => Value::String(read_text(from)?),
        b'l' => {
            let items = read_number(from)?;
            let item = |_| {
                let [tag] = bytes(from)?;
                // No property is a list of lists.
                if tag == b'l' { Err(damaged()) } else { read_value(tag, from) }
            };
            Value::List((0..items).map(item).collect::<io::Result<_>>()?)
        }
        _ => return Err(damaged()),
    })
}

#[cfg(test)]
mod tests {
    use hoplake::{PropertyType, ScalarType};

    use super::*;

    #[test]
    fn changes_are_read_as_they_were_written_and_go_with_their_value() {
        let place = tempfile::tempdir().unwrap();
        let settings = SpillSettings { place: place.path().to_owned(), memory_bytes_max: 0, bytes_max: u64::MAX };
        let columns = |name: &str, kinds: Vec<Option<PropertyType>>| {
            let names = (0..kinds.len()).map(|at| format!("c{at}").into()).collect();
            Arc::new(Columns { table: TableName::new("s.x", name), names, kinds })
        };
        let list = Some(PropertyType::List(ScalarType::String));
        let wide = columns("t", vec![None, list, Some(PropertyType::Scalar(ScalarType::Float64))]);
        let other = columns("u", vec![None]);
        let cells = [
            Cell::Absent,
            Cell::Bad("no".into()),
            Cell::Digits("18446744073709551615".into()),
            Cell::Value(Value::Null),
            Cell::Value(Value::Bool(true)),
            Cell::Value(Value::Int64(i64::MIN)),
            Cell::Value(Value::Float64(-0.0)),
            Cell::Value(Value::String("ü\0".into())),
            Cell::Value(Value::Date(-1)),
            Cell::Value(Value::Timestamp(i64::MAX)),
            Cell::Value(Value::List(vec![])),
            Cell::Value(Value::List(vec!["a".into(), Value::Null, Value::Int64(1)])),
        ];
        let mut changes = Vec::new();
        for (at, cell) in cells.iter().enumerate() {
            let row: Row = [cell.clone(), cells[(at + 1) % cells.len()].clone(), Cell::Absent].into();
            let one: Row = [cell.clone()].into();
            let checks_keys = at % 2 == 0;
            let of = |columns: &Arc<Columns>, images| {
                Change::Row(RowChange { columns: columns.clone(), images, checks_keys })
            };
            changes.push(of(&wide, Images::Insert(row.clone())));
            changes.push(of(&other, Images::Delete(one)));
            changes.push(of(&wide, Images::Update { before: None, after: row.clone() }));
            changes.push(of(&wide, Images::Update { before: Some(row.clone()), after: row }));
            changes.push(Change::Truncate(TableName::new("s", "t")));
        }
        let mut spilling = Spilling::begin(&settings).unwrap();
        changes.iter().for_each(|change| spilling.push(change).unwrap());
        let spilled = spilling.finish().unwrap();
        for _ in 0..2 {
            let read: Vec<_> = spilled.iter().unwrap().map(Result::unwrap).collect();
            assert_eq!(read, changes);
        }
        let written = std::fs::read(file(spilled.scratch.path())).unwrap();
        // What a full disk cut off is an error, and not fewer changes.
        std::fs::write(file(spilled.scratch.path()), &written[..written.len() / 2]).unwrap();
        assert!(spilled.iter().unwrap().any(|change| change.is_err()));
        drop(spilled);
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
    }
}
