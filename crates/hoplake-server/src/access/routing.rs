//! Chooses the node of a block: rendezvous hashing (Thaler and Ravishankar 1998).
//!
//! Each node gets a weight for each routing key, a hash of both; the heaviest is asked first, the next one if that
//! fails. All that know the same nodes agree without communication, and a node that joins or leaves moves only its own
//! share: the order of the others stays. With n nodes that is n hashes a request, some nanoseconds each.
//!
//! A key is of a stretch of an object. Smaller, and a wave would scatter over all nodes; larger, and one object's
//! readers would crowd on one.

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// Blocks that begin in the same stretch of an object are with the same node. As long as the longest joined
/// request. All algorithm nodes must agree on it, so it is not a setting.
const STRETCH_BYTES: u64 = 4 << 20;

/// The key for which a node is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RoutingKey(u64);

impl RoutingKey {
    /// The stretch of an object that a byte is in.
    pub(super) fn of(graph: &str, object: &str, position: u64) -> Self {
        // Neither has a zero byte.
        let name = [graph.as_bytes(), object.as_bytes()].join(&0);
        // XXH3 has fixed outputs; the standard library's hasher may change with the compiler, and nodes would disagree.
        Self(xxh3_64_with_seed(&name, stretch(position)))
    }
}

/// The number of the stretch that a byte is in.
pub(super) fn stretch(position: u64) -> u64 {
    position / STRETCH_BYTES
}

/// The positions of nodes of these names, the first to ask first.
pub(super) fn order<'a>(key: RoutingKey, nodes: impl Iterator<Item = &'a str>) -> Vec<usize> {
    // Little-endian on every processor, or algorithm nodes of two kinds would choose different nodes.
    let weight = |name: &str| xxh3_64(&[&key.0.to_le_bytes(), name.as_bytes()].concat());
    let mut weights: Vec<_> = nodes.map(weight).enumerate().collect();
    // Equal weights go by index, which is the order of addresses and so the same everywhere.
    weights.sort_unstable_by_key(|(index, weight)| (std::cmp::Reverse(*weight), *index));
    weights.into_iter().map(|(index, _)| index).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> impl Iterator<Item = RoutingKey> {
        (0..3_000).map(|number| RoutingKey::of("g", &format!("data/{}", number % 30), (number / 30) * STRETCH_BYTES))
    }

    fn ranked(key: RoutingKey, nodes: &[&'static str]) -> Vec<&'static str> {
        order(key, nodes.iter().copied()).into_iter().map(|index| nodes[index]).collect()
    }

    #[test]
    fn each_node_has_its_share_and_only_its_share_moves() {
        let three = ["a:1", "b:1", "c:1"];
        let four = ["c:1", "d:1", "a:1", "b:1"];
        let mut shares = [0; 3];
        let mut moved = 0;
        for key in keys() {
            let order = ranked(key, &three);
            shares[three.iter().position(|node| *node == order[0]).unwrap()] += 1;
            // Without its first node, a key goes to its second.
            let left: Vec<_> = three.into_iter().filter(|node| *node != order[0]).collect();
            assert_eq!(ranked(key, &left), order[1..]);
            // A new node takes some, and nothing else moves.
            let more = ranked(key, &four);
            assert!(more[0] == order[0] || more[0] == "d:1");
            moved += usize::from(more[0] == "d:1");
        }
        assert!(shares.iter().all(|share| (900..1_100).contains(share)), "{shares:?}");
        assert!((675..825).contains(&moved), "{moved} of 3000 went to the fourth");
    }

    #[test]
    fn a_routing_key_is_of_a_stretch_of_an_object() {
        let key = |graph, object, position| RoutingKey::of(graph, object, position);
        assert_eq!(key("g", "data/a", 0), key("g", "data/a", STRETCH_BYTES - 1));
        let others = [key("g", "data/a", STRETCH_BYTES), key("g", "data/b", 0), key("h", "data/a", 0)];
        assert!(others.iter().all(|other| *other != key("g", "data/a", 0)));
    }
}
