//! The manifest: one object that names everything of a snapshot.
//!
//! ```text
//! magic 8 | length u32 | CRC-32C u32 | payload (protocol buffer) | magic 8
//! ```
//! It is published once, by creating an object that must not exist. It names every object with its
//! length, checksum and the positions from which it is opened, so that opening probes nothing.
//!
//! Each section and table is a **run**: what some versions changed of one label or edge type. The newest run with
//! an entry for an item (a key, a vertex's row, the edges between two vertices) decides it.

mod messages;
mod queries;
#[cfg(test)]
mod tests;
mod wire;

use std::collections::BTreeMap;

use prost::Message;

use crate::{
    Direction, EdgeTypeId, FormatError, IndexId, KeyType, LabelId, PreparedQueries, PropertyIndex, Schema,
    constants::{FORMAT_VERSION, MANIFEST_MAGIC, REMOVED_MAGIC},
    segment::{SectionKind, SegmentEnd},
};

/// The content of a version slot.
#[derive(Debug, Clone, PartialEq)]
pub enum Slot {
    /// Its manifest.
    Version(Box<Manifest>),
    /// A version tombstone: the version was removed.
    Removed {
        /// The writer of the manifest that was there.
        writer: String,
    },
}

impl Slot {
    /// The version tombstone that replaces a manifest of `writer`. A slow writer learns from it whether the version was
    /// its own, and removes its objects if not: so a version tombstone has a checksum.
    pub fn encode_removed(writer: &str) -> Vec<u8> {
        let checksum = crc32c::crc32c(writer.as_bytes()).to_le_bytes();
        [&REMOVED_MAGIC[..], writer.as_bytes(), &checksum, &REMOVED_MAGIC[..]].concat()
    }

    /// The writer that a version tombstone names, if the bytes are an intact version tombstone.
    fn removed(bytes: &[u8]) -> Option<String> {
        let tombstone = bytes.strip_prefix(&REMOVED_MAGIC)?.strip_suffix(&REMOVED_MAGIC)?;
        let (writer, checksum) = tombstone.split_last_chunk()?;
        (crc32c::crc32c(writer) == u32::from_le_bytes(*checksum)).then(|| String::from_utf8(writer.to_vec()).ok())?
    }

    /// Reads an object.
    ///
    /// # Errors
    /// As [`Manifest::decode`].
    pub fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        match Self::removed(bytes) {
            Some(writer) => Ok(Self::Removed { writer }),
            None => Ok(Self::Version(Box::new(Manifest::decode(bytes)?))),
        }
    }
}

/// A snapshot: its schema, its objects and its numbers.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Manifest {
    /// Its version, from 1.
    pub version: u64,
    /// When it was made, in milliseconds since 1970; not before the version before it.
    pub created_unix_ms: u64,
    /// Its change.
    pub change: Change,
    /// The last version that did not build on the one before it: a load, or a restored version. What was decided on
    /// versions before it no longer holds.
    pub reset: u64,
    /// Up to where the sources that feed the graph have been read, by their names, in their own words.
    pub source_positions: BTreeMap<String, String>,
    /// The last batches that had an idempotency key, by the versions that have them, ascending.
    pub applied: Vec<Applied>,
    /// Writers that take long, whose objects are spared until they are done.
    pub leases: Vec<WriterLease>,
    /// Older versions that can still be opened, ascending; a vacuum removes the others.
    pub history: Vec<VersionRange>,
    /// Names of older versions, which a vacuum spares.
    pub tags: BTreeMap<String, u64>,
    /// Prepared queries. Like tags they are of the graph and not of its content: a load or a restore keeps them.
    pub queries: PreparedQueries,
    /// Labels, edge types and properties.
    pub schema: Schema,
    /// Whether no two vertices have the same key, of whatever label, and all keys are of one type: a key alone is an id then. A change
    /// that makes it false leaves it false until the next load or restore.
    pub unique_keys: bool,
    /// Property indexes, by their numbers.
    pub indexes: Vec<PropertyIndex>,
    /// The number of the next property index: above that of any index since the last load, which begins again at 0.
    pub next_index: u16,
    /// Vertices of each label, by [`LabelId`].
    pub vertex_counts: Vec<VertexCount>,
    /// Edges of each edge type, by [`EdgeTypeId`]; an upper bound if the type has more than one run.
    pub edge_counts: Vec<u64>,
    /// Degrees of each edge type, out and in; of its oldest run.
    pub degrees: Vec<[DegreeSummary; 2]>,
    /// Sections: keys and adjacency.
    pub segments: Vec<SegmentRef>,
    /// Tables: properties.
    pub tables: Vec<TableRef>,
}

