//! Names for past versions, the way back to one, and graphs that begin as a version of another.

use std::collections::BTreeMap;

use bytes::Bytes;
use futures::future::BoxFuture;
use hoplake_format::{ChangeKind, Manifest, Slot, VertexCount, constants::manifest_name};
use hoplake_storage::{Branch, Reader, Store};

use crate::{
    EngineError, versions,
    write::publish::{Published, amend, amend_on, change, hint, publish},
};

/// Names a version, which protects it from vacuums; an existing name moves. Without a version the name is
/// removed. Returns the version that has the change, or `None` if nothing was to change.
///
/// # Errors
/// [`EngineError::NotFound`] if the version or name does not exist; [`EngineError::Invalid`] if the name is empty; the
/// store's.
pub fn tag<'a>(
    reader: &'a Reader,
    name: &'a str,
    version: Option<u64>,
    branch: &'a mut Branch,
) -> BoxFuture<'a, Result<Option<u64>, EngineError>> {
    Box::pin(async move {
        if name.trim().is_empty() {
            return Err(EngineError::Invalid("a tag needs a name".into()));
        }
        if version.is_some() && (name.parse::<u64>().is_ok() || name.contains(char::is_control)) {
            let why = format!("{name:?} cannot be a tag: a number names a version, and a tag is one line of text");
            return Err(EngineError::Invalid(why));
        }
        let url = reader.store().url();
        let tagged = amend(reader, branch, |newest| {
            if newest.tags.get(name).copied() == version {
                return match version {
                    Some(_) => Ok(None),
                    None => Err(EngineError::NoVersion(format!("{url} has no tag {name}"))),
                };
            }
            check_version(newest, version.unwrap_or(newest.version), url)?;
            let message = match version {
                Some(version) => format!("{name} is version {version}"),
                None => format!("{name} is no longer a tag"),
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
    })
}

/// Publishes the content of an older version as the newest version, also if the manifest of the newest is unreadable.
/// Returns the new version.
///
/// # Errors
/// [`EngineError::NotFound`] if the version does not exist; the store's.
pub fn restore<'a>(
    reader: &'a Reader,
    version: u64,
    message: &'a str,
    branch: &'a mut Branch,
) -> BoxFuture<'a, Result<u64, EngineError>> {
    Box::pin(async move {
        let old = versions::read(reader, version, branch).await?;
        let (known, lost) = match newest_itself(reader, branch).await {
            Ok(newest) => (newest, None),
            Err(error) if error.is_damage() => {
                let (readable, last) = versions::last_readable(reader, branch).await?;
                (Some(readable), Some(last))
            }
            Err(error) => return Err(error),
        };
        let restored = amend_on(reader, known, branch, |newest| {
            check_version(newest, version, reader.store().url())?;
            let message = match message {
                "" => format!("version {version}"),
                message => format!("version {version}: {message}"),
            };
            let change = change(reader.store(), ChangeKind::Restore, message);
            let mut next = newest.next(change, reader.store().clock().unix_ms());
            // The slots of versions that cannot be read are taken all the same.
            next.version = next.version.max(lost.map_or(0, |lost| lost + 1));
            Ok(Some(as_it_was(&old, next)))
        });
        let Some(manifest) = restored.await? else { return Ok(version) };
        hint(reader.store(), &manifest).await;
        Ok(manifest.version)
    })
}

/// The newest version from its own slot: the hint may have a copy of what is damaged there.
async fn newest_itself(reader: &Reader, branch: &mut Branch) -> Result<Option<Manifest>, EngineError> {
    let Some(newest) = versions::newest(reader, branch).await? else { return Ok(None) };
    match versions::slot(reader, newest.version, branch).await? {
        Some(Slot::Version(manifest)) => Ok(Some(*manifest)),
        // Removed since: a writer that publishes on it finds the newer one.
        _ => Ok(Some(newest)),
    }
}

