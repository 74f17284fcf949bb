//! Records of a text file, with the lines on which they begin.
//!
//! `csv-core` splits records into fields, and never fails: it extends a quote that never closes to the end of the file, and appends text
//! after a closing quote to the field. The bytes that it consumes for each record are known, so a small automaton reads the same bytes,
//! detects such records, and counts lines. This module also handles white-space columns, comments, carriage returns at the ends of
//! lines, and the limits on fields and rows.

use std::{
    io::{self, Read},
    sync::{Arc, atomic::AtomicU64},
};

use csv_core::ReadRecordResult;

use super::{
    files::{SourceFile, Tabs, TextReader},
    limits::FIELDS_MAX,
};
use crate::{BadRow, IngestError, RowTexts};

const BUFFER_BYTES: usize = 64 << 10;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// How a text file is divided into records and fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TextFormat {
    /// The separator between fields; a space stands for any run of spaces and tabs.
    pub(crate) delimiter: u8,
    /// Whether `"` quotes.
    pub(crate) quoting: bool,
    /// Whether lines that begin with `#` or `%` are comments.
    pub(crate) comments: bool,
    /// Whether white space around a field is left out.
    pub(crate) trim: bool,
    /// Whether an empty field in quotes is empty text; else it is an absent value, as one without quotes is.
    pub(crate) empty_text: bool,
}

impl TextFormat {
    /// Quoted fields between these delimiters.
    pub(crate) fn quoted(delimiter: u8) -> Self {
        Self { delimiter, quoting: true, comments: false, trim: false, empty_text: false }
    }

    /// LDBC: `|` between fields, quotes mean nothing.
    pub(crate) fn ldbc() -> Self {
        Self { delimiter: b'|', quoting: false, comments: false, trim: false, empty_text: false }
    }

    fn any_white_space(self) -> bool {
        self.delimiter == b' '
    }
}

/// The records of a file, one after another.
pub(crate) struct Records {
    file: SourceFile,
    format: TextFormat,
    input: Input,
    core: csv_core::Reader,
    shape: Shape,
    /// The concatenated fields of this record, and where each ends.
    text: Vec<u8>,
    ends: Vec<usize>,
    fields: usize,
    fault: Option<String>,
    /// The bytes of this record, if they are kept.
    raw: Option<Vec<u8>>,
}

/// A buffer of text, partly consumed.
struct Input {
    reader: TextReader,
    buffer: Vec<u8>,
    from: usize,
    until: usize,
}

impl Input {
    /// The unconsumed text; empty at the end.
    fn fill(&mut self) -> io::Result<&[u8]> {
        if self.from == self.until {
            self.from = 0;
            self.until = loop {
                match self.reader.read(&mut self.buffer) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    read => break read?,
                }
            };
        }
        Ok(&self.buffer[self.from..self.until])
    }
}

/// Where in a record a byte is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the first byte of a record.
    Between,
    /// Before the first byte of a field.
    Start,
    /// In an unquoted field.
    Plain,
    /// In a quoted field.
    Quoted,
    /// After a quote within a quoted field: the closing quote, or the first of two.
    Closing,
    /// In a line that is skipped.
    Comment,
}

/// The automaton that reads the bytes that `csv-core` consumes.
struct Shape {
    format: TextFormat,
    state: State,
    /// The line of the next byte, from 1.
    line: u64,
    /// The line that this record began on.
    begun: u64,
    /// The line on which the last quote opened.
    opened: u64,
    /// Whether the byte before was a carriage return outside of quotes.
    returned: bool,
    /// Whether the last line ended with a carriage return and a newline.
    ended_with_return: bool,
    /// The number of the field that the next byte is in, and the numbers of those that are quoted.
    field: usize,
    quoted: Vec<usize>,
    fault: Option<String>,
}

impl Shape {
    fn new(format: TextFormat) -> Self {
        Self {
            format,
            state: State::Between,
            line: 1,
            begun: 1,
            opened: 0,
            returned: false,
            ended_with_return: false,
            field: 0,
            quoted: Vec::new(),
            fault: None,
        }
    }

    fn begin(&mut self) {
        self.fault = None;
        self.returned = false;
        self.field = 0;
        self.quoted.clear();
    }

