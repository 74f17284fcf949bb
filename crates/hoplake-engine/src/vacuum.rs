//! Lets old versions go, and removes what no version names.
//!
//! A vacuum decides by publishing: the version that it publishes no longer has those that go in its history, so that
//! nobody can tag or restore them, and fills the slot that a writer who stalled was about to take. Only then is
//! anything removed.
//!
//! **What is garbage.** The name of a data object says from which version its writer began, and who it is. Unpublished,
//! it could only have become part of the version after that one; once that slot is filled the object is garbage for
//! ever, unless its writer has announced that it takes long ([`crate::intent`]). No clock is asked.
//!
//! **What stays of a version.** Its slot is overwritten with a mark, since an empty slot could be taken by a writer who
//! believes that it comes next.

use std::collections::{HashMap, HashSet};

use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use hoplake_format::{
    ChangeKind, Intent, Manifest, Slot, VersionRange,
    constants::{
        DATA_FOLDER, MANIFEST_FOLDER, REMOVED_BYTES_MAX, data_base_version, data_writer, manifest_name,
        manifest_version,
    },
};
use hoplake_storage::{
    ObjectInfo, QueryContext, Reader, Store, Wave,
    planted::{Bug, planted},
};

use crate::{
    EngineError,
    publish::{Published, amend, change, hint, publish},
    versions,
};

/// Manifests that are read or marked at the same time.
const PARALLEL: usize = 32;

/// What a vacuum lets go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VacuumSettings {
    /// Of past versions, so many of the newest stay; `None` keeps all, unless `keep_since_unix_ms` says otherwise.
    pub keep_versions: Option<u64>,
    /// Of past versions, those that were the newest at this time or later stay; `None` keeps all, unless
    /// `keep_versions` says otherwise. If both are given, what either keeps stays. Tagged versions always stay.
    pub keep_since_unix_ms: Option<u64>,
    /// What may belong to a writer at work on the newest version, or to the first load of all, is removed only if it was
    /// last written before this time; such a writer has to begin again. In a folder so are the files of objects that were not
    /// finished, and a writer at work on one fails. By the store's clock.
    pub written_before_unix_ms: i64,
    /// Writers that announced themselves are taken for dead if they did so before this time.
    pub announced_before_unix_ms: u64,
    /// Writers that are dead.
    pub abort: Vec<String>,
}

impl Default for VacuumSettings {
    /// Removes nothing but garbage that is certain.
    fn default() -> Self {
        Self {
            keep_versions: None,
            keep_since_unix_ms: None,
            written_before_unix_ms: i64::MIN,
            announced_before_unix_ms: 0,
            abort: Vec::new(),
        }
    }
}

/// What a vacuum removed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Vacuumed {
    /// Versions that can no longer be opened.
    pub versions: u64,
    /// Objects.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Writers that cannot publish any more.
    pub aborted: Vec<Intent>,
    /// Writers that have announced themselves and are not done, whose objects stay.
    pub spared: Vec<Intent>,
}

/// Removes versions that are not to stay, and data objects that no version names.
///
/// # Errors
/// [`EngineError::NotFound`] if there is neither a graph nor what a first load left; the store's; or that a manifest is
/// damaged, and then no data is removed.
pub async fn vacuum(
    reader: &Reader,
    settings: &VacuumSettings,
    context: &QueryContext,
) -> Result<Vacuumed, EngineError> {
    let store = reader.store();
    let staged = remove_staged(store, settings.written_before_unix_ms).await?;
    let listed = store.list(DATA_FOLDER).await?;
    let newest = match versions::newest(reader, context).await? {
        Some(newest) => newest,
        None if listed.is_empty() && staged.objects > 0 => return Ok(staged),
        None if listed.is_empty() => {
            return Err(EngineError::no_graph(store.url()));
        }
        // A first load may be at work on it.
        None if listed.iter().any(|object| object.modified_unix_ms >= settings.written_before_unix_ms) => {
            return Ok(staged);
        }
        None => close_first(reader, context).await?,
    };
    let (decided, aborted) = decide(reader, newest, &listed, settings, context).await?;
    // What it says goes for ever, so it must not be lost, also if another vacuum published it a moment ago.
    store.flush(MANIFEST_FOLDER).await?;
    let versions = mark_removed(reader, &decided, context).await?;
    let named = named(reader, &decided, context).await?;
    let spared: HashSet<_> = decided.intents.iter().map(|intent| intent.writer.as_str()).collect();
    let is_garbage = |object: &ObjectInfo| {
        let fence = decided.version + u64::from(planted(Bug::FenceForgotten));
        let past = data_base_version(&object.name).is_some_and(|base| base < fence);
        let at_work = data_writer(&object.name).is_some_and(|writer| spared.contains(writer));
        past && (!at_work || planted(Bug::IntentIgnored)) && !named.contains(&object.name)
    };
    let removed = remove(reader, listed.into_iter().filter(is_garbage).collect()).await?;
    let (objects, bytes) = (staged.objects + removed.objects, staged.bytes + removed.bytes);
    Ok(Vacuumed { versions, objects, bytes, aborted, spared: decided.intents.clone() })
}