/// The change that made a version.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Change {
    /// Its kind.
    pub kind: ChangeKind,
    /// Its writer: a ULID drawn for this change alone, which identifies it.
    pub writer: String,
    /// Why, in the writer's words.
    pub message: String,
    /// What it changed, in numbers.
    pub counts: ChangeCounts,
}

/// The origin of a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ChangeKind {
    /// A load: nothing of the version before is left.
    #[default]
    Load,
    /// A batch of changes.
    Commit,
    /// A compaction merged runs; the graph has the same content.
    Compaction,
    /// Nothing changed: a vacuum let versions go, or a writer that takes long begins or ends.
    Fence,
    /// An older version was made the newest.
    Restore,
    /// A version was given a name, or lost one.
    Tag,
    /// A property index began to be built, was completed or dropped.
    Index,
    /// A prepared query was saved or deleted.
    Query,
}

impl ChangeKind {
    /// One word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Commit => "commit",
            Self::Compaction => "compaction",
            Self::Fence => "fence",
            Self::Restore => "restore",
            Self::Tag => "tag",
            Self::Index => "index",
            Self::Query => "query",
        }
    }
}

/// The counts of a commit's changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChangeCounts {
    /// Vertices that are new.
    pub vertices_added: u64,
    /// Vertices whose row was written anew.
    pub vertices_changed: u64,
    /// Deleted vertices.
    pub vertices_removed: u64,
    /// Edges written, new or not.
    pub edges_written: u64,
    /// Pairs of vertices without edges from then on.
    pub pairs_removed: u64,
}

/// Batches with an idempotency key that a version applied: by it, one that is sent again is known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Applied {
    /// The version.
    pub version: u64,
    /// What the version changed, in numbers.
    pub counts: ChangeCounts,
    /// Their keys, as digests.
    pub requests: Vec<RequestDigest>,
}

/// An idempotency key, as manifests keep it: XXH3 in 128 bits, so that a key of any length takes 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestDigest(pub u128);

impl RequestDigest {
    /// Of a key.
    pub fn of(key: &str) -> Self {
        Self(xxhash_rust::xxh3::xxh3_128(key.as_bytes()))
    }
}

/// A writer that takes long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriterLease {
    /// Its ULID, which is in the names of its objects.
    pub writer: String,
    /// The kind of its change.
    pub kind: ChangeKind,
    /// The version that announced it.
    pub since: u64,
}

/// How many vertices a label has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VertexCount {
    /// Ordinals that were given out: also the next.
    pub ordinals: u64,
    /// Of these, deleted vertices.
    pub gone: u64,
}

impl VertexCount {
    /// Existing vertices.
    pub fn live(&self) -> u64 {
        self.ordinals - self.gone
    }
}

/// The degrees of an edge type in one direction.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DegreeSummary {
    /// The largest degree.
    pub max: u64,
    /// How many vertices have a degree of 1, of 2 to 3, of 4 to 7, and so on.
    pub histogram: Vec<u64>,
}

impl DegreeSummary {
    /// Counts a vertex of this degree; a degree of 0 counts nowhere.
    pub fn add(&mut self, degree: u64) {
        let Some(bucket) = degree.checked_ilog2() else { return };
        let bucket = bucket as usize;
        if self.histogram.len() <= bucket {
            self.histogram.resize(bucket + 1, 0);
        }
        self.histogram[bucket] += 1;
        self.max = self.max.max(degree);
    }

    /// Counts the vertices of another summary, too.
    pub fn merge(&mut self, other: &Self) {
        if self.histogram.len() < other.histogram.len() {
            self.histogram.resize(other.histogram.len(), 0);
        }
        self.histogram.iter_mut().zip(&other.histogram).for_each(|(sum, count)| *sum += count);
        self.max = self.max.max(other.max);
    }

    /// How many vertices have at least one edge.
    pub fn vertices(&self) -> u64 {
        self.histogram.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }
}

/// A graph that was written, for a manifest to name.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BuiltGraph {
    /// Labels, edge types and properties.
    pub schema: Schema,
    /// Whether no two vertices have the same key.
    pub unique_keys: bool,
    /// Vertices of each label.
    pub vertex_counts: Vec<u64>,
    /// Edges of each type.
    pub edge_counts: Vec<u64>,
    /// Degrees of each type, out and in.
    pub degrees: Vec<[DegreeSummary; 2]>,
    /// Property indexes.
    pub indexes: Vec<PropertyIndex>,
    /// Keys, property indexes and adjacency.
    pub segments: Vec<SegmentRef>,
    /// Properties.
    pub tables: Vec<TableRef>,
    /// Bytes of adjacency blocks, with checksums.
    pub adjacency_bytes: u64,
}

