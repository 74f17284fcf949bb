//! How a version appears: its objects first, then one manifest that must not exist.

use std::collections::BTreeMap;

use bytes::Bytes;
use hoplake_format::{
    FormatError, Manifest,
    constants::{DATA_FOLDER, HINT_NAME, MANIFEST_FOLDER, manifest_name},
};
use hoplake_storage::Store;

use crate::{EngineError, snapshot::newest_listed};

/// The newest version of the graph at `store`; `None` if there is no graph.
///
/// # Errors
/// The store's.
pub async fn current_version(store: &Store) -> Result<Option<u64>, EngineError> {
    let hint = store.get(HINT_NAME).await?.and_then(|hint| Manifest::decode(&hint).ok());
    // The hint may outlive a graph that was deleted: only a manifest is a version.
    let hinted = match hint {
        Some(hint) if store.get(&manifest_name(hint.version)).await?.is_some() => Some(hint.version),
        _ => None,
    };
    let mut version = match hinted {
        Some(version) => Some(version),
        None => newest_listed(&store.list(MANIFEST_FOLDER).await?),
    };
    while let Some(next) = version.map_or(Some(1), |version| version.checked_add(1)) {
        if store.get(&manifest_name(next)).await?.is_none() {
            break;
        }
        version = Some(next);
    }
    Ok(version)
}

/// What became of a manifest.
#[derive(Debug)]
pub enum Published {
    /// It is visible.
    Visible,
    /// Another writer has the version: this is its manifest.
    Taken(Box<Manifest>),
}

/// How often a create that nobody answered is sent.
const ATTEMPTS_MAX: u32 = 4;

/// Makes a version visible, in one atomic step, if no other writer has it. Everything that it names must be there. An
/// answer that is lost is made up for by reading whose the version is.
///
/// # Errors
/// [`EngineError::Unknown`] if the store does not even say that; [`EngineError::Format`] if what it has is no manifest.
pub async fn publish(store: &Store, manifest: &Manifest) -> Result<Published, EngineError> {
    manifest.schema.validate().map_err(EngineError::format(store.url()))?;
    let bytes = Bytes::from(manifest.encode());
    let name = manifest_name(manifest.version);
    let unknown =
        |why: String| EngineError::Unknown { place: store.place(&name), writer: manifest.change.writer.clone(), why };
    let mut last = String::new();
    for _ in 0..ATTEMPTS_MAX {
        match store.create(&name, bytes.clone()).await {
            Ok(true) => return Ok(Published::Visible),
            // A repetition after a lost answer meets its own manifest, too.
            Ok(false) => {}
            Err(error) => last = error.to_string(),
        }
        match store.get(&name).await {
            Ok(Some(found)) if found == bytes => return Ok(Published::Visible),
            Ok(Some(found)) => {
                let found = Manifest::decode(&found).map_err(EngineError::format(store.place(&name)))?;
                return Ok(Published::Taken(Box::new(found)));
            }
            // The create did not happen, or may yet: it is sent again, since only the first can succeed.
            Ok(None) => {}
            Err(error) => last = error.to_string(),
        }
    }
    Err(unknown(last))
}

/// Copies a manifest to where readers look first. That is advice: without it the next opening takes a wave more
/// for each version since the last.
pub async fn hint(store: &Store, manifest: &Manifest) {
    let _ = store.put(HINT_NAME, manifest.encode().into()).await;
}

/// Refuses a manifest whose objects are not all there: a vacuum by age may have met a load that took longer.
///
/// # Errors
/// [`EngineError::Conflict`] that names the first; the store's.
pub async fn check_objects(store: &Store, manifest: &Manifest) -> Result<(), EngineError> {
    let listed: BTreeMap<_, _> =
        store.list(DATA_FOLDER).await?.into_iter().map(|object| (object.name, object.bytes)).collect();
    match manifest.objects().into_iter().find(|(name, length)| listed.get(*name) != Some(length)) {
        None => Ok(()),
        Some((name, length)) => Err(EngineError::Conflict(format!(
            "{} of {length} bytes is gone before its version was published, as a vacuum with too short an age does; \
             load again",
            store.place(name)
        ))),
    }
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

#[cfg(test)]
mod tests {
    use hoplake_format::{
        Change, Direction, EdgeTypeId, SectionRef, SegmentRef, VersionRange,
        segment::{SectionKind, SegmentEnd},
    };

    use super::*;

    /// A manifest of an empty schema that names one segment of 9 bytes.
    fn naming(version: u64, name: &str) -> Manifest {
        let end = SegmentEnd { length: 9, filters_position: 8, index_position: 8 };
        let segment = SegmentRef { name: name.into(), end, sections: Vec::new(), checksum: 0 };
        Manifest {
            version,
            created_unix_ms: 0,
            change: Change { writer: format!("writer of {name}"), ..Change::default() },
            source_positions: BTreeMap::new(),
            intents: Vec::new(),
            schema: hoplake_format::Schema::default(),
            vertex_counts: Vec::new(),
            edge_counts: Vec::new(),
            degrees: Vec::new(),
            segments: vec![segment],
            tables: Vec::new(),
        }
    }

    #[tokio::test]
    async fn a_version_is_published_once_and_whole() {
        let store = Store::open("memory://publish/graph").unwrap();
        let gone = check_objects(&store, &naming(1, "data/a")).await.unwrap_err();
        assert!(gone.to_string().contains("data/a of 9 bytes is gone"), "{gone}");
        assert_eq!(current_version(&store).await.unwrap(), None);
        store.put("data/a", Bytes::from_static(b"123456789")).await.unwrap();
        store.put("data/b", Bytes::from_static(b"123456789")).await.unwrap();
        check_objects(&store, &naming(1, "data/a")).await.unwrap();
        assert!(matches!(publish(&store, &naming(1, "data/a")).await, Ok(Published::Visible)));
        // Sent again, as after a lost answer.
        assert!(matches!(publish(&store, &naming(1, "data/a")).await, Ok(Published::Visible)));
        let late = publish(&store, &naming(1, "data/b")).await.unwrap();
        assert!(matches!(late, Published::Taken(other) if *other == naming(1, "data/a")));
        assert_eq!(current_version(&store).await.unwrap(), Some(1));
    }

    #[tokio::test]
    async fn a_hint_that_outlived_its_graph_names_no_version() {
        let store = Store::open("memory://publish/deleted").unwrap();
        store.put(HINT_NAME, naming(7, "data/a").encode().into()).await.unwrap();
        assert_eq!(current_version(&store).await.unwrap(), None);
    }

    #[test]
    fn sections_outside_the_schema_are_damage() {
        let mut manifest = naming(1, "data/a");
        let kind = SectionKind::Adjacency(EdgeTypeId(0), Direction::Out);
        manifest.segments[0].sections = vec![SectionRef { kind, versions: Some(VersionRange::of(1)) }];
        assert!(Manifest::decode(&manifest.encode()).is_err());
    }
}
