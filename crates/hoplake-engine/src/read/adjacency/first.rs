//! The first edges of a hop, without reading the rest of a hub.
//!
//! The edges of a hop have an order: by the vertex left, type, direction, and the vertex reached. The blocks that hold them are
//! known from the index, and each begins at a known point of that order. So blocks are read in this order, as many as
//! probably suffice, and then twice as many, until enough edges lie before all that was not read. A hop whose blocks are few
//! remains one wave; of a hub with a thousand blocks one request reads the first.

use futures::future::BoxFuture;
use hoplake_format::VertexId;
use hoplake_storage::Branch;

use super::{Adjacency, End, ListTask, Plan, check_hop, conditions::EdgeConditions, sinks::EdgeSink};
use crate::{
    Edges, EngineError, Frontier, Held,
    memory::bytes_of,
    read::{
        edges::{Begin, EdgesBuilder},
        hop::Hop,
    },
};

/// The bytes of an edge in a block: 1.44 are usual, and 3 where each of many sources has few. Where it takes more there is one
/// more wave.
const EDGE_BYTES: u64 = 2;

impl<'a> Adjacency<'a> {
    /// The first of the edges that [`Self::neighbours`] returns, up to a limit. One wave for what a store transfers in a quarter of
    /// the time to its first byte (360 KiB on S3 Standard), and one more for each doubling of that until there are enough; two
    /// instead of one if the hop has a condition. A source with changes is read completely.
    ///
    /// # Errors
    /// As [`Self::neighbours`].
    pub fn first_neighbours(
        self,
        frontier: &'a Frontier,
        hop: &'a Hop,
        limit: usize,
        branch: &'a mut Branch,
    ) -> BoxFuture<'a, Result<Held<Edges>, EngineError>> {
        // A quarter more of the time to a first byte: to read less would gain little and may need another wave.
        let quick = self.snapshot.reader().store().profile().bytes_per_first_byte() / 4;
        let bytes = quick.max(EDGE_BYTES.saturating_mul(limit as u64));
        Box::pin(self.first_from(bytes, frontier, hop, limit, branch))
    }

    /// [`Self::first_neighbours`] with up to `bytes_max` in the first wave.
    pub(super) async fn first_from(
        self,
        mut bytes_max: u64,
        frontier: &Frontier,
        hop: &Hop,
        limit: usize,
        branch: &mut Branch,
    ) -> Result<Held<Edges>, EngineError> {
        check_hop(self.snapshot.schema(), hop)?;
        let conditions = EdgeConditions::new(self.snapshot, End::Far);
        let mut line = branch.clone();
        let mut load = Some(async move {
            conditions.load_metadata(frontier, hop, &mut line).await?;
            Ok(line)
        });
        let plan = self.plan_hop(frontier, hop, branch).await?;
        let context = branch.context().clone();
        let mut pace = context.pace();
        let _parts = context.hold(bytes_of::<(Begin, Plan, ListTask)>(plan.all_tasks().count()))?;
        let mut parts = in_order(plan, frontier).into_iter().peekable();
        let mut first = EdgesBuilder::new(&context)?;
        let mut last = None;
        let mut sink = EdgeSink::new(&context)?;
        while first.len() < limit && parts.peek().is_some() {
            let mut bytes = 0;
            let mut next = Plan { tasks: Vec::new(), merges: Vec::new(), memory: None };
            while let Some((_, part)) = parts.next_if(|_| bytes < bytes_max) {
                bytes += part.all_tasks().map(|task| task.block.end - task.block.start).sum::<u64>();
                next.join(part);
            }
            let reading = self.run_part(frontier, &next, &mut sink, branch);
            match load.take() {
                None => reading.await?,
                Some(load) => {
                    let ((), line) = futures::future::try_join(reading, load).await?;
                    branch.join([&line]);
                }
            }
            let mut read = std::mem::replace(&mut sink, EdgeSink::new(&context)?).edges;
            read.sort().await?;
            // What was not read begins at the next part. Of a list that goes on there, what was read comes before.
            let known = parts.peek().map_or(read.len(), |(begin, _)| read.len_up_to(*begin));
            let read = read.finish();
            let mut found = EdgesBuilder::new(&context)?;
            found.append(read.slice(0..known), &mut pace).await?;
            // Blocks that were not read may hold edges that come before these, so these wait for the next round.
            sink.edges.append(read.slice(known..read.len()), &mut pace).await?;
            drop(read);
            self.check_ends(found.targets(), &context).await?;
            found.number_parallel(&mut last, &mut pace).await?;
            let found = conditions.keep_matching(found.finish(), hop.condition.as_ref(), branch).await?;
            first.append(found.slice(0..found.len().min(limit - first.len())), &mut pace).await?;
            bytes_max = bytes_max.saturating_mul(2);
        }
        Ok(first.finish())
    }
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
        Some(merge) => merge.sources.first().copied(),
        None => frontier.ordinals(of.near).view().cursor(part.tasks.first()?.sources.clone()).next(),
    };
    Some((VertexId::new(of.near, source?)?, of.edge_type, of.direction))
}
