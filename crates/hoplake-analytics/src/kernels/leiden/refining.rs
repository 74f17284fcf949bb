//! Takes communities apart into single nodes, which merge again along edges within their community.
//!
//! A node merges only while it is alone, and with a community that is well connected to the rest of its community: so each refined
//! community grows edge by edge, and is connected. Which one is drawn, with more chance for those that raise modularity more, so that
//! the best partition is within reach, which the best move alone may lead past. Unlike in the paper, a node that can merge does: to stay
//! alone would gain nothing, and is next to impossible there, too.

use hoplake_engine::Held;
use hoplake_storage::StorageError;

use super::{LeidenRun, Network, NodeWeights, Pace};

/// How much less likely a merge is that gains less (the paper's θ): by a factor e for each hundredth of the mean weight of an edge.
pub(super) const RANDOMNESS: f64 = 0.01;

/// What is known of the refined communities, by number.
struct Refined {
    /// Of each node.
    of_nodes: Vec<u32>,
    /// Their nodes' strengths.
    strengths: Vec<f64>,
    /// What they have with the rest of their community.
    outward: Vec<f64>,
    sizes: Vec<u32>,
}

/// A refined community for each node, whose numbers are below that of nodes. Nodes of one are of one community.
pub(super) fn refine(
    network: &Network,
    communities: &[u32],
    search: &mut LeidenRun<'_>,
) -> Result<Held<Vec<u32>>, StorageError> {
    let nodes = network.len();
    let memory = search.context.hold(nodes as u64 * 8)?;
    // The order, what is known of communities, and chances.
    let _memory = search.context.hold(nodes as u64 * (4 + 8 + 8 + 8 + 4 + 16 + NodeWeights::BYTES))?;
    let mut strengths = vec![0.0; nodes];
    for (community, strength) in communities.iter().zip(&network.strengths) {
        strengths[*community as usize] += strength;
    }
    let mut refined = Refined {
        of_nodes: (0..nodes as u32).collect(),
        strengths: network.strengths.clone(),
        outward: (0..nodes as u32)
            .map(|node| inward(network, communities, node).map(|(_, weight)| weight).sum())
            .collect(),
        sizes: vec![1; nodes],
    };
    let scale = if network.total > 0.0 { search.settings.resolution / network.total } else { 0.0 };
    let mut near = NodeWeights::new(nodes);
    let mut chances: Vec<(u32, f64)> = Vec::new();
    let mut pace = Pace::new(search.context);
    for node in search.shuffled(nodes) {
        let all = strengths[communities[node as usize] as usize];
        let own = refined.of_nodes[node as usize];
        let is_alone = refined.sizes[own as usize] == 1;
        if !is_alone || !refined.is_well_connected(own, all, scale) {
            continue;
        }
        pace.step(network.list(node).len() + 1)?;
        for (neighbour, weight) in inward(network, communities, node) {
            near.add(refined.of_nodes[neighbour as usize], weight);
        }
        let strength = network.strengths[node as usize];
        chances.clear();
        for community in near.touched.iter().copied() {
            let weight = near.get(community);
            let gain = weight - scale * strength * refined.strengths[community as usize];
            if weight > 0.0 && gain >= 0.0 && refined.is_well_connected(community, all, scale) {
                chances.push((community, gain));
            }
        }
        if let Some(community) = drawn(&mut chances, search) {
            refined.merge(node, own, community, near.get(community));
        }
        near.clear();
    }
    Ok(Held::new(refined.of_nodes, memory))
}

/// The neighbours of a node in its community, without itself.
fn inward<'a>(network: &'a Network, communities: &'a [u32], node: u32) -> impl Iterator<Item = (u32, f64)> + 'a {
    let is_inward = move |(neighbour, _): &(u32, f64)| {
        *neighbour != node && communities[*neighbour as usize] == communities[node as usize]
    };
    network.list(node).filter(is_inward)
}

impl Refined {
    /// Whether a refined community has at least as much with the rest of its community, whose strength is `all`, as is to be expected.
    fn is_well_connected(&self, number: u32, all: f64, scale: f64) -> bool {
        let strength = self.strengths[number as usize];
        self.outward[number as usize] >= scale * strength * (all - strength)
    }

    /// Lets a node, which is alone in `own`, merge with a refined community; `between` is what both have with each other.
    fn merge(&mut self, node: u32, own: u32, community: u32, between: f64) {
        self.of_nodes[node as usize] = community;
        self.strengths[community as usize] += self.strengths[own as usize];
        self.outward[community as usize] += self.outward[own as usize] - 2.0 * between;
        self.sizes[community as usize] += 1;
        self.sizes[own as usize] = 0;
    }
}

/// One of some communities, by chances that grow with the gain. Changes gains to sums of chances.
fn drawn(chances: &mut [(u32, f64)], search: &mut LeidenRun<'_>) -> Option<u32> {
    let best = chances.iter().map(|(_, gain)| *gain).fold(0.0, f64::max);
    let mut sum = 0.0;
    for (_, chance) in chances.iter_mut() {
        // Less the best: the power of a great gain would be infinite.
        sum += ((*chance - best) / search.randomness).exp();
        *chance = sum;
    }
    let place = search.part() * sum;
    let found = chances.iter().find(|(_, until)| place < *until);
    found.or(chances.last()).map(|(community, _)| *community)
}
