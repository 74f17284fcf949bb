//! Traces of block accesses: what was asked, by which query, and where it was served from.
//!
//! A trace of accesses evaluates caches (`hoplake cache-sim`). It is text, so that any tool can read it:
//! comma-separated (RFC 4180, UTF-8), compressed by zstd if the file's name ends in `.zst`, in the order of the
//! accesses, with this header:
//!
//! ```text
//! query,wave,object,position,bytes,served
//! 7,0,data/00000000000000000001-adj.hls,16388,16380,store
//! 7,1,data/00000000000000000001-adj.hls,32768,9000,memory
//! ```
//!
//! | column | what |
//! | --- | --- |
//! | `query` | identifies the query: a whole number below 2⁶⁴, see [`Trace::next_query`] |
//! | `wave` | the batch of reads of that query in which it was asked, from 0: blocks of the same one were asked together |
//! | `object` | the object's name, or any text that is the same for the same object |
//! | `position` | where in the object the block begins, in bytes |
//! | `bytes` | the length of the block as the cache would keep it, in bytes |
//! | `served` | `memory`, `prefetch`, `disk`, `store`, or `shared`: waited for a request that another asker had sent |
//!
//! The column `wave` counts batches that memory answered, too; [`Wave`](crate::Wave) does not. Otherwise a trace of a
//! warm cache would not show which accesses a cold one could join.
//!
//! [`Trace`] records and [`TraceReader`] reads.

mod reader;

use std::{
    fmt,
    fs::File,
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use thiserror::Error;

use crate::Tier;

pub use reader::{ReadAccess, Recording, TraceReader};

/// The names of the columns, in order.
pub const COLUMNS: [&str; 6] = ["query", "wave", "object", "position", "bytes", "served"];

/// One access, to be recorded. The fields are the trace's columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access<'a> {
    /// Identifies the query.
    pub query: u64,
    /// The batch of reads of that query.
    pub wave: u32,
    /// The object's name.
    pub object: &'a str,
    /// Where the block begins, in bytes.
    pub position: u64,
    /// Its length, in bytes.
    pub bytes: u64,
    /// The tier that served it.
    pub served: Tier,
}

/// A mistake in a trace.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The file cannot be created.
    #[error("could not create trace {}: {source}", path.display())]
    Create {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The file cannot be written.
    #[error("could not write trace {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The file cannot be opened or read.
    #[error("could not read trace {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A line is not what it should be.
    #[error("could not read trace {}, line {line}{}: {why}", path.display(), in_column(*column))]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1, which is the header.
        line: u64,
        /// The name of the column, if it is one column's fault.
        column: Option<&'static str>,
        /// The mistake.
        why: String,
    },
}

fn in_column(column: Option<&str>) -> String {
    column.map(|column| format!(", column {column}")).unwrap_or_default()
}

/// A recorder of accesses. Shared by all queries of a reader; off, it does nothing.
///
/// Recording never fails a query: the first error is kept, later entries are not written, and
/// [`finish`](Self::finish) returns it.
pub struct Trace {
    /// `None` if off, so that recording is one look at a pointer.
    recorder: Option<Box<Recorder>>,
}

struct Recorder {
    path: PathBuf,
    next_query: AtomicU64,
    /// `None` once it has failed or finished.
    state: Mutex<State>,
}

struct State {
    writer: Option<csv::Writer<Output>>,
    accesses: u64,
    failure: Option<io::Error>,
}

/// Where the lines go.
enum Output {
    Plain(BufWriter<File>),
    Zstd(zstd::Encoder<'static, BufWriter<File>>),
}

impl Trace {
    /// Records nothing.
    pub const fn off() -> Self {
        Self { recorder: None }
    }

    /// Records into a new file, over what was there; through zstd if its name ends in `.zst`.
    ///
    /// # Errors
    /// [`TraceError::Create`].
    pub fn create(path: impl AsRef<Path>) -> Result<Self, TraceError> {
        let path = path.as_ref().to_path_buf();
        let writer = Output::create(&path).and_then(|output| {
            let mut writer = csv::WriterBuilder::new().has_headers(false).from_writer(output);
            writer.write_record(COLUMNS)?;
            Ok(writer)
        });
        let writer = writer.map_err(|source| TraceError::Create { path: path.clone(), source })?;
        let state = Mutex::new(State { writer: Some(writer), accesses: 0, failure: None });
        Ok(Self { recorder: Some(Box::new(Recorder { path, next_query: AtomicU64::new(0), state })) })
    }

    /// Whether it records: what only a trace needs to know need not be found out otherwise.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.recorder.is_some()
    }

    /// A number for a new query, from 0; always 0 if off.
    #[inline]
    pub fn next_query(&self) -> u64 {
        self.recorder.as_ref().map_or(0, |recorder| recorder.next_query.fetch_add(1, Ordering::Relaxed))
    }

    /// Notes an access.
    #[inline]
    pub fn record(&self, access: &Access<'_>) {
        if let Some(recorder) = &self.recorder {
            recorder.record(access);
        }
    }

    /// Writes out what is buffered, ends the file, and returns how many accesses it holds; 0 if off. Dropping the
    /// trace does the same, but nothing reports its error.
    ///
    /// # Errors
    /// [`TraceError::Write`] with the first error there was, at any time.
    pub fn finish(mut self) -> Result<u64, TraceError> {
        self.recorder.take().map_or(Ok(0), |recorder| recorder.finish())
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        if let Some(recorder) = self.recorder.take() {
            // No caller is left to get the error.
            let _ = recorder.finish();
        }
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Trace").field(&self.recorder.as_ref().map(|recorder| &recorder.path)).finish()
    }
}

