//! Vertices and edges by their names.

use std::fmt;

use hoplake::{
    EdgeKey, Name, Properties, Value, VertexRef,
    changes::{value_from_json, value_to_json},
};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::{
    apply::fold::{EdgeId, EdgeTypeName},
    value,
};

/// A vertex or an edge.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Element {
    /// A vertex.
    Vertex(VertexRef),
    /// An edge.
    Edge(EdgeId),
}

impl Element {
    /// Its label.
    pub fn label(&self) -> &Name {
        match self {
            Self::Vertex(vertex) => &vertex.label,
            Self::Edge(edge) => &edge.label,
        }
    }

    /// `vertex` or `edge`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Vertex(_) => "vertex",
            Self::Edge(_) => "edge",
        }
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Vertex(vertex) => write!(f, "{vertex}"),
            Self::Edge(EdgeId { label, source, target, key }) => {
                write!(f, "{source} -{label}-> {target}")?;
                key.as_ref().map_or(Ok(()), |key| write!(f, " with {}", EdgeKey::from(key)))
            }
        }
    }
}

impl EdgeId {
    /// The edges that it is one of.
    pub fn edge_type(&self) -> EdgeTypeName {
        let source = self.source.label.clone();
        let target = self.target.label.clone();
        EdgeTypeName { label: self.label.clone(), source, target }
    }
}

/// A vertex or an edge as JSON, with values that keep their types.
#[derive(Serialize, Deserialize)]
pub(crate) enum ElementLine {
    /// A label and a key.
    Vertex(String, Json),
    /// A label, both ends, and the property and value of the edge key.
    Edge(Box<EdgeLine>),
}

/// See [`ElementLine::Edge`].
type EdgeLine = (String, (String, Json), (String, Json), Option<(String, Json)>);

impl ElementLine {
    pub(crate) fn of(element: &Element) -> Self {
        let end = |vertex: &VertexRef| (vertex.label.to_string(), value_to_json(&value::of_key(&vertex.key)));
        match element {
            Element::Vertex(vertex) => {
                let (label, key) = end(vertex);
                Self::Vertex(label, key)
            }
            Element::Edge(id) => {
                let key = id.key.as_ref().map(EdgeKey::from);
                let key = key.map(|key| (key.property.to_string(), value_to_json(&key.value)));
                Self::Edge(Box::new((id.label.to_string(), end(&id.source), end(&id.target), key)))
            }
        }
    }

    /// `None` if something else wrote it.
    pub(crate) fn read(&self) -> Option<Element> {
        let end = |label: &String, key: &Json| Some(VertexRef::new(label.as_str(), value::as_key(value_of(key)?)?));
        Some(match self {
            Self::Vertex(label, key) => Element::Vertex(end(label, key)?),
            Self::Edge(edge) => {
                let (label, source, target, key) = &**edge;
                let key = match key {
                    None => None,
                    Some((property, json)) => {
                        Some(EdgeKey { property: property.as_str().into(), value: value_of(json)? }.into())
                    }
                };
                let source = end(&source.0, &source.1)?;
                let target = end(&target.0, &target.1)?;
                Element::Edge(EdgeId { label: label.as_str().into(), source, target, key })
            }
        })
    }
}

/// A value that [`value_to_json`] wrote.
pub(crate) fn value_of(json: &Json) -> Option<Value> {
    value_from_json(&json.to_string()).ok()
}

/// Properties as JSON.
pub(crate) fn properties_to_json(properties: &Properties) -> Json {
    properties.iter().map(|(name, value)| (name.to_string(), value_to_json(value))).collect()
}

/// The properties that [`properties_to_json`] wrote.
pub(crate) fn properties_of(json: &Json) -> Option<Properties> {
    let all = json.as_object()?.iter().map(|(name, json)| Some((Name::from(name.as_str()), value_of(json)?)));
    Some(all.collect::<Option<Vec<_>>>()?.into_iter().collect())
}