    /// Reads bytes that belong to one record or precede it.
    fn pass(&mut self, mut bytes: &[u8]) {
        if self.state == State::Between {
            let blank = bytes.iter().take_while(|&&byte| byte == b'\n').count();
            self.line += blank as u64;
            bytes = &bytes[blank..];
            if bytes.is_empty() {
                return;
            }
            self.begun = self.line;
            self.state = State::Start;
        }
        // Most records have neither quotes nor carriage returns: one search then replaces a step for each byte.
        let unquoted = matches!(self.state, State::Start | State::Plain);
        if unquoted && !self.returned && self.is_plain(bytes) {
            match bytes.last() {
                Some(b'\n') => {
                    self.ended_with_return = bytes.ends_with(b"\r\n");
                    self.end_line();
                }
                Some(last) => {
                    // The record continues in the next buffer, and may have quotes there.
                    self.field += memchr::memchr_iter(self.format.delimiter, bytes).count();
                    self.state = if *last == self.format.delimiter { State::Start } else { State::Plain };
                }
                None => {}
            }
            return;
        }
        bytes.iter().for_each(|byte| self.step(*byte));
    }

    /// Whether the automaton can skip these bytes, which end with the record or within its line: they contain no quotes that count, and a
    /// carriage return only at the end.
    fn is_plain(&self, bytes: &[u8]) -> bool {
        let line = bytes.strip_suffix(b"\r\n").unwrap_or(bytes);
        match self.format.quoting {
            true => memchr::memchr2(b'"', b'\r', line).is_none(),
            false => memchr::memchr(b'\r', line).is_none(),
        }
    }

    fn end_line(&mut self) {
        self.line += 1;
        self.state = State::Between;
        self.returned = false;
    }

    fn step(&mut self, byte: u8) {
        let returned = std::mem::take(&mut self.returned);
        // Otherwise, old Macintosh line ends would turn many records into one without an error.
        if returned && byte != b'\n' {
            self.fault
                .get_or_insert_with(|| "has a carriage return within the line; lines end with \\n or \\r\\n".into());
        }
        self.state = match (self.state, byte) {
            (State::Quoted, b'"') => State::Closing,
            (State::Quoted, _) => {
                self.line += u64::from(byte == b'\n');
                State::Quoted
            }
            (_, b'\n') => {
                self.ended_with_return = returned;
                return self.end_line();
            }
            (State::Closing, b'"') => State::Quoted,
            (State::Start | State::Between, b'"') if self.format.quoting => {
                self.opened = self.line;
                self.quoted.push(self.field);
                State::Quoted
            }
            (_, delimiter) if delimiter == self.format.delimiter => {
                self.field += 1;
                State::Start
            }
            (state, b'\r') => {
                self.returned = true;
                state
            }
            (State::Closing, _) => {
                let line = self.line;
                self.fault.get_or_insert_with(|| {
                    format!(
                        "has text after the quote that closes a field on line {line}; write a quote within quotes twice"
                    )
                });
                State::Plain
            }
            (state @ (State::Plain | State::Comment), _) => state,
            (State::Start | State::Between, _) => State::Plain,
        };
    }
}

impl Records {
    /// Opens a file; `bytes_read` counts what is read of it.
    pub(crate) fn open(file: &SourceFile, format: TextFormat, bytes_read: Arc<AtomicU64>) -> Result<Self, IngestError> {
        // The parser knows one delimiter. Runs of it make empty fields, which `words` leaves out.
        let tabs = if format.any_white_space() { Tabs::ToSpaces } else { Tabs::Keep };
        Self::of(file, format, file.open_text(bytes_read, tabs)?)
    }

    /// The records of a text that was read from a file.
    pub(crate) fn of(file: &SourceFile, format: TextFormat, reader: TextReader) -> Result<Self, IngestError> {
        let core = csv_core::ReaderBuilder::new()
            .delimiter(format.delimiter)
            .quoting(format.quoting)
            // Records end at \n alone, so that a record is consumed with its complete line. The \r is cut off in
            // `field`.
            .terminator(csv_core::Terminator::Any(b'\n'))
            .build();
        let mut input = Input { reader, buffer: vec![0; BUFFER_BYTES], from: 0, until: 0 };
        // Some editors write one; it would become part of the first name.
        if input.fill().map_err(|error| file.failed(error))?.starts_with(BYTE_ORDER_MARK) {
            input.from += BYTE_ORDER_MARK.len();
        }
        Ok(Self {
            file: file.clone(),
            format,
            input,
            core,
            shape: Shape::new(format),
            text: vec![0; 1024],
            ends: vec![0; 64],
            fields: 0,
            fault: None,
            raw: None,
        })
    }

