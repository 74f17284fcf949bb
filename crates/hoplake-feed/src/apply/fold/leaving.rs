//! Vertices that leave: deleted, hidden by their condition, truncated, or moved to another key.
//!
//! What happens to an edge at such a vertex depends on whose row says that there is an edge, and on what the database does to that row:
//!
//! | the edge is of | a row is deleted | its key changes |
//! | --- | --- | --- |
//! | the vertex's own foreign key | it goes | it moves |
//! | another's foreign key, whose rule the log does not show | its rule: that vertex goes, or the edge does | its rule: it moves, or goes |
//! | another's foreign key that the database declares | it goes: that row's own change is in the log | the same |
//! | another's foreign key that nothing declares, or to a hidden row | it waits | it waits |
//! | a row of its own | as the two above | as the two above |
//! | no row: others wrote it | it goes | it moves |
//!
//! That is so if the log says that the database checked foreign keys. Where it does not, as PostgreSQL's never does of a row that leaves,
//! no rule is followed, and an edge of another's foreign key waits: that row's own change, if there is one, says what becomes of it.

use std::collections::BTreeMap;

use hoplake::{Key, Name, Properties, Value, VertexRef};

use super::{EdgeId, EdgeTypeName, EdgesOf, Fold, Owner, WaitingEdge};
use crate::{
    Missing, Rule, TableName,
    mapping::{EdgeMap, Entry, ForeignKeyMap, Item, Rules, VertexMap},
    value,
};

/// Why a vertex leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leaves {
    /// Its row is gone.
    Deleted,
    /// Its row is there, and does not match the condition.
    Hidden,
}

