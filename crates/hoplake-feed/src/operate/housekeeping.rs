//! The objects of feeds in a vacuum and in a clone. The engine does not know them, so a vacuum removes here those that no position names
//! (of commits that never happened, or replaced by a resnapshot), and a clone copies here those of its version.
//!
//! **Commits under way.** A feed writes letters and state, then commits a position that names them, and retries until it gets an answer.
//! However old the objects are, that commit may still succeed. So before a vacuum removes objects of a source, it commits the source's
//! position again with another writer: a fence. Each commit of a feed requires the position from which it started, so those under way now
//! conflict, and their feeds write new objects. A first copy starts without a position or from an incomplete copy, and cannot be fenced:
//! nothing is removed there.

use std::collections::{BTreeMap, BTreeSet};

use hoplake::{Batch, ErrorKind, Graph, Schema, Store};

use crate::{
    FeedError, FeedErrorKind, Position,
    apply::{letters, opening, position, state},
};

/// How often the position of a source is committed again, if its feed goes on meanwhile: the next vacuum removes what this one leaves.
const FENCES_MAX: usize = 5;

/// What was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RemovedObjects {
    /// Objects.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Removes the objects of feeds that no position names, nor will name, and that were last written before a time, by the store's clock. A
/// commit with a younger one is not disturbed. Adds what it removes to `removed`, also if it fails.
///
/// Of a source nothing is removed if it cannot be known what its position names, or while its first copy may be made.
///
/// # Errors
/// The store's.
pub async fn remove_orphans(
    store: &Store,
    written_before_unix_ms: i64,
    removed: &mut RemovedObjects,
) -> Result<(), FeedError> {
    // In this order: what a version names that is published meanwhile is not in the listing, or is in what is read after it.
    let mut listed = Vec::new();
    for kind in [state::FOLDER, letters::FOLDER] {
        listed.extend(store.list(kind).await.map_err(hoplake::Error::from)?);
    }
    listed.retain(|object| object.modified_unix_ms < written_before_unix_ms);
    if listed.is_empty() {
        return Ok(());
    }
    let Some(mut graph) = opening::open_graph(store).await? else { return Ok(()) };
    let mut of_sources: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
    for object in listed {
        if let Some(source) = object.name.split('/').nth(1) {
            of_sources.entry(source.to_owned()).or_default().insert(object.name, object.bytes);
        }
    }
    for (source, objects) in of_sources {
        let orphans = orphans(&mut graph, &source, objects).await?;
        let bytes = orphans.values().sum::<u64>();
        let names: Vec<String> = orphans.into_keys().collect();
        store.delete(&names).await.map_err(hoplake::Error::from)?;
        removed.objects += names.len() as u64;
        removed.bytes += bytes;
    }
    Ok(())
}

