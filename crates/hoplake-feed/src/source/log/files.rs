//! Records as lines of a file, of the files of a folder in the order of their names, or of standard input.
//!
//! Who writes a file appends to it. What has no end of a line yet is read again when there is more. In a folder, a file is at its end
//! when there is one after it. A line that ends within a record is one that a producer was killed at; it writes the record again.

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
    time::Duration,
};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use tokio::{
    fs::File,
    io::{AsyncRead, AsyncReadExt, AsyncSeekExt, SeekFrom, Stdin},
};

use super::{
    place::Offsets,
    transport::{LogConsumer, Next, Record},
};
use crate::{FeedError, FeedErrorKind, error::COPY_ANEW};

/// Bytes that are read at a time.
const CHUNK: usize = 256 << 10;

/// How often a file is looked at that has no more.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The part of the log that files are.
const PART: &str = "file";

/// Lines of bytes that come in pieces.
struct Lines {
    read: BytesMut,
    /// How far the buffer was searched for the end of a line.
    looked_at: usize,
    bytes_max: u64,
}

impl Lines {
    fn new(bytes_max: u64) -> Self {
        Self { read: BytesMut::new(), looked_at: 0, bytes_max }
    }

    /// The next line and its length with its end, if all of it was read.
    fn next(&mut self) -> Option<(Bytes, u64)> {
        let end = self.read[self.looked_at..].iter().position(|byte| *byte == b'\n');
        match end {
            None => {
                self.looked_at = self.read.len();
                None
            }
            Some(end) => {
                let line = self.read.split_to(self.looked_at + end + 1);
                self.looked_at = 0;
                let length = line.len() as u64;
                Some((line.freeze().slice(..length as usize - 1), length))
            }
        }
    }

    /// What has no end of a line.
    fn rest(&mut self) -> Option<(Bytes, u64)> {
        self.looked_at = 0;
        let rest = self.read.split().freeze();
        let length = rest.len() as u64;
        (length > 0).then_some((rest, length))
    }

    /// Reads more; returns whether there was any.
    async fn fill(&mut self, from: &mut (impl AsyncRead + Unpin), at: &str) -> Result<bool, FeedError> {
        if self.read.len() as u64 > self.bytes_max {
            let why = format!("the line at {at} has more than {} bytes", self.bytes_max);
            return Err(
                FeedError::invalid(why).hint("is it a log of changes? If it is, raise stream.transaction_bytes_max")
            );
        }
        self.read.reserve(CHUNK);
        let unread = |error| FeedError::unavailable(format!("could not read {at}: {}", hoplake::system_text(&error)));
        Ok(from.read_buf(&mut self.read).await.map_err(unread)? > 0)
    }
}

/// A file, or the files of a folder.
pub(super) struct Files {
    path: PathBuf,
    is_folder: bool,
    /// The name of the file that is read, and the file once it is open.
    name: String,
    file: Option<File>,
    /// Of the next line.
    offset: u64,
    lines: Lines,
    /// Whether the last look found nothing.
    is_idle: bool,
    /// The last file, and its length when the log was opened.
    end: Option<(String, u64)>,
}

impl Files {
    /// Reads what comes after an offset, `name:byte`, or from the beginning.
    pub(super) async fn open(path: &Path, from: Option<&str>, bytes_max: u64) -> Result<Self, FeedError> {
        let metadata = std::fs::metadata(path).map_err(|error| {
            let why = format!("could not read the log {}: {}", path.display(), hoplake::system_text(&error));
            match error.kind() {
                ErrorKind::NotFound => FeedError::invalid(why).hint("correct source.url, or start the producer first"),
                _ => FeedError::unavailable(why),
            }
        })?;
        let mut files = Self {
            path: path.to_owned(),
            is_folder: metadata.is_dir(),
            name: String::new(),
            file: None,
            offset: 0,
            lines: Lines::new(bytes_max),
            is_idle: false,
            end: None,
        };
        if !files.is_folder {
            files.name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        }
        files.end = files.last()?;
        if let Some((name, offset)) = from.and_then(|from| from.rsplit_once(':')) {
            if !files.is_folder && name != files.name {
                let why = format!("the graph's position is in a file {name}, and source.url names {}", files.name);
                return Err(FeedError::invalid(why).hint(format!("correct source.url, or {COPY_ANEW}")));
            }
            name.clone_into(&mut files.name);
            files.offset =
                offset.parse().map_err(|_| FeedError::invalid(format!("{offset} is not a position in a file")))?;
        }
        Ok(files)
    }

