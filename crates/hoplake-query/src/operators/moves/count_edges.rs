//! How many edges vertices have.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use hoplake_engine::Frontier;
use hoplake_format::VertexId;

use super::{
    Followed, HopConditions,
    hop::{Hop, as_vertices},
};
use crate::{
    operators::{prelude::*, reductions::Reducing},
    plan::Reduction,
};

/// The number of all edges of the vertices that come: of those that match conditions, and lead to vertices that do.
#[derive(Debug, Clone, PartialEq)]
pub struct CountEdges {
    /// How edges would be followed.
    pub hop: Hop,
    /// The conditions.
    pub conditions: HopConditions,
}

impl Operator for CountEdges {
    fn parameters(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Hop::write(f, self.hop.direction, &self.hop.labels)?;
        self.conditions.write(f)
    }

    fn is_barrier(&self) -> bool {
        true
    }

    fn reach(&self, reach: &mut Reach<'_>, input: Elements) -> Elements {
        self.conditions.reach(reach, &input, &self.hop);
        Elements::default()
    }

    fn start(self: Arc<Self>) -> Running {
        Running::new(Counting { operator: self, followed: None, counts: Reducing::new(Reduction::Count) })
    }
}

#[derive(Debug)]
struct Counting {
    operator: Arc<CountEdges>,
    followed: Option<Arc<Followed>>,
    counts: Reducing,
}

impl Stage for Counting {
    fn begin(&mut self, frames: &Frames) {
        self.counts.begin(frames);
    }

    fn input<'a>(&'a mut self, run: &'a mut Run, batch: Batch, _: &'a mut Vec<Output>) -> BoxFuture<'a, Done<()>> {
        Box::pin(async move {
            let CountEdges { hop, conditions } = &*self.operator;
            let followed = run.followed(&mut self.followed, hop, conditions)?;
            if followed.left.is_empty() {
                let degrees = run.degrees(&batch, &followed).await?;
                for (row, degree) in batch.rows.iter().zip(degrees) {
                    self.counts.add(row.frame, &Value::Null, row.bulk.saturating_mul(degree), run)?;
                }
                return Ok(());
            }
            let Some(mut expansion) = run.hop(batch, followed).await? else { return Ok(()) };
            let growth = run.growth.clone();
            loop {
                let mark = growth.begin();
                let found = expansion.next(run).await?;
                for row in found.iter().flat_map(|batch| &batch.rows) {
                    self.counts.add(row.frame, &Value::Null, row.bulk, run)?;
                }
                growth.end(&mark)?;
                if found.is_none() {
                    return Ok(());
                }
            }
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
    async fn degrees(&mut self, batch: &Batch, followed: &Followed) -> Done<Vec<u64>> {
        let places: Vec<u32> = (0..batch.len() as u32).collect();
        let on_vertices = as_vertices(batch.take(&places, &self.growth)?, "a hop")?;
        let Items::Vertices(vertices) = &on_vertices.items else { return Ok(vec![0; batch.len()]) };
        let Some(hop) = &followed.along else { return Ok(vec![0; batch.len()]) };
        let frontier = Frontier::held(vertices, self.branch.context()).await?;
        let found = self.snapshot.adjacency().degrees(&frontier, hop, &mut self.branch).await?;
        let of: HashMap<VertexId, u64, RandomState> = found.iter().map(|it| (it.vertex, it.edges)).collect();
        Ok(vertices.iter().map(|vertex| of.get(vertex).copied().unwrap_or(0)).collect())
    }
}
