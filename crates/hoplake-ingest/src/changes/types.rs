//! The types of keys and properties that the graph has, and values converted to them.

use std::{borrow::Cow, collections::HashMap};

use arrow_schema::DataType;
use hoplake_engine::change::{EdgeKey, Name, Operation, Properties, Value, VertexRef};
use hoplake_format::{Key, KeyType, PropertyType, ScalarType, Schema};

use super::{
    json_value::beyond_numbers,
    raw::{ChangeOp, Raw, RawChange, RawVertexRef},
};
use crate::source::values;

type Types = HashMap<Name, PropertyType>;

/// Types by label, and by edge label and the labels of its ends.
#[derive(Debug, Default)]
pub(super) struct GraphTypes {
    keys: HashMap<Name, KeyType>,
    vertices: HashMap<Name, Types>,
    edges: HashMap<[Name; 3], Types>,
}

impl GraphTypes {
    pub(super) fn new(schema: &Schema) -> Self {
        let mut known = Self::default();
        let types = |properties: &[hoplake_format::Property]| {
            properties.iter().map(|property| (Name::new(&property.name), property.kind)).collect::<Types>()
        };
        for label in &schema.vertex_labels {
            known.keys.insert(Name::new(&label.name), label.key_type);
            known.vertices.insert(Name::new(&label.name), types(&label.properties));
        }
        for edge in &schema.edge_types {
            if let (Some(source), Some(target)) = (schema.label(edge.source), schema.label(edge.target)) {
                let name = [&edge.label, &source.name, &target.name].map(Name::new);
                known.edges.insert(name, types(&edge.properties));
            }
        }
        known
    }

    /// Whether a column has the keys of a label as they stand. Text of a label that is new may be integers.
    pub(super) fn has_keys(&mut self, label: &Name, column: &DataType) -> bool {
        let known = match column {
            DataType::Int64 => *self.keys.entry(label.clone()).or_insert(KeyType::Int64),
            _ => match self.keys.get(label) {
                Some(known) => *known,
                None => return false,
            },
        };
        known.arrow() == *column
    }

    /// Whether a column with values has a property as it stands: then a new one is added. `owner` is the label of a
    /// vertex, or that of an edge and of its ends.
    pub(super) fn has_property(&mut self, owner: &[Name; 3], of_vertex: bool, name: &Name, column: &DataType) -> bool {
        let types = match of_vertex {
            true => self.vertices.entry(owner[0].clone()).or_default(),
            false => self.edges.entry(owner.clone()).or_default(),
        };
        if let Some(known) = types.get(name) {
            return known.arrow() == *column;
        }
        let Some(scalar) = ScalarType::ALL.into_iter().find(|scalar| scalar.arrow() == *column) else { return false };
        types.insert(name.clone(), PropertyType::Scalar(scalar));
        true
    }

    /// Resolves a raw change; the error names the item and its mistake.
    pub(super) fn operation(&mut self, written: RawChange) -> Result<Operation, String> {
        let kind = written.kind;
        if written.label.is_empty() {
            return Err(format!("the {kind} has no label"));
        }
        if kind.is_edge() { self.edge(written) } else { self.vertex(written) }
    }

    fn vertex(&mut self, written: RawChange) -> Result<Operation, String> {
        let RawChange { kind, label, key, source, target, edge_key, properties, replace } = written;
        let item = |why: String| format!("the {kind} of {label} {why}");
        if source.is_some() || target.is_some() || edge_key.is_some() {
            return Err(item("has an end of an edge, or an edge_key".into()));
        }
        let key = key.ok_or_else(|| item("has no key".into()))?;
        let vertex = self.end((label.clone(), key)).map_err(&item)?;
        if kind == ChangeOp::DeleteVertex {
            reject_properties(&properties).map_err(|why| format!("the {kind} of {vertex} {why}"))?;
            return Ok(Operation::DeleteVertex { vertex });
        }
        let types = self.vertices.entry(label.clone()).or_default();
        let properties =
            meant(types, &label, properties).map_err(|why| format!("the {kind} of {vertex} is refused: {why}"))?;
        Ok(Operation::UpsertVertex { vertex, properties, replace })
    }

