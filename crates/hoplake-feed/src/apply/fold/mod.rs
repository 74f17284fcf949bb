//! Row changes become changes of the graph.
//!
//! [`fold`] is a pure function of the transactions of a batch, of what is known of the graph before it, and of the edges that wait.
//! It applies one row change after the other to an overlay of the graph; what remains at the end is the batch. Where a change
//! depends on something that is not known, it goes on as if there were nothing, and returns a [`Need`]. The caller looks all needs
//! up in one wave and folds again, until there are none: once more for each table in a row of cascades, and twice at most otherwise.
//!
//! ```text
//! mod        images of rows -> changes of vertices and edges
//! leaving    vertices that are deleted or get another key, and what goes or moves with them
//! overlay    vertices and edges as they will be
//! waiting    edges to vertices that are not there
//! known      needs, and what was looked up
//! render     the overlay as a batch
//! correcting the same for what is not as the tables say
//! ```

mod correcting;
mod known;
mod leaving;
mod overlay;
mod render;
#[cfg(test)]
mod tests;
mod waiting;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use hoplake::{EdgeKey, Properties, VertexRef};

pub(crate) use self::correcting::{Correction, correct};
use self::{known::Asking, waiting::WaitingOverlay};
pub use self::{
    known::{EdgeTypeName, EdgesOf, KnownEdge, KnownVertex, LookupResults, Need},
    overlay::{EdgeId, EdgeState, Origin, Overlay, VertexState},
    render::{Rendered, render},
    waiting::{Owner, WaitingChanges, WaitingEdge, WaitingEdges},
};
use crate::{
    Change, Columns, FeedError, Images, Missing, Row, RowChange, TableName, Transaction,
    mapping::{
        BadRow, EdgeImage, EdgeMap, Entry, ForeignKeyMap, Image, Item, Mapping, Plan, Rules, Target, VertexImage,
        VertexMap,
    },
};

/// What comes of a batch of transactions.
#[derive(Debug, Default)]
pub struct Folded {
    /// What has to be known first. Unless there is none, the rest is not yet right.
    pub needs: BTreeSet<Need>,
    /// Vertices and edges as they will be.
    pub overlay: Overlay,
    /// What changes of the edges that wait.
    pub waiting: WaitingChanges,
    /// Rows that cannot be applied.
    pub failures: Vec<Failure>,
    /// Changes that were set aside, in their order.
    pub set_aside: Vec<SetAside>,
    /// Tables that lost all their rows: what was set aside of them before is of no use.
    pub truncated: BTreeSet<TableName>,
}

/// A change that was set aside for one entry: it failed, or comes after one of the same name that did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetAside {
    /// The change.
    pub origin: Origin,
    /// The names of what the row was and is, as far as it has them.
    pub names: Vec<String>,
    /// Why it failed; nothing of one that comes after another.
    pub why: Option<String>,
}

/// What is not applied.
#[derive(Debug, Clone, Default)]
pub struct Aside {
    /// Names of which an earlier change was set aside.
    pub held: BTreeSet<String>,
    /// Changes of the batch that fail, and why.
    pub failing: BTreeMap<Origin, String>,
    /// Changes that are not for an entry.
    pub passed_over: BTreeSet<Origin>,
}

/// A row that cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The change.
    pub origin: Origin,
    /// Why, as a sentence.
    pub why: String,
}

/// Where columns are in the versions of tables, for as long as a feed runs.
#[derive(Debug, Default)]
pub struct Plans {
    by_table: HashMap<TableName, TablePlans>,
}

/// A version of a table's columns, and the plan of each entry that is about it.
type TablePlans = (Arc<Columns>, Vec<(usize, Plan)>);

