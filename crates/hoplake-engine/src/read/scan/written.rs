//! For tests: runs that were written to a store in memory, in small blocks, several index blocks and several segments.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use bytes::Bytes;
use hoplake_format::{
    DataNames, Direction, EdgeType, EdgeTypeId, Key, KeyType, LabelId, Manifest, Schema, VersionRange, VertexCount,
    VertexLabel,
    segment::{KeyWriter, ListWriter, SectionKind, SegmentSettings, SegmentWriter},
};
use hoplake_storage::{ReadPool, ReadSettings, Reader, Store};

use crate::{OpenSettings, Snapshot};

pub(crate) const LABEL: LabelId = LabelId(0);
pub(crate) const EDGE_TYPE: EdgeTypeId = EdgeTypeId(0);
pub(crate) const LISTS: SectionKind = SectionKind::Adjacency(EDGE_TYPE, Direction::Out);
pub(crate) const REMOVED: SectionKind = SectionKind::Removed(EDGE_TYPE, Direction::Out);
pub(crate) const KEYS: SectionKind = SectionKind::Keys(LABEL);
pub(crate) const TOMBSTONES: SectionKind = SectionKind::Tombstones(LABEL);

/// Runs of one label and one edge type.
pub(crate) struct RunsFixture(SegmentWriter);

impl RunsFixture {
    /// None yet. Segments end after a few blocks, and index blocks after two.
    pub(crate) fn new() -> Self {
        let settings = SegmentSettings {
            list_block_bytes: 64,
            key_block_bytes: 64,
            index_entries: 2,
            data_bytes: 500,
            span_items: 40,
            ..SegmentSettings::default()
        };
        Self(SegmentWriter::new(&DataNames::new(1, "writer", 0), VersionRange::of(1), settings).unwrap())
    }

    /// The lists of a kind that a version has.
    pub(crate) fn lists<'a>(
        mut self,
        version: u64,
        kind: SectionKind,
        lists: impl IntoIterator<Item = (u64, &'a [u64])>,
    ) -> Self {
        self.0.set_versions(VersionRange::of(version));
        let mut writer = ListWriter::new(kind, false, &self.0).unwrap();
        lists.into_iter().for_each(|(source, targets)| writer.push(source, targets, &mut self.0).unwrap());
        writer.finish(&mut self.0).unwrap();
        self
    }

    /// The keys of a kind that a version has, with their ordinals.
    pub(crate) fn keys(mut self, version: u64, kind: SectionKind, keys: impl IntoIterator<Item = (i64, u64)>) -> Self {
        self.0.set_versions(VersionRange::of(version));
        let mut writer = KeyWriter::new(kind, KeyType::Int64);
        keys.into_iter().for_each(|(key, ordinal)| writer.push(Key::Int64(key), ordinal, &mut self.0).unwrap());
        writer.finish(&mut self.0).unwrap();
        self
    }

    /// A version that has them, in a store of its own.
    pub(crate) async fn open(self) -> Arc<Snapshot> {
        static GRAPHS: AtomicU64 = AtomicU64::new(0);
        let url = format!("memory://scan/{}", GRAPHS.fetch_add(1, Ordering::Relaxed));
        let reader = Reader::new(Store::open(&url).unwrap(), ReadPool::new(ReadSettings::default()).unwrap());
        let Self(mut writer) = self;
        writer.finish().unwrap();
        let mut segments = Vec::new();
        while let Some(segment) = writer.take(1) {
            reader.store().put(&segment.name, Bytes::from(segment.bytes)).await.unwrap();
            segments.extend(segment.ended);
        }
        let label = VertexLabel { name: "vertex".into(), key_type: KeyType::Int64, properties: Vec::new() };
        let edge_type = EdgeType { label: "edge".into(), source: LABEL, target: LABEL, properties: Vec::new() };
        let manifest = Manifest {
            version: 9,
            reset: 1,
            schema: Schema { vertex_labels: vec![label], edge_types: vec![edge_type] },
            vertex_counts: vec![VertexCount { ordinals: 1 << 20, gone: 0 }],
            edge_counts: vec![0],
            degrees: vec![Default::default()],
            segments,
            ..Manifest::default()
        };
        Arc::new(Snapshot::assemble(manifest, reader, OpenSettings::default(), None).unwrap())
    }
}
