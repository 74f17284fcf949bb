//! The files of a source: found, put in order, opened, decompressed.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, BufReader, Read},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use super::{
    encoding::{HEAD_BYTES, OtherEncoding},
    gzip::Gzip,
    limits::{Bound, DECOMPRESSED_FREE_BYTES, ReadLimits},
};
use crate::IngestError;

const READ_BYTES: usize = 256 << 10;

/// A file of a source.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SourceFile {
    /// What it is called: where it is, or where it was copied from.
    pub(crate) path: PathBuf,
    /// Where it is, if it is a copy.
    pub(crate) copy: Option<PathBuf>,
    /// Its size on disk.
    pub(crate) bytes: u64,
    /// How much of it is read at a time.
    pub(crate) limits: ReadLimits,
}

impl SourceFile {
    /// The file at this path.
    pub(crate) fn at(path: PathBuf, limits: ReadLimits) -> Result<Self, IngestError> {
        let bytes = fs::metadata(&path).map_err(|source| IngestError::Read { path: path.clone(), source })?.len();
        Ok(Self { path, copy: None, bytes, limits })
    }

    /// The copy of an input.
    pub(crate) fn copied(name: &Path, copy: &Path, limits: ReadLimits) -> Result<Self, IngestError> {
        let at = Self::at(copy.to_owned(), limits)?;
        Ok(Self { path: name.to_owned(), copy: Some(at.path), ..at })
    }

    /// Where to open it.
    pub(crate) fn place(&self) -> &Path {
        self.copy.as_deref().unwrap_or(&self.path)
    }

    /// Its name without `.gz` or `.zst`.
    pub(crate) fn name(&self) -> &str {
        if self.path == Path::new(STANDARD_INPUT) {
            return "stdin.csv";
        }
        let name = self.path.file_name().and_then(|name| name.to_str()).unwrap_or("");
        name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(name)
    }

    /// Its name without any extension.
    pub(crate) fn stem(&self) -> &str {
        let name = self.name();
        name.rsplit_once('.').map_or(name, |(stem, _)| stem)
    }

    /// Its extension (not that of the compression), or nothing.
    pub(crate) fn extension(&self) -> &str {
        self.name().rsplit_once('.').map_or("", |(_, extension)| extension)
    }

    /// Opens it as text; `bytes_read` counts the bytes of the file on disk as they are read.
    pub(crate) fn open_text(&self, bytes_read: Arc<AtomicU64>, tabs: Tabs) -> Result<TextReader, IngestError> {
        let file = File::open(self.place()).map_err(|source| self.failed(source))?;
        // Below the decoder: progress and the ratio are about bytes on disk.
        let counted = CountingReader { inner: file, bytes_read: Arc::clone(&bytes_read) };
        let extension = self.path.extension().and_then(|extension| extension.to_str());
        let ratio = matches!(extension, Some("gz" | "zst")).then(|| Ratio {
            limits: self.limits,
            before: bytes_read.load(Ordering::Relaxed),
            bytes_read,
            decompressed: 0,
        });
        let inner: Box<dyn Read + Send> = match extension {
            // A gzip file may be several, one after another.
            Some("gz") => Box::new(Gzip::new(BufReader::with_capacity(READ_BYTES, counted))),
            Some("zst") => Box::new(
                zstd::Decoder::with_buffer(BufReader::with_capacity(READ_BYTES, counted))
                    .map_err(|source| self.failed(source))?,
            ),
            _ => Box::new(counted),
        };
        Ok(TextReader { inner, ratio, tabs, last: b'\n', begun: false, ended: false })
    }

    /// The error that reading this file failed with.
    pub(crate) fn failed(&self, source: io::Error) -> IngestError {
        let path = self.path.clone();
        if let Some(other) = OtherEncoding::of(&source) {
            return IngestError::Layout { path, why: other.to_string() };
        }
        match source.kind() {
            // `Ratio` and `LineBound` report with this kind, which reads of a file do not have.
            io::ErrorKind::FileTooLarge => IngestError::Bound { path, why: source.to_string() },
            _ => IngestError::Read { path, source },
        }
    }

    /// The error that this file is not what it was taken for.
    pub(crate) fn layout(&self, why: impl Into<String>) -> IngestError {
        IngestError::Layout { path: self.path.clone(), why: why.into() }
    }
}

