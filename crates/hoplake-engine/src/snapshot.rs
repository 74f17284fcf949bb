//! An open snapshot: the manifest, the resident indexes and the way to the blocks.
//!
//! Opening takes two waves. The first reads the hint, a copy of some manifest, usually the newest. The
//! second asks whether a newer version exists and, in parallel, reads the ends of the segments that the
//! hint names. Only if the hint is stale or lost does it take more.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, atomic::AtomicBool},
};

use bytes::Bytes;
use futures::future::{BoxFuture, join};
use hoplake_format::{
    Direction, EdgeTypeId, FormatError, Key, LabelId, Manifest, Schema, SectionRef, SegmentRef, Slot, VersionRange,
    segment::{SectionIndex, SectionKind, SegmentEnd, decode_segment_index, hash_of_source},
};
use hoplake_storage::{
    BlockRequest, Branch, Check, Cost, Object, QueryContext, ReadSettings, Reader,
    planted::{Bug, planted},
};
use tokio::sync::OnceCell;

use crate::{EngineError, compaction::Owner, filters::LazyFilter, table::Table, traversal::Hop, versions};

/// How a graph is opened.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenSettings {
    /// The version to open; `None` opens the newest.
    pub version: Option<u64>,
    /// Indexes of blocks come with the open, the shortest first, while they are together at most this many bytes. The index
    /// of another segment is read when it is first touched, which takes a wave, once. Default 8 MiB.
    pub index_bytes_max: u64,
    /// Likewise filters over keys, of the segments whose indexes come. Another filter is read when it pays, which takes no
    /// wave unless one look-up wants more bytes of blocks than it has. Default 1 MiB.
    pub filter_bytes_max: u64,
    /// How blocks are read, by a graph that has caches of its own.
    pub read: ReadSettings,
}

impl Default for OpenSettings {
    fn default() -> Self {
        Self { version: None, index_bytes_max: 8 << 20, filter_bytes_max: 1 << 20, read: ReadSettings::default() }
    }
}

/// One version of a graph, open for reading.
#[derive(Debug)]
pub struct Snapshot {
    manifest: Manifest,
    reader: Reader,
    pub(crate) segments: Vec<Arc<Segment>>,
    /// The sections of each kind, the newest part's first.
    sections: HashMap<SectionKind, Vec<SectionPlace>>,
    pub(crate) tables: Vec<Arc<Table>>,
    settings: OpenSettings,
    open_cost: Cost,
}

/// An object of sections.
#[derive(Debug)]
pub(crate) struct Segment {
    reference: SegmentRef,
    pub(crate) object: Object,
    index: OnceCell<SegmentIndexes>,
    /// For each section, whether all of it is read, or being read, for its being small.
    pub(crate) whole: Vec<AtomicBool>,
}

impl Segment {
    fn new(reference: &SegmentRef, reader: &Reader) -> Self {
        Self {
            reference: reference.clone(),
            object: reader.object(&reference.name),
            index: OnceCell::new(),
            whole: reference.sections.iter().map(|_| AtomicBool::new(false)).collect(),
        }
    }

    /// The name that the manifest gives it.
    pub(crate) fn name(&self) -> &str {
        &self.reference.name
    }

    /// The indexes of its sections, if they are resident.
    pub(crate) fn sections(&self) -> Option<&[SectionIndex]> {
        Some(&self.index.get()?.sections)
    }

    /// The filters of one of its sections, if its index is resident.
    pub(crate) fn filters(&self, section: usize) -> Option<&[LazyFilter]> {
        Some(self.index.get()?.filters.get(section)?.as_slice())
    }
}

#[derive(Debug)]
struct SegmentIndexes {
    sections: Vec<SectionIndex>,
    /// Of each section.
    filters: Vec<Vec<LazyFilter>>,
}

/// Where a section is: which segment, and which of its sections; and whose changes it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SectionPlace {
    segment: usize,
    section: usize,
    pub(crate) versions: VersionRange,
}

/// A section whose index is resident.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Section<'a> {
    pub(crate) object: &'a Object,
    pub(crate) index: &'a SectionIndex,
    pub(crate) filters: &'a [LazyFilter],
}

