//! The data graphs of the suite, from the GraphSON files that lie next to its features.
//!
//! Edges get their ids from the engine, and properties of properties are left out: it has none.
//!
//! Each line of a file is a vertex with its properties and its edges. The files have them in the order of a hash table; here both are in
//! the order of their ids, which is that of TinkerGraph.

use std::{collections::HashMap, fmt::Write, fs, path::Path};

use hoplake::gremlin::{
    graphson,
    value::{Edge, Property, Value, Vertex, VertexProperty, order},
};
use serde_json::{Map, Value as Json};

use crate::literals::{literal, quoted};

/// Where the files are, below the folder of the suite.
const FOLDER: &str = "org/apache/tinkerpop/gremlin/structure/io/graphson";

/// Statements in a text that builds a graph: few enough for any limit of a text's length, many enough that a commit of each
/// text is cheap.
const STATEMENTS_PER_SCRIPT: usize = 500;

/// The name of a graph, as the step `Given the … graph` has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum GraphName {
    Empty,
    Modern,
    Classic,
    Crew,
    Sink,
    Grateful,
}

impl GraphName {
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "empty" => Self::Empty,
            "modern" => Self::Modern,
            "classic" => Self::Classic,
            "crew" => Self::Crew,
            "sink" => Self::Sink,
            "grateful" => Self::Grateful,
            _ => return None,
        })
    }

    fn file(self) -> Option<&'static str> {
        match self {
            Self::Empty => None,
            Self::Modern => Some("tinkerpop-modern-v3.json"),
            Self::Classic => Some("tinkerpop-classic-v3.json"),
            Self::Crew => Some("tinkerpop-crew-v3.json"),
            Self::Sink => Some("tinkerpop-sink-v3.json"),
            Self::Grateful => Some("grateful-dead-v3.json"),
        }
    }
}

/// The data of a graph.
#[derive(Debug, Clone)]
pub struct Graph {
    #[allow(dead_code, reason = "for the engine")]
    pub name: GraphName,
    /// Vertices with their properties, by id.
    pub vertices: Vec<Vertex>,
    /// Edges with their properties, by id.
    pub edges: Vec<Edge>,
}

impl Graph {
    /// The graph of a name, from the folder of the suite.
    pub fn load(name: GraphName, suite: &Path) -> Result<Self, String> {
        let Some(file) = name.file() else { return Self::parse(name, "") };
        let path = suite.join(FOLDER).join(file);
        let lines = fs::read_to_string(&path).map_err(|error| format!("could not read {}: {error}", path.display()))?;
        Self::parse(name, &lines)
    }

    fn parse(name: GraphName, lines: &str) -> Result<Self, String> {
        let mut vertices = Vec::new();
        let mut edges = Vec::new();
        for line in lines.lines() {
            let json: Json = serde_json::from_str(line).map_err(|error| error.to_string())?;
            let vertex = vertex(&json)?;
            for (label, list) in object(&json["outE"]) {
                for edge in array(list) {
                    edges.push(Edge {
                        id: typed(&edge["id"])?,
                        label: label.as_str().into(),
                        out_vertex: (vertex.id.clone(), vertex.label.clone()),
                        // Its label is known when all vertices are.
                        in_vertex: (typed(&edge["inV"])?, "".into()),
                        properties: Some(properties(&edge["properties"])?),
                    });
                }
            }
            vertices.push(vertex);
        }
        vertices.sort_by(|left, right| order(&left.id, &right.id));
        edges.sort_by(|left, right| order(&left.id, &right.id));
        let labels: HashMap<Option<String>, Box<str>> =
            vertices.iter().map(|vertex| (literal(&vertex.id), vertex.label.clone())).collect();
        for edge in &mut edges {
            let label = labels.get(&literal(&edge.in_vertex.0)).ok_or("an edge leads to a vertex that is not there")?;
            edge.in_vertex.1 = label.clone();
        }
        Ok(Self { name, vertices, edges })
    }

    /// Texts that make the graph, in their order: first all vertices, then all edges.
    pub fn scripts(&self) -> Vec<String> {
        let lists = self.list_keys();
        let vertices: Vec<String> = self.vertices.iter().map(|vertex| add_vertex(vertex, &lists)).collect();
        let edges: Vec<String> = self.edges.iter().map(add_edge).collect();
        [vertices, edges].iter().flat_map(|all| all.chunks(STATEMENTS_PER_SCRIPT)).map(|few| few.join(";\n")).collect()
    }

    /// The properties that some vertex has more than once. They are lists on all vertices.
    fn list_keys(&self) -> Vec<&str> {
        let mut lists = Vec::new();
        for vertex in &self.vertices {
            let keys: Vec<&str> = vertex.properties.iter().flatten().map(|property| &*property.key).collect();
            lists.extend(keys.iter().filter(|key| keys.iter().filter(|other| other == key).count() > 1));
        }
        lists
    }
}

