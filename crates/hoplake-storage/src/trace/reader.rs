//! Reads a trace, line by line or completely.

use std::{
    collections::HashMap,
    fs::File,
    io::{self, BufReader, Read},
    path::{Path, PathBuf},
};

use super::{COLUMNS, Tier, TraceError, is_zstd};

/// An access that was read. The fields are the trace's columns, but for the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadAccess {
    /// Identifies the query.
    pub query: u64,
    /// The batch of reads of that query.
    pub wave: u32,
    /// The number of the object's name, in the order of first appearance.
    pub object: u32,
    /// Where the block begins, in bytes.
    pub position: u64,
    /// Its length, in bytes.
    pub bytes: u64,
    /// The tier that served it.
    pub served: Tier,
}

/// A complete trace in memory: 40 bytes per access.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recording {
    /// In the order in which they were recorded.
    pub accesses: Vec<ReadAccess>,
    /// The names of objects, by number.
    pub objects: Vec<String>,
}

impl Recording {
    /// Reads a file that [`Trace`](super::Trace) wrote, or anything like it.
    ///
    /// # Errors
    /// [`TraceError::Read`], or [`TraceError::Line`] with the line and column at fault.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, TraceError> {
        let mut reader = TraceReader::open(path)?;
        let accesses = reader.by_ref().collect::<Result<_, _>>()?;
        Ok(Self { accesses, objects: reader.into_objects() })
    }
}

/// Reads a trace line by line, without holding it in memory.
pub struct TraceReader {
    path: PathBuf,
    lines: csv::Reader<Box<dyn Read + Send>>,
    line: csv::StringRecord,
    objects: HashMap<String, u32>,
}

impl TraceReader {
    /// Opens a trace and checks its header.
    ///
    /// # Errors
    /// [`TraceError::Read`], or [`TraceError::Line`] if it has another header.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, TraceError> {
        let path = path.as_ref().to_path_buf();
        let input = open(&path).map_err(|source| TraceError::Read { path: path.clone(), source })?;
        // Lines of other lengths are reported here, in the same words as other mistakes.
        let lines = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(input);
        let mut reader = Self { path, lines, line: csv::StringRecord::new(), objects: HashMap::new() };
        if !reader.next_line()? || !reader.line.iter().eq(COLUMNS) {
            let why = format!("the header should be {}", COLUMNS.join(","));
            return Err(TraceError::Line { path: reader.path, line: 1, column: None, why });
        }
        Ok(reader)
    }

    /// The names of the objects met so far, by number.
    pub fn into_objects(self) -> Vec<String> {
        let mut objects: Vec<_> = self.objects.into_iter().collect();
        objects.sort_unstable_by_key(|(_, number)| *number);
        objects.into_iter().map(|(name, _)| name).collect()
    }

    /// Reads the next line; false at the end.
    fn next_line(&mut self) -> Result<bool, TraceError> {
        self.lines.read_record(&mut self.line).map_err(|error| {
            let line = error.position().map_or(1, csv::Position::line);
            match error.into_kind() {
                csv::ErrorKind::Io(source) => TraceError::Read { path: self.path.clone(), source },
                kind => TraceError::Line { path: self.path.clone(), line, column: None, why: reason(&kind) },
            }
        })
    }

    fn access(&mut self) -> Result<ReadAccess, TraceError> {
        if self.line.len() != COLUMNS.len() {
            let why = format!("it has {} columns where {} are due", self.line.len(), COLUMNS.len());
            return Err(self.mistake(None, why));
        }
        let served = self.line[5].parse().map_err(|()| {
            let known = Tier::ALL.map(Tier::name).join(", ");
            self.mistake(Some(5), format!("{:?} is not one of {known}", &self.line[5]))
        })?;
        let wave = u32::try_from(self.number(1)?).map_err(|_| self.no_number(1))?;
        Ok(ReadAccess {
            query: self.number(0)?,
            wave,
            object: self.object()?,
            position: self.number(3)?,
            bytes: self.number(4)?,
            served,
        })
    }

    fn number(&self, column: usize) -> Result<u64, TraceError> {
        self.line[column].parse().map_err(|_| self.no_number(column))
    }

    fn no_number(&self, column: usize) -> TraceError {
        let why = format!("{:?} is not a whole number, or is too large", &self.line[column]);
        self.mistake(Some(column), why)
    }

    fn object(&mut self) -> Result<u32, TraceError> {
        let name = &self.line[2];
        if name.is_empty() {
            return Err(self.mistake(Some(2), "no object is named".into()));
        }
        // Not `entry`, which would allocate the name for each access: a trace has few objects and many accesses.
        if let Some(number) = self.objects.get(name) {
            return Ok(*number);
        }
        let number = self.objects.len() as u32;
        self.objects.insert(name.into(), number);
        Ok(number)
    }

    fn mistake(&self, column: Option<usize>, why: String) -> TraceError {
        let line = self.line.position().map_or(1, csv::Position::line);
        TraceError::Line { path: self.path.clone(), line, column: column.map(|column| COLUMNS[column]), why }
    }
}

impl Iterator for TraceReader {
    type Item = Result<ReadAccess, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.next_line() {
            Ok(false) => None,
            Ok(true) => Some(self.access()),
            Err(error) => Some(Err(error)),
        }
    }
}

impl std::fmt::Debug for TraceReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TraceReader").field("path", &self.path).finish_non_exhaustive()
    }
}

fn open(path: &Path) -> io::Result<Box<dyn Read + Send>> {
    let file = File::open(path)?;
    Ok(if is_zstd(path) { Box::new(zstd::Decoder::new(file)?) } else { Box::new(BufReader::new(file)) })
}

fn reason(kind: &csv::ErrorKind) -> String {
    match kind {
        csv::ErrorKind::Utf8 { err, .. } => format!("it is not UTF-8: {err}"),
        other => format!("{other:?}"),
    }
}
