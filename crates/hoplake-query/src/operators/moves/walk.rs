//! Along edges, hop after hop, to each vertex once.

use hoplake_engine::traversal::{self, Traversal, VisitPolicy};
use hoplake_format::VertexId;

use super::hop::{Hop, as_vertices};
use crate::{
    operators::{hop_along, prelude::*},
    plan::Reaches,
    run::{ROWS_MAX, Row, paths::NO_PATH},
    tokens::Direction,
};

/// Hops whose vertices are each given once: how often one is reached does not matter.
#[derive(Debug, Clone, PartialEq)]
pub struct Walk {
    /// The hops.
    pub hops: Vec<(Direction, Vec<Name>)>,
}

impl Operator for Walk {
    fn parameters(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.hops.iter().try_for_each(|(direction, labels)| Hop::write(f, *direction, labels))
    }

    fn reach(&self, reach: &mut Reach<'_>, input: Elements) -> Elements {
        let follow = |at, (direction, labels): &(_, Vec<_>)| reach.hop(&at, *direction, labels, Reaches::Vertices);
        self.hops.iter().fold(input, follow)
    }

    fn start(self: Arc<Self>) -> Running {
        Running::new(Walking(self))
    }
}

#[derive(Debug)]
struct Walking(Arc<Walk>);

impl Stage for Walking {
    fn input<'a>(&'a mut self, run: &'a mut Run, batch: Batch, out: &'a mut Vec<Output>) -> BoxFuture<'a, Done<()>> {
        Box::pin(async move {
            out.extend(run.walk(batch, &self.0.hops).await?.into_iter().map(Output::Next));
            Ok(())
        })
    }
}

impl Run {
    /// The vertices that hops lead to from those of a batch, each once.
    pub(crate) async fn walk(&mut self, batch: Batch, hops: &[(Direction, Vec<Name>)]) -> Done<Vec<Batch>> {
        let batch = as_vertices(batch, "a hop")?;
        let Items::Vertices(vertices) = &batch.items else { return Ok(Vec::new()) };
        let hops: Option<Vec<traversal::Hop>> =
            hops.iter().map(|(direction, labels)| hop_along(&self.snapshot, *direction, labels)).collect();
        let Some(hops) = hops else { return Ok(Vec::new()) };
        let frame = batch.rows.first().map_or(0, |row| row.frame);
        let traversal = Traversal {
            starts: vertices.clone(),
            hops,
            visit: VisitPolicy::PerDepth,
            parallelism: std::thread::available_parallelism().map_or(1, usize::from),
            ..Traversal::default()
        };
        let reached = self.snapshot.traverse(&traversal, &mut self.branch).await?;
        let Some(last) = reached.depths.last() else { return Ok(Vec::new()) };
        let mut batches = Vec::new();
        let mut vertices = last.vertices();
        loop {
            let part: Vec<VertexId> = vertices.by_ref().take(ROWS_MAX).collect();
            if part.is_empty() {
                return Ok(batches);
            }
            let rows = vec![Row { bulk: 1, frame, path: NO_PATH }; part.len()];
            let mut batch = Batch { rows, items: Items::Vertices(part), ..Batch::default() };
            self.held(&mut batch)?;
            batches.push(batch);
        }
    }
}
