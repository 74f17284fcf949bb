//! The objects of feeds next to a graph, held against what names them: the position of a source names its state, and a state its dead letters.
//!
//! A graph without them answers queries, but its feed cannot go on, and changes that were set aside are lost. The engine knows nothing of them; so
//! a verification of a graph asks here for the rest.

use std::collections::BTreeMap;

use hoplake::Store;

use crate::{FeedError, FeedErrorKind, Position, letters, state};

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
