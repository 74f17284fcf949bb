//! Deletes old versions, and objects that no version names.
//!
//! ```text
//! read and prove what stays ──▶ tombstones and deletions of earlier decisions ──▶ decide ──▶ tombstones and deletions
//! ```
//! A vacuum decides by publishing: the history of the version that it publishes no longer has the deleted versions, so
//! that they cannot be tagged or restored. The version also fills the slot that a stalled writer was about to take.
//! Only then does the vacuum delete objects that a version could still have named.
//!
//! **What is garbage.** The name of a data object contains the version from which its writer began, and the writer.
//! An unpublished object could only have become part of the next version. Once that slot is taken, the object is permanently
//! garbage, unless its writer holds a lease (`lease`). This needs no clock.
//!
//! **Nothing to do.** A vacuum publishes only if it deletes something, and leaves no work for the next one: on a graph
//! without changes, a second vacuum only reads. With versions kept by time, the version that a vacuum published itself
//! is deleted with the next one that has other content.
//!
//! **Proof first.** Deletions cannot be undone, so a vacuum first reads the manifests of all versions that stay, and
//! checks that each object that they name exists with its length. If not, it reports the damage and does nothing: the
//! objects that it was about to delete may serve to repair a version.
//!
//! **A full disk.** Leftovers that no version will ever name need no decision, so they are deleted before the vacuum
//! writes. If the disk is still full, it deletes the hint: the hint decides nothing, and is as large as the manifest to
//! be written.
//!
//! **What remains of a version.** A version tombstone in its slot, since a writer with an old version could take an empty slot.

mod proof;

use std::collections::{HashMap, HashSet};

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use hoplake_format::{
    ChangeKind, FormatError, Manifest, Slot, VersionRange, WriterLease,
    constants::{
        DATA_FOLDER, HINT_NAME, MANIFEST_FOLDER, REMOVED_BYTES_MAX, data_base_version, data_writer, is_probe,
        manifest_name, manifest_version,
    },
};
use hoplake_storage::{Branch, ObjectInfo, Reader, Store};

use ulid::Ulid;

use crate::{
    EngineError, versions,
    write::publish::{Published, amend, change, hint, publish},
};
use proof::Past;

/// The maximum number of manifests that are read or overwritten concurrently.
const PARALLEL: usize = 32;

/// The folders in which a location without a graph may have unfinished files, of a first load or of a killed export. No other folders below
/// it are searched, since it could be any folder.
const EXPORTED: [&str; 5] = ["", DATA_FOLDER, MANIFEST_FOLDER, "vertices", "edges"];

/// The maximum number of damaged or missing objects that an error names.
const DAMAGES_TOLD: usize = 8;

/// The minimum age of a writer's probe objects before they are deleted. If one was deleted between two creates, both would succeed, and the
/// writer would reject the store.
const PROBE_AGE_MS: i64 = 10_000;

/// The settings of a vacuum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VacuumSettings {
    /// How many of the newest past versions are kept; `None` keeps all, unless `keep_since_unix_ms` is set.
    pub keep_versions: Option<u64>,
    /// Past versions that were the newest at this time or later are kept; `None` keeps all, unless
    /// `keep_versions` is set. If both are set, a version is kept if either setting keeps it. Tagged versions are always kept.
    pub keep_since_unix_ms: Option<u64>,
    /// Objects that may belong to a current writer or to the first load are deleted only if they were last written before this time, by
    /// the store's clock; such a writer has to start again. In a folder, the same holds for unfinished files, whose writer fails.
    pub written_before_unix_ms: i64,
    /// Writers whose lease is older than this time count as dead.
    pub announced_before_unix_ms: u64,
    /// Further writers that count as dead.
    pub abort: Vec<String>,
    /// The timeout, in milliseconds; the next vacuum deletes what this one did not. By default there is none.
    pub timeout_ms: Option<u64>,
}

impl Default for VacuumSettings {
    /// Settings that delete only what is certainly garbage.
    fn default() -> Self {
        Self {
            keep_versions: None,
            keep_since_unix_ms: None,
            written_before_unix_ms: i64::MIN,
            announced_before_unix_ms: 0,
            abort: Vec::new(),
            timeout_ms: None,
        }
    }
}

