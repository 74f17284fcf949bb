//! Orders by distance from a vertex.

use super::{Undirected, positions};

/// The position of each vertex in a breadth-first search that starts, in each component, from the
/// vertex of highest degree. O(V log V + E).
pub fn breadth_first(graph: &Undirected) -> Vec<u32> {
    let mut roots: Vec<u32> = (0..graph.vertices()).collect();
    roots.sort_by_key(|&vertex| std::cmp::Reverse(graph.degree(vertex)));
    positions(&search(graph, &roots, |_| {}))
}

/// The position of each vertex in the reverse Cuthill–McKee order (Cuthill and McKee, 1969;
/// George, 1971): breadth-first from a vertex of least degree, neighbours by rising degree, the
/// whole reversed. It keeps neighbours' numbers close in meshes. O(V log V + E log degree).
pub fn reverse_cuthill_mckee(graph: &Undirected) -> Vec<u32> {
    let mut roots: Vec<u32> = (0..graph.vertices()).collect();
    roots.sort_by_key(|&vertex| graph.degree(vertex));
    let by_degree = |found: &mut [u32]| found.sort_by_key(|&vertex| graph.degree(vertex));
    let mut order = search(graph, &roots, by_degree);
    order.reverse();
    positions(&order)
}

/// All vertices in the order that a breadth-first search from each root finds them in; `arrange`
/// orders those that one vertex finds.
fn search(graph: &Undirected, roots: &[u32], arrange: impl Fn(&mut [u32])) -> Vec<u32> {
    let mut found = vec![false; roots.len()];
    let mut order: Vec<u32> = Vec::with_capacity(roots.len());
    let mut next = 0;
    for &root in roots {
        if std::mem::replace(&mut found[root as usize], true) {
            continue;
        }
        order.push(root);
        while let Some(&vertex) = order.get(next) {
            next += 1;
            let from = order.len();
            for &neighbour in graph.neighbours(vertex) {
                if !std::mem::replace(&mut found[neighbour as usize], true) {
                    order.push(neighbour);
                }
            }
            arrange(&mut order[from..]);
        }
    }
    order
}
