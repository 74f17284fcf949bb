//! The vertices that a scan finds, as a set without their rows.

use std::sync::Arc;

use futures::future::BoxFuture;
use hoplake_format::LabelId;
use hoplake_storage::Branch;

use super::VertexQuery;
use crate::{
    Condition, EngineError, Frontier, Held, Snapshot,
    memory::bytes_of,
    read::frontier::{OrdinalCollector, SinkError},
};

impl Snapshot {
    /// The vertices of some labels that match a condition, or all of them; `most` at most, those of the first label first.
    ///
    /// # Errors
    /// As [`Self::scan_vertices`] and [`VertexScan::next`](super::VertexScan::next).
    pub fn find_vertices<'a>(
        self: &'a Arc<Self>,
        labels: &'a [LabelId],
        condition: Option<&'a Condition>,
        most: Option<usize>,
        branch: &'a mut Branch,
    ) -> BoxFuture<'a, Result<Held<Frontier>, EngineError>> {
        Box::pin(async move {
            let context = branch.context().clone();
            let failed = |error: SinkError| error.at(self.reader().store().url());
            let mut found = Held::new(Frontier::default(), context.hold(0)?);
            let mut pace = context.pace();
            let mut left = most.unwrap_or(usize::MAX);
            for label in labels {
                if left == 0 {
                    break;
                }
                let condition = condition.cloned();
                let wanted = most.map(|_| left);
                let query = VertexQuery { label: *label, condition, columns: Vec::new(), wanted };
                let mut scan = self.scan_vertices(query, branch).await?;
                let mut of_label = OrdinalCollector::new(self.ordinal_count(*label), &context)?;
                while left > 0
                    && let Some(part) = scan.next(branch).await?
                {
                    let _memory = context.hold(bytes_of::<u64>(part.len()))?;
                    let ordinals: Vec<u64> = part.ordinals().take(left).collect();
                    of_label.extend(&ordinals).map_err(failed)?;
                    left -= ordinals.len();
                    pace.rest(ordinals.len() as u64).await?;
                }
                let (ordinals, memory) = of_label.finish(&mut pace).await.map_err(failed)?;
                found.set(*label, ordinals);
                found.absorb(Held::new((), memory));
            }
            Ok(found)
        })
    }
}
