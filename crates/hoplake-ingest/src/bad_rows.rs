//! Rows that cannot be loaded: stop at the first, or put them aside and go on.
//!
//! A reject has its whole row, as it stands in its file. Mistakes are found while rows are read, and also much later, when a key turns out
//! to be unknown; no step carries the text of rows along for that. So rejects are gathered, and whenever there are
//! many, and at the end, each of their files is read once more for the rows, in order.

use std::{
    fmt,
    fs::File,
    io::Read,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use crate::IngestError;

/// A row that cannot be loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadRow {
    /// The file it stands in.
    pub file: PathBuf,
    /// Its line in a text file, its row in any other; both from 1.
    pub line: u64,
    /// The column at fault, if it is one column.
    pub column: Option<String>,
    /// The value at fault, as it was read.
    pub value: Option<String>,
    /// The mistake, as the end of a sentence: `is not an int64`.
    pub why: String,
}

/// The first line of a file of rejects.
const HEADER: [&str; 6] = ["file", "line", "column", "value", "reason", "row"];

/// Rejects that are gathered before their rows are looked for, in bytes.
const GATHERED_BYTES: usize = 8 << 20;

/// Finds rows of a file again, as they stand in it.
pub trait RowTexts: Send + Sync + fmt::Debug {
    /// Calls `found` with each of these lines that the file has, and its text. Lines ascend; those of other files than text are
    /// rows, and their text is an object of JSON.
    ///
    /// # Errors
    /// That the file cannot be read any more, and those of `found`.
    fn find(
        &self,
        lines: &[u64],
        found: &mut dyn FnMut(u64, String) -> Result<(), IngestError>,
    ) -> Result<(), IngestError>;
}

/// So much of a value is shown in a message; the file of rejects has all of it.
const SHOWN_CHARS: usize = 200;

impl fmt::Display for BadRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, line {}", self.file.display(), self.line)?;
        if let Some(column) = &self.column {
            write!(f, ", column {column}")?;
        }
        match &self.value {
            Some(value) => {
                let beginning: String = value.chars().take(SHOWN_CHARS).collect();
                let more = if beginning.len() < value.len() { "… (cut)" } else { "" };
                write!(f, ": {beginning:?}{more} {}", self.why)
            }
            None => write!(f, ": {}", self.why),
        }
    }
}

/// The policy for bad rows, and their number. All threads of a load share it.
#[derive(Debug)]
pub struct BadRows {
    rejects: Option<(PathBuf, Mutex<Rejects>)>,
    skipped: AtomicU64,
}

#[derive(Debug)]
struct Rejects {
    writer: csv::Writer<File>,
    /// Those whose rows were not looked for yet.
    gathered: Vec<(BadRow, Arc<dyn RowTexts>)>,
    gathered_bytes: usize,
}

impl BadRows {
    /// The first bad row ends the load.
    pub fn stop() -> Self {
        Self { rejects: None, skipped: AtomicU64::new(0) }
    }

    /// Bad rows go to the CSV file `rejects` (file, line, column, value, reason, row) and the load goes on.
    ///
    /// # Errors
    /// [`IngestError::Invalid`] if the file exists and is not a list of rejects; [`IngestError::Write`] if it cannot be
    /// written.
    pub fn skip(rejects: &Path) -> Result<Self, IngestError> {
        if is_anothers(rejects) {
            let shown = rejects.display();
            return Err(IngestError::Invalid(format!(
                "{shown} exists and is not a list of bad rows: it would be overwritten; name another file for them"
            )));
        }
        let failed = |source| IngestError::Write { path: rejects.to_owned(), source };
        let mut writer = csv::Writer::from_writer(File::create(rejects).map_err(failed)?);
        writer.write_record(HEADER).map_err(|error| failed(error.into()))?;
        let rejects =
            Some((rejects.to_owned(), Mutex::new(Rejects { writer, gathered: Vec::new(), gathered_bytes: 0 })));
        Ok(Self { rejects, skipped: AtomicU64::new(0) })
    }

