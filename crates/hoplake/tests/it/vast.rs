//! A graph of 10¹² edges that exists as a manifest and a formula: what an open, a look-up and a hop read of it.
//!
//! Each vertex has [`DEGREE`] out-neighbours at fixed distances, so that all blocks of lists are alike, and the
//! position of each block follows from its number. Requested blocks are generated, as a load would have written them;
//! what no query should ask for, a filter or a table, ends the test.

use std::{fmt, ops::Range, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, stream};
use hoplake::{
    Cost, Graph, Hop, HopDirection, Key, Manifest, OpenSettings, ReadSettings, Schema, SectionKind, Store, Traversal,
    VersionRange, VertexCount, VertexId,
};
use hoplake_format::{
    Change, Direction, EdgeType, EdgeTypeId, First, KeyType, LabelId, SectionRef, SegmentRef, VertexLabel,
    adjacency::{BLOCK_BYTES_DEFAULT, BlockEncoder},
    checksum::{ObjectSeed, seal_block},
    constants::{HINT_NAME, SEGMENT_MAGIC, manifest_name},
    keys::encode_key_block,
    segment::{
        Firsts, IndexEntry, SectionRoot, SegmentEnd, SegmentRoot,
        index_block::{encode_index_block, ordered},
    },
};
use hoplake_testkit::{Alteration, AlteredStore, WaveStore};
use object_store::{
    GetOptions, GetRange, GetResult, GetResultPayload, ObjectMeta, ObjectStore, ObjectStoreExt, Result,
    memory::InMemory, path::Path,
};

use crate::waves::assert_same;

/// Edges of each vertex, and how far apart their targets are: 16 bits each.
const DEGREE: u64 = 100;
const DISTANCE: u64 = 60_013;

/// Keys that a load puts into a block, blocks under one filter, and index blocks of a segment whose filters fill its
/// end.
const KEYS: u64 = 1_366;
const KEY_BLOCKS: u64 = 191;
const KEY_INDEX_BLOCKS: u64 = 28;
const KEY_SEGMENTS: u64 = 1_370;
/// The bytes of a filter over as many keys; none is read.
const FILTER_BYTES: u64 = 294_976;
/// Keys are this plus the ordinal.
const FIRST_KEY: i64 = 1 << 40;

const VERTICES: u64 = KEYS * KEY_BLOCKS * KEY_INDEX_BLOCKS * KEY_SEGMENTS;

/// Blocks of lists under an index block, and index blocks of a segment: 16 GiB.
const LIST_BLOCKS: u64 = 2_048;
const LIST_INDEX_BLOCKS: u64 = 512;

/// A segment, whose bytes are made when they are asked for.
#[derive(Debug)]
struct Segment {
    name: String,
    kind: SectionKind,
    /// The first block of each index block, from the number of the segment's first on; and the end.
    index: Vec<u64>,
    end: SegmentEnd,
    root: Vec<u8>,
    entries: Vec<IndexEntry>,
    reference: SegmentRef,
}

/// How many sources a block of lists has, and its length.
fn list_block_shape() -> (u64, u64) {
    let mut encoder = BlockEncoder::new(BLOCK_BYTES_DEFAULT).unwrap();
    let mut finished = Vec::new();
    let mut source = 0;
    while finished.is_empty() {
        encoder.push(source, &targets(source), &mut finished).unwrap();
        source += 1;
    }
    let sources = source - 1;
    (sources, list_block(0, sources).len() as u64)
}

fn targets(source: u64) -> Vec<u64> {
    (0..DEGREE).map(|number| source + number * DISTANCE).collect()
}

fn list_block(first: u64, sources: u64) -> Vec<u8> {
    let mut encoder = BlockEncoder::new(64 << 10).unwrap();
    (first..first + sources).for_each(|source| encoder.push(source, &targets(source), &mut Vec::new()).unwrap());
    encoder.finish().unwrap().bytes
}

fn key_block(first: u64) -> Vec<u8> {
    let entry = |ordinal| (Key::Int64(FIRST_KEY + ordinal as i64), ordinal);
    encode_key_block(&(first..first + KEYS).map(entry).collect::<Vec<_>>()).unwrap()
}

