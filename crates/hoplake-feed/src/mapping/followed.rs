//! What a feed knows of the tables that it follows, as the graph keeps it with the position: the shape of each table there, and what the mapping
//! said of it. A later mapping that says something else is rejected: the graph would have rows of both.

use std::collections::{BTreeMap, BTreeSet};

use hoplake::Name;
use serde::{Deserialize, Serialize};

use super::{Entry, ForeignKeyMap, Item, Mapping};
use crate::{Settings, TableEntry, TableName};
pub use crate::{
    error::StopNote,
    source::shape::{ColumnShape, Drift, TableShape, shapes_of},
};

/// What a feed knows of a table at a position.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FollowedTable {
    /// The table itself.
    pub shape: TableShape,
    /// Its columns that the graph or a condition depends on.
    pub carried: BTreeSet<Name>,
    /// What the mapping says of it, ascending.
    pub entries: Vec<MappedEntry>,
}

/// What the mapping says of the rows of a table, as far as the graph is different if it says something else.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct MappedEntry {
    /// The label of what a row becomes.
    pub label: Name,
    /// The labels at the ends of an edge; none of a vertex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends: Option<[Name; 2]>,
    /// The edges of foreign keys: label, and the labels of source and target.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edges: Vec<[Name; 3]>,
    /// Key, condition and foreign keys, by what they are called in `feed.toml`.
    pub says: BTreeMap<String, String>,
    /// What it says of single columns: ignored, kept, renamed, of another type.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub columns: BTreeMap<Name, String>,
}

/// What is said of a column that does not become a property.
const IGNORED: &str = "ignored";

impl MappedEntry {
    fn new(entry: &Entry, written: &TableEntry) -> Self {
        let mut says = BTreeMap::new();
        says.insert("where".to_owned(), written.condition.clone().unwrap_or_default());
        let mut edges = Vec::new();
        let ends = match &entry.item {
            Item::Vertex(vertex) => {
                says.insert("vertex".to_owned(), format!("{} by {}", vertex.label, list(&vertex.key.columns)));
                for key in &vertex.edges {
                    let [source, target] = ends_of(&vertex.label, key);
                    says.insert(
                        format!("edges {} by {}", key.label, list(&key.key.columns)),
                        of_key(key, &source, &target),
                    );
                    edges.push([key.label.clone(), source, target]);
                }
                None
            }
            Item::Edge(edge) => {
                let [source, target] = &edge.ends;
                let key = edge.key.as_ref().map(|key| list(&key.columns)).unwrap_or_default();
                let text = format!(
                    "{} from {} by {} to {} by {} with key {key}",
                    edge.label,
                    source.label,
                    list(&source.key.columns),
                    target.label,
                    list(&target.key.columns)
                );
                says.insert("edge".to_owned(), text);
                Some([source.label.clone(), target.label.clone()])
            }
        };
        let mut columns: BTreeMap<Name, String> = BTreeMap::new();
        let mut say = |column: &str, text: String| {
            let said = columns.entry(Name::from(column)).or_default();
            if !said.is_empty() {
                said.push_str(", ");
            }
            said.push_str(&text);
        };
        written.ignore.iter().for_each(|column| say(column, IGNORED.into()));
        entry.gone.iter().for_each(|column| say(column, IGNORED.into()));
        written.keep.iter().for_each(|column| say(column, "kept".into()));
        written.rename.iter().for_each(|(column, name)| say(column, format!("the property {name}")));
        written.types.iter().for_each(|(column, kind)| say(column, format!("of type {kind}")));
        Self { label: entry.label().clone(), ends, edges, says, columns }
    }

    /// Whether it is about what an entry makes of rows.
    pub(crate) fn is_of(&self, item: &Item) -> bool {
        match item {
            Item::Vertex(vertex) => self.ends.is_none() && self.label == vertex.label,
            Item::Edge(edge) => {
                let ends = edge.ends.each_ref().map(|end| end.label.clone());
                self.label == edge.label && self.ends == Some(ends)
            }
        }
    }

