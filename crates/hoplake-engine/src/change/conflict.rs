//! What does not go together: batches of one level that name the same item or want the schema differently, and a batch
//! with what was changed after the version that it is based on.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    sync::Arc,
};

use foldhash::fast::RandomState;
use hoplake_format::{Manifest, VertexId};
use hoplake_storage::Branch;

use super::{
    End, Name,
    assemble::Assembled,
    resolve::{Pair, Resolved, Vertex, Widening, number_of},
};
use crate::{
    EngineError, Frontier, Snapshot,
    compaction::{Owner, spans},
};

/// A set whose order is never asked for.
type Set<T> = HashSet<T, RandomState>;

/// What batches of one level name and write.
#[derive(Default)]
pub(super) struct Items {
    /// Vertices that exist, and those that are missing.
    named: Set<VertexId>,
    missing: Set<End>,
    /// Of these, those that are changed or deleted, and those that are added.
    written: Set<VertexId>,
    added: Set<End>,
    /// Pairs of vertices that exist, with the number of their edge label.
    pairs: Set<(u32, VertexId, VertexId)>,
    edge_labels: Vec<Name>,
    /// The schema as they widen it: another one may want it otherwise.
    schema: Assembled<'static>,
    /// How many there are, and whether one gives a property another type: it goes alone, since values of others were held
    /// against the type before.
    batches: usize,
    converts: bool,
}

impl Items {
    /// Of no batch, on a version.
    pub(super) fn on(manifest: &Manifest) -> Self {
        Self { schema: Assembled::nothing(manifest), ..Self::default() }
    }

    /// Adds a batch, unless it names what another one writes, or the reverse, or wants a property to be of another type.
    pub(super) fn add(&mut self, batch: &Resolved) -> bool {
        // A pair with a vertex that is missing is written by whoever adds that.
        let labels: Vec<_> = batch.edge_labels().iter().map(|label| number_of(&mut self.edge_labels, label)).collect();
        let known = |pair: Pair| match (pair.source, pair.target) {
            (Vertex::Known(source), Vertex::Known(target)) => Some((labels[pair.label as usize], source, target)),
            _ => None,
        };
        let apart = batch.known().iter().flatten().all(|vertex| !self.written.contains(vertex))
            && batch.missing().all(|end| !self.added.contains(end))
            && batch.existing().all(|(vertex, _)| !self.named.contains(&vertex))
            && batch.added.keys().all(|end| !self.missing.contains(end))
            && batch.pairs().filter_map(known).all(|pair| !self.pairs.contains(&pair))
            && self.fits(batch);
        if apart {
            self.written.extend(batch.existing().map(|(vertex, _)| vertex));
            self.added.extend(batch.added.keys().cloned());
            self.named.extend(batch.known().iter().flatten());
            self.missing.extend(batch.missing().cloned());
            self.pairs.extend(batch.pairs().filter_map(known));
            self.batches += 1;
            self.converts |= batch.widens == Widening::Converts;
        }
        apart
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

/// Refuses a batch of which an item was changed after its base.
pub(super) async fn check_conflicts(
    resolved: &Resolved,
    base: u64,
    newest: &Arc<Snapshot>,
    branch: &mut Branch,
) -> Result<(), EngineError> {
    let (version, reset) = (newest.manifest().version, newest.manifest().reset);
    if base < reset {
        let why = format!("the graph of version {base} was replaced by version {reset}");
        return Err(EngineError::Conflict(why));
    }
    let conflict = |what: String| {
        Err(EngineError::Conflict(format!("{what} was changed between version {base} and version {version}")))
    };
    let compacted = |owner: Owner, name: &str| match spans(newest.manifest(), owner, base) {
        true => Err(EngineError::Conflict(format!(
            "changes of {name} after version {base} were compacted with those before, and cannot be told apart; \
             look at version {version} and begin again"
        ))),
        false => Ok(()),
    };
    let labelled = |end: &End| Some((newest.schema().label_id(&end.label)?, end.key.clone()));
    let written: Vec<&End> = resolved.written().filter(|end| labelled(end).is_some()).collect();
    let keys: Vec<_> = written.iter().filter_map(|end| labelled(end)).collect();
    keys.iter().zip(&written).try_for_each(|((label, _), end)| compacted(Owner::Label(*label), &end.label))?;
    // What is looked at does not depend on what was found: all of it is one wave.
    let from = branch.clone();
    let mentions = newest.key_mentions(&keys, base, branch).await?;
    if let Some((end, _)) = written.iter().zip(mentions).find(|(_, mention)| mention.is_some()) {
        return conflict(format!("vertex {end}"));
    }
    let mut by_label: BTreeMap<_, (Vec<u64>, Vec<&End>)> = BTreeMap::new();
    for (vertex, end) in resolved.existing() {
        let (ordinals, ends) = by_label.entry(vertex.label()).or_default();
        ordinals.push(vertex.ordinal());
        ends.push(end);
    }
    let mut line = from.clone();
    let changed = line.each(&by_label, |(label, (ordinals, ends)), mut line| async move {
        let changed = newest.changed_rows(*label, ordinals, base, &mut line).await?;
        let first = ends.iter().zip(changed).find(|(_, changed)| changed.is_some()).map(|(end, _)| *end);
        Ok::<_, EngineError>((first, line))
    });
    let changed = changed.await?;
    branch.join([&line]);
    if let Some(end) = changed.into_iter().flatten().next() {
        return conflict(format!("vertex {end}"));
    }
    let mut by_type: BTreeMap<_, BTreeSet<(VertexId, VertexId)>> = BTreeMap::new();
    for pair in resolved.pairs().filter(|pair| !resolved.goes_along(pair)) {
        let (Vertex::Known(source), Vertex::Known(target)) = (pair.source, pair.target) else { continue };
        let label = resolved.edge_label(pair.label);
        let of = newest
            .schema()
            .edge_types()
            .find(|(_, it)| (&*it.label, it.source, it.target) == (label, source.label(), target.label()));
        if let Some((edge_type, _)) = of {
            compacted(Owner::EdgeType(edge_type), label)?;
            by_type.entry(edge_type).or_default().insert((source, target));
        }
    }
    for (edge_type, pairs) in by_type {
        let sources: Frontier = pairs.iter().map(|(source, _)| *source).collect();
        let mut line = from.clone();
        let mentioned = newest.mentioned_pairs(edge_type, &sources, base, &mut line).await?;
        branch.join([&line]);
        if let Some((source, target)) = pairs.iter().find(|pair| mentioned.contains(pair)) {
            let label = newest.schema().edge_type(edge_type).map_or("?", |edge_type| &edge_type.label);
            let name = |vertex: &VertexId| resolved.name_of(*vertex).map_or("?".into(), End::to_string);
            return conflict(format!("the edge {} -{label}-> {}", name(source), name(target)));
        }
    }
    Ok(())
}
