//! Strongly connected components: the largest by reaching it from both sides, the others by depth-first search (Tarjan: *Depth-first
//! search and linear graph algorithms*, 1972; Slota, Rajamanickam, Madduri: *BFS and coloring-based parallel algorithms for strongly
//! connected components*, 2014).
//!
//! Most graphs have one component with a large part of all vertices. It is what a vertex of many edges both reaches and is reached
//! from: two breadth-first searches, which run on all threads. What is left is searched by one thread in linear time, however deep
//! it is. To reach every component from both sides would be parallel too, but quadratic where there is a long chain of small ones.

use hoplake_engine::{EngineError, Held};
use hoplake_storage::{QueryContext, StorageError};
use rayon::prelude::*;

use super::{CHUNK, UNREACHED, breadth_first_levels, held};
use crate::{
    Adjacency, Cursor,
    registry::{AlgorithmSpec, Kernel, KernelInput, KernelResult, KeyOrder, ValueType, Values},
};

/// Strong components, as users see them.
pub(crate) const STRONG_COMPONENTS: AlgorithmSpec = AlgorithmSpec {
    name: "strong-components",
    value: Some("component"),
    help: "a number that is the same for all vertices of a strongly connected component",
    value_type: ValueType::Integer,
    key_order: KeyOrder::Named,
    kernel: Some(Kernel { decoded: run, packed: run }),
    ..AlgorithmSpec::USUAL
};

fn run<A: Adjacency>(input: &KernelInput<'_, A>) -> Result<KernelResult, EngineError> {
    let found = strongly_connected_components(&input.topology.out, input.against(), input.context)?;
    Ok(found.map(Values::Integers).into())
}

/// The component of a vertex that was not assigned to one, and the lowest position before a vertex was visited.
const NONE: u32 = u32::MAX;

/// Two breadth-first searches start at a vertex whose in-edges times out-edges are at least this many. Without such a
/// vertex the graph is likely deep and narrow: then a level has few vertices, and to share them among threads costs
/// more than to visit them.
const PIVOT_PATHS_MIN: u64 = 64;

/// The strongly connected component of each vertex: the lowest id in it. Two vertices are in the same one if each reaches the other.
/// `against` has the same edges as `out` from their other ends. Self-loops and parallel edges change nothing; a vertex that was
/// deleted is a component of its own. Takes 25 bytes a vertex, and time linear in vertices and edges.
///
/// # Errors
/// [`StorageError::Limit`] if the query's time is over, or its memory does not hold the components.
///
/// # Panics
/// If `against` does not have as many vertices as `out`.
pub fn strongly_connected_components<A: Adjacency>(
    out: &A,
    against: &A,
    context: &QueryContext,
) -> Result<Held<Vec<u32>>, StorageError> {
    assert_eq!(out.len(), against.len(), "the same vertices from both ends");
    let bytes_each = out.len() as u64;
    let mut memory = context.hold(4 * bytes_each)?;
    let mut components = vec![NONE; out.len()];
    if let Some(pivot) = pivot(out, against) {
        assign_component_of(pivot, out, against, &mut components, context)?;
    }
    context.resize(&mut memory, 24 * bytes_each)?;
    Search::new(out, &mut components, context).run()?;
    Ok(held(components, 4 * out.len(), memory))
}

/// The vertex with the most paths of two edges through it, and the lowest id among these.
fn pivot<A: Adjacency>(out: &A, against: &A) -> Option<u32> {
    let paths = |vertex: u32| out.degree(vertex) as u64 * against.degree(vertex) as u64;
    let best = (0..out.len() as u32).into_par_iter().max_by_key(|vertex| (paths(*vertex), std::cmp::Reverse(*vertex)));
    best.filter(|vertex| paths(*vertex) >= PIVOT_PATHS_MIN)
}

/// Assigns all vertices that both reach the pivot and are reached from it.
fn assign_component_of<A: Adjacency>(
    pivot: u32,
    out: &A,
    against: &A,
    components: &mut [u32],
    context: &QueryContext,
) -> Result<(), StorageError> {
    let reached = breadth_first_levels(out, Some(against), pivot, context)?;
    let reaching = breadth_first_levels(against, Some(out), pivot, context)?;
    let is_member = |vertex: &usize| reached[*vertex] != UNREACHED && reaching[*vertex] != UNREACHED;
    let least = (0..out.len()).find(is_member).expect("the pivot reaches itself") as u32;
    components.par_iter_mut().enumerate().filter(|(vertex, _)| is_member(vertex)).for_each(|(_, it)| *it = least);
    Ok(())
}

/// Tarjan's search with a stack in place of recursion. It numbers vertices by their position among those that are open: visited, and
/// in no component yet. That orders them as the order of visits does, and needs no array from vertices to numbers.
struct Search<'a, A: Adjacency + 'a> {
    lists: A::Cursor<'a>,
    components: &'a mut [u32],
    /// For each open vertex the lowest position that is known to be reached from it; its own at first.
    lowest: Vec<u32>,
    open: Vec<u32>,
    /// The path from the root to the vertex that is visited now.
    path: Vec<u32>,
    /// For each vertex of the path, which of its edges comes next.
    edges: Vec<u64>,
    context: &'a QueryContext,
}

