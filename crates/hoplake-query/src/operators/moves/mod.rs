//! Operators that go from elements to others.

mod compute;
mod count_edges;
mod element;
mod ends;
mod followed;
mod hop;
mod hop_where;
mod shortest_paths;
mod walk;

pub use self::{
    compute::{Compute, Program},
    count_edges::CountEdges,
    element::Element,
    ends::{Ends, OtherEnd},
    hop::Hop,
    hop_where::{HopConditions, HopWhere},
    shortest_paths::ShortestPaths,
    walk::Walk,
};
pub(crate) use self::{followed::Followed, hop::Expansion};