impl<'a> Section<'a> {
    /// The request for one of its blocks.
    pub(crate) fn request(&self, block: usize) -> BlockRequest<'a> {
        BlockRequest { object: self.object, range: self.index.block_range(block), check: Check::Sealed }
    }

    /// The key block that may hold `key`; `None` is certain.
    pub(crate) fn block_that_may_hold(&self, key: &Key) -> Option<usize> {
        let block = self.index.block_of_key(key)?;
        let filter = self.index.filter_of_block(block).and_then(|filter| self.filters.get(filter)?.get());
        let hash = if planted(Bug::FilterLies) { !key.hash() } else { key.hash() };
        filter.is_none_or(|filter| filter.may_contain(hash)).then_some(block)
    }

    /// Whether the section may have a list of `source`; `false` is certain.
    pub(crate) fn may_have_source(&self, source: u64) -> bool {
        let blocks = self.index.blocks_of_source(source);
        let filter = self.index.filter_of_block(blocks.start).and_then(|filter| self.filters.get(filter)?.get());
        !blocks.is_empty() && filter.is_none_or(|filter| filter.may_contain(hash_of_source(source)))
    }
}

impl Snapshot {
    /// Opens a graph.
    ///
    /// # Errors
    /// [`EngineError::NotFound`] if there is no graph or no such version; the store's; [`EngineError::Format`] if
    /// a manifest or an index is damaged.
    pub fn open<'a>(reader: Reader, settings: &'a OpenSettings) -> BoxFuture<'a, Result<Self, EngineError>> {
        Box::pin(async move {
            let mut branch = QueryContext::new().branch();
            let (manifest, tails) = match settings.version {
                Some(version) => {
                    let manifest = versions::read(&reader, version, &mut branch).await?;
                    let tails = read_tails(&reader, &manifest, settings, &mut branch).await?;
                    (manifest, tails)
                }
                None => {
                    let mut opened = open_newest(&reader, settings, &mut branch).await;
                    let mut tried = 0;
                    // A vacuum may remove what was the newest version when this began, after others were published.
                    while opened.as_ref().is_err_and(EngineError::is_missing_object) {
                        let newest = versions::newest(&reader, &mut branch).await?;
                        let Some(newest) = newest.filter(|newest| newest.version > tried) else { break };
                        tried = newest.version;
                        opened = read_tails(&reader, &newest, settings, &mut branch).await.map(|it| (newest, it));
                    }
                    opened?
                }
            };
            let mut snapshot = Self::assemble(manifest, reader, settings.clone(), None)?;
            for (segment, tail) in snapshot.segments.iter().zip(tails) {
                if let Some(tail) = tail {
                    // Nobody else has the segment yet.
                    let _ = segment.index.set(decode_tail(&segment.reference, &tail, snapshot.reader.store().url())?);
                }
            }
            snapshot.open_cost = branch.context().cost();
            Ok(snapshot)
        })
    }

    /// The newest version: itself, for one request, or a later one.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn newest<'a>(self: &'a Arc<Self>, branch: &'a mut Branch) -> BoxFuture<'a, Result<Arc<Self>, EngineError>> {
        Box::pin(async move {
            let later = versions::after(&self.reader, self.manifest.version, branch).await?;
            let Some(mut manifest) = later else { return Ok(self.clone()) };
            loop {
                let version = manifest.version;
                match self.at(manifest, branch).await {
                    // A vacuum may remove it while it is read, after others were published.
                    Err(error) if error.is_missing_object() => {
                        manifest = versions::after(&self.reader, version, branch).await?.ok_or(error)?;
                    }
                    snapshot => return snapshot,
                }
            }
        })
    }

    /// The snapshot of a later version, which another writer published.
    ///
    /// # Errors
    /// The store's.
    pub(crate) async fn at(&self, mut manifest: Manifest, branch: &mut Branch) -> Result<Arc<Self>, EngineError> {
        if planted(Bug::OrdinalsKept) {
            let counts = manifest.vertex_counts.iter_mut().zip(&self.manifest.vertex_counts);
            counts.for_each(|(count, kept)| *count = *kept);
        }
        Ok(Arc::new(self.advance(manifest, &BTreeMap::new(), branch).await?))
    }

    /// Whether its manifest is still where it was read. One request.
    ///
    /// # Errors
    /// The store's.
    pub fn is_there<'a>(&'a self, branch: &'a mut Branch) -> BoxFuture<'a, Result<bool, EngineError>> {
        Box::pin(async move {
            let slot = versions::slot(&self.reader, self.manifest.version, branch).await?;
            let same = |found: &Slot| matches!(found, Slot::Version(found) if found.change == self.manifest.change);
            Ok(slot.as_ref().is_some_and(same))
        })
    }

    /// A later version: what it shares with this one stays in memory, indexes and blocks alike. Objects that are at
    /// hand, by name, are taken from there; the ends of other new segments are read in one wave.
    pub(crate) async fn advance(
        &self,
        manifest: Manifest,
        at_hand: &BTreeMap<String, Bytes>,
        branch: &mut Branch,
    ) -> Result<Self, EngineError> {
        let next = Self::assemble(manifest, self.reader.clone(), self.settings.clone(), Some(self))?;
        for segment in &next.segments {
            if let Some(bytes) = at_hand.get(&segment.reference.name) {
                next.take_at_hand(segment, bytes)?;
            }
        }
        let begins = resident_from(&next.manifest, &self.settings);
        let come = next.segments.iter().zip(begins).filter(|(segment, _)| !segment.index.initialized());
        let come = come.filter_map(|(segment, from)| Some((segment, from?)));
        next.read_indexes(come, branch).await?;
        Ok(next)
    }

    /// This version with those parts alone that `keep` chooses.
    pub(crate) fn only(&self, keep: impl Fn(Owner, VersionRange) -> bool) -> Result<Self, EngineError> {
        let mut manifest = self.manifest.clone();
        for section in manifest.segments.iter_mut().flat_map(|segment| &mut segment.sections) {
            let owner = Owner::of_section(section.kind);
            section.versions = section.versions.filter(|versions| keep(owner, *versions));
        }
        manifest.segments.retain(|segment| segment.sections.iter().any(|section| section.versions.is_some()));
        manifest.tables.retain(|table| keep(Owner::of_table(table.owner), table.versions));
        Self::assemble(manifest, self.reader.clone(), self.settings.clone(), Some(self))
    }

    /// Takes the index of a segment, and its blocks, from the object's bytes.
    pub(crate) fn take_at_hand(&self, segment: &Segment, bytes: &Bytes) -> Result<(), EngineError> {
        let end = &segment.reference.end;
        let indexes = decode_tail(&segment.reference, &bytes.slice(..end.length as usize), self.reader.store().url())?;
        for section in &indexes.sections {
            for block in 0..section.block_count() {
                let range = section.block_range(block);
                let stored = bytes.slice(range.start as usize..range.end as usize);
                self.reader.keep(&BlockRequest { object: &segment.object, range, check: Check::Sealed }, &stored)?;
            }
        }
        // If somebody was faster, theirs is the same.
        let _ = segment.index.set(indexes);
        Ok(())
    }

    pub(crate) fn assemble(
        manifest: Manifest,
        reader: Reader,
        settings: OpenSettings,
        before: Option<&Self>,
    ) -> Result<Self, EngineError> {
        let mut sections: HashMap<SectionKind, Vec<SectionPlace>> = HashMap::new();
        for (segment, reference) in manifest.segments.iter().enumerate() {
            for (section, SectionRef { kind, versions }) in reference.sections.iter().enumerate() {
                let Some(versions) = *versions else { continue };
                sections.entry(*kind).or_default().push(SectionPlace { segment, section, versions });
            }
        }
        for (kind, places) in &mut sections {
            places.sort_unstable_by_key(|place| Reverse(place.versions.until));
            if let Some(pair) = places.windows(2).find(|pair| pair[1].versions.until >= pair[0].versions.since) {
                let why = format!("{kind:?} is there twice, of {:?} and {:?}", pair[1].versions, pair[0].versions);
                let source = FormatError::corrupt("manifest", why);
                return Err(EngineError::Format { place: reader.store().url().to_owned(), source });
            }
        }
        let segments_before: HashMap<&str, &Arc<Segment>> =
            before.iter().flat_map(|before| &before.segments).map(|it| (&*it.reference.name, it)).collect();
        let segments = manifest.segments.iter().map(|reference| {
            let alike = |it: &&&Arc<Segment>| it.reference.sections.len() == reference.sections.len();
            let known = match planted(Bug::IndexReused) {
                true => before.and_then(|before| before.segments.iter().find(|it| alike(&it))),
                false => segments_before.get(&*reference.name).copied(),
            };
            known.cloned().unwrap_or_else(|| Arc::new(Segment::new(reference, &reader)))
        });
        let segments = segments.collect();
        let tables_before: HashMap<(&str, u64), &Arc<Table>> = before
            .iter()
            .flat_map(|before| &before.tables)
            .map(|it| ((&*it.reference.name, it.reference.position), it))
            .collect();
        let tables = manifest.tables.iter().map(|reference| {
            let known = tables_before.get(&(&*reference.name, reference.position)).copied();
            known.cloned().unwrap_or_else(|| Arc::new(Table::new(reference.clone(), reader.object(&reference.name))))
        });
        let tables = tables.collect();
        Ok(Self { manifest, reader, segments, sections, tables, settings, open_cost: Cost::default() })
    }

    /// The manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Labels, edge types and properties.
    pub fn schema(&self) -> &Schema {
        &self.manifest.schema
    }

    /// The way to its blocks.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// What opening it took.
    pub fn open_cost(&self) -> Cost {
        self.open_cost
    }

    /// How many ordinals of a label were given out: all its vertices have lower ones.
    pub fn ordinal_count(&self, label: LabelId) -> u64 {
        self.manifest.vertex_counts.get(usize::from(label.0)).map_or(0, |count| count.ordinals)
    }

    /// The sections of a kind, the newest part's first.
    pub(crate) fn places(&self, kind: SectionKind) -> &[SectionPlace] {
        self.sections.get(&kind).map_or(&[], Vec::as_slice)
    }

    /// All sections, of all kinds.
    pub(crate) fn all_places(&self) -> impl Iterator<Item = SectionPlace> {
        self.sections.values().flatten().copied()
    }

    /// The segment of a section, and which of its sections it is.
    pub(crate) fn segment_of(&self, place: SectionPlace) -> (&Arc<Segment>, usize) {
        (&self.segments[place.segment], place.section)
    }

    /// A section whose index is resident; see [`Self::make_resident`].
    pub(crate) fn section(&self, place: SectionPlace) -> Result<Section<'_>, EngineError> {
        let segment = &self.segments[place.segment];
        let missing = || EngineError::Internal(format!("the index of {} is not resident", segment.reference.name));
        Ok(segment.index.get().ok_or_else(missing)?.section(place.section, &segment.object))
    }

    /// Reads those indexes of sections that did not come with the open, all in one wave.
    /// Usually all did, and nothing waits.
    pub(crate) async fn make_resident(
        &self,
        places: impl IntoIterator<Item = SectionPlace>,
        branch: &mut Branch,
    ) -> Result<(), EngineError> {
        let absent = |place: SectionPlace| !self.segments[place.segment].index.initialized();
        let absent: BTreeSet<_> = places.into_iter().filter(|it| absent(*it)).map(|place| place.segment).collect();
        let begin = |segment: &Segment| segment.reference.end.index_position;
        let absent = absent.into_iter().map(|segment| &self.segments[segment]);
        self.read_indexes(absent.map(|segment| (segment, begin(segment))), branch).await
    }

    /// Reads the ends of segments, each from where its index begins, or its filters.
    async fn read_indexes<'a>(
        &self,
        segments: impl Iterator<Item = (&'a Arc<Segment>, u64)>,
        branch: &mut Branch,
    ) -> Result<(), EngineError> {
        let reads = branch.each(segments, |(segment, from), mut line| async move {
            // Another may be reading it: then its answer is waited for.
            let waited = line.wave().next();
            let read = async {
                let range = from..segment.reference.end.length;
                let tail = BlockRequest { object: &segment.object, range, check: Check::Later };
                let tail = self.reader.read(&[tail], &mut line).await?;
                decode_tail(&segment.reference, &tail[0], self.reader.store().url())
            };
            segment.index.get_or_try_init(|| read).await?;
            line.reached(waited);
            Ok::<_, EngineError>(((), line))
        });
        reads.await.map(drop)
    }

    /// All sections and their indexes, with the versions whose changes they hold.
    ///
    /// # Errors
    /// The store's, if some indexes did not come with the open.
    pub fn section_indexes<'a>(
        &'a self,
        branch: &'a mut Branch,
    ) -> BoxFuture<'a, Result<Vec<(VersionRange, &'a SectionIndex)>, EngineError>> {
        Box::pin(async move {
            self.make_resident(self.all_places(), branch).await?;
            self.all_places().map(|place| Ok((place.versions, self.section(place)?.index))).collect()
        })
    }

    /// The labels that a hop can reach from vertices of these labels.
    pub fn labels_reached(&self, near: &[LabelId], hop: &Hop) -> Vec<LabelId> {
        let mut reached = BTreeSet::new();
        for label in near {
            for direction in hop.direction.each() {
                reached.extend(self.edge_types_from(*label, &hop.labels, *direction).map(|(_, far)| far));
            }
        }
        reached.into_iter().collect()
    }

    /// The edge types with this label, or all, that leave (or reach) a vertex label, with the
    /// direction in which to follow them.
    pub(crate) fn edge_types_from<'a>(
        &'a self,
        near: LabelId,
        labels: &'a [String],
        direction: Direction,
    ) -> impl Iterator<Item = (EdgeTypeId, LabelId)> + 'a {
        self.schema().edge_types().filter_map(move |(id, edge)| {
            let named = labels.is_empty() || labels.contains(&edge.label);
            (named && edge.near(direction) == near).then(|| (id, edge.far(direction)))
        })
    }
}

