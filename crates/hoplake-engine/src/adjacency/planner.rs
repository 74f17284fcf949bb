//! Makes plans: which blocks hold the lists of which sources, answered by indexes and filters.

use std::{cmp::Reverse, collections::BTreeSet, ops::Range};

use hoplake_format::segment::{IndexBlock, SectionKind};
use hoplake_storage::{BlockRequest, Branch, Pace, QueryContext};

use super::{
    layer::Layer,
    plan::{ListTask, Merge, Plan},
};
use crate::{
    EngineError, Frontier, Snapshot,
    hop::{EdgesOf, Hop},
    index::{IndexLocation, Run, SectionLocation},
    memory::{HeldVec, bytes_of},
    pieces::position_of,
};

/// Sources that are merged together, at most: what has arrived of them waits in memory for the rest.
const MERGED_SOURCES_MAX: usize = 1024;
/// Sources that are sought in filters between two rests: some 50 ns each and filter.
const PLANNED: usize = 4096;

/// Whose sources tasks count.
#[derive(Debug, Clone, Copy)]
enum SourcesOf<'a> {
    /// Those of the frontier.
    Frontier(&'a [u64]),
    /// Those of a merge of the plan.
    Merge(usize),
}

/// Some sources, or all lists of one, in the blocks of an index block.
struct Asked<'a> {
    index: IndexLocation,
    of: EdgesOf,
    until: u64,
    removed: bool,
    sources_of: SourcesOf<'a>,
    sources: Range<usize>,
    /// Whether the list of the one source goes on in the next index block: then only blocks that begin with it have it.
    goes_on: bool,
}

impl Snapshot {
    /// Which blocks a hop from `frontier` reads. One wave for roots of segments that are not in memory, and one for index
    /// blocks.
    pub(crate) async fn plan_hop(
        &self,
        frontier: &Frontier,
        hop: &Hop,
        branch: &mut Branch,
    ) -> Result<Plan, EngineError> {
        let mut wanted = Vec::new();
        for (near, ordinals) in frontier.by_label() {
            wanted.extend(hop.edges_from(self.schema(), near).map(|of| (of, ordinals)));
        }
        let absent = self.absent_lists(wanted.iter().map(|(of, ordinals)| (*of, *ordinals)), 0);
        self.read_absent(absent, branch).await?;
        let mut planner = Planner::new(self, branch.context());
        for (of, ordinals) in wanted {
            planner.plan_edges(of, ordinals).await?;
        }
        planner.finish(branch).await
    }

    /// The runs that mention pairs of an edge type, and whether those they mention are removed.
    fn list_runs(&self, of: EdgesOf) -> impl Iterator<Item = (&Run, bool)> {
        let runs = |kind, removed| self.runs(kind).iter().map(move |run| (run, removed));
        let there = runs(SectionKind::Adjacency(of.edge_type, of.direction), false);
        there.chain(runs(SectionKind::Removed(of.edge_type, of.direction), true))
    }

    /// The segments with lists of some sources, in runs with changes of later versions than `newer_than`, whose roots are not in
    /// memory.
    fn absent_lists<'a>(
        &self,
        wanted: impl IntoIterator<Item = (EdgesOf, &'a [u64])>,
        newer_than: u64,
    ) -> BTreeSet<usize> {
        self.absent(wanted.into_iter().flat_map(|(of, sources)| {
            let runs = self.list_runs(of).filter(move |(run, _)| run.versions.until > newer_than);
            runs.flat_map(move |(run, _)| locations_of_sources(run, sources))
        }))
    }