/// Removes the files of objects that were never finished, which no listing of objects shows.
async fn remove_staged(store: &Store, before_unix_ms: i64) -> Result<Vacuumed, EngineError> {
    let mut removed = Vacuumed::default();
    for folder in ["", DATA_FOLDER, MANIFEST_FOLDER] {
        for file in store.remove_staged(folder, before_unix_ms).await? {
            removed.objects += 1;
            removed.bytes += file.bytes;
        }
    }
    Ok(removed)
}

/// Publishes a first version with nothing in it, for a load that never came to its end: should it wake up, it cannot publish
/// what is removed now.
async fn close_first(reader: &Reader, context: &QueryContext) -> Result<Manifest, EngineError> {
    let change = change(reader.store(), ChangeKind::Fence, "vacuum of a load that was not done");
    let created_unix_ms = reader.store().clock().unix_ms();
    let first = Manifest { version: 1, reset: 1, created_unix_ms, change, ..Manifest::default() };
    match publish(reader, &first, context).await? {
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

/// Publishes which versions and writers go, if any do, or if the newest version is to be closed to those at work on it.
/// Returns the manifest that says so.
async fn decide(
    reader: &Reader,
    newest: Manifest,
    listed: &[ObjectInfo],
    settings: &VacuumSettings,
    context: &QueryContext,
) -> Result<(Manifest, Vec<Intent>), EngineError> {
    let named = newest.objects();
    // It may be of the newest version alone, or of a writer at work on it.
    let stale = listed.iter().any(|object| {
        data_base_version(&object.name).is_some_and(|base| base >= newest.version)
            && !named.contains_key(object.name.as_str())
            && object.modified_unix_ms < settings.written_before_unix_ms
    });
    let since = match settings.keep_since_unix_ms {
        Some(since) => Some(newest_at(reader, &newest, since, context).await?),
        None => None,
    };
    let dead: HashSet<_> = dead(reader, &newest, settings, context).await?;
    let mut aborted = Vec::new();
    let amended = amend(reader, context, |newest| {
        let history = kept(newest, settings.keep_versions, since);
        let intents: (Vec<_>, Vec<_>) =
            newest.intents.iter().cloned().partition(|intent| !dead.contains(&intent.writer));
        aborted = intents.1;
        if history == newest.history && aborted.is_empty() && !stale || planted(Bug::Undecided) {
            return Ok(None);
        }
        let change = change(reader.store(), ChangeKind::Fence, "vacuum");
        let next = newest.next(change, reader.store().clock().unix_ms());
        // The version it builds on is the newest past one now, and is decided on next time.
        let mut history = history;
        extend(&mut history, VersionRange::of(newest.version));
        Ok(Some(Manifest { history, intents: intents.0, ..next }))
    });
    let decided = amended.await?;
    if planted(Bug::Undecided) {
        let history = kept(&newest, settings.keep_versions, since);
        return Ok((Manifest { history, ..newest }, aborted));
    }
    Ok((decided.unwrap_or(newest), aborted))
}

/// The past versions that stay: the newest `count`, those from `since` on, and those with a tag.
fn kept(newest: &Manifest, count: Option<u64>, since: Option<u64>) -> Vec<VersionRange> {
    if count.is_none() && since.is_none() {
        return newest.history.clone();
    }
    let mut left = count.unwrap_or(0);
    let tags = newest.tags.values().filter(|_| !planted(Bug::TagsForgotten));
    let mut stays: Vec<_> = tags.map(|version| VersionRange::of(*version)).collect();
    for range in newest.history.iter().rev() {
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

/// The version that was the newest at a time; the oldest there is, if none was. Times never go back from one version to
/// the next, so a search by halves finds it.
async fn newest_at(
    reader: &Reader,
    newest: &Manifest,
    unix_ms: u64,
    context: &QueryContext,
) -> Result<u64, EngineError> {
    if newest.created_unix_ms <= unix_ms {
        return Ok(newest.version);
    }
    let past: Vec<u64> = newest.history.iter().flat_map(|range| range.since..=range.until).collect();
    let (mut low, mut high) = (0, past.len());
    while low < high {
        let middle = (low + high) / 2;
        let (manifest, _) = versions::read(reader, past[middle], Wave(0), context).await?;
        if manifest.created_unix_ms <= unix_ms {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Ok(low.checked_sub(1).map_or(0, |at| past[at]))
}

/// The writers that are to be aborted: named, or announced too long ago.
async fn dead(
    reader: &Reader,
    newest: &Manifest,
    settings: &VacuumSettings,
    context: &QueryContext,
) -> Result<HashSet<String>, EngineError> {
    let mut dead: HashSet<String> = settings.abort.iter().cloned().collect();
    for intent in &newest.intents {
        // A version that is gone is old enough.
        let announced = match versions::slot(reader, intent.since, Wave(0), context).await? {
            (Some(Slot::Version(manifest)), _) => manifest.created_unix_ms,
            _ => 0,
        };
        if announced < settings.announced_before_unix_ms {
            dead.insert(intent.writer.clone());
        }
    }
    Ok(dead)
}

/// Overwrites the slots of versions that cannot be opened any more, and says how many there were.
async fn mark_removed(reader: &Reader, decided: &Manifest, context: &QueryContext) -> Result<u64, EngineError> {
    let listed = reader.store().list(MANIFEST_FOLDER).await?;
    let gone = listed.into_iter().filter(|object| object.bytes > REMOVED_BYTES_MAX);
    let gone = gone.filter_map(|object| manifest_version(&object.name));
    let gone: Vec<_> = gone.filter(|version| *version < decided.version && !decided.has_version(*version)).collect();
    let marks: Vec<_> = gone.iter().map(|version| mark(reader, *version, context).boxed()).collect();
    stream::iter(marks).buffer_unordered(PARALLEL).try_collect::<Vec<()>>().await?;
    Ok(gone.len() as u64)
}

async fn mark(reader: &Reader, version: u64, context: &QueryContext) -> Result<(), EngineError> {
    if let (Some(Slot::Version(manifest)), _) = versions::slot(reader, version, Wave(0), context).await? {
        if planted(Bug::SlotFreed) {
            return Ok(reader.store().delete(&[manifest_name(version)]).await?);
        }
        let mark = Slot::encode_removed(&manifest.change.writer);
        reader.store().put(&manifest_name(version), mark.into()).await?;
    }
    Ok(())
}

/// All objects that a version names which can be opened.
async fn named(reader: &Reader, decided: &Manifest, context: &QueryContext) -> Result<HashSet<String>, EngineError> {
    let past = decided.history.iter().flat_map(|range| range.since..=range.until);
    let past = past.filter(|_| !planted(Bug::PastForgotten));
    let manifests: Vec<_> = past.map(|version| versions::read(reader, version, Wave(0), context).boxed()).collect();
    let mut manifests = stream::iter(manifests).buffer_unordered(PARALLEL);
    let mut named: HashSet<String> = decided.objects().into_keys().map(str::to_owned).collect();
    while let Some((manifest, _)) = manifests.try_next().await? {
        named.extend(manifest.objects().into_keys().map(str::to_owned));
    }
    Ok(named)
}

async fn remove(reader: &Reader, garbage: Vec<ObjectInfo>) -> Result<Vacuumed, EngineError> {
    let lengths: HashMap<_, _> = garbage.iter().map(|object| (object.name.as_str(), object.bytes)).collect();
    let vacuumed = Vacuumed { objects: lengths.len() as u64, bytes: lengths.values().sum(), ..Vacuumed::default() };
    let names: Vec<_> = garbage.into_iter().map(|object| object.name).collect();
    reader.store().delete(&names).await?;
    Ok(vacuumed)
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
            let found = kept(&newest, count, since);
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