/// A span of a load, which was written by itself: what a manifest will say of it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct WrittenSpan {
    /// Its segments.
    pub segments: Vec<SegmentRef>,
    /// Its tables.
    pub tables: Vec<TableRef>,
    /// Edges of each type in the span's direction, and their degrees.
    pub edges: Vec<(EdgeTypeId, u64, DegreeSummary)>,
    /// Bytes of adjacency blocks, with checksums.
    pub adjacency_bytes: u64,
}

/// The versions whose changes a run holds, both included. Those of one label, edge type or property index do not overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VersionRange {
    /// The first.
    pub since: u64,
    /// The last: the larger, the newer the run.
    pub until: u64,
}

impl VersionRange {
    /// One version alone.
    pub fn of(version: u64) -> Self {
        Self { since: version, until: version }
    }

    /// Whether a version is in it.
    pub fn contains(&self, version: u64) -> bool {
        (self.since..=self.until).contains(&version)
    }
}

/// A segment, as a manifest names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentRef {
    /// The name of its object, below the graph's prefix. The segment begins it.
    pub name: String,
    /// Its length and the positions of its filters and index.
    pub end: SegmentEnd,
    /// Its sections, in the order of its index.
    pub sections: Vec<SectionRef>,
    /// CRC-32C of the segment's bytes.
    pub checksum: u32,
}

/// A section, or a piece of one, as a manifest names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SectionRef {
    /// Its content.
    pub kind: SectionKind,
    /// Whose changes; `None` if the object has it but this version does not, because another section replaced it.
    pub versions: Option<VersionRange>,
    /// Its first item, if it continues a section of another segment.
    pub continues: Option<First>,
}

/// The first item of a piece of a section.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum First {
    /// A source, or an integer key as [`ordered`](crate::segment::index_block::ordered) number.
    Number(u64),
    /// A text key, or a separator before it.
    Text(String),
}

/// The owner of the rows of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TableOwner {
    /// Vertices of a label that its run added, by ordinal.
    Vertices(LabelId),
    /// Vertices of a label whose rows its run wrote anew, by the numbers in the run's section of rows.
    Changed(LabelId),
    /// Edges of a type, by their position in its run's adjacency of one direction.
    Edges(EdgeTypeId, Direction),
}

/// A table of properties: a Parquet file whose rows are consecutive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableRef {
    /// The name of its object, below the graph's prefix.
    pub name: String,
    /// Its position in the object; 0 unless it follows a segment.
    pub position: u64,
    /// The owner of its rows.
    pub owner: TableOwner,
    /// Whose changes it holds.
    pub versions: VersionRange,
    /// The ordinal, number or edge position of its first row.
    pub first_row: u64,
    /// How many rows it has.
    pub rows: u64,
    /// Its bytes.
    pub length: u64,
    /// Where in the table its page index and footer begin.
    pub tail_position: u64,
    /// CRC-32C of the bytes from there.
    pub tail_checksum: u32,
    /// CRC-32C of its bytes.
    pub checksum: u32,
}

impl Manifest {
    /// The type of all keys if they are [unique](Self::unique_keys); `None` if they are not, or there are none.
    pub fn unique_key_type(&self) -> Option<KeyType> {
        let mut labels =
            self.schema.vertex_labels.iter().zip(&self.vertex_counts).filter(|(_, count)| count.live() > 0);
        labels.next().filter(|_| self.unique_keys).map(|(label, _)| label.key_type)
    }

    /// The version after this one, with the same content, made by `change` at `now_unix_ms`.
    pub fn next(&self, change: Change, now_unix_ms: u64) -> Self {
        let mut next = Self { change, ..self.clone() };
        next.version += 1;
        // A clock that lags another writer's does not make time go back.
        next.created_unix_ms = now_unix_ms.max(self.created_unix_ms);
        // The version before becomes history; consecutive versions share a range, so that history grows with gaps alone.
        match next.history.last_mut() {
            Some(last) if last.until + 1 == self.version => last.until = self.version,
            _ => next.history.push(VersionRange::of(self.version)),
        }
        next
    }

    /// A property index by its number.
    pub fn index(&self, id: IndexId) -> Option<&PropertyIndex> {
        self.indexes.iter().find(|index| index.id == id)
    }

    /// Takes a property index out, with its sorted runs.
    pub fn drop_index(&mut self, id: IndexId) {
        self.indexes.retain(|index| index.id != id);
        let of_index = |kind| matches!(kind, SectionKind::Values(of) | SectionKind::RemovedValues(of) if of == id);
        for section in self.segments.iter_mut().flat_map(|segment| &mut segment.sections) {
            section.versions = section.versions.filter(|_| !of_index(section.kind));
        }
        // Small tables may follow a segment in its object, and stay.
        self.segments.retain(|segment| segment.sections.iter().any(|section| section.versions.is_some()));
    }

