//! `mergeV` and `mergeE`: what is found, or else added.

use super::{Batch, Done, Run, paths::Labels};
use crate::{error::GremlinError, plan::Merging};

impl Run {
    pub(super) async fn merge_vertices(&mut self, _batch: Batch, _merging: &Merging, _labels: &Labels) -> Done<Batch> {
        Err(GremlinError::unsupported("the step `mergeV` is not supported"))
    }

    pub(super) async fn merge_edges(&mut self, _batch: Batch, _merging: &Merging, _labels: &Labels) -> Done<Batch> {
        Err(GremlinError::unsupported("the step `mergeE` is not supported"))
    }
}
