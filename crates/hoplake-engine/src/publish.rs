//! How a version appears: its objects first, then one manifest that must not exist.

use bytes::Bytes;
use hoplake_format::{
    FormatError, Manifest,
    constants::{HINT_NAME, manifest_name},
};
use hoplake_storage::{Meter, Store, Wave};

use crate::{EngineError, snapshot::newest_version};

/// The newest version of the graph at `store`; `None` if there is no graph.
///
/// # Errors
/// The store's.
pub async fn current_version(store: &Store) -> Result<Option<u64>, EngineError> {
    let meter = Meter::new();
    let hint = store.get(HINT_NAME).await?.and_then(|hint| Manifest::decode(&hint).ok());
    // The hint may outlive a graph that was deleted: only a manifest is a version.
    let hinted = match hint {
        Some(hint) if store.get(&manifest_name(hint.version)).await?.is_some() => Some(hint.version),
        _ => None,
    };
    let mut version = match hinted {
        Some(version) => Some(version),
        None => newest_version(store, Wave(1), &meter).await?,
    };
    while let Some(next) = version.map_or(Some(1), |version| version.checked_add(1)) {
        if store.get(&manifest_name(next)).await?.is_none() {
            break;
        }
        version = Some(next);
    }
    Ok(version)
}

/// Makes a version visible, in one atomic step. Everything it names must be there.
///
/// # Errors
/// [`EngineError::Conflict`] if that version exists already and is another's; the store's.
pub async fn publish(store: &Store, manifest: &Manifest) -> Result<(), EngineError> {
    manifest.schema.validate().map_err(EngineError::format(store.url()))?;
    let bytes = Bytes::from(manifest.encode());
    let name = manifest_name(manifest.version);
    // A retry after a lost answer meets its own manifest; whose it is tells the bytes.
    if !store.create(&name, bytes.clone()).await? && store.get(&name).await?.as_ref() != Some(&bytes) {
        return Err(EngineError::Conflict(format!(
            "another writer published version {} of {} first; nothing of this one is visible",
            manifest.version,
            store.url()
        )));
    }
    // The hint is advice: without it the next opening takes two waves more.
    let _ = store.put(HINT_NAME, bytes).await;
    Ok(())
}

/// Reads one version's manifest.
///
/// # Errors
/// [`EngineError::NotFound`] if there is no such version; [`EngineError::Format`] if it is damaged.
pub async fn read_version(store: &Store, version: u64) -> Result<Manifest, EngineError> {
    let name = manifest_name(version);
    let missing = || EngineError::NotFound(format!("{} has no version {version}", store.url()));
    let bytes = store.get(&name).await?.ok_or_else(missing)?;
    let manifest = Manifest::decode(&bytes).map_err(EngineError::format(store.place(&name)))?;
    if manifest.version != version {
        let why = format!("it says that it is version {}", manifest.version);
        return Err(EngineError::format(store.place(&name))(FormatError::corrupt("manifest", why)));
    }
    Ok(manifest)
}
