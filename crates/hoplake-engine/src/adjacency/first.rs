//! The first edges of a hop, without reading the rest of a hub.
//!
//! The edges of a hop have an order: by the vertex left, type, direction, and the vertex reached. The blocks that hold them are
//! known from the index, and each begins at a known point of that order. So blocks are read in this order, as many as
//! probably suffice, and then twice as many, until enough edges lie before all that was not read. A hop whose blocks are few
//! remains one wave; of a hub with a thousand blocks one request reads the first.

use futures::future::BoxFuture;
use hoplake_format::{Direction, EdgeTypeId, VertexId};
use hoplake_storage::Branch;

use super::{ListTask, Neighbour, Plan, order, sinks::EdgeSink};
use crate::{EngineError, Frontier, Held, Snapshot, hop::Hop, memory::bytes_of, pieces::sort_by_key};

/// The bytes of an edge in a block: 1.44 are usual, and 3 where each of many sources has few. Where it takes more there is one
/// more wave.
const EDGE_BYTES: u64 = 2;

/// Where a part of a plan begins in the order of edges.
type Begin = (VertexId, EdgeTypeId, Direction);

impl Snapshot {
    /// The first of the edges that [`Self::neighbours`] returns, up to a limit. One wave for what a store transfers in a quarter of
    /// the time to its first byte (360 KiB on S3 Standard), and one more for each doubling of that until there are enough. A
    /// source with changes is read completely, and so is a hop with conditions.
    ///
    /// # Errors
    /// As [`Self::neighbours`].
    pub fn first_neighbours<'a>(
        &'a self,
        frontier: &'a Frontier,
        hop: &'a Hop,
        limit: usize,
        branch: &'a mut Branch,
    ) -> BoxFuture<'a, Result<Held<Vec<Neighbour>>, EngineError>> {
        Box::pin(async move {
            if !hop.predicates.is_empty() {
                let mut edges = self.neighbours(frontier, hop, branch).await?;
                edges.truncate(limit);
                return Ok(edges);
            }
            self.check_hop(hop)?;
            let plan = self.plan_hop(frontier, hop, branch).await?;
            let context = branch.context().clone();
            let mut sink = EdgeSink::new(&context)?;
            let _parts = context.hold(bytes_of::<(Begin, Plan, ListTask)>(plan.all_tasks().count()))?;
            let mut parts = in_order(plan, frontier).into_iter().peekable();
            // A quarter more of the time to a first byte: to read less would gain little and may need another wave.
            let quick = self.reader().store().profile().bytes_per_first_byte() / 4;
            let mut bytes_max = quick.max(EDGE_BYTES.saturating_mul(limit as u64));
            let mut known = 0;
            while known < limit && parts.peek().is_some() {
                let mut bytes = 0;
                let mut next = Plan { tasks: Vec::new(), merges: Vec::new(), memory: None };
                while let Some((_, part)) = parts.next_if(|_| bytes < bytes_max) {
                    bytes += part.all_tasks().map(|task| task.block.end - task.block.start).sum::<u64>();
                    next.join(part);
                }
                self.run_part(frontier, &next, &mut sink, branch).await?;
                sort_by_key(sink.edges.items(), order, &context).await?;
                // What was not read begins here. Of a list that goes on there, what was read comes before.
                known = match parts.peek() {
                    Some((begin, _)) => sink.edges.partition_point(|edge| begin_of(edge) <= *begin),
                    None => sink.edges.len(),
                };
                bytes_max = bytes_max.saturating_mul(2);
            }
            sink.edges.items().truncate(known.min(limit));
            self.number_parallel(sink.edges.items(), &context).await?;
            Ok(sink.edges.finish())
        })
    }
}

fn begin_of(edge: &Neighbour) -> Begin {
    (edge.from, edge.edge_type, edge.direction)
}

/// The parts of a plan in the order of the edges that they begin with, at the earliest.
fn in_order(plan: Plan, frontier: &Frontier) -> Vec<(Begin, Plan)> {
    let mut parts: Vec<_> = plan.pieces().filter_map(|part| Some((begin_of_part(&part, frontier)?, part))).collect();
    // Blocks of one list follow each other as they are stored.
    parts.sort_by_key(|(begin, part)| (*begin, part.all_tasks().next().map(|task| (task.location, task.block.start))));
    parts
}

/// `None` if it reads nothing.
fn begin_of_part(part: &Plan, frontier: &Frontier) -> Option<Begin> {
    let of = part.all_tasks().next()?.of;
    let source = match part.merges.first() {
        Some(merge) => merge.sources.first(),
        None => frontier.ordinals(of.near).get(part.tasks.first()?.sources.start),
    };
    Some((VertexId::new(of.near, *source?)?, of.edge_type, of.direction))
}
