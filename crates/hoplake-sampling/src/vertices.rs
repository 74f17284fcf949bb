//! The vertices of a label.

use std::sync::Arc;

use hoplake_engine::{EngineError, Held, Snapshot};
use hoplake_format::LabelId;
use hoplake_storage::Branch;

/// The ordinals of the vertices of a label that exist, ascending. Reads nothing unless some were deleted; otherwise all keys of the label.
///
/// # Errors
/// [`EngineError::Limit`] at a limit of the query; the store's.
pub async fn existing(
    snapshot: &Arc<Snapshot>,
    label: LabelId,
    branch: &mut Branch,
) -> Result<Held<Vec<i64>>, EngineError> {
    let count = snapshot.ordinal_count(label);
    let memory = branch.context().hold(count * 8)?;
    let gone = snapshot.manifest().vertex_counts.get(usize::from(label.0)).map_or(0, |count| count.gone);
    if gone == 0 {
        return Ok(Held::new((0..count as i64).collect(), memory));
    }
    let mut ordinals = Vec::with_capacity(count.saturating_sub(gone) as usize);
    let mut scan = snapshot.scan_keys(label, snapshot.ahead_bytes(branch.context()));
    let mut keys = Vec::new();
    let mut pace = branch.context().pace();
    while scan.next(&mut keys, branch).await? {
        ordinals.extend(keys.iter().map(|(_, ordinal)| *ordinal as i64));
        pace.rest(keys.len() as u64 * 4).await?;
    }
    ordinals.sort_unstable();
    Ok(Held::new(ordinals, memory))
}