impl SegmentIndexes {
    fn section<'a>(&'a self, section: usize, object: &'a Object) -> Section<'a> {
        Section { object, index: &self.sections[section], filters: &self.filters[section] }
    }
}

type Tails = Vec<Option<Bytes>>;

async fn open_newest(
    reader: &Reader,
    settings: &OpenSettings,
    branch: &mut Branch,
) -> Result<(Manifest, Tails), EngineError> {
    let missing = || EngineError::no_graph(reader.store().url());
    let mut newest = versions::nearly_newest(reader, branch).await?.ok_or_else(missing)?;
    loop {
        if planted(Bug::HintBelieved) {
            let tails = read_tails(reader, &newest, settings, branch).await?;
            return Ok((newest, tails));
        }
        let mut opening = branch.clone();
        let probe = versions::later(reader, newest.version, branch);
        // If it is the newest, as it usually is, its segments are open by the time that this is known.
        let tails = read_tails(reader, &newest, settings, &mut opening);
        let (newer, tails) = join(probe, tails).await;
        match newer? {
            Some(newer) => newest = newer,
            None => {
                branch.join([&opening]);
                return Ok((newest, tails?));
            }
        }
    }
}

/// Where what is kept of the end of each segment begins, if anything is: the shortest indexes first, then of those segments
/// the shortest filters. So what changes wrote is known, whose filters spare a large graph most of its requests.
fn resident_from(manifest: &Manifest, settings: &OpenSettings) -> Vec<Option<u64>> {
    let ends: Vec<&SegmentEnd> = manifest.segments.iter().map(|segment| &segment.end).collect();
    let mut from = vec![None; ends.len()];
    let mut take = |bytes_max: u64, bytes: fn(&SegmentEnd) -> u64, begin: fn(&SegmentEnd) -> u64, also: bool| {
        let mut order: Vec<usize> = (0..ends.len()).filter(|segment| !also || from[*segment].is_some()).collect();
        order.sort_by_key(|segment| bytes(ends[*segment]));
        let mut sum = 0;
        for segment in order {
            sum += bytes(ends[segment]);
            if sum > bytes_max {
                break;
            }
            from[segment] = Some(begin(ends[segment]));
        }
    };
    take(settings.index_bytes_max, |end| end.length - end.index_position, |end| end.index_position, false);
    take(settings.filter_bytes_max, |end| end.index_position - end.filters_position, |end| end.filters_position, true);
    from
}

