//! Communities by the Leiden algorithm (Traag, Waltman, van Eck: *From Louvain to Leiden: guaranteeing well-connected communities*, 2019),
//! which maximise modularity with a resolution (Reichardt, Bornholdt: *Statistical mechanics of community detection*, 2006).
//!
//! ```text
//!              ┌───────────────────────────────────────────────────────┐
//!              ▼                                                       │
//! network ─▶ move nodes between communities ─▶ refine each community ─▶ aggregate: a node for each refined community
//! ```
//! Nodes move to the neighbouring community that raises modularity most ([`moving`]). Then each community is taken apart into single nodes,
//! which merge again only along edges within it ([`refining`]), and a network of what has merged is next ([`network`]); its nodes begin in
//! the communities of before. That ends when each node is a community of its own. So a community may fall apart on the next level, where
//! Louvain could only move it as a whole, and communities are connected.
//!
//! An iteration goes through all levels. The next one begins with all vertices in the communities of the last.
//!
//! The vertices are numbered by label and key, and nothing is done in parallel: so the same seed finds the same communities, however the
//! graph was loaded, but for weights whose sums are rounded.

mod moving;
mod network;
mod pace;
mod refining;
#[cfg(test)]
mod tests;

use hoplake_engine::{EngineError, Held, traversal::HopDirection};
use hoplake_storage::{QueryContext, StorageError};

use self::{
    moving::move_nodes,
    network::{Network, NodeWeights},
    pace::{NONE, Pace},
    refining::{RANDOMNESS, refine},
};
use super::{held, sample::SplitMix, weights};
use crate::{
    Adjacency,
    registry::{
        AlgorithmSpec, Figure, Kernel, KernelInput, KernelResult, KeyOrder, Neighbours, OptionKind, OptionSpec,
        SEED_OPTION, ValueType, Values,
    },
};

/// Leiden communities, as users see them.
pub(crate) const LEIDEN: AlgorithmSpec = AlgorithmSpec {
    name: "leiden",
    value: Some("community"),
    value_type: ValueType::Integer,
    help: "a number that is the same for all vertices of a community, found by maximising the modularity, which is reported; communities \
           are connected, and the direction of edges is ignored",
    direction: HopDirection::Both,
    neighbours: Neighbours::Undirected,
    options: &[
        OptionSpec {
            name: "resolution",
            kind: OptionKind::NotNegative,
            help: "The resolution of the modularity: a higher one yields smaller communities",
            default: Some(LeidenSettings::USUAL.resolution),
            ..OptionSpec::USUAL
        },
        OptionSpec::iterations(LeidenSettings::USUAL.iterations_max),
        OptionSpec::weight("The weight property of edges: a number, 0 or more"),
        OptionSpec {
            name: SEED_OPTION,
            kind: OptionKind::Seed,
            help: "The seed of the order in which vertices move: the same seed yields the same communities",
            default: Some(LeidenSettings::USUAL.seed as f64),
            ..OptionSpec::USUAL
        },
    ],
    key_order: KeyOrder::Read,
    kernel: Some(Kernel { decoded: run, packed: run }),
    ..AlgorithmSpec::USUAL
};

fn run<A: Adjacency>(input: &KernelInput<'_, A>) -> Result<KernelResult, EngineError> {
    let usual = LeidenSettings::default();
    let settings = LeidenSettings {
        resolution: input.options.float("resolution").unwrap_or(usual.resolution),
        iterations_max: input.options.count("iterations").unwrap_or(usual.iterations_max),
        seed: input.options.seed(SEED_OPTION).unwrap_or(usual.seed),
    };
    let none = || EngineError::Internal("vertices have no places".into());
    let places = input.places.ok_or_else(none)?;
    let found = leiden(&input.topology.out, places, &settings, input.context)?;
    let Communities { modularity, iterations, .. } = *found;
    let values = found.map(|found| Values::Integers(found.communities));
    Ok(KernelResult::from(values).after(iterations).with_figure("modularity", Figure::Number(modularity)))
}

/// How communities are found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LeidenSettings {
    /// By what the expected weight of edges within communities is multiplied; 0 or more. With 1 modularity is Newman's.
    pub resolution: f64,
    /// The most iterations. They end with the first that changes nothing.
    pub iterations_max: usize,
    /// Of the order in which vertices move, and of which communities merge.
    pub seed: u64,
}

impl LeidenSettings {
    const USUAL: Self = Self { resolution: 1.0, iterations_max: 10, seed: 0 };
}

impl Default for LeidenSettings {
    /// Resolution 1, at most 10 iterations, seed 0.
    fn default() -> Self {
        Self::USUAL
    }
}

/// The communities of all vertices.
#[derive(Debug, Clone, PartialEq)]
pub struct Communities {
    /// For each vertex the least place of a vertex in its community; the greatest number for deleted ones.
    pub communities: Vec<u32>,
    /// The modularity of the communities, with the resolution; 0 without edges.
    pub modularity: f64,
    /// How many iterations it took.
    pub iterations: usize,
}

