//! Which blocks of an index have the items of some ranges, and about how many items these are.

use std::{cmp::Reverse, collections::BTreeSet, ops::Range};

use hoplake_format::{
    IndexId, LabelId,
    segment::{Firsts, IndexBlock, SectionKind},
};
use hoplake_storage::Branch;

use super::SHARE;
use crate::{
    Condition, EngineError, Snapshot,
    condition::ItemRanges,
    index::{IndexLocation, Run, SectionLocation, within},
};

/// What an index is asked, and what its answer says of the condition.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) index: IndexId,
    pub(super) ranges: ItemRanges,
    /// Whether vertices that it finds fulfil all of the condition.
    pub(super) whole: bool,
}

/// The blocks of a run that may have items of the ranges.
#[derive(Debug)]
pub(super) struct RunBlocks {
    /// Whether its items are those that went.
    pub(super) removed: bool,
    /// In the order of their items.
    pub(super) blocks: Vec<(SectionLocation, Range<u64>)>,
}

/// How a question is answered.
#[derive(Debug)]
pub(super) struct LookUp {
    pub(super) question: Question,
    /// The newest run first.
    pub(super) runs: Vec<RunBlocks>,
    /// Items in whole blocks, at least.
    pub(super) items: u64,
}

impl Snapshot {
    /// What the indexes of a label can be asked for a condition.
    pub(super) fn questions(&self, label: LabelId, condition: &Condition) -> Result<Vec<Question>, EngineError> {
        let (required, is_all) = condition.required();
        let mut questions = Vec::new();
        for index in self.manifest().indexes_of(label).filter(|index| index.is_ready()) {
            let mut answered = 0;
            let mut ranges: Option<ItemRanges> = None;
            for test in required.iter().filter(|test| test.property.name == index.property) {
                let Some(kind) = self.property_tested(label, &test.property) else { continue };
                let Some(found) = test.typed(kind)?.item_ranges() else { continue };
                answered += 1;
                ranges = Some(ranges.map_or_else(|| found.clone(), |ranges| ranges.and(&found)));
            }
            let Some(ranges) = ranges else { continue };
            let whole = is_all && answered == required.len() && ranges.exact;
            questions.push(Question { index: index.id, ranges, whole });
        }
        Ok(questions)
    }

    /// How the index that leads to the fewest items answers; `None` if none pays. No request, if the index is in memory.
    pub(super) async fn plan_look_up(
        &self,
        label: LabelId,
        condition: &Condition,
        branch: &mut Branch,
    ) -> Result<Option<LookUp>, EngineError> {
        let questions = self.questions(label, condition)?;
        let most = self.ordinal_count(label) / SHARE;
        let plans = branch.each(questions, |question, mut line| async move {
            Ok::<_, EngineError>((self.blocks_to_read(question, most, &mut line).await?, line))
        });
        let plans = plans.await?.into_iter().flatten().filter(|plan| plan.items <= most);
        Ok(plans.min_by_key(|plan| plan.items))
    }

    /// `None` if the roots already show that there are too many.
    async fn blocks_to_read(
        &self,
        question: Question,
        most: u64,
        branch: &mut Branch,
    ) -> Result<Option<LookUp>, EngineError> {
        let kinds = [(SectionKind::Values(question.index), false), (SectionKind::RemovedValues(question.index), true)];
        let mut runs: Vec<(&Run, bool)> =
            kinds.iter().flat_map(|(kind, gone)| self.runs(*kind).iter().map(|run| (run, *gone))).collect();
        runs.sort_by_key(|(run, _)| Reverse(run.versions.until));
        let ranges = &question.ranges.ranges;
        let pieces = |run: &Run| -> BTreeSet<usize> { ranges.iter().flat_map(|it| run.pieces_of_items(it)).collect() };
        let sections: Vec<Vec<SectionLocation>> = runs
            .iter()
            .map(|(run, _)| pieces(run).into_iter().filter_map(|piece| run.location(piece)).collect())
            .collect();
        self.make_resident(sections.iter().flatten().copied(), branch).await?;
        let mut asked: Vec<(usize, IndexLocation)> = Vec::new();
        let mut items = 0;
        for (run, of_run) in sections.iter().enumerate() {
            for location in of_run {
                let root = self.section(*location)?.root();
                let Firsts::Texts(firsts) = &root.firsts else { continue };
                let mut numbers = BTreeSet::new();
                for range in ranges {
                    let found = within(firsts.len(), |number| firsts[number].as_bytes(), range);
                    items += whole(&found, root.items, firsts.len());
                    numbers.extend(found);
                }
                let index = |number| (run, IndexLocation { section: *location, number });
                asked.extend(numbers.into_iter().map(index));
            }
        }
        if items > most {
            return Ok(None);
        }
        let locations: Vec<_> = asked.iter().map(|(_, location)| *location).collect();
        let mut found: Vec<Vec<Range<u64>>> = vec![Vec::new(); asked.len()];
        let mut items = 0;
        let answer = |number: usize, block: &IndexBlock| {
            let root = self.section(locations[number].section)?.root();
            let mut blocks = BTreeSet::new();
            for range in ranges {
                let of_range = within(block.len(), |at| block.text(at).as_bytes(), range);
                items += whole(&of_range, root.items, usize::try_from(root.block_count).unwrap_or(usize::MAX));
                blocks.extend(of_range);
            }
            found[number] = blocks.into_iter().map(|at| block.range(at)).collect();
            Ok(())
        };
        self.each_index_block(&locations, branch, answer).await?;
        let mut plans: Vec<RunBlocks> =
            runs.iter().map(|(_, removed)| RunBlocks { removed: *removed, blocks: Vec::new() }).collect();
        for ((run, location), blocks) in asked.iter().zip(found) {
            plans[*run].blocks.extend(blocks.into_iter().map(|block| (location.section, block)));
        }
        plans.retain(|run| !run.blocks.is_empty());
        Ok(Some(LookUp { question, runs: plans, items }))
    }
}

/// The items of some of the `all` stretches that a section has, without the first and the last, of which perhaps little is meant.
fn whole(stretches: &Range<usize>, items: u64, all: usize) -> u64 {
    let whole = stretches.len().saturating_sub(2) as u128;
    (whole * u128::from(items) / (all as u128).max(1)) as u64
}