fn vertex(json: &Json) -> Result<Vertex, String> {
    let mut all = Vec::new();
    for (key, list) in object(&json["properties"]) {
        for property in array(list) {
            all.push(VertexProperty {
                id: typed(&property["id"])?,
                key: key.as_str().into(),
                value: typed(&property["value"])?,
                properties: Some(properties(&property["properties"])?),
            });
        }
    }
    let label = json["label"].as_str().ok_or("a vertex has no label")?;
    Ok(Vertex { id: typed(&json["id"])?, label: label.into(), properties: Some(all) })
}

fn properties(json: &Json) -> Result<Vec<Property>, String> {
    object(json).map(|(key, value)| Ok(Property { key: key.as_str().into(), value: typed(value)? })).collect()
}

fn object(json: &Json) -> impl Iterator<Item = (&String, &Json)> {
    json.as_object().into_iter().flat_map(Map::iter)
}

fn array(json: &Json) -> impl Iterator<Item = &Json> {
    json.as_array().into_iter().flatten()
}

fn typed(json: &Json) -> Result<Value, String> {
    graphson::read_value(json.to_string().as_bytes()).map_err(|error| error.to_string())
}

/// An id or a value of a property as Gremlin.
fn scalar(value: &Value) -> String {
    literal(value).expect("ids and properties of data graphs are scalars")
}

fn add_vertex(vertex: &Vertex, lists: &[&str]) -> String {
    let mut text = format!("g.addV({}).property(T.id, {})", quoted(&vertex.label), scalar(&vertex.id));
    for property in vertex.properties.iter().flatten() {
        let cardinality = if lists.contains(&&*property.key) { "Cardinality.list, " } else { "" };
        let _ = write!(text, ".property({cardinality}{}, {}", quoted(&property.key), scalar(&property.value));
        text.push(')');
    }
    text
}

fn add_edge(edge: &Edge) -> String {
    let mut text = format!(
        "g.V({}).addE({}).to(__.V({}))",
        scalar(&edge.out_vertex.0),
        quoted(&edge.label),
        scalar(&edge.in_vertex.0)
    );
    for property in edge.properties.iter().flatten() {
        let _ = write!(text, ".property({}, {})", quoted(&property.key), scalar(&property.value));
    }
    text
}

#[cfg(test)]
mod tests {
    use hoplake::gremlin::text;

    use super::*;

    const LINES: &str = concat!(
        r#"{"id":{"@type":"g:Int32","@value":2},"label":"software","properties":{"name":[{"id":{"@type":"g:Int64","@value":4},"value":"say \"hi\""}]}}"#,
        "\n",
        r#"{"id":{"@type":"g:Int32","@value":1},"label":"person","outE":{"made":[{"id":{"@type":"g:Int32","@value":9},"inV":{"@type":"g:Int32","@value":2},"properties":{"weight":{"@type":"g:Double","@value":0.4}}}]},"properties":{"location":[{"id":{"@type":"g:Int64","@value":6},"value":"san diego","properties":{"startTime":{"@type":"g:Int32","@value":1997}}},{"id":{"@type":"g:Int64","@value":7},"value":"santa cruz"}]}}"#,
    );

    #[test]
    fn a_graph_is_read_in_the_order_of_its_ids() {
        let graph = Graph::parse(GraphName::Modern, LINES).unwrap();
        let ids: Vec<&Value> = graph.vertices.iter().map(|vertex| &vertex.id).collect();
        assert_eq!(ids, [&Value::from(1), &Value::from(2)]);
        assert_eq!(graph.edges[0].out_vertex, (1.into(), "person".into()));
        assert_eq!(graph.edges[0].in_vertex, (2.into(), "software".into()));
    }

    #[test]
    fn scripts_add_vertices_before_edges() {
        let scripts = Graph::parse(GraphName::Modern, LINES).unwrap().scripts();
        let expected = [
            "g.addV(\"person\").property(T.id, 1i)\
             .property(Cardinality.list, \"location\", \"san diego\")\
             .property(Cardinality.list, \"location\", \"santa cruz\");\n\
             g.addV(\"software\").property(T.id, 2i).property(\"name\", \"say \\\"hi\\\"\")",
            "g.V(1i).addE(\"made\").to(__.V(2i)).property(\"weight\", 0.4d)",
        ];
        assert_eq!(scripts, expected);
        assert_eq!(text::parse(&scripts[0]).unwrap().statements.len(), 2);
        text::parse(&scripts[1]).unwrap();
    }

    #[test]
    fn the_empty_graph_has_no_scripts() {
        assert!(Graph::load(GraphName::Empty, Path::new("nowhere")).unwrap().scripts().is_empty());
    }
}
