//! Reads everything of a graph that can be opened: the hint, the manifest of each version that its newest retains, the tombstones of
//! those that it does not, and each object once. It goes on after damage, lists all of it, and knows which versions are whole.
//!
//! The newest version is found from a listing and the slots themselves, not from the hint, and if its manifest cannot be
//! read the next older one says which versions there are: what verification is for is that something does not read.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use futures::{StreamExt, stream};
use hoplake_format::{
    FormatError, Manifest, Slot,
    constants::{HINT_NAME, MANIFEST_FOLDER, MIRROR_NAME, REMOVED_MAGIC, manifest_name, manifest_version},
};
use hoplake_storage::{Branch, Reader};

use super::{Damage, Verified, findings::Findings, lengths::Lengths, version::VersionCheck};
use crate::{EngineError, OpenSettings, Snapshot, versions};

/// Manifests that are read ahead.
const PARALLEL: usize = 16;

/// What verification found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Verification {
    /// What was read and is whole.
    pub verified: Verified,
    /// Versions that should be there, oldest first, and whether all of each is whole.
    pub versions: Vec<(u64, bool)>,
    /// All damage, of the newest version first; of very much of it, the first thousand.
    pub damages: Vec<Damage>,
    /// Up to where sources were read, in the newest version that can be read. What their positions name is next to the graph, and theirs to
    /// verify; a mirror does not have it, and has no positions here.
    pub source_positions: BTreeMap<String, String>,
}

impl Verification {
    /// The newest version that is whole: it can be opened, and restored.
    pub fn newest_intact(&self) -> Option<u64> {
        self.versions.iter().rev().find(|(_, intact)| *intact).map(|(version, _)| *version)
    }

    /// The newest version, whole or not.
    pub fn newest(&self) -> Option<u64> {
        self.versions.last().map(|(version, _)| *version)
    }
}

/// Reads everything. `progress` is called with the bytes of objects read so far.
///
/// # Errors
/// [`EngineError::NoGraph`] if the place has no graph, and whatever error the store has. That something is damaged or missing
/// is not an error: it is in what is returned.
pub async fn verify_graph(
    reader: &Reader,
    progress: impl Fn(u64),
    branch: &mut Branch,
) -> Result<Verification, EngineError> {
    let mut found = Findings::default();
    let Slots { newest, lost, listed } = newest_readable(reader, &mut found, branch).await?;
    found.of_version(lost.iter().max().copied());
    let past = match &newest {
        Some(newest) => {
            found.of_version(Some(newest.version));
            found.note(versions::past(reader, newest).await)?.unwrap_or_default()
        }
        None => Vec::new(),
    };
    let mut intact: Vec<(u64, bool)> = lost.iter().map(|version| (*version, false)).collect();
    let from = &branch.clone();
    // Manifests of older versions are read ahead while the objects of newer ones are verified.
    let read = |version| async move { (version, versions::read(reader, version, &mut from.clone()).await) };
    let mut manifests = stream::iter(past.into_iter().rev()).map(read).buffered(PARALLEL);
    let mut before: Option<Arc<Snapshot>> = None;
    let mut lengths = Lengths::default();
    let mut next = newest.clone().map(|newest| (newest.version, Ok(newest)));
    while let Some((version, manifest)) = next {
        found.of_version(Some(version));
        // A version that is not there though the newest says so is damage like another.
        let manifest = match manifest {
            Err(EngineError::NoVersion(why)) => found.note(Err(missing(reader, version, why)))?,
            manifest => found.note(manifest)?,
        };
        let mut is_intact = false;
        if let Some(manifest) = manifest {
            lengths.add(&manifest);
            let opened = Snapshot::assemble(manifest, reader.clone(), OpenSettings::default(), before.as_deref());
            if let Some(snapshot) = found.note(opened)? {
                let snapshot = Arc::new(snapshot);
                let check = VersionCheck { snapshot: &snapshot };
                is_intact = check.verify_into(&mut found, &progress).await?;
                // Each check reads the columns: of all versions it would read them as often as there are versions.
                if is_intact && before.is_none() {
                    is_intact = found.note(check.verify_indexes().await)?.is_some();
                }
                before = Some(snapshot);
            }
        }
        intact.push((version, is_intact));
        next = manifests.next().await;
    }
    lengths.check(reader.store(), &mut found).await?;
    let read: BTreeSet<u64> = intact.iter().map(|(version, _)| *version).collect();
    check_removed(reader, &listed, &read, &mut found, branch).await?;
    found.of_version(None);
    let hint = check_hint(reader, newest.as_ref(), lost.iter().max().copied(), branch).await;
    if let Some(Some(version)) = found.note(hint)? {
        found.of_version(Some(version));
        let why = "it is missing; the hint is a copy of it, and can be copied to its place".to_owned();
        found.note::<()>(Err(missing(reader, version, why)))?;
        intact.push((version, false));
    }
    intact.sort_unstable();
    let mut source_positions = newest.map(|newest| newest.source_positions).unwrap_or_default();
    // A mirror has what versions name.
    if !source_positions.is_empty() && reader.store().get(MIRROR_NAME).await?.is_some() {
        source_positions.clear();
    }
    Ok(Verification { verified: found.verified, versions: intact, damages: found.told(), source_positions })
}

fn missing(reader: &Reader, version: u64, why: String) -> EngineError {
    EngineError::format(reader.store().location(&manifest_name(version)))(FormatError::corrupt("manifest", why))
}

