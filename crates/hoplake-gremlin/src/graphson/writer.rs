//! From responses and values to JSON, with names in the order in which the server of TinkerPop writes them.

use std::fmt::Display;

use base64::{Engine, engine::general_purpose::STANDARD};
use hoplake_query::{
    literal::Number,
    moment::{Moment, offset_text},
    value::{Edge, Metrics, Path, Property, TraversalMetrics, Tree, Value, Vertex, VertexProperty},
};
use jiff::SignedDuration;

use super::version::{BULK_MAX, EncodeError, Version};
use crate::message::Response;

type EncodeResult = Result<(), EncodeError>;

pub struct Writer<'a> {
    pub json: &'a mut String,
    pub version: Version,
}

impl Writer<'_> {
    pub fn response(&mut self, response: &Response) -> EncodeResult {
        self.raw("{\"requestId\":");
        match response.request_id {
            Some(id) => self.text(&id.to_string()),
            None => self.raw("null"),
        }
        self.raw(",\"status\":{\"message\":");
        self.text(response.message.as_deref().unwrap_or_default());
        self.raw(&format!(",\"code\":{},\"attributes\":", response.status));
        self.map(&response.attributes)?;
        self.raw("},\"result\":{\"data\":");
        self.value(&response.data)?;
        self.raw(",\"meta\":");
        self.map(&response.meta)?;
        self.raw("}}");
        Ok(())
    }

    pub fn value(&mut self, value: &Value) -> EncodeResult {
        match value {
            Value::Null => self.raw("null"),
            Value::Boolean(boolean) => self.raw(if *boolean { "true" } else { "false" }),
            Value::Number(number) => self.number(number),
            Value::Text(text) => self.text(text),
            Value::Char(character) => self.typed_text("gx:Char", character),
            Value::DateTime(moment) => self.time(*moment),
            Value::Duration(duration) => self.typed_text("gx:Duration", iso_duration(*duration)),
            Value::Uuid(uuid) => self.typed_text("g:UUID", uuid),
            Value::Bytes(bytes) => self.typed_text("gx:ByteBuffer", STANDARD.encode(bytes)),
            Value::List(items) => return self.list("g:List", items),
            Value::Set(items) => return self.list("g:Set", items),
            Value::BulkSet(items) => return self.bulk_set(items),
            Value::Map(entries) => return self.map(entries),
            Value::Entry(entry) => return self.map(std::slice::from_ref(entry)),
            Value::Unread(_) => return Err(EncodeError::Unread),
            Value::Vertex(vertex) => return self.typed("g:Vertex", |it| it.vertex(vertex)),
            Value::Edge(edge) => return self.typed("g:Edge", |it| it.edge(edge)),
            Value::VertexProperty(property) => return self.vertex_property(property),
            Value::Property(property) => return self.property(property),
            Value::Path(path) => return self.typed("g:Path", |it| it.path(path)),
            Value::Tree(tree) => return self.tree(tree),
            Value::Graph(graph) => {
                return self.typed("tinker:graph", |it| {
                    it.raw("{\"vertices\":");
                    it.items(&graph.vertices, Self::value)?;
                    it.raw(",\"edges\":");
                    it.items(&graph.edges, Self::value)?;
                    it.raw("}");
                    Ok(())
                });
            }
            Value::Token(token) => self.typed_text(&format!("g:{}", token.enumeration()), token.name()),
            Value::Traverser(traverser) => {
                return self.typed("g:Traverser", |it| {
                    it.raw("{\"bulk\":");
                    it.typed_raw("g:Int64", traverser.bulk);
                    it.raw(",\"value\":");
                    it.value(&traverser.value)?;
                    it.raw("}");
                    Ok(())
                });
            }
            Value::Metrics(metrics) => {
                return self.typed("g:TraversalMetrics", |it| it.traversal_metrics(metrics));
            }
        }
        Ok(())
    }

    fn number(&mut self, number: &Number) {
        match number {
            Number::Byte(number) => self.typed_raw("gx:Byte", number),
            Number::Short(number) => self.typed_raw("gx:Int16", number),
            Number::Int(number) => self.typed_raw("g:Int32", number),
            Number::Long(number) => self.typed_raw("g:Int64", number),
            Number::BigInteger(number) => self.typed_raw("gx:BigInteger", number),
            Number::BigDecimal(number) => self.typed_raw("gx:BigDecimal", number),
            Number::Float(number) if number.is_finite() => self.typed_raw("g:Float", format!("{number:?}")),
            Number::Double(number) if number.is_finite() => self.typed_raw("g:Double", format!("{number:?}")),
            Number::Float(number) => self.typed_text("g:Float", not_finite(f64::from(*number))),
            Number::Double(number) => self.typed_text("g:Double", not_finite(*number)),
        }
    }

    fn time(&mut self, moment: Moment) {
        self.typed_text("gx:OffsetDateTime", format!("{}{}", moment.local(), offset_text(moment.offset())));
    }

    fn list(&mut self, kind: &str, items: &[Value]) -> EncodeResult {
        match self.version {
            Version::Third => self.typed(kind, |it| it.items(items, Self::value)),
            Version::Second => self.items(items, Self::value),
        }
    }

    fn bulk_set(&mut self, items: &[(Value, u64)]) -> EncodeResult {
        if self.version == Version::Third {
            return self.typed("g:BulkSet", |it| {
                it.items(items, |it, (item, bulk)| {
                    it.value(item)?;
                    it.raw(",");
                    it.typed_raw("g:Int64", bulk);
                    Ok(())
                })
            });
        }
        let total = items.iter().try_fold(0_u64, |total, (_, bulk)| total.checked_add(*bulk));
        if total.is_none_or(|total| total > BULK_MAX) {
            return Err(EncodeError::Bulk);
        }
        let each = items.iter().flat_map(|(item, bulk)| (0..*bulk).map(move |_| item)).collect::<Vec<_>>();
        self.items(&each, |it, item| it.value(item))
    }

    fn map(&mut self, entries: &[(Value, Value)]) -> EncodeResult {
        match self.version {
            Version::Third => self.typed("g:Map", |it| {
                it.items(entries, |it, (key, value)| {
                    it.value(key)?;
                    it.raw(",");
                    it.value(value)
                })
            }),
            Version::Second => self.object(entries.iter().map(|(key, value)| (key_text(key), value)), Self::value),
        }
    }

    /// A map that has `dur`, in milliseconds, and `metrics`.
    fn traversal_metrics(&mut self, metrics: &TraversalMetrics) -> EncodeResult {
        let duration = milliseconds(metrics.duration_nanos);
        match self.version {
            Version::Third => self.typed("g:Map", |it| {
                it.raw("[\"dur\",");
                it.value(&duration)?;
                it.raw(",\"metrics\",");
                it.typed("g:List", |it| it.items(&metrics.steps, Self::metrics))?;
                it.raw("]");
                Ok(())
            }),
            Version::Second => {
                self.raw("{\"dur\":");
                self.value(&duration)?;
                self.raw(",\"metrics\":");
                self.items(&metrics.steps, Self::metrics)?;
                self.raw("}");
                Ok(())
            }
        }
    }

    fn metrics(&mut self, metrics: &Metrics) -> EncodeResult {
        let counts = metrics.counts.iter().map(|(name, count)| ((&**name).into(), (*count).into()));
        let annotations = metrics.annotations.iter().map(|(name, value)| ((&**name).into(), value.clone()));
        let map = [
            ("dur", milliseconds(metrics.duration_nanos)),
            ("counts", Value::Map(counts.collect())),
            ("name", (&*metrics.name).into()),
            ("annotations", Value::Map(annotations.collect())),
            ("id", (&*metrics.id).into()),
        ];
        self.typed("g:Metrics", |it| it.map(&map.map(|(name, value)| (name.into(), value))))
    }

    fn vertex(&mut self, vertex: &Vertex) -> EncodeResult {
        self.raw("{\"id\":");
        self.value(&vertex.id)?;
        self.raw(",\"label\":");
        self.text(&vertex.label);
        if let Some(properties) = vertex.properties.as_deref().filter(|properties| !properties.is_empty()) {
            self.raw(",\"properties\":");
            // All values of one name together, in the order of the first of each.
            let mut by_name: Vec<(&str, Vec<&VertexProperty>)> = Vec::new();
            for property in properties {
                match by_name.iter_mut().find(|(name, _)| *name == &*property.key) {
                    Some((_, values)) => values.push(property),
                    None => by_name.push((&property.key, vec![property])),
                }
            }
            let named = by_name.into_iter().map(|(name, values)| (Ok(name.to_owned()), values));
            self.object(named, |it, values| it.items(&values, |it, property| it.vertex_property(property)))?;
        }
        self.raw("}");
        Ok(())
    }

    fn vertex_property(&mut self, property: &VertexProperty) -> EncodeResult {
        self.typed("g:VertexProperty", |it| {
            it.raw("{\"id\":");
            it.value(&property.id)?;
            it.raw(",\"value\":");
            it.value(&property.value)?;
            it.raw(",\"label\":");
            it.text(&property.key);
            if let Some(properties) = property.properties.as_deref().filter(|properties| !properties.is_empty()) {
                it.raw(",\"properties\":");
                it.object(properties.iter().map(|it| (Ok(it.key.to_string()), &it.value)), Self::value)?;
            }
            it.raw("}");
            Ok(())
        })
    }

    fn edge(&mut self, edge: &Edge) -> EncodeResult {
        self.raw("{\"id\":");
        self.value(&edge.id)?;
        self.raw(",\"label\":");
        self.text(&edge.label);
        self.raw(",\"inVLabel\":");
        self.text(&edge.in_vertex.1);
        self.raw(",\"outVLabel\":");
        self.text(&edge.out_vertex.1);
        self.raw(",\"inV\":");
        self.value(&edge.in_vertex.0)?;
        self.raw(",\"outV\":");
        self.value(&edge.out_vertex.0)?;
        if let Some(properties) = edge.properties.as_deref().filter(|properties| !properties.is_empty()) {
            self.raw(",\"properties\":");
            self.object(properties.iter().map(|it| (Ok(it.key.to_string()), it)), Self::property)?;
        }
        self.raw("}");
        Ok(())
    }

    fn property(&mut self, property: &Property) -> EncodeResult {
        self.typed("g:Property", |it| {
            it.raw("{\"key\":");
            it.text(&property.key);
            it.raw(",\"value\":");
            it.value(&property.value)?;
            it.raw("}");
            Ok(())
        })
    }

    fn path(&mut self, path: &Path) -> EncodeResult {
        let labels = path
            .steps
            .iter()
            .map(|(_, labels)| Value::Set(labels.iter().map(|label| Value::Text(label.clone())).collect()));
        let labels: Vec<Value> = labels.collect();
        self.raw("{\"labels\":");
        self.list("g:List", &labels)?;
        self.raw(",\"objects\":");
        match self.version {
            Version::Third => self.typed("g:List", |it| it.items(&path.steps, |it, (object, _)| it.value(object)))?,
            Version::Second => self.items(&path.steps, |it, (object, _)| it.value(object))?,
        }
        self.raw("}");
        Ok(())
    }

    fn tree(&mut self, tree: &Tree) -> EncodeResult {
        self.typed("g:Tree", |it| {
            it.items(&tree.branches, |it, (item, below)| {
                it.raw("{\"key\":");
                it.value(item)?;
                it.raw(",\"value\":");
                it.tree(below)?;
                it.raw("}");
                Ok(())
            })
        })
    }

    fn items<T>(&mut self, items: &[T], mut write: impl FnMut(&mut Self, &T) -> EncodeResult) -> EncodeResult {
        self.raw("[");
        for (place, item) in items.iter().enumerate() {
            if place > 0 {
                self.raw(",");
            }
            write(self, item)?;
        }
        self.raw("]");
        Ok(())
    }

    fn object<T>(
        &mut self,
        entries: impl Iterator<Item = (Result<String, EncodeError>, T)>,
        mut write: impl FnMut(&mut Self, T) -> EncodeResult,
    ) -> EncodeResult {
        self.raw("{");
        for (place, (name, item)) in entries.enumerate() {
            if place > 0 {
                self.raw(",");
            }
            self.text(&name?);
            self.raw(":");
            write(self, item)?;
        }
        self.raw("}");
        Ok(())
    }

    fn typed(&mut self, kind: &str, write: impl FnOnce(&mut Self) -> EncodeResult) -> EncodeResult {
        self.raw("{\"@type\":\"");
        self.raw(kind);
        self.raw("\",\"@value\":");
        write(self)?;
        self.raw("}");
        Ok(())
    }

    fn typed_raw(&mut self, kind: &str, json: impl Display) {
        self.raw(&format!("{{\"@type\":\"{kind}\",\"@value\":{json}}}"));
    }

    fn typed_text(&mut self, kind: &str, text: impl Display) {
        self.raw(&format!("{{\"@type\":\"{kind}\",\"@value\":"));
        self.text(&text.to_string());
        self.raw("}");
    }

    fn text(&mut self, text: &str) {
        // A text has no form that JSON lacks.
        self.json.push_str(&serde_json::Value::from(text).to_string());
    }

    fn raw(&mut self, json: &str) {
        self.json.push_str(json);
    }
}

