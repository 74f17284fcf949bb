//! The order of vertices: which ordinal each gets.
//!
//! Neighbour lists are stored as gaps between ordinals, in blocks of consecutive ordinals. An order
//! that gives neighbours near numbers makes gaps small, and puts the lists that one traversal
//! reads into few blocks. [`locality`] is the order of a load that asks for one.
//!
//! It is computed in one index space of all vertices, whatever their label; a label's ordinals are
//! the ranks of its vertices. Edges are not kept: they are passed over twice, in any order, and
//! memory is 12 bytes per vertex. That is why it was chosen over searches and label propagation,
//! which need the entire graph in memory and, measured in RFC 0002, do not do better.

use std::cmp::Reverse;

/// Vertices with fewer neighbours than this are ordered next to their most popular neighbour.
///
/// Below 8 few vertices do; from 32 on the popular ones lose the order of degrees, and with it
/// size on graphs without communities.
const LEAF_DEGREE: u32 = 16;

/// The position of each vertex in an order for locality: hubs by popularity, leaves by hub.
///
/// Vertices with 16 neighbours or more are first, by falling degree: popular targets get small
/// numbers, so that most gaps are small. The others follow by the position of their most popular
/// neighbour, so that, say, the messages of a person or the members of a forum are adjacent.
/// Vertices without edges are last. Equal ones keep the order they have.
///
/// `edges` is called twice and must yield the same edges, directed or not, each once, with both
/// ends below `vertices`. Parallel edges count; self-loops do not. 12 bytes of memory per vertex
/// (the result is 4 of them), none per edge. O(V log V + E).
pub fn locality<E>(vertices: u32, edges: impl Fn() -> E) -> Vec<u32>
where
    E: Iterator<Item = (u32, u32)>,
{
    let degrees = degrees(vertices, edges());
    let anchors = anchors(&by_degree(&degrees), edges());
    let mut order: Vec<u32> = (0..vertices).collect();
    // In place, with the vertex as the last criterion: a stable sort takes half of the order again.
    order.sort_unstable_by_key(|&vertex| {
        let degree = degrees[vertex as usize];
        let popularity = if degree < LEAF_DEGREE { 0 } else { degree };
        (Reverse(popularity), anchors[vertex as usize], Reverse(degree), vertex)
    });
    drop((degrees, anchors));
    positions(&order)
}

/// The position of each vertex by falling degree, equal ones in the order they have. O(V log V).
pub fn by_degree(degrees: &[u32]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..degrees.len() as u32).collect();
    order.sort_unstable_by_key(|&vertex| (Reverse(degrees[vertex as usize]), vertex));
    positions(&order)
}

/// How many neighbours each vertex has, either way, not counting self-loops. O(V + E).
pub fn degrees(vertices: u32, edges: impl Iterator<Item = (u32, u32)>) -> Vec<u32> {
    let mut degrees = vec![0u32; vertices as usize];
    for (one, other) in edges.filter(|(one, other)| one != other) {
        for end in [one, other] {
            let degree = &mut degrees[end as usize];
            *degree = degree.saturating_add(1);
        }
    }
    degrees
}

/// The best rank among each vertex's neighbours.
fn anchors(ranks: &[u32], edges: impl Iterator<Item = (u32, u32)>) -> Vec<u32> {
    let mut anchors = vec![u32::MAX; ranks.len()];
    for (one, other) in edges.filter(|(one, other)| one != other) {
        for (vertex, neighbour) in [(one, other), (other, one)] {
            let anchor = &mut anchors[vertex as usize];
            *anchor = (*anchor).min(ranks[neighbour as usize]);
        }
    }
    anchors
}

/// The inverse of an order: where each vertex stands in it.
fn positions(order: &[u32]) -> Vec<u32> {
    let mut positions = vec![0; order.len()];
    (0u32..).zip(order).for_each(|(position, &vertex)| positions[vertex as usize] = position);
    positions
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{by_degree, locality};

    proptest! {
        #[test]
        fn locality_is_a_permutation_with_isolated_vertices_last(
            (vertices, edges) in (1..60u32).prop_flat_map(|n| (Just(n), prop::collection::vec((0..n, 0..n), 0..200)))
        ) {
            let positions = locality(vertices, || edges.iter().copied());
            let mut sorted = positions.clone();
            sorted.sort_unstable();
            prop_assert!(sorted.into_iter().eq(0..vertices));
            let isolated = |vertex: u32| !edges.iter().any(|&(one, other)| one != other && (one == vertex || other == vertex));
            let count = (0..vertices).filter(|&vertex| isolated(vertex)).count() as u32;
            for vertex in 0..vertices {
                prop_assert_eq!(isolated(vertex), positions[vertex as usize] >= vertices - count);
            }
        }
    }

    #[test]
    fn leaves_stand_together_by_hub() {
        // Vertices 0 and 1 are hubs; 40 leaves hang on them in turn, 0 has one more.
        let edges: Vec<(u32, u32)> = (2..42).map(|leaf| (leaf, leaf % 2)).chain([(0, 42)]).collect();
        let positions = locality(43, || edges.iter().copied());
        assert_eq!(positions[..2], [0, 1]);
        assert!((2..42).all(|leaf| (positions[leaf] < 23) == (leaf % 2 == 0)));
        assert!(positions[42] < 23);
    }

    #[test]
    fn degrees_fall() {
        assert_eq!(by_degree(&[1, 5, 0, 5]), [2, 0, 3, 1]);
        assert_eq!(locality(0, std::iter::empty), [0u32; 0]);
    }
}