/// The ends of those segments that are kept.
async fn read_tails(
    reader: &Reader,
    manifest: &Manifest,
    settings: &OpenSettings,
    branch: &mut Branch,
) -> Result<Tails, EngineError> {
    let from = resident_from(manifest, settings);
    let come = || manifest.segments.iter().zip(&from).filter_map(|(segment, from)| Some((segment, (*from)?)));
    let objects: Vec<_> = come().map(|(segment, _)| reader.object(&segment.name)).collect();
    let tail = |(object, (segment, from)): (_, (&SegmentRef, u64))| BlockRequest {
        object,
        range: from..segment.end.length,
        check: Check::Later,
    };
    let tails: Vec<_> = objects.iter().zip(come()).map(tail).collect();
    let mut tails = reader.read(&tails, branch).await?.into_iter();
    Ok(from.iter().map(|from| from.and_then(|_| tails.next())).collect())
}

/// Reads the index of a segment and, if they are in `tail`, the filters.
fn decode_tail(reference: &SegmentRef, tail: &Bytes, url: &str) -> Result<SegmentIndexes, EngineError> {
    let place = || format!("{url}/{}", reference.name);
    let sections = decode_segment_index(tail, &reference.end).map_err(EngineError::format(place()))?;
    let named = reference.sections.iter().map(|section| section.kind);
    if !sections.iter().map(|section| section.kind).eq(named) {
        let why = "its sections are not those that the manifest names";
        return Err(EngineError::format(place())(FormatError::corrupt("segment index", why)));
    }
    let tail_position = reference.end.length - tail.len() as u64;
    let seed = hoplake_format::checksum::ObjectSeed::of(&reference.name);
    let mut filters = Vec::with_capacity(sections.len());
    for section in &sections {
        let of_section: Vec<_> = section.filters.iter().map(|_| LazyFilter::default()).collect();
        let known = section.filters.iter().zip(&of_section).filter(|(entry, _)| entry.position >= tail_position);
        for (entry, filter) in known {
            let start = (entry.position - tail_position) as usize;
            let sealed = tail.get(start..start + entry.length as usize).unwrap_or_default();
            filter.set(seed, entry.position, sealed).map_err(EngineError::format(place()))?;
        }
        filters.push(of_section);
    }
    Ok(SegmentIndexes { sections, filters })
}
