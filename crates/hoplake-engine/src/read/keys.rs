//! From user keys to vertices and back.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use arrow_array::{ArrayRef, cast::AsArray, types::Int64Type};
use futures::future::{BoxFuture, try_join};
use hoplake_format::{
    FormatError, Key, KeyType, LabelId, VertexId,
    constants::KEY_COLUMN,
    keys::find_in_key_block,
    segment::{IndexBlock, SectionKind},
};
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
struct Asked<'a, 'k> {
    index: IndexLocation,
    section: Section<'a>,
    run: (&'a Run, bool),
    keys: Vec<(&'k Key, usize)>,
    table: Option<LabelId>,
}

/// A block that may hold keys, and which.
struct AskedBlock<'a, 'k> {
    /// Who asks.
    asked: &'a Asked<'a, 'k>,
    range: Range<u64>,
    keys: Vec<(&'k Key, usize)>,
}

/// The keys of a version: from user keys to vertices and back.
#[derive(Debug, Clone, Copy)]
pub struct Keys<'a> {
    snapshot: &'a Snapshot,
}

impl<'a> Keys<'a> {
    pub(crate) fn new(snapshot: &'a Snapshot) -> Self {
        Self { snapshot }
    }

    /// The vertices with these keys, in their order; `None` where there is none. One wave.
    ///
    /// # Errors
    /// [`EngineError::Invalid`] if a key is not of its label's type; the store's.
    pub fn look_up(
        self,
        keys: &'a [(LabelId, Key)],
        branch: &'a mut Branch,
    ) -> BoxFuture<'a, Result<Vec<Option<VertexId>>, EngineError>> {
        self.look_up_before_rows(keys, BTreeSet::new(), branch)
    }

    /// As [`Self::look_up`], for a caller that then reads rows of `tables` that were found: what that needs is in the same wave, unless
    /// it is known without a read that no key of the label is there.
    pub(crate) fn look_up_before_rows(
        self,
        keys: &'a [(LabelId, Key)],
        tables: BTreeSet<LabelId>,
        branch: &'a mut Branch,
    ) -> BoxFuture<'a, Result<Vec<Option<VertexId>>, EngineError>> {
        Box::pin(async move {
            for (label, key) in keys {
                self.check_key_type(*label, key)?;
            }
            let entries = self.newest_entries(keys, 0, &tables, branch).await?;
            let vertex = |((label, _), entry): (&(LabelId, Key), Option<KeyEntry>)| {
                entry.filter(|entry| !entry.gone).and_then(|entry| VertexId::new(*label, entry.number))
            };
            Ok(keys.iter().zip(entries).map(vertex).collect())
        })
    }

    /// The entry of each key in the newest run that has one, among those that have changes of later versions than
    /// `newer_than`, and with them the ends of `tables`. One wave.
    pub(crate) async fn newest_entries(
        self,
        keys: &[(LabelId, Key)],
        newer_than: u64,
        tables: &BTreeSet<LabelId>,
        branch: &mut Branch,
    ) -> Result<Vec<Option<KeyEntry>>, EngineError> {
        let mut order: Vec<usize> = (0..keys.len()).collect();
        // In order, keys of one block follow each other, and each block is asked for once.
        order.sort_unstable_by(|a, b| keys[*a].cmp(&keys[*b]));
        let of_label = |order: &[usize]| {
            let label = keys[order[0]].0;
            Sought {
                runs: self.key_runs(label, newer_than),
                keys: order.iter().map(|number| (&keys[*number].1, *number)).collect(),
                table: tables.contains(&label).then_some(label),
            }
        };
        let sought: Vec<_> = order.chunk_by(|a, b| keys[*a].0 == keys[*b].0).map(of_label).collect();
        self.entries(&sought, keys.len(), branch).await
    }

    /// The runs with entries for keys of a label, newest first, and whether these are tombstones.
    fn key_runs(self, label: LabelId, newer_than: u64) -> Vec<(&'a Run, bool)> {
        let [keys, tombstones] = [SectionKind::Keys(label), SectionKind::Tombstones(label)];
        let mut runs = self.snapshot.sections().runs_newest_first(&[keys, tombstones]);
        runs.retain(|(_, run)| run.versions.until > newer_than);
        runs.into_iter().map(|(kind, run)| (run, kind == tombstones)).collect()
    }

