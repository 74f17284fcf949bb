//! Objects of a graph on their way to the store, from synchronous threads.

use std::io::{self, Write};

use hoplake_format::{
    DataNames, Direction, SegmentRef, VersionRange,
    segment::{SectionKind, SegmentBytes, SegmentSettings, SegmentWriter},
};
use hoplake_storage::{Store, Upload};
use tokio::runtime::Handle;

use super::settings::BuildSettings;
use crate::IngestError;

/// Bytes of a segment that are kept before they are sent.
const DRAIN_BYTES: usize = 1 << 20;

/// What is written in one order, on one thread, into segments and tables of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    /// Keys, property indexes and properties of vertices.
    Vertices,
    /// Adjacency of one direction, and properties of edges.
    Edges(Direction),
}

impl Stream {
    const COUNT: u64 = 3;

    /// The number of one of its spans among those of all streams.
    fn span(self, number: u64) -> u64 {
        let stream = match self {
            Self::Vertices => 0,
            Self::Edges(Direction::Out) => 1,
            Self::Edges(Direction::In) => 2,
        };
        number * Self::COUNT + stream
    }
}

/// Names the objects of a stream and opens them for writing. Its methods block, and so must not be
/// called from an async task.
#[derive(Debug)]
pub(crate) struct Objects {
    store: Store,
    runtime: Handle,
    base_version: u64,
    names: DataNames,
    segments: SegmentSettings,
    stream: Stream,
}

impl Objects {
    /// Objects of a stream, from the span on that begins after so many items.
    pub(crate) fn new(store: &Store, runtime: &Handle, settings: &BuildSettings, stream: Stream, items: u64) -> Self {
        let BuildSettings { base_version, segments, .. } = *settings;
        let names = DataNames::new(base_version, &settings.writer, 0);
        let objects = Self { store: store.clone(), runtime: runtime.clone(), base_version, names, segments, stream };
        objects.begin_span(items);
        objects
    }

    /// The version that these objects become part of: the one after their base.
    pub(crate) fn versions(&self) -> VersionRange {
        VersionRange::of(self.base_version + 1)
    }

    /// A name that no other object of the graph has or will have.
    pub(crate) fn name(&self, ending: &str) -> String {
        self.names.next(ending)
    }

    /// How many items precede the end of the span that has the item after these.
    fn span_end(&self, items: u64) -> u64 {
        let each = self.segments.span_items.max(1);
        (items / each + 1) * each
    }

    fn begin_span(&self, items: u64) {
        let number = items / self.segments.span_items.max(1);
        self.names.begin_span(self.stream.span(number));
    }

    /// Begins an object.
    pub(crate) fn create(&self, name: &str) -> ObjectWriter {
        ObjectWriter { upload: Some(self.store.upload(name)), runtime: self.runtime.clone(), length: 0 }
    }
}

/// An object that is being written.
pub(crate) struct ObjectWriter {
    /// `None` once the object exists.
    upload: Option<Upload>,
    runtime: Handle,
    length: u64,
}

impl ObjectWriter {
    /// Ends the object and returns its length and the CRC-32C of its bytes.
    pub(crate) fn finish(mut self) -> Result<(u64, u32), IngestError> {
        let upload = self.upload.take().expect("an object is ended once");
        Ok((self.length, self.runtime.block_on(upload.finish())?))
    }

    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<(), IngestError> {
        self.length += bytes.len() as u64;
        let upload = self.upload.as_mut().expect("nothing is appended after the end");
        Ok(self.runtime.block_on(upload.write(bytes))?)
    }
}

/// An object that is not ended takes its parts back, which no listing of objects would show.
impl Drop for ObjectWriter {
    fn drop(&mut self) {
        if let Some(upload) = self.upload.take() {
            // If this fails, the store's own expiry removes the parts.
            let _ = self.runtime.block_on(upload.abort());
        }
    }
}

impl Write for ObjectWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.append(bytes).map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Segments of a stream that are being written, in spans: each begins with another object, at the first key or list after so many of them
/// ([`SegmentSettings::span_items`]), and so does not depend on the bytes of those before it.
pub(crate) struct SegmentUpload<'a> {
    pub(crate) objects: &'a Objects,
    pub(crate) writer: SegmentWriter,
    open: Option<ObjectWriter>,
    ended: Vec<SegmentRef>,
    /// Keys and edges of the stream so far.
    items: u64,
    /// How many there are before the next span.
    span_end: u64,
}

impl<'a> SegmentUpload<'a> {
    /// Segments from the beginning of a stream on, or from a span on that begins after this many items.
    pub(crate) fn new(objects: &'a Objects, items: u64) -> Result<Self, IngestError> {
        let writer = SegmentWriter::new(&objects.names, objects.versions(), objects.segments)?;
        let span_end = objects.span_end(items);
        Ok(Self { objects, writer, open: None, ended: Vec::new(), items, span_end })
    }

    /// Counts keys or edges.
    #[inline]
    pub(crate) fn count(&mut self, items: u64) {
        self.items += items;
    }

    /// Whether the next item begins another span.
    #[inline]
    pub(crate) fn is_span_over(&self) -> bool {
        self.items >= self.span_end
    }

    /// How many keys can be written before the next span begins.
    pub(crate) fn keys_left(&self) -> u64 {
        self.span_end.saturating_sub(self.items)
    }

    /// Begins the next span: the section under way was flushed, and tables have ended.
    pub(crate) fn begin_span(&mut self) -> Result<(), IngestError> {
        self.writer.end_segment()?;
        self.send_all(DRAIN_BYTES)?;
        self.span_end = self.objects.span_end(self.items);
        self.objects.begin_span(self.items);
        Ok(())
    }

    /// Sends what has gathered, if it is much.
    #[inline]
    pub(crate) fn send(&mut self) -> Result<(), IngestError> {
        if self.writer.buffered_bytes() >= DRAIN_BYTES { self.send_all(DRAIN_BYTES) } else { Ok(()) }
    }

    fn send_all(&mut self, bytes_min: usize) -> Result<(), IngestError> {
        while let Some(SegmentBytes { name, bytes, ended }) = self.writer.take(bytes_min) {
            // A segment leaves in pieces while it is written, so its object stays open from one call to the next.
            let mut object = self.open.take().unwrap_or_else(|| self.objects.create(&name));
            object.append(&bytes)?;
            match ended {
                Some(reference) => {
                    // The reference only after the store has the object: the manifest must not name one that does not exist.
                    object.finish()?;
                    self.ended.push(reference);
                }
                None => self.open = Some(object),
            }
        }
        Ok(())
    }

    /// Ends the last segment and returns the manifest entries of all, and the bytes of their lists.
    pub(crate) fn finish(mut self) -> Result<(Vec<SegmentRef>, u64), IngestError> {
        self.writer.finish()?;
        // Whatever is left, however small.
        self.send_all(1)?;
        let lists = self.writer.sizes().iter().filter(|size| matches!(size.kind, SectionKind::Adjacency(..)));
        Ok((self.ended, lists.map(|size| size.bytes).sum()))
    }
}
