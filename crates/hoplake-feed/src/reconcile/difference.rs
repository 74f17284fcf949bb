//! How the graph differs from the tables.

use hoplake::Properties;

use crate::Element;

/// How an element differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DifferenceKind {
    /// The graph does not have it.
    Missing,
    /// No row is it.
    LeftOver,
    /// It has other properties.
    Different,
}

/// An element that is not the same on both sides.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// How.
    pub kind: DifferenceKind,
    /// The vertex or edge.
    pub element: Element,
    /// What a row says.
    pub in_tables: Option<Properties>,
    /// What the graph has.
    pub in_graph: Option<Properties>,
}
