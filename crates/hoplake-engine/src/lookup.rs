//! From user keys to vertices and back.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use arrow_array::{ArrayRef, cast::AsArray, types::Int64Type};
use futures::future::BoxFuture;
use hoplake_format::{
    FormatError, Key, KeyType, LabelId, VertexId,
    constants::KEY_COLUMN,
    keys::{decode_key_block, find_in_key_block},
    segment::SectionKind,
};
use hoplake_storage::{
    Branch,
    planted::{Bug, planted},
};

use crate::{
    EngineError, Snapshot,
    snapshot::{Section, SectionPlace},
};

/// What a part says of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeyMention {
    /// The vertex's ordinal.
    pub(crate) ordinal: u64,
    /// Whether it is gone.
    pub(crate) gone: bool,
}

/// A block that may hold keys.
struct Asked<'a> {
    place: SectionPlace,
    section: Section<'a>,
    block: usize,
    /// Whether a key in it is gone.
    gone: bool,
    /// Which of the keys asked for, in their order.
    numbers: Vec<usize>,
}

/// So many keys of one block are looked for one by one, and more of them by decoding it.
const SEARCHED_MAX: usize = 4;

impl Snapshot {
    /// The vertices with these keys, in their order; `None` where there is none. One wave.
    ///
    /// # Errors
    /// [`EngineError::Invalid`] if a key is not of its label's type; the store's.
    pub fn look_up<'a>(
        &'a self,
        keys: &'a [(LabelId, Key)],
        branch: &'a mut Branch,
    ) -> BoxFuture<'a, Result<Vec<Option<VertexId>>, EngineError>> {
        Box::pin(async move {
            for (label, key) in keys {
                self.check_key_type(*label, key)?;
            }
            let mentions = self.key_mentions(keys, 0, branch).await?;
            let vertex = |((label, _), mention): (&(LabelId, Key), Option<KeyMention>)| {
                mention.filter(|mention| !mention.gone).and_then(|mention| VertexId::new(*label, mention.ordinal))
            };
            Ok(keys.iter().zip(mentions).map(vertex).collect())
        })
    }

    /// What the newest part that mentions each key says of it, among the parts that have changes of later versions than
    /// `newer_than`. One wave.
    pub(crate) async fn key_mentions(
        &self,
        keys: &[(LabelId, Key)],
        newer_than: u64,
        branch: &mut Branch,
    ) -> Result<Vec<Option<KeyMention>>, EngineError> {
        let labels: BTreeSet<_> = keys.iter().map(|(label, _)| *label).collect();
        let parts: BTreeMap<_, _> =
            labels.into_iter().map(|label| (label, self.key_parts(label, newer_than))).collect();
        self.make_resident(parts.values().flatten().map(|(place, _)| *place), branch).await?;
        let resident = branch.wave();
        let mut order: Vec<usize> = (0..keys.len()).collect();
        order.sort_unstable_by(|a, b| keys[*a].cmp(&keys[*b]));
        let asked = self.blocks_to_ask(keys, &order, &parts)?;
        self.read_filters_that_pay(asked.iter().map(|it| (it.place, it.block)), branch).await?;
        let filtered = branch.wave();
        let asked = if filtered > resident { self.blocks_to_ask(keys, &order, &parts)? } else { asked };
        let requests: Vec<_> = asked.iter().map(|asked| asked.section.request(asked.block)).collect();
        let blocks = self.reader().read(&requests, branch).await?;
        if branch.wave() > filtered {
            self.read_whole(asked.iter().map(|asked| asked.place), branch.context());
        }
        let mut mentions: Vec<Option<KeyMention>> = vec![None; keys.len()];
        let mut in_vain = Vec::new();
        for (asked, block) in asked.iter().zip(blocks) {
            // The newest part that mentions the key decides.
            let open = |number: &&usize| mentions[**number].is_none() || planted(Bug::OldestKeyWins);
            let numbers: Vec<usize> = asked.numbers.iter().filter(open).copied().collect();
            let found = numbers_in_block(&block, keys, &numbers);
            let failed = EngineError::format(self.reader().store().place(&asked.section.object.name));
            let found = found.map_err(failed)?;
            if found.is_empty() && !numbers.is_empty() {
                in_vain.push((asked.place, asked.block));
            }
            for (number, ordinal) in found {
                mentions[number] = Some(KeyMention { ordinal, gone: asked.gone });
            }
        }
        self.read_in_vain(&in_vain, branch.context());
        Ok(mentions)
    }

    /// The blocks that may hold some keys, by label and part, the newest first. `order` sorts the keys.
    fn blocks_to_ask<'a>(
        &'a self,
        keys: &[(LabelId, Key)],
        order: &[usize],
        parts: &BTreeMap<LabelId, Vec<(SectionPlace, bool)>>,
    ) -> Result<Vec<Asked<'a>>, EngineError> {
        let mut asked: Vec<Asked<'a>> = Vec::new();
        for of_label in order.chunk_by(|a, b| keys[*a].0 == keys[*b].0) {
            for (place, gone) in &parts[&keys[of_label[0]].0] {
                let section = self.section(*place)?;
                for number in of_label {
                    let Some(block) = section.block_that_may_hold(&keys[*number].1) else { continue };
                    match asked.last_mut().filter(|asked| asked.place == *place && asked.block == block) {
                        Some(asked) => asked.numbers.push(*number),
                        None => {
                            asked.push(Asked { place: *place, section, block, gone: *gone, numbers: vec![*number] });
                        }
                    }
                }
            }
        }
        Ok(asked)
    }

    /// The sections that mention keys of a label, newest first, and whether those they mention are gone. A key that went
    /// and came back in one part is in both of its sections: that it is there counts.
    fn key_parts(&self, label: LabelId, newer_than: u64) -> Vec<(SectionPlace, bool)> {
        let of = |kind, gone| self.places(kind).iter().map(move |place| (*place, gone));
        let mut parts: Vec<_> = of(SectionKind::Keys(label), false).chain(of(SectionKind::Gone(label), true)).collect();
        parts.retain(|(place, _)| place.versions.until > newer_than);
        parts.sort_by_key(|(place, _)| Reverse(place.versions.until));
        parts
    }

    fn check_key_type(&self, label: LabelId, key: &Key) -> Result<(), EngineError> {
        let known = self.schema().label(label).ok_or_else(|| EngineError::NotFound("no such vertex label".into()))?;
        if known.key_type != key.key_type() {
            let message = format!("keys of {} are {}, but {key:?} is {}", known.name, known.key_type, key.key_type());
            return Err(EngineError::Invalid(message));
        }
        Ok(())
    }

    /// The keys of vertices, in their order. One wave, and one more if the ends of the labels' tables were
    /// not read before.
    ///
    /// # Errors
    /// The store's; [`EngineError::Format`] if a table lacks a vertex.
    pub fn keys<'a>(
        &'a self,
        vertices: &'a [VertexId],
        branch: &'a mut Branch,
    ) -> BoxFuture<'a, Result<Vec<Key>, EngineError>> {
        Box::pin(async move {
            let mut by_label: BTreeMap<LabelId, Vec<u64>> = BTreeMap::new();
            for vertex in vertices {
                by_label.entry(vertex.label()).or_default().push(vertex.ordinal());
            }
            let column = [KEY_COLUMN.to_owned()];
            let column = &column;
            let reads = branch.each(&by_label, |(label, ordinals), mut line| async move {
                Ok::<_, EngineError>((self.vertex_rows(*label, ordinals, column, &mut line).await?, line))
            });
            let read = reads.await?;
            let mut columns = BTreeMap::new();
            for (label, batch) in by_label.keys().zip(read) {
                let keys = key_column(
                    self.schema().label(*label).map(|label| label.key_type),
                    batch.column_by_name(KEY_COLUMN),
                );
                let keys = keys.map_err(EngineError::format(self.reader().store().url()))?;
                columns.insert(*label, keys.into_iter());
            }
            let take = |vertex: &VertexId| columns.get_mut(&vertex.label()).and_then(Iterator::next);
            Ok(vertices.iter().filter_map(take).collect())
        })
    }
}

