//! How many edges vertices have.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use hoplake_engine::Frontier;
use hoplake_format::VertexId;

use super::hop::{Hop, as_vertices};
use crate::{
    operators::{hop_along, prelude::*, reductions::Reducing},
    plan::Reduction,
    tokens::Direction,
};

/// The number of all edges of the vertices that come.
#[derive(Debug, Clone, PartialEq)]
pub struct CountEdges {
    /// Which way edges would be followed.
    pub direction: Direction,
    /// The labels of edges; none means all.
    pub labels: Vec<Name>,
}

impl Operator for CountEdges {
    fn parameters(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Hop::write(f, self.direction, &self.labels)
    }

    fn is_barrier(&self) -> bool {
        true
    }

    fn reach(&self, _: &mut Reach<'_>, _: Elements) -> Elements {
        Elements::default()
    }

    fn start(self: Arc<Self>) -> Running {
        Running::new(Counting { operator: self, counts: Reducing::new(Reduction::Count) })
    }
}

#[derive(Debug)]
struct Counting {
    operator: Arc<CountEdges>,
    counts: Reducing,
}

impl Stage for Counting {
    fn begin(&mut self, frames: &Frames) {
        self.counts.begin(frames);
    }

    fn input<'a>(&'a mut self, run: &'a mut Run, batch: Batch, _: &'a mut Vec<Output>) -> BoxFuture<'a, Done<()>> {
        Box::pin(async move {
            let degrees = run.degrees(&batch, self.operator.direction, &self.operator.labels).await?;
            for (row, degree) in batch.rows.iter().zip(degrees) {
                self.counts.add(row.frame, &Value::Null, row.bulk.saturating_mul(degree), run)?;
            }
            Ok(())
        })
    }

    fn finish<'a>(&'a mut self, run: &'a mut Run, _: Batch, out: &'a mut Vec<Output>) -> BoxFuture<'a, Done<()>> {
        self.counts.finish(run, Batch::default(), out)
    }

    fn is_done(&self, is_silent: bool) -> bool {
        self.counts.is_done(is_silent)
    }
}

impl Run {
    /// How many edges each row's vertex has, along a hop.
    pub(crate) async fn degrees(&mut self, batch: &Batch, direction: Direction, labels: &[Name]) -> Done<Vec<u64>> {
        let places: Vec<u32> = (0..batch.len() as u32).collect();
        let on_vertices = as_vertices(batch.take(&places, &self.growth)?, "a hop")?;
        let Items::Vertices(vertices) = &on_vertices.items else { return Ok(vec![0; batch.len()]) };
        let Some(hop) = hop_along(&self.snapshot, direction, labels) else { return Ok(vec![0; batch.len()]) };
        let frontier = Frontier::held(vertices, self.branch.context()).await?;
        let found = self.snapshot.adjacency().degrees(&frontier, &hop, &mut self.branch).await?;
        let of: HashMap<VertexId, u64, RandomState> = found.iter().map(|it| (it.vertex, it.edges)).collect();
        Ok(vertices.iter().map(|vertex| of.get(vertex).copied().unwrap_or(0)).collect())
    }
}
