//! Properties that take another type because they have no values any more.
//!
//! A property keeps its type while a vertex or an edge has a value of it. Once the last value is deleted, a change may write values of any
//! type, and the schema has the property with that type from the next version on. Tables of older sorted runs keep their column. All of
//! its values are in rows that newer runs replaced or deleted, so a reader takes the column for nulls.
//!
//! The writer looks for values only if a value of the batch does not fit: it scans for the first one that the batch neither deletes nor
//! replaces, on the version on which it builds. If another writer publishes first, the batch is resolved again on that version, and the
//! scan is repeated. A batch that changes a type has a delta of its own. So no version has values of both types.
//!
//! A scan of vertices skips row groups without a value by their statistics. A scan of edges cannot, and needs the keys of all vertices at
//! their targets. So that one wrong value does not hold up other commits, what has more than [`SCANNED_MAX`] vertices or edges keeps its
//! types.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use arrow_array::Array;
use hoplake_format::{EdgeTypeId, Key, LabelId, VertexId, VertexLabel};
use hoplake_storage::Branch;

use super::{
    Name,
    resolved::{Resolved, Vertex},
};
use crate::{Condition, EdgeQuery, EngineError, Snapshot, VertexQuery, owner::Owner, read::keys::key_column};

/// Properties of labels and edge types, by name.
pub(super) type OfOwners = BTreeSet<(Owner, Name)>;

/// The most vertices or edges, deleted ones included, that are scanned for a value: some seconds.
const SCANNED_MAX: u64 = 1_000_000;

/// The properties of one owner that may take another type.
pub(super) struct Free<'a> {
    pub(super) owner: Owner,
    pub(super) of_owners: &'a mut OfOwners,
    /// Whether values are looked at for the last time.
    pub(super) is_last: bool,
}

impl Free<'_> {
    /// Whether a property may take another type; once.
    pub(super) fn take(&mut self, name: &Name) -> bool {
        !self.of_owners.is_empty() && self.of_owners.remove(&(self.owner, name.clone()))
    }

    /// Whether an empty list waits for another value to show the type that the property takes.
    pub(super) fn waits(&self, name: &Name) -> bool {
        !self.is_last && !self.of_owners.is_empty() && self.of_owners.contains(&(self.owner, name.clone()))
    }
}

/// Whether a property may take another type: it has no values, nor an index, whose items have the form of the type that the property had
/// when it was built.
pub(super) async fn is_free(
    property: &(Owner, Name),
    resolved: &Resolved,
    snapshot: &Arc<Snapshot>,
    branch: &mut Branch,
) -> Result<bool, EngineError> {
    if !is_without_values(property, resolved, snapshot, branch).await? {
        return Ok(false);
    }
    let (Owner::Label(label), name) = property else { return Ok(true) };
    if snapshot.manifest().indexes.iter().any(|index| index.label == *label && index.property == **name) {
        let label = snapshot.schema().label(*label).map_or("?", |label| &label.name);
        return Err(EngineError::Invalid(format!(
            "property {name} of {label} has no values, but keeps its type while it has an index: drop the index {label}.{name}"
        )));
    }
    Ok(true)
}

/// Whether no value of a property remains after a batch, apart from those that the batch writes. Where there is too much to look at,
/// values are taken to remain.
pub(super) async fn is_without_values(
    (owner, name): &(Owner, Name),
    resolved: &Resolved,
    snapshot: &Arc<Snapshot>,
    branch: &mut Branch,
) -> Result<bool, EngineError> {
    // One that the batch introduces has the type of its first value.
    let schema = snapshot.schema();
    let known = match owner {
        Owner::Label(label) => schema.label(*label).map(|label| &label.properties),
        Owner::EdgeType(edge_type) => schema.edge_type(*edge_type).map(|edge_type| &edge_type.properties),
        Owner::Index(_) => None,
    };
    if !known.is_some_and(|known| known.iter().any(|property| property.name == name.as_str())) {
        return Ok(false);
    }
    match owner {
        Owner::Label(label) => Ok(!has_vertex_value(*label, name, resolved, snapshot, branch).await?),
        Owner::EdgeType(edge_type) => Ok(!has_edge_value(*edge_type, name, resolved, snapshot, branch).await?),
        Owner::Index(_) => Ok(false),
    }
}

