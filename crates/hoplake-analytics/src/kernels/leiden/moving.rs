//! Moves nodes between communities while that raises modularity.
//!
//! A queue has the nodes that are to be looked at: all at first, and then the neighbours of a node that has moved, which is why it is faster
//! than Louvain's passes over all nodes.

use std::collections::VecDeque;

use hoplake_storage::StorageError;

use super::{LeidenRun, Network, NodeWeights, Pace};

/// A move has to gain more than this part of what a node could gain at most: less may be a rounding error, by which nodes would move
/// to and fro forever.
pub(super) const GAIN_MIN: f64 = 1e-12;

/// Moves nodes until no move of one of them raises modularity. Numbers of communities are below that of nodes.
pub(super) fn move_nodes(
    network: &Network,
    communities: &mut [u32],
    search: &mut LeidenRun<'_>,
) -> Result<(), StorageError> {
    let nodes = network.len();
    // The order, the queue, whether nodes are in it, and what communities have.
    let _memory = search.context.hold(nodes as u64 * (4 + 4 + 1 + 8 + 4 + 4 + NodeWeights::BYTES))?;
    let mut queue: VecDeque<u32> = search.shuffled(nodes).into();
    let mut is_queued = vec![true; nodes];
    let mut strengths = vec![0.0; nodes];
    let mut sizes = vec![0u32; nodes];
    for (community, strength) in communities.iter().zip(&network.strengths) {
        strengths[*community as usize] += strength;
        sizes[*community as usize] += 1;
    }
    let mut empty: Vec<u32> = (0..nodes as u32).filter(|community| sizes[*community as usize] == 0).collect();
    // Modularity times the total of weights, which spares a division.
    let scale = if network.total > 0.0 { search.settings.resolution / network.total } else { 0.0 };
    let mut near = NodeWeights::new(nodes);
    let mut pace = Pace::new(search.context);
    while let Some(node) = queue.pop_front() {
        is_queued[node as usize] = false;
        let list = network.list(node);
        pace.step(list.len() + 1)?;
        let own = communities[node as usize];
        let strength = network.strengths[node as usize];
        strengths[own as usize] -= strength;
        // Its own community comes first: another has to be better.
        near.add(own, 0.0);
        for (neighbour, weight) in list.filter(|(neighbour, _)| *neighbour != node) {
            near.add(communities[neighbour as usize], weight);
        }
        let gain = |community: u32| near.get(community) - scale * strength * strengths[community as usize];
        let least_gain = GAIN_MIN * strength * search.settings.resolution.max(1.0);
        let mut best = (own, gain(own));
        for community in near.touched[1..].iter().copied() {
            let gain = gain(community);
            if gain > best.1 + least_gain {
                best = (community, gain);
            }
        }
        // Alone, a node neither gains nor loses.
        if let Some(alone) = empty.last().copied().filter(|_| sizes[own as usize] > 1 && 0.0 > best.1 + least_gain) {
            best = (alone, 0.0);
        }
        near.clear();
        let (community, _) = best;
        strengths[community as usize] += strength;
        if community == own {
            continue;
        }
        communities[node as usize] = community;
        sizes[own as usize] -= 1;
        if empty.last() == Some(&community) {
            empty.pop();
        }
        sizes[community as usize] += 1;
        if sizes[own as usize] == 0 {
            // Sums of what came and went may be off by their last bits.
            strengths[own as usize] = 0.0;
            empty.push(own);
        }
        for (neighbour, _) in network.list(node) {
            let is_apart = communities[neighbour as usize] != community;
            if is_apart && !std::mem::replace(&mut is_queued[neighbour as usize], true) {
                queue.push_back(neighbour);
            }
        }
    }
    Ok(())
}