    /// Which blocks may mention pairs with these sources, in runs that have changes of later versions than
    /// `newer_than`: nothing is merged.
    pub(super) async fn plan_entries(
        &self,
        of: EdgesOf,
        sources: &[u64],
        newer_than: u64,
        branch: &mut Branch,
    ) -> Result<Plan, EngineError> {
        let runs = || self.list_runs(of).filter(|(run, _)| run.versions.until > newer_than);
        self.read_absent(self.absent_lists([(of, sources)], newer_than), branch).await?;
        let mut planner = Planner::new(self, branch.context());
        for (run, removed) in runs() {
            let layer = Layer::new(self, run, removed);
            planner.plan_layer(&layer, of, SourcesOf::Frontier(sources), sources, 0).await?;
        }
        planner.finish(branch).await
    }

    /// The requests for the blocks of tasks, in their order.
    pub(crate) fn requests<'a>(
        &'a self,
        tasks: impl IntoIterator<Item = &'a ListTask>,
    ) -> Result<Vec<BlockRequest<'a>>, EngineError> {
        tasks.into_iter().map(|task| Ok(self.section(task.location)?.request(task.block.clone()))).collect()
    }
}

/// The pieces of a run that may have lists of some sources, which ascend.
fn locations_of_sources<'a>(run: &'a Run, sources: &'a [u64]) -> impl Iterator<Item = SectionLocation> + 'a {
    let mut at = 0;
    let pieces = std::iter::from_fn(move || {
        let pieces = run.pieces_of_source(*sources.get(at)?);
        let next = run.first_source(pieces.end).unwrap_or(u64::MAX);
        at = position_of(sources, at + 1, next);
        Some(pieces)
    });
    pieces.flatten().filter_map(|piece| run.location(piece))
}

/// Makes a plan.
struct Planner<'a> {
    snapshot: &'a Snapshot,
    context: QueryContext,
    plan: Plan,
    pace: Pace,
    /// What index blocks must answer that are not in memory with their root.
    asked: Option<HeldVec<Asked<'a>>>,
}

impl<'a> Planner<'a> {
    fn new(snapshot: &'a Snapshot, context: &QueryContext) -> Self {
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
            self.snapshot.each_index_block(&locations, branch, take).await?;
            // As they lie in the store, whichever index block came first.
            let order = |task: &ListTask| (task.location, task.block.start);
            self.plan.tasks.sort_unstable_by_key(order);
            self.plan.merges.iter_mut().for_each(|merge| merge.tasks.sort_unstable_by_key(order));
        }
        self.plan.count(&self.context)?;
        Ok(self.plan)
    }

    async fn plan_edges(&mut self, of: EdgesOf, ordinals: &'a [u64]) -> Result<(), EngineError> {
        let layers = self.snapshot.list_runs(of).map(|(run, removed)| Layer::new(self.snapshot, run, removed));
        let mut layers: Vec<_> = layers.collect();
        layers.sort_by_key(|layer| Reverse(layer.run.versions.until));
        match &layers[..] {
            [] => {}
            [only] if only.removed => {}
            [only] => self.plan_layer(only, of, SourcesOf::Frontier(ordinals), ordinals, 0).await?,
            _ => self.plan_layers(&layers, of, ordinals).await?,
        }
        Ok(())
    }

    /// Sources of which at most the oldest layer may have a list are planned as if it were the only one.
    async fn plan_layers(&mut self, layers: &[Layer<'a>], of: EdgesOf, ordinals: &'a [u64]) -> Result<(), EngineError> {
        let Some((oldest, newer)) = layers.split_last() else { return Ok(()) };
        let in_newer = |source: &u64| newer.iter().any(|layer| layer.may_have_source(*source));
        let mut merged = Vec::new();
        let mut at = 0;
        for step in ordinals.chunks(PLANNED) {
            for run in step.chunk_by(|a, b| in_newer(a) == in_newer(b)) {
                if in_newer(&run[0]) {
                    merged.extend_from_slice(run);
                } else if !oldest.removed {
                    self.plan_layer(oldest, of, SourcesOf::Frontier(ordinals), run, at).await?;
                }
                at += run.len();
            }
            self.pace.rest((step.len() * newer.len()) as u64 * 8).await?;
        }
        for sources in merged.chunks(MERGED_SOURCES_MAX) {
            let sources_of = SourcesOf::Merge(self.plan.merges.len());
            self.plan.merges.push(Merge { sources: sources.to_vec(), tasks: Vec::new() });
            for layer in layers {
                // Runs of sources that the layer may have.
                let mut at = 0;
                for run in sources.chunk_by(|a, b| layer.may_have_source(*a) == layer.may_have_source(*b)) {
                    if layer.may_have_source(run[0]) {
                        self.plan_layer(layer, of, sources_of, run, at).await?;
                    }
                    at += run.len();
                }
                self.pace.rest(sources.len() as u64 * 8).await?;
            }
        }
        Ok(())
    }

    /// Which blocks of a layer hold the lists of `sources`, which ascend and begin at position `offset` of those that
    /// tasks count from.
    async fn plan_layer(
        &mut self,
        layer: &Layer<'a>,
        of: EdgesOf,
        sources_of: SourcesOf<'a>,
        sources: &[u64],
        offset: usize,
    ) -> Result<(), EngineError> {
        let mut at = 0;
        while at < sources.len() {
            let mut indexes = layer.index_of_source(sources[at]).peekable();
            if indexes.peek().is_none() {
                // Before all that the run has.
                at = position_of(sources, at + 1, layer.begins());
                continue;
            }
            let mut end = at + 1;
            while let Some((index, section)) = indexes.next() {
                let goes_on = indexes.peek().is_some();
                if !goes_on {
                    end = position_of(sources, at + 1, layer.begins_after(index, &section));
                }
                let asked = Asked {
                    index: index.location,
                    of,
                    until: layer.run.versions.until,
                    removed: layer.removed,
                    sources_of,
                    sources: at + offset..end + offset,
                    goes_on,
                };
                match section.index_block(index.location.number) {
                    Some(block) => asked.answer_for(block, &sources[at..end], &mut self.plan),
                    None => match &mut self.asked {
                        Some(all) => all.push(asked)?,
                        None => self.asked.insert(HeldVec::new(&self.context)?).push(asked)?,
                    },
                }
                self.pace.rest(16 + (end - at) as u64).await?;
            }
            at = end;
        }
        Ok(())
    }
}

