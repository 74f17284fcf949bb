//! Weights of edges that have to be numbers from 0 on.

use hoplake_engine::EngineError;
use hoplake_storage::{QueryContext, StorageError};
use rayon::prelude::*;

use super::CHUNK;
use crate::{Adjacency, Csr};

/// Rejects lists with a weight that is negative, infinite or not a number.
pub(super) fn check(lists: &Csr, context: &QueryContext) -> Result<(), EngineError> {
    let is_wrong = |weight: &f64| !weight.is_finite() || *weight < 0.0;
    let chunks = lists.weights().par_chunks(CHUNK).enumerate().map(|(number, weights)| {
        context.check_time()?;
        Ok(weights.iter().position(is_wrong).map(|place| number * CHUNK + place))
    });
    let found: Vec<Option<usize>> = chunks.collect::<Result<_, StorageError>>()?;
    // The first in the order of edges, whatever was found first.
    let Some(edge) = found.into_iter().flatten().next() else { return Ok(()) };
    let source = source_of(lists, edge);
    let weight = lists.weights()[edge];
    Err(EngineError::Invalid(format!(
        "an edge of vertex {source} (by dense id) has the weight {weight}; weights are numbers, 0 or more"
    )))
}

/// The vertex whose list has an edge.
pub(super) fn source_of(lists: &Csr, edge: usize) -> u32 {
    let mut low = 0;
    let mut high = lists.len() as u32;
    while low < high {
        let middle = low + (high - low) / 2;
        match lists.range(middle).end <= edge {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    low
}
