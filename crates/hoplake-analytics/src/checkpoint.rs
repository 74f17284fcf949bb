//! Checkpoints: the states after a superstep in a file, from which a run that was killed goes on.
//!
//! States are all that a run needs: signals and sums follow from them. The file is written under another name, synced, and
//! then renamed, so that there is a whole checkpoint at any time: the one before, or this one. It has
//!
//! * a line of JSON: whose states they are, and of which superstep;
//! * the states, each of a fixed width, in the order of dense ids;
//! * xxh3 of all bytes before, in 8 bytes, little-endian.

use std::{
    fs::File,
    io::{BufRead, BufReader, BufWriter, ErrorKind, Read, Write},
    ops::Range,
    path::{Path, PathBuf},
    time::Duration,
};

use hoplake_storage::QueryContext;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3Default;

use crate::{
    RunError, Value,
    lists::CHUNK,
    stores::{StateStore, StoreError},
    value::{decode, encode},
};

/// The longest first line that is read.
const HEADER_BYTES_MAX: u64 = 1 << 20;

/// Where a run writes its states now and then, and goes on from if they are there.
#[derive(Debug, Clone)]
pub struct Checkpoint {
    /// The file. The run leaves it where it is; remove it when the result is safe.
    pub path: PathBuf,
    /// The least time between two of them: a superstep after which less has passed writes none.
    pub every: Duration,
    /// Which graph, in which version, and what is selected of it. A file of another is rejected.
    pub graph: String,
}

/// The first line.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Header {
    /// The version of the file's format.
    hoplake_checkpoint: u32,
    program: String,
    graph: String,
    superstep: usize,
    /// The dense ids of the range.
    vertices: Range<u32>,
    /// Bytes of a state.
    width: usize,
}

impl Checkpoint {
    fn header<S: Value>(&self, program: &str, superstep: usize, range: &Range<u32>) -> Header {
        let program = program.to_owned();
        let graph = self.graph.clone();
        let vertices = range.clone();
        Header { hoplake_checkpoint: 1, program, graph, superstep, vertices, width: S::WIDTH }
    }

    fn failed(&self, error: &std::io::Error) -> RunError {
        StoreError::new(self.path.display(), error).into()
    }

    fn rejected(&self, why: impl Into<String>) -> RunError {
        RunError::Checkpoint { path: self.path.clone(), why: why.into() }
    }

    /// Writes the states that a store has after a superstep.
    pub(crate) fn write<S: Value>(
        &self,
        program: &str,
        superstep: usize,
        store: &dyn StateStore<S>,
        range: &Range<u32>,
        context: &QueryContext,
    ) -> Result<(), RunError> {
        let mut partial = self.path.clone().into_os_string();
        partial.push(".partial");
        let partial = PathBuf::from(partial);
        let header = self.header::<S>(program, superstep, range);
        let written = self.write_to(&partial, &header, store, context);
        if written.is_err() {
            // What is there is of no use, and takes room on a disk that may be full.
            let _ = std::fs::remove_file(&partial);
        }
        written
    }

    fn write_to<S: Value>(
        &self,
        partial: &Path,
        header: &Header,
        store: &dyn StateStore<S>,
        context: &QueryContext,
    ) -> Result<(), RunError> {
        let failed = |error| self.failed(&error);
        let file = File::create(partial).map_err(failed)?;
        let mut file = Hashed { inner: BufWriter::new(file), hash: Xxh3Default::new() };
        let mut line = serde_json::to_vec(header).map_err(|error| self.failed(&error.into()))?;
        line.push(b'\n');
        file.write(&line).map_err(failed)?;
        for range in chunks(&header.vertices) {
            context.check_time()?;
            let bytes = encode(&store.read(range)?);
            file.write(&bytes).map_err(failed)?;
        }
        let Hashed { mut inner, hash } = file;
        inner.write_all(&hash.digest().to_le_bytes()).map_err(failed)?;
        let file = inner.into_inner().map_err(|error| self.failed(error.error()))?;
        file.sync_all().map_err(failed)?;
        std::fs::rename(partial, &self.path).map_err(failed)?;
        // The name is on the disk when its folder is.
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new("."))).and_then(|folder| folder.sync_all()).map_err(failed)
    }

    /// Reads states into a store, and returns the superstep after which they were written; `None` without a file. They are rejected
    /// if they are of a superstep after the last one of the run.
    pub(crate) fn read<S: Value>(
        &self,
        program: &str,
        store: &dyn StateStore<S>,
        range: &Range<u32>,
        supersteps_max: Option<usize>,
        context: &QueryContext,
    ) -> Result<Option<usize>, RunError> {
        let failed = |error| self.failed(&error);
        let file = match File::open(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            file => file.map_err(failed)?,
        };
        let mut file = Hashed { inner: BufReader::new(file), hash: Xxh3Default::new() };
        let mut line = Vec::new();
        (&mut file.inner).take(HEADER_BYTES_MAX).read_until(b'\n', &mut line).map_err(failed)?;
        file.hash.update(&line);
        let found: Header = serde_json::from_slice(&line).map_err(|_| self.rejected("it is not a checkpoint"))?;
        let own = self.header::<S>(program, found.superstep, range);
        if found != own {
            return Err(self.rejected(difference(&found, &own)));
        }
        if let Some(most) = supersteps_max.filter(|most| found.superstep > *most) {
            return Err(
                self.rejected(format!("it is of superstep {}, and this run ends after {most}", found.superstep))
            );
        }
        for range in chunks(range) {
            context.check_time()?;
            let mut bytes = vec![0; range.len() * S::WIDTH];
            file.read(&mut bytes).map_err(|error| self.damaged(&error))?;
            store.put(range.start, decode(&bytes))?;
        }
        let Hashed { mut inner, hash } = file;
        let mut hash_there = [0; 8];
        inner.read_exact(&mut hash_there).map_err(|error| self.damaged(&error))?;
        if hash.digest().to_le_bytes() != hash_there {
            return Err(self.rejected("its checksum is not that of its states"));
        }
        Ok(Some(found.superstep))
    }

    fn damaged(&self, error: &std::io::Error) -> RunError {
        match error.kind() {
            ErrorKind::UnexpectedEof => self.rejected("it ends too early"),
            _ => self.failed(error),
        }
    }
}

/// Why a checkpoint is not one of this run.
fn difference(found: &Header, own: &Header) -> String {
    if found.program != own.program {
        return format!("it is of {}, and this run is {}", found.program, own.program);
    }
    if found.graph != own.graph {
        return format!("it is of {}, and this run is on {}", found.graph, own.graph);
    }
    format!("it is of the vertices {:?}, with {} bytes each", found.vertices, found.width)
}

/// The places of a range's states, some at a time.
fn chunks(range: &Range<u32>) -> impl Iterator<Item = Range<u32>> + use<> {
    let count = range.end - range.start;
    (0..count).step_by(CHUNK as usize).map(move |first| first..count.min(first.saturating_add(CHUNK)))
}

/// A file, and the hash of what has been read from it or written to it.
struct Hashed<F> {
    inner: F,
    hash: Xxh3Default,
}

impl<F: Write> Hashed<F> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.hash.update(bytes);
        self.inner.write_all(bytes)
    }
}

impl<F: Read> Hashed<F> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<()> {
        self.inner.read_exact(bytes)?;
        self.hash.update(bytes);
        Ok(())
    }
}