/// The version slots of a graph.
struct Slots {
    /// The newest manifest that can be read.
    newest: Option<Manifest>,
    /// Versions above it, whose manifests cannot be read.
    lost: Vec<u64>,
    /// All that are filled, ascending.
    listed: Vec<u64>,
}

async fn newest_readable(reader: &Reader, found: &mut Findings, branch: &mut Branch) -> Result<Slots, EngineError> {
    let listed = reader.store().list(MANIFEST_FOLDER).await?;
    let mut slots: Vec<u64> = listed.iter().filter_map(|object| manifest_version(&object.name)).collect();
    slots.sort_unstable();
    // A listing may lag behind; slots do not.
    let mut next = slots.last().map_or(1, |last| last + 1);
    loop {
        match versions::slot(reader, next, branch).await.map_err(EngineError::from) {
            Ok(None) => break,
            // A damaged slot is taken. What says nothing of the slot, such as a denied request, ends the verification: it would be
            // the same for all slots after it.
            Err(error) if !error.is_damage() => return Err(error),
            Ok(Some(_)) | Err(_) => slots.push(next),
        }
        next += 1;
    }
    let mut lost = Vec::new();
    for version in slots.iter().rev() {
        found.of_version(Some(*version));
        match found.note(versions::slot(reader, *version, branch).await.map_err(EngineError::from))? {
            Some(Some(Slot::Version(manifest))) => {
                return Ok(Slots { newest: Some(*manifest), lost, listed: slots });
            }
            Some(_) => {}
            None => lost.push(*version),
        }
    }
    match lost.is_empty() {
        true => Err(EngineError::no_graph(reader.store().url())),
        false => Ok(Slots { newest: None, lost, listed: slots }),
    }
}

/// Whether the slots of all versions that were not `read` have their tombstones: an empty slot could be taken by a writer that slept, and a
/// reader with an old hint finds the newest version through them.
async fn check_removed(
    reader: &Reader,
    listed: &[u64],
    read: &BTreeSet<u64>,
    found: &mut Findings,
    branch: &mut Branch,
) -> Result<(), EngineError> {
    let store = reader.store();
    let bytes = |version| async move { (version, store.get(&manifest_name(version)).await) };
    let unread = listed.iter().copied().filter(|version| !read.contains(version));
    let mut slots = stream::iter(unread).map(bytes).buffered(PARALLEL);
    while let Some((version, bytes)) = slots.next().await {
        let bytes = bytes?.unwrap_or_default();
        // What was damaged before a vacuum removed its version has no tombstone: its writer is not known.
        let is_tombstone = bytes.starts_with(&REMOVED_MAGIC) || bytes.ends_with(&REMOVED_MAGIC);
        if let (true, Err(error)) = (is_tombstone, Slot::decode(&bytes)) {
            found.of_version(Some(version));
            found.note::<()>(Err(EngineError::format(store.location(&manifest_name(version)))(error)))?;
        }
    }
    // The first slot is never empty.
    for pair in [&[0], listed].concat().windows(2) {
        let before = pair[0];
        let after = pair[1];
        // Those of versions that the newest one names were missed when they were to be read.
        let Some(first) = (before + 1..after).find(|version| !read.contains(version)) else { continue };
        // A listing may leave some out, and a mirror fills those between two of its versions after it has the later one.
        let is_empty = versions::slot(reader, first, branch).await.is_ok_and(|slot| slot.is_none());
        if !is_empty || is_of_clone(reader, before, after, branch).await || store.get(MIRROR_NAME).await?.is_some() {
            continue;
        }
        found.of_version(Some(after - 1));
        let why = format!("versions {first} to {} are not there, not even as removed", after - 1);
        found.note::<()>(Err(missing(reader, first, why)))?;
    }
    Ok(())
}

/// Whether two slots are the first two of a clone: that of its first version, and slot 1, which the same writer has filled.
async fn is_of_clone(reader: &Reader, first: u64, second: u64, branch: &mut Branch) -> bool {
    if first != 1 {
        return false;
    }
    let writer = |slot| match slot {
        Ok(Some(Slot::Version(manifest))) => Some(manifest.change.writer),
        Ok(Some(Slot::Removed { writer })) => Some(writer),
        Ok(None) | Err(_) => None,
    };
    let one = writer(versions::slot(reader, first, branch).await);
    let other = writer(versions::slot(reader, second, branch).await);
    one.is_some() && one == other
}

/// Whether the hint, if there is one, is a copy of a manifest that is or was there. Returns its version if it is the only copy of one.
async fn check_hint(
    reader: &Reader,
    newest: Option<&Manifest>,
    lost: Option<u64>,
    branch: &mut Branch,
) -> Result<Option<u64>, EngineError> {
    let store = reader.store();
    let Some(bytes) = store.get(HINT_NAME).await? else { return Ok(None) };
    let hint = Manifest::decode(&bytes).map_err(EngineError::format(store.location(HINT_NAME)))?;
    let last = newest.map_or(0, |newest| newest.version).max(lost.unwrap_or(0));
    if hint.version > last {
        // It may have been published since.
        let slot = versions::slot(reader, hint.version, branch).await?;
        return Ok(slot.is_none().then_some(hint.version));
    }
    match newest.filter(|newest| newest.version == hint.version && **newest != hint) {
        Some(_) => {
            let why = format!("it is another version {} than the manifest", hint.version);
            Err(EngineError::format(store.location(HINT_NAME))(FormatError::corrupt("hint", why)))
        }
        None => Ok(None),
    }
}
