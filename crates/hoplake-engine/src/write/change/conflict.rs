//! Conflicts: batches of one delta that name the same item or want the schema differently, and a batch
//! with what was changed after the version that it is based on.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use foldhash::fast::RandomState;
use futures::future::try_join3;
use hoplake_format::{EdgeTypeId, Key, KeyType, Manifest, Schema, VertexId};
use hoplake_storage::Branch;

use super::{
    Name, VertexRef,
    assemble::Assembled,
    resolved::{Pair, Resolved, Vertex, Widening},
};
use crate::{EngineError, Frontier, Snapshot, owner::Owner, write::compaction::spans};

/// A set whose order is never used.
type Set<T> = HashSet<T, RandomState>;

/// A pair of vertices that exist, with the number of their edge label.
type KnownPair = (u32, VertexId, VertexId);

/// The items that batches of one delta name and write, and the batches that wait for the next one.
#[derive(Default)]
pub(super) struct Items {
    /// Vertices that exist, and those that are missing.
    named: Set<VertexId>,
    missing: Set<VertexRef>,
    /// Of these, those that are changed or deleted, and those that are added.
    written: Set<VertexId>,
    added: Set<VertexRef>,
    /// Pairs that batches of the delta write, if any batch asks for them: most replace whatever there was.
    pairs: Set<KnownPair>,
    asks_for_pairs: bool,
    /// Pairs that batches write which wait.
    waiting_pairs: Set<KnownPair>,
    edge_labels: HashMap<Name, u32>,
    /// The keys of vertices that batches of the delta add, and their type, if one has to keep the keys of the graph unique.
    keeps_keys: bool,
    keys: Set<Key>,
    key_type: Option<KeyType>,
    /// The schema as they widen it: another one may want it otherwise.
    schema: Assembled<'static>,
    /// How many there are, and whether one gives a property another type: it goes alone, since values of others were
    /// held against the type before.
    batches: usize,
    converts: bool,
}

impl Items {
    /// The claims of no batch, on a version; `candidates` are all that will be added.
    pub(super) fn on<'a>(manifest: &Manifest, candidates: impl Iterator<Item = &'a Resolved>) -> Self {
        let mut asks_for_pairs = false;
        let mut keeps_keys = false;
        for batch in candidates {
            asks_for_pairs |= batch.batch.base.is_some() || batch.pairs_built_on().next().is_some();
            keeps_keys |= manifest.unique_keys && batch.batch.keep_unique_keys;
        }
        Self { schema: Assembled::nothing(manifest), asks_for_pairs, keeps_keys, ..Self::default() }
    }

    /// Adds a batch, if it goes into one delta with those before. It does not if it names a vertex that another one
    /// writes, or the reverse; if it builds on the edges of a pair that another one writes; or if it wants a property
    /// to be of another type. Then it `waits`, as if it had to anyway, and so does any later one that it has something
    /// in common with: batches of one item keep their order.
    pub(super) fn add(&mut self, batch: &Resolved, waits: bool) -> bool {
        // A pair with a missing vertex is written by the batch that adds the vertex.
        let number_of = |label: &Name| {
            let next = self.edge_labels.len() as u32;
            *self.edge_labels.entry(label.clone()).or_insert(next)
        };
        let labels: Vec<u32> = batch.edge_labels().iter().map(number_of).collect();
        let known = |pair: Pair| match (pair.source, pair.target) {
            (Vertex::Known(source), Vertex::Known(target)) => Some((labels[pair.label as usize], source, target)),
            _ => None,
        };
        // `fits` comes last, since it widens the schema that later batches are compared with.
        let goes = !waits
            && batch.known().iter().flatten().all(|vertex| !self.written.contains(vertex))
            && batch.missing().all(|end| !self.added.contains(&end))
            && batch.existing().all(|(vertex, _)| !self.named.contains(&vertex))
            && batch.added().all(|(end, _)| !self.missing.contains(end))
            && self.has_none_of(batch, known)
            && self.has_none_of_its_keys(batch)
            && self.fits(batch);
        // A batch that waits claims its items as well: a later one that shares any waits behind it.
        self.written.extend(batch.existing().map(|(vertex, _)| vertex));
        self.added.extend(batch.added().map(|(end, _)| end.clone()));
        self.named.extend(batch.known().iter().flatten());
        self.missing.extend(batch.missing());
        if goes {
            if self.asks_for_pairs {
                self.pairs.extend(batch.pairs().filter_map(known));
            }
            if self.keeps_keys {
                self.keys.extend(batch.added().map(|(end, _)| end.key.clone()));
                self.key_type = batch.added().map(|(end, _)| end.key.key_type()).next().or(self.key_type);
            }
            self.batches += 1;
            self.converts |= batch.widens == Widening::Converts;
        } else {
            self.waiting_pairs.extend(batch.pairs().filter_map(known));
        }
        goes
    }

    /// Whether no other batch writes a pair that matters to this one. One with a base is about what it saw then.
    fn has_none_of(&self, batch: &Resolved, known: impl Fn(Pair) -> Option<KnownPair> + Copy) -> bool {
        let none = |pairs: &Set<_>, of: &mut dyn Iterator<Item = Pair>| {
            pairs.is_empty() || of.filter_map(known).all(|pair| !pairs.contains(&pair))
        };
        none(&self.waiting_pairs, &mut batch.pairs())
            && match batch.batch.base {
                Some(_) => none(&self.pairs, &mut batch.pairs()),
                None => none(&self.pairs, &mut batch.pairs_built_on()),
            }
    }

    /// Whether the keys of the graph stay unique with those that others add. A batch that waits is resolved again, on what they added, and
    /// rejected then if it has to keep them unique.
    fn has_none_of_its_keys(&self, batch: &Resolved) -> bool {
        !self.keeps_keys
            || batch.added().all(|(end, _)| {
                !self.keys.contains(&end.key) && self.key_type.is_none_or(|key_type| key_type == end.key.key_type())
            })
    }

    fn fits(&mut self, batch: &Resolved) -> bool {
        match batch.widens {
            _ if self.converts => false,
            Widening::None => true,
            Widening::Adds => self.schema.fits(batch),
            Widening::Converts => self.batches == 0,
        }
    }
}