/// The sealed length of a block of keys: what grows is the number of its first ordinal.
fn key_block_bytes(block: u64) -> u64 {
    let varint = |number: u64| u64::from((64 - number.leading_zeros()).div_ceil(7));
    2 + varint(block * KEYS + 1) + 6 + (KEYS - 1) + 4
}

/// What all segments are made from.
#[derive(Debug, Clone, Copy)]
struct Shape {
    sources: u64,
    list_bytes: u64,
}

impl Shape {
    /// What a block begins with.
    fn first(self, kind: SectionKind, block: u64) -> u64 {
        if kind.has_keys() { ordered(FIRST_KEY + (block * KEYS) as i64) } else { block * self.sources }
    }

    fn block(self, kind: SectionKind, block: u64) -> Vec<u8> {
        if kind.has_keys() {
            return key_block(block * KEYS);
        }
        let first = block * self.sources;
        let made = list_block(first, self.sources.min(VERTICES - first));
        assert!(made.len() as u64 == self.list_bytes || first + self.sources > VERTICES, "blocks are alike");
        made
    }

    fn sealed_bytes(self, kind: SectionKind, block: u64) -> u64 {
        if kind.has_keys() { key_block_bytes(block) } else { self.list_bytes + 4 }
    }

    /// Where the blocks of an index block begin and the last of them ends.
    fn positions(self, kind: SectionKind, blocks: &Range<u64>, start: u64) -> Vec<u64> {
        let ends = blocks.clone().scan(start, |position, block| {
            *position += self.sealed_bytes(kind, block);
            Some(*position)
        });
        std::iter::once(start).chain(ends).collect()
    }

    fn index_block(self, kind: SectionKind, blocks: &Range<u64>, start: u64) -> Vec<u8> {
        let firsts = Firsts::Numbers(blocks.clone().map(|block| self.first(kind, block)).collect());
        encode_index_block(&firsts, &self.positions(kind, blocks, start))
    }

    /// The segment with these blocks, `per_index` of them under an index block.
    fn segment(self, kind: SectionKind, number: u64, blocks: Range<u64>, per_index: u64) -> Segment {
        let name = format!("data/00000000000000000000-01JDXAAAAAAAAAAAAAAAAAAAAA-{number:06}.hls");
        let mut index: Vec<u64> = blocks.clone().step_by(per_index as usize).collect();
        let begins = blocks.start;
        index.push(blocks.end);
        let mut entries = Vec::new();
        let mut position = 8;
        for pair in index.windows(2) {
            // Blocks of lists are alike, and those of keys few.
            let bytes: u64 = match kind.has_keys() {
                true => (pair[0]..pair[1]).map(key_block_bytes).sum(),
                false => (pair[1] - pair[0]) * (self.list_bytes + 4),
            };
            entries.push(IndexEntry { range: 0..0, blocks: position..position + bytes, filter: None });
            position += bytes;
        }
        let filters_position = position;
        if kind.has_keys() {
            for entry in &mut entries {
                entry.filter = Some(position..position + FILTER_BYTES);
                position += FILTER_BYTES;
            }
        }
        let index_position = position;
        let mut known = None;
        for (entry, pair) in entries.iter_mut().zip(index.windows(2)) {
            // Index blocks of as many blocks of lists have one length.
            let bytes = match known.filter(|(blocks, _)| !kind.has_keys() && *blocks == pair[1] - pair[0]) {
                Some((_, bytes)) => bytes,
                None => self.index_block(kind, &(pair[0]..pair[1]), entry.blocks.start).len() as u64 + 4,
            };
            known = Some((pair[1] - pair[0], bytes));
            entry.range = position..position + bytes;
            position += bytes;
        }
        let root_position = position;
        let root = SegmentRoot {
            sections: vec![SectionRoot {
                kind,
                items: (blocks.end - blocks.start) * if kind.has_keys() { KEYS } else { self.sources * DEGREE },
                block_count: blocks.end - blocks.start,
                firsts: Firsts::Numbers(index[..entries.len()].iter().map(|it| self.first(kind, *it)).collect()),
                index: entries.clone(),
            }],
        };
        let root = root.encode();
        let length = root_position + root.len() as u64;
        let end = SegmentEnd { length, filters_position, index_position, root_position };
        let continues = (begins > 0).then(|| First::Number(self.first(kind, begins)));
        let section = SectionRef { kind, versions: Some(VersionRange { since: 1, until: 1 }), continues };
        let reference = SegmentRef { name: name.clone(), end, sections: vec![section], checksum: 0 };
        Segment { name, kind, index, end, root, entries, reference }
    }

