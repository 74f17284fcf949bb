//! The vertices that an index leads to: blocks of all runs in one wave, and of each item the newest entry.

use bytes::Bytes;
use hoplake_format::{FormatError, Key, KeyType, LabelId, keys::decode_key_block, property_index::ordinal_of};
use hoplake_storage::{Branch, MemoryHold};

use super::plan::{LookUp, RunBlocks};
use crate::{Condition, EngineError, Snapshot, condition::ItemRanges, memory::bytes_of, merge::merge_runs};

/// Vertices that may fulfil a condition: all others do not.
#[derive(Debug)]
pub(crate) struct Candidates {
    /// Ascending.
    pub(crate) ordinals: Vec<u64>,
    /// Whether all of them fulfil it.
    pub(crate) exact: bool,
    /// Held for the ordinals.
    pub(crate) _memory: MemoryHold,
}

/// Items of a block that are in the ranges.
type Found = Vec<String>;

impl Snapshot {
    /// Whether an index decides all of a condition, if it is used.
    pub(crate) fn is_answered(&self, label: LabelId, condition: &Condition) -> Result<bool, EngineError> {
        Ok(self.questions(label, condition)?.iter().any(|question| question.whole))
    }

    /// The vertices of a label that an index has for a condition; `None` if there is no index for it, or it leads to too many. One
    /// wave; one before it for roots of segments that are not in memory, and one for index blocks.
    pub(crate) async fn candidates(
        &self,
        label: LabelId,
        condition: &Condition,
        branch: &mut Branch,
    ) -> Result<Option<Candidates>, EngineError> {
        let Some(LookUp { question, runs, .. }) = self.plan_look_up(label, condition, branch).await? else {
            return Ok(None);
        };
        let context = branch.context().clone();
        let blocks: Vec<_> = runs.iter().flat_map(|run| &run.blocks).collect();
        let mut memory = context.hold(bytes_of::<[u64; 16]>(blocks.len()))?;
        let requests = blocks.iter().map(|(location, range)| Ok(self.section(*location)?.request(range.clone())));
        let requests = requests.collect::<Result<Vec<_>, EngineError>>()?;
        let mut found: Vec<Found> = vec![Found::new(); blocks.len()];
        let (mut count, mut pace) = (0, context.pace());
        let take = |number: usize, payload: Bytes| {
            let failed = EngineError::format(self.reader().store().location(&requests[number].object.name));
            let items = items_within(&payload, &question.ranges).map_err(failed)?;
            // The texts, and an ordinal and its place for each.
            let bytes: usize = items.iter().map(|item| item.capacity() + size_of::<[String; 2]>()).sum();
            let held = memory.bytes() + bytes as u64;
            context.resize(&mut memory, held)?;
            count += items.len() as u64;
            found[number] = items;
            Ok::<_, EngineError>(())
        };
        self.reader().read_each(&requests, branch, take).await?;
        pace.rest(count * 8).await?;
        let mut ordinals = newest(&runs, found).map_err(EngineError::format(self.reader().store().url()))?;
        ordinals.sort_unstable();
        ordinals.dedup();
        pace.rest(count * 8).await?;
        let universe = self.ordinal_count(label);
        if let Some(beyond) = ordinals.last().filter(|last| **last >= universe) {
            let why = format!("an index leads to vertex {beyond} of {universe}");
            return Err(EngineError::format(self.reader().store().url())(FormatError::corrupt("property index", why)));
        }
        context.resize(&mut memory, bytes_of::<u64>(ordinals.capacity()))?;
        Ok(Some(Candidates { ordinals, exact: question.whole, _memory: memory }))
    }
}

fn items_within(payload: &[u8], ranges: &ItemRanges) -> Result<Found, FormatError> {
    let text = |(key, _)| if let Key::String(text) = key { Some(text) } else { None };
    let items = decode_key_block(payload, KeyType::String)?.into_iter().filter_map(text);
    Ok(items.filter(|item| ranges.has(item)).collect())
}

/// The ordinals of the items that are there, by the newest run that has an entry.
fn newest(runs: &[RunBlocks], found: Vec<Found>) -> Result<Vec<u64>, FormatError> {
    let mut found = found.into_iter();
    let lists: Vec<Found> = runs.iter().map(|run| found.by_ref().take(run.blocks.len()).flatten().collect()).collect();
    let slices: Vec<&[String]> = lists.iter().map(Vec::as_slice).collect();
    let mut ordinals = Vec::new();
    let mut damaged = None;
    merge_runs(&slices, String::cmp, |run, items| {
        for item in items.iter().filter(|_| !runs[run].removed) {
            match ordinal_of(item) {
                Ok(ordinal) => ordinals.push(ordinal),
                Err(error) => damaged = Some(error),
            }
        }
    });
    damaged.map_or(Ok(ordinals), Err)
}
