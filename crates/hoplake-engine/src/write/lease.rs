//! Leases of long-running writers: a version announces them, and vacuums spare their objects.
//!
//! Any other writer's objects belong to the one version that it tries to publish; once another has that version, they
//! are garbage. A load or a compaction cannot count on publishing the next version, so its name stays in the
//! manifests until it is done. It publishes on whatever is the newest version then, if its name is still there:
//! removing the name permanently stops the writer.

use futures::future::BoxFuture;
use hoplake_format::{ChangeKind, Manifest, WriterLease};
use hoplake_storage::{Branch, Reader};

use crate::{
    EngineError,
    write::publish::{amend, amend_on, change},
};

/// Announces a writer by its unique name, and returns the manifest that has it, which the hint does not name yet.
/// `known` is a version that may be the newest. A caller that breaks this off cannot know whether it happened, and has
/// to [`withdraw`].
///
/// # Errors
/// [`EngineError::NotFound`] if the graph does not exist; the store's.
pub fn announce<'a>(
    reader: &'a Reader,
    kind: ChangeKind,
    writer: &'a str,
    known: Option<Manifest>,
    branch: &'a mut Branch,
) -> BoxFuture<'a, Result<Manifest, EngineError>> {
    Box::pin(async move {
        let announced = amend_on(reader, known, branch, |newest| {
            let change = change(reader.store(), ChangeKind::Fence, format!("{} begins", kind.name()));
            let mut next = newest.next(change, reader.store().clock().unix_ms());
            // `since` dates the lease: a vacuum reads its age from the time of that version (`--dead-after`).
            next.leases.push(WriterLease { writer: writer.to_owned(), kind, since: next.version });
            Ok(Some(next))
        });
        announced.await?.ok_or_else(|| EngineError::no_graph(reader.store().url()))
    })
}

/// Removes a writer's lease, if it exists, and returns the version without it.
///
/// # Errors
/// The store's.
pub fn withdraw<'a>(
    reader: &'a Reader,
    writer: &'a str,
    branch: &'a mut Branch,
) -> BoxFuture<'a, Result<Option<u64>, EngineError>> {
    Box::pin(async move {
        let withdrawn = amend(reader, branch, |newest| {
            // Withdrawn before, perhaps by a request whose answer was lost, or removed by a vacuum: nothing to publish.
            let Some(lease) = newest.leases.iter().find(|lease| lease.writer == writer) else { return Ok(None) };
            let change = change(reader.store(), ChangeKind::Fence, format!("{} ends", lease.kind.name()));
            let mut next = newest.next(change, reader.store().clock().unix_ms());
            next.leases.retain(|lease| lease.writer != writer);
            Ok(Some(next))
        });
        Ok(withdrawn.await?.map(|manifest| manifest.version))
    })
}

/// Fails if a writer's lease was removed.
///
/// # Errors
/// [`EngineError::Conflict`].
pub fn check(newest: &Manifest, writer: &str) -> Result<(), EngineError> {
    match newest.leases.iter().any(|lease| lease.writer == writer) {
        true => Ok(()),
        false => Err(EngineError::Conflict(format!("writer {writer} was aborted by a vacuum; begin again"))),
    }
}
