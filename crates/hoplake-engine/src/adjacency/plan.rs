//! A hop becomes a plan: which blocks hold the lists of which sources, answered by indexes and filters.
//!
//! Where an edge type has one part, a block's lists are whole. Where it has several, each source is looked for in all
//! of them: one that only one part may have is as simple as that, and the others are kept together to be
//! merged ([`super::merge`]).

use std::{cmp::Reverse, ops::Range, sync::Arc};

use hoplake_format::{
    Direction, EdgeTypeId, LabelId,
    segment::{BlockFirsts, SectionIndex, SectionKind},
};
use hoplake_storage::{BlockRequest, Branch, MemoryHold, Pace, QueryContext, StorageError};

use crate::{
    EngineError, Frontier, Snapshot,
    memory::bytes_of,
    pieces::position_of,
    snapshot::{Section, SectionPlace},
    traversal::Hop,
};

/// Sources that are merged together, at most: what has arrived of them waits in memory for the rest.
const MERGED_SOURCES_MAX: usize = 1024;
/// Sources that are sought in filters between two rests: some 50 ns each and filter.
const PLANNED: usize = 4096;

/// The edges of a type in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EdgesOf {
    pub(crate) edge_type: EdgeTypeId,
    pub(crate) direction: Direction,
    /// The label that a hop leaves.
    pub(crate) near: LabelId,
    /// The label that it reaches.
    pub(crate) far: LabelId,
}

/// The lists of some sources in one block.
#[derive(Debug, Clone)]
pub(crate) struct ListTask {
    pub(crate) of: EdgesOf,
    pub(crate) place: SectionPlace,
    /// Whether the lists name pairs that have no edge any more.
    pub(crate) removed: bool,
    pub(crate) block: usize,
    /// Which of the frontier's ordinals of the near label, or of the sources of its [`Merge`].
    pub(crate) sources: Range<usize>,
}

/// Sources that several parts of an edge type may mention, and all blocks that may hold their lists.
#[derive(Debug, Clone)]
pub(crate) struct Merge {
    pub(crate) sources: Vec<u64>,
    pub(crate) tasks: Vec<ListTask>,
}

/// What one hop reads.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) tasks: Vec<ListTask>,
    pub(crate) merges: Vec<Merge>,
    /// What it and its requests take, until the last of its parts is read.
    memory: Option<Arc<MemoryHold>>,
}

/// A section that may have lists of an edge type.
struct Layer<'a> {
    place: SectionPlace,
    removed: bool,
    section: Section<'a>,
}

impl Plan {
    /// Counts its memory, and that of its requests.
    fn count(&mut self, context: &QueryContext) -> Result<(), StorageError> {
        let sources = self.merges.iter().map(|merge| merge.sources.len()).sum();
        let tasks = bytes_of::<(ListTask, BlockRequest<'_>, &ListTask)>(self.all_tasks().count());
        let hold = context.hold(tasks + bytes_of::<u64>(sources) + bytes_of::<Merge>(self.merges.len()))?;
        self.memory = Some(Arc::new(hold));
        Ok(())
    }

    /// All blocks that it reads: those of single tasks, then those of merges.
    pub(crate) fn all_tasks(&self) -> impl Iterator<Item = &ListTask> {
        self.tasks.iter().chain(self.merges.iter().flat_map(|merge| &merge.tasks))
    }

    /// Its parts that can be read one without the other.
    pub(crate) fn pieces(self) -> impl Iterator<Item = Self> {
        let Self { tasks, merges, memory } = self;
        let part = move |tasks, merges| Self { tasks, merges, memory: memory.clone() };
        let single = part.clone();
        let tasks = tasks.into_iter().map(move |task| single(vec![task], Vec::new()));
        tasks.chain(merges.into_iter().map(move |merge| part(Vec::new(), vec![merge])))
    }

    /// Cuts it into so many plans of like size.
    pub(crate) fn cut(self, parts: usize) -> Vec<Self> {
        let size = |whole: usize| whole.div_ceil(parts).max(1);
        let (tasks, merges) = (size(self.tasks.len()), size(self.merges.len()));
        let mut cuts = vec![Self { tasks: Vec::new(), merges: Vec::new(), memory: self.memory }; parts];
        for (number, task) in self.tasks.into_iter().enumerate() {
            cuts[number / tasks].tasks.push(task);
        }
        for (number, merge) in self.merges.into_iter().enumerate() {
            cuts[number / merges].merges.push(merge);
        }
        cuts
    }
}

impl Snapshot {
    /// Which blocks a hop from `frontier` reads. One wave, if indexes that it needs are not resident.
    pub(crate) async fn plan_hop(
        &self,
        frontier: &Frontier,
        hop: &Hop,
        branch: &mut Branch,
    ) -> Result<Plan, EngineError> {
        let mut wanted = Vec::new();
        for (near, ordinals) in frontier.by_label() {
            for direction in hop.direction.each() {
                for (edge_type, far) in self.edge_types_from(near, &hop.labels, *direction) {
                    wanted.push((EdgesOf { edge_type, direction: *direction, near, far }, ordinals));
                }
            }
        }
        let places = wanted.iter().flat_map(|(of, _)| self.list_places(*of).map(|(place, _)| place));
        self.make_resident(places, branch).await?;
        let mut plan = Plan { tasks: Vec::new(), merges: Vec::new(), memory: None };
        let mut pace = branch.context().pace();
        for (of, ordinals) in wanted {
            self.plan_edges(of, ordinals, &mut plan, &mut pace).await?;
        }
        plan.count(branch.context())?;
        Ok(plan)
    }