    /// Goes to the next record that is neither blank nor a comment; false at the end. The record may have a
    /// [fault](Self::fault).
    ///
    /// # Errors
    /// [`IngestError::Read`], and [`IngestError::Broken`] if the file ends within quotes: then nothing after the line
    /// on which they opened can be trusted.
    pub(crate) fn advance(&mut self) -> Result<bool, IngestError> {
        loop {
            if self.format.comments && !self.skip_comments()? {
                return Ok(false);
            }
            if !self.read_record()? {
                return Ok(false);
            }
            let text = &self.text[..self.end()];
            // White space in quotes is a value.
            let has_value = !self.shape.quoted.is_empty() && (!text.is_empty() || self.format.empty_text);
            let blank =
                text.trim_ascii().is_empty() && !has_value && (self.fields == 1 || self.format.any_white_space());
            // White space may precede a comment.
            let comment =
                self.format.comments && self.format.any_white_space() && matches!(text.first(), Some(b'#' | b'%'));
            if self.fault.is_some() || !blank && !comment {
                return Ok(true);
            }
        }
    }

    fn end(&self) -> usize {
        self.fields.checked_sub(1).map_or(0, |last| self.ends[last])
    }

    /// Skips comment lines before quotes in them take effect; false at the end.
    fn skip_comments(&mut self) -> Result<bool, IngestError> {
        loop {
            let comment = self.shape.state == State::Comment;
            let at_hand = self.input.fill().map_err(|error| self.file.failed(error))?;
            let Some(&first) = at_hand.first() else { return Ok(false) };
            let skipped = match first {
                // The parser would skip a blank line as well, and read a comment after it as a record.
                b'\n' if !comment => 1,
                b'#' | b'%' => memchr::memchr(b'\n', at_hand).map_or(at_hand.len(), |end| end + 1),
                _ if comment => memchr::memchr(b'\n', at_hand).map_or(at_hand.len(), |end| end + 1),
                _ => return Ok(true),
            };
            let ended = at_hand[skipped - 1] == b'\n';
            self.input.from += skipped;
            self.shape.line += u64::from(ended);
            self.shape.state = if ended { State::Between } else { State::Comment };
        }
    }

    /// Reads one record, valid or not.
    fn read_record(&mut self) -> Result<bool, IngestError> {
        let row = self.file.limits.row();
        let field = self.file.limits.field();
        let mut written = 0;
        let mut fields = 0;
        let mut consumed = 0;
        let mut fault: Option<String> = None;
        self.shape.begin();
        self.raw.iter_mut().for_each(Vec::clear);
        loop {
            let at_hand = self.input.fill().map_err(|error| self.file.failed(error))?;
            // The parser would end the record here, as if the quote had been closed.
            if at_hand.is_empty() && matches!(self.shape.state, State::Quoted) {
                return Err(self.unclosed());
            }
            let (result, read, wrote, ended) =
                self.core.read_record(at_hand, &mut self.text[written..], &mut self.ends[fields..]);
            self.shape.pass(&at_hand[..read]);
            if let Some(raw) = &mut self.raw {
                // At most as many bytes as a row may have, and the end of its line.
                raw.extend_from_slice(&at_hand[..read.min((row.bytes + 2).saturating_sub(raw.len()))]);
            }
            self.input.from += read;
            consumed += read;
            written += wrote;
            fields += ended;
            if self.shape.state == State::Between && result == ReadRecordResult::InputEmpty {
                // Blank lines belong to no record.
                consumed = 0;
                self.raw.iter_mut().for_each(Vec::clear);
            }
            // Measured by the consumed bytes: quotes that the parser drops count as well.
            if consumed > row.bytes && fault.is_none() {
                fault = Some(self.too_long(row.exceeded("row")));
            }
            match result {
                ReadRecordResult::End => return Ok(false),
                ReadRecordResult::Record => break,
                ReadRecordResult::InputEmpty => {}
                // A record that is known to be bad is skipped, not kept.
                ReadRecordResult::OutputFull if fault.is_some() => written = 0,
                ReadRecordResult::OutputEndsFull if fault.is_some() => fields = 0,
                // One byte beyond the limit is enough: a record that fills it has exceeded the limit.
                ReadRecordResult::OutputFull => self.text.resize((self.text.len() * 2).min(row.bytes.max(2048) + 1), 0),
                ReadRecordResult::OutputEndsFull if fields >= FIELDS_MAX => {
                    fault = Some(format!("has more than {FIELDS_MAX} fields"));
                }
                ReadRecordResult::OutputEndsFull => self.ends.resize(self.ends.len() * 2, 0),
            }
        }
        self.fields = fields;
        if fault.is_none() {
            let starts = std::iter::once(&0).chain(&self.ends[..fields]);
            let longest = starts.zip(&self.ends[..fields]).map(|(start, end)| end - start).max();
            fault = longest.filter(|longest| *longest > field.bytes).map(|_| field.exceeded("field"));
        }
        if fault.is_some() {
            // The fields of a bad row are not used.
            self.fields = 0;
            // Its bytes may be up to the bound of a row, for each thread; the next rows are small again.
            self.text.truncate(BUFFER_BYTES);
            self.text.shrink_to_fit();
        }
        self.fault = fault.or(self.shape.fault.take());
        Ok(true)
    }