    fn edge(&mut self, written: RawChange) -> Result<Operation, String> {
        let RawChange { kind, label, key, source, target, edge_key, properties, replace } = written;
        let item = |why: String| format!("the {kind} of {label} {why}");
        if key.is_some() {
            return Err(item("has a key; an edge has a source and a target, and perhaps an edge_key".into()));
        }
        let source = source.ok_or_else(|| item("has no source".into()))?;
        let target = target.ok_or_else(|| item("has no target".into()))?;
        let source = self.end(source).map_err(&item)?;
        let target = self.end(target).map_err(&item)?;
        let item = |why: String| format!("the {kind} of {source} -{label}-> {target} {why}");
        let types = self.edges.entry([label.clone(), source.label.clone(), target.label.clone()]).or_default();
        let rejected = |why: String| item(format!("is refused: {why}"));
        let key = edge_key.map(|(property, raw)| {
            let value = value(types, &label, &property, raw)?;
            if value == Value::Null {
                Err(format!("its edge_key {property} is null"))
            } else {
                Ok(EdgeKey { property, value })
            }
        });
        let key = key.transpose().map_err(rejected)?;
        if kind == ChangeOp::DeleteEdge {
            reject_properties(&properties).map_err(item)?;
            return Ok(Operation::DeleteEdge { label, source, target, key });
        }
        let properties = meant(types, &label, properties).map_err(rejected)?;
        Ok(Operation::UpsertEdge { label, source, target, key, properties, replace })
    }

    /// A vertex, its key as the label has keys: a number and its digits are the same to a label that is known.
    fn end(&mut self, (label, key): RawVertexRef) -> Result<VertexRef, String> {
        let known = self.keys.get(&label).copied();
        let key = match (key, known) {
            (Raw::Typed(Value::Int64(number)), Some(KeyType::Int64) | None) => Key::Int64(number),
            (Raw::Typed(Value::Int64(number)), Some(KeyType::String)) => Key::String(number.to_string()),
            // Only digits that print the same again: `007` as a number would be another key.
            (Raw::Untyped(text), None) if values::is_canonical_int64(&text) => {
                Key::parse(&text, KeyType::Int64).unwrap_or(Key::String(text))
            }
            (Raw::Typed(Value::String(text)) | Raw::Untyped(text), known) => {
                let wrong = || format!("has the key {text:?}, and keys of {label} are int64");
                Key::parse(&text, known.unwrap_or(KeyType::String)).ok_or_else(wrong)?
            }
            (Raw::Typed(other), _) => return Err(format!("has {other} for a key; a key is an integer or text")),
        };
        // The first key of a new label decides the type of all its keys, as it does in the commit.
        self.keys.entry(label.clone()).or_insert(key.key_type());
        Ok(VertexRef { label, key })
    }
}

fn reject_properties(properties: &[(Name, Raw)]) -> Result<(), String> {
    match properties.first() {
        None => Ok(()),
        Some((name, _)) => Err(format!("has the property {name}, and a deletion has none")),
    }
}

fn meant(types: &mut Types, owner: &str, written: Vec<(Name, Raw)>) -> Result<Properties, String> {
    let mut properties = Properties::new();
    for (name, raw) in written {
        let value = value(types, owner, &name, raw)?;
        if properties.insert(name.clone(), value).is_some() {
            return Err(format!("it has property {name} twice"));
        }
    }
    Ok(properties)
}

/// The value of a property. A new property gets its type here; an integer property may become floating-point.
fn value(types: &mut Types, owner: &str, name: &Name, raw: Raw) -> Result<Value, String> {
    let Some(kind) = types.get_mut(name) else {
        let value = match raw {
            Raw::Untyped(text) => Value::String(text),
            Raw::Typed(value) => value,
        };
        // Another change may show the type of a list that is empty: the commit sees all of them.
        if let Some(kind) = value.property_type() {
            types.insert(name.clone(), kind);
        }
        return Ok(value);
    };
    let value = match raw {
        Raw::Untyped(text) => {
            parse(&text, *kind).map_err(|why| format!("property {name} of {owner}: {text:?} {why}"))?
        }
        Raw::Typed(value) => moments(value, *kind).map_err(|why| format!("property {name} of {owner}: {why}"))?,
    };
    // The commit checks this again for all values together; only here is the file and line of a value known.
    if value.clone().conform(*kind).is_none() {
        *kind = wider(*kind, value.property_type()).ok_or_else(|| {
            // An integer is rejected by a float64 only if that lacks it.
            let float = ScalarType::Float64;
            let int = ScalarType::Int64;
            let why = match (*kind, value.property_type()) {
                (PropertyType::Scalar(a), Some(PropertyType::Scalar(b)))
                | (PropertyType::List(a), Some(PropertyType::List(b)))
                    if (a, b) == (float, int) =>
                {
                    format!("which cannot hold {value} exactly")
                }
                _ => format!("which {value} is not"),
            };
            format!("property {name} of {owner} is {kind}, {why}")
        })?;
    }
    Ok(value)
}

