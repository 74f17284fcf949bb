//! A copy of the newest version of a graph in another store, usually a folder of the machine that reads it.
//!
//! ```text
//! newest manifest ──▶ objects that are not there yet, each against its checksums ──▶ manifest ──▶ what no version there names is removed
//! ```
//! Objects never change, so one that is there is complete and right: it got its name when all of it had been checked. A mirror that was
//! interrupted goes on with what is missing, and the next version costs what is new in it. Nobody sees a version before all of its
//! objects are there, and readers of the version before keep theirs until the next one.
//!
//! A mirror has the numbers of its source. Versions that it passed over are removed ones, as after a vacuum. It takes no changes of its
//! own: a mirror that was written to, or a folder with another graph, is rejected and stays as it is.

use std::{
    cmp::Ordering as Relation,
    collections::{HashMap, HashSet},
    ops::Range,
    sync::atomic::{AtomicU64, Ordering},
};

use bytes::Bytes;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use hoplake_format::{
    FormatError, Manifest, Slot, VersionRange,
    constants::{
        DATA_FOLDER, MANIFEST_FOLDER, MIRROR_NAME, data_base_version, is_elsewhere, manifest_name, manifest_version,
    },
};
use hoplake_storage::{Branch, Reader, Store};

use crate::{
    EngineError,
    read::tables::EXTENT_BYTES,
    versions::{
        self,
        verify::stored::{StoredObject, extents},
    },
    write::publish::{Published, hint, publish},
};

/// Objects that are copied at once.
const OBJECTS_AT_ONCE: usize = 4;

/// Parts of objects that an interrupted mirror has left are removed once they are this old: another may be at work.
const LEFTOVER_MS: i64 = 3_600_000;

/// What a mirror did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mirrored {
    /// The version that the mirror has now.
    pub version: u64,
    /// Whether it had it before.
    pub is_current: bool,
    /// Objects that were copied.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Objects that were there already.
    pub kept: u64,
    /// Objects of older versions that were removed.
    pub removed: u64,
}

/// Makes `target` have the newest version of `source`. `progress` is called with the bytes that were copied so far and those to copy.
///
/// # Errors
/// [`EngineError::NotFound`] if there is no graph at the source; [`EngineError::Invalid`] if the target has another graph, or changes
/// of its own, or if the source shares objects with the graph that it was cloned from; [`EngineError::Format`] if an object of the source
/// is damaged; the stores'. The target then has the version that it had.
pub async fn mirror(
    source: &Reader,
    target: &Reader,
    progress: &(impl Fn(u64, u64) + Sync),
    branch: &mut Branch,
) -> Result<Mirrored, EngineError> {
    let before = versions::newest(target, branch).await?;
    let mut newest = read_newest(source, branch).await?;
    loop {
        check_target(source, target, &newest, before.as_ref(), branch).await?;
        match mirror_version(source, target, &newest, before.as_ref(), progress, branch).await {
            // A vacuum may remove it while it is copied, after others were published.
            Err(error) if error.is_missing_object() => {
                let later = read_newest(source, branch).await?;
                if later.version == newest.version {
                    return Err(error);
                }
                newest = later;
            }
            mirrored => return mirrored,
        }
    }
}

/// The newest version as a mirror has it: the writers of the source are not at work here, and with their leases go the indexes that
/// they are building.
async fn read_newest(source: &Reader, branch: &mut Branch) -> Result<Manifest, EngineError> {
    let newest = versions::newest(source, branch).await?;
    let mut newest = newest.ok_or_else(|| EngineError::no_graph(source.store().url()))?;
    newest.leases.clear();
    newest.drop_unfinished_indexes(|_| false);
    Ok(newest)
}

/// That the target has nothing, or a version of this graph.
async fn check_target(
    source: &Reader,
    target: &Reader,
    newest: &Manifest,
    before: Option<&Manifest>,
    branch: &mut Branch,
) -> Result<(), EngineError> {
    if let Some(name) = newest.objects().into_keys().find(|name| is_elsewhere(name)) {
        let message = format!(
            "{} reads {name} of the graph that it was cloned from; compact all of it, and then mirror it",
            source.store().url()
        );
        return Err(EngineError::Invalid(message));
    }
    let Some(before) = before else { return Ok(()) };
    let is_same = match before.version.cmp(&newest.version) {
        Relation::Equal => before.change.writer == newest.change.writer,
        Relation::Greater => false,
        Relation::Less => match versions::slot(source, before.version, branch).await? {
            Some(Slot::Version(there)) => there.change.writer == before.change.writer,
            // A tombstone names the writer of what it removed.
            Some(Slot::Removed { writer }) => writer == before.change.writer,
            None => false,
        },
    };
    if !is_same {
        let message = format!(
            "version {} of {} is not one of {}: it has another graph, or was changed itself; choose an empty folder",
            before.version,
            target.store().url(),
            source.store().url()
        );
        return Err(EngineError::Invalid(message));
    }
    Ok(())
}

