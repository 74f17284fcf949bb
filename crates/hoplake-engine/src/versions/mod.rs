//! Versions of a graph: reading one, and finding the newest.
//!
//! Each version has a slot, the name of its manifest. Slots are filled in their order, and never become empty again: a
//! deleted version leaves a version tombstone in its slot. So the newest version is the last before an empty slot,
//! wherever a search begins: at the hint, at an older version, or at a listing.

pub mod diff;
pub mod history;
pub mod log;
pub mod mirror;
pub mod vacuum;
pub mod verify;

use bytes::Bytes;
use futures::future::BoxFuture;
use hoplake_format::{
    FormatError, Manifest, Slot,
    constants::{HINT_NAME, MANIFEST_FOLDER, manifest_name, manifest_version},
};
use hoplake_storage::{Branch, Reader, StorageError};

use crate::EngineError;

/// The manifest of a version.
///
/// # Errors
/// [`EngineError::NoGraph`] if there is no graph, [`EngineError::NoVersion`] if the version does not exist, or was
/// removed; [`EngineError::Storage`] if it cannot be read, or is damaged.
pub fn read<'a>(
    reader: &'a Reader,
    version: u64,
    branch: &'a mut Branch,
) -> BoxFuture<'a, Result<Manifest, EngineError>> {
    Box::pin(async move {
        let url = reader.store().url();
        match slot(reader, version, branch).await? {
            Some(Slot::Version(manifest)) => Ok(*manifest),
            Some(Slot::Removed { .. }) => {
                Err(EngineError::NoVersion(format!("version {version} of {url} was removed by a vacuum")))
            }
            // If not even a graph exists, the caller has the wrong address.
            None if nearly_newest(reader, branch).await?.is_none() => Err(EngineError::no_graph(url)),
            None => Err(EngineError::NoVersion(format!("{url} has no version {version}"))),
        }
    })
}

/// The manifest of the newest version; `None` if there is no graph.
///
/// # Errors
/// The store's; or that a manifest is damaged.
pub fn newest<'a>(reader: &'a Reader, branch: &'a mut Branch) -> BoxFuture<'a, Result<Option<Manifest>, EngineError>> {
    Box::pin(async move {
        let Some(start) = nearly_newest(reader, branch).await? else { return Ok(None) };
        Ok(Some(after(reader, start.version, branch).await?.unwrap_or(start)))
    })
}

/// The manifest of a version that is probably the newest: the hint's, or without a readable hint the last that a
/// listing shows.
pub(crate) async fn nearly_newest(reader: &Reader, branch: &mut Branch) -> Result<Option<Manifest>, EngineError> {
    // A hint is only advice: it is overwritten, so that a reader may meet half of it.
    let decode = |hint: Bytes| Ok(Manifest::decode(&hint).ok());
    match reader.read_object(HINT_NAME, branch, decode).await?.flatten() {
        Some(hint) => Ok(Some(hint)),
        None => listed(reader, branch).await,
    }
}

/// The manifest of the newest version, if it is newer than `version`. One request if it is not, and one for each
/// version between.
pub(crate) async fn after(reader: &Reader, version: u64, branch: &mut Branch) -> Result<Option<Manifest>, EngineError> {
    let Some(mut newest) = later(reader, version, branch).await? else { return Ok(None) };
    while let Some(newer) = later(reader, newest.version, branch).await? {
        newest = newer;
    }
    Ok(Some(newest))
}

/// Versions that may be missing in a listing of those that can be opened, because it lags behind or they were vacuumed.
const UNLISTED_MAX: u64 = 10_000;

/// The past versions that a manifest says can be opened, oldest first. Without a request, unless they are very many:
/// forged numbers may claim more versions than memory holds, so beyond a bound a listing has to show them.
///
/// # Errors
/// An error if far fewer exist; the store's error.
pub fn past<'a>(reader: &'a Reader, newest: &'a Manifest) -> BoxFuture<'a, Result<Vec<u64>, EngineError>> {
    Box::pin(async move {
        let claimed: u64 = newest.history.iter().map(|range| range.until - range.since + 1).sum();
        if claimed > UNLISTED_MAX {
            let listed = reader.store().list(MANIFEST_FOLDER).await?;
            let listed = listed.iter().filter_map(|object| manifest_version(&object.name));
            let past = |version: &u64| *version < newest.version && newest.has_version(*version);
            let there = listed.filter(past).count() as u64;
            if claimed - there.min(claimed) > UNLISTED_MAX {
                let why = format!("it claims that {claimed} past versions can be opened, but {there} exist");
                let location = reader.store().location(&manifest_name(newest.version));
                return Err(EngineError::format(location)(FormatError::corrupt("manifest", why)));
            }
        }
        Ok(newest.history.iter().flat_map(|range| range.since..=range.until).collect())
    })
}

