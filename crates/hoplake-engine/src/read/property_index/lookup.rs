//! The vertices that an index leads to: blocks of all runs in one wave, and of each item the newest entry.
//!
//! Items of a block are decoded when all blocks are there, the newest run first. An item of a run decides for all older ones, so the
//! oldest, which has nearly all, needs no more memory than an ordinal for each.

use std::collections::HashSet;

use bytes::Bytes;
use hoplake_format::{FormatError, Key, KeyType, LabelId, keys::decode_key_block, property_index::ordinal_of};
use hoplake_storage::{Branch, QueryContext};

use super::{
    PropertyIndexes,
    plan::{DECIDED_BYTES, LookUp, Question, RunBlocks},
};
use crate::{
    EngineError, Held,
    memory::{HeldVec, bytes_of},
    pieces::sort_by_key,
    read::condition::ItemRanges,
};

/// Vertices that may match a condition: all others do not.
#[derive(Debug)]
pub(crate) struct Candidates {
    /// Ascending.
    pub(crate) ordinals: Held<Vec<u64>>,
    /// Whether all of them match it.
    pub(crate) exact: bool,
}

impl PropertyIndexes<'_> {
    /// The vertices of a label that an index has for a condition; `None` if it does not pay to ask one: there is none, or it leads to
    /// too many, or to more than the memory holds, or a scan finds sooner as many as are wanted. One wave; one before it for roots of
    /// segments that are not in memory, and one for index blocks.
    pub(crate) async fn candidates(
        self,
        label: LabelId,
        questions: Vec<Question>,
        wanted: Option<usize>,
        branch: &mut Branch,
    ) -> Result<Option<Candidates>, EngineError> {
        let Some(plan) = self.plan_look_up(label, questions, wanted, branch).await? else { return Ok(None) };
        let LookUp { question, runs, .. } = &plan;
        let context = branch.context().clone();
        let blocks: Vec<_> = runs.iter().flat_map(|run| &run.blocks).collect();
        let _stored = context.hold(bytes_of::<[u64; 16]>(blocks.len()) + plan.stored_bytes())?;
        let requests = blocks
            .iter()
            .map(|(location, range)| Ok(self.snapshot.sections().section(*location)?.request(range.clone())));
        let requests = requests.collect::<Result<Vec<_>, EngineError>>()?;
        let payloads = self.snapshot.reader().read(&requests, branch).await?;
        let location = |number: usize| self.snapshot.reader().store().location(&requests[number].object.name);
        let mut ordinals = newest(runs, &payloads, &question.ranges, location, &context).await?;
        sort_by_key(ordinals.items(), |ordinal| *ordinal, &context).await?;
        ordinals.items().dedup();
        let universe = self.snapshot.ordinal_count(label);
        if let Some(beyond) = ordinals.last().filter(|last| **last >= universe) {
            let why = format!("an index leads to vertex {beyond} of {universe}");
            return Err(EngineError::format(self.snapshot.reader().store().url())(FormatError::corrupt(
                "property index",
                why,
            )));
        }
        Ok(Some(Candidates { ordinals: ordinals.finish(), exact: question.whole }))
    }
}

/// The ordinals of the items that are there, by the newest run that has an entry; in no order.
async fn newest(
    runs: &[RunBlocks],
    payloads: &[Bytes],
    ranges: &ItemRanges,
    location: impl Fn(usize) -> String,
    context: &QueryContext,
) -> Result<HeldVec<u64>, EngineError> {
    let mut ordinals = HeldVec::new(context)?;
    let mut decided: HashSet<String> = HashSet::new();
    let mut memory = context.hold(0)?;
    let mut pace = context.pace();
    let mut payloads = payloads.iter().enumerate();
    for (number, run) in runs.iter().enumerate() {
        let is_oldest = number + 1 == runs.len();
        for (block, payload) in payloads.by_ref().take(run.blocks.len()) {
            let failed = |error| EngineError::format(location(block))(error);
            let mut items = items_within(payload, ranges).map_err(failed)?;
            items.retain(|item| !decided.contains(item));
            pace.rest(items.len() as u64 * 8 + 64).await?;
            if !run.removed {
                ordinals.reserve(items.len())?;
                for item in &items {
                    ordinals.items().push(ordinal_of(item).map_err(failed)?);
                }
            }
            if !is_oldest {
                let texts: usize = items.iter().map(String::capacity).sum();
                let bytes = memory.bytes() + texts as u64 + items.len() as u64 * DECIDED_BYTES;
                context.resize(&mut memory, bytes)?;
                decided.extend(items);
            }
        }
    }
    Ok(ordinals)
}

fn items_within(payload: &[u8], ranges: &ItemRanges) -> Result<Vec<String>, FormatError> {
    let text = |(key, _)| if let Key::String(text) = key { Some(text) } else { None };
    let items = decode_key_block(payload, KeyType::String)?.into_iter().filter_map(text);
    Ok(items.filter(|item| ranges.has(item)).collect())
}
