//! What is compared: labels and edge types, with the properties that the mapping gives them.

use std::collections::{BTreeMap, BTreeSet};

use hoplake::{Name, Properties, Value, VertexRef};

use crate::{
    Element, FeedError, Missing, TableName,
    apply::fold::{EdgeId, EdgeTypeName},
    mapping::{Entry, ForeignKeyMap, Item, Mapping, PropertyMap, VertexMap, followed::FollowedTable},
};

/// Labels and edge types, with the names of their properties.
#[derive(Debug, Clone, Default)]
pub(super) struct Scope {
    pub(super) labels: BTreeMap<Name, BTreeSet<Name>>,
    pub(super) edge_types: BTreeMap<EdgeTypeName, BTreeSet<Name>>,
    /// The tables of which they come.
    pub(super) tables: Vec<TableName>,
    /// Labels of which a vertex may be there without a row.
    stubs: BTreeSet<Name>,
}

impl Scope {
    /// What the rows of some tables become, or of all. Other tables that become the same are read, too.
    pub(super) fn new(mapping: &Mapping, tables: &[TableName]) -> Result<Self, FeedError> {
        if let Some(unknown) = tables.iter().find(|table| !mapping.has(table)) {
            return Err(FeedError::invalid(format!("the mapping has no table {unknown}")));
        }
        let is_meant = |entry: &&Entry| tables.is_empty() || tables.contains(&entry.table);
        let mut scope = Self::default();
        for entry in mapping.entries.iter().filter(is_meant) {
            scope.labels.extend(label_of(entry).map(|label| (label, BTreeSet::new())));
            scope.edge_types.extend(edge_types_of(entry).into_iter().map(|(it, _)| (it, BTreeSet::new())));
        }
        let mut read = BTreeSet::new();
        for entry in &mapping.entries {
            if let Some(properties) = label_of(entry).and_then(|label| scope.labels.get_mut(&label)) {
                properties.extend(entry.properties.iter().map(|it| it.property.clone()));
                read.insert(entry.table.clone());
            }
            for (edge_type, names) in edge_types_of(entry) {
                if let Some(properties) = scope.edge_types.get_mut(&edge_type) {
                    properties.extend(names);
                    read.insert(entry.table.clone());
                }
            }
            scope.stubs.extend(stubs_of(entry));
        }
        scope.tables = read.into_iter().collect();
        Ok(scope)
    }

    /// Adds what the rows of tables became by a mapping of before.
    pub(super) fn extend(&mut self, before: &BTreeMap<TableName, FollowedTable>) {
        for entry in before.values().flat_map(|table| &table.entries) {
            let label = entry.label.clone();
            match entry.ends.clone() {
                None => {
                    self.labels.entry(label).or_default();
                }
                Some([source, target]) => {
                    self.edge_types.entry(EdgeTypeName { label, source, target }).or_default();
                }
            }
            for [label, source, target] in entry.edges.clone() {
                self.edge_types.entry(EdgeTypeName { label, source, target }).or_default();
            }
        }
    }

    /// Whether a vertex without any property looks like one that was made for a row that names it.
    pub(super) fn may_be_stub(&self, vertex: &VertexRef, properties: &Properties) -> bool {
        properties.is_empty() && self.stubs.contains(&vertex.label)
    }

    pub(super) fn has_stubs(&self) -> bool {
        self.labels.keys().any(|label| self.stubs.contains(label))
    }

    pub(super) fn has(&self, element: &Element) -> bool {
        match element {
            Element::Vertex(vertex) => self.labels.contains_key(&vertex.label),
            Element::Edge(id) => self.edge_types.contains_key(&id.edge_type()),
        }
    }

    /// The properties that the mapping gives an element, and null for those that it lacks.
    pub(super) fn completed(&self, element: &Element, properties: &Properties) -> Properties {
        let names = match element {
            Element::Vertex(vertex) => self.labels.get(&vertex.label),
            Element::Edge(id) => self.edge_types.get(&id.edge_type()),
        };
        let value = |name: &Name| (name.clone(), properties.get(name).cloned().unwrap_or(Value::Null));
        names.into_iter().flatten().map(value).collect()
    }

    /// What of properties is compared: those that the mapping gives an element and that are not null.
    pub(super) fn compared(&self, element: &Element, properties: Properties) -> Properties {
        let names = match element {
            Element::Vertex(vertex) => self.labels.get(&vertex.label),
            Element::Edge(id) => self.edge_types.get(&id.edge_type()),
        };
        let is_meant = |name: &Name, value: &Value| *value != Value::Null && names.is_some_and(|it| it.contains(name));
        if properties.iter().all(|(name, value)| is_meant(name, value)) {
            return properties;
        }
        let kept = properties.iter().filter(|(name, value)| is_meant(name, value));
        kept.map(|(name, value)| (name.clone(), value.clone())).collect()
    }
}

/// The edge of a foreign key.
pub(super) fn edge_of_key(map: &ForeignKeyMap, vertex: &VertexRef, other: VertexRef) -> EdgeId {
    let (source, target) = if map.is_outgoing { (vertex.clone(), other) } else { (other, vertex.clone()) };
    EdgeId { label: map.label.clone(), source, target, key: None }
}

fn label_of(entry: &Entry) -> Option<Name> {
    if let Item::Vertex(map) = &entry.item { Some(map.label.clone()) } else { None }
}

fn edge_types_of(entry: &Entry) -> Vec<(EdgeTypeName, Vec<Name>)> {
    let names = |all: &[PropertyMap]| all.iter().map(|it| it.property.clone()).collect::<Vec<_>>();
    match &entry.item {
        Item::Vertex(map) => map.edges.iter().map(|key| (edge_type_of_key(map, key), names(&key.properties))).collect(),
        Item::Edge(map) => {
            let [source, target] = [&map.ends[0].label, &map.ends[1].label].map(Clone::clone);
            let mut names = names(&entry.properties);
            names.extend(map.key.iter().map(|key| key.property.clone()));
            vec![(EdgeTypeName { label: map.label.clone(), source, target }, names)]
        }
    }
}

fn edge_type_of_key(map: &VertexMap, key: &ForeignKeyMap) -> EdgeTypeName {
    let near = map.label.clone();
    let far = key.other.clone();
    let (source, target) = if key.is_outgoing { (near, far) } else { (far, near) };
    EdgeTypeName { label: key.label.clone(), source, target }
}

fn stubs_of(entry: &Entry) -> Vec<Name> {
    let is_stub = |missing: Option<Missing>| missing == Some(Missing::Stub);
    match &entry.item {
        Item::Vertex(map) => map.edges.iter().filter(|key| is_stub(key.missing)).map(|key| key.other.clone()).collect(),
        Item::Edge(map) => map.ends.iter().filter(|end| is_stub(end.missing)).map(|end| end.label.clone()).collect(),
    }
}