/// The type that holds both, if a property may become it.
fn wider(kind: PropertyType, found: Option<PropertyType>) -> Option<PropertyType> {
    let int = ScalarType::Int64;
    let float = ScalarType::Float64;
    match (kind, found?) {
        (PropertyType::Scalar(from), to @ PropertyType::Scalar(it)) if (from, it) == (int, float) => Some(to),
        (PropertyType::List(from), to @ PropertyType::List(it)) if (from, it) == (int, float) => Some(to),
        _ => None,
    }
}

/// Reads text as a value of a type; a list is an array of JSON, or has `;` between its items.
pub(super) fn parse(text: &str, kind: PropertyType) -> Result<Value, &'static str> {
    let scalar = |text: &str, scalar| match scalar {
        ScalarType::Bool => values::boolean(text).map(Value::Bool),
        ScalarType::Int64 => values::int64(text).map(Value::Int64),
        ScalarType::Float64 => values::exact_float64(text).map(Value::Float64),
        ScalarType::String => Ok(Value::String(text.to_owned())),
        ScalarType::Date => values::date(text).map(Value::Date),
        ScalarType::Timestamp => values::timestamp(text).map(Value::Timestamp),
    };
    match kind {
        PropertyType::Scalar(kind) => scalar(text, kind),
        PropertyType::List(kind) => {
            let item = |item: Option<Cow<'_, str>>| item.map_or(Ok(Value::Null), |item| scalar(&item, kind));
            values::list_items(text)?.into_iter().map(item).collect::<Result<_, _>>().map(Value::List)
        }
    }
}

/// Text where the graph has a date or a moment is one, and so is `NaN` where it has a float64.
fn moments(value: Value, kind: PropertyType) -> Result<Value, String> {
    match (value, kind) {
        (Value::String(text), PropertyType::Scalar(ScalarType::Date | ScalarType::Timestamp)) => {
            parse(&text, kind).map_err(|why| format!("{text:?} {why}"))
        }
        (Value::String(text), PropertyType::Scalar(ScalarType::Float64)) => {
            Ok(beyond_numbers(&text).map_or(Value::String(text), Value::Float64))
        }
        (Value::List(items), PropertyType::List(scalar)) => {
            let items = items.into_iter().map(|item| moments(item, PropertyType::Scalar(scalar)));
            items.collect::<Result<_, _>>().map(Value::List)
        }
        (value, _) => Ok(value),
    }
}

#[cfg(test)]
mod tests {
    use hoplake_format::{Property, VertexLabel};

    use super::*;

    fn upsert(key: Raw, properties: &[(&str, Raw)]) -> RawChange {
        let properties = properties.iter().map(|(name, raw)| (Name::new(name), raw.clone())).collect();
        let kind = ChangeOp::UpsertVertex;
        let label = "Person".into();
        RawChange {
            kind,
            label,
            key: Some(key),
            source: None,
            target: None,
            edge_key: None,
            properties,
            replace: false,
        }
    }

    fn text(text: &str) -> Raw {
        Raw::Untyped(text.into())
    }

    #[test]
    fn text_is_what_the_graph_has() {
        let date = Property::new("born", PropertyType::Scalar(ScalarType::Date));
        let label = VertexLabel { name: "Person".into(), key_type: KeyType::String, properties: vec![date] };
        let mut graph_types = GraphTypes::new(&Schema { vertex_labels: vec![label], edge_types: Vec::new() });
        let born = Raw::Typed(Value::String("1970-01-03".into()));
        for (key, born) in [(text("7"), text("1970-01-03")), (Raw::Typed(Value::Int64(7)), born)] {
            let written = upsert(key, &[("born", born), ("name", text("5"))]);
            let Ok(Operation::UpsertVertex { vertex, properties, .. }) = graph_types.operation(written) else {
                panic!()
            };
            assert_eq!(vertex, VertexRef::new("Person", "7"));
            assert_eq!((&properties["born"], &properties["name"]), (&Value::Date(2), &Value::String("5".into())));
        }
        let rejected = graph_types.operation(upsert(text("7"), &[("born", text("soon"))])).unwrap_err();
        assert!(rejected.contains("property born of Person: \"soon\" is not a date"), "{rejected}");
    }

    #[test]
    fn the_first_that_is_new_gives_the_type() {
        let mut graph_types = GraphTypes::default();
        let mut read = |key, age| graph_types.operation(upsert(key, &[("age", Raw::Typed(age))]));
        assert!(read(text("7"), Value::Int64(1)).is_ok());
        assert!(read(text("x"), Value::Int64(1)).is_err_and(|why| why.contains("keys of Person are int64")));
        assert!(read(text("8"), Value::Float64(0.5)).is_ok());
        assert!(read(text("9"), Value::Int64(1)).is_ok());
        assert!(read(text("9"), Value::Bool(true)).is_err_and(|why| why.contains("is float64, which true is not")));
    }
}