    /// The columns that it ignored.
    pub(crate) fn ignored(&self) -> impl Iterator<Item = &Name> {
        // It is the first thing that is said of a column.
        self.columns.iter().filter(|(_, said)| said.split(", ").next() == Some(IGNORED)).map(|(column, _)| column)
    }

    /// Whether it ignored a column.
    pub(crate) fn ignores(&self, column: &str) -> bool {
        self.ignored().any(|ignored| ignored == column)
    }

    /// What a later mapping says otherwise of a table that had this shape.
    fn difference(&self, now: &Self, shape: &TableShape) -> Option<String> {
        let differs = |was: Option<&String>, is: Option<&String>, what: &str| {
            let text = |it: Option<&String>| {
                it.filter(|it| !it.is_empty()).map_or("nothing".to_owned(), |it| format!("`{it}`"))
            };
            (was.filter(|it| !it.is_empty()) != is.filter(|it| !it.is_empty()))
                .then(|| format!("{what} was {} and is {}", text(was), text(is)))
        };
        let names: BTreeSet<_> = self.says.keys().chain(now.says.keys()).collect();
        let of_entry = names.into_iter().find_map(|name| differs(self.says.get(name), now.says.get(name), name));
        let columns: BTreeSet<_> =
            self.columns.keys().chain(now.columns.keys()).filter(|name| shape.has(name)).collect();
        of_entry.or_else(|| {
            let differing =
                |name: &Name| differs(self.columns.get(name), now.columns.get(name), &format!("column {name}"));
            columns.into_iter().find_map(differing)
        })
    }
}

fn list(columns: &[Name]) -> String {
    columns.join(", ")
}

fn ends_of(label: &Name, key: &ForeignKeyMap) -> [Name; 2] {
    let near = label.clone();
    let far = key.other.clone();
    if key.is_outgoing { [near, far] } else { [far, near] }
}

fn of_key(key: &ForeignKeyMap, source: &Name, target: &Name) -> String {
    let properties: Vec<_> = key.properties.iter().map(|it| format!("{} as {}", it.column, it.property)).collect();
    let rules = key.rules.map(|it| format!(", on delete {:?}, on update {:?}", it.on_delete, it.on_update));
    format!("{source} to {target} with {}{}", properties.join(", "), rules.unwrap_or_default())
}

/// What a feed knows of its tables when it first sees them.
pub fn tables_of(
    settings: &Settings,
    mapping: &Mapping,
    mut shapes: BTreeMap<TableName, TableShape>,
) -> BTreeMap<TableName, FollowedTable> {
    let mut tables = BTreeMap::new();
    for (name, carried) in mapping.followed() {
        let entries = mapping.entries_of(&name).map(|(at, entry)| MappedEntry::new(entry, &settings.tables[at]));
        let mut entries: Vec<_> = entries.collect();
        entries.sort();
        let shape = shapes.remove(&name).unwrap_or_default();
        tables.insert(name, FollowedTable { shape, carried, entries });
    }
    tables
}

/// Why a graph is not what the mapping makes of its tables, if the mapping was another one when the tables were copied.
pub fn remapped(was: &BTreeMap<TableName, FollowedTable>, now: &BTreeMap<TableName, FollowedTable>) -> Option<String> {
    if let Some(new) = now.keys().find(|name| !was.contains_key(name)) {
        return Some(format!("table {new} is new in the mapping, and its rows are not in the graph"));
    }
    for (name, was) in was {
        let Some(now) = now.get(name) else {
            return Some(format!("table {name} is no longer in the mapping, and what its rows became is in the graph"));
        };
        if was.entries.len() != now.entries.len() {
            let before = was.entries.len();
            let after = now.entries.len();
            return Some(format!("table {name} had {before} entries in the mapping, and has {after}"));
        }
        let mut pairs = was.entries.iter().zip(&now.entries);
        if let Some(difference) = pairs.find_map(|(before, after)| before.difference(after, &was.shape)) {
            return Some(format!("the mapping of table {name} has changed: {difference}"));
        }
    }
    None
}
