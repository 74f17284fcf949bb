//! Operators that change the graph: their changes become operations of the transaction (`run/change.rs`).

mod add_edge;
mod add_vertex;
mod drop;
mod merge_edge;
mod merge_vertex;
mod merging;
mod set_property;

pub use self::{
    add_edge::AddEdge, add_vertex::AddVertex, drop::Drop, merge_edge::MergeEdge, merge_vertex::MergeVertex,
    set_property::Property,
};