/// The treatment of tabs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tabs {
    /// They stay.
    Keep,
    /// They become spaces, so that columns may be separated by any white space.
    ToSpaces,
}

/// Text of a file, decompressed. It always ends with a newline, so that the reader of records can compute the line of
/// every record from the number of newlines after it.
pub(crate) struct TextReader {
    inner: Box<dyn Read + Send>,
    ratio: Option<Ratio>,
    tabs: Tabs,
    last: u8,
    begun: bool,
    ended: bool,
}

impl TextReader {
    /// Of text that is not compressed.
    pub(crate) fn plain(inner: Box<dyn Read + Send>) -> Self {
        Self { inner, ratio: None, tabs: Tabs::Keep, last: b'\n', begun: false, ended: false }
    }
}

impl TextReader {
    /// Reads some bytes; the first ones have to be those of UTF-8.
    fn fill(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut read = self.inner.read(buffer)?;
        if !self.begun {
            // A decompressor may begin with fewer bytes than tell.
            while (1..HEAD_BYTES.min(buffer.len())).contains(&read) {
                match self.inner.read(&mut buffer[read..])? {
                    0 => break,
                    more => read += more,
                }
            }
            self.begun = true;
            OtherEncoding::reject(&buffer[..read])?;
        }
        Ok(read)
    }
}

impl Read for TextReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.ended || buffer.is_empty() {
            return Ok(0);
        }
        let read = self.fill(buffer)?;
        if read == 0 {
            self.ended = true;
            if self.last == b'\n' {
                return Ok(0);
            }
            buffer[0] = b'\n';
            return Ok(1);
        }
        if let Some(ratio) = &mut self.ratio {
            ratio.count(read)?;
        }
        let filled = &mut buffer[..read];
        if self.tabs == Tabs::ToSpaces {
            for byte in filled.iter_mut() {
                *byte = if *byte == b'\t' { b' ' } else { *byte };
            }
        }
        self.last = filled[read - 1];
        Ok(read)
    }
}

/// The decompressed bytes of a file so far.
struct Ratio {
    limits: ReadLimits,
    /// The count of bytes before this file.
    before: u64,
    bytes_read: Arc<AtomicU64>,
    decompressed: u64,
}

impl Ratio {
    fn count(&mut self, bytes: usize) -> io::Result<()> {
        self.decompressed += bytes as u64;
        if self.decompressed <= DECOMPRESSED_FREE_BYTES {
            return Ok(());
        }
        // The decoder's buffer may be 256 KiB ahead of what is decompressed, which only makes the bound more lenient.
        let compressed = self.bytes_read.load(Ordering::Relaxed) - self.before;
        if self.limits.allows(compressed, self.decompressed) {
            return Ok(());
        }
        let why = format!(
            "{compressed} bytes of it become more than {} bytes, {} times as many; if that is meant, raise \
             decompression_ratio_max",
            self.decompressed, self.limits.decompression_ratio_max
        );
        Err(io::Error::new(io::ErrorKind::FileTooLarge, why))
    }
}

/// Text whose lines are no longer than a bound, for readers that hold complete lines in memory.
pub(crate) struct LineBound<R> {
    inner: R,
    bound: Bound,
    line: u64,
    length: usize,
}

impl<R> LineBound<R> {
    pub(crate) fn new(inner: R, bound: Bound) -> Self {
        Self { inner, bound, line: 1, length: 0 }
    }
}

impl<R: Read> Read for LineBound<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        // Counted while the bytes pass: the reader above gathers a line in memory until it ends.
        for line in buffer[..read].split_inclusive(|byte| *byte == b'\n') {
            self.length += line.len();
            if self.length > self.bound.bytes {
                let why = format!("line {} {}", self.line, self.bound.exceeded("line"));
                return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
            }
            if line.ends_with(b"\n") {
                self.line += 1;
                self.length = 0;
            }
        }
        Ok(read)
    }
}

/// Counts the bytes that are read from a file.
struct CountingReader {
    inner: File,
    bytes_read: Arc<AtomicU64>,
}

impl Read for CountingReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.bytes_read.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// What standard input is called.
pub const STANDARD_INPUT: &str = "standard input";

