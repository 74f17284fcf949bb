//! How a load tells what it is doing.

/// Steps of a load, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Reading vertices.
    Vertices,
    /// Finding an order of ordinals.
    Order,
    /// Reading edges.
    Edges,
    /// Writing adjacency.
    Adjacency,
}

/// Watches a load. Called from several threads.
pub trait Progress: Send + Sync {
    /// A step begins; `total` units (bytes of input, or edges) are known to come.
    fn begin(&self, step: Step, total: u64);

    /// Some units of the step are done.
    fn advance(&self, units: u64);
}

/// Watches nothing.
impl Progress for () {
    fn begin(&self, _: Step, _: u64) {}

    fn advance(&self, _: u64) {}
}