/// The deletions of a vacuum.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Vacuumed {
    /// Deleted versions.
    pub versions: u64,
    /// Deleted objects.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Writers that can no longer publish.
    pub aborted: Vec<WriterLease>,
    /// Writers with a lease, whose objects are kept.
    pub spared: Vec<WriterLease>,
}

/// Deletes versions that the settings do not keep, and data objects that no version names.
///
/// # Errors
/// [`EngineError::NotFound`] if there is neither a graph nor the remains of a first load; [`EngineError::Format`] that lists
/// the damaged or missing objects of versions that are kept, if there are any, and then nothing is deleted; the store's error.
pub fn vacuum<'a>(
    reader: &'a Reader,
    settings: &'a VacuumSettings,
    branch: &'a mut Branch,
) -> BoxFuture<'a, Result<Vacuumed, EngineError>> {
    Box::pin(async move {
        let store = reader.store();
        let mut staged = Vacuumed::default();
        let mut before = None;
        loop {
            // In this order: what was written after the newest version was read is not in the listing.
            let listed = store.list(DATA_FOLDER).await?;
            let newest = match versions::newest(reader, branch).await? {
                Some(newest) => newest,
                None => {
                    let before = settings.written_before_unix_ms;
                    remove_staged(store, EXPORTED.map(str::to_owned), before, &mut staged).await?;
                    // A first load may be at work on it.
                    let is_at_work = |object: &ObjectInfo| object.modified_unix_ms >= settings.written_before_unix_ms;
                    match () {
                        () if listed.is_empty() && staged.objects == 0 => {
                            return Err(EngineError::no_graph(store.url()));
                        }
                        () if listed.is_empty() || listed.iter().any(is_at_work) => return Ok(staged),
                        () => close_first(reader, branch).await?,
                    }
                }
            };
            let past = Past::read(reader, &newest, branch).await?;
            let since = settings.keep_since_unix_ms.map(|since| past.newest_at(&newest, since));
            let stays = kept(&newest, &newest.history, settings.keep_versions, since);
            let damages = past.damages(store, &newest, &stays, &listed).await?;
            // Another vacuum may have deleted the objects that seem to be missing: then there is a newer version.
            if !damages.is_empty() && before.replace(newest.version) != Some(newest.version) {
                continue;
            }
            reject(store, &damages)?;
            // Their versions are unknown, and they occupy space that is needed now.
            let folders = folders_of(store).await?;
            remove_staged(store, folders, settings.written_before_unix_ms, &mut staged).await?;
            let present = versions_present(store).await?;
            return Vacuum { reader, settings, branch, listed, present, past, since }.run(newest, staged).await;
        }
    })
}

/// Fails if an object of a version that is kept is damaged.
fn reject(store: &Store, damages: &[String]) -> Result<(), EngineError> {
    if damages.is_empty() {
        return Ok(());
    }
    let told = damages.iter().take(DAMAGES_TOLD).cloned().collect::<Vec<_>>().join("; ");
    let more = match damages.len().saturating_sub(DAMAGES_TOLD) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    let why = format!("nothing is removed, since versions that stay are damaged: {told}{more}");
    Err(EngineError::format(store.url())(FormatError::corrupt("graph", why)))
}

/// A vacuum of a graph after the proof that the versions that stay are intact.
struct Vacuum<'a> {
    reader: &'a Reader,
    settings: &'a VacuumSettings,
    branch: &'a mut Branch,
    /// Data objects.
    listed: Vec<ObjectInfo>,
    /// Versions whose slots have no version tombstone yet.
    present: Vec<u64>,
    past: Past,
    /// The first version that is kept because of its time.
    since: Option<u64>,
}

