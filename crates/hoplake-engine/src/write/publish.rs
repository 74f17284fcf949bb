//! How a version appears: its objects first, then one manifest that must not exist.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};

use bytes::Bytes;
use futures::future::BoxFuture;
use hoplake_format::{
    Change, ChangeKind, Manifest, Slot,
    constants::{DATA_FOLDER, HINT_NAME, MANIFEST_FOLDER, PROBE_ENDING, data_name, manifest_name},
};
use hoplake_storage::{Branch, Reader, StorageError, Store};

use tokio::time::sleep;

use crate::{EngineError, versions};

/// The outcome of a publication.
#[derive(Debug)]
pub enum Published {
    /// It is visible.
    Visible,
    /// Another writer has the version: this is its manifest.
    Taken(Slot),
}

/// How often a create without an answer is sent.
const ATTEMPTS_MAX: u32 = 4;

/// How often a commit starts over because another writer was faster.
pub(crate) const REBUILDS_MAX: u32 = 100;

/// How often a change that needs no objects of its own, or has them already, is tried on a later version: each time
/// costs two requests, and what a compaction has merged may have taken hours.
const AMENDMENTS_MAX: u32 = 1_000;

/// A change that was overtaken twice waits at most so long before it goes on, and at most twice as long each time after
/// that.
const PAUSE: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Makes a version visible, in one atomic step, if no other writer has it. Everything that it names must be there. An
/// answer that is lost is made up for by reading whose the version is.
///
/// # Errors
/// [`EngineError::Unknown`] if the store does not answer that either; [`EngineError::Storage`] if it rejects the
/// create, and then nothing was published.
pub fn publish<'a>(
    reader: &'a Reader,
    manifest: &'a Manifest,
    branch: &'a mut Branch,
) -> BoxFuture<'a, Result<Published, EngineError>> {
    Box::pin(async move {
        let store = reader.store();
        manifest.schema.validate().map_err(EngineError::format(store.url()))?;
        // A manifest that was not sent was not published.
        branch.context().check(store.prices())?;
        let bytes = Bytes::from(manifest.encode());
        let name = manifest_name(manifest.version);
        if let Some(removal) = prove(store, manifest.version - 1).await? {
            removal.await;
            branch.then(2);
        }
        // Why it may exist, or appear later, without an answer.
        let mut unknown = None;
        for _ in 0..ATTEMPTS_MAX {
            let created = store.create(&name, bytes.clone()).await;
            branch.then(1);
            match created {
                Ok(true) if store.is_proven() => return Ok(Published::Visible),
                Ok(true) => return read_back(reader, manifest, branch).await,
                // A repetition after a lost answer meets its own manifest, too.
                Ok(false) => {
                    unknown = unknown.or(Some("the store says that it exists, but does not return it".to_owned()))
                }
                Err(error @ StorageError::Unanswered { .. }) => unknown = Some(error.to_string()),
                // Nothing that was sent before may arrive yet.
                Err(error) if unknown.is_none() => return Err(error.into()),
                Err(_) => {}
            }
            match versions::slot(reader, manifest.version, branch).await {
                // It exists, but is perhaps not flushed yet.
                Ok(Some(found)) if is(&found, manifest) => match store.flush(MANIFEST_FOLDER).await {
                    Ok(()) => return Ok(Published::Visible),
                    Err(error) => unknown = Some(error.to_string()),
                },
                Ok(Some(found)) => return Ok(Published::Taken(found)),
                // The create did not happen, or may yet: it is sent again, since only the first can succeed.
                Ok(None) => {}
                Err(error) => unknown = Some(error.to_string()),
            }
        }
        let why = unknown.unwrap_or_default();
        Err(EngineError::Unknown { location: store.location(&name), writer: manifest.change.writer.clone(), why })
    })
}

/// Tries whether the store's conditional create works, if this process does not know that, with an object that is
/// garbage by its name. Returns its removal, to be waited for, if anything was sent.
///
/// # Errors
/// [`StorageError::Unfit`] if it does not work.
pub fn prove<'a>(store: &'a Store, base: u64) -> BoxFuture<'a, Result<Option<BoxFuture<'static, ()>>, StorageError>> {
    Box::pin(async move {
        // Each trial has a name of its own: the removal of one that found nothing out may arrive in the middle of the
        // next.
        store.prove(&data_name(base, &store.clock().ulid(), 0, PROBE_ENDING)).await
    })
}

/// Reads a manifest back after a successful create, since the store's create is not proven yet.
async fn read_back(reader: &Reader, manifest: &Manifest, branch: &mut Branch) -> Result<Published, EngineError> {
    let store = reader.store();
    match versions::slot(reader, manifest.version, branch).await {
        Ok(Some(found)) if !is(&found, manifest) => {
            let why = format!("it took two manifests of version {}", manifest.version);
            Err(StorageError::Unfit { store: store.url().to_owned(), why }.into())
        }
        _ => Ok(Published::Visible),
    }
}

