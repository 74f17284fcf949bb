//! A graph as plain maps: what a version has, and what tables say it should have.

use std::collections::BTreeMap;

use hoplake::{Graph, ScanRequest, Value, arrow::array::RecordBatch};

/// Properties that are not null, as text.
pub type Properties = BTreeMap<String, String>;

/// Vertices by `label:key`, and edges by `source -label-> target` with the properties of each.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Model {
    pub vertices: BTreeMap<String, Properties>,
    pub edges: BTreeMap<String, Vec<Properties>>,
}

impl Model {
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
        let mut lines = std::collections::BTreeSet::new();
        let short = |text: &str| text.chars().take(60).collect::<String>();
        for name in self.vertices.keys().chain(other.vertices.keys()) {
            match (self.vertices.get(name), other.vertices.get(name)) {
                (Some(here), Some(there)) => {
                    for property in
                        here.keys().chain(there.keys()).filter(|property| here.get(*property) != there.get(*property))
                    {
                        let of = |all: &Properties| all.get(property).map_or("-".to_owned(), |value| short(value));
                        lines.insert(format!("{name} {property}: {} | {}", of(here), of(there)));
                    }
                }
                (here, there) => drop(lines.insert(format!("{name}: {} | {}", here.is_some(), there.is_some()))),
            }
        }
        for name in self.edges.keys().chain(other.edges.keys()) {
            let of = |model: &Self| model.edges.get(name).map_or("-".to_owned(), |it| short(&format!("{it:?}")));
            if self.edges.get(name) != other.edges.get(name) {
                lines.insert(format!("{name}: {} | {}", of(self), of(other)));
            }
        }
        lines.into_iter().take(20).collect::<Vec<_>>().join("\n")
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
