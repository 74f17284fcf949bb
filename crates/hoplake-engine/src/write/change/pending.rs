//! A version with changes that are not committed: what a transaction reads of what it wrote.
//!
//! The changes become a delta as a commit's do, and the delta is the newest run of a snapshot. Its objects are in memory alone, and
//! reads find them there: nothing else knows that they were never published.

use std::sync::Arc;

use futures::future::BoxFuture;
use hoplake_storage::Branch;

use super::{
    Batch,
    assemble::Assembled,
    commit::{next_manifest, resolve_on},
    delta,
};
use crate::{EngineError, Snapshot};

impl Snapshot {
    /// This version with the changes of a batch, as if it had been committed.
    ///
    /// # Errors
    /// As [`Committer::commit`](super::Committer::commit), without the errors of a publication.
    pub fn with_changes<'a>(
        self: &'a Arc<Self>,
        batch: Batch,
        branch: &'a mut Branch,
    ) -> BoxFuture<'a, Result<Arc<Self>, EngineError>> {
        Box::pin(async move {
            let batch = Arc::new(batch);
            let resolved = [resolve_on(&batch, self, branch).await?];
            let base = self.manifest();
            let clock = self.reader().store().clock();
            let assembled = Assembled::of(base, &resolved)?;
            let writer = clock.ulid();
            let delta = delta::build(&assembled.changes, &assembled.schema, &base.indexes, &writer, base.version + 1)?;
            let manifest = next_manifest(base, assembled, &delta, writer, &[&batch], clock.unix_ms());
            let objects = delta.objects.into_iter().collect();
            Ok(Arc::new(self.with_objects(manifest, objects, branch).await?))
        })
    }
}