/// Rejects a batch if one of its items was changed after its base.
pub(super) async fn check_conflicts(
    resolved: &Resolved,
    base: u64,
    newest: &Arc<Snapshot>,
    branch: &mut Branch,
) -> Result<(), EngineError> {
    let version = newest.manifest().version;
    let reset = newest.manifest().reset;
    if base < reset {
        let why = format!("the graph of version {base} was replaced by version {reset}");
        return Err(EngineError::Conflict(why));
    }
    let conflict = |what: String| {
        Err(EngineError::Conflict(format!("{what} was changed between version {base} and version {version}")))
    };
    let compacted = |owner: Owner, name: &str| match spans(newest.manifest(), owner, base) {
        true => Err(EngineError::Conflict(format!(
            "changes of {name} after version {base} were compacted with those before, and cannot be distinguished; \
             look at version {version} and begin again"
        ))),
        false => Ok(()),
    };
    let labelled = |end: &VertexRef| Some((newest.schema().label_id(&end.label)?, end.key.clone()));
    let written: Vec<&VertexRef> = resolved.written().filter(|end| labelled(end).is_some()).collect();
    let keys: Vec<_> = written.iter().filter_map(|end| labelled(end)).collect();
    // Each label once: the look goes through all runs.
    let labels: BTreeMap<_, _> = keys.iter().map(|(label, _)| *label).zip(&written).collect();
    labels.into_iter().try_for_each(|(label, end)| compacted(Owner::Label(label), &end.label))?;
    let pairs_of = pairs_by_type(resolved, newest.schema());
    for edge_type in pairs_of.keys() {
        let label = newest.schema().edge_type(*edge_type).map_or("?", |edge_type| &edge_type.label);
        compacted(Owner::EdgeType(*edge_type), label)?;
    }
    let mut by_label: BTreeMap<_, (Vec<u64>, Vec<&VertexRef>)> = BTreeMap::new();
    for (vertex, end) in resolved.existing() {
        let (ordinals, ends) = by_label.entry(vertex.label()).or_default();
        ordinals.push(vertex.ordinal());
        ends.push(end);
    }
    // The look-ups do not depend on each other: all of them are one wave.
    let mut lines = [branch.clone(), branch.clone(), branch.clone()];
    let [of_keys, of_rows, of_pairs] = &mut lines;
    let no_tables = BTreeSet::new();
    let entries = newest.keys().newest_entries(&keys, base, &no_tables, of_keys);
    let changed = of_rows.each(&by_label, |(label, (ordinals, ends)), mut line| async move {
        let changed = newest.rows().changed(*label, ordinals, base, &mut line).await?;
        let first = ends.iter().zip(changed).find(|(_, changed)| changed.is_some()).map(|(end, _)| *end);
        Ok::<_, EngineError>((first, line))
    });
    let named = of_pairs.each(&pairs_of, |(edge_type, pairs), mut line| async move {
        let sources: Frontier = pairs.iter().map(|(source, _)| *source).collect();
        let named = newest.adjacency().pairs_with_entries(*edge_type, &sources, base, &mut line).await?;
        Ok::<_, EngineError>((first_of_both(pairs, &named), line))
    });
    let (entries, changed, named) = try_join3(entries, changed, named).await?;
    branch.join(&lines);
    if let Some((end, _)) = written.iter().zip(entries).find(|(_, entry)| entry.is_some()) {
        return conflict(format!("vertex {end}"));
    }
    if let Some(end) = changed.into_iter().flatten().next() {
        return conflict(format!("vertex {end}"));
    }
    let first = pairs_of.keys().zip(named).find_map(|(edge_type, pair)| Some((edge_type, pair?)));
    if let Some((edge_type, (source, target))) = first {
        let label = newest.schema().edge_type(*edge_type).map_or("?", |edge_type| &edge_type.label);
        let name = |vertex: VertexId| resolved.name_of(vertex).map_or("?".into(), |end| end.to_string());
        return conflict(format!("the edge {} -{label}-> {}", name(source), name(target)));
    }
    Ok(())
}

