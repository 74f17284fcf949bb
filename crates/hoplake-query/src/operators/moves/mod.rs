//! Operators that go from elements to others.

mod compute;
mod count_edges;
mod element;
mod ends;
mod hop;
mod hop_where;
mod shortest_paths;
mod walk;

pub(crate) use self::hop::Expansion;
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
pub(crate) use crate::operators::hop_along;