/// Those of a source's objects that no commit can name any more.
async fn orphans(
    graph: &mut Graph,
    source: &str,
    objects: BTreeMap<String, u64>,
) -> Result<BTreeMap<String, u64>, FeedError> {
    for _ in 0..FENCES_MAX {
        let Some(text) = graph.source_position(source).map(str::to_owned) else {
            // A first copy does not replace what others have loaded, and nothing else goes on from no position.
            let has_content = *graph.schema() != Schema::default();
            return Ok(if has_content { objects } else { BTreeMap::new() });
        };
        let Ok(position) = Position::parse(&text) else { break };
        if position.is_copying {
            break;
        }
        let Some(named) = named(graph.store(), source, Some(&text)).await? else {
            let before = graph.version();
            graph.refresh().await?;
            if graph.version() == before {
                break;
            }
            // A commit of the feed has removed what the one before it names.
            continue;
        };
        let mut orphans = objects.clone();
        orphans.retain(|name, _| !named.contains(name));
        if orphans.is_empty() {
            return Ok(orphans);
        }
        let fence = Position { writer: position::writer(), ..position };
        let mut batch = Batch { message: "vacuum of a feed".into(), ..Batch::default() };
        batch.if_positions.insert(source.to_owned(), Some(text));
        batch.source_positions.insert(source.to_owned(), fence.to_string());
        match graph.apply(batch).await {
            Ok(_) => return Ok(orphans),
            Err(error) if error.kind() == ErrorKind::Conflict => drop(graph.refresh().await?),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(BTreeMap::new())
}

/// Copies the objects that positions name to a place where their graph is about to be cloned, durably. Returns the sources of which there
/// is not all, as of an older version from which the feed has gone on.
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
        let mut folders = BTreeSet::new();
        if let Some(named) = named(from, source, Some(position)).await? {
            is_complete = true;
            for name in named {
                let Some(bytes) = from.get(&name).await.map_err(hoplake::Error::from)? else {
                    is_complete = false;
                    continue;
                };
                to.put(&name, bytes).await.map_err(hoplake::Error::from)?;
                folders.extend(name.rsplit_once('/').map(|(folder, _)| folder.to_owned()));
            }
        }
        for folder in folders {
            to.flush(&folder).await.map_err(hoplake::Error::from)?;
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
    use std::sync::Arc;

    use hoplake::Operation;

    use super::*;
    use crate::{
        Settings,
        apply::{applier::Outcome, letters::Letter, state::FeedState},
        backoff::Backoff,
        verify_objects,
    };

    /// The names of the objects of feeds.
    async fn objects(store: &Store) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        for kind in [state::FOLDER, letters::FOLDER] {
            names.extend(store.list(kind).await.unwrap().into_iter().map(|object| object.name));
        }
        names
    }

    async fn removed_before(store: &Store, unix_ms: i64) -> u64 {
        let mut removed = RemovedObjects::default();
        remove_orphans(store, unix_ms, &mut removed).await.unwrap();
        removed.objects
    }

    /// A graph with a vertex, at a position of each source.
    async fn fed(store: &Store, positions: &[(&str, &str)]) {
        Graph::create(store).await.unwrap();
        let mut commit = Graph::open(store.url()).await.unwrap().begin();
        for (source, position) in positions {
            commit.source_position(*source, *position);
        }
        commit.upsert_vertex("P", 1, [("x", 1)]);
        commit.commit().await.unwrap();
    }

    #[tokio::test]
    async fn what_no_position_names_is_removed() {
        let store = Store::open("memory://feed-orphans").unwrap();
        let old = letters::write(&store, "hr", &[]).await.unwrap();
        let letter = letters::write(&store, "hr", &[]).await.unwrap();
        let mut unpublished = FeedState { letters: vec![(old, 0)], ..FeedState::default() };
        state::write(&store, "hr", &mut unpublished).await.unwrap().unwrap();
        let mut published = FeedState { letters: vec![(letter.clone(), 0)], ..FeedState::default() };
        let id = state::write(&store, "hr", &mut published).await.unwrap().unwrap();
        // A feed whose graph was loaded again, one whose position is of a newer program, one whose state is lost, and one that is making its
        // first copy.
        for source in ["replaced", "newer", "lost", "copying"] {
            state::write(&store, source, &mut published.clone()).await.unwrap();
        }
        let all = objects(&store).await;
        assert_eq!(all.len(), 8);

        // Without a graph, or one with content, it may be a first copy that is at work.
        assert_eq!(removed_before(&store, i64::MAX).await, 0);
        Graph::create(&store).await.unwrap();
        assert_eq!(removed_before(&store, i64::MAX).await, 0);
        let lost = format!("0-1-8 +{id} ~7 @1f2e3d4c");
        let positions = [("hr", &*lost), ("newer", "0-1-8 %new"), ("lost", &*lost), ("copying", "0-1-8 copying")];
        fed(&store, &positions).await;
        // They may be of a commit that is being made.
        assert_eq!(removed_before(&store, i64::MIN).await, 0);
        assert_eq!(objects(&store).await, all);
        let before = Graph::newest(&store).await.unwrap();
        assert_eq!(removed_before(&store, i64::MAX).await, 3);
        let left = objects(&store).await;
        let of_hr = BTreeSet::from([state::object_name("hr", &id), letters::object_name("hr", &letter)]);
        assert!(of_hr.is_subset(&left), "{left:?}");
        let others = |source: &str| left.iter().filter(|name| name.contains(&format!("/{source}/"))).count();
        let counts = ["hr", "replaced", "newer", "lost", "copying"].map(others);
        assert_eq!(counts, [2, 0, 1, 1, 1]);

        // Another writer is at the same position.
        let fenced = Graph::newest(&store).await.unwrap();
        assert_eq!(fenced.version, before.version + 1);
        let was = Position::parse(&lost).unwrap();
        let is = Position::parse(&fenced.source_positions["hr"]).unwrap();
        assert_ne!(is.writer, was.writer);
        assert_eq!(Position { writer: was.writer.clone(), ..is }, was);
        // There is nothing to do, and nothing is published.
        assert_eq!(removed_before(&store, i64::MAX).await, 0);
        assert_eq!(Graph::newest(&store).await.unwrap().version, fenced.version);

        let clone = Store::open("memory://feed-orphans-clone").unwrap();
        let positions = ["hr", "lost"].map(|source| (source.to_owned(), lost.clone())).into();
        assert_eq!(copy_objects(&store, &clone, &positions).await.unwrap(), ["lost"]);
        assert_eq!(objects(&clone).await, of_hr);
    }

    fn letter(name: &str) -> Letter {
        let table = crate::TableName::new("hr", "person");
        let columns = Arc::new(crate::Columns { table: table.clone(), names: vec!["id".into()], kinds: vec![None] });
        let row: crate::Row = [crate::Cell::Value(hoplake::Value::Int64(7))].into();
        Letter {
            position: "8".into(),
            committed_unix_ms: 0,
            table,
            label: "P".into(),
            names: vec![name.to_owned()],
            why: Some("why".into()),
            attempts: 1,
            change: crate::RowChange::new(columns, crate::Images::Insert(row)),
        }
    }

    /// A feed writes letters and state, its host is suspended, a vacuum takes them for leftovers, and then it commits.
    #[tokio::test]
    async fn a_commit_that_is_being_made_names_nothing_that_a_vacuum_removed() {
        let store = Store::open("memory://feed-in-flight").unwrap();
        fed(&store, &[("hr", "7 ~7 @1f2e3d4c")]).await;
        let text = format!("graph = '{}'\n[source]\nname = 'hr'\nurl = 'model://x/hr'\n", store.url());
        let settings = Settings::parse(&text).unwrap();
        let mut applier = opening::applier(&store, &settings, Arc::default()).await.unwrap();
        let vertex = hoplake::VertexRef::new("P", hoplake::Key::Int64(2));
        let upsert = Operation::UpsertVertex { vertex, properties: hoplake::Properties::new(), replace: false };
        let mut pauses = Backoff::new();
        let mut outcomes = Vec::new();
        loop {
            let mut state = applier.state.clone();
            applier.replace_letters(&mut state, &[letter("P:7")]).await.unwrap();
            let position = applier.position_with("7".into(), Some(8), &mut state, &mut pauses).await.unwrap();
            if outcomes.is_empty() {
                assert_eq!(removed_before(&store, i64::MAX).await, 2);
            }
            match applier.commit(vec![upsert.clone()], &position, &mut pauses, &mut 0).await.unwrap() {
                Outcome::Committed(_) => {
                    applier.settle(position, state).await;
                    break;
                }
                Outcome::Remembers => outcomes.push("remembers"),
                Outcome::Rejected(error, _) => panic!("{error}"),
            }
        }
        assert_eq!(outcomes, ["remembers"]);
        let positions = Graph::newest(&store).await.unwrap().source_positions;
        let verified = verify_objects(&store, &positions).await.unwrap();
        assert!(verified.objects == 2 && verified.damages.is_empty(), "{verified:?}");
        let applier = opening::applier(&store, &settings, Arc::default()).await.unwrap();
        assert_eq!(applier.letters().await.unwrap(), [letter("P:7")]);
        assert_eq!(removed_before(&store, i64::MAX).await, 0);
    }
}
