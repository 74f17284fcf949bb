//! The description of a graph, as one JSON object.

use hoplake::{Direction, Property, PropertyIndex, SectionKind, TableOwner};
use serde_json::{Map, Value, json};

use super::{degrees, facts::Facts};

/// The object.
pub fn object(facts: &Facts) -> Value {
    let manifest = facts.graph.manifest();
    json!({
        "url": facts.url,
        "version": facts.info.version,
        "versions": facts.versions,
        "created_unix_ms": manifest.created_unix_ms,
        "message": manifest.change.message,
        "vertices": facts.info.vertices,
        "edges": facts.info.edges,
        "edges_exact": facts.info.edges_exact,
        "labels": labels(facts),
        "edge_types": edge_types(facts),
        "indexes": indexes(facts),
        "sections": sections(facts),
        "tables": facts.info.tables.iter().map(|(owner, bytes)| table(facts, *owner, *bytes)).collect::<Vec<_>>(),
        "index_bytes": facts.info.index_bytes,
        "total_bytes": facts.info.total_bytes,
        "bytes_per_directed_edge": facts.info.bytes_per_directed_edge(),
        "runs": facts.upkeep.json(facts),
        "compaction_due": facts.upkeep.is_due(),
    })
}

fn properties(properties: &[Property]) -> Value {
    properties.iter().map(|property| json!({"name": property.name, "type": property.kind.to_string()})).collect()
}

fn labels(facts: &Facts) -> Value {
    let counts = &facts.graph.manifest().vertex_counts;
    let labels = facts.graph.schema().vertex_labels.iter().zip(counts);
    labels
        .map(|(label, count)| {
            json!({
                "label": label.name,
                "key_type": label.key_type.to_string(),
                "count": count.live(),
                "properties": properties(&label.properties),
            })
        })
        .collect()
}

fn edge_types(facts: &Facts) -> Value {
    let schema = facts.graph.schema();
    let manifest = facts.graph.manifest();
    let name = |id| schema.label(id).map(|label| label.name.as_str());
    let counts = manifest.edge_counts.iter().zip(&manifest.degrees);
    let edge_types = schema.edge_types().zip(counts);
    edge_types
        .map(|((id, edge), (count, summaries))| {
            let degrees = Direction::ALL.iter().zip(summaries).map(|(direction, summary)| {
                let value = json!({
                    "vertices": summary.vertices(),
                    "mean": degrees::mean(summary, *count),
                    "max": summary.max,
                    "p50_about": degrees::quantile(summary, 0.5),
                    "p99_about": degrees::quantile(summary, 0.99),
                });
                (direction.to_string(), value)
            });
            json!({
                "label": edge.label,
                "source": name(edge.source),
                "target": name(edge.target),
                "count": count,
                "count_exact": facts.graph.is_edge_count_exact(id),
                "properties": properties(&edge.properties),
                "degrees": degrees.collect::<Map<_, _>>(),
            })
        })
        .collect()
}

fn indexes(facts: &Facts) -> Value {
    let index = |index: &PropertyIndex| json!({"index": facts.index_name(index.id), "ready": index.is_ready()});
    facts.graph.manifest().indexes.iter().map(index).collect()
}

fn sections(facts: &Facts) -> Value {
    let schema = facts.graph.schema();
    let each = facts.info.sections.iter().map(|section| {
        let versions = [section.versions.since, section.versions.until];
        let sizes =
            json!({"versions": versions, "items": section.items, "blocks": section.blocks, "bytes": section.bytes});
        let of_label = |kind, label| json!({"kind": kind, "label": schema.label(label).map(|label| &label.name)});
        let what = match section.kind {
            SectionKind::Keys(label) => of_label("keys", label),
            SectionKind::Tombstones(label) => of_label("tombstones", label),
            SectionKind::Rows(label) => of_label("rows", label),
            SectionKind::Adjacency(edge_type, direction) => with_edge_type(facts, "adjacency", edge_type, direction),
            SectionKind::Removed(edge_type, direction) => with_edge_type(facts, "removed", edge_type, direction),
            SectionKind::Values(index) => json!({"kind": "values", "index": facts.index_name(index)}),
            SectionKind::RemovedValues(index) => json!({"kind": "removed values", "index": facts.index_name(index)}),
        };
        merged(what, sizes)
    });
    each.collect()
}

fn table(facts: &Facts, owner: TableOwner, bytes: u64) -> Value {
    let of_label =
        |kind, label| json!({"kind": kind, "label": facts.graph.schema().label(label).map(|label| &label.name)});
    let what = match owner {
        TableOwner::Vertices(label) => of_label("vertices", label),
        TableOwner::Changed(label) => of_label("changed vertices", label),
        TableOwner::Edges(edge_type, direction) => with_edge_type(facts, "edges", edge_type, direction),
    };
    merged(what, json!({"bytes": bytes}))
}

fn with_edge_type(facts: &Facts, kind: &str, edge_type: hoplake::EdgeTypeId, direction: Direction) -> Value {
    let schema = facts.graph.schema();
    let edge = schema.edge_type(edge_type);
    let name = |id| schema.label(id).map(|label| label.name.as_str());
    json!({
        "kind": kind,
        "label": edge.map(|edge| &edge.label),
        "source": edge.and_then(|edge| name(edge.source)),
        "target": edge.and_then(|edge| name(edge.target)),
        "direction": direction.to_string(),
    })
}

fn merged(mut what: Value, more: Value) -> Value {
    if let (Value::Object(what), Value::Object(more)) = (&mut what, more) {
        what.extend(more);
    }
    what
}