    /// Takes out the property indexes that are being built and whose writers `stay` does not name.
    pub fn drop_unfinished_indexes(&mut self, stay: impl Fn(&str) -> bool) {
        let writer_goes = |index: &&PropertyIndex| index.writer.as_ref().is_some_and(|writer| !stay(writer));
        let gone: Vec<_> = self.indexes.iter().filter(writer_goes).map(|index| index.id).collect();
        gone.into_iter().for_each(|id| self.drop_index(id));
    }

    /// The property indexes of a label, those that are being built included.
    pub fn indexes_of(&self, label: LabelId) -> impl Iterator<Item = &PropertyIndex> {
        self.indexes.iter().filter(move |index| index.label == label)
    }

    /// Whether a version can be opened, as far as this one knows.
    pub fn has_version(&self, version: u64) -> bool {
        version == self.version || self.history.iter().any(|range| range.contains(version))
    }

    /// Its bytes as an object.
    pub fn encode(&self) -> Vec<u8> {
        let payload = messages::ManifestMessage::from(self).encode_to_vec();
        let mut out = MANIFEST_MAGIC.to_vec();
        out.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        out.extend_from_slice(&crc32c::crc32c(&payload).to_le_bytes());
        out.extend_from_slice(&payload);
        out.extend_from_slice(&MANIFEST_MAGIC);
        out
    }

    /// Reads an object.
    ///
    /// # Errors
    /// [`FormatError::Corrupt`] if its checks fail, [`FormatError::Unsupported`] if it is of another version of the
    /// format.
    pub fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        let too_short = || corrupt(format!("{} bytes are too few", bytes.len()));
        let (magic, rest) = bytes.split_first_chunk::<8>().ok_or_else(too_short)?;
        let (length, rest) = rest.split_first_chunk::<4>().ok_or_else(too_short)?;
        let (checksum, rest) = rest.split_first_chunk::<4>().ok_or_else(too_short)?;
        let (payload, end_magic) = rest.split_last_chunk::<8>().ok_or_else(too_short)?;
        if *magic != MANIFEST_MAGIC || *end_magic != MANIFEST_MAGIC {
            return Err(corrupt("it does not begin and end as a manifest does".into()));
        }
        let length = u32::from_le_bytes(*length);
        if length as usize != payload.len() {
            return Err(corrupt(format!("it is {} bytes, but claims {length}", payload.len())));
        }
        if crc32c::crc32c(payload) != u32::from_le_bytes(*checksum) {
            return Err(corrupt("it fails its checksum".into()));
        }
        // A checksum shows that the bytes are as written, not that they make sense: the conversion checks what they claim.
        let message = wire::decode(payload)?;
        message.try_into()
    }

    /// Versions before `version` that can be opened, as far as this one knows, from the newest back; itself is one if
    /// it is before.
    pub fn versions_before(&self, version: u64) -> impl Iterator<Item = u64> {
        let own = (self.version < version).then_some(self.version);
        let older = self.history.iter().rev().flat_map(|range| (range.since..=range.until).rev());
        own.into_iter().chain(older).filter(move |older| *older < version)
    }

    /// The versions of the runs of its content, in no order. Those of property indexes are not: they say again what rows say.
    pub fn content_runs(&self) -> impl Iterator<Item = VersionRange> {
        let sections = self.segments.iter().flat_map(|segment| &segment.sections);
        let sections = sections.filter(|section| !section.kind.has_values());
        let tables = self.tables.iter().map(|table| table.versions);
        sections.filter_map(|section| section.versions).chain(tables)
    }

    /// The bytes of every object it names, as far as it names them.
    pub fn objects(&self) -> BTreeMap<&str, u64> {
        let segments = self.segments.iter().map(|segment| (segment.name.as_str(), segment.end.length));
        let tables = self.tables.iter().map(|table| (table.name.as_str(), table.position + table.length));
        // Small tables follow a segment in its object, which then ends where the last of them does.
        let mut objects = BTreeMap::new();
        for (name, end) in segments.chain(tables) {
            let length: &mut u64 = objects.entry(name).or_default();
            *length = end.max(*length);
        }
        objects
    }
}

fn corrupt(why: String) -> FormatError {
    FormatError::corrupt("manifest", why)
}

fn unsupported(found: String) -> FormatError {
    let supported = format!("format version {FORMAT_VERSION}");
    FormatError::Unsupported { what: "manifest", found, supported }
}