    /// The entry of each key in the first run that has one; `count` answers. One wave; one before it for roots of
    /// segments that are not in memory, one for index blocks, and one for filters, if those pay.
    pub(crate) async fn entries(
        self,
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
        self.snapshot.sections().make_resident(locations, branch).await?;
        let asked = self.index_blocks_to_ask(sought)?;
        let indexes: Vec<_> = asked.iter().map(|asked| asked.index).collect();
        let mut blocks: Vec<Vec<AskedBlock<'_, '_>>> = indexes.iter().map(|_| Vec::new()).collect();
        let answer = |number: usize, index: &IndexBlock| {
            blocks[number] = asked[number].blocks(index);
            Ok(())
        };
        self.snapshot.sections().each_index_block(&indexes, branch, answer).await?;
        let mut blocks: Vec<_> = blocks.into_iter().flatten().collect();
        let indexed = branch.wave();
        self.snapshot
            .sections()
            .read_filters_that_pay(blocks.iter().map(|block| (block.asked.index, &block.range)), branch)
            .await?;
        let filtered = branch.wave();
        // Filters arrived in a wave of this look-up: now they exclude blocks that were chosen without them.
        if filtered > indexed {
            for AskedBlock { asked, keys, .. } in &mut blocks {
                keys.retain(|(key, _)| asked.section.may_hold(asked.index.number, key));
            }
            blocks.retain(|block| !block.keys.is_empty());
        }
        // All runs are read in one wave, though the newest decides: one after the other they would take a wave each.
        let requests: Vec<_> = blocks.iter().map(|block| block.asked.section.request(block.range.clone())).collect();
        let tables: BTreeSet<LabelId> = blocks.iter().filter_map(|block| block.asked.table).collect();
        let tables: Vec<_> = tables.into_iter().collect();
        let mut for_tables = branch.clone();
        let payloads = async { Ok::<_, EngineError>(self.snapshot.reader().read(&requests, branch).await?) };
        let (payloads, ()) = try_join(payloads, self.snapshot.load_property_metadata(&tables, &mut for_tables)).await?;
        let has_waited = branch.wave() > filtered;
        branch.join([&for_tables]);
        if has_waited {
            self.snapshot
                .sections()
                .read_in_full(blocks.iter().map(|block| block.asked.index.section), branch.context());
        }
        let mut entries: Vec<Option<KeyEntry>> = vec![None; count];
        let mut in_vain = Vec::new();
        for (AskedBlock { asked, keys, .. }, payload) in blocks.iter().zip(payloads) {
            // The first run with an entry for the key decides.
            let open = |(_, number): &&(&Key, usize)| entries[*number].is_none();
            let keys: Vec<_> = keys.iter().filter(open).copied().collect();
            let failed = EngineError::format(self.snapshot.reader().store().location(&asked.section.object.name));
            let found = find_in_key_block(&payload, keys.iter().map(|(key, _)| *key)).map_err(failed)?;
            // The block had none of its keys, which its filter would have shown: enough of such reads pay for a filter.
            if found.is_empty() && !keys.is_empty() {
                in_vain.push(asked.index);
            }
            let (run, gone) = asked.run;
            for (place, number) in found {
                entries[keys[place].1] = Some(KeyEntry { number, gone, until: run.versions.until });
            }
        }
        self.snapshot.sections().read_in_vain(&in_vain, branch.context());
        Ok(entries)
    }

    /// The index blocks that lead to some keys, run by run, and in each in the order of the keys.
    fn index_blocks_to_ask<'k>(self, sought: &[Sought<'k>]) -> Result<Vec<Asked<'a, 'k>>, EngineError>
    where
        'k: 'a,
    {
        let mut asked: Vec<Asked<'a, 'k>> = Vec::new();
        for Sought { runs, keys, table } in sought {
            for run in runs {
                let begin = asked.len();
                for (key, number) in keys {
                    let Some(location) = run.0.location_of_key(key) else { continue };
                    let section = self.snapshot.sections().section(location)?;
                    let Some(index) = section.index_of_key(key) else { continue };
                    let index = IndexLocation { section: location, number: index };
                    // Keys ascend, so only the last index block can be the same.
                    match asked[begin..].last_mut().filter(|asked| asked.index == index) {
                        Some(asked) => asked.keys.push((*key, *number)),
                        None => {
                            let keys = vec![(*key, *number)];
                            asked.push(Asked { index, section, run: *run, keys, table: *table });
                        }
                    }
                }
            }
        }
        Ok(asked)
    }

    fn check_key_type(self, label: LabelId, key: &Key) -> Result<(), EngineError> {
        let known =
            self.snapshot.schema().label(label).ok_or_else(|| EngineError::NotFound("no such vertex label".into()))?;
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
    pub fn of(self, vertices: &'a [VertexId], branch: &'a mut Branch) -> BoxFuture<'a, Result<Vec<Key>, EngineError>> {
        Box::pin(async move {
            let mut by_label: BTreeMap<LabelId, Vec<u64>> = BTreeMap::new();
            for vertex in vertices {
                by_label.entry(vertex.label()).or_default().push(vertex.ordinal());
            }
            let column = [KEY_COLUMN.to_owned()];
            let column = &column;
            let reads = branch.each(&by_label, |(label, ordinals), mut line| async move {
                Ok::<_, EngineError>((self.snapshot.vertex_rows(*label, ordinals, column, &mut line).await?, line))
            });
            let read = reads.await?;
            let mut columns = BTreeMap::new();
            for (label, batch) in by_label.keys().zip(read) {
                let keys = key_column(
                    self.snapshot.schema().label(*label).map(|label| label.key_type),
                    batch.column_by_name(KEY_COLUMN),
                );
                let keys = keys.map_err(EngineError::format(self.snapshot.reader().store().url()))?;
                columns.insert(*label, keys.into_iter());
            }
            // Rows come in the order of the ordinals above, so each label's keys are taken one by one.
            let take = |vertex: &VertexId| columns.get_mut(&vertex.label()).and_then(Iterator::next);
            Ok(vertices.iter().filter_map(take).collect())
        })
    }
}

impl<'k> Asked<'_, 'k> {
    /// The blocks that may hold its keys.
    fn blocks<'a>(&'a self, index: &IndexBlock) -> Vec<AskedBlock<'a, 'k>> {
        let mut blocks: Vec<(usize, AskedBlock<'a, 'k>)> = Vec::new();
        for (key, number) in &self.keys {
            let Some(block) = index.through(key).checked_sub(1) else { continue };
            match blocks.last_mut().filter(|(last, _)| *last == block) {
                Some((_, asked)) => asked.keys.push((*key, *number)),
                None => {
                    let keys = vec![(*key, *number)];
                    blocks.push((block, AskedBlock { asked: self, range: index.range(block), keys }));
                }
            }
        }
        blocks.into_iter().map(|(_, asked)| asked).collect()
    }
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
