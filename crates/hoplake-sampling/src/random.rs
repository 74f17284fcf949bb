//! The random numbers of one list.

use hoplake_engine::EdgesOf;
use hoplake_format::{Direction, VertexId};
use rand::{SeedableRng, rngs::Xoshiro256PlusPlus};

/// What the choices in the lists of a hop follow from, besides the vertex.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Randomness(u64);

impl Randomness {
    pub(crate) fn new(seed: u64, batch: u64, hop: usize, edges: EdgesOf) -> Self {
        let direction = match edges.direction {
            Direction::Out => 0,
            Direction::In => 1,
        };
        let edges = u64::from(edges.edge_type.0) << 1 | direction;
        Self([batch, hop as u64, edges].into_iter().fold(mix(seed), |state, word| mix(state ^ word)))
    }

    /// The generator of the list of a vertex, in the tree of a seed.
    #[inline]
    pub(crate) fn of_list(self, vertex: VertexId, tree: u32) -> Xoshiro256PlusPlus {
        let number = u64::from(vertex.label().0) << 48 | vertex.ordinal();
        // `seed_from_u64` makes a state of it with SplitMix64.
        Xoshiro256PlusPlus::seed_from_u64(mix(mix(self.0 ^ number) ^ u64::from(tree)))
    }
}

/// A step of SplitMix64 (Steele, Lea, Flood 2014): a permutation of 64 bits in which each bit depends on all.
#[inline]
fn mix(state: u64) -> u64 {
    let mut mixed = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
