//! Which blocks of an index have the items of some ranges, and whether it pays to read them.

use std::ops::Range;

use hoplake_format::{
    IndexId, LabelId,
    segment::{Firsts, IndexBlock, SectionKind},
};
use hoplake_storage::{Branch, MemoryHold, QueryContext};

use super::{PropertyIndexes, SHARE};
use crate::{
    Condition, EngineError, Test,
    memory::bytes_of,
    read::condition::ItemRanges,
    snapshot::sections::{IndexLocation, Run, SectionLocation, within},
};

/// A look-up takes at most this part of the memory that is left: its result stays while rows are read.
const MEMORY_SHARE: u64 = 4;

/// Where one vertex in this many matches a condition, a scan meets a few of them sooner than an index lists all.
const DENSE: u64 = 64;

/// Items that are listed in as much time as the first part of a scan takes.
const LISTED_MIN: u64 = 1 << 12;

/// What an item takes that decides for older runs: its text, and its place in a table of which at least 7/16 are used.
pub(super) const DECIDED_BYTES: u64 = 64;

/// What an ordinal takes while a list of them grows or is sorted.
const ORDINAL_BYTES: u64 = 24;

/// What an index is asked, and what its answer says of the condition.
#[derive(Debug)]
pub(crate) struct Question {
    pub(super) index: IndexId,
    pub(super) ranges: ItemRanges,
    /// Whether vertices that it finds match all of the condition.
    pub(crate) whole: bool,
    _memory: MemoryHold,
}

/// The blocks of a run that may have items of the ranges.
#[derive(Debug)]
pub(super) struct RunBlocks {
    /// Whether its items are those that went.
    pub(super) removed: bool,
    /// In the order of their items.
    pub(super) blocks: Vec<(SectionLocation, Range<u64>)>,
    /// Items of these blocks, about.
    items: u64,
}

/// How a question is answered.
#[derive(Debug)]
pub(super) struct LookUp {
    pub(super) question: Question,
    /// The newest run first.
    pub(super) runs: Vec<RunBlocks>,
    /// Items in whole blocks, and at least one for each range.
    items: u64,
}

impl LookUp {
    /// Bytes of the blocks.
    pub(super) fn stored_bytes(&self) -> u64 {
        self.runs.iter().flat_map(|run| &run.blocks).map(|(_, range)| range.end - range.start).sum()
    }

    /// The memory that it takes, about.
    fn memory_bytes(&self) -> u64 {
        let of_text = self.stored_bytes() / self.runs.iter().map(|run| run.items).sum::<u64>().max(1);
        let all_but_oldest = self.runs.split_last().map_or(&[][..], |(_, newer)| newer);
        let decided: u64 = all_but_oldest.iter().map(|run| run.items).sum();
        let listed: u64 = self.runs.iter().filter(|run| !run.removed).map(|run| run.items).sum();
        self.stored_bytes() + decided * (DECIDED_BYTES + 2 * of_text) + listed * ORDINAL_BYTES
    }

    /// Whether a scan of a label finds as many as are wanted before this lists what it leads to.
    fn is_later_than_scan(&self, wanted: usize, vertices: u64) -> bool {
        let is_dense = self.items.saturating_mul(DENSE) >= vertices;
        is_dense && self.items > LISTED_MIN.max((wanted as u64).saturating_mul(DENSE))
    }
}

