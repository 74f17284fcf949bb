//! Makes plans: which blocks hold the lists of which sources, answered by indexes and filters.

use std::{cmp::Reverse, collections::BTreeSet, ops::Range, sync::Arc};

use hoplake_format::segment::{IndexBlock, SectionKind};
use hoplake_storage::{BlockRequest, Branch, Pace, QueryContext};

use super::{
    Adjacency,
    layer::Layer,
    plan::{ListTask, Merge, Plan},
};
use crate::{
    EngineError, Frontier, Snapshot,
    memory::{HeldVec, bytes_of},
    read::{
        hop::{EdgesOf, Hop},
        ordinals::View,
    },
    snapshot::sections::{IndexLocation, Run, SectionLocation},
};

/// Sources that are merged together, at most: what has arrived of them waits in memory for the rest.
const MERGED_SOURCES_MAX: usize = 1024;
/// Sources that are sought in filters between two rests: some 50 ns each and filter.
const PLANNED: usize = 4096;

/// Among which sources are those of a task.
#[derive(Debug, Clone, Copy)]
enum SourcesOf<'a> {
    /// Those of the frontier.
    Frontier(View<'a>),
    /// Those of a merge of the plan.
    Merge(usize),
}

/// A look-up in an index block: the blocks with the lists of some sources, or with all lists of one.
struct IndexLookup<'a> {
    index: IndexLocation,
    of: EdgesOf,
    until: u64,
    removed: bool,
    sources_of: SourcesOf<'a>,
    sources: Range<u64>,
    /// Whether the list of the one source goes on in the next index block: then only blocks that begin with it have it.
    goes_on: bool,
}

impl<'a> Adjacency<'a> {
    /// Which blocks a hop from `frontier` reads. One wave for roots of segments that are not in memory, and one for index
    /// blocks.
    pub(crate) async fn plan_hop(
        self,
        frontier: &Frontier,
        hop: &Hop,
        branch: &mut Branch,
    ) -> Result<Plan, EngineError> {
        let mut wanted = Vec::new();
        for (near, ordinals) in frontier.by_label() {
            wanted.extend(hop.edges_from(self.snapshot.schema(), near).map(|of| (of, ordinals.view())));
        }
        let absent = self.absent_lists(wanted.iter().map(|(of, ordinals)| (*of, *ordinals)), 0);
        self.snapshot.sections().read_absent(absent, branch).await?;
        let mut planner = Planner::new(self.snapshot, branch.context());
        for (of, ordinals) in wanted {
            planner.plan_edges(of, ordinals).await?;
        }
        planner.finish(branch).await
    }

    /// The runs with entries for pairs of an edge type, and whether these are tombstones.
    fn list_runs(self, of: EdgesOf) -> impl Iterator<Item = (&'a Run, bool)> {
        let sections = self.snapshot.sections();
        let runs = move |kind, removed| sections.runs(kind).iter().map(move |run| (run, removed));
        let there = runs(SectionKind::Adjacency(of.edge_type, of.direction), false);
        there.chain(runs(SectionKind::Removed(of.edge_type, of.direction), true))
    }

    /// The segments with lists of some sources, in runs with changes of later versions than `newer_than`, whose roots are not in
    /// memory.
    fn absent_lists(self, wanted: impl IntoIterator<Item = (EdgesOf, View<'a>)>, newer_than: u64) -> BTreeSet<usize> {
        self.snapshot.sections().absent(wanted.into_iter().flat_map(|(of, sources)| {
            let runs = self.list_runs(of).filter(move |(run, _)| run.versions.until > newer_than);
            runs.flat_map(move |(run, _)| locations_of_sources(run, sources))
        }))
    }

    /// Which blocks may have entries for pairs with these sources, in runs that have changes of later versions than
    /// `newer_than`: nothing is merged.
    pub(super) async fn plan_entries(
        self,
        of: EdgesOf,
        sources: View<'_>,
        newer_than: u64,
        branch: &mut Branch,
    ) -> Result<Plan, EngineError> {
        let runs = || self.list_runs(of).filter(|(run, _)| run.versions.until > newer_than);
        self.snapshot.sections().read_absent(self.absent_lists([(of, sources)], newer_than), branch).await?;
        let mut planner = Planner::new(self.snapshot, branch.context());
        for (run, removed) in runs() {
            let layer = Layer::new(self.snapshot, run, removed);
            planner.plan_layer(&layer, of, SourcesOf::Frontier(sources), 0..u64::MAX).await?;
        }
        planner.finish(branch).await
    }

    /// The requests for the blocks of tasks, in their order.
    pub(crate) fn requests(
        self,
        tasks: impl IntoIterator<Item = &'a ListTask>,
    ) -> Result<Vec<BlockRequest<'a>>, EngineError> {
        tasks
            .into_iter()
            .map(|task| Ok(self.snapshot.sections().section(task.location)?.request(task.block.clone())))
            .collect()
    }
}