impl Vacuum<'_> {
    /// Adds its deletions to those before.
    async fn run(mut self, newest: Manifest, mut vacuumed: Vacuumed) -> Result<Vacuumed, EngineError> {
        // The objects of an unreadable version are unknown: then nothing is deleted before the decision to delete that
        // version.
        if self.past.is_readable() {
            self.clear(&newest, &mut vacuumed).await?;
        }
        let known = newest.version;
        let decided = self.decide(newest.clone()).await;
        let (decided, aborted) = match decided {
            Err(EngineError::Storage(error)) if error.is_full() => {
                self.reader.store().delete(&[HINT_NAME.to_owned()]).await?;
                self.decide(newest).await?
            }
            decided => decided?,
        };
        if decided.version > known {
            // It may delete versions that other writers published meanwhile.
            self.present = versions_present(self.reader.store()).await?;
        }
        // Deletions are final, so the decision must not be lost, also if another vacuum published it a moment ago.
        self.reader.store().flush(MANIFEST_FOLDER).await?;
        self.past.read_more(self.reader, &decided, self.branch).await?;
        self.clear(&decided, &mut vacuumed).await?;
        Ok(Vacuumed { aborted, spared: decided.leases, ..vacuumed })
    }

    /// Writes tombstones of the versions that a manifest excludes, and then deletes the objects that only they named:
    /// an earlier vacuum that decided so may have been killed before that, and a version without a tombstone counts as
    /// readable.
    async fn clear(&mut self, decided: &Manifest, vacuumed: &mut Vacuumed) -> Result<(), EngineError> {
        let written = self.write_tombstones(decided).await;
        let full = matches!(&written, Err(EngineError::Storage(error)) if error.is_full());
        if !full {
            vacuumed.versions += written?;
        }
        self.remove_garbage(decided, vacuumed).await?;
        if full {
            // The deletions have freed space.
            vacuumed.versions += self.write_tombstones(decided).await?;
        }
        Ok(())
    }

    /// Overwrites the slots of deleted versions, and returns their number.
    async fn write_tombstones(&mut self, decided: &Manifest) -> Result<u64, EngineError> {
        let reader = self.reader;
        let past = &self.past;
        let goes = |version: u64| version < decided.version && !decided.has_version(version);
        let gone: Vec<_> = self.present.iter().copied().filter(|version| goes(*version)).collect();
        let branch = &*self.branch;
        let writes = gone.iter().map(|version| write_tombstone(reader, *version, past, branch.clone()).boxed());
        let writes: Vec<_> = writes.collect();
        let written: Vec<Branch> = stream::iter(writes).buffer_unordered(PARALLEL).try_collect().await?;
        self.branch.join(&written);
        self.present.retain(|version| !goes(*version));
        Ok(gone.len() as u64)
    }

    /// Publishes the decision which versions and leases end, if any, or if writers at work on the newest version must
    /// be fenced off. Returns the manifest with the decision.
    async fn decide(&mut self, newest: Manifest) -> Result<(Manifest, Vec<WriterLease>), EngineError> {
        let reader = self.reader;
        let settings = self.settings;
        let since = self.since;
        let stale = self.is_stale(&newest);
        let dead = dead(reader, &newest, settings, self.branch).await?;
        let kept = |newest: &Manifest, past: &[VersionRange]| kept(newest, past, settings.keep_versions, since);
        let mut aborted = Vec::new();
        let amended = amend(reader, self.branch, |newest| {
            let leases: (Vec<_>, Vec<_>) =
                newest.leases.iter().cloned().partition(|lease| !dead.contains(&lease.writer));
            aborted = leases.1;
            let stays = kept(newest, &newest.history);
            // By count, the published version replaces a deleted one; by time, it would itself be deleted the next
            // time.
            let goes = stays != newest.history && (since.is_none() || self.past.is_worth_a_version(newest, &stays));
            if !goes && aborted.is_empty() && !stale {
                return Ok(None);
            }
            let change = change(reader.store(), ChangeKind::Fence, "vacuum");
            let mut next = newest.next(change, reader.store().clock().unix_ms());
            // No other writer completes the index of a dead one.
            next.drop_unfinished_indexes(|writer| !aborted.iter().any(|lease| lease.writer == writer));
            // The version it builds on is a past one then, and counts as one: the next vacuum finds nothing to do.
            let history = kept(newest, &next.history);
            Ok(Some(Manifest { history, leases: leases.0, ..next }))
        });
        let decided = amended.await?;
        Ok((decided.unwrap_or(newest), aborted))
    }

    /// Whether there are old objects that only a writer on the newest version could still publish.
    fn is_stale(&self, newest: &Manifest) -> bool {
        let named = newest.objects();
        self.listed.iter().any(|object| {
            data_base_version(&object.name).is_some_and(|base| base >= newest.version)
                && !is_probe(&object.name)
                && !named.contains_key(object.name.as_str())
                && object.modified_unix_ms < self.settings.written_before_unix_ms
        })
    }

    /// Deletes objects that neither a known version nor any later one can name.
    async fn remove_garbage(&mut self, newest: &Manifest, vacuumed: &mut Vacuumed) -> Result<(), EngineError> {
        let named = self.past.named(newest);
        let spared: HashSet<_> = newest.leases.iter().map(|lease| lease.writer.as_str()).collect();
        let now = i64::try_from(self.reader.store().clock().unix_ms()).unwrap_or(i64::MAX);
        let untried = self.settings.written_before_unix_ms.min(now.saturating_sub(PROBE_AGE_MS));
        let is_garbage = |object: &ObjectInfo| {
            if is_probe(&object.name) {
                return object.modified_unix_ms < untried;
            }
            let past = data_base_version(&object.name).is_some_and(|base| base < newest.version);
            let at_work = data_writer(&object.name).is_some_and(|writer| spared.contains(writer));
            past && !at_work && !named.contains(object.name.as_str())
        };
        let (garbage, left): (Vec<_>, Vec<_>) = std::mem::take(&mut self.listed).into_iter().partition(is_garbage);
        self.listed = left;
        let lengths: HashMap<_, _> = garbage.iter().map(|object| (object.name.as_str(), object.bytes)).collect();
        vacuumed.objects += lengths.len() as u64;
        vacuumed.bytes += lengths.values().sum::<u64>();
        let names: Vec<_> = garbage.iter().map(|object| object.name.clone()).collect();
        Ok(self.reader.store().delete(&names).await?)
    }
}

