//! How a load reports its progress.

/// The phases of a load, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadPhase {
    /// Reading vertices.
    Vertices,
    /// Finding an order of ordinals.
    Order,
    /// Reading edges, and writing adjacency in between.
    Edges,
}

/// Watches a load. Called from several threads.
pub trait Progress: Send + Sync {
    /// A step begins; `total` bytes of input are expected.
    fn begin(&self, step: LoadPhase, total: u64);

    /// Some bytes of the step's input are read.
    fn advance(&self, bytes: u64);
}

/// Watches nothing.
impl Progress for () {
    fn begin(&self, _: LoadPhase, _: u64) {}

    fn advance(&self, _: u64) {}
}