async fn has_vertex_value(
    label: LabelId,
    name: &Name,
    resolved: &Resolved,
    snapshot: &Arc<Snapshot>,
    branch: &mut Branch,
) -> Result<bool, EngineError> {
    let manifest = snapshot.manifest();
    match manifest.vertex_counts.get(usize::from(label.0)) {
        Some(count) if count.ordinals > SCANNED_MAX => return Ok(true),
        Some(count) if count.live() > 0 => {}
        _ => return Ok(false),
    }
    let condition = Some(Condition::is_null(name.as_str()).negated());
    let query = VertexQuery { label, condition, columns: Vec::new(), wanted: Some(1) };
    let mut scan = snapshot.scan_vertices(query, branch).await?;
    while let Some(found) = scan.next(branch).await? {
        // The whole row of a changed vertex is part of the batch, so its values are checked with the batch.
        let is_covered = |ordinal: u64| {
            VertexId::new(label, ordinal)
                .is_some_and(|vertex| resolved.gone.contains_key(&vertex) || resolved.changed.contains_key(&vertex))
        };
        if !found.ordinals().all(is_covered) {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn has_edge_value(
    edge_type: EdgeTypeId,
    name: &Name,
    resolved: &Resolved,
    snapshot: &Arc<Snapshot>,
    branch: &mut Branch,
) -> Result<bool, EngineError> {
    let manifest = snapshot.manifest();
    let schema = snapshot.schema();
    let Some(described) = schema.edge_type(edge_type) else { return Ok(true) };
    let ends = [described.source, described.target];
    let counts = ends.map(|end| manifest.vertex_counts.get(usize::from(end.0)).copied().unwrap_or_default());
    let edges = manifest.edge_counts.get(usize::from(edge_type.0)).copied().unwrap_or(0);
    if edges == 0 || counts.iter().any(|count| count.live() == 0) {
        return Ok(false);
    }
    if edges > SCANNED_MAX || counts.iter().any(|count| count.ordinals > SCANNED_MAX) {
        return Ok(true);
    }
    let [Some(source), Some(target)] = ends.map(|end| schema.label(end)) else { return Ok(true) };
    let covered = Covered::of(&described.label, ends, resolved);
    let mut scan = snapshot.scan_edges(EdgeQuery { edge_type, columns: vec![name.to_string()] }, branch).await?;
    while let Some(found) = scan.next(branch).await? {
        let keys = |label: &VertexLabel, column: usize| {
            key_column(Some(label.key_type), found.columns().get(column))
                .map_err(|source| EngineError::Format { location: format!("the keys of {}", label.name), source })
        };
        let sources = keys(source, 0)?;
        let targets = keys(target, 1)?;
        let values = found.column(2);
        let stays = |row: usize| values.is_valid(row) && !covered.has(&sources[row], &targets[row]);
        if (0..found.num_rows()).any(stays) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Edges of a type that a batch deletes or writes again.
struct Covered {
    /// Pairs whose edges it writes.
    pairs: HashSet<(Key, Key)>,
    /// Vertices at both ends that lose all their edges.
    without_edges: [HashSet<Key>; 2],
}

impl Covered {
    fn of(label: &str, ends: [LabelId; 2], resolved: &Resolved) -> Self {
        let numbers = (0u32..).zip(resolved.known());
        let numbers: HashMap<VertexId, u32> = numbers.filter_map(|(number, known)| Some(((*known)?, number))).collect();
        let key = |vertex: VertexId| numbers.get(&vertex).map(|number| resolved.end(*number).key);
        let known = |vertex: Vertex| match vertex {
            Vertex::Known(vertex) => Some(vertex),
            Vertex::New(_) => None,
        };
        let pairs = resolved.pairs().filter(|pair| resolved.edge_label(pair.label) == label);
        let pairs = pairs.filter_map(|pair| {
            let both = [known(pair.source)?, known(pair.target)?];
            // A pair of a deleted vertex has another end that the batch does not name; it is found by the deleted one.
            (both.map(VertexId::label) == ends).then_some((key(both[0])?, key(both[1])?))
        });
        let without_edges = |end: LabelId| {
            let vertices = resolved.without_edges().filter(|vertex| vertex.label() == end);
            vertices.filter_map(&key).collect()
        };
        Self { pairs: pairs.collect(), without_edges: ends.map(without_edges) }
    }

    fn has(&self, source: &Key, target: &Key) -> bool {
        self.without_edges[0].contains(source)
            || self.without_edges[1].contains(target)
            || (!self.pairs.is_empty() && self.pairs.contains(&(source.clone(), target.clone())))
    }
}