    fn of_name(&self) -> PathBuf {
        if self.is_folder { self.path.join(&self.name) } else { self.path.clone() }
    }

    fn at(&self) -> String {
        format!("{}:{}", self.name, self.offset)
    }

    /// The first file of the folder after the one that is read.
    fn next_name(&self) -> Result<Option<String>, FeedError> {
        if !self.is_folder {
            return Ok(None);
        }
        let next = self.names()?.into_iter().filter(|name| *name > self.name).min();
        Ok(next)
    }

    /// The last file that there is, and its length.
    fn last(&self) -> Result<Option<(String, u64)>, FeedError> {
        let names = if self.is_folder { self.names()? } else { vec![self.name.clone()] };
        let last = names.into_iter().max();
        let length =
            |name: &String| std::fs::metadata(if self.is_folder { self.path.join(name) } else { self.path.clone() });
        Ok(last.and_then(|name| length(&name).ok().map(|it| (name, it.len()))))
    }

    /// The files of the folder.
    fn names(&self) -> Result<Vec<String>, FeedError> {
        let unread = |error| {
            FeedError::unavailable(format!("could not list {}: {}", self.path.display(), hoplake::system_text(&error)))
        };
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.path).map_err(unread)? {
            let entry = entry.map_err(unread)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            // Who writes a file elsewhere and moves it here hides it meanwhile.
            if !name.starts_with('.') && entry.path().is_file() {
                names.push(name);
            }
        }
        Ok(names)
    }

    /// Opens the file that is to be read, if there is one.
    async fn opened(&mut self) -> Result<Option<&mut File>, FeedError> {
        if self.file.is_none() {
            if self.name.is_empty() {
                let Some(name) = self.next_name()? else { return Ok(None) };
                self.name = name;
            }
            let path = self.of_name();
            let unread = |error: std::io::Error| {
                let why = format!("could not read {}: {}", path.display(), hoplake::system_text(&error));
                match error.kind() {
                    ErrorKind::NotFound => FeedError::new(FeedErrorKind::Purged, why).hint(COPY_ANEW),
                    _ => FeedError::unavailable(why),
                }
            };
            let mut file = File::open(&path).await.map_err(unread)?;
            file.seek(SeekFrom::Start(self.offset)).await.map_err(unread)?;
            self.file = Some(file);
        }
        Ok(self.file.as_mut())
    }

    fn is_shorter(&self, length: u64) -> FeedError {
        let why = format!("{} has {length} bytes, and was read up to {}", self.of_name().display(), self.offset);
        FeedError::new(FeedErrorKind::Purged, why)
            .hint(format!("a log grows only: let its producer write a new file into a folder instead; {COPY_ANEW}"))
    }

    fn record(&mut self, (line, length): (Bytes, u64)) -> Record {
        let before = self.at();
        self.offset += length;
        Record {
            part: PART.to_owned(),
            at: before.clone(),
            before,
            after: self.at(),
            written_unix_ms: 0,
            value: line,
            is_line: true,
            is_mark: false,
        }
    }

    /// At the end of a file: whether another one follows, to which it then goes.
    async fn go_on(&mut self) -> Result<bool, FeedError> {
        let now = std::fs::metadata(self.of_name());
        if let Ok(length) = now.map(|it| it.len()).as_ref()
            && *length < self.offset
        {
            return Err(self.is_shorter(*length));
        }
        let Some(next) = self.next_name()? else { return Ok(false) };
        self.name = next;
        self.file = None;
        self.offset = 0;
        Ok(true)
    }
}