    /// The reason of a row that is too long: perhaps an unintended quote.
    fn too_long(&self, why: String) -> String {
        if self.shape.state == State::Quoted && self.shape.line > self.shape.opened {
            return format!("{why}, or close the quote that opens on line {}", self.shape.opened);
        }
        why
    }

    fn unclosed(&self) -> IngestError {
        IngestError::Broken(BadRow {
            file: self.file.path.clone(),
            line: self.shape.opened,
            column: None,
            value: None,
            why: "a quote opens here and is not closed before the end of the file; close it, or write a quote within quotes \
                  twice"
                .into(),
        })
    }

    /// The mistake in this record, if any, as the end of a sentence.
    pub(crate) fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    /// The error for a record with a fault, in files in which no row may be skipped.
    pub(crate) fn reject_fault(&self) -> Result<(), IngestError> {
        let Some(why) = &self.fault else { return Ok(()) };
        let file = self.file.path.clone();
        let line = self.first_line();
        let why = why.clone();
        Err(IngestError::BadRow(BadRow { file, line, column: None, value: None, why }))
    }

    /// The line this record begins on, from 1.
    pub(crate) fn first_line(&self) -> u64 {
        self.shape.begun
    }

    /// How many fields this record has.
    pub(crate) fn len(&self) -> usize {
        if self.format.any_white_space() { self.words().count() } else { self.fields }
    }

    /// A field of this record.
    pub(crate) fn field(&self, index: usize) -> Option<&[u8]> {
        if self.format.any_white_space() {
            return self.words().nth(index);
        }
        let mut field = self.raw(index)?;
        // Only the last field ends at the end of a line; within quotes, a return is content.
        if index + 1 == self.fields && self.shape.ended_with_return {
            field = field.strip_suffix(b"\r").unwrap_or(field);
        }
        Some(if self.format.trim { field.trim_ascii() } else { field })
    }

    /// Whether a field is empty text, and not an absent value.
    pub(crate) fn is_empty_text(&self, index: usize) -> bool {
        self.format.empty_text
            && self.shape.quoted.binary_search(&index).is_ok()
            && self.field(index).is_some_and(<[u8]>::is_empty)
    }

    fn raw(&self, index: usize) -> Option<&[u8]> {
        let end = *self.ends[..self.fields].get(index)?;
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        Some(&self.text[start..end])
    }

    /// All fields as text, for headers. White space around a name is not a part of it, unless the name is in quotes.
    pub(crate) fn texts(&self) -> Vec<String> {
        let text = |index: usize| {
            let text = String::from_utf8_lossy(self.field(index)?);
            Some(if self.is_quoted(index) { text.into_owned() } else { text.trim().to_owned() })
        };
        (0..self.len()).filter_map(text).collect()
    }

    /// Whether a field is in quotes.
    pub(crate) fn is_quoted(&self, index: usize) -> bool {
        self.shape.quoted.binary_search(&index).is_ok()
    }

    fn words(&self) -> impl Iterator<Item = &[u8]> {
        let fields = (0..self.fields).filter_map(|index| self.raw(index));
        fields.map(|field| field.strip_suffix(b"\r").unwrap_or(field)).filter(|field| !field.is_empty())
    }
}

/// Finds records of a file again.
#[derive(Debug)]
pub(crate) struct TextRows {
    file: SourceFile,
    format: TextFormat,
}

impl TextRows {
    pub(crate) fn new(file: &SourceFile, format: TextFormat) -> Self {
        Self { file: file.clone(), format }
    }
}