impl PropertyIndexes<'_> {
    /// What the indexes of a label can be asked for a condition.
    pub(crate) fn questions(
        self,
        label: LabelId,
        condition: &Condition,
        context: &QueryContext,
    ) -> Result<Vec<Question>, EngineError> {
        let (required, is_all) = condition.required();
        let mut questions = Vec::new();
        for index in self.snapshot.manifest().indexes_of(label).filter(|index| index.is_ready()) {
            let mut answered = 0;
            let mut ranges: Option<ItemRanges> = None;
            for test in &required {
                let Test::Property(property, requirement) = test else { continue };
                if property.name != index.property {
                    continue;
                }
                let Some(kind) = self.snapshot.property_tested(label, property) else { continue };
                let Some(found) = requirement.typed(&property.name, kind)?.item_ranges() else { continue };
                answered += 1;
                ranges = Some(ranges.map_or_else(|| found.clone(), |ranges| ranges.and(&found)));
            }
            let Some(ranges) = ranges else { continue };
            let whole = is_all && answered == required.len() && ranges.exact;
            let memory = context.hold(ranges.bytes())?;
            questions.push(Question { index: index.id, ranges, whole, _memory: memory });
        }
        Ok(questions)
    }

    /// How the index that leads to the fewest items answers; `None` if none pays. No request, if the index is in memory.
    pub(super) async fn plan_look_up(
        self,
        label: LabelId,
        questions: Vec<Question>,
        wanted: Option<usize>,
        branch: &mut Branch,
    ) -> Result<Option<LookUp>, EngineError> {
        let vertices = self.snapshot.ordinal_count(label);
        let most = (vertices / SHARE).max(1);
        let plans = branch.each(questions, |question, mut line| async move {
            Ok::<_, EngineError>((self.blocks_to_read(question, most, &mut line).await?, line))
        });
        let plans = plans.await?.into_iter().flatten();
        let left = branch.context().memory().left();
        let pays = |plan: &LookUp| {
            plan.items <= most
                && plan.memory_bytes() <= left / MEMORY_SHARE
                && !wanted.is_some_and(|wanted| plan.is_later_than_scan(wanted, vertices))
        };
        Ok(plans.filter(pays).min_by_key(|plan| plan.items))
    }

    /// `None` if the roots already show that there are too many.
    async fn blocks_to_read(
        self,
        question: Question,
        most: u64,
        branch: &mut Branch,
    ) -> Result<Option<LookUp>, EngineError> {
        let ranges = &question.ranges;
        // Each is sought by itself, and its values are mostly there.
        let least = ranges.ranges.len() as u64;
        if least > most {
            return Ok(None);
        }
        let there = SectionKind::Values(question.index);
        let gone = SectionKind::RemovedValues(question.index);
        let runs = self.snapshot.sections().runs_newest_first(&[there, gone]);
        let mut pace = branch.context().pace();
        let mut pieces: Vec<(usize, usize, SectionLocation)> = Vec::new();
        for (number, (_, run)) in runs.iter().enumerate() {
            let found = ascending(ranges.ranges.iter().map(|range| run.pieces_of_items(range)));
            pieces.extend(found.filter_map(|piece| Some((number, piece, run.location(piece)?))));
            pace.rest(least).await?;
        }
        self.snapshot.sections().make_resident(pieces.iter().map(|(_, _, location)| *location), branch).await?;
        let mut asked: Vec<IndexBlockLookUp<'_>> = Vec::new();
        let mut items = 0;
        for (number, piece, section) in pieces {
            let root = self.snapshot.sections().section(section)?.root();
            let Firsts::Texts(firsts) = &root.firsts else { continue };
            let (from, until) = runs[number].1.items_of_piece(piece);
            let of_piece = ranges.within(from, until);
            let found = of_piece.iter().map(|range| within(firsts.len(), |at| firsts[at].as_bytes(), range));
            let found: Vec<_> = found.inspect(|found| items += whole(found, root.items, firsts.len())).collect();
            asked.extend(ascending(found.into_iter()).map(|at| {
                let until = firsts.get(at + 1).map(String::as_bytes).or(until);
                let ranges = ranges.within(firsts[at].as_bytes(), until);
                IndexBlockLookUp { run: number, index: IndexLocation { section, number: at }, ranges }
            }));
            pace.rest(of_piece.len() as u64).await?;
        }
        if items > most {
            return Ok(None);
        }
        let _memory = branch.context().hold(bytes_of::<[IndexBlockLookUp<'_>; 2]>(asked.len()))?;
        let locations: Vec<_> = asked.iter().map(|asked| asked.index).collect();
        let mut found: Vec<IndexBlockItems> = asked.iter().map(|_| IndexBlockItems::default()).collect();
        let answer = |number: usize, block: &IndexBlock| {
            let root = self.snapshot.sections().section(locations[number].section)?.root();
            found[number] = IndexBlockItems::of(block, asked[number].ranges, root.items, root.block_count);
            Ok(())
        };
        self.snapshot.sections().each_index_block(&locations, branch, answer).await?;
        pace.rest(found.iter().map(|found| found.blocks.len() as u64).sum()).await?;
        let of_run =
            |(kind, _): &(SectionKind, &Run)| RunBlocks { removed: *kind == gone, blocks: Vec::new(), items: 0 };
        let mut plans: Vec<RunBlocks> = runs.iter().map(of_run).collect();
        let mut items = 0;
        for (IndexBlockLookUp { run, index, .. }, found) in asked.iter().zip(found) {
            items += found.items;
            plans[*run].items += found.items_of_blocks;
            plans[*run].blocks.extend(found.blocks.into_iter().map(|block| (index.section, block)));
        }
        plans.retain(|run| !run.blocks.is_empty());
        Ok(Some(LookUp { question, runs: plans, items: items.max(least) }))
    }
}

/// An index block to look into, for the ranges that it may have.
struct IndexBlockLookUp<'a> {
    run: usize,
    index: IndexLocation,
    ranges: &'a [Range<Vec<u8>>],
}

/// What an index block leads to.
#[derive(Default)]
struct IndexBlockItems {
    blocks: Vec<Range<u64>>,
    /// Items in whole blocks.
    items: u64,
    /// Items in all of the blocks, about.
    items_of_blocks: u64,
}

impl IndexBlockItems {
    fn of(block: &IndexBlock, ranges: &[Range<Vec<u8>>], items: u64, block_count: u64) -> Self {
        let all = usize::try_from(block_count).unwrap_or(usize::MAX);
        let of_ranges = ranges.iter().map(|range| within(block.len(), |at| block.text(at).as_bytes(), range));
        let of_ranges: Vec<_> = of_ranges.collect();
        let whole = of_ranges.iter().map(|found| whole(found, items, all)).sum();
        let blocks: Vec<_> = ascending(of_ranges.into_iter()).map(|at| block.range(at)).collect();
        let items_of_blocks = blocks.len() as u64 * items.div_ceil(block_count.max(1));
        Self { blocks, items: whole, items_of_blocks }
    }
}

/// The numbers in some ranges, whose starts and ends ascend, each once.
fn ascending(ranges: impl Iterator<Item = Range<usize>>) -> impl Iterator<Item = usize> {
    let mut next = 0;
    ranges.flat_map(move |range| {
        let new = range.start.max(next)..range.end;
        next = next.max(range.end);
        new
    })
}

/// The items of some of the `all` stretches that a section has, without the first and the last, of which perhaps little is meant.
fn whole(stretches: &Range<usize>, items: u64, all: usize) -> u64 {
    let whole = stretches.len().saturating_sub(2) as u128;
    (whole * u128::from(items) / (all as u128).max(1)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_ranges_that_overlap_come_once() {
        assert_eq!(ascending([0..2, 1..4, 3..4, 3..3, 6..7].into_iter()).collect::<Vec<_>>(), [0, 1, 2, 3, 6]);
    }
}