fn not_finite(number: f64) -> &'static str {
    match number {
        f64::INFINITY => "Infinity",
        f64::NEG_INFINITY => "-Infinity",
        _ => "NaN",
    }
}

/// A key as text.
fn key_text(key: &Value) -> Result<String, EncodeError> {
    Ok(match key {
        Value::Null => "null".into(),
        Value::Boolean(boolean) => boolean.to_string(),
        Value::Number(number) => number.to_string(),
        Value::Text(text) => text.to_string(),
        Value::Char(character) => character.to_string(),
        Value::Uuid(uuid) => uuid.to_string(),
        Value::DateTime(moment) => format!("{}Z", moment.utc()),
        Value::Duration(duration) => iso_duration(*duration),
        Value::Token(token) => token.name().into(),
        _ => return Err(EncodeError::Key),
    })
}

/// As Java writes it: hours, minutes and seconds, each with its sign.
fn iso_duration(duration: SignedDuration) -> String {
    let seconds = duration.as_secs();
    let nanos = duration.subsec_nanos();
    let mut text = String::from("PT");
    for (number, unit) in [(seconds / 3_600, 'H'), (seconds / 60 % 60, 'M')] {
        if number != 0 {
            text.push_str(&format!("{number}{unit}"));
        }
    }
    let rest = seconds % 60;
    if rest != 0 || nanos != 0 || text.len() == 2 {
        let sign = if rest < 0 || nanos < 0 { "-" } else { "" };
        let fraction = format!(".{:09}", nanos.unsigned_abs());
        let fraction = fraction.trim_end_matches('0').trim_end_matches('.');
        text.push_str(&format!("{sign}{}{fraction}S", rest.unsigned_abs()));
    }
    text
}

fn milliseconds(nanos: i64) -> Value {
    (nanos as f64 / 1e6).into()
}