/// Whether a slot has this manifest, or its version tombstone.
fn is(found: &Slot, manifest: &Manifest) -> bool {
    match found {
        Slot::Version(found) => **found == *manifest,
        Slot::Removed { writer } => *writer == manifest.change.writer,
    }
}

/// Publishes what `next` makes of the newest version, again and again on whatever is the newest then, until it is
/// visible or `next` finds nothing to do. Returns the manifest that was published.
///
/// # Errors
/// What `next` returns; [`EngineError::NotFound`] if there is no graph; [`EngineError::Conflict`] if other writers were
/// always faster; as `publish`.
pub(crate) async fn amend(
    reader: &Reader,
    branch: &mut Branch,
    next: impl FnMut(&Manifest) -> Result<Option<Manifest>, EngineError>,
) -> Result<Option<Manifest>, EngineError> {
    let published = amend_on(reader, None, branch, next).await?;
    if let Some(manifest) = &published {
        hint(reader.store(), manifest).await;
    }
    Ok(published)
}

/// As [`amend`], beginning with a version that the caller knows and that may be the newest; the caller writes the hint.
///
/// A writer that is overtaken has the manifest of the version that did it, so it tries the next number at once: other
/// writers have objects to write before they can. Only if it is overtaken again it looks which version is the newest,
/// after a pause: with many concurrent changes, commits would always lose, and they give up earlier.
///
/// # Errors
/// As [`amend`].
pub(crate) async fn amend_on(
    reader: &Reader,
    mut known: Option<Manifest>,
    branch: &mut Branch,
    mut next: impl FnMut(&Manifest) -> Result<Option<Manifest>, EngineError>,
) -> Result<Option<Manifest>, EngineError> {
    let missing = || EngineError::no_graph(reader.store().url());
    for attempt in 0..AMENDMENTS_MAX {
        let newest = match known.take() {
            Some(known) => known,
            None => versions::newest(reader, branch).await?.ok_or_else(missing)?,
        };
        let Some(manifest) = next(&newest)? else { return Ok(None) };
        match publish(reader, &manifest, branch).await? {
            Published::Visible => return Ok(Some(manifest)),
            Published::Taken(Slot::Version(by)) if attempt % 2 == 0 => known = Some(*by),
            Published::Taken(_) => sleep(pause(&manifest.change.writer, attempt)).await,
        }
    }
    Err(always_later(AMENDMENTS_MAX))
}

/// A pause up to a bound that doubles, drawn by the name of a change, so that those that met do not meet again. A crate
/// for retries such as `backon` repeats one call after each error; here being overtaken is an answer, every other try
/// needs no pause, and the next one begins from that manifest.
fn pause(writer: &str, attempt: u32) -> Duration {
    // Every other attempt pauses, so the bound doubles from one pause to the next; 20 keeps the shift within 32 bits.
    let bound = PAUSE.saturating_mul(1 << (attempt / 2).min(20)).min(PAUSE_MAX);
    let mut drawn = DefaultHasher::new();
    writer.hash(&mut drawn);
    bound.mul_f64(drawn.finish() as f64 / u64::MAX as f64)
}

pub(crate) fn always_later(times: u32) -> EngineError {
    EngineError::Conflict(format!("{times} other writers were faster, one after the other"))
}

/// A new change, by this writer.
pub(crate) fn change(store: &Store, kind: ChangeKind, message: impl Into<String>) -> Change {
    Change { kind, writer: store.clock().ulid(), message: message.into(), ..Change::default() }
}

/// Copies a manifest to where readers look first. That is advice: without it the next opening takes a wave more
/// for each version since the last.
pub fn hint<'a>(store: &'a Store, manifest: &'a Manifest) -> BoxFuture<'a, ()> {
    Box::pin(async move {
        let _ = store.advise(HINT_NAME, manifest.encode().into()).await;
    })
}

