//! Names for past versions, and the way back to one.

use hoplake_format::{ChangeKind, Manifest, VertexCount};
use hoplake_storage::{QueryContext, Reader, Wave};

use crate::{
    EngineError,
    publish::{amend, change},
    versions,
};

/// Names a version, which no vacuum removes from then on; a name that is there moves. Without a version the name is
/// removed. Returns the version that has the change, or `None` if nothing was to change.
///
/// # Errors
/// [`EngineError::NotFound`] if there is no such version or name; [`EngineError::Invalid`] if the name is empty; the
/// store's.
pub async fn tag(
    reader: &Reader,
    name: &str,
    version: Option<u64>,
    context: &QueryContext,
) -> Result<Option<u64>, EngineError> {
    if name.trim().is_empty() {
        return Err(EngineError::Invalid("a tag needs a name".into()));
    }
    let url = reader.store().url();
    let tagged = amend(reader, context, |newest| {
        if newest.tags.get(name).copied() == version {
            return match version {
                Some(_) => Ok(None),
                None => Err(EngineError::NotFound(format!("{url} has no tag {name}"))),
            };
        }
        check_version(newest, version.unwrap_or(newest.version), url)?;
        let message = match version {
            Some(version) => format!("{name} is version {version}"),
            None => format!("{name} is no tag any more"),
        };
        let change = change(reader.store(), ChangeKind::Tag, message);
        let mut next = newest.next(change, reader.store().clock().unix_ms());
        match version {
            Some(version) => drop(next.tags.insert(name.to_owned(), version)),
            None => drop(next.tags.remove(name)),
        }
        Ok(Some(next))
    });
    Ok(tagged.await?.map(|manifest| manifest.version))
}

/// Makes what an older version says the newest version. Returns the new version.
///
/// # Errors
/// [`EngineError::NotFound`] if there is no such version; the store's.
pub async fn restore(reader: &Reader, version: u64, message: &str, context: &QueryContext) -> Result<u64, EngineError> {
    let (old, _) = versions::read(reader, version, Wave(0), context).await?;
    let restored = amend(reader, context, |newest| {
        check_version(newest, version, reader.store().url())?;
        let message = match message {
            "" => format!("version {version}"),
            message => format!("version {version}: {message}"),
        };
        let change = change(reader.store(), ChangeKind::Restore, message);
        Ok(Some(as_it_was(&old, newest.next(change, reader.store().clock().unix_ms()))))
    });
    match restored.await? {
        Some(manifest) => Ok(manifest.version),
        None => Ok(version),
    }
}

/// The content of an old version in a new one. What the new one says of versions, tags and writers stays.
fn as_it_was(old: &Manifest, next: Manifest) -> Manifest {
    let mut restored = Manifest {
        version: next.version,
        created_unix_ms: next.created_unix_ms,
        change: next.change,
        reset: next.version,
        intents: next.intents,
        history: next.history,
        tags: next.tags,
        ..old.clone()
    };
    // Ordinals that were given out since are not given out again: ids mean the same as long as nothing is loaded anew.
    for (count, since) in restored.vertex_counts.iter_mut().zip(&next.vertex_counts) {
        let given_since = since.ordinals.saturating_sub(count.ordinals);
        *count = VertexCount { ordinals: count.ordinals + given_since, gone: count.gone + given_since };
    }
    restored
}

fn check_version(newest: &Manifest, version: u64, url: &str) -> Result<(), EngineError> {
    match newest.has_version(version) {
        true => Ok(()),
        false => Err(EngineError::NotFound(format!("{url} has no version {version} any more, or not yet"))),
    }
}
