//! Records of a text file with the lines they begin on: the `csv` crate, plus white-space columns,
//! comments, carriage returns and exact line numbers.

use std::{
    io,
    sync::{Arc, atomic::AtomicU64},
};

use csv::ByteRecord;

use super::files::{SourceFile, Tabs, TextReader};
use crate::IngestError;

/// How a text file is divided into records and fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TextFormat {
    /// What stands between fields; a space stands for any run of spaces and tabs.
    pub(crate) delimiter: u8,
    /// Whether `"` quotes.
    pub(crate) quoting: bool,
    /// Whether lines that begin with `#` or `%` are comments.
    pub(crate) comments: bool,
    /// Whether white space around a field is left out.
    pub(crate) trim: bool,
}

impl TextFormat {
    /// Quoted fields between these delimiters.
    pub(crate) fn quoted(delimiter: u8) -> Self {
        Self { delimiter, quoting: true, comments: false, trim: false }
    }

    /// LDBC: `|` between fields, quotes mean nothing.
    pub(crate) fn ldbc() -> Self {
        Self { delimiter: b'|', quoting: false, comments: false, trim: false }
    }

    fn any_white_space(self) -> bool {
        self.delimiter == b' '
    }
}

/// The records of a file, one after another.
pub(crate) struct Records {
    file: SourceFile,
    format: TextFormat,
    reader: csv::Reader<TextReader>,
    record: ByteRecord,
}

impl Records {
    /// Opens a file; `bytes_read` counts what is read of it.
    pub(crate) fn open(file: &SourceFile, format: TextFormat, bytes_read: Arc<AtomicU64>) -> Result<Self, IngestError> {
        let tabs = if format.any_white_space() { Tabs::ToSpaces } else { Tabs::Keep };
        let reader = csv::ReaderBuilder::new()
            .delimiter(format.delimiter)
            .quoting(format.quoting)
            // Records end at \n alone: the csv crate counts a \r\n only with the record after it, which
            // would shift the line numbers. The \r is cut off in `field`.
            .terminator(csv::Terminator::Any(b'\n'))
            .has_headers(false)
            .flexible(true)
            .buffer_capacity(64 << 10)
            .from_reader(file.open_text(bytes_read, tabs)?);
        Ok(Self { file: file.clone(), format, reader, record: ByteRecord::new() })
    }

    /// Goes to the next record that is neither blank nor a comment; false at the end.
    pub(crate) fn advance(&mut self) -> Result<bool, IngestError> {
        loop {
            let more = self.reader.read_byte_record(&mut self.record).map_err(|error| self.failed(error))?;
            if !more {
                return Ok(false);
            }
            let text = self.record.as_slice();
            let blank = text.trim_ascii().is_empty() && (self.record.len() == 1 || self.format.any_white_space());
            let comment = self.format.comments && matches!(text.first(), Some(b'#' | b'%'));
            if !blank && !comment {
                return Ok(true);
            }
        }
    }

    /// The line this record begins on, from 1.
    pub(crate) fn line(&self) -> u64 {
        let within =
            if self.format.quoting { self.record.as_slice().iter().filter(|&&byte| byte == b'\n').count() } else { 0 };
        // Every record has its newline behind it (see `TextReader`).
        self.reader.position().line().saturating_sub(1 + within as u64).max(1)
    }

    /// How many fields this record has.
    pub(crate) fn len(&self) -> usize {
        if self.format.any_white_space() { self.words().count() } else { self.record.len() }
    }

    /// A field of this record.
    pub(crate) fn field(&self, index: usize) -> Option<&[u8]> {
        if self.format.any_white_space() {
            return self.words().nth(index);
        }
        let mut field = self.record.get(index)?;
        if index + 1 == self.record.len() {
            field = field.strip_suffix(b"\r").unwrap_or(field);
        }
        Some(if self.format.trim { field.trim_ascii() } else { field })
    }

    /// All fields as text, for headers.
    pub(crate) fn texts(&self) -> Vec<String> {
        let fields = (0..self.len()).filter_map(|index| self.field(index));
        fields.map(|field| String::from_utf8_lossy(field).trim().to_owned()).collect()
    }

    fn words(&self) -> impl Iterator<Item = &[u8]> {
        let fields = self.record.iter().map(|field| field.strip_suffix(b"\r").unwrap_or(field));
        fields.filter(|field| !field.is_empty())
    }

    fn failed(&self, error: csv::Error) -> IngestError {
        self.file.failed(match error.into_kind() {
            csv::ErrorKind::Io(error) => error,
            other => io::Error::other(format!("{other:?}")),
        })
    }
}

/// The first record of a file as text, or nothing if the file has none.
pub(crate) fn header(file: &SourceFile, format: TextFormat) -> Result<Option<Vec<String>>, IngestError> {
    Ok(head(file, format, 1)?.pop())
}

/// The first records of a file as text.
pub(crate) fn head(file: &SourceFile, format: TextFormat, count: usize) -> Result<Vec<Vec<String>>, IngestError> {
    let mut records = Records::open(file, format, Arc::default())?;
    let mut head = Vec::new();
    while head.len() < count && records.advance()? {
        head.push(records.texts());
    }
    Ok(head)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn read(content: &str, format: TextFormat) -> Vec<(u64, Vec<String>)> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text.csv");
        std::fs::write(&path, content).unwrap();
        let mut records = Records::open(&SourceFile::at(path).unwrap(), format, Arc::default()).unwrap();
        let mut all = Vec::new();
        while records.advance().unwrap() {
            all.push((records.line(), records.texts()));
        }
        all
    }

    fn record(line: u64, fields: &[&str]) -> (u64, Vec<String>) {
        (line, fields.iter().map(|&field| field.to_owned()).collect())
    }

    #[test]
    fn lines_are_exact_whatever_ends_them() {
        for end in ["\n", "\r\n"] {
            let content = ["\u{feff}a,b", "1,\"x", "y\"", "", "2,z"].join(end);
            let expected = [record(1, &["a", "b"]), record(2, &["1", &format!("x{end}y")]), record(5, &["2", "z"])];
            assert_eq!(read(&content, TextFormat::quoted(b',')), expected);
            assert_eq!(read(&(content + end), TextFormat::quoted(b',')), expected);
        }
    }

    #[test]
    fn quotes_mean_nothing_in_ldbc() {
        assert_eq!(
            read("1|\"a|b\n2||", TextFormat::ldbc()),
            [record(1, &["1", "\"a", "b"]), record(2, &["2", "", ""])]
        );
    }

    #[test]
    fn white_space_and_comments_of_edge_lists() {
        let format = TextFormat { delimiter: b' ', quoting: false, comments: true, trim: true };
        let content = "# two\n% kinds\r\n1\t2\r\n \n  3   4 \t 0.5\n";
        assert_eq!(read(content, format), [record(3, &["1", "2"]), record(5, &["3", "4", "0.5"])]);
    }
}