/// The folders of a graph, those of its feeds among them: `feeds/<source>` is the deepest.
async fn folders_of(store: &Store) -> Result<Vec<String>, EngineError> {
    let mut folders = vec![String::new()];
    let mut from = 0;
    for _ in 0..2 {
        let level = from..folders.len();
        from = folders.len();
        for at in level {
            let below = store.folders(&folders[at]).await?;
            folders.extend(below);
        }
    }
    Ok(folders)
}

/// Deletes unfinished files, which listings of objects do not show.
async fn remove_staged(
    store: &Store,
    folders: impl IntoIterator<Item = String>,
    before_unix_ms: i64,
    removed: &mut Vacuumed,
) -> Result<(), EngineError> {
    for folder in folders {
        for file in store.remove_staged(&folder, before_unix_ms).await? {
            removed.objects += 1;
            removed.bytes += file.bytes;
        }
    }
    Ok(())
}

/// Publishes an empty first version, for a load that never ended: if it resumes, it cannot publish the objects that are deleted now.
async fn close_first(reader: &Reader, branch: &mut Branch) -> Result<Manifest, EngineError> {
    let change = change(reader.store(), ChangeKind::Fence, "vacuum of a load that was not done");
    let created_unix_ms = reader.store().clock().unix_ms();
    let first = Manifest { version: 1, reset: 1, created_unix_ms, change, ..Manifest::default() };
    match publish(reader, &first, branch).await? {
        Published::Visible => {
            hint(reader.store(), &first).await;
            Ok(first)
        }
        Published::Taken(_) => {
            let why = format!("another writer has just begun the graph at {}; look again", reader.store().url());
            Err(EngineError::Conflict(why))
        }
    }
}

/// The past versions that are kept: the newest `count`, those from `since` on, and those with a tag.
fn kept(newest: &Manifest, past: &[VersionRange], count: Option<u64>, since: Option<u64>) -> Vec<VersionRange> {
    if count.is_none() && since.is_none() {
        return past.to_vec();
    }
    let mut left = count.unwrap_or(0);
    let mut stays: Vec<_> = newest.tags.values().map(|version| VersionRange::of(*version)).collect();
    for range in past.iter().rev() {
        let by_count = range.until + 1 - left.min(range.until + 1 - range.since);
        left -= range.until + 1 - by_count;
        let first = by_count.min(since.unwrap_or(u64::MAX)).max(range.since);
        if first <= range.until {
            stays.push(VersionRange { since: first, until: range.until });
        }
    }
    stays.sort_unstable();
    let mut history = Vec::new();
    stays.into_iter().for_each(|range| extend(&mut history, range));
    history
}

