//! Orders that were measured and not chosen. They need the whole graph in memory.

mod breadth_first;
mod cluster;
mod undirected;

pub use breadth_first::{breadth_first, reverse_cuthill_mckee};
pub use cluster::by_cluster;
pub use undirected::Undirected;

/// The inverse of an order: where each vertex stands in it.
fn positions(order: &[u32]) -> Vec<u32> {
    let mut positions = vec![0; order.len()];
    (0u32..).zip(order).for_each(|(position, &vertex)| positions[vertex as usize] = position);
    positions
}
