//! The objects of feeds next to a graph, held against what names them: the position of a source names its state, and a state its dead letters.
//!
//! A graph without them answers queries, but its feed cannot go on, and changes that were set aside are lost. The engine knows nothing of them; so
//! a verification of a graph asks here for the rest.

use std::collections::BTreeMap;

use hoplake::Store;

use crate::{
    FeedError, FeedErrorKind, Position,
    apply::{letters, state},
};

/// What was found of the objects of all feeds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VerifiedObjects {
    /// Objects that are whole.
    pub objects: u64,
    /// What is damaged or missing, a sentence each.
    pub damages: Vec<String>,
}

/// Reads the objects that the positions of a version name.
///
/// # Errors
/// The store's. That an object is damaged or missing is not an error: it is in what is returned.
pub async fn verify_objects(
    store: &Store,
    source_positions: &BTreeMap<String, String>,
) -> Result<VerifiedObjects, FeedError> {
    let mut found = VerifiedObjects::default();
    for (source, position) in source_positions {
        // Others keep positions, too, in words of their own.
        let Some(id) = Position::parse(position).ok().and_then(|position| position.state) else { continue };
        let state = match state::read(store, source, &id).await {
            Ok(Some(state)) => state,
            Ok(None) => {
                found.damages.push(state::lost(source, &id).to_string());
                continue;
            }
            Err(error) => {
                found.note(error)?;
                continue;
            }
        };
        found.objects += 1;
        for (id, count) in &state.letters {
            match letters::read(store, source, id).await {
                Ok(letters) if letters.len() as u64 == *count => found.objects += 1,
                Ok(letters) => found.damages.push(format!(
                    "dead letters {id} of {source} are {}, and the feed set aside {count}",
                    letters.len()
                )),
                Err(error) => found.note(error)?,
            }
        }
    }
    Ok(found)
}

impl VerifiedObjects {
    /// Notes damage, and passes on other errors.
    fn note(&mut self, error: FeedError) -> Result<(), FeedError> {
        match error.kind() {
            FeedErrorKind::Invalid => {
                self.damages.push(error.to_string());
                Ok(())
            }
            _ => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::{
        Columns, Images, Row, RowChange, TableName,
        apply::{letters::Letter, state::FeedState},
    };

    use super::*;

    fn letter() -> Letter {
        let table = TableName::new("hr", "person");
        let columns = Arc::new(Columns { table: table.clone(), names: Vec::new(), kinds: Vec::new() });
        let change = RowChange { columns, images: Images::Insert(Row::from([])), checks_keys: true };
        Letter {
            position: "0-1-7".into(),
            committed_unix_ms: 0,
            table,
            label: "Person".into(),
            names: vec!["Person:7".into()],
            why: Some("has no key".into()),
            attempts: 1,
            change,
        }
    }

    #[tokio::test]
    async fn every_kind_of_damage_to_every_object_of_a_feed_is_reported() {
        let store = Store::open("memory://feed-verifying").unwrap();
        let first = letters::write(&store, "hr", &[letter()]).await.unwrap();
        let second = letters::write(&store, "hr", &[letter(), letter()]).await.unwrap();
        let mut state = FeedState { letters: vec![(first, 1), (second, 2)], ..FeedState::default() };
        let id = state::write(&store, "hr", &mut state).await.unwrap().unwrap();
        // Others keep positions, too, and a feed without a state has no objects.
        let positions = [("hr", format!("0-1-8 +{id}")), ("crm", "17".into())];
        let positions: BTreeMap<String, String> = positions.map(|(name, text)| (name.to_owned(), text)).into();
        let whole = verify_objects(&store, &positions).await.unwrap();
        assert_eq!(whole, VerifiedObjects { objects: 3, damages: Vec::new() });
        let objects: Vec<String> = store.list("").await.unwrap().into_iter().map(|object| object.name).collect();
        assert_eq!(objects.len(), 3, "{objects:?}");
        for name in objects {
            let bytes = store.get(&name).await.unwrap().unwrap();
            let cut = bytes.slice(..bytes.len() - 1);
            let appended = [&bytes[..], b"more"].concat().into();
            let mut flipped = bytes.to_vec();
            flipped[bytes.len() / 2] ^= 1;
            for damaged in [None, Some(cut), Some(appended), Some(flipped.into())] {
                match damaged {
                    Some(damaged) => store.put(&name, damaged).await.unwrap(),
                    None => store.delete(std::slice::from_ref(&name)).await.unwrap(),
                }
                let found = verify_objects(&store, &positions).await.unwrap();
                assert!(found.damages.len() == 1 && found.damages[0].contains(&name), "{name}: {found:?}");
            }
            store.put(&name, bytes).await.unwrap();
        }
        assert_eq!(verify_objects(&store, &positions).await.unwrap(), whole);
    }
}