    /// Bytes of a segment.
    fn read(self, segment: &Segment, range: Range<u64>) -> Bytes {
        let Segment { name, kind, index, end, root, entries, .. } = segment;
        let seed = ObjectSeed::of(name);
        let mut out = Vec::new();
        let mut add = |at: u64, bytes: &[u8]| {
            let from = range.start.max(at);
            let until = range.end.min(at + bytes.len() as u64);
            if from < until {
                out.extend_from_slice(&bytes[(from - at) as usize..(until - at) as usize]);
            }
        };
        let touches = |it: &Range<u64>| it.start < range.end && range.start < it.end;
        let sealed = |position, payload: &[u8]| {
            let mut sealed = Vec::new();
            seal_block(seed, position, payload, &mut sealed);
            sealed
        };
        add(0, &SEGMENT_MAGIC);
        for (entry, pair) in entries.iter().zip(index.windows(2)).filter(|(entry, _)| touches(&entry.blocks)) {
            let positions = self.positions(*kind, &(pair[0]..pair[1]), entry.blocks.start);
            for (block, range) in (pair[0]..).zip(positions.windows(2)).filter(|(_, it)| touches(&(it[0]..it[1]))) {
                add(range[0], &sealed(range[0], &self.block(*kind, block)));
            }
        }
        assert!(!touches(&(end.filters_position..end.index_position)), "a filter is read of {name}");
        for (entry, pair) in entries.iter().zip(index.windows(2)).filter(|(entry, _)| touches(&entry.range)) {
            let payload = self.index_block(*kind, &(pair[0]..pair[1]), entry.blocks.start);
            add(entry.range.start, &sealed(entry.range.start, &payload));
        }
        add(end.root_position, root);
        assert_eq!(out.len() as u64, range.end - range.start, "{range:?} of {name}");
        out.into()
    }
}

/// The store of such a graph.
struct Vast {
    manifests: InMemory,
    shape: Shape,
    segments: Vec<Segment>,
}

impl fmt::Debug for Vast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Vast")
    }
}

#[async_trait]
impl Alteration for Vast {
    fn below(&self) -> &dyn ObjectStore {
        &self.manifests
    }

    async fn get(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        let Some(segment) = self.segments.iter().find(|it| path.as_ref().strip_prefix("g/") == Some(&it.name)) else {
            return self.manifests.get_opts(path, options).await;
        };
        let Some(GetRange::Bounded(range)) = options.range else { panic!("{path} is read completely") };
        let bytes = self.shape.read(segment, range.clone());
        Ok(GetResult {
            payload: GetResultPayload::Stream(stream::once(async { Ok(bytes) }).boxed()),
            meta: ObjectMeta {
                location: path.clone(),
                last_modified: Default::default(),
                size: segment.end.length,
                e_tag: None,
                version: None,
            },
            range,
            attributes: Default::default(),
            extensions: Default::default(),
        })
    }
}

