//! What a row becomes: the settings' entries, checked against the catalog.
//!
//! An entry is about the rows of one table that match its condition; each is one vertex with edges for its foreign keys, or
//! one edge. `compile` makes entries of settings and rejects what cannot work, `image` makes of a row what it is in the
//! graph, `infer` writes a first mapping of a catalog, and `cascades` checks that the database changes nothing that its log
//! does not show and the mapping would miss.

mod cascades;
mod compile;
pub(crate) mod condition;
pub mod followed;
mod image;
mod infer;
pub(crate) mod showing;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use hoplake::{KeyType, Name, PropertyType, Schema};

pub(crate) use self::compile::ignores_unknown;
pub use self::{
    image::{BadRow, EdgeImage, Image, Plan, Target, VertexImage},
    infer::infer,
};
use crate::{Missing, OnError, RowCondition, Rule, TableName, source::ComparedKey};

/// What the rows of a source become.
#[derive(Debug, Clone, Default)]
pub struct Mapping {
    /// What the rows of tables become, in the order of the settings.
    pub entries: Vec<Entry>,
    by_table: HashMap<TableName, Vec<usize>>,
    /// The foreign keys that name vertices of a label: entry, and the number of the key in it.
    by_target: HashMap<Name, Vec<(usize, usize)>>,
    /// Whether the source logs what cascades change.
    pub logs_cascades: bool,
}

/// What rows of a table become.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The table.
    pub table: TableName,
    /// Which of its rows; all without one.
    pub condition: Option<RowCondition>,
    /// What becomes of a row that cannot be applied.
    pub on_error: OnError,
    /// A vertex or an edge.
    pub item: Item,
    /// The columns that become properties.
    pub properties: Vec<PropertyMap>,
    /// Columns that are neither properties nor keys, though they may become none either.
    left_out: Vec<Name>,
    /// Those of them that the mapping does not name any more, since the table does not have them.
    pub(crate) gone: Vec<Name>,
    /// Columns that are not carried, and why.
    pub not_carried: Vec<(Name, String)>,
}

/// A vertex or an edge.
#[derive(Debug, Clone)]
pub enum Item {
    /// A vertex, with edges for its foreign keys.
    Vertex(VertexMap),
    /// An edge.
    Edge(EdgeMap),
}

/// A vertex.
#[derive(Debug, Clone)]
pub struct VertexMap {
    /// Its label.
    pub label: Name,
    /// Its key.
    pub key: KeyMap,
    /// Its foreign keys.
    pub edges: Vec<ForeignKeyMap>,
}

/// The columns of a key.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyMap {
    /// In the order of the key.
    pub columns: Vec<Name>,
    /// Its type.
    pub key_type: KeyType,
}

/// A foreign key that is an edge.
#[derive(Debug, Clone)]
pub struct ForeignKeyMap {
    /// The label of the edge.
    pub label: Name,
    /// The columns that name the other vertex.
    pub key: KeyMap,
    /// The label of the other vertex.
    pub other: Name,
    /// Whether the edge goes to the other vertex, or comes from it.
    pub is_outgoing: bool,
    /// Whether the other vertex may lack, and then what.
    pub missing: Option<Missing>,
    /// Columns that become properties of the edge.
    pub properties: Vec<PropertyMap>,
    /// What the database does if the other row goes and if its key changes, where its log does not show it.
    pub rules: Option<Rules>,
    /// The collation by which the database finds the other row, if that is not the same text.
    pub compared_by: Option<Name>,
}

/// What a foreign key does on its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// If its target is deleted.
    pub on_delete: Rule,
    /// If its target's key changes.
    pub on_update: Rule,
}

/// An edge.
#[derive(Debug, Clone)]
pub struct EdgeMap {
    /// Its label.
    pub label: Name,
    /// The vertices that it leaves and reaches.
    pub ends: [EndMap; 2],
    /// The columns that distinguish it from others between the two, and the property that has them.
    pub key: Option<EdgeKeyMap>,
}

/// An end of an edge.
#[derive(Debug, Clone)]
pub struct EndMap {
    /// The label of the vertex.
    pub label: Name,
    /// The columns that name it.
    pub key: KeyMap,
    /// Whether the vertex may lack, and then what.
    pub missing: Option<Missing>,
    /// What the database does if the row of the vertex goes, where its log does not show it.
    pub rules: Option<Rules>,
    /// The collation by which the database finds the row of the vertex, if that is not the same text.
    pub compared_by: Option<Name>,
}