impl<'a, A: Adjacency> Search<'a, A> {
    fn new(out: &'a A, components: &'a mut [u32], context: &'a QueryContext) -> Self {
        let count = out.len();
        Self {
            lists: out.cursor(),
            components,
            lowest: vec![NONE; count],
            open: Vec::with_capacity(count),
            path: Vec::with_capacity(count),
            edges: Vec::with_capacity(count),
            context,
        }
    }

    fn run(mut self) -> Result<(), StorageError> {
        let mut steps = 0;
        for root in 0..self.components.len() as u32 {
            if self.components[root as usize] == NONE {
                self.enter(root);
            }
            loop {
                if steps % CHUNK == 0 {
                    self.context.check_time()?;
                }
                steps += 1;
                let Some(vertex) = self.path.last().copied() else { break };
                match self.next_of(vertex) {
                    Some(target) => self.enter(target),
                    None => self.leave(vertex),
                }
            }
        }
        Ok(())
    }

    fn enter(&mut self, vertex: u32) {
        self.lowest[vertex as usize] = self.open.len() as u32;
        self.open.push(vertex);
        self.path.push(vertex);
        self.edges.push(0);
    }

    /// The next neighbour to visit. Those before it, which are visited, lower what the vertex reaches; the edge to the one that is
    /// returned is looked at again when the search comes back from there.
    fn next_of(&mut self, vertex: u32) -> Option<u32> {
        let edge = self.edges.last_mut().expect("a vertex of the path has a next edge");
        let mut lowest = self.lowest[vertex as usize];
        let mut next = None;
        for target in &self.lists.neighbours(vertex)[*edge as usize..] {
            if self.components[*target as usize] == NONE {
                match self.lowest[*target as usize] {
                    NONE => {
                        next = Some(*target);
                        break;
                    }
                    reached => lowest = lowest.min(reached),
                }
            }
            *edge += 1;
        }
        self.lowest[vertex as usize] = lowest;
        next
    }

    /// Goes back from a vertex; if it reaches none before it, then it and those after it are a component.
    fn leave(&mut self, vertex: u32) {
        self.path.pop();
        self.edges.pop();
        let first = self.lowest[vertex as usize] as usize;
        if self.open[first] != vertex {
            return;
        }
        let members = &self.open[first..];
        let least = members.iter().copied().min().expect("the vertex itself");
        members.iter().for_each(|member| self.components[*member as usize] = least);
        self.open.truncate(first);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{
        super::tests::{graph, graphs, levels, pool},
        *,
    };

    /// Whom each vertex reaches, one search after the other.
    fn expected(vertices: u32, edges: &[(u32, u32)]) -> Vec<u32> {
        let [out, _] = graph(vertices, edges);
        let reached: Vec<_> = (0..vertices).map(|start| levels(&out, start)).collect();
        let reaches = |from: u32, to: u32| reached[from as usize][to as usize] != UNREACHED;
        let least = |vertex| (0..vertices).find(|other| reaches(vertex, *other) && reaches(*other, vertex));
        (0..vertices).map(|vertex| least(vertex).unwrap()).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        #[test]
        fn members_reach_each_other((vertices, edges) in graphs()) {
            // Whole, and with half of the edges: then there are many components between one vertex and all.
            for edges in [&edges[..], &edges[..edges.len() / 2]] {
                let [out, against] = graph(vertices, edges);
                let expected = expected(vertices, edges);
                for threads in [1, 3] {
                    let context = QueryContext::new();
                    let found = pool(threads).install(|| strongly_connected_components(&out, &against, &context));
                    prop_assert_eq!(&*found.unwrap(), &expected);
                    prop_assert_eq!(context.memory().used(), 0);
                }
            }
        }
    }

    #[test]
    fn a_component_next_to_the_largest_is_found() {
        // Every vertex of the first ten points to every other: they are the pivot's. Two circles hang on to them.
        let mut edges: Vec<_> = (0..10).flat_map(|from| (0..10).map(move |to| (from + 2, to + 2))).collect();
        edges.extend([(12, 1), (1, 0), (0, 12), (2, 0), (13, 14), (14, 13), (14, 13), (13, 5), (15, 15)]);
        let [out, against] = graph(17, &edges);
        assert_eq!(pivot(&out, &against), Some(2));
        let found = strongly_connected_components(&out, &against, &QueryContext::new()).unwrap();
        assert_eq!(*found, [0, 0, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 0, 13, 13, 15, 16]);
    }

    #[test]
    fn a_deep_graph_is_searched_without_recursion() {
        let count = 1_000_000;
        let path: Vec<_> = (1..count).map(|vertex| (vertex - 1, vertex)).collect();
        let [out, against] = graph(count, &path);
        let found = strongly_connected_components(&out, &against, &QueryContext::new()).unwrap();
        assert!(found.iter().copied().eq(0..count));
        let circle: Vec<_> = path.into_iter().chain([(count - 1, 0)]).collect();
        let [out, against] = graph(count, &circle);
        let found = strongly_connected_components(&out, &against, &QueryContext::new()).unwrap();
        assert!(found.iter().all(|component| *component == 0));
    }
}
