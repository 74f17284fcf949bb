//! Writes a segment, block by block.

use super::{
    Firsts, SectionKind, SegmentEnd,
    index_block::{INDEX_BLOCK_ENTRIES_MAX, encode_index_block, ordered},
    root::{IndexEntry, SectionRoot, SegmentRoot},
};
use crate::{
    FormatError, KeyType,
    adjacency::{BLOCK_BYTES, BLOCK_BYTES_DEFAULT},
    checksum::{ObjectSeed, seal_block},
    constants::SEGMENT_MAGIC,
    filter::{FILTER_KEYS_MAX, encode_filter},
    keys::Key,
};

/// A look-up of many keys reads and decodes entire blocks of keys.
const KEY_BLOCK_BYTES_MAX: usize = 64 << 10;

/// When blocks, index blocks and segments end. Readers take any: these decide what a request reads, what a writer keeps
/// in memory, and what a first use of a segment reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentSettings {
    /// Bytes of a block of lists, at most. Default 16 KiB.
    pub list_block_bytes: usize,
    /// Bytes of a block of keys, about. Default 4 KiB: a look-up reads one, and searches it from the front.
    pub key_block_bytes: usize,
    /// Blocks whose entries an index block has. Default 2,048, the most.
    pub index_entries: usize,
    /// Items of a filter, at which an index block ends, too. Default 2¹⁸, the most.
    pub filter_items: usize,
    /// The maximum of a segment's filters and index blocks, which are in memory until its end: a section then continues
    /// in the next segment. Default 8 MiB.
    pub tail_bytes: usize,
    /// Blocks of a segment. Default 64 GiB: an object ends at some 84 GB, 10,000 parts of 8 MiB.
    pub data_bytes: u64,
    /// Keys, or edges, after which a load goes on in other objects, with the next key or list. Default 2²⁶. So a span of them can be written without
    /// those before it, and the objects are the same.
    pub span_items: u64,
}

impl SegmentSettings {
    /// The default, but for the size of blocks of lists.
    pub fn with_list_blocks(list_block_bytes: usize) -> Self {
        Self { list_block_bytes, ..Self::default() }
    }

    /// Whether readers can read what is written so.
    ///
    /// # Errors
    /// [`FormatError::Invalid`] with what is out of its bounds.
    pub fn validate(&self) -> Result<(), FormatError> {
        let bounds = [
            ("bytes of a block of lists", self.list_block_bytes, BLOCK_BYTES.start..=BLOCK_BYTES.end - 1),
            ("bytes of a block of keys", self.key_block_bytes, 1..=KEY_BLOCK_BYTES_MAX),
            ("entries of an index block", self.index_entries, 1..=INDEX_BLOCK_ENTRIES_MAX),
            ("items of a filter", self.filter_items, 1..=FILTER_KEYS_MAX),
        ];
        for (what, value, allowed) in bounds {
            if !allowed.contains(&value) {
                let (least, most) = allowed.into_inner();
                return Err(FormatError::Invalid(format!("{what}: from {least} to {most}, not {value}")));
            }
        }
        Ok(())
    }
}

impl Default for SegmentSettings {
    fn default() -> Self {
        Self {
            list_block_bytes: BLOCK_BYTES_DEFAULT,
            key_block_bytes: 4 << 10,
            index_entries: INDEX_BLOCK_ENTRIES_MAX,
            filter_items: FILTER_KEYS_MAX,
            tail_bytes: 8 << 20,
            data_bytes: 64 << 30,
            span_items: 1 << 26,
        }
    }
}

/// Writes a segment, block by block, into a buffer that the caller empties as it likes.
///
/// A block or section that is added out of order is a mistake of the program and panics.
#[derive(Debug)]
pub struct SegmentBuilder {
    settings: SegmentSettings,
    seed: ObjectSeed,
    out: Vec<u8>,
    drained: u64,
    root: SegmentRoot,
    /// Of each index block that is done: its payload, and the filter.
    done: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    tail_bytes: usize,
    open: Option<OpenIndex>,
    last_key: Option<Key>,
}

/// The entries of blocks that no index block has yet.
#[derive(Debug)]
struct OpenIndex {
    firsts: Firsts,
    positions: Vec<u64>,
    hashes: Vec<u64>,
}

impl OpenIndex {
    fn new(firsts: Firsts, position: u64) -> Self {
        Self { firsts, positions: vec![position], hashes: Vec::new() }
    }

    fn blocks(&self) -> usize {
        self.positions.len() - 1
    }
}

impl SegmentBuilder {
    /// Begins the segment called `name`.
    pub fn new(name: &str, settings: SegmentSettings) -> Self {
        Self {
            settings,
            seed: ObjectSeed::of(name),
            out: SEGMENT_MAGIC.to_vec(),
            drained: 0,
            root: SegmentRoot::default(),
            done: Vec::new(),
            tail_bytes: 0,
            open: None,
            last_key: None,
        }
    }