/// What distinguishes edges between the same two vertices.
#[derive(Debug, Clone, PartialEq)]
pub struct EdgeKeyMap {
    /// The property.
    pub property: Name,
    /// Its columns.
    pub columns: Vec<Name>,
    /// The type of the property.
    pub kind: PropertyType,
}

/// A column that becomes a property.
#[derive(Debug, Clone, PartialEq)]
pub struct PropertyMap {
    /// The column.
    pub column: Name,
    /// The property.
    pub property: Name,
    /// Its type.
    pub kind: PropertyType,
}

impl Mapping {
    /// The same with the types that properties have in a graph: those of today's columns are not those of rows that were logged before a
    /// column got another type.
    #[must_use]
    pub(crate) fn typed_as(mut self, schema: &Schema) -> Self {
        let of_edge = |label: &Name, source: &Name, target: &Name| {
            let ends = schema.label_id(source).zip(schema.label_id(target));
            let found = schema.edge_types.iter().find(|it| *label == it.label && ends == Some((it.source, it.target)));
            found.map_or(&[][..], |it| &it.properties)
        };
        let adopt = |properties: &mut Vec<PropertyMap>, known: &[hoplake::Property]| {
            for property in properties {
                if let Some(known) = known.iter().find(|it| property.property == it.name) {
                    property.kind = known.kind;
                }
            }
        };
        for entry in &mut self.entries {
            match &mut entry.item {
                Item::Vertex(vertex) => {
                    let label = &vertex.label;
                    let known = schema.label_id(label).and_then(|id| schema.label(id));
                    adopt(&mut entry.properties, known.map_or(&[], |it| &it.properties));
                    for key in &mut vertex.edges {
                        let (source, target) = if key.is_outgoing { (label, &key.other) } else { (&key.other, label) };
                        adopt(&mut key.properties, of_edge(&key.label, source, target));
                    }
                }
                Item::Edge(edge) => {
                    let [source, target] = edge.ends.each_ref().map(|end| &end.label);
                    adopt(&mut entry.properties, of_edge(&edge.label, source, target));
                }
            }
        }
        self
    }

    /// The entries of a table.
    pub fn entries_of(&self, table: &TableName) -> impl Iterator<Item = (usize, &Entry)> {
        let numbers = self.by_table.get(table).map(Vec::as_slice).unwrap_or_default();
        numbers.iter().map(|number| (*number, &self.entries[*number]))
    }

    /// Whether a table is mapped.
    pub fn has(&self, table: &TableName) -> bool {
        self.by_table.contains_key(table)
    }

    /// The tables that are mapped, ascending.
    pub fn tables(&self) -> Vec<TableName> {
        let mut tables: Vec<_> = self.by_table.keys().cloned().collect();
        tables.sort();
        tables
    }

    /// The tables that are mapped, and their columns that the graph or a condition depends on.
    pub fn followed(&self) -> BTreeMap<TableName, BTreeSet<Name>> {
        let mut followed: BTreeMap<TableName, BTreeSet<Name>> = BTreeMap::new();
        for entry in &self.entries {
            let of_table = followed.entry(entry.table.clone()).or_default();
            of_table.extend(entry.properties.iter().map(|property| property.column.clone()));
            of_table.extend(entry.condition.iter().flat_map(|condition| condition.columns()).cloned());
            match &entry.item {
                Item::Vertex(vertex) => {
                    of_table.extend(vertex.key.columns.iter().cloned());
                    for edge in &vertex.edges {
                        of_table.extend(edge.key.columns.iter().cloned());
                        of_table.extend(edge.properties.iter().map(|property| property.column.clone()));
                    }
                }
                Item::Edge(edge) => {
                    of_table.extend(edge.ends.iter().flat_map(|end| &end.key.columns).cloned());
                    of_table.extend(edge.key.iter().flat_map(|key| &key.columns).cloned());
                }
            }
        }
        followed
    }

