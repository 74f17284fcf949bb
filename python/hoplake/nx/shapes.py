"""Counts and shapes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator

from .components import number_of_components
from .dispatch import backed, directed, no_parallel_edges
from .graph import Graph


def _degrees(G: Graph, direction: str = "both") -> dict[Hashable, int]:
    return G.values("degrees", direction)


@backed()
def isolates(G: Graph) -> Iterator[Hashable]:
    yield from (node for node, degree in _degrees(G).items() if degree == 0)


@backed()
def number_of_isolates(G: Graph) -> int:
    return sum(1 for _ in isolates(G))


@backed()
def is_isolate(G: Graph, n: Hashable) -> bool:
    import networkx

    if n not in G:
        if isinstance(n, Iterable):
            # networkx takes it for a collection of nodes.
            return False
        raise networkx.NetworkXError(f"Node {n} is not in the graph.")
    return G.degree(n) == 0


@backed()
def number_of_selfloops(G: Graph) -> int:
    return sum(source == target for source, target, _ in G.edges())


@backed()
def s_metric(G: Graph) -> float:
    degrees = _degrees(G)
    return float(sum(degrees[source] * degrees[target] for source, target, _ in G.edges()))


@backed(directed, no_parallel_edges)
def overall_reciprocity(G: Graph) -> float:
    edges = {(source, target) for source, target, _ in G.edges()}
    pairs = {frozenset(edge) for edge in edges}
    return (len(edges) - len(pairs)) * 2 / len(edges)


@backed()
def is_regular(G: Graph) -> bool:
    directions = ["in", "out"] if G.is_directed() else ["both"]
    return all(len(set(_degrees(G, direction).values())) == 1 for direction in directions)


@backed()
def is_eulerian(G: Graph) -> bool:
    if G.is_directed():
        return _degrees(G, "in") == _degrees(G, "out") and number_of_components(G, "strong-components") == 1
    return all(degree % 2 == 0 for degree in _degrees(G).values()) and number_of_components(G) == 1


@backed()
def is_tree(G: Graph) -> bool:
    return len(G) - 1 == G.number_of_edges() and number_of_components(G) == 1


@backed()
def is_forest(G: Graph) -> bool:
    return len(G) - number_of_components(G) == G.number_of_edges()


@backed(directed)
def is_arborescence(G: Graph) -> bool:
    return is_tree(G) and max(_degrees(G, "in").values()) <= 1


@backed(directed)
def is_branching(G: Graph) -> bool:
    return is_forest(G) and max(_degrees(G, "in").values()) <= 1
