//! Values as JSON without types, for people and programs that know what to expect.
//!
//! Numbers are numbers, and those that JSON has no form for are text: `NaN`, and integers beyond 64 bits. An element is an object
//! with its id, label and properties, a path its objects and labels, a map an object whose keys are text, and a bulk set its values
//! with their numbers.

use serde_json::{Map, Value as Json, json};

use super::{Metrics, Property, Tree, Value, VertexProperty};
use crate::literal::Number;

impl Value {
    /// As JSON without types.
    pub fn to_json(&self) -> Json {
        match self {
            Self::Null => Json::Null,
            Self::Boolean(boolean) => json!(boolean),
            Self::Number(number) => number_json(number),
            Self::List(items) | Self::Set(items) => items.iter().map(Self::to_json).collect(),
            Self::BulkSet(items) => {
                // An item may be in it billions of times.
                items.iter().map(|(item, bulk)| json!({"value": item.to_json(), "bulk": bulk})).collect()
            }
            Self::Map(entries) => object(entries.iter().map(|(key, value)| (key.to_string(), value.to_json()))),
            Self::Entry(entry) => object([(entry.0.to_string(), entry.1.to_json())]),
            Self::Vertex(vertex) => {
                let mut json = json!({"id": vertex.id.to_json(), "label": &*vertex.label});
                if let Some(properties) = &vertex.properties {
                    json["properties"] = vertex_properties(properties);
                }
                json
            }
            Self::Edge(edge) => {
                let mut json = json!({
                    "id": edge.id.to_json(),
                    "label": &*edge.label,
                    "outV": edge.out_vertex.0.to_json(),
                    "outVLabel": &*edge.out_vertex.1,
                    "inV": edge.in_vertex.0.to_json(),
                    "inVLabel": &*edge.in_vertex.1,
                });
                if let Some(properties) = &edge.properties {
                    json["properties"] = edge_properties(properties);
                }
                json
            }
            Self::VertexProperty(property) => {
                json!({"id": property.id.to_json(), "label": &*property.key, "value": property.value.to_json()})
            }
            Self::Property(property) => json!({"key": &*property.key, "value": property.value.to_json()}),
            Self::Path(path) => {
                let objects: Json = path.steps.iter().map(|(item, _)| item.to_json()).collect();
                let labels: Json = path.steps.iter().map(|(_, labels)| json!(labels)).collect();
                json!({"labels": labels, "objects": objects})
            }
            Self::Tree(tree) => tree_json(tree),
            Self::Graph(graph) => {
                let all = |elements: &[Self]| elements.iter().map(Self::to_json).collect::<Json>();
                json!({"vertices": all(&graph.vertices), "edges": all(&graph.edges)})
            }
            Self::Traverser(traverser) => traverser.value.to_json(),
            Self::Metrics(metrics) => {
                let steps: Json = metrics.steps.iter().map(metrics_json).collect();
                json!({"dur_ms": milliseconds(metrics.duration_nanos), "metrics": steps})
            }
            other => json!(other.to_string()),
        }
    }
}

fn metrics_json(step: &Metrics) -> Json {
    let counts = object(step.counts.iter().map(|(name, count)| (name.to_string(), json!(count))));
    let annotations = object(step.annotations.iter().map(|(name, value)| (name.to_string(), value.to_json())));
    let duration = milliseconds(step.duration_nanos);
    json!({"id": &*step.id, "name": &*step.name, "dur_ms": duration, "counts": counts, "annotations": annotations})
}

fn milliseconds(nanos: i64) -> f64 {
    nanos as f64 / 1e6
}

fn object(entries: impl IntoIterator<Item = (String, Json)>) -> Json {
    Json::Object(entries.into_iter().collect())
}

fn number_json(number: &Number) -> Json {
    match number {
        Number::Float(float) if float.is_finite() => json!(float),
        Number::Double(double) if double.is_finite() => json!(double),
        Number::Byte(_) | Number::Short(_) | Number::Int(_) | Number::Long(_) => json!(super::to_i64(number)),
        other => json!(Value::Number(other.clone()).to_string()),
    }
}

/// The values of each name, in a list: a vertex may have several.
fn vertex_properties(properties: &[VertexProperty]) -> Json {
    let mut all: Map<String, Json> = Map::new();
    for property in properties {
        let values = all.entry(property.key.to_string()).or_insert_with(|| Json::Array(Vec::new()));
        if let Json::Array(values) = values {
            values.push(property.value.to_json());
        }
    }
    Json::Object(all)
}

fn edge_properties(properties: &[Property]) -> Json {
    object(properties.iter().map(|property| (property.key.to_string(), property.value.to_json())))
}

fn tree_json(tree: &Tree) -> Json {
    object(tree.branches.iter().map(|(item, below)| (item.to_string(), tree_json(below))))
}