    /// The columns of tables that each entry about their rows ignores, and that no key or condition needs.
    pub(crate) fn ignored(&self) -> BTreeMap<TableName, BTreeSet<Name>> {
        let carried = self.followed();
        let mut ignored: BTreeMap<TableName, BTreeSet<Name>> = BTreeMap::new();
        for (table, carried) in carried {
            let all: BTreeSet<_> = self.entries_of(&table).flat_map(|(_, entry)| &entry.left_out).cloned().collect();
            let is_left_out = |column: &Name| self.entries_of(&table).all(|(_, entry)| !entry.takes(column));
            let columns = all.into_iter().filter(|column| !carried.contains(column) && is_left_out(column)).collect();
            ignored.insert(table, columns);
        }
        ignored
    }

    /// The same without ignored columns that it does not name and that were dropped.
    #[must_use]
    pub(crate) fn without(mut self, is_dropped: impl Fn(&TableName, &Name) -> bool) -> Self {
        for Entry { table, left_out, gone, .. } in &mut self.entries {
            let dropped: Vec<_> = gone.extract_if(.., |column| is_dropped(table, column)).collect();
            left_out.retain(|column| !dropped.contains(column));
        }
        self
    }

    /// The foreign keys whose rows the database finds by a collation, and the graph by the same text.
    pub fn compared_keys(&self) -> Vec<ComparedKey> {
        let of_entry = |entry: &Entry, columns: &KeyMap, label: &str, compared_by: &Option<Name>| {
            let (target, vertex) = self.vertices(label)?;
            let row = match &entry.item {
                Item::Vertex(vertex) => vertex.key.columns.clone(),
                Item::Edge(edge) => edge.ends.iter().flat_map(|end| end.key.columns.clone()).collect(),
            };
            Some(ComparedKey {
                table: entry.table.clone(),
                row,
                columns: columns.columns.clone(),
                target: target.table.clone(),
                target_columns: vertex.key.columns.clone(),
                compared_by: compared_by.clone()?,
            })
        };
        let keys = self.entries.iter().flat_map(|entry| match &entry.item {
            Item::Vertex(vertex) => {
                let keys = vertex.edges.iter();
                keys.filter_map(|key| of_entry(entry, &key.key, &key.other, &key.compared_by)).collect::<Vec<_>>()
            }
            Item::Edge(edge) => {
                let ends = edge.ends.iter();
                ends.filter_map(|end| of_entry(entry, &end.key, &end.label, &end.compared_by)).collect()
            }
        });
        keys.collect()
    }

    /// The foreign keys that name vertices of a label, with the vertices that have them.
    pub fn foreign_keys_to(&self, label: &str) -> impl Iterator<Item = (&Entry, &VertexMap, &ForeignKeyMap)> {
        let all = self.by_target.get(label).map(Vec::as_slice).unwrap_or_default();
        all.iter().filter_map(|(number, key)| match &self.entries[*number].item {
            Item::Vertex(vertex) => Some((&self.entries[*number], vertex, &vertex.edges[*key])),
            Item::Edge(_) => None,
        })
    }

    /// The entries whose rows are edges with an end of a label.
    pub fn edges_at(&self, label: &str) -> impl Iterator<Item = &EdgeMap> {
        self.entries.iter().filter_map(move |entry| match &entry.item {
            Item::Edge(edge) if edge.ends.iter().any(|end| end.label == label) => Some(edge),
            _ => None,
        })
    }

    /// The vertices of a label.
    pub fn vertices(&self, label: &str) -> Option<(&Entry, &VertexMap)> {
        self.entries.iter().find_map(|entry| match &entry.item {
            Item::Vertex(vertex) if vertex.label == label => Some((entry, vertex)),
            _ => None,
        })
    }
}

impl Entry {
    /// The label of what its rows become.
    pub fn label(&self) -> &Name {
        match &self.item {
            Item::Vertex(vertex) => &vertex.label,
            Item::Edge(edge) => &edge.label,
        }
    }

    /// The columns that identify what a row becomes.
    pub(crate) fn key_columns(&self) -> Vec<&Name> {
        match &self.item {
            Item::Vertex(vertex) => vertex.key.columns.iter().collect(),
            Item::Edge(edge) => {
                let keys = edge.key.iter().flat_map(|key| &key.columns);
                edge.ends.iter().flat_map(|end| &end.key.columns).chain(keys).collect()
            }
        }
    }

    /// Whether a column that the mapping was not made with becomes a property.
    fn takes(&self, column: &str) -> bool {
        !self.left_out.iter().any(|out| out == column)
    }
}
