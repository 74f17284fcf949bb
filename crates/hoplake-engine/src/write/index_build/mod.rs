//! Creates and drops property indexes of a graph that is there.
//!
//! ```text
//! announce: lease, and an index that no query uses ──▶ scan that version's column ──▶ sort ──▶ one sorted run ──▶ publish: in use
//!           └── from here on commits write their items, in sorted runs that are newer ──┘
//! ```
//! Nothing that others commit meanwhile is lost, and nothing is caught up with: the announced version is where the built run ends and
//! where the runs of commits begin, and the newest run decides as always. Compactions leave the index alone until its oldest run
//! is there. A writer that dies leaves an index that costs commits some bytes; a vacuum that lets its lease go takes the index out
//! with it, and so does [`drop`](drop_index).

use std::sync::Arc;

use hoplake_format::{
    ChangeKind, IndexId, KeyType, Manifest, PropertyIndex, VersionRange, WriterLease,
    constants::DATA_FOLDER,
    segment::{KeyWriter, SectionKind, SegmentSettings},
};
use hoplake_storage::{Branch, Cost, QueryContext, ReadLimits, ReadPool, Reader, Store};

mod sort;

use crate::{
    EngineError, OpenSettings, Snapshot, VertexQuery,
    write::{
        compaction::{CompactionSettings, Merging, RunWriter, WrittenRun, read_settings},
        lease,
        publish::{amend, amend_on, change, hint},
    },
};
use sort::ItemSorter;

/// The least budget: below it, buffers that cannot be smaller would not fit.
pub const MEMORY_BYTES_MIN: u64 = 64 << 20;

/// For taking its name out when its time is over.
const WITHDRAWAL_TIMEOUT_MS: u64 = 30_000;

/// How an index is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexSettings {
    /// Memory for it, in bytes; what does not fit is sorted in temporary files. Default 256 MiB.
    pub memory_bytes: u64,
    /// How long it may take, in milliseconds. Without one, the default, as long as it takes.
    pub timeout_ms: Option<u64>,
    /// What pauses before repeated requests are drawn from. By default another each time.
    pub retry_seed: Option<u64>,
    /// How segments are written.
    pub segments: SegmentSettings,
}

impl Default for IndexSettings {
    fn default() -> Self {
        Self { memory_bytes: 256 << 20, timeout_ms: None, retry_seed: None, segments: SegmentSettings::default() }
    }
}

/// An index that was built.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct IndexBuilt {
    /// The version from which on queries use it.
    pub version: u64,
    /// Vertices that have a value.
    pub entries: u64,
    /// Bytes that were written.
    pub bytes: u64,
    /// What it took.
    pub cost: Cost,
}

/// Builds an index of a property, given as `label.property`. Breaks off when `stop` is ready, and then returns `None`, as if it had
/// never begun.
///
/// # Errors
/// [`EngineError::Invalid`] if the property cannot have an index, or the budget is too small; [`EngineError::Conflict`] if it has one,
/// or if the index was dropped, or the content of the graph replaced, meanwhile; the store's.
pub async fn create_index(
    store: &Store,
    name: &str,
    settings: &IndexSettings,
    stop: impl Future<Output = ()>,
    context: &QueryContext,
) -> Result<Option<IndexBuilt>, EngineError> {
    let memory = settings.memory_bytes;
    if memory < MEMORY_BYTES_MIN {
        let why = format!("building an index needs at least {MEMORY_BYTES_MIN} bytes of memory, not {memory}");
        return Err(EngineError::Invalid(why));
    }
    let pool = CompactionSettings {
        memory_bytes: memory / 2,
        retry_seed: settings.retry_seed,
        ..CompactionSettings::default()
    };
    let reader = Reader::new(store.metered_by(context), ReadPool::new(read_settings(&pool))?);
    context.give_time(settings.timeout_ms);
    let mut branch = context.branch();
    let writer = reader.store().clock().ulid();
    let scanning = QueryContext::new();
    scanning.limit(ReadLimits { memory_bytes_max: Some(memory / 4), ..ReadLimits::default() });
    scanning.give_time(settings.timeout_ms);
    let mut build = Build { reader, settings: *settings, writer, scanning, begun: false };
    let outcome = tokio::select! {
        biased;
        outcome = build.all(name, &mut branch) => Some(outcome),
        () = stop => None,
    };
    match outcome {
        Some(Ok((manifest, run, entries))) => {
            hint(build.reader.store(), &manifest).await;
            branch.then(1);
            let cost = context.cost() + build.scanning.cost();
            Ok(Some(IndexBuilt { version: manifest.version, entries, bytes: run.bytes, cost }))
        }
        broken => {
            if build.begun {
                context.give_time(Some(WITHDRAWAL_TIMEOUT_MS));
                build.give_up(&mut branch).await;
            }
            broken.transpose().map(|_| None)
        }
    }
}