impl Asked<'_> {
    fn answer(&self, block: &IndexBlock, plan: &mut Plan) {
        match self.sources_of {
            SourcesOf::Frontier(ordinals) => self.answer_for(block, &ordinals[self.sources.clone()], plan),
            SourcesOf::Merge(merge) => {
                let sources = plan.merges[merge].sources[self.sources.clone()].to_vec();
                self.answer_for(block, &sources, plan);
            }
        }
    }

    /// Adds a task for each block that may hold lists of `sources`.
    fn answer_for(&self, index: &IndexBlock, sources: &[u64], plan: &mut Plan) {
        let Self { index: location, of, until, removed, .. } = *self;
        let tasks = match self.sources_of {
            SourcesOf::Frontier(_) => &mut plan.tasks,
            SourcesOf::Merge(merge) => &mut plan.merges[merge].tasks,
        };
        let mut task = |block: usize, of_block: Range<usize>| {
            let sources = of_block.start + self.sources.start..of_block.end + self.sources.start;
            let block = index.range(block);
            tasks.push(ListTask { of, location: location.section, until, removed, block, sources });
        };
        if self.goes_on {
            index.blocks_beginning_with(sources[0]).for_each(|block| task(block, 0..1));
            return;
        }
        let mut at = 0;
        while at < sources.len() {
            let blocks = index.blocks_of_source(sources[at]);
            let Some(last) = blocks.end.checked_sub(1) else { return };
            // All blocks but the last hold nothing but this one hub.
            (blocks.start..last).for_each(|block| task(block, at..at + 1));
            let next = if last + 1 < index.len() { index.number(last + 1) } else { u64::MAX };
            let end = position_of(sources, at + 1, next);
            task(last, at..end);
            at = end;
        }
    }
}
