//! A graph as plain maps: what a version has, and what tables say it should have.

use std::collections::BTreeMap;

use hoplake::{Graph, Key, OpenSettings, ScanRequest, Store, Value, arrow::array::RecordBatch};

/// Properties that are not null, as text.
pub type Properties = BTreeMap<String, String>;

/// Vertices by `label:key`, and edges by `source -label-> target` with the properties of each.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Model {
    pub vertices: BTreeMap<String, Properties>,
    pub edges: BTreeMap<String, Vec<Properties>>,
}

impl Model {
    /// All of a version of a graph.
    pub async fn of_version(store: &Store, version: u64) -> Self {
        let settings = OpenSettings { version: Some(version), ..OpenSettings::default() };
        Self::of_graph(&Graph::open_with(store.clone(), &settings).await.unwrap()).await
    }

    /// All of a graph.
    pub async fn of_graph(graph: &Graph) -> Self {
        let mut model = Self::default();
        let mut query = graph.query();
        let schema = graph.schema();
        for label in &schema.vertex_labels {
            let select = label.properties.iter().map(|property| property.name.clone()).collect();
            let request = ScanRequest { labels: vec![label.name.clone()], select, ..ScanRequest::default() };
            let mut scan = query.scan(&request).unwrap();
            while let Some(rows) = query.next_rows(&mut scan).await.unwrap() {
                for row in 0..rows.batch.num_rows() {
                    let name =
                        format!("{}:{}", label.name, text(&Value::at(rows.batch.column_by_name("~key").unwrap(), row)));
                    assert!(
                        model.vertices.insert(name.clone(), properties(&rows.batch, row)).is_none(),
                        "{name} twice"
                    );
                }
            }
        }
        for edge in &schema.edge_types {
            let [source, target] = [edge.source, edge.target].map(|label| schema.label(label).unwrap().name.as_str());
            let columns: Vec<_> = edge.properties.iter().map(|property| property.name.clone()).collect();
            let mut scan = query.scan_edges(&edge.label, (source, target), &columns).await.unwrap();
            while let Some(batch) = query.next_edges(&mut scan).await.unwrap() {
                for row in 0..batch.num_rows() {
                    let end = |column: usize| text(&Value::at(batch.column(column), row));
                    model.add_edge((source, &end(0)), &edge.label, (target, &end(1)), properties(&batch, row));
                }
            }
        }
        model
    }

    pub fn add_edge(&mut self, source: (&str, &str), label: &str, target: (&str, &str), properties: Properties) {
        let name = format!("{}:{} -{label}-> {}:{}", source.0, source.1, target.0, target.1);
        let all = self.edges.entry(name).or_default();
        all.push(properties);
        all.sort();
    }

    /// What one has and the other has not, for messages.
    pub fn difference(&self, other: &Self) -> String {
        let mut lines = Vec::new();
        let mut compare = |what: &str, here: Option<String>, there: Option<String>| {
            if here != there {
                lines.push(format!("{what}: {} | {}", here.unwrap_or("-".into()), there.unwrap_or("-".into())));
            }
        };
        for name in self.vertices.keys().chain(other.vertices.keys()) {
            let of = |model: &Self| model.vertices.get(name).map(|it| format!("{it:?}"));
            compare(name, of(self), of(other));
        }
        for name in self.edges.keys().chain(other.edges.keys()) {
            let of = |model: &Self| model.edges.get(name).map(|it| format!("{it:?}"));
            compare(name, of(self), of(other));
        }
        lines.sort();
        lines.dedup();
        lines.truncate(20);
        lines.join("\n")
    }
}

fn properties(batch: &RecordBatch, row: usize) -> Properties {
    let schema = batch.schema();
    let columns = schema.fields().iter().zip(batch.columns()).filter(|(field, _)| !field.name().starts_with('~'));
    let values = columns.map(|(field, column)| (field.name().clone(), Value::at(column, row)));
    values.filter(|(_, value)| *value != Value::Null).map(|(name, value)| (name, text(&value))).collect()
}

/// A value in a form that SQL can write, too: dates and timestamps as numbers since 1970, lists with commas.
fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Bool(it) => i32::from(*it).to_string(),
        Value::Int64(number) => number.to_string(),
        Value::Float64(number) => format!("{}", (number * 8.0).round()),
        Value::String(text) => text.clone(),
        Value::Date(days) => days.to_string(),
        Value::Timestamp(micros) => micros.to_string(),
        Value::List(items) => items.iter().map(text).collect::<Vec<_>>().join(","),
    }
}

#[allow(dead_code)]
pub fn key(key: &Key) -> String {
    match key {
        Key::Int64(key) => key.to_string(),
        Key::String(key) => key.clone(),
    }
}