    /// Bytes written so far, drained or not.
    pub fn position(&self) -> u64 {
        self.drained + self.out.len() as u64
    }

    /// Bytes written and not yet drained.
    pub fn buffered_bytes(&self) -> usize {
        self.out.len()
    }

    /// Takes what is buffered.
    pub fn drain(&mut self) -> Vec<u8> {
        self.drained += self.out.len() as u64;
        std::mem::take(&mut self.out)
    }

    /// Whether the next item should start another segment.
    pub fn is_full(&self) -> bool {
        // What the open index block will take: 8 bytes a block, and 9 bits a key in a filter.
        let open = self.open.as_ref().map_or(0, |open| open.positions.len() * 8 + open.hashes.len() * 9 / 8);
        self.tail_bytes + open >= self.settings.tail_bytes || self.position() >= self.settings.data_bytes
    }

    /// Whether the section under way has a block.
    pub(super) fn has_begun(&self) -> bool {
        self.root.sections.last().is_some_and(|section| section.block_count > 0)
    }

    /// Begins a section of neighbour lists, or goes on with one.
    ///
    /// # Errors
    /// [`FormatError::Invalid`] if a filter of the section before cannot be built.
    pub fn begin_lists(&mut self, kind: SectionKind) -> Result<(), FormatError> {
        self.begin(kind, Firsts::Numbers(Vec::new()))
    }

    /// Begins a section of keys, or goes on with one.
    ///
    /// # Errors
    /// [`FormatError::Invalid`] if a filter of the section before cannot be built.
    pub fn begin_keys(&mut self, kind: SectionKind, key_type: KeyType) -> Result<(), FormatError> {
        let firsts = match key_type {
            KeyType::Int64 => Firsts::Numbers(Vec::new()),
            KeyType::String => Firsts::Texts(Vec::new()),
        };
        self.begin(kind, firsts)
    }

    fn begin(&mut self, kind: SectionKind, firsts: Firsts) -> Result<(), FormatError> {
        self.end_index()?;
        // Keys ascend within a section only.
        self.last_key = None;
        self.root.sections.push(SectionRoot {
            kind,
            items: 0,
            block_count: 0,
            firsts: firsts.clone(),
            index: Vec::new(),
        });
        self.open = Some(OpenIndex::new(firsts, self.position()));
        Ok(())
    }

    /// Adds sources to the filter of a section of lists, each before the block that it begins in. A section has no
    /// filter if none are added: most vertices of a graph are sources in the sorted run that was loaded.
    ///
    /// # Errors
    /// [`FormatError::Invalid`] if a filter cannot be built.
    pub fn filter_sources(&mut self, sources: &[u64]) -> Result<(), FormatError> {
        self.make_room(sources.len())?;
        self.open().hashes.extend(sources.iter().map(|source| super::hash_of_source(*source)));
        Ok(())
    }

    /// Adds a block of neighbour lists that begins with `first_source`.
    ///
    /// # Errors
    /// [`FormatError::Invalid`] if a filter cannot be built.
    pub fn adjacency_block(&mut self, first_source: u64, edges: u64, payload: &[u8]) -> Result<(), FormatError> {
        match &mut self.open().firsts {
            Firsts::Numbers(firsts) => {
                assert!(firsts.last().is_none_or(|last| *last <= first_source), "sources ascend");
                firsts.push(first_source);
            }
            Firsts::Texts(_) => panic!("a section of lists has begun"),
        }
        self.push_block(edges, payload)
    }

    /// Adds a block of keys, which [`encode_key_block`](crate::keys::encode_key_block) made of `entries`.
    ///
    /// # Errors
    /// [`FormatError::Invalid`] if it has no keys, or others than the section, or a filter cannot be built.
    pub fn key_block(&mut self, entries: &[(Key, u64)], payload: &[u8]) -> Result<(), FormatError> {
        let (Some((first, _)), Some((last, _))) = (entries.first(), entries.last()) else {
            return Err(FormatError::Invalid("a key block holds at least one key".into()));
        };
        self.make_room(entries.len())?;
        let before = self.last_key.replace(last.clone());
        match (&mut self.open().firsts, first, before) {
            (Firsts::Numbers(firsts), Key::Int64(first), _) => firsts.push(ordered(*first)),
            (Firsts::Texts(firsts), Key::String(first), Some(Key::String(before))) => {
                // At most as long as the key: an index block of string keys is mostly text.
                firsts.push(separator(&before, first));
            }
            (Firsts::Texts(firsts), Key::String(first), _) => firsts.push(first.clone()),
            _ => return Err(FormatError::Invalid("a key block is not of its section's type".into())),
        }
        // Items of a property index are sought by their value, which a filter over items does not know.
        let filtered = self.root.sections.last().is_some_and(|section| !section.kind.has_values());
        if filtered {
            self.open().hashes.extend(entries.iter().map(|(key, _)| key.hash()));
        }
        self.push_block(entries.len() as u64, payload)
    }

