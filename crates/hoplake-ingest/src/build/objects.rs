//! Objects of a graph on their way to the store, from synchronous threads.

use std::io::{self, Write};

use hoplake_format::{
    DataNames, SegmentRef, VersionRange,
    segment::{SectionKind, SegmentBytes, SegmentSettings, SegmentWriter},
};
use hoplake_storage::{Store, Upload};
use tokio::runtime::Handle;

use crate::IngestError;

/// Bytes of a segment that are kept before they are sent.
const DRAIN_BYTES: usize = 1 << 20;

/// Names the objects of one thread of a load and opens them for writing. Its methods block, and so must not be
/// called from an async task.
#[derive(Debug)]
pub(crate) struct Objects {
    store: Store,
    runtime: Handle,
    base_version: u64,
    names: DataNames,
    segments: SegmentSettings,
}

impl Objects {
    pub(crate) fn new(
        store: Store,
        runtime: Handle,
        base_version: u64,
        writer: &str,
        segments: SegmentSettings,
    ) -> Self {
        Self { store, runtime, base_version, names: DataNames::new(base_version, writer, 0), segments }
    }

    /// Divides the names that are left among two threads, so that the same load gives every object the same name.
    pub(crate) fn divided(self) -> [Self; 2] {
        let Self { store, runtime, base_version, names, segments } = self;
        names.divided().map(|names| Self {
            store: store.clone(),
            runtime: runtime.clone(),
            base_version,
            names,
            segments,
        })
    }

    /// The version that these objects become part of: the one after their base.
    pub(crate) fn versions(&self) -> VersionRange {
        VersionRange::of(self.base_version + 1)
    }

    /// A name that no other object of the graph has or will have.
    pub(crate) fn name(&self, ending: &str) -> String {
        self.names.next(ending)
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

/// Segments that are being written.
pub(crate) struct SegmentUpload<'a> {
    pub(crate) objects: &'a Objects,
    pub(crate) writer: SegmentWriter,
    open: Option<ObjectWriter>,
    ended: Vec<SegmentRef>,
}

impl<'a> SegmentUpload<'a> {
    pub(crate) fn new(objects: &'a Objects) -> Result<Self, IngestError> {
        let writer = SegmentWriter::new(&objects.names, objects.versions(), objects.segments)?;
        Ok(Self { objects, writer, open: None, ended: Vec::new() })
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
