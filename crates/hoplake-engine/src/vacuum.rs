//! Removes what no version names.
//!
//! The name of a data object says from which version its writer started. Unpublished, it could only have
//! become part of the version after that one; once that version exists, the object is garbage for ever,
//! and its writer cannot publish any more. An object that started from the newest version may belong to a
//! load that is still running: it goes only when it is older than the caller says.

use std::collections::HashSet;

use hoplake_format::constants::{DATA_FOLDER, MANIFEST_FOLDER, data_base_version, manifest_version};
use hoplake_storage::Store;

use crate::{EngineError, publish};

/// What a vacuum removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Vacuumed {
    /// Objects.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Removes data objects that no version names: those whose writer can no longer publish, and those
/// last written before `older_than_unix_ms`.
///
/// # Errors
/// The store's; [`EngineError::Format`] if a manifest is damaged, and then nothing is removed.
pub async fn vacuum(store: &Store, older_than_unix_ms: i64) -> Result<Vacuumed, EngineError> {
    // Objects are listed before versions: what a load publishes in between is named by then.
    let objects = store.list(DATA_FOLDER).await?;
    let listed = store.list(MANIFEST_FOLDER).await?;
    let newest = publish::current_version(store).await?.unwrap_or(0);
    let mut versions: Vec<_> = listed.iter().filter_map(|object| manifest_version(&object.name)).collect();
    versions.extend(versions.iter().max().map_or(1, |last| last + 1)..=newest);
    let mut named = HashSet::new();
    for version in versions {
        let manifest = publish::read_version(store, version).await?;
        named.extend(manifest.objects().into_keys().map(str::to_owned));
    }
    let garbage = objects.into_iter().filter(|object| {
        let fenced = data_base_version(&object.name).is_some_and(|base| base < newest);
        !named.contains(&object.name) && (fenced || object.modified_unix_ms < older_than_unix_ms)
    });
    let mut vacuumed = Vacuumed::default();
    let mut names = Vec::new();
    for object in garbage {
        vacuumed.objects += 1;
        vacuumed.bytes += object.bytes;
        names.push(object.name);
    }
    store.delete(&names).await?;
    Ok(vacuumed)
}