/// Rejects a manifest if one of its objects is missing: a vacuum by age may have deleted objects of a long load.
///
/// # Errors
/// [`EngineError::Conflict`] that names the first; the store's.
pub fn check_objects<'a>(store: &'a Store, manifest: &'a Manifest) -> BoxFuture<'a, Result<(), EngineError>> {
    Box::pin(async move {
        let listed: BTreeMap<_, _> =
            store.list(DATA_FOLDER).await?.into_iter().map(|object| (object.name, object.bytes)).collect();
        for (name, length) in manifest.objects() {
            // A listing may lag behind, so an object that it leaves out is asked for by name.
            if listed.get(name) == Some(&length) || store.length(name).await? == Some(length) {
                continue;
            }
            return Err(EngineError::Conflict(format!(
                "{} of {length} bytes was removed before its version was published; nothing of it is visible",
                store.location(name)
            )));
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use hoplake_format::{
        Direction, EdgeTypeId, SectionRef, SegmentRef, VersionRange,
        segment::{SectionKind, SegmentEnd},
    };

    use hoplake_storage::{QueryContext, ReadPool, ReadSettings};

    use super::*;

    /// A manifest of an empty schema that names one segment of 9 bytes.
    fn naming(version: u64, name: &str) -> Manifest {
        let end = SegmentEnd { length: 9, filters_position: 8, index_position: 8, root_position: 8 };
        let segment = SegmentRef { name: name.into(), end, sections: Vec::new(), checksum: 0 };
        let change = Change { writer: format!("writer of {name}"), ..Change::default() };
        Manifest { version, reset: version, change, segments: vec![segment], ..Manifest::default() }
    }

    fn open(url: &str) -> (Reader, Branch) {
        let pool = ReadPool::new(ReadSettings::default()).unwrap();
        (Reader::new(Store::open(url).unwrap(), pool), QueryContext::new().branch())
    }

    async fn newest(reader: &Reader) -> Option<u64> {
        versions::newest(reader, &mut QueryContext::new().branch()).await.unwrap().map(|newest| newest.version)
    }

    #[tokio::test]
    async fn a_version_is_published_once_and_whole() {
        let (reader, mut branch) = open("memory://publish/graph");
        let store = reader.store();
        let gone = check_objects(store, &naming(1, "data/a")).await.unwrap_err();
        assert!(gone.to_string().contains("data/a of 9 bytes was removed before its version was published"), "{gone}");
        assert_eq!(newest(&reader).await, None);
        store.put("data/a", Bytes::from_static(b"123456789")).await.unwrap();
        store.put("data/b", Bytes::from_static(b"123456789")).await.unwrap();
        check_objects(store, &naming(1, "data/a")).await.unwrap();
        assert!(matches!(publish(&reader, &naming(1, "data/a"), &mut branch).await, Ok(Published::Visible)));
        // Sent again, as after a lost answer.
        assert!(matches!(publish(&reader, &naming(1, "data/a"), &mut branch).await, Ok(Published::Visible)));
        let late = publish(&reader, &naming(1, "data/b"), &mut branch).await.unwrap();
        assert!(matches!(late, Published::Taken(Slot::Version(other)) if *other == naming(1, "data/a")));
        assert_eq!(newest(&reader).await, Some(1));
    }

    #[tokio::test]
    async fn the_place_of_a_version_that_is_gone_stays_taken() {
        let (reader, mut branch) = open("memory://publish/removed");
        let store = reader.store();
        for version in 1..=5 {
            publish(&reader, &naming(version, "data/a"), &mut branch).await.unwrap();
        }
        for version in 1..=4 {
            let tombstone = Slot::encode_removed(&format!("writer {version}"));
            store.put(&manifest_name(version), tombstone.into()).await.unwrap();
        }
        // A hint from long ago leads to the newest all the same.
        hint(store, &naming(2, "data/a")).await;
        assert_eq!(newest(&reader).await, Some(5));
        let late = publish(&reader, &naming(3, "data/a"), &mut branch).await.unwrap();
        assert!(matches!(late, Published::Taken(Slot::Removed { writer }) if writer == "writer 3"));
        // A writer that sends the stored manifest again has succeeded.
        let own = Change { writer: "writer 3".into(), ..Change::default() };
        let again = Manifest { change: own, ..naming(3, "data/a") };
        assert!(matches!(publish(&reader, &again, &mut branch).await, Ok(Published::Visible)));
        let error = versions::read(&reader, 3, &mut branch).await.unwrap_err();
        assert!(
            error.to_string().ends_with("version 3 of memory://publish/removed was removed by a vacuum"),
            "{error}"
        );
    }

    #[test]
    fn pauses_are_drawn_from_a_bound_that_doubles() {
        for (attempt, bound_ms) in [(1, 10), (3, 20), (5, 40), (99, 1_000), (999, 1_000)] {
            let pauses: Vec<_> = (0..100).map(|writer| pause(&writer.to_string(), attempt)).collect();
            let longest = pauses.iter().max().unwrap().as_millis();
            assert!(longest <= bound_ms && longest >= bound_ms * 8 / 10, "{longest} of {bound_ms}");
            assert!(pauses.iter().min().unwrap().as_millis() <= bound_ms / 10);
        }
    }

    #[tokio::test]
    async fn a_damaged_hint_is_no_hint() {
        let (reader, mut branch) = open("memory://publish/damaged");
        publish(&reader, &naming(1, "data/a"), &mut branch).await.unwrap();
        reader.store().put(HINT_NAME, Bytes::from_static(b"half of a manif")).await.unwrap();
        assert_eq!(newest(&reader).await, Some(1));
    }

    #[test]
    fn sections_outside_the_schema_are_damage() {
        let mut manifest = naming(1, "data/a");
        let kind = SectionKind::Adjacency(EdgeTypeId(0), Direction::Out);
        manifest.segments[0].sections = vec![SectionRef { kind, versions: Some(VersionRange::of(1)), continues: None }];
        assert!(Manifest::decode(&manifest.encode()).is_err());
    }
}