/// The newest manifest that can be read, though newer ones are damaged, and the number of the newest of all.
pub(crate) async fn last_readable(reader: &Reader, branch: &mut Branch) -> Result<(Manifest, u64), EngineError> {
    let listed = reader.list(MANIFEST_FOLDER, branch).await?;
    let mut slots: Vec<u64> = listed.iter().filter_map(|object| manifest_version(&object.name)).collect();
    slots.sort_unstable();
    let last = slots.last().copied().unwrap_or_default();
    for version in slots.iter().rev() {
        match slot(reader, *version, branch).await.map_err(EngineError::from) {
            Ok(Some(Slot::Version(manifest))) => return Ok((*manifest, last)),
            Ok(_) => {}
            Err(error) if error.is_damage() => branch.then(1),
            Err(error) => return Err(error),
        }
    }
    Err(EngineError::NotFound(format!("no version of {} can be read", reader.store().url())))
}

/// The manifest of a later version, usually the next; `None` if there is none. One request.
pub(crate) async fn later(reader: &Reader, version: u64, branch: &mut Branch) -> Result<Option<Manifest>, EngineError> {
    match slot(reader, version + 1, branch).await? {
        None => Ok(None),
        Some(Slot::Version(manifest)) => Ok(Some(*manifest)),
        // Long past: all between may be vacuumed.
        Some(Slot::Removed { .. }) => match listed(reader, branch).await {
            Ok(Some(newer)) if newer.version > version + 1 => Ok(Some(newer)),
            // A listing may lag behind. Slots do not.
            Ok(_) | Err(EngineError::NoVersion(_)) => first_left(reader, version + 2, branch).await.map(Some),
            Err(error) => Err(error),
        },
    }
}

/// The manifest of the first version from `version` on that is not vacuumed. One request for each that is.
async fn first_left(reader: &Reader, mut version: u64, branch: &mut Branch) -> Result<Manifest, EngineError> {
    loop {
        match slot(reader, version, branch).await? {
            Some(Slot::Version(manifest)) => return Ok(*manifest),
            Some(Slot::Removed { .. }) => version += 1,
            None => {
                let why =
                    format!("version {} of {} was removed, and no newer one exists", version - 1, reader.store().url());
                return Err(EngineError::NoVersion(why));
            }
        }
    }
}

/// The last version that a listing shows, or if that is vacuumed the next that is not; a newer one may exist. A listing
/// may lag behind even the first version, but that one's slot is taken for ever: `None` if it is empty.
async fn listed(reader: &Reader, branch: &mut Branch) -> Result<Option<Manifest>, EngineError> {
    let listed = reader.list(MANIFEST_FOLDER, branch).await?;
    let last = listed.iter().filter_map(|object| manifest_version(&object.name)).max();
    if last.is_none() && slot(reader, 1, branch).await?.is_none() {
        return Ok(None);
    }
    first_left(reader, last.unwrap_or(1), branch).await.map(Some)
}

/// The name of the writer of a version, also of one that was removed; `None` if there is no such version.
pub(crate) async fn writer_of(
    reader: &Reader,
    version: u64,
    branch: &mut Branch,
) -> Result<Option<String>, EngineError> {
    Ok(slot(reader, version, branch).await?.map(|slot| match slot {
        Slot::Version(manifest) => manifest.change.writer,
        Slot::Removed { writer } => writer,
    }))
}

/// The content of a version's slot; `None` if it is empty.
pub(crate) fn slot<'a>(
    reader: &'a Reader,
    version: u64,
    branch: &'a mut Branch,
) -> BoxFuture<'a, Result<Option<Slot>, StorageError>> {
    let decode = move |bytes: Bytes| match Slot::decode(&bytes)? {
        Slot::Version(manifest) if manifest.version != version => {
            let why = format!("it claims to be version {}", manifest.version);
            Err(FormatError::corrupt("manifest", why))
        }
        slot => Ok(slot),
    };
    Box::pin(async move { reader.read_object(&manifest_name(version), branch, decode).await })
}
