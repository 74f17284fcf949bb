//! The description of a graph, as tables.

use std::{
    collections::BTreeMap,
    io::Write,
    time::{Duration, UNIX_EPOCH},
};

use hoplake::{Direction, EdgeType, Graph, Property, Schema, SectionKind, TableOwner};

use super::{degrees, facts::Facts};
use crate::output::{
    numbers::{bytes, count, counted},
    tables::table,
};

/// Writes everything.
pub fn write(facts: &Facts, out: &mut impl Write) -> anyhow::Result<()> {
    let info = &facts.info;
    let manifest = facts.graph.manifest();
    let created = humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_millis(manifest.created_unix_ms));
    writeln!(
        out,
        "{}, version {} of {created}\n{}, {}, {}, {:.2} bytes per directed edge",
        facts.url,
        info.version,
        counted(info.vertices, "vertex", "vertices"),
        at_most(info.edges_exact, counted(info.edges, "edge", "edges")),
        bytes(info.total_bytes),
        info.bytes_per_directed_edge(),
    )?;
    if !manifest.change.message.is_empty() {
        writeln!(out, "message: {}", manifest.change.message)?;
    }
    writeln!(out, "versions: {}", ranges(&facts.versions))?;
    for index in &manifest.indexes {
        let state = if index.is_ready() { "" } else { ", being built" };
        writeln!(out, "index: {}{state}", facts.index_name(index.id))?;
    }
    writeln!(out)?;
    write_labels(facts.graph, out)?;
    write_edge_types(facts.graph, out)?;
    write_degrees(facts.graph, out)?;
    write_sizes(facts, out)?;
    facts.upkeep.write(facts, out)
}

/// Ascending numbers, those that follow each other as `1 to 46`.
fn ranges(numbers: &[u64]) -> String {
    let of_run = |run: &[u64]| match run {
        [first, _, .., last] => format!("{first} to {last}"),
        few => few.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
    };
    numbers.chunk_by(|a, b| a + 1 == *b).map(of_run).collect::<Vec<_>>().join(", ")
}

fn properties(properties: &[Property]) -> String {
    properties.iter().map(|property| format!("{} {}", property.name, property.kind)).collect::<Vec<_>>().join(", ")
}

fn label_name(schema: &Schema, id: hoplake::LabelId) -> &str {
    schema.label(id).map_or("?", |label| &label.name)
}

fn edge_name(schema: &Schema, edge: &EdgeType) -> String {
    format!("{} -{}-> {}", label_name(schema, edge.source), edge.label, label_name(schema, edge.target))
}

/// A count that may be an upper bound.
fn at_most(exact: bool, count: String) -> String {
    if exact { count } else { format!("≤ {count}") }
}

/// Writes the labels, their keys, counts and properties.
pub fn write_labels(graph: &Graph, out: &mut impl Write) -> anyhow::Result<()> {
    let mut text = table(&["label", "key", "vertices", "properties"], &[2]).wrapped();
    for (label, vertices) in graph.schema().vertex_labels.iter().zip(&graph.manifest().vertex_counts) {
        text.add_row([
            label.name.clone(),
            label.key_type.to_string(),
            count(vertices.live()),
            properties(&label.properties),
        ]);
    }
    Ok(writeln!(out, "{text}\n")?)
}

/// Writes the edge types, their counts and properties.
pub fn write_edge_types(graph: &Graph, out: &mut impl Write) -> anyhow::Result<()> {
    let mut text = table(&["edge", "from", "to", "edges", "properties"], &[3]).wrapped();
    let schema = graph.schema();
    for ((id, edge), edges) in schema.edge_types().zip(&graph.manifest().edge_counts) {
        let ends = [label_name(schema, edge.source), label_name(schema, edge.target)].map(str::to_owned);
        let [from, to] = ends;
        let edges = at_most(graph.is_edge_count_exact(id), count(*edges));
        text.add_row([edge.label.clone(), from, to, edges, properties(&edge.properties)]);
    }
    Ok(writeln!(out, "{text}\n")?)
}

