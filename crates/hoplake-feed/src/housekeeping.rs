//! What happens to the objects of feeds when something happens to their graph. The engine knows nothing of them, so a vacuum asks here which
//! are of no use (what a killed feed wrote for a commit that it never made, letters of before a resnapshot), and a clone for copies.

use std::collections::{BTreeMap, BTreeSet};

use hoplake::Store;

use crate::{FeedError, FeedErrorKind, Position, feed, letters, state};

/// What was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RemovedObjects {
    /// Objects.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Removes the objects of feeds that the newest version does not name and that were last written before a time, by the store's clock: a
/// younger one may be of a commit that is being made. A load must not be at work, since it writes its state hours before it publishes.
/// Nothing is removed of a source of which it cannot be known what its position names, or if there is no graph.
///
/// # Errors
/// The store's.
pub async fn remove_orphans(store: &Store, written_before_unix_ms: i64) -> Result<RemovedObjects, FeedError> {
    // In this order: what a version names that is published meanwhile is not in the listing, or is in what is read after it.
    let mut listed = Vec::new();
    for kind in [state::FOLDER, letters::FOLDER] {
        listed.extend(store.list(kind).await.map_err(hoplake::Error::from)?);
    }
    listed.retain(|object| object.modified_unix_ms < written_before_unix_ms);
    if listed.is_empty() {
        return Ok(RemovedObjects::default());
    }
    let Some(graph) = feed::open_graph(store).await? else { return Ok(RemovedObjects::default()) };
    let mut of_sources: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
    for object in listed {
        if let Some(source) = object.name.split('/').nth(1) {
            of_sources.entry(source.to_owned()).or_default().insert(object.name, object.bytes);
        }
    }
    let mut removed = RemovedObjects::default();
    for (source, mut objects) in of_sources {
        let Some(named) = named(store, &source, graph.source_position(&source)).await? else { continue };
        objects.retain(|name, _| !named.contains(name));
        removed.objects += objects.len() as u64;
        removed.bytes += objects.values().sum::<u64>();
        let names: Vec<String> = objects.into_keys().collect();
        store.delete(&names).await.map_err(hoplake::Error::from)?;
    }
    Ok(removed)
}

/// Copies the objects that positions name to a clone of their graph. Returns the sources of which there is not all, as of an older version
/// from which the feed has gone on.
///
/// # Errors
/// The stores'.
pub async fn copy_objects(
    from: &Store,
    to: &Store,
    source_positions: &BTreeMap<String, String>,
) -> Result<Vec<String>, FeedError> {
    let mut incomplete = Vec::new();
    for (source, position) in source_positions {
        // Others keep positions, too, in words of their own.
        if Position::parse(position).is_err() {
            continue;
        }
        let mut is_complete = false;
        if let Some(named) = named(from, source, Some(position)).await? {
            is_complete = true;
            for name in named {
                match from.get(&name).await.map_err(hoplake::Error::from)? {
                    Some(bytes) => to.put(&name, bytes).await.map_err(hoplake::Error::from)?,
                    None => is_complete = false,
                }
            }
        }
        if !is_complete {
            incomplete.push(source.clone());
        }
    }
    Ok(incomplete)
}

/// The objects that a position of a source names; `None` if that cannot be known.
async fn named(store: &Store, source: &str, position: Option<&str>) -> Result<Option<BTreeSet<String>>, FeedError> {
    let Some(position) = position else { return Ok(Some(BTreeSet::new())) };
    let Ok(position) = Position::parse(position) else { return Ok(None) };
    let Some(id) = position.state else { return Ok(Some(BTreeSet::new())) };
    let state = match state::read(store, source, &id).await {
        Ok(Some(state)) => state,
        Err(error) if error.kind() != FeedErrorKind::Invalid => return Err(error),
        // It is lost or damaged, and what is left may help to repair it.
        Ok(None) | Err(_) => return Ok(None),
    };
    let letters = state.letters.iter().map(|(id, _)| letters::object_name(source, id));
    Ok(Some(letters.chain([state::object_name(source, &id)]).collect()))
}

#[cfg(test)]
mod tests {
    use hoplake::Graph;

    use super::*;
    use crate::state::State;

    /// The names of the objects of feeds.
    async fn objects(store: &Store) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        for kind in [state::FOLDER, letters::FOLDER] {
            names.extend(store.list(kind).await.unwrap().into_iter().map(|object| object.name));
        }
        names
    }

    #[tokio::test]
    async fn what_no_position_names_is_removed() {
        let store = Store::open("memory://feed-orphans").unwrap();
        let old = letters::write(&store, "hr", &[]).await.unwrap();
        let letter = letters::write(&store, "hr", &[]).await.unwrap();
        let mut unpublished = State { letters: vec![(old, 0)], ..State::default() };
        state::write(&store, "hr", &mut unpublished).await.unwrap().unwrap();
        let mut published = State { letters: vec![(letter.clone(), 0)], ..State::default() };
        let id = state::write(&store, "hr", &mut published).await.unwrap().unwrap();
        // A feed whose first copy never ended, one whose position is of a newer program, and one whose state is lost.
        for source in ["begun", "newer", "lost"] {
            state::write(&store, source, &mut published.clone()).await.unwrap();
        }
        let all = objects(&store).await;
        assert_eq!(all.len(), 7);

        // Without a graph, it may be a first copy that is at work.
        assert_eq!(remove_orphans(&store, i64::MAX).await.unwrap(), RemovedObjects::default());
        Graph::create(&store).await.unwrap();
        let mut graph = Graph::open("memory://feed-orphans").await.unwrap();
        let mut commit = graph.begin();
        let lost = format!("0-1-8 +{id}");
        for (source, position) in [("hr", &*lost), ("newer", "0-1-8 %new"), ("lost", &*lost)] {
            commit.source_position(source, position);
        }
        commit.upsert_vertex("P", 1, [("x", 1)]);
        commit.commit().await.unwrap();
        graph.refresh().await.unwrap();
        // They may be of a commit that is being made.
        assert_eq!(remove_orphans(&store, i64::MIN).await.unwrap(), RemovedObjects::default());
        assert_eq!(objects(&store).await, all);
        assert_eq!(remove_orphans(&store, i64::MAX).await.unwrap().objects, 3);
        let left = objects(&store).await;
        let of_hr = BTreeSet::from([state::object_name("hr", &id), letters::object_name("hr", &letter)]);
        assert!(of_hr.is_subset(&left), "{left:?}");
        let others = |source: &str| left.iter().filter(|name| name.contains(&format!("/{source}/"))).count();
        assert_eq!((others("hr"), others("begun"), others("newer"), others("lost")), (2, 0, 1, 1));

        let clone = Store::open("memory://feed-orphans-clone").unwrap();
        let positions = ["hr", "lost"].map(|source| (source.to_owned(), lost.clone())).into();
        assert_eq!(copy_objects(&store, &clone, &positions).await.unwrap(), ["lost"]);
        assert_eq!(objects(&clone).await, of_hr);
    }
}
