//! Reads everything and says whether it is intact: of one version ([`verify_version`]), or of a graph with all its versions
//! ([`verify_graph`]).
//!
//! Every object is read from end to end, once, against its checksum in the manifest, and has to end there (`lengths`). The blocks of segments are checked by
//! themselves as they come, to name those that are damaged; each is decoded, and what it says is held against the index, the
//! schema and the counts. Nothing comes from a cache: what counts is what the store has. Of one version, and of the newest of a graph,
//! property indexes are then held against the rows (`indexes`).

mod blocks;
mod findings;
mod graph;
mod indexes;
mod lengths;
mod segment;
pub(crate) mod stored;
mod version;

use std::sync::Arc;

use crate::{EngineError, Snapshot};

use findings::Findings;
pub use findings::{Damage, Verified};
pub use graph::{Verification, verify_graph};
use lengths::Lengths;
use version::VersionCheck;

/// Reads everything of a version. `progress` is called with the bytes read so far.
///
/// # Errors
/// [`EngineError::Format`] that names the first damaged object, section and block; the store's.
pub async fn verify_version(snapshot: &Arc<Snapshot>, progress: impl Fn(u64)) -> Result<Verified, EngineError> {
    let check = VersionCheck { snapshot };
    let mut found = Findings::default();
    if check.verify_into(&mut found, &progress).await? {
        found.note(check.verify_indexes().await)?;
    }
    let mut lengths = Lengths::default();
    lengths.add(snapshot.manifest());
    lengths.check(snapshot.reader().store(), &mut found).await?;
    match found.damages.into_iter().next() {
        Some((_, damage)) => Err(damage),
        None => Ok(found.verified),
    }
}