    /// Takes a bad row, and what finds it again in its file.
    ///
    /// # Errors
    /// [`IngestError::BadRow`] under the policy that stops; [`IngestError::Write`], and those of reading the file again.
    pub fn report(&self, row: BadRow, texts: &Arc<dyn RowTexts>) -> Result<(), IngestError> {
        let Some((path, rejects)) = &self.rejects else { return Err(IngestError::BadRow(row)) };
        self.skipped.fetch_add(1, Ordering::Relaxed);
        let mut rejects = rejects.lock().expect("no thread panics while it writes a reject");
        let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        rejects.gathered_bytes += size_of::<BadRow>() + text(&row.column) + text(&row.value) + row.why.len();
        rejects.gathered.push((row, texts.clone()));
        if rejects.gathered_bytes >= GATHERED_BYTES { rejects.write(path) } else { Ok(()) }
    }

    /// How many rows were put aside.
    pub fn skipped(&self) -> u64 {
        self.skipped.load(Ordering::Relaxed)
    }

    /// Writes what is gathered.
    ///
    /// # Errors
    /// [`IngestError::Write`] if the file cannot be written, and those of reading a file again.
    pub fn flush(&self) -> Result<(), IngestError> {
        let Some((path, rejects)) = &self.rejects else { return Ok(()) };
        let mut rejects = rejects.lock().expect("no thread panics while it writes a reject");
        rejects.write(path)?;
        rejects.writer.flush().map_err(|source| IngestError::Write { path: path.clone(), source })
    }
}

impl Rejects {
    /// Writes what is gathered, file by file in the order of lines.
    fn write(&mut self, path: &Path) -> Result<(), IngestError> {
        let mut gathered = std::mem::take(&mut self.gathered);
        self.gathered_bytes = 0;
        gathered.sort_by(|(one, _), (other, _)| (&one.file, one.line).cmp(&(&other.file, other.line)));
        for of_file in gathered.chunk_by(|(one, _), (other, _)| one.file == other.file) {
            let mut lines: Vec<u64> = of_file.iter().map(|(row, _)| row.line).collect();
            lines.dedup();
            let mut left = of_file;
            let mut take = |line: u64, text: &str| {
                // Rows before it that the file does not have any more are written without their text.
                while let Some(((row, _), rest)) = left.split_first().filter(|((row, _), _)| row.line <= line) {
                    left = rest;
                    self.write_one(row, if row.line == line { text } else { "" }, path)?;
                }
                Ok(())
            };
            of_file[0].1.find(&lines, &mut |line, text| take(line, &text))?;
            take(u64::MAX, "")?;
        }
        Ok(())
    }

    fn write_one(&mut self, row: &BadRow, text: &str, path: &Path) -> Result<(), IngestError> {
        let file = row.file.to_string_lossy();
        let line = row.line.to_string();
        let column = row.column.as_deref().unwrap_or("");
        let value = row.value.as_deref().unwrap_or("");
        let written = self.writer.write_record([file.as_ref(), &line, column, value, &row.why, text]);
        written.map_err(|error| IngestError::Write { path: path.to_owned(), source: error.into() })
    }
}

/// Whether a file has something in it, and does not begin as a file of rejects does. One that cannot be read shows that
/// when it is written.
fn is_anothers(file: &Path) -> bool {
    // Without the last column, too, which lists of earlier builds do not have.
    let expected = HEADER[..HEADER.len() - 1].join(",");
    let mut begins = Vec::new();
    let read = File::open(file).and_then(|file| file.take(expected.len() as u64).read_to_end(&mut begins));
    read.is_ok() && !begins.is_empty() && begins != expected.as_bytes()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn only_a_list_of_bad_rows_is_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("rejects.csv");
        let lists = ["file,line,column,value,reason\na.csv,1,,,is bad\n", "file,line,column,value,reason,row\n"];
        for before in [None, Some(""), Some(lists[0]), Some(lists[1])] {
            before.iter().for_each(|content| fs::write(&file, content).unwrap());
            BadRows::skip(&file).unwrap().flush().unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), "file,line,column,value,reason,row\n");
        }
        fs::write(&file, "1,2\n").unwrap();
        let rejected = BadRows::skip(&file).unwrap_err().to_string();
        assert!(rejected.contains("it would be overwritten"), "{rejected}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "1,2\n");
    }
}
