//! The Kronecker graph of Graph500.

use super::{Edge, SplitMix64};

/// The edges of a Kronecker graph; see [`kronecker`].
#[derive(Debug, Clone)]
pub struct Kronecker {
    scale: u32,
    edges_left: u64,
    random: SplitMix64,
    scramble: [u64; 2],
}

/// `edge_factor` · 2^`scale` directed edges between 2^`scale` vertices, as specified by Graph500
/// (<https://graph500.org/?page_id=12>): each edge descends `scale` times into one of four
/// quadrants of the adjacency matrix with probabilities A = 0.57, B = C = 0.19 and D = 0.05.
/// Vertex numbers are then scrambled by a seeded permutation, the one of the reference code.
/// Self-loops and parallel edges stay, and many vertices have no edge at all.
///
/// # Panics
/// If `scale` is not between 1 and 40.
pub fn kronecker(scale: u32, edge_factor: u64, seed: u64) -> Kronecker {
    assert!((1..=40).contains(&scale), "a Kronecker graph has a scale between 1 and 40, not {scale}");
    let mut random = SplitMix64::new(seed);
    let scramble = [random.next_u64(), random.next_u64()];
    Kronecker { scale, edges_left: edge_factor << scale, random, scramble }
}

impl Kronecker {
    /// How many vertices there are, the isolated ones included.
    pub fn vertices(&self) -> u64 {
        1 << self.scale
    }

    /// A bijection of the numbers below 2^`scale`: two odd multiplications, each followed by a
    /// reversal of the low bits so that every bit reaches every other.
    fn scrambled(&self, vertex: u64) -> u64 {
        let [first, second] = self.scramble;
        let shift = 64 - self.scale;
        let vertex = vertex.wrapping_add(first).wrapping_add(second);
        let vertex = vertex.wrapping_mul(first | 0x4519_8402_1149_3211).reverse_bits() >> shift;
        vertex.wrapping_mul(second | 0x3050_8521_02c8_43a5).reverse_bits() >> shift
    }
}

impl Iterator for Kronecker {
    type Item = Edge;

    fn next(&mut self) -> Option<Edge> {
        const A: u32 = (0.57 * 4_294_967_296.0) as u32;
        const A_B: u32 = (0.76 * 4_294_967_296.0) as u32;
        const A_B_C: u32 = (0.95 * 4_294_967_296.0) as u32;
        self.edges_left = self.edges_left.checked_sub(1)?;
        let mut source = 0u64;
        let mut target = 0u64;
        let mut bits = 0;
        for level in 0..self.scale {
            bits = if level % 2 == 0 { self.random.next_u64() } else { bits >> 32 };
            let draw = bits as u32;
            let low = draw >= A_B;
            let right = (A..A_B).contains(&draw) || draw >= A_B_C;
            source = source << 1 | u64::from(low);
            target = target << 1 | u64::from(right);
        }
        Some((self.scrambled(source), self.scrambled(target)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match usize::try_from(self.edges_left) {
            Ok(left) => (left, Some(left)),
            Err(_) => (usize::MAX, None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::kronecker;

    #[test]
    fn scrambling_is_a_permutation() {
        let graph = kronecker(12, 1, 7);
        let mut seen: Vec<u64> = (0..graph.vertices()).map(|vertex| graph.scrambled(vertex)).collect();
        seen.sort_unstable();
        assert!(seen.iter().copied().eq(0..graph.vertices()));
    }

    #[test]
    fn a_seed_names_a_graph_and_its_degrees_are_skewed() {
        let edges: Vec<_> = kronecker(14, 16, 3).collect();
        assert_eq!(edges.len(), 16 << 14);
        assert!(edges.iter().copied().eq(kronecker(14, 16, 3)));
        assert!(!edges.iter().copied().eq(kronecker(14, 16, 4)));
        let mut degrees = vec![0u32; 1 << 14];
        edges.iter().for_each(|&(source, _)| degrees[source as usize] += 1);
        degrees.sort_unstable_by(|a, b| b.cmp(a));
        // The expected degree of the first vertex is 2¹⁸ · 0.76¹⁴ ≈ 5,600, 350 times the mean.
        assert!((5_000..6_300).contains(&degrees[0]), "{}", degrees[0]);
        assert!(degrees.iter().filter(|&&degree| degree == 0).count() > 1_000);
    }
}