    /// The sections that mention pairs of an edge type, and whether those they mention are removed.
    fn list_places(&self, of: EdgesOf) -> impl Iterator<Item = (SectionPlace, bool)> {
        let EdgesOf { edge_type, direction, .. } = of;
        let places = |kind, removed| self.places(kind).iter().map(move |place| (*place, removed));
        let there = places(SectionKind::Adjacency(edge_type, direction), false);
        there.chain(places(SectionKind::Removed(edge_type, direction), true))
    }

    async fn plan_edges(
        &self,
        of: EdgesOf,
        ordinals: &[u64],
        plan: &mut Plan,
        pace: &mut Pace,
    ) -> Result<(), EngineError> {
        let layer = |(place, removed)| Ok(Layer { place, removed, section: self.section(place)? });
        let mut layers = self.list_places(of).map(layer).collect::<Result<Vec<_>, EngineError>>()?;
        layers.sort_by_key(|layer| Reverse(layer.place.versions.until));
        match &layers[..] {
            [] => {}
            [only] if only.removed => {}
            [only] => plan_section(only, of, ordinals, 0, &mut plan.tasks, pace).await?,
            _ => plan_layers(&layers, of, ordinals, plan, pace).await?,
        }
        Ok(())
    }

    /// Which blocks may mention pairs with these sources, in parts that have changes of later versions than
    /// `newer_than`: nothing is merged.
    pub(super) async fn plan_mentions(
        &self,
        of: EdgesOf,
        sources: &[u64],
        newer_than: u64,
        branch: &mut Branch,
    ) -> Result<Plan, EngineError> {
        let places = || self.list_places(of).filter(|(place, _)| place.versions.until > newer_than);
        self.make_resident(places().map(|(place, _)| place), branch).await?;
        let mut tasks = Vec::new();
        let mut pace = branch.context().pace();
        for (place, removed) in places() {
            let layer = Layer { place, removed, section: self.section(place)? };
            plan_section(&layer, of, sources, 0, &mut tasks, &mut pace).await?;
        }
        let mut plan = Plan { tasks, merges: Vec::new(), memory: None };
        plan.count(branch.context())?;
        Ok(plan)
    }

    /// The requests for the blocks of tasks, in their order.
    pub(crate) fn requests<'a>(
        &'a self,
        tasks: impl IntoIterator<Item = &'a ListTask>,
    ) -> Result<Vec<BlockRequest<'a>>, EngineError> {
        tasks.into_iter().map(|task| Ok(self.section(task.place)?.request(task.block))).collect()
    }
}

/// Sources of which at most the oldest layer may have a list are planned as if it were the only one.
async fn plan_layers(
    layers: &[Layer<'_>],
    of: EdgesOf,
    ordinals: &[u64],
    plan: &mut Plan,
    pace: &mut Pace,
) -> Result<(), StorageError> {
    let Some((oldest, newer)) = layers.split_last() else { return Ok(()) };
    let in_newer = |source: &u64| newer.iter().any(|layer| layer.section.may_have_source(*source));
    let mut merged = Vec::new();
    let mut at = 0;
    for step in ordinals.chunks(PLANNED) {
        for run in step.chunk_by(|a, b| in_newer(a) == in_newer(b)) {
            if in_newer(&run[0]) {
                merged.extend_from_slice(run);
            } else if !oldest.removed {
                plan_section(oldest, of, run, at, &mut plan.tasks, pace).await?;
            }
            at += run.len();
        }
        pace.rest((step.len() * newer.len()) as u64 * 8).await?;
    }
    for sources in merged.chunks(MERGED_SOURCES_MAX) {
        let mut tasks = Vec::new();
        for layer in layers {
            // Runs of sources that the layer may have.
            let mut at = 0;
            for run in sources.chunk_by(|a, b| layer.section.may_have_source(*a) == layer.section.may_have_source(*b)) {
                if layer.section.may_have_source(run[0]) {
                    plan_section(layer, of, run, at, &mut tasks, pace).await?;
                }
                at += run.len();
            }
            pace.rest(sources.len() as u64 * 8).await?;
        }
        plan.merges.push(Merge { sources: sources.to_vec(), tasks });
    }
    Ok(())
}

/// Which blocks of a section hold the lists of `ordinals`, which ascend and begin at position `offset` of those that
/// tasks count from.
async fn plan_section(
    layer: &Layer<'_>,
    of: EdgesOf,
    ordinals: &[u64],
    offset: usize,
    tasks: &mut Vec<ListTask>,
    pace: &mut Pace,
) -> Result<(), StorageError> {
    let index: &SectionIndex = layer.section.index;
    let BlockFirsts::Sources(firsts) = &index.firsts else { return Ok(()) };
    let task = |block, sources: Range<usize>| ListTask {
        of,
        place: layer.place,
        removed: layer.removed,
        block,
        sources: sources.start + offset..sources.end + offset,
    };
    let mut at = ordinals.partition_point(|ordinal| firsts.first().is_none_or(|first| ordinal < first));
    while at < ordinals.len() {
        let blocks = index.blocks_of_source(ordinals[at]);
        let Some(last) = blocks.end.checked_sub(1) else { return Ok(()) };
        // All blocks but the last hold nothing but this one hub.
        tasks.extend((blocks.start..last).map(|block| task(block, at..at + 1)));
        let next = firsts.get(last + 1).copied().unwrap_or(u64::MAX);
        let end = position_of(ordinals, at + 1, next);
        tasks.push(task(last, at..end));
        at = end;
        pace.rest(16).await?;
    }
    Ok(())
}