async fn mirror_version(
    source: &Reader,
    target: &Reader,
    newest: &Manifest,
    before: Option<&Manifest>,
    progress: &(impl Fn(u64, u64) + Sync),
    branch: &mut Branch,
) -> Result<Mirrored, EngineError> {
    let mut mirrored = Mirrored { version: newest.version, ..Mirrored::default() };
    mirrored.is_current = before.is_some_and(|before| before.version == newest.version);
    if !mirrored.is_current {
        let missing = missing(source.store(), target.store(), newest).await?;
        mirrored.kept = (newest.objects().len() - missing.len()) as u64;
        let all = missing.iter().map(|(_, bytes)| bytes).sum();
        let copied = AtomicU64::new(0);
        let added = |bytes| progress(copied.fetch_add(bytes, Ordering::Relaxed) + bytes, all);
        // Boxed and collected, so that callers can run it on any thread: of an iterator the compiler cannot see that it may, for all lifetimes.
        let copies = missing.iter().map(|(name, bytes)| {
            copy_again_if_damaged(source.store(), target.store(), newest, name, *bytes, &added).boxed()
        });
        let copies: Vec<_> = copies.collect();
        stream::iter(copies).buffer_unordered(OBJECTS_AT_ONCE).try_collect::<()>().await?;
        (mirrored.objects, mirrored.bytes) = (missing.len() as u64, all);
        // Before the version, which must not be taken for one that may be changed.
        target.store().put(MIRROR_NAME, source.store().url().to_owned().into()).await?;
        publish_mirrored(target, newest, before, branch).await?;
    }
    let mut kept = vec![newest.clone()];
    match before {
        Some(before) if mirrored.is_current => {
            for version in before.history.iter().flat_map(|range| range.since..=range.until) {
                kept.push(versions::read(target, version, branch).await?);
            }
        }
        before => kept.extend(before.cloned()),
    }
    mirrored.removed = tidy(target.store(), &kept).await?;
    Ok(mirrored)
}

/// The objects of a version that the target does not have, and the bytes of each: all of it, though a version may name only a part of
/// what another one, which is kept, names.
async fn missing(source: &Store, target: &Store, newest: &Manifest) -> Result<Vec<(String, u64)>, EngineError> {
    let there: HashMap<String, u64> = bytes_by_name(target).await?;
    let stored = bytes_by_name(source).await?;
    let objects = newest.objects().into_iter().map(|(name, named)| {
        // If it is not listed, or too short, reading what is named of it says why.
        (name.to_owned(), stored.get(name).copied().unwrap_or(0).max(named))
    });
    Ok(objects.filter(|(name, bytes)| there.get(name) != Some(bytes)).collect())
}

async fn bytes_by_name(store: &Store) -> Result<HashMap<String, u64>, EngineError> {
    Ok(store.list(DATA_FOLDER).await?.into_iter().map(|object| (object.name, object.bytes)).collect())
}

/// All parts of an object, ascending. Those that the version names have checksums in its manifest; others are those that compaction
/// has left without a name.
fn parts(newest: &Manifest, name: &str, bytes: u64) -> Vec<(Range<u64>, Option<u32>)> {
    let segments = newest.segments.iter().filter(|segment| segment.name == name);
    let segments = segments.map(|segment| (0..segment.end.length, segment.checksum));
    let tables = newest.tables.iter().filter(|table| table.name == name);
    let tables = tables.map(|table| (table.position..table.position + table.length, table.checksum));
    let mut named: Vec<_> = segments.chain(tables).collect();
    named.sort_by_key(|(range, _)| range.start);
    let mut parts = Vec::new();
    let mut end = 0;
    for (range, checksum) in named {
        parts.push((end..range.start, None));
        end = range.end;
        parts.push((range, Some(checksum)));
    }
    parts.push((end..bytes, None));
    parts.retain(|(range, _)| !range.is_empty());
    parts
}

