//! Changes as a stream of Arrow's IPC format, whose record batches are rows as those of a Parquet file.
//!
//! A stream may come from anyone, and the decoder believes what it claims: positions of buffers, counts of rows, sizes of
//! compressed columns. So each message is checked before it is decoded: everything that it names must be within its own bytes, and no
//! more in sum than these. Types that can be much larger in memory than in the stream are rejected.

use std::{fmt, sync::Arc};

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::{Endianness, MessageHeader, convert::try_fb_to_schema, reader::StreamDecoder, root_as_message};
use arrow_schema::{ArrowError, DataType, Schema};

use super::{
    batch_rows::{BatchRows, ChangeInput, Source},
    columns::named,
};
use crate::{
    IngestError,
    source::plain::{PlainFile, in_property_types},
};

/// Before the length of a message (Arrow's format of streams, since version 0.15).
const CONTINUATION: u32 = u32::MAX;

/// The changes of a stream; `name` stands for a file in messages.
pub(super) fn stream(name: &str, bytes: Vec<u8>) -> Result<Source, IngestError> {
    let invalid = |why: String| IngestError::Invalid(format!("{name}: {why}"));
    let schema = checked(&bytes).map_err(invalid)?;
    let mut buffer = Buffer::from_vec(bytes);
    let mut decoder = StreamDecoder::new();
    batches(name, &schema, std::iter::from_fn(move || decoder.decode(&mut buffer).transpose()))
}

/// The changes of record batches, which have this schema.
pub(super) fn batches(
    name: &str,
    schema: &Schema,
    mut batches: impl Iterator<Item = Result<RecordBatch, ArrowError>> + Send + 'static,
) -> Result<Source, IngestError> {
    let headers: Vec<_> = schema.fields().iter().map(|field| field.name().clone()).collect();
    let file = PlainFile::named(name);
    let columns = named(&file, &headers)?;
    let name: Arc<str> = name.into();
    let mut first = 1;
    Ok(Box::new(std::iter::from_fn(move || {
        let invalid = |why: &dyn fmt::Display| IngestError::Invalid(format!("{name}: {why}"));
        let batch = match batches.next()? {
            Ok(batch) => batch,
            Err(error) => {
                return Some(Err(invalid(&format_args!("row {first} and those after it are damaged: {error}"))));
            }
        };
        // In the types of properties, as rows of Parquet have them.
        let batch = match in_property_types(&batch) {
            Ok(batch) => batch,
            Err(why) => return Some(Err(invalid(&format_args!("in the batch that begins with row {first}: {why}")))),
        };
        let rows = BatchRows::new(name.clone(), columns.clone(), first, batch);
        first += rows.len() as u64;
        Some(Ok(ChangeInput::Rows(rows)))
    })))
}

/// The schema of a stream in which nothing points outside; the error is the rest of a sentence about it.
fn checked(stream: &[u8]) -> Result<Schema, String> {
    let mut rest = stream;
    let mut schema = None;
    while let Some((metadata, after)) = message(rest)? {
        let message = root_as_message(metadata).map_err(|error| format!("it is not an Arrow stream: {error}"))?;
        let length = usize::try_from(message.bodyLength()).ok().filter(|length| *length <= after.len());
        let length = length.ok_or_else(|| truncated(rest.len()))?;
        match message.header_type() {
            MessageHeader::Schema => {
                let found = message.header_as_schema().ok_or("it has a message without a header")?;
                // The decoder would take its numbers for others.
                if found.endianness() != Endianness::Little {
                    return Err("its numbers are not little-endian; write it on a machine that is".into());
                }
                let found = try_fb_to_schema(found).map_err(|error| format!("its schema cannot be read: {error}"))?;
                found.fields().iter().try_for_each(|field| allowed(field.name(), field.data_type()))?;
                // The decoder rejects a second one.
                schema.get_or_insert(found);
            }
            MessageHeader::RecordBatch => {
                let batch = message.header_as_record_batch().ok_or("it has a message without a header")?;
                check_batch(batch, schema.as_ref().ok_or("it has rows before its schema")?, length)?;
            }
            MessageHeader::NONE => {}
            other => return Err(format!("it has a message of type {other:?}, which changes do not have")),
        }
        rest = &after[length..];
    }
    schema.ok_or_else(|| "it is not an Arrow stream: it has no schema".into())
}

/// Bytes, and those behind them.
type Split<'a> = (&'a [u8], &'a [u8]);

