//! A graph that begins empty, for commits to fill.

use futures::future::BoxFuture;
use hoplake_format::{ChangeKind, Manifest, Schema};
use hoplake_storage::{Branch, Reader};

use crate::{
    EngineError, versions,
    write::publish::{Published, change, hint, publish},
};

/// Publishes a first version without labels, and returns whether it did: a graph that is there and has none, such as one that was created
/// before or that a vacuum made of a load that never finished, stays as it is.
///
/// # Errors
/// [`EngineError::Exists`] if there is a graph with labels, or what is left of one; as `publish`.
pub fn create<'a>(reader: &'a Reader, branch: &'a mut Branch) -> BoxFuture<'a, Result<bool, EngineError>> {
    Box::pin(async move {
        let store = reader.store();
        let exists = |what: &str| Err(EngineError::Exists(format!("there is {what} at {} already", store.url())));
        let found = |newest: &Manifest| if newest.schema == Schema::default() { Ok(false) } else { exists("a graph") };
        if let Some(newest) = versions::newest(reader, branch).await? {
            return found(&newest);
        }
        let change = change(store, ChangeKind::Load, "created empty");
        let created_unix_ms = store.clock().unix_ms();
        let manifest =
            Manifest { version: 1, reset: 1, created_unix_ms, change, unique_keys: true, ..Manifest::default() };
        if let Published::Visible = publish(reader, &manifest, branch).await? {
            hint(store, &manifest).await;
            return Ok(true);
        }
        // Another writer was faster, or there is a version tombstone.
        match versions::newest(reader, branch).await? {
            Some(newest) => found(&newest),
            None => exists("what is left of a graph"),
        }
    })
}