/// Copies an object, twice if it does not fit its checksum: the answer may have been damaged on its way.
async fn copy_again_if_damaged(
    source: &Store,
    target: &Store,
    newest: &Manifest,
    name: &str,
    bytes: u64,
    added: &(dyn Fn(u64) + Sync),
) -> Result<(), EngineError> {
    match copy(source, target, newest, name, bytes, added).await {
        Err(EngineError::Format { .. }) => copy(source, target, newest, name, bytes, |_| ()).await,
        copied => copied,
    }
}

/// Copies an object. It gets its name when all of it has been checked.
async fn copy(
    source: &Store,
    target: &Store,
    newest: &Manifest,
    name: &str,
    bytes: u64,
    added: impl Fn(u64),
) -> Result<(), EngineError> {
    let mut upload = target.upload(name);
    let copied = async {
        for (range, expected) in parts(newest, name, bytes) {
            let mut found = 0;
            let mut stored = StoredObject::new(source, name, extents(std::iter::empty(), range, EXTENT_BYTES));
            while let Some((_, bytes)) = stored.next().await? {
                found = crc32c::crc32c_append(found, &bytes);
                upload.write(&bytes).await?;
                added(bytes.len() as u64);
            }
            if let Some(expected) = expected
                && found != expected
            {
                let why = format!("it fails its checksum (expected {expected:08x}, found {found:08x})");
                return Err(EngineError::format(source.location(name))(FormatError::corrupt("object", why)));
            }
        }
        Ok(())
    };
    match copied.await {
        Ok(()) => Ok(upload.finish().await.map(drop)?),
        Err(error) => {
            // What cannot be removed now is removed as a leftover.
            let _ = upload.abort().await;
            Err(error)
        }
    }
}

/// Publishes a version of which all objects are there.
async fn publish_mirrored(
    target: &Reader,
    newest: &Manifest,
    before: Option<&Manifest>,
    branch: &mut Branch,
) -> Result<(), EngineError> {
    let mut manifest = newest.clone();
    // Of what the source has, no other version is here.
    manifest.history = before.iter().map(|it| VersionRange { since: it.version, until: it.version }).collect();
    manifest.tags.retain(|_, version| before.is_some_and(|it| it.version == *version));
    match publish(target, &manifest, branch).await? {
        Published::Taken(Slot::Version(other)) if other.change.writer == manifest.change.writer => {}
        Published::Visible => {}
        Published::Taken(_) => {
            let location = target.store().location(&manifest_name(manifest.version));
            return Err(EngineError::Conflict(format!("{location} was written meanwhile; run it again")));
        }
    }
    hint(target.store(), &manifest).await;
    Ok(())
}

/// Removes what no version that is kept names, the newest of which is first, and fills the slots of other versions: a reader of an
/// older one finds the newest through them. Files that have no name of an object are not the mirror's, and stay. Returns how many
/// objects it removed.
async fn tidy(target: &Store, kept: &[Manifest]) -> Result<u64, EngineError> {
    let slots: HashSet<u64> =
        target.list(MANIFEST_FOLDER).await?.iter().filter_map(|slot| manifest_version(&slot.name)).collect();
    let first = slots.iter().copied().min();
    let newest = kept.first().map_or(0, |newest| newest.version);
    for version in first.unwrap_or(newest)..newest {
        if kept.iter().any(|manifest| manifest.version == version) {
            continue;
        }
        let tombstone = Bytes::from(Slot::encode_removed(""));
        match slots.contains(&version) {
            true => target.put(&manifest_name(version), tombstone).await?,
            false => drop(target.create(&manifest_name(version), tombstone).await?),
        }
    }
    let named: HashSet<&str> = kept.iter().flat_map(|manifest| manifest.objects().into_keys()).collect();
    let objects = target.list(DATA_FOLDER).await?.into_iter().map(|object| object.name);
    let unnamed = objects.filter(|name| data_base_version(name).is_some() && !named.contains(name.as_str()));
    let unnamed: Vec<String> = unnamed.collect();
    target.delete(&unnamed).await?;
    for folder in ["", DATA_FOLDER, MANIFEST_FOLDER] {
        target.remove_staged(folder, target.clock().unix_ms() as i64 - LEFTOVER_MS).await?;
    }
    Ok(unnamed.len() as u64)
}