/// The metadata of the next message, and what follows it; `None` at the end.
fn message(stream: &[u8]) -> Result<Option<Split<'_>>, String> {
    // Every writer marks the end. Without the mark, a stream that lost its last batches would look complete.
    if stream.is_empty() {
        return Err("it ends without the mark of its end".into());
    }
    let short = || truncated(stream.len());
    let (mut length, mut rest) = stream.split_first_chunk::<4>().ok_or_else(short)?;
    if u32::from_le_bytes(*length) == CONTINUATION {
        (length, rest) = rest.split_first_chunk::<4>().ok_or_else(short)?;
    }
    match u32::from_le_bytes(*length) as usize {
        0 if rest.is_empty() => Ok(None),
        0 => Err(format!("{} bytes follow its end", rest.len())),
        length => rest.split_at_checked(length).map(Some).ok_or_else(short),
    }
}

fn truncated(bytes: usize) -> String {
    format!("it ends within a message, of which it has {bytes} bytes")
}

/// Rejects a batch that claims more than its bytes have.
fn check_batch(batch: arrow_ipc::RecordBatch<'_>, schema: &Schema, body_bytes: usize) -> Result<(), String> {
    if batch.compression().is_some() {
        return Err("its columns are compressed; send them as they are".into());
    }
    // A row takes a bit at least, as bool.
    let rows_max = body_bytes.saturating_mul(8) as i64;
    let counts = batch.nodes().into_iter().flatten().flat_map(|node| [node.length(), node.null_count()]);
    if let Some(count) = counts.chain([batch.length()]).find(|count| !(0..=rows_max).contains(count)) {
        return Err(format!("a batch of {body_bytes} bytes claims {count} rows"));
    }
    let widths: Vec<_> = schema.fields().iter().flat_map(|field| widths(field.data_type())).collect();
    let buffers: Vec<_> = batch.buffers().into_iter().flatten().collect();
    if buffers.len() != widths.len() {
        return Err(format!("a batch has {} buffers, and its columns have {}", buffers.len(), widths.len()));
    }
    let mut bytes = 0;
    for (buffer, width) in buffers.into_iter().zip(widths) {
        // The decoder takes a part of an item for a mistake of its own.
        if buffer.length() % width != 0 {
            return Err(format!("a column has {} bytes, which are no items of {width}", buffer.length()));
        }
        let end = buffer.offset().checked_add(buffer.length()).and_then(|end| usize::try_from(end).ok());
        if buffer.offset() < 0 || buffer.length() < 0 || end.is_none_or(|end| end > body_bytes) {
            return Err(format!("a column has {} bytes at {} of {body_bytes}", buffer.length(), buffer.offset()));
        }
        bytes += buffer.length() as u128;
    }
    // Columns over the same bytes are small in the stream only: each has its own memory when its values become those of properties.
    if bytes > body_bytes as u128 {
        return Err(format!("the columns of a batch of {body_bytes} bytes overlap: they have {bytes} in sum"));
    }
    Ok(())
}

/// The bytes of an item of each buffer of a column, in the order of the format: the validity of rows, positions, values.
fn widths(kind: &DataType) -> Vec<i64> {
    match kind {
        DataType::List(item) => [vec![1, 4], widths(item.data_type())].concat(),
        DataType::LargeList(item) => [vec![1, 8], widths(item.data_type())].concat(),
        DataType::Utf8 => vec![1, 4, 1],
        DataType::LargeUtf8 => vec![1, 8, 1],
        plain => vec![1, plain.primitive_width().map_or(1, |width| width as i64)],
    }
}

/// Rejects types whose values can be in memory many times and in the stream once.
fn allowed(name: &str, kind: &DataType) -> Result<(), String> {
    let is_plain = |kind: &DataType| {
        kind.is_primitive() || matches!(kind, DataType::Boolean | DataType::Utf8 | DataType::LargeUtf8)
    };
    match kind {
        DataType::List(item) | DataType::LargeList(item) if is_plain(item.data_type()) => Ok(()),
        plain if is_plain(plain) => Ok(()),
        other => Err(format!(
            "column {name} is of type {other}; changes have plain columns, text as utf8, and lists of these"
        )),
    }
}

/// A stream of record batches, for tests.
#[cfg(test)]
fn written(batches: &[arrow_array::RecordBatch]) -> Vec<u8> {
    let mut writer = arrow_ipc::writer::StreamWriter::try_new(Vec::new(), &batches[0].schema()).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.finish().unwrap();
    writer.into_inner().unwrap()
}

#[cfg(test)]
mod tests {
    use arrow_array::{
        ArrayRef, BooleanArray, DictionaryArray, Int32Array, RecordBatch, StringArray, types::Int32Type,
    };