/// Which of some keys, by their numbers and in their order, a block has, and what they stand for there.
fn numbers_in_block(
    block: &[u8],
    keys: &[(LabelId, Key)],
    numbers: &[usize],
) -> Result<Vec<(usize, u64)>, FormatError> {
    let mut found = Vec::with_capacity(numbers.len());
    if numbers.len() <= SEARCHED_MAX {
        for number in numbers {
            found.extend(find_in_key_block(block, &keys[*number].1)?.map(|ordinal| (*number, ordinal)));
        }
        return Ok(found);
    }
    let entries = decode_key_block(block, keys[numbers[0]].1.key_type())?;
    let mut at = 0;
    for number in numbers {
        let key = &keys[*number].1;
        while entries.get(at).is_some_and(|(entry, _)| entry < key) {
            at += 1;
        }
        found.extend(entries.get(at).filter(|(entry, _)| entry == key).map(|(_, ordinal)| (*number, *ordinal)));
    }
    Ok(found)
}

/// The keys in a column of a vertex table.
pub(crate) fn key_column(key_type: Option<KeyType>, column: Option<&ArrayRef>) -> Result<Vec<Key>, FormatError> {
    let damaged = || FormatError::corrupt("table", format!("it has no column {KEY_COLUMN} of the label's key type"));
    let column = column.ok_or_else(damaged)?;
    match key_type.ok_or_else(damaged)? {
        KeyType::Int64 => {
            let column = column.as_primitive_opt::<Int64Type>().ok_or_else(damaged)?;
            Ok(column.values().iter().map(|key| Key::Int64(*key)).collect())
        }
        KeyType::String => {
            let column = column.as_string_opt::<i32>().ok_or_else(damaged)?;
            Ok(column.iter().map(|key| Key::String(key.unwrap_or_default().to_owned())).collect())
        }
    }
}