/// An edge at a vertex that leaves, and whose it is.
enum EdgeRow<'a> {
    /// The vertex's own foreign key.
    Own,
    /// The foreign key of the vertex at the other end.
    Others(&'a Entry, &'a VertexMap, &'a ForeignKeyMap),
    /// A row of its own.
    Row(&'a EdgeMap, usize),
    /// Others wrote it.
    Unowned,
}

impl<'a> Fold<'a> {
    /// The row of a vertex is gone, and with it what the database deletes along.
    pub(super) fn delete_row(&mut self, vertex: &VertexRef) {
        let mut leaving = vec![vertex.clone()];
        while let Some(vertex) = leaving.pop() {
            let mapping = self.mapping;
            for (entry, map, key) in mapping.foreign_keys_to(&vertex.label) {
                let Some(Rules { on_delete, .. }) = self.rules(key.rules) else { continue };
                if on_delete == Rule::Restrict {
                    continue;
                }
                for child in self.named_by(map, key, &vertex) {
                    match on_delete {
                        Rule::Cascade => leaving.push(child),
                        _ => self.set_columns(entry, key, &child, None),
                    }
                }
            }
            self.leave(&vertex, Leaves::Deleted);
        }
    }

    /// The row of a vertex no longer matches its condition.
    pub(super) fn hide_vertex(&mut self, vertex: &VertexRef) {
        self.leave(vertex, Leaves::Hidden);
    }

    /// The vertices whose foreign key names a vertex, also if it is not there.
    fn named_by(&mut self, map: &'a VertexMap, key: &'a ForeignKeyMap, vertex: &VertexRef) -> Vec<VertexRef> {
        let edges =
            self.current_edges(edges_of_key(map, key, vertex)).into_keys().map(|id| id.other_end(vertex).clone());
        let mut vertices: Vec<_> = edges.collect();
        let waiting = self.waiting.at(vertex).into_iter().filter(|(id, _)| is_of_key(map, key, id, vertex));
        vertices.extend(waiting.map(|(id, _)| id.other_end(vertex).clone()));
        vertices
    }

    fn leave(&mut self, vertex: &VertexRef, why: Leaves) {
        let mapping = self.mapping;
        let mut stays = Vec::new();
        for (_, map, key) in mapping.foreign_keys_to(&vertex.label) {
            // The rule has decided on rows that name a deleted one.
            let is_undecided = why == Leaves::Hidden || self.rules(key.rules).is_none();
            let Some(missing) = self.missing(key.missing).filter(|_| is_undecided) else { continue };
            let owner = if key.is_outgoing { Owner::Source } else { Owner::Target };
            // Its own row, which may name itself, does not say so any more.
            let edges = self.current_edges(edges_of_key(map, key, vertex)).into_iter();
            let of_others = edges.filter(|(id, _)| id.source != id.target);
            stays.extend(of_others.map(|edge| (edge, missing, owner)));
        }
        for edge in mapping.edges_at(&vertex.label) {
            for number in 0..2 {
                let end = &edge.ends[number];
                let is_at = end.label == vertex.label;
                let is_undecided = why == Leaves::Hidden || self.rules(end.rules).is_none();
                let Some(missing) = self.missing(end.missing).filter(|_| is_at && is_undecided) else { continue };
                stays.extend(
                    self.current_edges(edges_of_end(edge, number, vertex))
                        .into_iter()
                        .map(|edge| (edge, missing, Owner::Row)),
                );
            }
        }
        self.forget_waiting(vertex, why);
        self.overlay.delete_vertex(vertex);
        for ((id, properties), missing, owner) in stays {
            let properties: Properties = properties.into_iter().next().unwrap_or_default();
            match missing {
                Missing::Wait => self.waiting.insert(id, WaitingEdge { properties, owner }, None),
                Missing::Stub => {
                    self.overlay.upsert_vertex(vertex, Properties::new());
                    self.overlay.upsert_edge(id, properties);
                }
                Missing::Error => {}
            }
        }
    }

    /// Edges that waited and are of a vertex that leaves, or of a row that goes with it.
    fn forget_waiting(&mut self, vertex: &VertexRef, why: Leaves) {
        let mapping = self.mapping;
        for (id, edge) in self.waiting.at(vertex) {
            let is_own = edge.owner(&id) == Some(vertex);
            let is_deleted_with_vertex = why == Leaves::Deleted
                && match self.whose(mapping.vertices(&vertex.label).map(|(_, map)| map), &id, vertex) {
                    EdgeRow::Others(_, _, key) => self.rules(key.rules).is_some(),
                    EdgeRow::Row(edge, number) => self.rules(edge.ends[number].rules).is_some(),
                    EdgeRow::Own | EdgeRow::Unowned => false,
                };
            if is_own || is_deleted_with_vertex {
                self.waiting.remove(&id);
            }
        }
    }

    /// EdgeRow row says that there is an edge at a vertex.
    fn whose(&self, map: Option<&'a VertexMap>, id: &EdgeId, vertex: &VertexRef) -> EdgeRow<'a> {
        let mapping = self.mapping;
        if map.is_some_and(|map| map.edges.iter().any(|key| is_own(map, key, id, vertex))) {
            return EdgeRow::Own;
        }
        for (entry, map, key) in mapping.foreign_keys_to(&vertex.label) {
            if is_of_key(map, key, id, vertex) {
                return EdgeRow::Others(entry, map, key);
            }
        }
        for edge in mapping.edges_at(&vertex.label) {
            for number in 0..2 {
                let (near, far) = if number == 0 { (&id.source, &id.target) } else { (&id.target, &id.source) };
                let fits = edge.label == id.label
                    && edge.ends[number].label == near.label
                    && edge.ends[1 - number].label == far.label;
                if fits && near == vertex {
                    return EdgeRow::Row(edge, number);
                }
            }
        }
        EdgeRow::Unowned
    }

    /// A vertex has another key: what is not decided by its row moves.
    pub(super) fn move_vertex(&mut self, map: &'a VertexMap, old: &VertexRef, new: &VertexRef) {
        let (was_there, properties, edges) = self.whole(old);
        let mut children: Vec<(&'a Entry, &'a VertexMap, &'a ForeignKeyMap, VertexRef)> = Vec::new();
        let mut moved: Vec<(EdgeId, Vec<Properties>)> = Vec::new();
        let mut stays: Vec<(EdgeId, Properties, Missing, Owner)> = Vec::new();
        for (id, properties) in edges {
            let (rules, missing, owner) = match self.whose(Some(map), &id, old) {
                EdgeRow::Own | EdgeRow::Unowned => {
                    moved.push((id.with_end(old, new), properties));
                    continue;
                }
                EdgeRow::Others(entry, child, key) => {
                    let owner = if key.is_outgoing { Owner::Source } else { Owner::Target };
                    if self.rules(key.rules).is_some_and(|rules| rules.on_update != Rule::Restrict) {
                        children.push((entry, child, key, id.other_end(old).clone()));
                    }
                    (self.rules(key.rules), self.missing(key.missing), owner)
                }
                EdgeRow::Row(edge, number) => {
                    let end = &edge.ends[number];
                    (self.rules(end.rules), self.missing(end.missing), Owner::Row)
                }
            };
            match (rules, missing) {
                (Some(Rules { on_update: Rule::Cascade, .. }), _) => moved.push((id.with_end(old, new), properties)),
                (None, Some(missing)) => {
                    stays.push((id, properties.into_iter().next().unwrap_or_default(), missing, owner))
                }
                _ => {}
            }
        }
        self.move_waiting(map, old, new, &mut children);
        self.overlay.delete_vertex(old);
        if was_there {
            self.overlay.upsert_vertex(new, properties);
        }
        for (id, properties) in moved {
            properties.into_iter().for_each(|properties| self.overlay.add_edge(id.clone(), properties));
        }
        for (id, properties, missing, owner) in stays {
            if missing == Missing::Stub {
                self.overlay.upsert_vertex(old, Properties::new());
                self.overlay.upsert_edge(id, properties);
            } else if missing == Missing::Wait {
                self.waiting.insert(id, WaitingEdge { properties, owner }, None);
            }
        }
        for (entry, child_map, key, child) in children {
            let follows = key.rules.is_some_and(|rules| rules.on_update == Rule::Cascade);
            self.set_columns(entry, key, &child, follows.then_some(new));
            if follows && let Some(key) = rekeyed(child_map, key, &child, new) {
                self.move_vertex(child_map, &child, &VertexRef { label: child.label.clone(), key });
            }
        }
    }

    /// Whether a vertex is there by now, and its properties and edges.
    fn whole(&mut self, vertex: &VertexRef) -> (bool, Properties, BTreeMap<EdgeId, Vec<Properties>>) {
        let base = if self.overlay.is_reset(vertex) { None } else { self.asking.whole(vertex) };
        let mut properties = base.map_or_else(Properties::new, |base| base.properties.clone());
        let state = self.overlay.vertices.get(vertex);
        let exists = state.map_or(base.is_some(), |state| state.exists);
        if let Some(state) = state {
            properties.extend(state.properties.clone());
        }
        let edges = self.overlay.edges_of(vertex, base.map_or(&[], |base| base.edges.as_slice()), |_| true);
        (exists, properties, edges)
    }

    /// Edges that wait at a vertex which gets another key.
    fn move_waiting(
        &mut self,
        map: &'a VertexMap,
        old: &VertexRef,
        new: &VertexRef,
        children: &mut Vec<(&'a Entry, &'a VertexMap, &'a ForeignKeyMap, VertexRef)>,
    ) {
        for (id, edge) in self.waiting.at(old) {
            let follows = match self.whose(Some(map), &id, old) {
                EdgeRow::Own => true,
                EdgeRow::Others(entry, child, key) => {
                    let follows = self.rules(key.rules).is_some_and(|rules| rules.on_update == Rule::Cascade);
                    if follows {
                        children.push((entry, child, key, id.other_end(old).clone()));
                    }
                    follows
                }
                EdgeRow::Row(edge, number) => {
                    self.rules(edge.ends[number].rules).is_some_and(|rules| rules.on_update == Rule::Cascade)
                }
                EdgeRow::Unowned => false,
            };
            if follows {
                let origin = self.waiting.origin(&id);
                self.waiting.remove(&id);
                self.waiting.insert(id.with_end(old, new), edge, origin);
            }
        }
    }

    /// A foreign key's columns change without the log: the properties that have them do.
    fn set_columns(&mut self, entry: &'a Entry, key: &'a ForeignKeyMap, vertex: &VertexRef, to: Option<&VertexRef>) {
        let mut changed = Vec::new();
        for property in &entry.properties {
            let Some(number) = key.key.columns.iter().position(|column| *column == property.column) else { continue };
            let value = to.map_or(Value::Null, |to| part(&to.key, key.key.columns.len(), number));
            changed.push((property.property.clone(), value::converted(&value, property.kind).unwrap_or(Value::Null)));
        }
        if !changed.is_empty() {
            self.overlay.amend_vertex(vertex, changed.into_iter().collect());
        }
    }

    /// All rows of a table are gone.
    pub(super) fn truncate(&mut self, table: &TableName) {
        let mapping = self.mapping;
        // A database that does not log cascades truncates a table that others name only without checks.
        self.checks_keys = mapping.logs_cascades;
        for (_, entry) in mapping.entries_of(table) {
            match &entry.item {
                Item::Vertex(map) => {
                    let mut all: Vec<_> = self.asking.vertices(&map.label).to_vec();
                    let added = self
                        .overlay
                        .vertices
                        .iter()
                        .filter(|(vertex, state)| vertex.label == map.label && state.exists);
                    all.extend(added.map(|(vertex, _)| vertex.clone()));
                    all.sort_unstable();
                    all.dedup();
                    all.iter().for_each(|vertex| self.leave(vertex, Leaves::Deleted));
                }
                Item::Edge(map) => {
                    let source = &map.ends[0].label;
                    let target = &map.ends[1].label;
                    let is_meant =
                        |id: &EdgeId| (&id.label, &id.source.label, &id.target.label) == (&map.label, source, target);
                    let name =
                        EdgeTypeName { label: map.label.clone(), source: source.clone(), target: target.clone() };
                    let mut all = self.asking.edge_type(name).to_vec();
                    all.extend(self.overlay.edges.keys().filter(|id| is_meant(id)).cloned());
                    all.extend(self.waiting.of_type(is_meant));
                    all.into_iter().for_each(|id| self.drop_edge(id));
                }
            }
        }
    }
}

/// The edges of others' foreign key at a vertex.
fn edges_of_key(map: &VertexMap, key: &ForeignKeyMap, vertex: &VertexRef) -> EdgesOf {
    let label = key.label.clone();
    let other = map.label.clone();
    EdgesOf { vertex: vertex.clone(), label, is_outgoing: !key.is_outgoing, other }
}

/// The edges of rows of their own at a vertex, which is this end of them.
fn edges_of_end(edge: &EdgeMap, number: usize, vertex: &VertexRef) -> EdgesOf {
    let label = edge.label.clone();
    let other = edge.ends[1 - number].label.clone();
    EdgesOf { vertex: vertex.clone(), label, is_outgoing: number == 0, other }
}

/// Whether an edge is one of a vertex's own foreign key.
fn is_own(map: &VertexMap, key: &ForeignKeyMap, id: &EdgeId, vertex: &VertexRef) -> bool {
    let (near, far) = if key.is_outgoing { (&id.source, &id.target) } else { (&id.target, &id.source) };
    key.label == id.label && near == vertex && near.label == map.label && far.label == key.other
}

/// Whether an edge is one of others' foreign key to a vertex.
fn is_of_key(map: &VertexMap, key: &ForeignKeyMap, id: &EdgeId, vertex: &VertexRef) -> bool {
    let (near, far) = if key.is_outgoing { (&id.source, &id.target) } else { (&id.target, &id.source) };
    key.label == id.label && far == vertex && near.label == map.label && far.label == key.other
}

/// The key of a vertex whose foreign key follows another vertex to its new key, if its columns are in it.
fn rekeyed(map: &VertexMap, key: &ForeignKeyMap, vertex: &VertexRef, new: &VertexRef) -> Option<Key> {
    let columns = &map.key.columns;
    let mut parts: Vec<Value> = (0..columns.len()).map(|number| part(&vertex.key, columns.len(), number)).collect();
    let mut changes = false;
    for (number, column) in columns.iter().enumerate() {
        if let Some(of_new) = key.key.columns.iter().position(|name: &Name| name == column) {
            parts[number] = part(&new.key, key.key.columns.len(), of_new);
            changes = true;
        }
    }
    let key = value::key(&parts, map.key.key_type).ok().filter(|_| changes)?;
    (key != vertex.key).then_some(key)
}

/// The value of a column of a key.
fn part(key: &Key, columns: usize, number: usize) -> Value {
    match key {
        Key::String(key) if columns > 1 => {
            let part = value::parts(key).into_iter().nth(number);
            part.map_or(Value::Null, Value::String)
        }
        key => value::of_key(key),
    }
}
