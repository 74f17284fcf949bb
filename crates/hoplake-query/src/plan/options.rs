//! Parameters of operators that are one of a few.

/// What a hop leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reaches {
    /// The vertices at the other ends.
    Vertices,
    /// The edges themselves.
    Edges,
}

/// Which parts of an element a map has besides its properties.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TokensWanted {
    /// Its id.
    pub id: bool,
    /// Its label.
    pub label: bool,
    /// The names of properties of properties.
    pub keys: bool,
    /// The values of properties of properties.
    pub values: bool,
}

/// What a reducing step computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is what it is called")]
pub enum Reduction {
    Count,
    Sum,
    Min,
    Max,
    Mean,
}

/// What a collection's items have to match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is what it is called")]
pub enum Quantifier {
    All,
    Any,
    None,
}