/// The pieces of a run that may have lists of some sources.
fn locations_of_sources<'a>(run: &'a Run, sources: View<'a>) -> impl Iterator<Item = SectionLocation> + 'a {
    let mut sources = sources.cursor(0..u64::MAX);
    let pieces = std::iter::from_fn(move || {
        let pieces = run.pieces_of_source(sources.next()?);
        sources.seek(run.first_source(pieces.end).unwrap_or(u64::MAX));
        Some(pieces)
    });
    pieces.flatten().filter_map(|piece| run.location(piece))
}

/// Makes a plan.
struct Planner<'a> {
    snapshot: &'a Arc<Snapshot>,
    context: QueryContext,
    plan: Plan,
    pace: Pace,
    /// What index blocks must answer that are not in memory with their root.
    asked: Option<HeldVec<IndexLookup<'a>>>,
}

impl<'a> Planner<'a> {
    fn new(snapshot: &'a Arc<Snapshot>, context: &QueryContext) -> Self {
        let plan = Plan { tasks: Vec::new(), merges: Vec::new(), memory: None };
        Self { snapshot, context: context.clone(), plan, pace: context.pace(), asked: None }
    }

    /// Reads the index blocks that are missing, in one wave, and ends the plan.
    async fn finish(mut self, branch: &mut Branch) -> Result<Plan, EngineError> {
        if let Some(asked) = &self.asked {
            let _requests =
                self.context
                    .hold(bytes_of::<(IndexLocation, IndexLocation, Vec<usize>, BlockRequest<'_>)>(asked.len()))?;
            let plan = &mut self.plan;
            let locations: Vec<_> = asked.iter().map(|asked| asked.index).collect();
            let take = |number: usize, block: &IndexBlock| {
                asked[number].answer(block, plan);
                Ok(())
            };
            self.snapshot.sections().each_index_block(&locations, branch, take).await?;
            // As they lie in the store, whichever index block came first.
            let order = |task: &ListTask| (task.location, task.block.start);
            self.plan.tasks.sort_unstable_by_key(order);
            self.plan.merges.iter_mut().for_each(|merge| merge.tasks.sort_unstable_by_key(order));
        }
        self.plan.count(&self.context)?;
        Ok(self.plan)
    }

    async fn plan_edges(&mut self, of: EdgesOf, ordinals: View<'a>) -> Result<(), EngineError> {
        let layers =
            self.snapshot.adjacency().list_runs(of).map(|(run, removed)| Layer::new(self.snapshot, run, removed));
        let mut layers: Vec<_> = layers.collect();
        layers.sort_by_key(|layer| Reverse(layer.run.versions.until));
        match &layers[..] {
            [] => {}
            // Tombstones alone have no older list to hide.
            [only] if only.removed => {}
            [only] => self.plan_layer(only, of, SourcesOf::Frontier(ordinals), 0..u64::MAX).await?,
            _ => self.plan_layers(&layers, of, ordinals).await?,
        }
        Ok(())
    }

    /// Sources of which at most the oldest layer may have a list are planned as if it were the only one.
    async fn plan_layers(&mut self, layers: &[Layer<'a>], of: EdgesOf, ordinals: View<'a>) -> Result<(), EngineError> {
        let Some((oldest, newer)) = layers.split_last() else { return Ok(()) };
        // Filters have no false negatives: what no newer layer may have, only the oldest can.
        let in_newer = |source: &u64| newer.iter().any(|layer| layer.may_have_source(*source));
        let mut merged = HeldVec::new(&self.context)?;
        let mut cursor = ordinals.cursor(0..u64::MAX);
        let mut step = Vec::new();
        while cursor.take_into(PLANNED, &mut step) {
            for run in step.chunk_by(|a, b| in_newer(a) == in_newer(b)) {
                if in_newer(&run[0]) {
                    merged.reserve(run.len())?;
                    merged.items().extend_from_slice(run);
                } else if !oldest.removed {
                    // Sources of `run` follow each other in the frontier, so their range contains no other source of it.
                    self.plan_layer(oldest, of, SourcesOf::Frontier(ordinals), range_of(run)).await?;
                }
            }
            self.pace.rest((step.len() * newer.len()) as u64 * 8).await?;
            step.clear();
        }
        for sources in merged.chunks(MERGED_SOURCES_MAX) {
            let sources_of = SourcesOf::Merge(self.plan.merges.len());
            self.plan.merges.push(Merge { sources: sources.to_vec(), tasks: Vec::new() });
            // The same sources in every layer: the merge can only decide on a source when it has the lists of all layers.
            for layer in layers {
                // Runs of sources that the layer may have.
                for run in sources.chunk_by(|a, b| layer.may_have_source(*a) == layer.may_have_source(*b)) {
                    if layer.may_have_source(run[0]) {
                        self.plan_layer(layer, of, sources_of, range_of(run)).await?;
                    }
                }
                self.pace.rest(sources.len() as u64 * 8).await?;
            }
        }
        Ok(())
    }

    fn sources(&self, of: SourcesOf<'a>) -> View<'_> {
        match of {
            SourcesOf::Frontier(sources) => sources,
            SourcesOf::Merge(merge) => View::List(&self.plan.merges[merge].sources),
        }
    }

    /// Which blocks of a layer hold the lists of the sources in a range.
    async fn plan_layer(
        &mut self,
        layer: &Layer<'a>,
        of: EdgesOf,
        sources_of: SourcesOf<'a>,
        range: Range<u64>,
    ) -> Result<(), EngineError> {
        let mut next = range.start;
        while let Some(source) = self.sources(sources_of).cursor(next..range.end).next() {
            let mut indexes = layer.index_of_source(source).peekable();
            if indexes.peek().is_none() {
                // Before all that the run has.
                next = layer.begins().max(source + 1);
                continue;
            }
            next = source + 1;
            while let Some((index, section)) = indexes.next() {
                let goes_on = indexes.peek().is_some();
                if !goes_on {
                    // All sources up to the next index block are asked here together: a step for each index block, not for each source.
                    next = layer.begins_after(index, &section).clamp(next, range.end);
                }
                let asked = IndexLookup {
                    index: index.location,
                    of,
                    until: layer.run.versions.until,
                    removed: layer.removed,
                    sources_of,
                    sources: source..next,
                    goes_on,
                };
                let tasks = match (section.index_block(index.location.number), &mut self.asked) {
                    (Some(block), _) => asked.answer(block, &mut self.plan),
                    // The index block is not in memory: `finish` reads all of these in one wave.
                    (None, Some(all)) => all.push(asked).map(|()| 0)?,
                    (None, none) => none.insert(HeldVec::new(&self.context)?).push(asked).map(|()| 0)?,
                };
                self.pace.rest(16 + tasks as u64 * 8).await?;
            }
        }
        Ok(())
    }
}

/// From the first to the last of sources that follow each other.
fn range_of(sources: &[u64]) -> Range<u64> {
    match sources {
        [first, .., last] => *first..last + 1,
        [only] => *only..only + 1,
        [] => 0..0,
    }
}

impl IndexLookup<'_> {
    /// Adds a task for each block that may hold lists of its sources, and returns how many.
    fn answer(&self, index: &IndexBlock, plan: &mut Plan) -> usize {
        let Self { index: location, of, until, removed, .. } = *self;
        let (sources, tasks) = match self.sources_of {
            SourcesOf::Frontier(sources) => (sources, &mut plan.tasks),
            SourcesOf::Merge(merge) => {
                let Merge { sources, tasks } = &mut plan.merges[merge];
                (View::List(sources), tasks)
            }
        };
        let before = tasks.len();
        let mut task = |block: usize, sources: Range<u64>| {
            let block = index.range(block);
            tasks.push(ListTask { of, location: location.section, until, removed, block, sources });
        };
        let mut sources = sources.cursor(self.sources.clone());
        // A step for each block: the cursor then seeks the first source of the next block.
        while let Some(source) = sources.peek() {
            let only = source..source + 1;
            // A list that is split begins a block of its own, so no block that begins with another source has a part of it.
            if self.goes_on {
                index.blocks_beginning_with(source).for_each(|block| task(block, only.clone()));
                break;
            }
            let blocks = index.blocks_of_source(source);
            let Some(last) = blocks.end.checked_sub(1) else { break };
            // All blocks but the last hold nothing but this one hub.
            (blocks.start..last).for_each(|block| task(block, only.clone()));
            let next = if last + 1 < index.len() { index.number(last + 1) } else { u64::MAX };
            let end = next.clamp(only.end, self.sources.end);
            task(last, source..end);
            sources.seek(end);
        }
        tasks.len() - before
    }
}
