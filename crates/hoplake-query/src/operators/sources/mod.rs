//! Operators that begin with elements or values.

mod by_id;
mod counted;
mod edges;
mod find_edges;
mod find_vertices;
mod inject;
mod scan;
mod vertices;

pub use self::{
    counted::Counted, edges::Edges, find_edges::FindEdges, find_vertices::FindVertices, inject::Inject,
    vertices::Vertices,
};
