//! What sorted runs say of keys: user keys, and ordinals whose rows were changed.

use std::{collections::BTreeSet, ops::Range};

use futures::future::try_join;
use hoplake_format::{Key, LabelId, keys::find_in_key_block, segment::IndexBlock};
use hoplake_storage::Branch;

use crate::{
    EngineError, Snapshot,
    snapshot::sections::{IndexLocation, Run, Section, SectionLocation},
};

/// What a run says of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeyEntry {
    /// What the key stands for: the vertex's ordinal, or the row of a changed vertex.
    pub(crate) number: u64,
    /// Whether the entry is a tombstone.
    pub(crate) gone: bool,
    /// The newest version of the run.
    pub(crate) until: u64,
}

/// Keys that are sought in some runs.
pub(crate) struct Sought<'a> {
    /// Newest first, each with whether its entries are tombstones.
    pub(crate) runs: Vec<(&'a Run, bool)>,
    /// Ascending, each with its position in the answer.
    pub(crate) keys: Vec<(&'a Key, usize)>,
    /// The label whose rows are read next, if one of the keys may be there: the ends of its tables are read with the keys.
    pub(crate) table: Option<LabelId>,
}

/// Keys that one index block leads to.
struct IndexLookUp<'a, 'k> {
    index: IndexLocation,
    section: Section<'a>,
    run: (&'a Run, bool),
    keys: Vec<(&'k Key, usize)>,
    table: Option<LabelId>,
}

/// A block that may hold keys, and which.
struct BlockLookUp<'a, 'k> {
    /// What led to it.
    led_by: &'a IndexLookUp<'a, 'k>,
    range: Range<u64>,
    keys: Vec<(&'k Key, usize)>,
}

/// The entry of each key in the first run that has one; `count` answers. One wave; one before it for roots of
/// segments that are not in memory, one for index blocks, and one for filters, if those pay.
pub(crate) async fn entries(
    snapshot: &Snapshot,
    sought: &[Sought<'_>],
    count: usize,
    branch: &mut Branch,
) -> Result<Vec<Option<KeyEntry>>, EngineError> {
    let mut locations: Vec<SectionLocation> = Vec::new();
    for Sought { runs, keys, .. } in sought {
        for (run, _) in runs {
            locations.extend(keys.iter().filter_map(|(key, _)| run.location_of_key(key)));
            locations.dedup();
        }
    }
    snapshot.sections().make_resident(locations, branch).await?;
    let asked = index_blocks_to_ask(snapshot, sought)?;
    let indexes: Vec<_> = asked.iter().map(|asked| asked.index).collect();
    let mut blocks: Vec<Vec<BlockLookUp<'_, '_>>> = indexes.iter().map(|_| Vec::new()).collect();
    let answer = |number: usize, index: &IndexBlock| {
        blocks[number] = asked[number].blocks(index);
        Ok(())
    };
    snapshot.sections().each_index_block(&indexes, branch, answer).await?;
    let mut blocks: Vec<_> = blocks.into_iter().flatten().collect();
    let indexed = branch.wave();
    snapshot
        .sections()
        .read_filters_that_pay(blocks.iter().map(|block| (block.led_by.index, &block.range)), branch)
        .await?;
    let filtered = branch.wave();
    // Filters arrived in a wave of this look-up: now they exclude blocks that were chosen without them.
    if filtered > indexed {
        for BlockLookUp { led_by, keys, .. } in &mut blocks {
            keys.retain(|(key, _)| led_by.section.may_hold(led_by.index.number, key));
        }
        blocks.retain(|block| !block.keys.is_empty());
    }
    // All runs are read in one wave, though the newest decides: one after the other they would take a wave each.
    let requests: Vec<_> = blocks.iter().map(|block| block.led_by.section.request(block.range.clone())).collect();
    let tables: BTreeSet<LabelId> = blocks.iter().filter_map(|block| block.led_by.table).collect();
    let tables: Vec<_> = tables.into_iter().collect();
    let mut for_tables = branch.clone();
    let payloads = async { Ok::<_, EngineError>(snapshot.reader().read(&requests, branch).await?) };
    let (payloads, ()) =
        try_join(payloads, snapshot.tables().load_metadata_of_labels(&tables, &mut for_tables)).await?;
    let has_waited = branch.wave() > filtered;
    branch.join([&for_tables]);
    if has_waited {
        snapshot.sections().read_in_full(blocks.iter().map(|block| block.led_by.index.section), branch.context());
    }
    let mut entries: Vec<Option<KeyEntry>> = vec![None; count];
    let mut in_vain = Vec::new();
    for (BlockLookUp { led_by, keys, .. }, payload) in blocks.iter().zip(payloads) {
        // The first run with an entry for the key decides.
        let open = |(_, number): &&(&Key, usize)| entries[*number].is_none();
        let keys: Vec<_> = keys.iter().filter(open).copied().collect();
        let failed = EngineError::format(snapshot.reader().store().location(&led_by.section.object.name));
        let found = find_in_key_block(&payload, keys.iter().map(|(key, _)| *key)).map_err(failed)?;
        // The block had none of its keys, which its filter would have shown: enough of such reads pay for a filter.
        if found.is_empty() && !keys.is_empty() {
            in_vain.push(led_by.index);
        }
        let (run, gone) = led_by.run;
        for (place, number) in found {
            entries[keys[place].1] = Some(KeyEntry { number, gone, until: run.versions.until });
        }
    }
    snapshot.sections().read_in_vain(&in_vain, branch.context());
    Ok(entries)
}

/// The index blocks that lead to some keys, run by run, and in each in the order of the keys.
fn index_blocks_to_ask<'a, 'k>(
    snapshot: &'a Snapshot,
    sought: &[Sought<'k>],
) -> Result<Vec<IndexLookUp<'a, 'k>>, EngineError>
where
    'k: 'a,
{
    let mut asked: Vec<IndexLookUp<'a, 'k>> = Vec::new();
    for Sought { runs, keys, table } in sought {
        for run in runs {
            let begin = asked.len();
            for (key, number) in keys {
                let Some(location) = run.0.location_of_key(key) else { continue };
                let section = snapshot.sections().section(location)?;
                let Some(index) = section.index_of_key(key) else { continue };
                let index = IndexLocation { section: location, number: index };
                // Keys ascend, so only the last index block can be the same.
                match asked[begin..].last_mut().filter(|asked| asked.index == index) {
                    Some(asked) => asked.keys.push((*key, *number)),
                    None => {
                        let keys = vec![(*key, *number)];
                        asked.push(IndexLookUp { index, section, run: *run, keys, table: *table });
                    }
                }
            }
        }
    }
    Ok(asked)
}

impl<'k> IndexLookUp<'_, 'k> {
    /// The blocks that may hold its keys.
    fn blocks<'a>(&'a self, index: &IndexBlock) -> Vec<BlockLookUp<'a, 'k>> {
        let mut blocks: Vec<(usize, BlockLookUp<'a, 'k>)> = Vec::new();
        for (key, number) in &self.keys {
            let Some(block) = index.through(key).checked_sub(1) else { continue };
            match blocks.last_mut().filter(|(last, _)| *last == block) {
                Some((_, asked)) => asked.keys.push((*key, *number)),
                None => {
                    let keys = vec![(*key, *number)];
                    blocks.push((block, BlockLookUp { led_by: self, range: index.range(block), keys }));
                }
            }
        }
        blocks.into_iter().map(|(_, asked)| asked).collect()
    }
}