    fn open(&mut self) -> &mut OpenIndex {
        self.open.as_mut().expect("a section has begun")
    }

    /// Ends the index block if its filter has no room for some more items.
    fn make_room(&mut self, items: usize) -> Result<(), FormatError> {
        let filter_items = self.settings.filter_items;
        let open = self.open();
        if open.blocks() > 0 && open.hashes.len() + items > filter_items { self.end_index() } else { Ok(()) }
    }

    fn push_block(&mut self, items: u64, payload: &[u8]) -> Result<(), FormatError> {
        let position = self.position();
        seal_block(self.seed, position, payload, &mut self.out);
        let end = self.position();
        let section = self.root.sections.last_mut().expect("a section has begun");
        section.items += items;
        section.block_count += 1;
        let index_entries = self.settings.index_entries;
        let open = self.open();
        open.positions.push(end);
        if open.blocks() == index_entries { self.end_index() } else { Ok(()) }
    }

    /// Ends the index block under way, if it has entries; the section goes on.
    fn end_index(&mut self) -> Result<(), FormatError> {
        let Some(mut open) = self.open.take() else { return Ok(()) };
        let section = self.root.sections.last_mut().expect("a section has begun");
        let next = match &section.firsts {
            Firsts::Numbers(_) => Firsts::Numbers(Vec::new()),
            Firsts::Texts(_) => Firsts::Texts(Vec::new()),
        };
        let end = open.positions[open.blocks()];
        if open.blocks() > 0 {
            match (&mut section.firsts, &open.firsts) {
                (Firsts::Numbers(all), Firsts::Numbers(these)) => all.push(these[0]),
                (Firsts::Texts(all), Firsts::Texts(these)) => all.push(these[0].clone()),
                _ => panic!("a section has first items of one kind"),
            }
            let filter = match open.hashes.is_empty() {
                true => None,
                false => {
                    // Two keys of one hash would make the construction fail; one of them is enough.
                    open.hashes.sort_unstable();
                    open.hashes.dedup();
                    Some(encode_filter(&open.hashes)?)
                }
            };
            let payload = encode_index_block(&open.firsts, &open.positions);
            self.tail_bytes += payload.len() + filter.as_ref().map_or(0, Vec::len);
            // Where both are is known at the end.
            section.index.push(IndexEntry { range: 0..0, blocks: open.positions[0]..end, filter: None });
            self.done.push((payload, filter));
        }
        self.open = Some(OpenIndex::new(next, end));
        Ok(())
    }

    /// Ends the segment: filters, index blocks and root follow in the buffer.
    ///
    /// # Errors
    /// [`FormatError::Invalid`] if a filter cannot be built.
    pub fn finish(&mut self) -> Result<SegmentEnd, FormatError> {
        self.end_index()?;
        self.open = None;
        let done = std::mem::take(&mut self.done);
        let filters_position = self.position();
        let mut filters = Vec::with_capacity(done.len());
        for (_, filter) in &done {
            // Filters before index blocks: an open reads from the index blocks to the end in one range, without the filters.
            filters.push(filter.as_ref().map(|filter| self.seal(filter)));
        }
        let index_position = self.position();
        let ranges: Vec<_> = done.iter().map(|(payload, _)| self.seal(payload)).collect();
        let entries = self.root.sections.iter_mut().flat_map(|section| &mut section.index);
        for ((entry, range), filter) in entries.zip(ranges).zip(filters) {
            entry.range = range;
            entry.filter = filter;
        }
        let root_position = self.position();
        let root = self.root.encode();
        self.out.extend_from_slice(&root);
        Ok(SegmentEnd { length: self.position(), filters_position, index_position, root_position })
    }

    fn seal(&mut self, payload: &[u8]) -> std::ops::Range<u64> {
        let position = self.position();
        seal_block(self.seed, position, payload, &mut self.out);
        position..self.position()
    }

    /// The bytes so far; complete once the segment has ended.
    pub fn root(&self) -> &SegmentRoot {
        &self.root
    }
}

/// The shortest prefix of `first` that is greater than `before`, cut at a character boundary.
fn separator(before: &str, first: &str) -> String {
    // One byte after the shared prefix makes it greater than `before`.
    let shared = before.bytes().zip(first.bytes()).take_while(|(a, b)| a == b).count();
    let end = (shared + 1..first.len()).find(|end| first.is_char_boundary(*end)).unwrap_or(first.len());
    first[..end].to_owned()
}
