//! Whether the mapping can follow what a database changes without logging it.
//!
//! InnoDB deletes and updates rows by the rules of foreign keys, and the binlog shows nothing of it. The fold does the same in the
//! graph, along the edges of these foreign keys. That works only where the graph has them.

use super::{Entry, Item, Mapping};
use crate::{Cascades, Catalog, FeedError, ForeignKey, OnError, Rule, Settings, TableName};

/// Rejects a mapping that would miss an effect of a rule.
pub(super) fn check(
    settings: &Settings,
    mapping: &Mapping,
    catalog: &Catalog,
    table_name: &dyn Fn(&str) -> TableName,
) -> Result<(), FeedError> {
    for (written, entry) in settings.tables.iter().zip(&mapping.entries) {
        if written.cascades == Cascades::Ignore {
            continue;
        }
        let Some(table) = catalog.table(&table_name(&written.name)) else { continue };
        for key in &table.foreign_keys {
            if let Some(effect) = hidden(mapping, entry, key) {
                let columns = key.columns.join(", ");
                let why = format!(
                    "table {}: the database does not log that rows {effect} by the foreign key {columns} to {}, and where hides such rows \
                     from the graph",
                    entry.table, key.target
                );
                let hint = "leave where out, and filter in queries; or write cascades = \"ignore\", and let a reconciliation repair it";
                return Err(FeedError::invalid(why).hint(hint));
            }
            if entry.on_error == OnError::DeadLetter
                && let Some(effect) = followed_by_others(mapping, entry, key)
            {
                let columns = key.columns.join(", ");
                let why = format!(
                    "table {}: the database does not log that rows {effect} by the foreign key {columns} to {}, and on_error = \"dead-letter\" \
                     would keep those that cannot be read from the graph",
                    entry.table, key.target
                );
                let hint = "leave on_error out, and give columns that cannot be read another type, or ignore them; or write cascades = \
                            \"ignore\", and let a reconciliation repair it";
                return Err(FeedError::invalid(why).hint(hint));
            }
            if let Some(effect) = missed(mapping, entry, key) {
                let columns = key.columns.join(", ");
                let why = format!(
                    "table {}: the database does not log that {effect}, and the foreign key {columns} to {} is not an edge",
                    entry.table, key.target
                );
                let hint = format!(
                    "make {} vertices and {columns} an edge to them; or write cascades = \"ignore\", and let a reconciliation repair it",
                    key.target
                );
                return Err(FeedError::invalid(why).hint(hint));
            }
        }
    }
    Ok(())
}

/// What happens to rows that a condition hides, on which others depend.
fn hidden(mapping: &Mapping, entry: &Entry, key: &ForeignKey) -> Option<&'static str> {
    let condition = entry.condition.as_ref()?;
    let changes = |rule: Rule| rule != Rule::Restrict;
    // Whether a row is hidden would change with it.
    if condition.columns().iter().any(|column| key.columns.contains(column)) {
        match (key.on_delete, key.on_update) {
            (Rule::SetNull | Rule::SetDefault, _) => return Some("lose what their condition is about"),
            (_, rule) if changes(rule) => return Some("change what their condition is about"),
            _ => {}
        }
    }
    followed_by_others(mapping, entry, key)
}

/// What happens to rows that other rows or edges follow: those that are not in the graph would be followed by none.
fn followed_by_others(mapping: &Mapping, entry: &Entry, key: &ForeignKey) -> Option<&'static str> {
    let changes = |rule: Rule| rule != Rule::Restrict;
    // Only of a vertex do others depend: its edges, and the rows that go with it.
    let Item::Vertex(vertex) = &entry.item else { return None };
    let is_named =
        mapping.foreign_keys_to(&vertex.label).next().is_some() || mapping.edges_at(&vertex.label).next().is_some();
    if !is_named {
        return None;
    }
    match (key.on_delete, key.on_update) {
        (Rule::Cascade, _) => Some("are deleted with those that they name"),
        (_, rule) if changes(rule) && vertex.key.columns.iter().any(|column| key.columns.contains(column)) => {
            Some("get other keys with those that they name")
        }
        _ => None,
    }
}

/// What happens to rows of an entry that neither the log nor the graph shows.
fn missed(mapping: &Mapping, entry: &Entry, key: &ForeignKey) -> Option<&'static str> {
    let is_carried = |entry: &Entry| {
        let in_key = match &entry.item {
            Item::Vertex(vertex) => vertex.key.columns.iter().any(|column| key.columns.contains(column)),
            Item::Edge(edge) => {
                let of_ends = edge.ends.iter().flat_map(|end| &end.key.columns);
                of_ends.chain(edge.key.iter().flat_map(|key| &key.columns)).any(|column| key.columns.contains(column))
            }
        };
        in_key
            || entry.properties.iter().any(|property| key.columns.contains(&property.column))
            || entry.condition.as_ref().is_some_and(|it| it.columns().iter().any(|column| key.columns.contains(column)))
    };
    let is_of_target = |label: &str| mapping.vertices(label).is_some_and(|(target, _)| target.table == key.target);
    let is_edge = match &entry.item {
        Item::Vertex(vertex) => {
            vertex.edges.iter().any(|edge| edge.key.columns == key.columns && is_of_target(&edge.other))
        }
        Item::Edge(edge) => edge.ends.iter().any(|end| end.key.columns == key.columns && is_of_target(&end.label)),
    };
    match (key.on_delete, key.on_update) {
        _ if is_edge => None,
        (Rule::Cascade, _) => Some("rows are deleted with those that they name"),
        (Rule::SetNull | Rule::SetDefault, _) if is_carried(entry) => {
            Some("columns become null when the rows that they name are deleted")
        }
        (_, Rule::Cascade | Rule::SetNull | Rule::SetDefault) if is_carried(entry) => {
            Some("columns change with the keys of the rows that they name")
        }
        _ => None,
    }
}