impl Plans {
    /// The plans of a version of a table, an entry of the mapping each.
    pub(crate) fn of(&mut self, mapping: &Mapping, columns: &Arc<Columns>) -> Result<&[(usize, Plan)], FeedError> {
        let known = self.by_table.get(&columns.table);
        if !known.is_some_and(|(version, _)| Arc::ptr_eq(version, columns) || version == columns) {
            let entries = mapping.entries_of(&columns.table);
            let plans = entries.map(|(number, entry)| Ok((number, Plan::new(entry, columns)?)));
            let plans = plans.collect::<Result<Vec<_>, FeedError>>()?;
            self.by_table.insert(columns.table.clone(), (columns.clone(), plans));
        }
        Ok(self.by_table.get(&columns.table).map(|(_, plans)| plans.as_slice()).unwrap_or_default())
    }
}

/// Applies transactions, one after the other.
///
/// # Errors
/// [`Invalid`](crate::FeedErrorKind::Invalid) if a table no longer has a column that the mapping names.
pub fn fold(
    mapping: &Mapping,
    plans: &mut Plans,
    transactions: &[Transaction],
    known: &LookupResults,
    waiting: &WaitingEdges,
    aside: &Aside,
) -> Result<Folded, FeedError> {
    let asking = Asking::new(known);
    let waiting = WaitingOverlay::new(waiting);
    let mut fold = Fold { mapping, overlay: Overlay::default(), asking, waiting, checks_keys: true };
    let mut failures = Vec::new();
    let mut setting =
        SettingAside { aside, held: aside.held.clone(), set_aside: Vec::new(), truncated: BTreeSet::new() };
    for (transaction, it) in transactions.iter().enumerate() {
        for (number, change) in it.changes.iter().enumerate() {
            match &*change? {
                Change::Truncate(table) => {
                    fold.overlay.origin = None;
                    setting.truncate(mapping, table);
                    fold.truncate(table);
                }
                Change::Row(row) => {
                    for (entry, plan) in plans.of(mapping, &row.columns)? {
                        let origin = Origin { transaction, change: number, entry: *entry };
                        if setting.takes(origin, &mapping.entries[*entry], plan, row) {
                            continue;
                        }
                        fold.overlay.origin = Some(origin);
                        if let Err(BadRow { why }) = fold.row(&mapping.entries[*entry], plan, row) {
                            failures.push(Failure { origin, why });
                        }
                    }
                }
            }
        }
    }
    let Fold { overlay, asking, waiting, .. } = fold;
    let SettingAside { set_aside, truncated, .. } = setting;
    let waiting = waiting.into_changes();
    Ok(Folded { needs: asking.into_needs(), overlay, waiting, failures, set_aside, truncated })
}

/// Changes that are set aside while a batch is folded.
struct SettingAside<'a> {
    aside: &'a Aside,
    held: BTreeSet<String>,
    set_aside: Vec<SetAside>,
    truncated: BTreeSet<TableName>,
}

impl SettingAside<'_> {
    /// Sets a change aside if it fails, or if an earlier one of its name was set aside.
    fn takes(&mut self, origin: Origin, entry: &Entry, plan: &Plan, change: &RowChange) -> bool {
        if self.aside.passed_over.contains(&origin) {
            return true;
        }
        let why = self.aside.failing.get(&origin);
        // Nearly always: then names are not needed.
        if why.is_none() && self.held.is_empty() {
            return false;
        }
        let rows = match &change.images {
            Images::Insert(row) | Images::Delete(row) => [Some(row), None],
            Images::Update { before, after } => [before.as_ref(), Some(after)],
        };
        let mut names: Vec<_> =
            rows.into_iter().flatten().filter_map(|row| plan.name(entry, &change.columns, row)).collect();
        names.dedup();
        if why.is_none() && !names.iter().any(|name| self.held.contains(name)) {
            return false;
        }
        self.held.extend(names.iter().cloned());
        self.set_aside.push(SetAside { origin, names, why: why.cloned() });
        true
    }

    /// Of rows that are gone nothing has to be set aside any more.
    fn truncate(&mut self, mapping: &Mapping, table: &TableName) {
        let is_other = |it: &SetAside| mapping.entries[it.origin.entry].table != *table;
        self.set_aside.retain(is_other);
        for (_, entry) in mapping.entries_of(table) {
            let vertex = format!("{}:", entry.label());
            let edge = format!(" -{}-> ", entry.label());
            let is_of = |name: &str| match &entry.item {
                Item::Vertex(_) => name.starts_with(&vertex) && !name.contains("-> "),
                Item::Edge(_) => name.contains(&edge),
            };
            self.held.retain(|name| !is_of(name));
        }
        self.truncated.insert(table.clone());
    }
}

