//! Objects of a level on their way to the store, from synchronous threads.

use std::{
    io::{self, Write},
    sync::atomic::{AtomicU32, Ordering},
};

use hoplake_format::{
    SectionRef, SegmentRef, VersionRange,
    constants::data_name,
    segment::{SectionIndex, SegmentBuilder},
};
use hoplake_storage::{Store, Upload};
use tokio::runtime::Handle;

use crate::IngestError;

/// Bytes of a segment that are kept before they are sent.
const DRAIN_BYTES: usize = 1 << 20;

/// Names the objects of one load and opens them for writing. Its methods block, and so must not be
/// called from an async task.
#[derive(Debug)]
pub(crate) struct Objects {
    store: Store,
    runtime: Handle,
    base_version: u64,
    writer: String,
    next: AtomicU32,
}

impl Objects {
    pub(crate) fn new(store: Store, runtime: Handle, base_version: u64, writer: String) -> Self {
        Self { store, runtime, base_version, writer, next: AtomicU32::new(0) }
    }

    /// A name that no other object of the graph has or will have.
    /// The version that these objects become part of: the one after their base.
    pub(crate) fn versions(&self) -> VersionRange {
        VersionRange::of(self.base_version + 1)
    }

    pub(crate) fn name(&self, ending: &str) -> String {
        data_name(self.base_version, &self.writer, self.next.fetch_add(1, Ordering::Relaxed), ending)
    }

    /// Begins an object.
    pub(crate) fn create(&self, name: &str) -> ObjectWriter {
        ObjectWriter { upload: Some(self.store.upload(name)), runtime: self.runtime.clone(), length: 0 }
    }
}

/// An object that is being written.
pub(crate) struct ObjectWriter {
    /// Gone once the object is there.
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
            // What fails here the store's own expiry of parts will do.
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

/// A segment that is being written.
pub(crate) struct SegmentWriter {
    name: String,
    object: ObjectWriter,
    pub(crate) builder: SegmentBuilder,
    versions: VersionRange,
}

impl SegmentWriter {
    pub(crate) fn new(objects: &Objects) -> Self {
        let name = objects.name("hls");
        let object = objects.create(&name);
        let builder = SegmentBuilder::new(&name);
        Self { name, object, builder, versions: objects.versions() }
    }

    /// Sends what has gathered, if it is much.
    pub(crate) fn send(&mut self) -> Result<(), IngestError> {
        if self.builder.buffered_bytes() >= DRAIN_BYTES {
            let bytes = self.builder.drain();
            self.object.append(&bytes)?;
        }
        Ok(())
    }

    /// Ends the segment and returns what the manifest says of it, and the index of its sections.
    pub(crate) fn finish(mut self) -> Result<(SegmentRef, Vec<SectionIndex>), IngestError> {
        let end = self.builder.finish()?;
        let bytes = self.builder.drain();
        self.object.append(&bytes)?;
        let (_, checksum) = self.object.finish()?;
        let sections = self.builder.sections().to_vec();
        let of = |section: &SectionIndex| SectionRef { kind: section.kind, versions: Some(self.versions) };
        let sections_of = sections.iter().map(of).collect();
        Ok((SegmentRef { name: self.name, end, sections: sections_of, checksum }, sections))
    }
}