/// The pairs that a batch writes, but for those that only go along with a vertex: ascending, by their edge type in the
/// schema.
fn pairs_by_type(resolved: &Resolved, schema: &Schema) -> BTreeMap<EdgeTypeId, Vec<(VertexId, VertexId)>> {
    let mut types: BTreeMap<_, Option<EdgeTypeId>> = BTreeMap::new();
    let mut pairs: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for pair in resolved.pairs().filter(|pair| !resolved.is_deleted_with_vertex(pair)) {
        // No other writer can have changed edges of a vertex that does not exist; that it still does not is checked by its key.
        let (Vertex::Known(source), Vertex::Known(target)) = (pair.source, pair.target) else { continue };
        let ends = (source.label(), target.label());
        let of = *types.entry((pair.label, ends)).or_insert_with(|| {
            let label = resolved.edge_label(pair.label);
            let mut types = schema.edge_types();
            types.find(|(_, it)| (&*it.label, (it.source, it.target)) == (label, ends)).map(|(edge_type, _)| edge_type)
        });
        if let Some(edge_type) = of {
            pairs.entry(edge_type).or_default().push((source, target));
        }
    }
    pairs
}

/// The first item that is in both of two ascending lists. One pass over both, so that what others wrote meanwhile is
/// compared once and not once for each item of the batch.
fn first_of_both<T: Ord + Copy>(a: &[T], b: &[T]) -> Option<T> {
    let mut a = a.iter().peekable();
    let mut b = b.iter().peekable();
    loop {
        match a.peek()?.cmp(b.peek()?) {
            Ordering::Equal => return a.next().copied(),
            Ordering::Less => drop(a.next()),
            Ordering::Greater => drop(b.next()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_lists_are_compared_in_one_pass() {
        assert_eq!(first_of_both(&[1, 3, 5, 7], &[0, 2, 5, 7]), Some(5));
        assert_eq!(first_of_both(&[1, 3], &[0, 2, 4]), None);
        assert_eq!(first_of_both(&[], &[1]), None);
    }
}