struct Fold<'a> {
    mapping: &'a Mapping,
    overlay: Overlay,
    asking: Asking<'a>,
    waiting: WaitingOverlay<'a>,
    /// Whether the database checked foreign keys, and followed their rules, at the change that is applied.
    checks_keys: bool,
}

/// What a row was.
enum Before {
    /// Nothing: it is new, or did not match the condition.
    Nothing,
    /// The log does not say; what it is now has the same key.
    Unsaid,
    /// This, as far as the row says.
    Was(Image),
}

impl<'a> Fold<'a> {
    fn row(&mut self, entry: &'a Entry, plan: &Plan, change: &RowChange) -> Result<(), BadRow> {
        let image = |row: &Row| plan.image(entry, &change.columns, row);
        let image_before = |row: &Row| plan.image_before(entry, &change.columns, row);
        let (before, after) = match &change.images {
            Images::Insert(row) => (Before::Nothing, Some(image(row)?)),
            Images::Update { before: None, after } => (Before::Unsaid, Some(image(after)?)),
            Images::Update { before: Some(before), after } => (Before::Was(image_before(before)?), Some(image(after)?)),
            Images::Delete(row) => (Before::Was(image_before(row)?), None),
        };
        self.checks_keys = change.checks_keys;
        match &entry.item {
            Item::Vertex(map) => self.vertex(map, before, after),
            Item::Edge(map) => self.edge(map, before, after),
        }
    }

    /// What to do where a vertex lacks. Without checks any may: the edge waits, as its row still names it.
    fn missing(&self, missing: Option<Missing>) -> Option<Missing> {
        missing.or((!self.checks_keys).then_some(Missing::Wait))
    }

    /// What the database did by itself.
    fn rules(&self, rules: Option<Rules>) -> Option<Rules> {
        rules.filter(|_| self.checks_keys)
    }

    fn vertex(&mut self, map: &'a VertexMap, before: Before, after: Option<Image>) -> Result<(), BadRow> {
        let was = match before {
            Before::Nothing => None,
            Before::Unsaid => after.as_ref().and_then(vertex_of).map(|vertex| (vertex.clone(), None)),
            Before::Was(image) => vertex_of(&image).cloned().map(|vertex| (vertex, Some(image))),
        };
        match (was, after) {
            (None, Some(Image::Vertex(after))) => self.put_vertex(map, after, None),
            (None, _) => Ok(()),
            (Some((old, _)), None) => {
                self.delete_row(&old);
                Ok(())
            }
            (Some((old, image)), Some(after)) => {
                let new = vertex_of(&after).cloned().unwrap_or_else(|| old.clone());
                if new != old {
                    self.move_vertex(map, &old, &new);
                }
                match (image, after) {
                    (Some(Image::Nothing(_)), Image::Nothing(_)) => {
                        // The graph had it all the same, and it has moved.
                        if new != old && self.overlay.vertices.get(&new).is_some_and(|state| state.exists) {
                            self.hide_vertex(&new);
                        }
                        Ok(())
                    }
                    (_, Image::Nothing(_) | Image::Edge(_)) => {
                        self.hide_vertex(&new);
                        Ok(())
                    }
                    (Some(Image::Vertex(before)), Image::Vertex(after)) if before.is_sure && old == new => {
                        self.put_vertex(map, after, Some(before))
                    }
                    (_, Image::Vertex(after)) => self.put_vertex(map, after, None),
                }
            }
        }
    }