fn write_degrees(graph: &Graph, out: &mut impl Write) -> anyhow::Result<()> {
    let header = ["degrees", "direction", "vertices with edges", "mean", "about p50", "about p99", "max"];
    let mut text = table(&header, &[2, 3, 4, 5, 6]).wrapped();
    let manifest = graph.manifest();
    let edge_types = graph.schema().edge_types().zip(&manifest.edge_counts).zip(&manifest.degrees);
    for (((id, edge), edges), summaries) in edge_types {
        for (direction, summary) in Direction::ALL.iter().zip(summaries) {
            text.add_row([
                edge_name(graph.schema(), edge),
                direction.to_string(),
                count(summary.vertices()),
                at_most(graph.is_edge_count_exact(id), format!("{:.1}", degrees::mean(summary, *edges))),
                count(degrees::quantile(summary, 0.5)),
                count(degrees::quantile(summary, 0.99)),
                count(summary.max),
            ]);
        }
    }
    Ok(writeln!(out, "{text}\n")?)
}

fn write_sizes(facts: &Facts, out: &mut impl Write) -> anyhow::Result<()> {
    let schema = facts.graph.schema();
    let edge = |id| schema.edge_type(id).map_or_else(|| "?".into(), |edge| edge_name(schema, edge));
    let mut text = table(&["section", "items", "blocks", "bytes", "bytes per item"], &[1, 2, 3, 4]).wrapped();
    // A section has as many sorted runs as commits left: one line for all of them.
    let mut sums: Vec<(String, [u64; 3])> = Vec::new();
    for section in &facts.info.sections {
        let name = match section.kind {
            SectionKind::Keys(label) => format!("keys of {}", label_name(schema, label)),
            SectionKind::Tombstones(label) => format!("deleted keys of {}", label_name(schema, label)),
            SectionKind::Rows(label) => format!("changed rows of {}", label_name(schema, label)),
            SectionKind::Adjacency(edge_type, direction) => format!("{}, {direction}", edge(edge_type)),
            SectionKind::Removed(edge_type, direction) => format!("removed {}, {direction}", edge(edge_type)),
            SectionKind::Values(index) => format!("index {}", facts.index_name(index)),
            SectionKind::RemovedValues(index) => format!("removed from index {}", facts.index_name(index)),
        };
        let more = [section.items, section.blocks, section.bytes];
        match sums.iter_mut().find(|(known, _)| *known == name) {
            Some((_, sum)) => sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more),
            None => sums.push((name, more)),
        }
    }
    for (name, [items, blocks, size]) in sums {
        let each = if items == 0 { 0.0 } else { size as f64 / items as f64 };
        text.add_row([name, count(items), count(blocks), bytes(size), format!("{each:.2}")]);
    }
    // A label's rows may be in several files.
    let mut tables: BTreeMap<TableOwner, u64> = BTreeMap::new();
    facts.info.tables.iter().for_each(|(owner, bytes)| *tables.entry(*owner).or_default() += bytes);
    for (owner, size) in tables {
        let name = match owner {
            TableOwner::Vertices(label) => format!("properties of {}", label_name(schema, label)),
            TableOwner::Changed(label) => format!("changed properties of {}", label_name(schema, label)),
            TableOwner::Edges(edge_type, direction) => format!("properties of {}, {direction}", edge(edge_type)),
        };
        text.add_row([name, String::new(), String::new(), bytes(size), String::new()]);
    }
    text.add_row([
        "indexes and filters".into(),
        String::new(),
        String::new(),
        bytes(facts.info.index_bytes),
        String::new(),
    ]);
    text.add_row(["total".into(), String::new(), String::new(), bytes(facts.info.total_bytes), String::new()]);
    Ok(writeln!(out, "{text}")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_that_follow_each_other_are_a_range() {
        assert_eq!(ranges(&[1, 2, 3, 4, 7, 9, 10, 12, 13, 14]), "1 to 4, 7, 9, 10, 12 to 14");
        assert_eq!(ranges(&[]), "");
    }
}