/// Takes an index out of a graph; one that is being built, too. Older versions keep it. Returns the version without it.
///
/// # Errors
/// [`EngineError::NotFound`] if there is none; the store's.
pub async fn drop_index(store: &Store, name: &str, context: &QueryContext) -> Result<u64, EngineError> {
    let reader = Reader::new(store.metered_by(context), ReadPool::new(read_settings(&CompactionSettings::default()))?);
    let mut branch = context.branch();
    let dropped = amend(&reader, &mut branch, |newest| {
        let Some(index) = find(newest, name) else { return Err(none(newest, name)) };
        let change = change(reader.store(), ChangeKind::Index, format!("{name} dropped"));
        let mut next = newest.next(change, reader.store().clock().unix_ms());
        next.drop_index(index.id);
        next.leases.retain(|lease| Some(&lease.writer) != index.writer.as_ref());
        Ok(Some(next))
    });
    dropped.await?.map(|manifest| manifest.version).ok_or_else(|| EngineError::no_graph(reader.store().url()))
}

fn find<'a>(manifest: &'a Manifest, name: &str) -> Option<&'a PropertyIndex> {
    manifest.indexes.iter().find(|index| name_of(manifest, index) == name)
}

fn name_of(manifest: &Manifest, index: &PropertyIndex) -> String {
    let label = manifest.schema.label(index.label).map_or("", |label| &label.name);
    format!("{label}.{}", index.property)
}

fn none(manifest: &Manifest, name: &str) -> EngineError {
    let known: Vec<_> = manifest.indexes.iter().map(|index| name_of(manifest, index)).collect();
    EngineError::NotFound(match known.is_empty() {
        true => format!("there is no index {name}; the graph has none"),
        false => format!("there is no index {name}; the graph has {}", known.join(", ")),
    })
}

/// A build under way.
struct Build {
    reader: Reader,
    settings: IndexSettings,
    writer: String,
    /// Of the scan, whose memory is bounded.
    scanning: QueryContext,
    /// Whether it may have been announced.
    begun: bool,
}

impl Build {
    async fn all(&mut self, name: &str, branch: &mut Branch) -> Result<(Manifest, WrittenRun, u64), EngineError> {
        let opened = Arc::new(Snapshot::open(self.reader.clone(), &OpenSettings::default()).await?);
        self.begun = true;
        let (announced, id) = self.announce(name, opened.manifest(), branch).await?;
        hint(self.reader.store(), &announced).await;
        let snapshot = opened.at(announced, branch).await?;
        let (run, entries) = self.write(&snapshot, id, branch).await?;
        let known = Some(snapshot.manifest().clone());
        let published = amend_on(&self.reader, known, branch, |newest| {
            let change = change(self.reader.store(), ChangeKind::Index, format!("{name} created"));
            let mut next = newest.next(change, self.reader.store().clock().unix_ms());
            let own = |index: &&mut PropertyIndex| index.id == id && index.writer.as_ref() == Some(&self.writer);
            // Before the lease, which goes with the index: a vacuum is one cause of several.
            let Some(index) = next.indexes.iter_mut().find(own) else {
                let why = format!(
                    "the index {name} was dropped, the graph replaced or the build aborted by a vacuum while it was built"
                );
                return Err(EngineError::Conflict(why));
            };
            lease::check(newest, &self.writer)?;
            index.writer = None;
            next.leases.retain(|lease| lease.writer != self.writer);
            next.segments.extend(run.segments.iter().cloned());
            Ok(Some(next))
        });
        let manifest = published.await?.ok_or_else(|| EngineError::no_graph(self.reader.store().url()))?;
        Ok((manifest, run, entries))
    }

