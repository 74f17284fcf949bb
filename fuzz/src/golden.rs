//! The graph of the golden files: as it is, as seeds, and forged.
//!
//! A forged graph has other bytes in blocks, index blocks, roots, pages and manifests, and all its checksums are right: what lies behind
//! a checksum must not trust it.

use std::{collections::BTreeMap, fs, ops::Range, path::Path, sync::Arc};

use arbitrary::Arbitrary;
use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use hoplake::{OpenSettings, ReadSettings, RetrySettings, Store};
use hoplake_format::{
    Manifest, SegmentRef, TableRef,
    checksum::{ObjectSeed, block_checksum},
    constants::{HINT_NAME, MANIFEST_FOLDER, MANIFEST_MAGIC, manifest_name, manifest_version},
    segment::{SegmentEnd, decode_root},
};
use object_store::{ObjectStoreExt, memory::InMemory, path::Path as ObjectPath};
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaDataReader};

/// Bytes behind a block, and behind the message of a root.
const CHECKSUM: u64 = 4;
const TRAILER: u64 = 16;
/// Bytes before the message of a manifest, and behind it.
const MANIFEST_HEAD: usize = 16;
const MANIFEST_END: usize = 8;

type Objects = BTreeMap<String, Vec<u8>>;

/// All objects, by name below the prefix of the graph.
pub fn objects() -> Objects {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/hoplake/tests/golden/v4/graph");
    let mut objects = Objects::new();
    for folder in ["", "data/", "manifest/"] {
        for entry in fs::read_dir(root.join(folder)).expect("golden files are there") {
            let entry = entry.expect("a folder can be read");
            if entry.path().is_file() {
                let name = format!("{folder}{}", entry.file_name().to_string_lossy());
                objects.insert(name, fs::read(entry.path()).expect("a file can be read"));
            }
        }
    }
    objects
}

/// The messages of all manifests.
pub fn manifests() -> Vec<Vec<u8>> {
    let manifests = objects().into_iter().filter(|(name, _)| name.starts_with(MANIFEST_FOLDER));
    manifests.map(|(_, bytes)| bytes[MANIFEST_HEAD..bytes.len() - MANIFEST_END].to_vec()).collect()
}

/// The ends of all segments, from their index blocks on.
pub fn segment_ends() -> Vec<(SegmentEnd, Vec<u8>)> {
    let (objects, manifest) = newest();
    let tail = |segment: &SegmentRef| {
        let from = segment.end.index_position as usize;
        let until = segment.end.length as usize;
        (segment.end, objects[&segment.name][from..until].to_vec())
    };
    manifest.segments.iter().map(tail).collect()
}

/// The payloads of all index blocks, each with where its blocks are.
pub fn index_blocks() -> Vec<(Range<u64>, Vec<u8>)> {
    let (objects, manifest) = newest();
    let mut blocks = Vec::new();
    for segment in &manifest.segments {
        let object = &objects[&segment.name][..segment.end.length as usize];
        let root = decode_root(object, &segment.end).expect("golden files are whole");
        blocks.extend(root.sections.iter().flat_map(|section| &section.index).map(|entry| {
            let payload = &object[entry.range.start as usize..(entry.range.end - CHECKSUM) as usize];
            (entry.blocks.clone(), payload.to_vec())
        }));
    }
    blocks
}

/// All objects, and the newest manifest.
pub fn newest() -> (Objects, Manifest) {
    let objects = objects();
    let name = objects.keys().filter(|name| manifest_version(name).is_some()).max().expect("there is a manifest");
    let manifest = Manifest::decode(&objects[name]).expect("golden files are whole");
    (objects, manifest)
}

/// A store in memory that holds these objects.
pub async fn store_of(objects: &Objects) -> Store {
    let inner = InMemory::new();
    for (name, bytes) in objects {
        let bytes = Bytes::copy_from_slice(bytes);
        inner.put(&ObjectPath::from(format!("g/{name}")), bytes.into()).await.expect("memory takes all");
    }
    Store::new(Arc::new(inner), "g".into(), "memory://fuzz/g")
}

