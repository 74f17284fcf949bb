//! Label propagation.

use std::sync::Arc;

use hoplake_engine::Held;

use crate::{Step, Vertex, VertexProgram};

/// Communities by label propagation, as LDBC Graphalytics has it (CDLP): in each superstep a vertex takes the label that most of its
/// neighbours have, and of several the least. All take theirs at once. It does not converge; the run's number of supersteps
/// ends it. Labels are dense ids at first, or those that it is made of: as ties go to the least, these should be in the order of the
/// vertices' keys, since ids depend on how a graph was loaded.
#[derive(Debug, Clone, Default)]
pub struct Labels {
    initial: Option<Arc<Held<Vec<u32>>>>,
}

impl From<Held<Vec<u32>>> for Labels {
    fn from(initial: Held<Vec<u32>>) -> Self {
        Self { initial: Some(Arc::new(initial)) }
    }
}

impl VertexProgram for Labels {
    type State = u32;
    type Signal = u32;
    type Aggregate = ();

    const NEEDS_SUPERSTEPS: bool = true;

    fn name(&self) -> String {
        // A checkpoint of labels that were ids does not go on as one of others.
        if self.initial.is_some() { "label propagation by key" } else { "label propagation" }.into()
    }

    fn initial(&self, vertex: &Vertex) -> u32 {
        self.initial.as_ref().map_or(vertex.id, |initial| initial[vertex.id as usize])
    }

    fn signal(&self, _: &Vertex, label: &u32) -> Option<u32> {
        Some(*label)
    }

    fn collect(&self, _: &Vertex, label: &mut u32, signals: impl Iterator<Item = u32>, _: &Step<()>) -> bool {
        let mut labels: Vec<u32> = signals.collect();
        labels.sort_unstable();
        // The last of the longest would be the greatest label, so they are looked through from behind.
        let most = labels.chunk_by(|a, b| a == b).rev().max_by_key(|same| same.len());
        let before = *label;
        most.into_iter().for_each(|same| *label = same[0]);
        *label != before
    }
}