impl Recorder {
    fn record(&self, access: &Access<'_>) {
        let mut state = self.state();
        // After the first error nothing is written: a trace with a gap would show other accesses than there were.
        let State { writer: Some(writer), .. } = &mut *state else { return };
        let Access { query, wave, object, position, bytes, served } = *access;
        match writer.serialize((query, wave, object, position, bytes, served.name())) {
            Ok(()) => state.accesses += 1,
            Err(error) => {
                state.failure = Some(error.into());
                state.writer = None;
            }
        }
    }

    fn finish(&self) -> Result<u64, TraceError> {
        let mut state = self.state();
        if let Some(writer) = state.writer.take() {
            let ended = writer.into_inner().map_err(|error| io::Error::other(error.to_string()));
            if let Err(error) = ended.and_then(Output::finish) {
                state.failure.get_or_insert(error);
            }
        }
        match state.failure.take() {
            Some(source) => Err(TraceError::Write { path: self.path.clone(), source }),
            None => Ok(state.accesses),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A thread that panicked left at worst half a line behind.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Output {
    fn create(path: &Path) -> io::Result<Self> {
        let file = BufWriter::new(File::create(path)?);
        Ok(if is_zstd(path) { Self::Zstd(zstd::Encoder::new(file, 0)?) } else { Self::Plain(file) })
    }

    fn finish(self) -> io::Result<()> {
        let mut file = match self {
            Self::Plain(file) => file,
            Self::Zstd(encoder) => encoder.finish()?,
        };
        file.flush()
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(file) => file.write(bytes),
            Self::Zstd(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(file) => file.flush(),
            // Passing a flush on would end a block of the compressor for every 8 KiB.
            Self::Zstd(_) => Ok(()),
        }
    }
}

fn is_zstd(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("zst"))
}

#[cfg(test)]
mod tests {
    use std::{fs, thread};

    use super::*;

    fn access(query: u64, position: u64) -> Access<'static> {
        Access { query, wave: 2, object: "data/a, b", position, bytes: 100, served: Tier::Store }
    }

    #[test]
    fn what_is_recorded_is_read() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["trace.csv", "trace.csv.zst"] {
            let path = folder.path().join(name);
            let trace = Trace::create(&path).unwrap();
            assert_eq!((trace.is_on(), trace.next_query(), trace.next_query()), (true, 0, 1));
            thread::scope(|scope| {
                for query in 0..2 {
                    let trace = &trace;
                    scope.spawn(move || (0..1_000).for_each(|position| trace.record(&access(query, position))));
                }
            });
            if name == "trace.csv" {
                assert_eq!(trace.finish().unwrap(), 2_000);
            } else {
                drop(trace);
                assert!(fs::metadata(&path).unwrap().len() < 20_000);
            }
            let recording = Recording::read(&path).unwrap();
            assert_eq!(recording.objects, ["data/a, b"]);
            for query in 0..2 {
                let of_query = recording.accesses.iter().filter(|access| access.query == query);
                assert!(of_query.clone().map(|access| access.position).eq(0..1_000));
                assert!(of_query.clone().all(|access| (access.wave, access.bytes, access.object) == (2, 100, 0)));
            }
        }
    }

    #[test]
    fn mistakes_are_named_with_line_and_column() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.csv");
        let header = COLUMNS.join(",");
        let good = "0,0,a,0,10,store";
        for (text, message) in [
            ("", "trace.csv, line 1: the header should be query,wave,object,position,bytes,served"),
            ("query,wave\n", "line 1: the header should be query,wave,object,position,bytes,served"),
            (&format!("{header}\n{good}\n0,x,a,0,10,store\n"), "line 3, column wave: \"x\" is not a whole number"),
            (&format!("{header}\n0,0,a,-1,10,store\n"), "line 2, column position: \"-1\" is not a whole number"),
            (&format!("{header}\n0,4294967296,a,1,10,store\n"), "line 2, column wave: \"4294967296\" is not a whole"),
            (
                &format!("{header}\n0,0,a,0,10,tape\n"),
                "line 2, column served: \"tape\" is not one of memory, prefetch,",
            ),
            (&format!("{header}\n0,0,,0,10,store\n"), "line 2, column object: no object is named"),
            (&format!("{header}\n\n{good}\n0,0,a\n"), "line 4: it has 3 columns where 6 are due"),
        ] {
            fs::write(&path, text).unwrap();
            let error = Recording::read(&path).unwrap_err().to_string();
            assert!(error.starts_with("could not read trace ") && error.contains(message), "{error}");
        }
        let error = Recording::read(folder.path().join("none.csv")).unwrap_err();
        assert!(matches!(error, TraceError::Read { .. }), "{error}");
        let error = Trace::create(folder.path().join("no/folder.csv")).unwrap_err();
        assert!(matches!(error, TraceError::Create { .. }), "{error}");
    }

    #[test]
    fn a_trace_that_is_off_costs_nothing() {
        let trace = Trace::off();
        trace.record(&access(0, 0));
        assert_eq!((trace.is_on(), trace.next_query(), trace.finish().unwrap()), (false, 0, 0));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn an_error_waits_for_the_end() {
        let trace = Trace::create("/dev/full").unwrap();
        (0..10_000).for_each(|position| trace.record(&access(0, position)));
        let error = trace.finish().unwrap_err();
        assert!(matches!(error, TraceError::Write { .. }), "{error}");
    }
}