/// Without second tries of what stays as it is, and with a cache that is made anew quickly.
pub fn settings() -> OpenSettings {
    let retry = RetrySettings { attempts_max: 1, backoff_ms: 0, ..Default::default() };
    OpenSettings { read: ReadSettings { cache_bytes_max: 1 << 16, retry, ..Default::default() }, ..Default::default() }
}

/// One byte, or a few, to be other than they are.
#[derive(Debug, Clone, Copy, Arbitrary)]
pub struct Edit {
    region: u16,
    at: u16,
    change: Change,
}

#[derive(Debug, Clone, Copy, Arbitrary)]
enum Change {
    Set(u8),
    Flip(u8),
    Add(i8),
    Bytes([u8; 4]),
    /// A large number of variable length.
    Large,
}

impl Edit {
    fn apply(self, bytes: &mut [u8]) {
        let at = usize::from(self.at) % bytes.len();
        let bytes = &mut bytes[at..];
        match self.change {
            Change::Set(byte) => bytes[0] = byte,
            Change::Flip(bit) => bytes[0] ^= 1 << (bit % 8),
            Change::Add(more) => bytes[0] = bytes[0].wrapping_add_signed(more),
            Change::Bytes(these) => bytes.iter_mut().zip(these).for_each(|(byte, it)| *byte = it),
            Change::Large => {
                bytes.iter_mut().zip([0xfe, 0xff, 0xff, 0xff, 0x0f]).for_each(|(byte, it)| *byte = it);
            }
        }
    }
}

/// What a checksum is over.
struct Region {
    object: String,
    range: Range<usize>,
}

/// The golden graph, with all that is needed to forge it.
pub struct Forge {
    objects: Objects,
    manifest: Manifest,
    regions: Vec<Region>,
    /// By segment: the ranges of sealed blocks, index blocks and filters.
    sealed: Vec<Vec<Range<u64>>>,
    /// By table: the ranges of its pages, within it.
    pages: Vec<Vec<Range<usize>>>,
}

impl Default for Forge {
    fn default() -> Self {
        let (objects, manifest) = newest();
        let sealed: Vec<_> = manifest.segments.iter().map(|it| sealed_ranges(it, &objects[&it.name])).collect();
        let pages: Vec<_> = manifest.tables.iter().map(|it| page_ranges(it, &objects[&it.name])).collect();
        let mut regions = Vec::new();
        let mut add = |object: &str, range| regions.push(Region { object: object.to_owned(), range });
        for (segment, sealed) in manifest.segments.iter().zip(&sealed) {
            for range in sealed {
                add(&segment.name, range.start as usize..(range.end - CHECKSUM) as usize);
            }
            add(&segment.name, segment.end.root_position as usize..(segment.end.length - TRAILER) as usize);
        }
        for (table, pages) in manifest.tables.iter().zip(&pages) {
            let at = table.position as usize;
            for page in pages {
                add(&table.name, at + page.start..at + page.end);
            }
            add(&table.name, at + table.tail_position as usize..at + table.length as usize);
        }
        Self { objects, manifest, regions, sealed, pages }
    }
}

impl Forge {
    /// The objects after these edits, with all checksums right. A region beyond the last is the newest manifest.
    pub fn forged(&self, edits: &[Edit]) -> Objects {
        let mut objects = self.objects.clone();
        for edit in edits {
            if let Some(region) = self.regions.get(usize::from(edit.region)) {
                let bytes = objects.get_mut(&region.object).expect("regions are of objects");
                edit.apply(&mut bytes[region.range.clone()]);
            }
        }
        let mut manifest = self.manifest.clone();
        for (segment, sealed) in manifest.segments.iter_mut().zip(&self.sealed) {
            seal_segment(segment, sealed, objects.get_mut(&segment.name).expect("segments are objects"));
        }
        for (table, pages) in manifest.tables.iter_mut().zip(&self.pages) {
            let original = &self.objects[&table.name];
            seal_table(table, pages, original, objects.get_mut(&table.name).expect("tables are objects"));
        }
        let mut bytes = manifest.encode();
        let end = bytes.len() - MANIFEST_END;
        for edit in edits.iter().filter(|edit| usize::from(edit.region) >= self.regions.len()) {
            edit.apply(&mut bytes[MANIFEST_HEAD..end]);
        }
        let checksum = crc32c::crc32c(&bytes[MANIFEST_HEAD..end]).to_le_bytes();
        bytes[MANIFEST_MAGIC.len() + 4..MANIFEST_HEAD].copy_from_slice(&checksum);
        objects.insert(HINT_NAME.into(), bytes.clone());
        objects.insert(manifest_name(self.manifest.version), bytes);
        objects
    }
}

