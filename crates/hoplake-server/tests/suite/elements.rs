//! The vertices and edges of a world by the names that scenarios give them: `marko`, `marko-knows->josh`, `marko-age->d[29].i`.
//!
//! They are asked from the world itself, so that their ids are whatever the engine gives.

use hoplake::gremlin::value::{Edge, Value, Vertex, VertexProperty};

use crate::{
    compare::{Types, same},
    world::World,
};

/// The elements of a graph, with their properties.
#[derive(Debug, Clone, Default)]
pub struct Elements {
    vertices: Vec<Vertex>,
    edges: Vec<Edge>,
}

impl Elements {
    pub fn new(vertices: Vec<Vertex>, edges: Vec<Edge>) -> Self {
        Self { vertices, edges }
    }

    /// Those that a world has now.
    pub async fn of(world: &mut dyn World) -> Result<Self, String> {
        let mut elements = Self::default();
        for value in world.submit("g.V()", &[]).await.map_err(|error| format!("g.V(): {error}"))? {
            let Value::Vertex(vertex) = value else { return Err(format!("g.V() has a result {value:?}")) };
            elements.vertices.push(*vertex);
        }
        for value in world.submit("g.E()", &[]).await.map_err(|error| format!("g.E(): {error}"))? {
            let Value::Edge(edge) = value else { return Err(format!("g.E() has a result {value:?}")) };
            elements.edges.push(*edge);
        }
        Ok(elements)
    }

    /// The first vertex of a name.
    pub fn vertex(&self, name: &str) -> Result<&Vertex, String> {
        let mut vertices = self.vertices.iter();
        vertices.find(|vertex| is_named(vertex, name)).ok_or_else(|| format!("no vertex has the name `{name}`"))
    }

    /// The first edge `from-label->to`.
    pub fn edge(&self, triplet: &str) -> Result<&Edge, String> {
        let (from, label, to) = parts(triplet)?;
        let is_it = |edge: &&Edge| {
            *edge.label == *label && self.is_id_of(&edge.out_vertex.0, from) && self.is_id_of(&edge.in_vertex.0, to)
        };
        self.edges.iter().find(is_it).ok_or_else(|| format!("there is no edge `{triplet}`"))
    }

    /// The first property `vertex-key->value`. `parse` reads the value.
    pub fn vertex_property(
        &self,
        triplet: &str,
        parse: impl Fn(&str) -> Result<Value, String>,
    ) -> Result<&VertexProperty, String> {
        let (vertex, key, value) = parts(triplet)?;
        let value = parse(value)?;
        let mut properties = self.vertex(vertex)?.properties.iter().flatten();
        properties
            .find(|property| *property.key == *key && same(&property.value, &value, Types::DoNotCount))
            .ok_or_else(|| format!("there is no property `{triplet}`"))
    }

    fn is_id_of(&self, id: &Value, name: &str) -> bool {
        self.vertices.iter().any(|vertex| same(&vertex.id, id, Types::DoNotCount) && is_named(vertex, name))
    }
}

fn is_named(vertex: &Vertex, name: &str) -> bool {
    let mut properties = vertex.properties.iter().flatten();
    properties
        .any(|property| &*property.key == "name" && matches!(&property.value, Value::Text(text) if **text == *name))
}

/// `a-b->c`; what is before the `-` may have one, too.
fn parts(triplet: &str) -> Result<(&str, &str, &str), String> {
    let split = || {
        let (head, last) = triplet.rsplit_once("->")?;
        let (first, middle) = head.rsplit_once('-')?;
        Some((first, middle, last))
    };
    split().ok_or_else(|| format!("`{triplet}` is not `a-b->c`"))
}
