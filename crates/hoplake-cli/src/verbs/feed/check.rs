//! `hoplake feed check`: compares the tables with the mapping, and prints what comes of them.

use hoplake_feed::{
    Checked,
    mapping::{Entry, Item, Mapping},
};

use super::{arguments::FileArgs, failure::failed};
use crate::output::print_line;

/// Runs the verb.
pub async fn run(args: &FileArgs) -> anyhow::Result<()> {
    let settings = args.settings()?;
    let Checked { mapping, catalog, .. } = hoplake_feed::check(&settings).await.map_err(failed)?;
    for entry in &mapping.entries {
        print_entry(&mapping, entry)?;
    }
    let unmapped: Vec<_> =
        catalog.tables.iter().filter(|table| !mapping.has(&table.name)).map(|table| table.name.to_string()).collect();
    if !unmapped.is_empty() {
        print_line(format!("not mapped: {}", unmapped.join(", ")))?;
    }
    Ok(())
}

fn print_entry(mapping: &Mapping, entry: &Entry) -> anyhow::Result<()> {
    match &entry.item {
        Item::Vertex(vertex) => {
            print_line(format!("{} -> vertices {}, key {}", entry.table, vertex.label, vertex.key.columns.join(":")))?;
            for edge in &vertex.edges {
                let columns = edge.key.columns.join(":");
                let arrow = if edge.is_outgoing { "->" } else { "<-" };
                let missing =
                    edge.missing.map_or(String::new(), |it| format!(" (may name none: {it:?})").to_lowercase());
                print_line(format!("  {columns} {arrow} edges {} with {}{missing}", edge.label, edge.other))?;
            }
        }
        Item::Edge(edge) => {
            let [source, target] = &edge.ends;
            let key = edge.key.as_ref().map_or(String::new(), |key| format!(", distinguished by {}", key.property));
            print_line(format!("{} -> edges {} -{}-> {}{key}", entry.table, source.label, edge.label, target.label))?;
        }
    }
    for property in &entry.properties {
        let renamed =
            if property.column == property.property { String::new() } else { format!(" from {}", property.column) };
        print_line(format!("  {}: {}{renamed}", property.property, property.kind))?;
    }
    for (column, why) in &entry.not_carried {
        print_line(format!("  {column} is not carried: {why}"))?;
    }
    if !mapping.logs_cascades && mapping.foreign_keys_to(label_of(entry)).any(|(_, _, key)| key.rules.is_some()) {
        print_line("  cascades of its foreign keys are followed in the graph, since the log does not have them")?;
    }
    Ok(())
}

fn label_of(entry: &Entry) -> &str {
    match &entry.item {
        Item::Vertex(vertex) => &vertex.label,
        Item::Edge(_) => "",
    }
}