/// Communities of edges without direction: `lists` have each edge at both ends, a self-loop twice, and a parallel edge as often as it is
/// there. Edges weigh 1 unless lists have weights. `places` are different numbers below that of vertices that exist, for instance by
/// key, and [`u32::MAX`] for vertices that were deleted.
///
/// An iteration takes time linear in edges in practice; there is no bound that is proven. Takes at most 36 bytes an entry of
/// the lists, and 140 a vertex, 4 of them for the result.
///
/// # Errors
/// [`EngineError::Invalid`] if a weight is negative, infinite or not a number, or if weights add up to infinity.
/// [`EngineError::Limit`] if the query's time is over, or its memory does not hold the network.
///
/// # Panics
/// If `places` are not those of all vertices.
pub fn leiden<A: Adjacency>(
    lists: &A,
    places: &[u32],
    settings: &LeidenSettings,
    context: &QueryContext,
) -> Result<Held<Communities>, EngineError> {
    assert_eq!(lists.len(), places.len(), "a place for each vertex");
    if let Some(weighted) = lists.weighted() {
        weights::check(weighted, context)?;
    }
    // With the names of communities.
    let memory = context.hold(lists.len() as u64 * 8)?;
    let network = Network::of(lists, places, context)?;
    if !network.total.is_finite() {
        let message = "the weights of all edges add up to infinity; scale them";
        return Err(EngineError::Invalid(message.into()));
    }
    let randomness = RANDOMNESS * network.mean_weight();
    let mut search = LeidenRun { settings, random: SplitMix(settings.seed), randomness, context };
    let (partition, iterations) = search.run(&network)?;
    let modularity = network.modularity(&partition, settings.resolution, context)?;
    let named = least_of(&partition);
    let community = |place: &u32| if *place == NONE { NONE } else { named[partition[*place as usize] as usize] };
    let communities = places.iter().map(community).collect();
    Ok(held(Communities { communities, modularity, iterations }, 4 * lists.len(), memory))
}

/// The least node of each community.
fn least_of(partition: &[u32]) -> Vec<u32> {
    let mut least = vec![NONE; partition.len()];
    for (node, community) in (0..).zip(partition) {
        let least = &mut least[*community as usize];
        *least = (*least).min(node);
    }
    least
}

/// Numbers the communities from 0 on in the order of their first nodes, and returns how many there are.
fn renumber(partition: &mut [u32]) -> usize {
    let mut numbers = vec![NONE; partition.len()];
    let mut next = 0;
    for community in partition {
        let number = &mut numbers[*community as usize];
        if *number == NONE {
            *number = next;
            next += 1;
        }
        *community = *number;
    }
    next as usize
}

/// A run of the algorithm: its settings and its random numbers.
struct LeidenRun<'a> {
    settings: &'a LeidenSettings,
    random: SplitMix,
    randomness: f64,
    context: &'a QueryContext,
}

impl LeidenRun<'_> {
    /// Iterates until nothing changes. Returns a community for each node, and the number of iterations.
    fn run(&mut self, network: &Network) -> Result<(Held<Vec<u32>>, usize), StorageError> {
        let nodes = network.len();
        // With the numbers of communities while they are named.
        let memory = self.context.hold(nodes as u64 * 12)?;
        let mut partition: Vec<u32> = (0..nodes as u32).collect();
        let mut iterations = 0;
        while iterations < self.settings.iterations_max {
            let before = partition.clone();
            self.iterate(network, &mut partition)?;
            renumber(&mut partition);
            iterations += 1;
            if partition == before {
                break;
            }
        }
        Ok((Held::new(partition, memory), iterations))
    }

    /// Goes through all levels, from a partition of the network's nodes to another.
    fn iterate(&mut self, network: &Network, partition: &mut Vec<u32>) -> Result<(), StorageError> {
        // For each node of the network its node in the level.
        let _memory = self.context.hold(network.len() as u64 * 8)?;
        let mut nodes: Vec<u32> = (0..network.len() as u32).collect();
        let mut communities = std::mem::take(partition);
        let mut level: Option<Network> = None;
        loop {
            self.context.check_time()?;
            let current = level.as_ref().unwrap_or(network);
            move_nodes(current, &mut communities, self)?;
            let count = renumber(&mut communities);
            if count == current.len() {
                break;
            }
            let mut refined = refine(current, &communities, self)?;
            let merged = renumber(&mut refined);
            if merged == current.len() {
                // Nothing merges along edges, though communities have several nodes: they are the nodes.
                communities = (0..current.len() as u32).collect();
                break;
            }
            let next = current.aggregate(&refined, merged, self.context)?;
            // The nodes of a refined community are of one community.
            let mut begin = vec![0; merged];
            communities.iter().zip(&*refined).for_each(|(community, node)| begin[*node as usize] = *community);
            communities = begin;
            nodes.iter_mut().for_each(|node| *node = refined[*node as usize]);
            level = Some(next);
        }
        *partition = nodes.iter().map(|node| communities[*node as usize]).collect();
        Ok(())
    }

    /// The nodes in an order that is drawn.
    fn shuffled(&mut self, nodes: usize) -> Vec<u32> {
        let mut order: Vec<u32> = (0..nodes as u32).collect();
        for last in (1..order.len()).rev() {
            order.swap(last, self.random.below(last as u32 + 1) as usize);
        }
        order
    }

    /// A number from 0 on, below 1.
    fn part(&mut self) -> f64 {
        // As many bits as a float has.
        (self.random.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}