/// Inputs that are not files of this machine, by what they are called (`s3://bucket/people.csv`), and where they were copied to.
///
/// An input is given by an address, and called by a name without what of the address may be secret. Everything that is shown or
/// written has the name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Copies {
    /// By name.
    places: BTreeMap<PathBuf, PathBuf>,
    /// By address.
    names: BTreeMap<PathBuf, PathBuf>,
}

impl Copies {
    /// Notes where the copy of an input is. Returns `false`, and notes nothing, if another input is called so.
    #[must_use]
    pub fn insert(&mut self, address: PathBuf, name: PathBuf, copy: PathBuf) -> bool {
        if self.places.contains_key(&name) {
            return false;
        }
        self.names.insert(address, name.clone());
        self.places.insert(name, copy);
        true
    }

    /// Whether the input at this address was copied.
    pub fn has(&self, address: &Path) -> bool {
        self.names.contains_key(address)
    }

    /// What the input with this address or name is called, and where its copy is.
    pub fn get(&self, input: &Path) -> Option<(&Path, &Path)> {
        let name = self.names.get(input).map_or(input, PathBuf::as_path);
        self.places.get_key_value(name).map(|(name, copy)| (name.as_path(), copy.as_path()))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The input called so, or all below it.
    fn below(&self, name: &Path) -> impl Iterator<Item = (&Path, &Path)> {
        let below = self.places.iter().filter(move |(of, _)| of.starts_with(name));
        below.map(|(of, copy)| (of.as_path(), copy.as_path()))
    }
}

/// All files at or under these paths, sorted, each once. Hidden files and markers such as `_SUCCESS` are
/// left out.
pub(crate) fn find(from: &[PathBuf], copies: &Copies, limits: ReadLimits) -> Result<Vec<SourceFile>, IngestError> {
    let mut files = Vec::new();
    for path in from {
        let before = files.len();
        for (name, copy) in copies.below(path) {
            files.push(SourceFile::copied(name, copy, limits)?);
        }
        if files.len() > before {
            continue;
        }
        let kind = fs::metadata(path).map_err(|source| IngestError::Read { path: path.clone(), source })?;
        if kind.is_dir() {
            find_in(path, limits, &mut files)?
        } else {
            files.push(SourceFile::at(path.clone(), limits)?)
        }
    }
    // A fixed order of inputs decides ties between rows. A file may be given twice: by its path and by its folder.
    files.sort();
    files.dedup();
    Ok(files)
}

fn find_in(folder: &Path, limits: ReadLimits, files: &mut Vec<SourceFile>) -> Result<(), IngestError> {
    let failed = |source| IngestError::Read { path: folder.to_owned(), source };
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if entry.file_name().to_string_lossy().starts_with(['.', '_']) {
            continue;
        }
        // Links to files are followed, links to folders are not: they may lead in a circle.
        if entry.file_type().map_err(failed)?.is_dir() {
            find_in(&entry.path(), limits, files)?;
        } else if entry.path().is_file() {
            files.push(SourceFile::at(entry.path(), limits)?);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn names_lose_the_compression_first() {
        let name = |path: &str| SourceFile { path: path.into(), copy: None, bytes: 0, limits: ReadLimits::default() };
        assert_eq!(name("/a/person_0_0.csv.gz").stem(), "person_0_0");
        assert_eq!(name("/a/web.v2.txt.zst").extension(), "txt");
        assert_eq!((name("edges").stem(), name("edges").extension()), ("edges", ""));
    }

    #[test]
    fn text_always_ends_with_one_newline() {
        let folder = tempfile::tempdir().unwrap();
        for (content, expected) in [("a\tb", "a b\n"), ("a\n", "a\n"), ("", "")] {
            let path = folder.path().join("text");
            fs::write(&path, content).unwrap();
            let count = Arc::new(AtomicU64::new(0));
            let mut text = String::new();
            let file = SourceFile::at(path, ReadLimits::default()).unwrap();
            file.open_text(Arc::clone(&count), Tabs::ToSpaces).unwrap().read_to_string(&mut text).unwrap();
            assert_eq!(text, expected);
            assert_eq!(count.load(Ordering::Relaxed), content.len() as u64);
        }
    }
}
