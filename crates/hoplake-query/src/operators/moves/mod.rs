//! Operators that go from elements to others.

mod compute;
mod count_edges;
mod element;
mod ends;
mod hop;
mod hop_where;
mod shortest_paths;
mod walk;

pub(crate) use self::{
    compute::Computed,
    hop::{Expansion, hop_along},
};
pub use self::{
    compute::{Compute, Program},
    count_edges::CountEdges,
    element::Element,
    ends::{Ends, OtherEnd},
    hop::Hop,
    hop_where::HopWhere,
    shortest_paths::ShortestPaths,
    walk::Walk,
};