async fn vast() -> (Vast, Manifest, u64) {
    let (sources, list_bytes) = list_block_shape();
    let shape = Shape { sources, list_bytes };
    let mut segments = Vec::new();
    let per_segment = KEY_BLOCKS * KEY_INDEX_BLOCKS;
    for number in 0..KEY_SEGMENTS {
        let blocks = number * per_segment..(number + 1) * per_segment;
        let kind = SectionKind::Keys(LabelId(0));
        segments.push(shape.segment(kind, segments.len() as u64, blocks, KEY_BLOCKS));
    }
    let per_segment = LIST_BLOCKS * LIST_INDEX_BLOCKS;
    // What is left over are vertices without edges.
    let blocks = VERTICES / sources;
    for direction in Direction::ALL {
        for first in (0..blocks).step_by(per_segment as usize) {
            let kind = SectionKind::Adjacency(EdgeTypeId(0), direction);
            let of_segment = first..blocks.min(first + per_segment);
            segments.push(shape.segment(kind, segments.len() as u64, of_segment, LIST_BLOCKS));
        }
    }
    let edges = blocks * sources * DEGREE;
    let manifest = Manifest {
        version: 1,
        reset: 1,
        change: Change { writer: "01JDXAAAAAAAAAAAAAAAAAAAAA".into(), ..Change::default() },
        schema: Schema {
            vertex_labels: vec![VertexLabel { name: "V".into(), key_type: KeyType::Int64, properties: Vec::new() }],
            edge_types: vec![EdgeType {
                label: "e".into(),
                source: LabelId(0),
                target: LabelId(0),
                properties: Vec::new(),
            }],
        },
        // The last ones' targets are vertices, too.
        vertex_counts: vec![VertexCount { ordinals: VERTICES + DEGREE * DISTANCE, gone: 0 }],
        edge_counts: vec![edges],
        degrees: vec![Default::default()],
        segments: segments.iter().map(|segment| segment.reference.clone()).collect(),
        ..Manifest::default()
    };
    let manifests = InMemory::new();
    let bytes = Bytes::from(manifest.encode());
    for name in [HINT_NAME.to_owned(), manifest_name(1)] {
        manifests.put(&Path::from(format!("g/{name}")), bytes.clone().into()).await.unwrap();
    }
    (Vast { manifests, shape, segments }, manifest, edges)
}

/// What a query cost, which the store has counted, too; and no more of it is to come.
fn counted(store: &WaveStore, cost: Cost) -> (u64, u64, u64) {
    assert_same(store, cost);
    store.reset();
    (cost.waves, cost.requests, cost.store_bytes)
}