#[async_trait]
impl LogConsumer for Files {
    async fn next(&mut self) -> Result<Next, FeedError> {
        loop {
            if let Some(line) = self.lines.next() {
                self.is_idle = false;
                let record = self.record(line);
                if record.value.iter().all(u8::is_ascii_whitespace) {
                    continue;
                }
                return Ok(Next::Record(record));
            }
            let at = self.at();
            let mut lines = std::mem::replace(&mut self.lines, Lines::new(0));
            let filled = match self.opened().await? {
                None => Ok(false),
                Some(file) => lines.fill(file, &at).await,
            };
            self.lines = lines;
            if filled? {
                continue;
            }
            // The last line of a file that another one follows needs no end.
            let is_last = !self.name.is_empty() && self.next_name()?.is_none();
            if !is_last && let Some(rest) = self.lines.rest() {
                return Ok(Next::Record(self.record(rest)));
            }
            if self.go_on().await? {
                continue;
            }
            if std::mem::replace(&mut self.is_idle, true) {
                tokio::time::sleep(LOOK_EVERY).await;
            }
            return Ok(Next::End);
        }
    }

    fn is_split(&self) -> bool {
        false
    }

    fn ends(&self) -> Offsets {
        self.end.iter().map(|(name, length)| (PART.to_owned(), format!("{name}:{length}"))).collect()
    }

    fn is_past(&self, offset: &str, end: &str) -> bool {
        let place = |text: &str| {
            let (name, byte) = text.rsplit_once(':')?;
            Some((name.to_owned(), byte.parse::<u64>().ok()?))
        };
        place(offset).zip(place(end)).is_some_and(|(offset, end)| offset >= end)
    }

    fn offsets(&self) -> Offsets {
        if self.name.is_empty() { Offsets::new() } else { Offsets::from([(PART.to_owned(), self.at())]) }
    }
}

/// Standard input, which is read once.
pub(super) struct Input {
    stdin: Stdin,
    lines: Lines,
    offset: u64,
    has_ended: bool,
    was_told: bool,
}

impl Input {
    pub(super) fn open(bytes_max: u64) -> Self {
        Self { stdin: tokio::io::stdin(), lines: Lines::new(bytes_max), offset: 0, has_ended: false, was_told: false }
    }
}

#[async_trait]
impl LogConsumer for Input {
    async fn next(&mut self) -> Result<Next, FeedError> {
        loop {
            let line = match self.lines.next() {
                None if self.has_ended => self.lines.rest(),
                line => line,
            };
            let at = format!("stdin:{}", self.offset);
            if let Some((value, length)) = line {
                self.offset += length;
                if value.iter().all(u8::is_ascii_whitespace) {
                    continue;
                }
                // Nothing can be read again.
                let before = String::new();
                let after = String::new();
                return Ok(Next::Record(Record {
                    part: PART.to_owned(),
                    at,
                    before,
                    after,
                    written_unix_ms: 0,
                    value,
                    is_line: true,
                    is_mark: false,
                }));
            }
            if self.has_ended {
                if std::mem::replace(&mut self.was_told, true) {
                    return Err(
                        FeedError::invalid("standard input has ended").hint("run the feed with --once to end there")
                    );
                }
                return Ok(Next::End);
            }
            match tokio::time::timeout(LOOK_EVERY, self.lines.fill(&mut self.stdin, &at)).await {
                Ok(filled) => self.has_ended = !filled?,
                Err(_) => return Ok(Next::Nothing),
            }
        }
    }

    fn is_split(&self) -> bool {
        false
    }

    fn offsets(&self) -> Offsets {
        Offsets::new()
    }
}
