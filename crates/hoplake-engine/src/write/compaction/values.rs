//! Merges the runs of a property index.

use hoplake_format::{IndexId, KeyType, segment::SectionKind};

use super::{
    keys::write_section,
    merging::{Merged, Merging},
    plan::Merge,
    run_writer::RunWriter,
};
use crate::EngineError;

/// Merges all runs of an index that a version has: of each item the newest entry. What went is forgotten with the oldest run.
pub(super) async fn merge_index(
    merging: &mut Merging<'_>,
    index: IndexId,
    merge: &Merge,
    run: &mut RunWriter,
) -> Result<Merged, EngineError> {
    let kinds = [SectionKind::Values(index), SectionKind::RemovedValues(index)];
    write_section(merging, kinds, false, KeyType::String, run).await?;
    if !merge.oldest && !merging.inputs.sections().runs(kinds[1]).is_empty() {
        write_section(merging, kinds, true, KeyType::String, run).await?;
    }
    Ok(Merged::default())
}
