//! Prepared queries of a graph: saved and deleted by a version of their own, as tags are.

use futures::future::BoxFuture;
use hoplake_format::{ChangeKind, QueryEdition};
use hoplake_storage::{Branch, Reader};

use crate::{
    EngineError,
    write::publish::{amend, change},
};

/// What became of a query that was to be saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SavedQuery {
    /// The number that its text has under its name.
    pub number: u32,
    /// The version that has it; `None` if the name had exactly this already.
    pub version: Option<u64>,
}

/// Saves a text under a name, with the next number. The number and the time that it brings do not count.
///
/// # Errors
/// [`EngineError::Invalid`] if a name or a type cannot be, or the texts are too long; [`EngineError::NoGraph`]; the store's.
pub fn save<'a>(
    reader: &'a Reader,
    name: &'a str,
    edition: &'a QueryEdition,
    branch: &'a mut Branch,
) -> BoxFuture<'a, Result<SavedQuery, EngineError>> {
    Box::pin(async move {
        let mut number = 0;
        let saved = amend(reader, branch, |newest| {
            if let Some(same) = newest.queries.0.get(name).and_then(|query| query.editions.last())
                && (&same.text, &same.parameters, &same.description)
                    == (&edition.text, &edition.parameters, &edition.description)
            {
                number = same.number;
                return Ok(None);
            }
            let now_unix_ms = reader.store().clock().unix_ms();
            let mut queries = newest.queries.clone();
            let edition = QueryEdition { saved_unix_ms: now_unix_ms, ..edition.clone() };
            let saved = queries.save(name, edition).map_err(|error| EngineError::Invalid(error.to_string()))?;
            number = saved;
            let change = change(reader.store(), ChangeKind::Query, format!("{name}@{number} saved"));
            let mut next = newest.next(change, now_unix_ms);
            next.queries = queries;
            Ok(Some(next))
        });
        let version = saved.await?.map(|manifest| manifest.version);
        Ok(SavedQuery { number, version })
    })
}

/// Deletes a query (`NAME`, with all of its editions) or one edition (`NAME@NUMBER`), and returns the version without it. Versions
/// before keep it.
///
/// # Errors
/// [`EngineError::NotFound`] if there is none; [`EngineError::NoGraph`]; the store's.
pub fn delete<'a>(
    reader: &'a Reader,
    call: &'a str,
    branch: &'a mut Branch,
) -> BoxFuture<'a, Result<u64, EngineError>> {
    Box::pin(async move {
        let missing = || EngineError::NotFound(format!("{} has no prepared query {call:?}", reader.store().url()));
        let deleted = amend(reader, branch, |newest| {
            let mut queries = newest.queries.clone();
            if !queries.delete(call) {
                return Err(missing());
            }
            let change = change(reader.store(), ChangeKind::Query, format!("{call} deleted"));
            let mut next = newest.next(change, reader.store().clock().unix_ms());
            next.queries = queries;
            Ok(Some(next))
        });
        deleted.await?.map(|manifest| manifest.version).ok_or_else(missing)
    })
}
