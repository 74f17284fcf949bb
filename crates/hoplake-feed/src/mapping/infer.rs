//! A first mapping, from a catalog of primary and foreign keys.
//!
//! A table whose rows do little more than name two others is an edge: its primary key is in two foreign keys that are not null, and
//! nothing names it. Every other table with a primary key is a vertex, and its foreign keys are edges.

use hoplake::Name;

use crate::{Catalog, EdgeEntry, EndEntry, ForeignKey, ForeignKeyEntry, OneOrMore, Table, TableEntry, VertexEntry};

/// Entries for all tables of a schema, and remarks on what was left out.
pub fn infer(catalog: &Catalog, default_schema: &str) -> (Vec<TableEntry>, Vec<String>) {
    let mut entries = Vec::new();
    let mut remarks = Vec::new();
    for table in &catalog.tables {
        if table.primary_key.is_empty() {
            remarks.push(format!("table {} has no primary key and was left out", table.name));
            continue;
        }
        let mut entry = empty(table, default_schema);
        for column in &table.columns {
            if column.kind.is_none() {
                entry.ignore.push(column.name.to_string());
                remarks.push(format!(
                    "column {} of {} has type {}, which is not supported",
                    column.name, table.name, column.declared
                ));
            } else if let Some(better) = column.suggested {
                entry.types.insert(column.name.to_string(), better.to_string());
            }
        }
        match ends(catalog, table) {
            Some([source, target]) => entry.edge = Some(edge(table, source, target)),
            None => {
                entry.vertex = Some(VertexEntry { label: label(&table.name.name), key: None });
                let keys = table.foreign_keys.iter().filter(|key| names_key(catalog, key));
                entry.edges = keys.map(|key| foreign_key(table, key)).collect();
            }
        }
        entries.push(entry);
    }
    (entries, remarks)
}

fn empty(table: &Table, default_schema: &str) -> TableEntry {
    TableEntry {
        name: table.name.written(default_schema),
        condition: None,
        ignore: Vec::new(),
        keep: Vec::new(),
        rename: Default::default(),
        types: Default::default(),
        on_error: Default::default(),
        cascades: Default::default(),
        vertex: None,
        edges: Vec::new(),
        edge: None,
    }
}

/// The two foreign keys that a table of edges consists of.
fn ends<'a>(catalog: &Catalog, table: &'a Table) -> Option<[&'a ForeignKey; 2]> {
    let in_key = |key: &&ForeignKey| key.columns.iter().all(|column| table.primary_key.contains(column));
    let keys: Vec<_> = table.foreign_keys.iter().filter(in_key).filter(|key| names_key(catalog, key)).collect();
    let [source, target] = keys[..] else { return None };
    let is_named = catalog.tables.iter().flat_map(|other| &other.foreign_keys).any(|key| key.target == table.name);
    let overlaps = source.columns.iter().any(|column| target.columns.contains(column));
    // Further foreign keys would be lost.
    let others = table.foreign_keys.iter().filter(|key| !keys.contains(key)).count();
    (!is_named && !overlaps && others == 0).then_some([source, target])
}

/// Whether a foreign key names the primary key of a table that there is.
fn names_key(catalog: &Catalog, key: &ForeignKey) -> bool {
    catalog.table(&key.target).is_some_and(|target| target.primary_key == key.target_columns)
}

fn edge(table: &Table, source: &ForeignKey, target: &ForeignKey) -> EdgeEntry {
    let end = |key: &ForeignKey| EndEntry {
        label: label(&key.target.name),
        columns: OneOrMore::of(key.columns.iter().map(ToString::to_string)),
    };
    EdgeEntry {
        label: table.name.name.to_string(),
        source: end(source),
        target: end(target),
        key: None,
        missing: Default::default(),
    }
}

/// The label of the edge is the column without its ending; or the table that it names, if that says the same or the columns are several.
fn foreign_key(table: &Table, key: &ForeignKey) -> ForeignKeyEntry {
    let others = table.foreign_keys.iter().filter(|other| other.target == key.target).count();
    let column = key.columns[0].as_str();
    let stem = ["_id", "_no", "_key", "_code"].iter().find_map(|ending| column.strip_suffix(ending)).unwrap_or(column);
    let target = key.target.name.as_str();
    let is_target = others == 1 && (key.columns.len() > 1 || target.starts_with(stem));
    let name = if is_target { target } else { stem };
    ForeignKeyEntry {
        label: name.to_owned(),
        columns: OneOrMore::of(key.columns.iter().map(ToString::to_string)),
        to: Some(label(&key.target.name)),
        from: None,
        missing: Default::default(),
        properties: Vec::new(),
    }
}

/// `sales_order` becomes `SalesOrder`.
fn label(table: &Name) -> String {
    let words = table.split('_').filter(|word| !word.is_empty());
    let capital = |word: &str| {
        let mut letters = word.chars();
        let first = letters.next().into_iter().flat_map(char::to_uppercase);
        first.chain(letters).collect::<String>()
    };
    words.map(capital).collect()
}