    use super::*;
    use crate::changes::{ChangeReader, ReadChange};

    fn people(label: &str) -> RecordBatch {
        let label: ArrayRef = Arc::new(StringArray::from(vec![label; 3]));
        let keys: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3]));
        let known: ArrayRef = Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)]));
        RecordBatch::try_from_iter([("label", label), ("key", keys), ("known", known)]).unwrap()
    }

    fn read(bytes: Vec<u8>) -> Result<Vec<ReadChange>, IngestError> {
        ChangeReader::new(&Default::default()).arrow("body", bytes)?.collect()
    }

    #[test]
    fn batches_are_rows_with_their_numbers() {
        let changes = read(written(&[people("A"), people("B")])).unwrap();
        assert_eq!(changes.iter().map(|it| it.operation.changes()).sum::<usize>(), 6);
        assert_eq!(
            changes.last().unwrap().location.further(changes.last().unwrap().operation.changes() - 1).number(),
            6
        );
        assert_eq!(changes[0].location.to_string(), "body, row 1");
    }

    /// Replaces a buffer's offset and length, as the format writes them.
    fn moved(stream: &[u8], from: [i64; 2], to: [i64; 2]) -> Vec<u8> {
        let written = |buffer: [i64; 2]| buffer.map(i64::to_le_bytes).concat();
        let places: Vec<_> = (0..stream.len() - 16).filter(|at| stream[*at..at + 16] == written(from)).collect();
        assert_eq!(places.len(), 1, "{places:?}");
        let mut moved = stream.to_vec();
        moved[places[0]..places[0] + 16].copy_from_slice(&written(to));
        moved
    }

    #[test]
    fn columns_over_the_same_bytes_are_rejected() {
        let label: ArrayRef = Arc::new(StringArray::from(vec!["A"; 3]));
        let keys = || -> ArrayRef { Arc::new(Int32Array::from(vec![1, 2, 3])) };
        let batch = RecordBatch::try_from_iter([("label", label), ("key", keys()), ("age", keys())]).unwrap();
        let stream = written(&[batch]);
        // Positions and text of labels, and numbers: 64 bytes each, as they are aligned.
        assert!(read(moved(&stream, [192, 12], [0, 252])).unwrap_err().to_string().contains("overlap"));
        // Not in sum: the bytes of keys are the ages, too, and those of ages are nobody's.
        assert!(read(moved(&stream, [192, 12], [128, 12])).is_ok());
    }

    #[test]
    fn numbers_of_another_order_are_rejected() {
        let mut stream = written(&[people("A")]);
        let (metadata, _) = message(&stream).unwrap().unwrap();
        let schema = root_as_message(metadata).unwrap().header_as_schema().unwrap();
        let table = metadata.as_ptr().addr() - stream.as_ptr().addr() + schema._tab.loc();
        let back = i32::from_le_bytes(stream[table..table + 4].try_into().unwrap());
        let fields_of_table = table.checked_add_signed(-(back as isize)).unwrap();
        // The field, which writers leave out, is read where another one is, and that is not 0.
        stream[fields_of_table + 4] = 4;
        assert!(read(stream).unwrap_err().to_string().contains("little-endian"));
    }

    /// Whatever bit is wrong, the stream is rejected or read as something else.
    #[test]
    fn no_damage_makes_the_decoder_panic() {
        let whole = written(&[people("A")]);
        for cut in 0..whole.len() {
            let _ = read(whole[..cut].to_vec());
        }
        let mut rejected = 0;
        for bit in 0..whole.len() * 8 {
            let mut damaged = whole.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            rejected += usize::from(read(damaged).is_err());
        }
        assert!(rejected > whole.len(), "{rejected}");
    }

    #[test]
    fn what_grows_in_memory_is_rejected() {
        let label: DictionaryArray<Int32Type> = ["A", "A"].into_iter().collect();
        let keys: ArrayRef = Arc::new(Int32Array::from(vec![1, 2]));
        let batch = RecordBatch::try_from_iter([("label", Arc::new(label) as ArrayRef), ("key", keys)]).unwrap();
        assert!(read(written(&[batch])).unwrap_err().to_string().contains("column label is of type Dictionary"));
        let mut bytes = written(&[people("A")]);
        bytes.push(0);
        assert!(read(bytes).unwrap_err().to_string().contains("bytes follow its end"));
        assert!(read(b"label,key\nA,1\n".to_vec()).is_err());
        assert!(read(Vec::new()).unwrap_err().to_string().contains("without the mark of its end"));
    }
}
