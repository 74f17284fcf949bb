//! Reads the blocks of a plan and hands their lists to sinks.

use bytes::Bytes;
use hoplake_format::{
    FormatError,
    adjacency::{Block, Lists},
};
use hoplake_storage::Branch;
use std::{ops::Range, sync::Arc};
use tokio::task::JoinSet;

use super::{
    Adjacency,
    merge::Merger,
    plan::{ListTask, Plan},
    sink::Sink,
};
use crate::{
    EngineError, Frontier,
    read::{frontier::SinkError, ordinals::View},
};

impl Adjacency<'_> {
    /// Reads the blocks of a plan in one wave and gives the lists to `sinks`, one for each part of the
    /// work; more than one part decodes on more than one thread.
    pub(crate) async fn run_plan<S: Sink + 'static>(
        self,
        frontier: &Arc<Frontier>,
        plan: Plan,
        mut sinks: Vec<S>,
        branch: &mut Branch,
    ) -> Result<Vec<S>, EngineError> {
        // Handing work over costs some microseconds; a few blocks are decoded in that time.
        let parts = sinks.len().min(plan.all_tasks().count() / 16).max(1);
        if parts == 1 {
            self.run_part(frontier, &plan, &mut sinks[0], branch).await?;
            return Ok(sinks);
        }
        // A `JoinSet` ends its tasks when the query is dropped.
        let mut running = JoinSet::new();
        for (plan, mut sink) in plan.cut(parts).into_iter().zip(sinks) {
            let snapshot = self.snapshot.clone();
            let frontier = frontier.clone();
            let mut line = branch.clone();
            running.spawn(async move {
                snapshot.adjacency().run_part(&frontier, &plan, &mut sink, &mut line).await?;
                Ok::<_, EngineError>((sink, line))
            });
        }
        let mut results = Vec::new();
        while let Some(result) = running.join_next().await {
            results.push(result.map_err(|error| EngineError::Internal(format!("a task stopped: {error}")))??);
        }
        branch.join(results.iter().map(|(_, line)| line));
        Ok(results.into_iter().map(|(sink, _)| sink).collect())
    }

    pub(crate) async fn run_part<S: Sink>(
        self,
        frontier: &Frontier,
        plan: &Plan,
        sink: &mut S,
        branch: &mut Branch,
    ) -> Result<(), EngineError> {
        let context = branch.context().clone();
        let tasks: Vec<&ListTask> = plan.all_tasks().collect();
        let requests = self.requests(tasks.iter().copied())?;
        let mut mergers: Vec<_> = plan.merges.iter().map(|_| Merger::new(&context)).collect();
        // Tasks of merges follow the single ones; where each merge's end.
        let mut end = plan.tasks.len();
        let ends: Vec<usize> = plan
            .merges
            .iter()
            .map(|merge| {
                end += merge.tasks.len();
                end
            })
            .collect();
        // Reused from block to block, so that a part allocates for its largest block and not for each.
        let mut lists = Lists::default();
        let mut sources = Vec::new();
        let take = |index: usize, payload: Bytes| {
            let task = tasks[index];
            let merge = (index >= plan.tasks.len()).then(|| ends.partition_point(|end| *end <= index));
            let wanted = match merge {
                Some(merge) => View::List(&plan.merges[merge].sources),
                None => frontier.ordinals(task.of.near).view(),
            };
            let read = read_lists(&payload, wanted, &task.sources, &mut sources, &mut lists).map_err(SinkError::from);
            let taken = read.and_then(|()| match merge {
                Some(merge) => Ok(mergers[merge].take(task, &lists)?),
                None => sink.take(task.of, task.until, &lists),
            });
            taken.map_err(|error| {
                let location = self.snapshot.reader().store().location(&requests[index].object.name);
                error.at(format!("{location}, {:?}, block at byte {}", task.of, task.block.start))
            })
        };
        let before = branch.wave();
        self.snapshot.reader().read_each(&requests, branch, take).await?;
        // The wave advances only if the store was asked: blocks from a cache start no background read.
        if branch.wave() > before {
            self.snapshot.sections().read_in_full(tasks.iter().map(|task| task.location), &context);
        }
        let mut pace = context.pace();
        for merger in mergers {
            let units = merger.len() as u64 * 16;
            merger.finish(sink).map_err(|error| error.at(self.snapshot.reader().store().url()))?;
            pace.rest(units).await?;
        }
        Ok(())
    }
}

/// Sources that are sought in a block at once.
const SOUGHT: usize = 4096;

/// The lists of a block whose sources are wanted, and in a range. `sources` is room for some of them.
fn read_lists(
    payload: &[u8],
    wanted: View<'_>,
    range: &Range<u64>,
    sources: &mut Vec<u64>,
    lists: &mut Lists,
) -> Result<(), FormatError> {
    lists.clear();
    let block = Block::parse(payload)?;
    let in_block = range.start.max(block.first_source())..range.end.min(block.last_source().saturating_add(1));
    if in_block.is_empty() {
        return Ok(());
    }
    // Every source of the block is wanted: one pass over it is cheaper than many jumps into it.
    // `Block::parse` rejects sources beyond 48 bits, so the sum cannot overflow.
    if in_block == (block.first_source()..block.last_source() + 1) && wanted.has_all(in_block.clone()) {
        return block.decode_all(lists);
    }
    let mut cursor = wanted.cursor(in_block);
    loop {
        sources.clear();
        if !cursor.take_into(SOUGHT, sources) {
            return Ok(());
        }
        block.lists(sources, lists)?;
    }
}