impl RowTexts for TextRows {
    fn find(
        &self,
        lines: &[u64],
        found: &mut dyn FnMut(u64, String) -> Result<(), IngestError>,
    ) -> Result<(), IngestError> {
        let mut records = Records::open(&self.file, self.format, Arc::default())?;
        records.raw = Some(Vec::new());
        let mut lines = lines.iter().peekable();
        while lines.peek().is_some() && records.advance()? {
            let line = records.first_line();
            while lines.next_if(|wanted| **wanted < line).is_some() {}
            if lines.next_if_eq(&&line).is_some() {
                let raw = String::from_utf8_lossy(records.raw.as_deref().unwrap_or_default());
                // Blank lines before it are consumed with it, and so is the end of its line.
                let raw = raw.trim_start_matches(['\n', '\r']);
                let raw = raw.strip_suffix('\n').unwrap_or(raw);
                found(line, raw.strip_suffix('\r').unwrap_or(raw).to_owned())?;
            }
        }
        Ok(())
    }
}

/// The first record of a file as text, or nothing if the file has none.
///
/// # Errors
/// [`IngestError::BadRow`] if it has a [fault](Records::fault).
pub(crate) fn header(file: &SourceFile, format: TextFormat) -> Result<Option<Vec<String>>, IngestError> {
    let head = head(file, format, 1)?;
    head.fault.map_or(Ok(()), Err)?;
    Ok(head.records.into_iter().next())
}

/// The beginning of a file, read in a format that may not be the file's.
pub(crate) struct Head {
    /// The records as text, without those that have a fault, unless it is the first.
    pub(crate) records: Vec<Vec<String>>,
    /// The first fault.
    pub(crate) fault: Option<IngestError>,
}

/// The first records of a file.
pub(crate) fn head(file: &SourceFile, format: TextFormat, count: usize) -> Result<Head, IngestError> {
    let mut records = Records::open(file, format, Arc::default())?;
    let mut head = Head { records: Vec::new(), fault: None };
    for position in 0..count {
        match records.advance() {
            Ok(true) => {}
            Ok(false) => break,
            Err(fault @ IngestError::Broken(_)) => {
                head.fault.get_or_insert(fault);
                break;
            }
            Err(error) => return Err(error),
        }
        let fault = records.reject_fault().err();
        if fault.is_none() || position == 0 {
            head.records.push(records.texts());
        }
        head.fault = head.fault.or(fault);
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
        let mut records =
            Records::open(&SourceFile::at(path, Default::default()).unwrap(), format, Arc::default()).unwrap();
        let mut all = Vec::new();
        while records.advance().unwrap() {
            all.push((records.first_line(), records.texts()));
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
        let format = TextFormat { delimiter: b' ', quoting: false, comments: true, trim: true, empty_text: false };
        let content = "# two\n% kinds\r\n1\t2\r\n \n  3   4 \t 0.5\n";
        assert_eq!(read(content, format), [record(3, &["1", "2"]), record(5, &["3", "4", "0.5"])]);
    }

    #[test]
    fn empty_text_is_told_from_absent_values_wherever_a_buffer_ends() {
        let format = TextFormat { empty_text: true, ..TextFormat::quoted(b',') };
        // Records of all lengths, so that buffers end in each of their bytes.
        for length in 0..12 {
            let padding = "x".repeat(BUFFER_BYTES - 16 + length);
            let content = format!("a,b,c\n{padding},,\"\"\n1,\"\",\r\n\"\",,\"y\r\"\n");
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("text.csv");
            std::fs::write(&path, content).unwrap();
            let mut records =
                Records::open(&SourceFile::at(path, Default::default()).unwrap(), format, Arc::default()).unwrap();
            let mut empty = Vec::new();
            while records.advance().unwrap() {
                empty.push([0, 1, 2].map(|field| records.is_empty_text(field)));
            }
            let expected = [[false; 3], [false, false, true], [false, true, false], [true, false, false]];
            assert_eq!(empty, expected, "{length}");
            assert_eq!(records.field(2), Some(&b"y\r"[..]));
        }
    }

    #[test]
    fn white_space_in_quotes_is_a_record() {
        let content = "a\n\" \"\n\n\"\"\n \n";
        assert_eq!(read(content, TextFormat::quoted(b',')), [record(1, &["a"]), record(2, &[" "])]);
        let format = TextFormat { empty_text: true, ..TextFormat::quoted(b',') };
        assert_eq!(read(content, format), [record(1, &["a"]), record(2, &[" "]), record(4, &[""])]);
    }
}