/// The content of an old version in a new one. The new one keeps its own versions, tags, prepared queries and leases.
fn as_it_was(old: &Manifest, next: Manifest) -> Manifest {
    let mut restored = Manifest {
        version: next.version,
        created_unix_ms: next.created_unix_ms,
        change: next.change,
        reset: next.version,
        leases: next.leases,
        history: next.history,
        tags: next.tags,
        queries: next.queries,
        next_index: next.next_index.max(old.next_index),
        ..old.clone()
    };
    // Whoever was building an index then has ended, or publishes on a version that has it.
    restored.drop_unfinished_indexes(|_| false);
    // Ordinals that were given out since are not given out again: ids mean the same until a load replaces the graph.
    for (count, since) in restored.vertex_counts.iter_mut().zip(&next.vertex_counts) {
        let given_since = since.ordinals.saturating_sub(count.ordinals);
        *count = VertexCount { ordinals: count.ordinals + given_since, gone: count.gone + given_since };
    }
    restored
}

/// Creates a graph at `target` with the content of a version of another graph in the same bucket. It copies nothing: it
/// reads the other's objects, which a tag there keeps, and writes its own. Its first version has the number of the one
/// it began as. Returns the tag's name.
///
/// # Errors
/// [`EngineError::NotFound`] if the version does not exist; [`EngineError::Conflict`] if `target` is not empty;
/// [`EngineError::Invalid`] if it is in another bucket; the stores'.
pub fn clone<'a>(
    source: &'a Reader,
    version: u64,
    target: &'a Reader,
    branch: &'a mut Branch,
) -> BoxFuture<'a, Result<String, EngineError>> {
    Box::pin(async move {
        let from = source.store();
        let to = target.store();
        if !from.is_beside(to) || from.url() == to.url() {
            let why = format!(
                "a clone shares its objects: {} is not another location in the bucket of {}",
                to.url(),
                from.url()
            );
            return Err(EngineError::Invalid(why));
        }
        let taken = || EngineError::Exists(format!("there is something at {} already", to.url()));
        // Slot 1 is never freed, so a graph that has lost its hint and its listing is still found there.
        if versions::slot(target, 1, branch).await?.is_some() || versions::newest(target, branch).await?.is_some() {
            return Err(taken());
        }
        // Two clones to one target, one of which succeeds, do not move each other's tag.
        let tag_name = format!("clone at {} of version {version}", to.url());
        tag(source, &tag_name, Some(version), branch).await?;
        let original = versions::read(source, version, branch).await?;
        let manifest = as_elsewhere(original, from, to);
        // The writer of the first slot owns the target; the version itself gets a number that is not below its runs'
        // versions.
        if version > 1 {
            let tombstone = Bytes::from(Slot::encode_removed(&manifest.change.writer));
            let won = to.create(&manifest_name(1), tombstone.clone()).await?;
            branch.then(1);
            if !won && to.get(&manifest_name(1)).await? != Some(tombstone) {
                return Err(taken());
            }
        }
        match publish(target, &manifest, branch).await? {
            Published::Visible => hint(to, &manifest).await,
            Published::Taken(_) => return Err(taken()),
        }
        Ok(tag_name)
    })
}

/// A version of one graph as the first of another.
fn as_elsewhere(original: Manifest, from: &Store, to: &Store) -> Manifest {
    let mut manifest = Manifest {
        created_unix_ms: to.clock().unix_ms(),
        change: change(to, ChangeKind::Restore, format!("version {} of {}", original.version, from.url())),
        reset: original.version,
        leases: Vec::new(),
        history: Vec::new(),
        tags: BTreeMap::new(),
        applied: Vec::new(),
        ..original
    };
    manifest.drop_unfinished_indexes(|_| false);
    let segments = manifest.segments.iter_mut().map(|segment| &mut segment.name);
    let tables = manifest.tables.iter_mut().map(|table| &mut table.name);
    segments.chain(tables).for_each(|name| *name = from.name_from_root(name));
    manifest
}

fn check_version(newest: &Manifest, version: u64, url: &str) -> Result<(), EngineError> {
    match newest.has_version(version) {
        true => Ok(()),
        false => Err(EngineError::NoVersion(format!("{url} has no version {version} any more, or not yet"))),
    }
}