#[tokio::test(start_paused = true)]
async fn a_graph_of_ten_to_the_twelfth_edges_is_opened_and_hopped_from() {
    let (vast, manifest, edges) = vast().await;
    assert!((1_000_000_000_000..1_100_000_000_000).contains(&edges), "{edges}");
    let bytes: u64 = manifest.segments.iter().map(|segment| segment.end.length).sum();
    assert!(bytes > 4_000_000_000_000, "{bytes}");
    let manifest_bytes = manifest.encode().len() as u64;
    assert!(manifest_bytes < 400_000, "{manifest_bytes}");
    let (sealed, ends): (_, Vec<SegmentEnd>) =
        (vast.shape.list_bytes + 4, vast.segments.iter().map(|it| it.end).collect());
    let root_bytes = |segment: u64| {
        let end = &ends[(KEY_SEGMENTS + segment) as usize];
        end.length - end.root_position
    };
    let sources = vast.shape.sources;
    let per_segment = vast.shape.sources * LIST_BLOCKS * LIST_INDEX_BLOCKS;
    let index_bytes = vast.segments[KEY_SEGMENTS as usize].entries[0].range.clone();
    let index_bytes = index_bytes.end - index_bytes.start;

    // An open: the manifest, and ends of segments as far as 8 MiB hold them, the shortest first: those of keys.
    let store = WaveStore::new(AlteredStore(vast));
    let read = ReadSettings { full_read_bytes_max: 0, parallel_requests_max: 100_000, ..ReadSettings::default() };
    let settings = OpenSettings { read, ..OpenSettings::default() };
    let graph = Graph::open_with(Store::new(Arc::new(store.clone()), "g".into(), "memory://vast/g"), &settings);
    let graph = graph.await.unwrap();
    let index_of = |end: &SegmentEnd| end.length - end.index_position;
    let mut shortest: Vec<u64> = ends.iter().map(index_of).collect();
    shortest.sort_unstable();
    let mut came = 0;
    let mut came_bytes = 0;
    while came_bytes + shortest[came] <= settings.index_bytes_max {
        came_bytes += shortest[came];
        came += 1;
    }
    let (waves, requests, read) = counted(&store, graph.open_cost());
    // The hint, whether there is a newer version, and the ends.
    assert_eq!((waves, requests, read), (2, 2 + came as u64, manifest_bytes + came_bytes));
    assert!(read < 9 << 20, "{read}");

    // A key whose segment did not come: its end, which is short, and the block.
    let ordinal = VERTICES - 12_345;
    let mut query = graph.query();
    let vertex = query.vertex("V", FIRST_KEY + ordinal as i64).await.unwrap().unwrap();
    assert_eq!(vertex, VertexId::new(LabelId(0), ordinal).unwrap());
    let end = index_of(&ends[KEY_SEGMENTS as usize - 1]);
    assert_eq!(counted(&store, query.cost()), (2, 2, end + key_block_bytes(ordinal / KEYS)));
    assert!(end < 40_000, "{end}");
    // Another key of that segment: a block.
    let mut query = graph.query();
    query.vertex("V", FIRST_KEY + (ordinal - 1_000_000) as i64).await.unwrap().unwrap();
    assert_eq!(counted(&store, query.cost()), (1, 1, key_block_bytes((ordinal - 1_000_000) / KEYS)));

    // A hop with only the manifest in memory: root, index block, block.
    let hop = Hop::along(HopDirection::Out, "e");
    let neighbours = async |vertex: VertexId| {
        let mut query = graph.query();
        let edges = query.neighbors(&[vertex], &hop).await.unwrap();
        let found: Vec<u64> = edges.iter().map(|edge| edge.to.ordinal()).collect();
        assert_eq!(found, targets(vertex.ordinal()));
        query.cost()
    };
    let at = |ordinal| VertexId::new(LabelId(0), ordinal).unwrap();
    let start = 5 * per_segment + 1_000;
    let cost = neighbours(at(start)).await;
    assert_eq!(counted(&store, cost), (3, 3, root_bytes(5) + index_bytes + sealed));
    assert!(root_bytes(5) < 8_000 && index_bytes < 20_000, "{} {index_bytes}", root_bytes(5));
    // From another vertex below the same index block, and from one below another.
    let cost = neighbours(at(start + sources)).await;
    assert_eq!(counted(&store, cost), (1, 1, sealed));
    let cost = neighbours(at(start + sources * LIST_BLOCKS)).await;
    assert_eq!(counted(&store, cost), (2, 2, index_bytes + sealed));
    // From the first vertex below an index block, whose list could have begun below the one before: both index blocks,
    // which lie side by side, but no other block.
    let cost = neighbours(at(5 * per_segment + 7 * sources * LIST_BLOCKS)).await;
    assert_eq!(counted(&store, cost), (2, 2, 2 * index_bytes + sealed));
    // Likewise from the first vertex of a segment: two roots, two index blocks, one block.
    let cost = neighbours(at(8 * per_segment)).await;
    assert_eq!(counted(&store, cost), (3, 5, root_bytes(7) + root_bytes(8) + 2 * index_bytes + sealed));
    // From the last ones.
    neighbours(at(8 * per_segment - 1)).await;
    neighbours(at(per_segment + sources * LIST_BLOCKS - 1)).await;
    store.reset();

    // Two hops, the second from a hundred vertices that lie in one or two segments: each wave once.
    let far = 40 * per_segment + 77;
    let traversal = Traversal { starts: vec![at(far)], hops: vec![hop.clone(); 2], ..Traversal::default() };
    let mut query = graph.query();
    let reached = query.traverse(traversal).await.unwrap();
    let mut expected: Vec<u64> = targets(far).into_iter().flat_map(targets).collect();
    expected.sort_unstable();
    expected.dedup();
    let found: Vec<u64> = reached.last().vertices().map(|vertex| vertex.ordinal()).collect();
    assert_eq!(found, expected);
    let (waves, requests, read) = counted(&store, query.cost());
    // The root and an index block with the first hop; the other index blocks with the second.
    assert_eq!(waves, 5);
    assert!(requests <= 250 && read < 150 * (sealed + index_bytes), "{requests} requests, {read} bytes");
}