    /// Publishes an index that commits keep from then on, and that no query uses.
    async fn announce(
        &self,
        name: &str,
        known: &Manifest,
        branch: &mut Branch,
    ) -> Result<(Manifest, IndexId), EngineError> {
        let mut id = IndexId(0);
        let announced = amend_on(&self.reader, Some(known.clone()), branch, |newest| {
            let named = PropertyIndex::named(&newest.schema, name);
            let (label, property) = named.map_err(|error| EngineError::Invalid(error.to_string()))?;
            if let Some(index) = newest.indexes_of(label).find(|index| index.property == property) {
                let how = match &index.writer {
                    None => "already".to_owned(),
                    Some(writer) => format!("that writer {writer} is building; drop it if that writer is dead"),
                };
                return Err(EngineError::Conflict(format!("there is an index {name} {how}")));
            }
            id = IndexId(newest.next_index);
            let full = || {
                EngineError::Invalid(
                    "a graph has at most 65,535 indexes between two loads, dropped ones included".into(),
                )
            };
            let change = change(self.reader.store(), ChangeKind::Index, format!("{name} begins"));
            let mut next = newest.next(change, self.reader.store().clock().unix_ms());
            next.next_index = newest.next_index.checked_add(1).ok_or_else(full)?;
            let since = next.version;
            next.leases.push(WriterLease { writer: self.writer.clone(), kind: ChangeKind::Index, since });
            next.indexes.push(PropertyIndex { id, label, property, writer: Some(self.writer.clone()) });
            Ok(Some(next))
        });
        let announced = announced.await?.ok_or_else(|| EngineError::no_graph(self.reader.store().url()))?;
        Ok((announced, id))
    }

    /// Writes the items of a version, and returns how many they are.
    async fn write(
        &self,
        snapshot: &Arc<Snapshot>,
        id: IndexId,
        branch: &mut Branch,
    ) -> Result<(WrittenRun, u64), EngineError> {
        let memory = self.settings.memory_bytes / 4;
        let sorter = items_of(snapshot, id, memory, &mut self.scanning.branch()).await?;
        let failed = || EngineError::format("a new segment");
        let base = snapshot.manifest().version;
        let mut merging = Merging { inputs: snapshot.clone(), memory, branch };
        let mut run = RunWriter::new(self.reader.store(), &self.writer, base, 0, memory, self.settings.segments)?;
        run.begin(VersionRange { since: 1, until: base });
        let mut writer = KeyWriter::new(SectionKind::Values(id), KeyType::String);
        let mut sorted = sorter.finish()?;
        let mut entries = 0;
        let mut pace = merging.branch.context().pace();
        while let Some(item) = sorted.next()? {
            writer.push_item(item, &mut run.segments).map_err(failed())?;
            run.send(&mut merging).await?;
            entries += 1;
            pace.rest(16).await?;
        }
        writer.finish(&mut run.segments).map_err(failed())?;
        Ok((run.finish(&mut merging).await?, entries))
    }

    /// Takes its name and its index out, and deletes what it wrote. What it cannot delete, a vacuum will.
    async fn give_up(&self, branch: &mut Branch) {
        let withdrawn = amend(&self.reader, branch, |newest| {
            let has_lease = newest.leases.iter().any(|lease| lease.writer == self.writer);
            let is_own = |writer: &Option<String>| writer.as_ref() == Some(&self.writer);
            if !has_lease && !newest.indexes.iter().any(|index| is_own(&index.writer)) {
                return Ok(None);
            }
            let change = change(self.reader.store(), ChangeKind::Index, "an index was given up");
            let mut next = newest.next(change, self.reader.store().clock().unix_ms());
            next.leases.retain(|lease| lease.writer != self.writer);
            next.drop_unfinished_indexes(|writer| writer != self.writer);
            Ok(Some(next))
        });
        // Objects of a version that was published after all are named by it, and stay.
        if !matches!(withdrawn.await, Ok(Some(_))) {
            return;
        }
        let Ok(listed) = self.reader.store().list(DATA_FOLDER).await else { return };
        let mine = listed.into_iter().map(|object| object.name).filter(|name| name.contains(&self.writer));
        let _ = self.reader.store().delete(&mine.collect::<Vec<_>>()).await;
    }
}

/// The items of all vertices that an index has a value of.
async fn items_of(
    snapshot: &Arc<Snapshot>,
    id: IndexId,
    memory: u64,
    branch: &mut Branch,
) -> Result<ItemSorter, EngineError> {
    let missing = || EngineError::Internal(format!("index {id} is not in the version that announced it"));
    let index = snapshot.manifest().index(id).ok_or_else(missing)?;
    let columns = vec![index.property.clone()];
    let query = VertexQuery { label: index.label, condition: None, columns, wanted: None };
    let mut scan = snapshot.scan_vertices(query, branch).await?;
    let mut sorter = ItemSorter::new(memory);
    let mut pace = branch.context().pace();
    while let Some(found) = scan.next(branch).await? {
        let items = index.items(&found.batch, found.ordinals());
        for item in items.map_err(EngineError::format(snapshot.reader().store().url()))? {
            sorter.push(item, &mut pace).await?;
        }
    }
    Ok(sorter)
}