    /// A vertex is as its row says; `before` is what it was, if that is known.
    fn put_vertex(
        &mut self,
        map: &'a VertexMap,
        after: VertexImage,
        before: Option<VertexImage>,
    ) -> Result<(), BadRow> {
        let VertexImage { vertex, properties, targets, .. } = after;
        if before.as_ref().is_none_or(|before| before.properties != properties) {
            self.overlay.upsert_vertex(&vertex, properties);
        }
        // It cannot have been waited for if it was there.
        if before.is_none() {
            self.release(&vertex);
        }
        for (number, (target, properties)) in targets.into_iter().enumerate() {
            let old = before.as_ref().map(|before| &before.targets[number]);
            if old.is_some_and(|old| *old == (target.clone(), properties.clone())) {
                continue;
            }
            self.point(&map.edges[number], &vertex, target, properties, old.map(|(target, _)| target))?;
        }
        Ok(())
    }

    /// A foreign key points somewhere else.
    fn point(
        &mut self,
        map: &'a ForeignKeyMap,
        vertex: &VertexRef,
        target: Target,
        properties: Properties,
        old: Option<&Target>,
    ) -> Result<(), BadRow> {
        if target == Target::Unsaid {
            return Ok(());
        }
        let id_to = |other: &VertexRef| edge_id(map, vertex, other);
        let new = if let Target::Vertex(other) = &target { Some(id_to(other)) } else { None };
        let stale = match old {
            Some(Target::None) => Vec::new(),
            Some(Target::Vertex(other)) => vec![id_to(other)],
            Some(Target::Unsaid) | None => self.edges_along(map, vertex),
        };
        for id in stale.into_iter().filter(|id| Some(id) != new.as_ref()) {
            self.drop_edge(id);
        }
        match new {
            Some(id) => {
                let owner = if map.is_outgoing { Owner::Source } else { Owner::Target };
                let far = usize::from(map.is_outgoing);
                let mut missing = [None, None];
                missing[far] = map.missing;
                self.put_edge(id, properties, missing, owner)
            }
            None => Ok(()),
        }
    }

    /// The edges of a vertex's foreign key, also those that wait.
    fn edges_along(&mut self, map: &'a ForeignKeyMap, vertex: &VertexRef) -> Vec<EdgeId> {
        let of = EdgesOf {
            vertex: vertex.clone(),
            label: map.label.clone(),
            is_outgoing: map.is_outgoing,
            other: map.other.clone(),
        };
        let mut ids: Vec<_> = self.current_edges(of).into_keys().collect();
        let is_along = |id: &EdgeId| {
            let near = if map.is_outgoing { &id.source } else { &id.target };
            id.label == map.label && near == vertex && id.other_end(vertex).label == map.other
        };
        ids.extend(self.waiting.at(vertex).into_iter().map(|(id, _)| id).filter(|id| is_along(id)));
        ids
    }

    /// The edges of a vertex as they are by now.
    fn current_edges(&mut self, of: EdgesOf) -> std::collections::BTreeMap<EdgeId, Vec<Properties>> {
        let base = match self.overlay.is_reset(&of.vertex) {
            true => &[],
            false => self.asking.edges(of.clone()),
        };
        self.overlay.edges_of(&of.vertex, base, |id| {
            let near = if of.is_outgoing { &id.source } else { &id.target };
            let far = if of.is_outgoing { &id.target } else { &id.source };
            id.label == of.label && *near == of.vertex && far.label == of.other
        })
    }

    /// There is an edge, or will be when its ends are there; `missing` says of which ends that is not sure.
    fn put_edge(
        &mut self,
        id: EdgeId,
        properties: Properties,
        missing: [Option<Missing>; 2],
        owner: Owner,
    ) -> Result<(), BadRow> {
        let mut waits = false;
        // A row that was written without checks may still name nothing when it changes otherwise.
        let has_waited = self.waiting.has(&id);
        for (number, missing) in missing.into_iter().enumerate() {
            let end = if number == 0 { &id.source } else { &id.target };
            let missing = self.missing(missing).or(has_waited.then_some(Missing::Wait));
            let Some(missing) = missing.filter(|_| !self.exists(end)) else { continue };
            match missing {
                Missing::Wait => waits = true,
                Missing::Stub => self.overlay.upsert_vertex(&end.clone(), Properties::new()),
                Missing::Error => return Err(BadRow { why: format!("vertex {end} does not exist") }),
            }
        }
        if waits {
            self.waiting.insert(id, WaitingEdge { properties, owner }, self.overlay.origin);
        } else {
            self.waiting.remove(&id);
            self.overlay.upsert_edge(id, properties);
        }
        Ok(())
    }

