//! Core numbers, by removing the vertex with the fewest neighbours again and again (Batagelj, Zaveršnik: *An O(m) algorithm for cores
//! decomposition of networks*, 2003).
//!
//! Vertices lie in one array by how many neighbours they have left, and each number of neighbours has its range there. A vertex that
//! loses a neighbour swaps places with the first of its range, which then begins one later: so nothing is ever sorted again. Every
//! removal depends on those before it, so one thread does them all; the lists are counted on all threads.

use hoplake_engine::{EngineError, Held, traversal::HopDirection};
use hoplake_storage::{QueryContext, StorageError};

use super::{CHUNK, count_neighbours, different_neighbours, held};
use crate::{
    Adjacency,
    registry::{AlgorithmSpec, Kernel, KernelInput, KernelResult, Neighbours, ValueType, Values},
};

/// Core numbers, as users see them.
pub(crate) const CORES: AlgorithmSpec = AlgorithmSpec {
    name: "cores",
    value: Some("core"),
    help: "the core number: the greatest k of a k-core that contains the vertex; the direction of edges is ignored",
    value_type: ValueType::Integer,
    direction: HopDirection::Both,
    neighbours: Neighbours::Undirected,
    kernel: Some(Kernel { decoded: run, packed: run }),
    ..AlgorithmSpec::USUAL
};

fn run<A: Adjacency>(input: &KernelInput<'_, A>) -> Result<KernelResult, EngineError> {
    let lists = &input.topology.out;
    let found = core_numbers(lists, input.context)?;
    let memory = input.context.hold(lists.len() as u64 * 8)?;
    let counts = found.iter().map(|number| u64::from(*number)).collect();
    Ok(Held::new(Values::Counts(counts), memory).into())
}

/// The core number of each vertex: the largest k for which it is in a k-core, a set of vertices that each have at least k neighbours
/// in it. `lists` have each edge at both ends. Self-loops do not count, and parallel edges count once: what counts is neighbours. A
/// vertex without any has 0.
///
/// Takes 16 bytes a vertex, and time linear in vertices and edges.
///
/// # Errors
/// [`StorageError::Limit`] if the query's time is over, or its memory does not hold the numbers.
pub fn core_numbers<A: Adjacency>(lists: &A, context: &QueryContext) -> Result<Held<Vec<u32>>, StorageError> {
    // A range begins for each number of neighbours, of which there are at most as many as vertices, and one more.
    let memory = context.hold(lists.len() as u64 * 16 + 8)?;
    let mut left = count_neighbours(lists, context)?;
    let mut order = Order::new(&left);
    let mut cursor = lists.cursor();
    for place in 0..order.vertices.len() {
        if place % CHUNK == 0 {
            context.check_time()?;
        }
        let vertex = order.vertices[place];
        // No other has fewer left, so that this is its core number; those that have as many keep them.
        let core = left[vertex as usize];
        for neighbour in different_neighbours(&mut cursor, vertex) {
            let count = left[neighbour as usize];
            if count > core {
                order.lower(neighbour, count);
                left[neighbour as usize] = count - 1;
            }
        }
    }
    drop(order);
    Ok(held(left, 4 * lists.len(), memory))
}

/// All vertices, by how many neighbours they have left.
struct Order {
    vertices: Vec<u32>,
    /// Where each vertex is among them.
    places: Vec<u32>,
    /// Where the vertices with each number of neighbours begin.
    begins: Vec<u32>,
}

impl Order {
    fn new(counts: &[u32]) -> Self {
        let most = counts.iter().copied().max().unwrap_or(0) as usize;
        let mut begins = vec![0; most + 2];
        counts.iter().for_each(|count| begins[*count as usize + 1] += 1);
        for count in 0..=most {
            begins[count + 1] += begins[count];
        }
        let mut order = Self { vertices: vec![0; counts.len()], places: vec![0; counts.len()], begins };
        for (vertex, count) in (0u32..).zip(counts) {
            let place = &mut order.begins[*count as usize];
            order.vertices[*place as usize] = vertex;
            order.places[vertex as usize] = *place;
            *place += 1;
        }
        // Each range was filled, up to where the next begins.
        order.begins.rotate_right(1);
        order.begins[0] = 0;
        order
    }

    /// Moves a vertex, which has this number of neighbours, to those that have one fewer.
    fn lower(&mut self, vertex: u32, count: u32) {
        let begin = &mut self.begins[count as usize];
        let place = self.places[vertex as usize];
        let first = self.vertices[*begin as usize];
        self.vertices.swap(*begin as usize, place as usize);
        self.places[first as usize] = place;
        self.places[vertex as usize] = *begin;
        *begin += 1;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::{
        super::tests::{graph, graphs, pool},
        *,
    };

    /// By removing, for each k in turn, all that have fewer than k neighbours left until none does.
    fn expected(vertices: u32, edges: &[(u32, u32)]) -> Vec<u32> {
        let mut cores = vec![0; vertices as usize];
        let mut members: BTreeSet<u32> = (0..vertices).collect();
        for k in 1.. {
            loop {
                let inside = |vertex: &u32| {
                    let at = edges.iter().filter(|(from, to)| (from == vertex) != (to == vertex));
                    let others: BTreeSet<u32> = at.map(|(from, to)| if from == vertex { *to } else { *from }).collect();
                    others.intersection(&members).count()
                };
                let fewer: Vec<u32> = members.iter().copied().filter(|vertex| inside(vertex) < k).collect();
                if fewer.is_empty() {
                    break;
                }
                fewer.iter().for_each(|vertex| assert!(members.remove(vertex)));
            }
            if members.is_empty() {
                break;
            }
            members.iter().for_each(|vertex| cores[*vertex as usize] = k as u32);
        }
        cores
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

        #[test]
        fn cores_are_what_removal_leaves((vertices, edges) in graphs()) {
            // Among a third of the ids, so that some have many neighbours and some have none.
            let edges: Vec<_> = edges.into_iter().map(|(from, to)| (from, to / 3)).collect();
            let both: Vec<_> = edges.iter().flat_map(|(from, to)| [(*from, *to), (*to, *from)]).collect();
            let [lists, _] = graph(vertices, &both);
            let expected = expected(vertices, &edges);
            for threads in [1, 3] {
                let context = QueryContext::new();
                prop_assert_eq!(&*pool(threads).install(|| core_numbers(&lists, &context)).unwrap(), &expected);
                prop_assert_eq!(context.memory().used(), 0);
            }
        }
    }

    #[test]
    fn a_clique_with_a_tail_has_two_cores() {
        let mut edges: Vec<_> = (0..5u32).flat_map(|from| (0..5).map(move |to| (from, to))).collect();
        edges.extend([(4, 5), (5, 4), (5, 6), (6, 5), (5, 6), (6, 5), (7, 7)]);
        let [lists, _] = graph(8, &edges);
        let found = core_numbers(&lists, &QueryContext::new()).unwrap();
        assert_eq!(*found, [4, 4, 4, 4, 4, 1, 1, 0]);
        let [none, _] = graph(0, &[]);
        assert!(core_numbers(&none, &QueryContext::new()).unwrap().is_empty());
    }
}