fn sealed_ranges(segment: &SegmentRef, object: &[u8]) -> Vec<Range<u64>> {
    let object = Bytes::copy_from_slice(&object[..segment.end.length as usize]);
    let root = decode_root(&object, &segment.end).expect("golden files are whole");
    let ranges = root.sections.iter().flat_map(|section| {
        let index = section.index_blocks(&segment.name, &segment.end, &object).expect("golden files are whole");
        let blocks = index.iter().flat_map(|index| (0..index.len()).map(|block| index.range(block)));
        let entries = section.index.iter().flat_map(|entry| [Some(entry.range.clone()), entry.filter.clone()]);
        blocks.chain(entries.flatten()).collect::<Vec<_>>()
    });
    ranges.collect()
}

fn page_ranges(table: &TableRef, object: &[u8]) -> Vec<Range<usize>> {
    let bytes = Bytes::copy_from_slice(&object[table.position as usize..][..table.length as usize]);
    let reader = ParquetMetaDataReader::new().with_offset_index_policy(PageIndexPolicy::Required);
    let metadata = reader.parse_and_finish(&bytes).expect("golden files are whole");
    let index = metadata.page_index().expect("tables have an index of their pages");
    let mut pages = Vec::new();
    for (group, chunk) in metadata.row_groups().iter().enumerate() {
        for column in 0..chunk.num_columns() {
            let locations = index.offset_index(group, column).expect("every column has pages").page_locations();
            pages.extend(locations.iter().map(|page| {
                let at = page.offset as usize;
                at..at + page.compressed_page_size as usize
            }));
        }
    }
    pages
}

fn seal_segment(segment: &mut SegmentRef, sealed: &[Range<u64>], object: &mut [u8]) {
    let seed = ObjectSeed::of(&segment.name);
    for range in sealed {
        let from = range.start as usize;
        let at = (range.end - CHECKSUM) as usize;
        let checksum = block_checksum(seed, range.start, &object[from..at]).to_le_bytes();
        object[at..range.end as usize].copy_from_slice(&checksum);
    }
    let from = segment.end.root_position as usize;
    let length = segment.end.length as usize;
    let at = length - TRAILER as usize;
    let checksum = crc32c::crc32c(&object[from..at]).to_le_bytes();
    object[at + 4..at + 8].copy_from_slice(&checksum);
    segment.checksum = crc32c::crc32c(&object[..length]);
}

fn checksums(pages: &[Range<usize>], table: &[u8]) -> String {
    let checksums = pages.iter().flat_map(|page| crc32c::crc32c(&table[page.clone()]).to_le_bytes());
    BASE64_STANDARD.encode(checksums.collect::<Vec<_>>())
}

fn seal_table(table: &mut TableRef, pages: &[Range<usize>], original: &[u8], object: &mut [u8]) {
    let within = table.position as usize..(table.position + table.length) as usize;
    let before = checksums(pages, &original[within.clone()]);
    let after = checksums(pages, &object[within.clone()]);
    let bytes = &mut object[within];
    let tail = table.tail_position as usize;
    // Where the end was forged, too, the checksums may be no more where they were.
    if !before.is_empty()
        && let Some(at) = bytes[tail..].windows(before.len()).position(|text| text == before.as_bytes())
    {
        bytes[tail + at..][..after.len()].copy_from_slice(after.as_bytes());
    }
    table.tail_checksum = crc32c::crc32c(&bytes[tail..]);
    table.checksum = crc32c::crc32c(bytes);
}
