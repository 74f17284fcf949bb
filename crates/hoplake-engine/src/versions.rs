//! Versions of a graph: reading one, and finding the newest.
//!
//! Each version has a slot, the name of its manifest. Slots are filled in their order, and never become empty again: a
//! version that is gone leaves a mark in its place. So the newest version is the last before an empty slot, whoever
//! looks, and from wherever the look begins: from the hint, from an older version, or from a listing.

use bytes::Bytes;
use futures::future::BoxFuture;
use hoplake_format::{
    FormatError, Manifest, Slot,
    constants::{HINT_NAME, MANIFEST_FOLDER, manifest_name, manifest_version},
};
use hoplake_storage::{QueryContext, Reader, StorageError, Wave};

use crate::EngineError;

/// The manifest of a version.
///
/// # Errors
/// [`EngineError::NoGraph`] if there is no graph, [`EngineError::NoVersion`] if there is no such version, or no more; [`EngineError::Storage`] if it cannot be
/// read, or is damaged.
pub async fn read(
    reader: &Reader,
    version: u64,
    after: Wave,
    context: &QueryContext,
) -> Result<(Manifest, Wave), EngineError> {
    let url = reader.store().url();
    match slot(reader, version, after, context).await? {
        (Some(Slot::Version(manifest)), wave) => Ok((*manifest, wave)),
        (Some(Slot::Removed { .. }), _) => {
            Err(EngineError::NoVersion(format!("version {version} of {url} was removed by a vacuum")))
        }
        // Whoever names a version of no graph has the wrong address.
        (None, _) if nearly_newest(reader, context).await?.is_none() => Err(EngineError::no_graph(url)),
        (None, _) => Err(EngineError::NoVersion(format!("{url} has no version {version}"))),
    }
}

/// The manifest of the newest version; `None` if there is no graph.
///
/// # Errors
/// The store's; or that a manifest is damaged.
pub async fn newest(reader: &Reader, context: &QueryContext) -> Result<Option<Manifest>, EngineError> {
    let Some((start, wave)) = nearly_newest(reader, context).await? else { return Ok(None) };
    let version = start.version;
    Ok(Some(after(reader, version, wave, context).await?.map_or(start, |(newer, _)| newer)))
}

/// The manifest of a version that is probably the newest: the hint's, or without a readable hint the last that a listing
/// shows.
pub(crate) async fn nearly_newest(
    reader: &Reader,
    context: &QueryContext,
) -> Result<Option<(Manifest, Wave)>, EngineError> {
    // A hint is only advice: it is overwritten, so that a reader may meet half of it.
    let decode = |hint: Bytes| Ok(Manifest::decode(&hint).ok());
    let (hint, wave) = reader.read_object(HINT_NAME, Wave(0), context, decode).await?;
    match hint.flatten() {
        Some(hint) => Ok(Some((hint, wave))),
        None => listed(reader, wave, context).await,
    }
}

/// The manifest of the newest version, if it is newer than `version`, and the wave in which it was known to be the newest.
/// One request if it is not, and one for each version between.
pub(crate) async fn after(
    reader: &Reader,
    version: u64,
    wave: Wave,
    context: &QueryContext,
) -> Result<Option<(Manifest, Wave)>, EngineError> {
    let Some((mut newest, mut wave)) = later(reader, version, wave, context).await? else { return Ok(None) };
    while let Some(newer) = later(reader, newest.version, wave, context).await? {
        (newest, wave) = newer;
    }
    // The next was looked for, and is not there.
    Ok(Some((newest, wave.next())))
}

/// Versions that may be missing in a listing of those that can be opened, because it lags behind or they are gone.
const UNLISTED_MAX: u64 = 10_000;

/// The past versions that a manifest says can be opened, oldest first. Without a request, unless they are very many: who
/// forges two numbers may claim more versions than memory holds, and then a listing has to show them.
///
/// # Errors
/// That there are far fewer; the store's.
pub async fn past(reader: &Reader, newest: &Manifest) -> Result<Vec<u64>, EngineError> {
    let claimed: u64 = newest.history.iter().map(|range| range.until - range.since + 1).sum();
    if claimed > UNLISTED_MAX {
        let listed = reader.store().list(MANIFEST_FOLDER).await?;
        let listed = listed.iter().filter_map(|object| manifest_version(&object.name));
        let past = |version: &u64| *version < newest.version && newest.has_version(*version);
        let there = listed.filter(past).count() as u64;
        if claimed - there.min(claimed) > UNLISTED_MAX {
            let why = format!("it says that {claimed} past versions can be opened, and {there} are there");
            let place = reader.store().place(&manifest_name(newest.version));
            return Err(EngineError::format(place)(FormatError::corrupt("manifest", why)));
        }
    }
    Ok(newest.history.iter().flat_map(|range| range.since..=range.until).collect())
}