    fn drop_edge(&mut self, id: EdgeId) {
        self.waiting.remove(&id);
        self.overlay.delete_edge(id);
    }

    /// Whether a vertex is there by now.
    fn exists(&mut self, vertex: &VertexRef) -> bool {
        match self.overlay.vertices.get(vertex) {
            Some(state) => state.exists,
            None => self.asking.exists(vertex),
        }
    }

    /// Edges that waited for a vertex are there, if their other ends are.
    fn release(&mut self, vertex: &VertexRef) {
        for (id, edge) in self.waiting.at(vertex) {
            if self.exists(id.other_end(vertex)) {
                let origin = self.waiting.origin(&id).or(self.overlay.origin);
                self.waiting.remove(&id);
                self.overlay.upsert_edge_of(origin, id, edge.properties);
            }
        }
    }

    fn edge(&mut self, map: &'a EdgeMap, before: Before, after: Option<Image>) -> Result<(), BadRow> {
        // Without a row before, the row after names the same edge.
        let before = match (before, &after) {
            // The graph may have it all the same. Without a key of its own, that edge may be another row's.
            (Before::Was(Image::Nothing(Some(was))), Some(now))
                if map.key.is_some() && edge_of(&was).map(ends_and_key) != edge_of(now).map(ends_and_key) =>
            {
                Some(*was)
            }
            (Before::Was(image), _) => Some(image),
            (Before::Unsaid, Some(Image::Nothing(Some(identity)))) => Some(Image::clone(identity)),
            (Before::Unsaid | Before::Nothing, _) => None,
        };
        let edge = |image: Option<Image>| if let Some(Image::Edge(edge)) = image { Some(edge) } else { None };
        let old = edge(before);
        let new = edge(after);
        if old == new {
            return Ok(());
        }
        let id = |image: &EdgeImage| EdgeId {
            label: map.label.clone(),
            source: image.source.clone(),
            target: image.target.clone(),
            key: image.key.clone().map(Into::into),
        };
        let new_id = new.as_ref().map(&id);
        if let Some(old) = old.as_ref().map(&id).filter(|old| Some(old) != new_id.as_ref()) {
            self.drop_edge(old);
        }
        match (new_id, new) {
            (Some(id), Some(image)) => {
                self.put_edge(id, image.properties, [map.ends[0].missing, map.ends[1].missing], Owner::Row)
            }
            _ => Ok(()),
        }
    }
}

/// The vertex that a row is, or would be if it matched the condition: others may name it, and go with it.
fn vertex_of(image: &Image) -> Option<&VertexRef> {
    match image {
        Image::Vertex(it) => Some(&it.vertex),
        Image::Nothing(Some(identity)) => vertex_of(identity),
        Image::Nothing(None) | Image::Edge(_) => None,
    }
}

/// The edge that a row is, or would be if it matched the condition.
fn edge_of(image: &Image) -> Option<&EdgeImage> {
    match image {
        Image::Edge(it) => Some(it),
        Image::Nothing(Some(identity)) => edge_of(identity),
        Image::Nothing(None) | Image::Vertex(_) => None,
    }
}

fn ends_and_key(edge: &EdgeImage) -> (&VertexRef, &VertexRef, Option<&EdgeKey>) {
    (&edge.source, &edge.target, edge.key.as_ref())
}

/// The edge of a foreign key.
fn edge_id(map: &ForeignKeyMap, vertex: &VertexRef, other: &VertexRef) -> EdgeId {
    let (source, target) = if map.is_outgoing { (vertex, other) } else { (other, vertex) };
    EdgeId { label: map.label.clone(), source: source.clone(), target: target.clone(), key: None }
}