/// Adds versions that begin with the last of `history` or later.
fn extend(history: &mut Vec<VersionRange>, range: VersionRange) {
    match history.last_mut() {
        Some(last) if range.since <= last.until + 1 => last.until = last.until.max(range.until),
        _ => history.push(range),
    }
}

/// The writers to abort: those named in the settings, and those whose lease is too old.
async fn dead(
    reader: &Reader,
    newest: &Manifest,
    settings: &VacuumSettings,
    branch: &mut Branch,
) -> Result<HashSet<String>, EngineError> {
    let at_work = |writer: &&String| newest.leases.iter().any(|lease| lease.writer == **writer);
    if let Some(unknown) = settings.abort.iter().find(|writer| !at_work(writer)) {
        let why = format!("no writer {unknown} is at work on {}", reader.store().url());
        return Err(EngineError::NotFound(why));
    }
    let mut dead: HashSet<String> = settings.abort.iter().cloned().collect();
    for lease in &newest.leases {
        let announced = match versions::slot(reader, lease.since, branch).await? {
            Some(Slot::Version(manifest)) => manifest.created_unix_ms,
            // That version was deleted. That says nothing about its age: many commits may have followed in a moment.
            _ => Ulid::from_string(&lease.writer).map_or(0, |name| name.timestamp_ms()),
        };
        if announced < settings.announced_before_unix_ms {
            dead.insert(lease.writer.clone());
        }
    }
    Ok(dead)
}

/// The versions whose slots have a manifest.
async fn versions_present(store: &Store) -> Result<Vec<u64>, EngineError> {
    let listed = store.list(MANIFEST_FOLDER).await?;
    let whole = listed.into_iter().filter(|object| object.bytes > REMOVED_BYTES_MAX);
    Ok(whole.filter_map(|object| manifest_version(&object.name)).collect())
}

/// Overwrites the slot of a deleted version with a tombstone, and returns the branch of this work.
async fn write_tombstone(
    reader: &Reader,
    version: u64,
    past: &Past,
    mut branch: Branch,
) -> Result<Branch, EngineError> {
    let writer = match past.writer(version) {
        Some(writer) => writer.to_owned(),
        None => match versions::slot(reader, version, &mut branch).await.map_err(EngineError::from) {
            Ok(Some(Slot::Version(manifest))) => manifest.change.writer,
            Ok(_) => return Ok(branch),
            // Its writer is lost, and it cannot be opened either.
            Err(error) if error.is_damage() => return Ok(branch),
            Err(error) => return Err(error),
        },
    };
    reader.store().put(&manifest_name(version), Slot::encode_removed(&writer).into()).await?;
    branch.then(1);
    Ok(branch)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_stays_is_what_was_asked_for(
            there in proptest::collection::btree_set(1u64..60, 0..40),
            tagged in proptest::collection::vec(0usize..40, 0..4),
            count in proptest::option::of(0u64..20),
            since in proptest::option::of(0u64..70),
        ) {
            let past: Vec<u64> = there.into_iter().collect();
            let mut newest = Manifest { version: 60, ..Manifest::default() };
            past.iter().for_each(|version| extend(&mut newest.history, VersionRange::of(*version)));
            for (number, at) in tagged.iter().enumerate() {
                if let Some(version) = past.get(*at) {
                    newest.tags.insert(number.to_string(), *version);
                }
            }
            let found = kept(&newest, &newest.history, count, since);
            let found: Vec<u64> = found.iter().flat_map(|range| range.since..=range.until).collect();
            let stays = |(at, version): (usize, u64)| {
                let by_count = count.is_some_and(|count| (past.len() - at) as u64 <= count);
                let all = count.is_none() && since.is_none();
                all || by_count || since.is_some_and(|since| version >= since) || newest.tags.values().any(|it| *it == version)
            };
            let expected: Vec<u64> =
                past.iter().copied().enumerate().filter(|it| stays(*it)).map(|(_, version)| version).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