/// The newest manifest that can be read, though newer ones are damaged, and the number of the newest of all.
pub(crate) async fn last_readable(reader: &Reader, context: &QueryContext) -> Result<(Manifest, u64), EngineError> {
    let (listed, mut wave) = reader.list(MANIFEST_FOLDER, Wave(0), context).await?;
    let mut slots: Vec<u64> = listed.iter().filter_map(|object| manifest_version(&object.name)).collect();
    slots.sort_unstable();
    let last = slots.last().copied().unwrap_or_default();
    for version in slots.iter().rev() {
        match slot(reader, *version, wave, context).await.map_err(EngineError::from) {
            Ok((Some(Slot::Version(manifest)), _)) => return Ok((*manifest, last)),
            Ok((_, came)) => wave = came,
            Err(error) if error.is_damage() => wave = wave.next(),
            Err(error) => return Err(error),
        }
    }
    Err(EngineError::NotFound(format!("no version of {} can be read", reader.store().url())))
}

/// The manifest of a later version, usually the next; `None` if there is none. One request.
pub(crate) async fn later(
    reader: &Reader,
    version: u64,
    after: Wave,
    context: &QueryContext,
) -> Result<Option<(Manifest, Wave)>, EngineError> {
    match slot(reader, version + 1, after, context).await? {
        (None, _) => Ok(None),
        (Some(Slot::Version(manifest)), wave) => Ok(Some((*manifest, wave))),
        // Long past: all between may be gone.
        (Some(Slot::Removed { .. }), wave) => match listed(reader, wave, context).await {
            Ok(Some((newer, wave))) if newer.version > version + 1 => Ok(Some((newer, wave))),
            // A listing may lag behind. Slots do not.
            Ok(_) | Err(EngineError::NoVersion(_)) => first_left(reader, version + 2, wave, context).await.map(Some),
            Err(error) => Err(error),
        },
    }
}

/// The manifest of the first version from `version` on that is not gone. One request for each that is.
async fn first_left(
    reader: &Reader,
    mut version: u64,
    mut after: Wave,
    context: &QueryContext,
) -> Result<(Manifest, Wave), EngineError> {
    loop {
        match slot(reader, version, after, context).await? {
            (Some(Slot::Version(manifest)), wave) => return Ok((*manifest, wave)),
            (Some(Slot::Removed { .. }), wave) => (version, after) = (version + 1, wave),
            (None, _) => {
                let why = format!("version {} of {} is gone, and none is newer", version - 1, reader.store().url());
                return Err(EngineError::NoVersion(why));
            }
        }
    }
}

/// The last version that a listing shows, or if that is gone the next that is not; a newer one may exist. A listing may lag
/// behind even the first version, but that one's slot is taken for ever: `None` if it is empty.
async fn listed(reader: &Reader, after: Wave, context: &QueryContext) -> Result<Option<(Manifest, Wave)>, EngineError> {
    let (listed, wave) = reader.list(MANIFEST_FOLDER, after, context).await?;
    let last = listed.iter().filter_map(|object| manifest_version(&object.name)).max();
    if last.is_none() && slot(reader, 1, wave, context).await?.0.is_none() {
        return Ok(None);
    }
    first_left(reader, last.unwrap_or(1), wave, context).await.map(Some)
}

/// What the slot of a version holds; `None` if it is empty.
pub(crate) fn slot<'a>(
    reader: &'a Reader,
    version: u64,
    after: Wave,
    context: &'a QueryContext,
) -> BoxFuture<'a, Result<(Option<Slot>, Wave), StorageError>> {
    let decode = move |bytes: Bytes| match Slot::decode(&bytes)? {
        Slot::Version(manifest) if manifest.version != version => {
            let why = format!("it says that it is version {}", manifest.version);
            Err(FormatError::corrupt("manifest", why))
        }
        slot => Ok(slot),
    };
    Box::pin(async move { reader.read_object(&manifest_name(version), after, context, decode).await })
}
