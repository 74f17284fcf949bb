//! Rows that cannot be loaded: stop at the first, or put them aside and go on.

use std::{
    fmt,
    fs::File,
    io::Read,
    path::{Path, PathBuf},
    sync::{
        Mutex,
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
const HEADER: [&str; 5] = ["file", "line", "column", "value", "reason"];

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
    rejects: Option<(PathBuf, Mutex<csv::Writer<File>>)>,
    skipped: AtomicU64,
}

impl BadRows {
    /// The first bad row ends the load.
    pub fn stop() -> Self {
        Self { rejects: None, skipped: AtomicU64::new(0) }
    }

    /// Bad rows go to the CSV file `rejects` (file, line, column, value, reason) and the load goes on.
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
        Ok(Self { rejects: Some((rejects.to_owned(), Mutex::new(writer))), skipped: AtomicU64::new(0) })
    }

    /// Takes a bad row.
    ///
    /// # Errors
    /// [`IngestError::BadRow`] under the policy that stops.
    pub fn report(&self, row: BadRow) -> Result<(), IngestError> {
        let Some((path, writer)) = &self.rejects else { return Err(IngestError::BadRow(row)) };
        self.skipped.fetch_add(1, Ordering::Relaxed);
        writer
            .lock()
            .expect("no thread panics while it writes a reject")
            .write_record([
                row.file.to_string_lossy().as_ref(),
                &row.line.to_string(),
                row.column.as_deref().unwrap_or(""),
                row.value.as_deref().unwrap_or(""),
                &row.why,
            ])
            .map_err(|error| IngestError::Write { path: path.clone(), source: error.into() })
    }

    /// How many rows were put aside.
    pub fn skipped(&self) -> u64 {
        self.skipped.load(Ordering::Relaxed)
    }

    /// Writes what is buffered.
    ///
    /// # Errors
    /// [`IngestError::Write`] if the file cannot be written.
    pub fn flush(&self) -> Result<(), IngestError> {
        let Some((path, writer)) = &self.rejects else { return Ok(()) };
        let mut writer = writer.lock().expect("no thread panics while it writes a reject");
        writer.flush().map_err(|source| IngestError::Write { path: path.clone(), source })
    }
}

/// Whether a file has something in it, and does not begin as a file of rejects does. One that cannot be read shows that
/// when it is written.
fn is_anothers(file: &Path) -> bool {
    let expected = HEADER.join(",");
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
        for before in [None, Some(""), Some("file,line,column,value,reason\na.csv,1,,,is bad\n")] {
            before.iter().for_each(|content| fs::write(&file, content).unwrap());
            BadRows::skip(&file).unwrap().flush().unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), "file,line,column,value,reason\n");
        }
        fs::write(&file, "1,2\n").unwrap();
        let refused = BadRows::skip(&file).unwrap_err().to_string();
        assert!(refused.contains("it would be overwritten"), "{refused}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "1,2\n");
    }
}
