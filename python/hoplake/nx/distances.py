"""Distances between nodes, by the number of edges and by weight."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from typing import Any

from .dispatch import Call, backed, weights
from .graph import Graph
from .nodes import check_has, check_node

Lengths = dict[Hashable, Any]


def levels(G: Graph, source: Hashable, direction: str | None = None) -> dict[Hashable, int]:
    """How many edges the nodes that can be reached are away."""
    return G.values("levels", direction, from_=G.vertex(source))


def _lengths(G: Graph, source: Hashable, weight: Any, direction: str | None = None) -> Lengths:
    if weight is None or G.column(weight) is None:
        return levels(G, source, direction)
    found = G.values("paths", direction, from_=G.vertex(source), weight=weight)
    return {node: _whole(length) for node, length in found.items()}


def _whole(length: float) -> float:
    """Weights that are whole numbers have whole sums."""
    return int(length) if float(length).is_integer() else length


def _nearest_first(lengths: Lengths) -> Lengths:
    return dict(sorted(lengths.items(), key=lambda item: item[1]))


def _near(lengths: Lengths, cutoff: Any) -> Lengths:
    """Those up to a length, nearest first. The source is always one."""
    return _nearest_first({node: length for node, length in lengths.items() if cutoff is None or length <= max(cutoff, 0)})


def _near_levels(found: Lengths, cutoff: Any) -> Lengths:
    # networkx takes one more level while the last is below the limit.
    return _near(found, cutoff if cutoff is None or math.isinf(cutoff) else math.ceil(cutoff))


# By the number of edges


@backed()
def single_source_shortest_path_length(G: Graph, source: Hashable, cutoff: Any = None) -> Lengths:
    check_node(G, source, f"Source {source} is not in G")
    return _near_levels(levels(G, source), cutoff)


@backed()
def single_target_shortest_path_length(G: Graph, target: Hashable, cutoff: Any = None) -> Lengths:
    check_node(G, target, f"Target {target} is not in G")
    return _near_levels(levels(G, target, "in"), cutoff)


@backed()
def all_pairs_shortest_path_length(G: Graph, cutoff: Any = None) -> Iterator[tuple[Hashable, Lengths]]:
    for node in G.nodes():
        yield node, _near_levels(levels(G, node), cutoff)


def _path_length(G: Graph, source: Hashable, target: Hashable) -> float | None:
    check_node(G, source, f"Source {source} is not in G")
    check_node(G, target, f"Target {target} is not in G")
    return G.path_length(source, target)


@backed()
def has_path(G: Graph, source: Hashable, target: Hashable) -> bool:
    return _path_length(G, source, target) is not None


def _kind(G: Graph) -> str:
    return "digraph" if G.is_directed() else "graph"


@backed()
def descendants(G: Graph, source: Hashable) -> set[Hashable]:
    check_has(G, source, _kind(G))
    return set(levels(G, source)) - {source}


@backed()
def ancestors(G: Graph, source: Hashable) -> set[Hashable]:
    check_has(G, source, _kind(G))
    return set(levels(G, source, "in")) - {source}


@backed()
def descendants_at_distance(G: Graph, source: Hashable, distance: int) -> set[Hashable]:
    check_has(G, source)
    return {node for node, level in levels(G, source).items() if level == distance}


# By weight


def _known_method(call: Call) -> str | None:
    return None if call["method"] in ("dijkstra", "bellman-ford") else "an unknown method is networkx's to reject"


@backed(_known_method, weights("weight"))
def shortest_path_length(
    G: Graph, source: Any = None, target: Any = None, weight: Any = None, method: str = "dijkstra"
) -> Any:
    import networkx

    if source is None and target is None:
        return ((node, _nearest_first(_lengths(G, node, weight))) for node in G.nodes())
    is_dijkstra = method == "dijkstra"
    if source is not None and target is not None:
        if weight is not None:
            return (dijkstra_path_length if is_dijkstra else bellman_ford_path_length)(G, source, target, weight)
        length = _path_length(G, source, target)
        if length is None:
            raise networkx.NetworkXNoPath(f"No path between {source} and {target}.")
        return int(length)
    # networkx looks for paths from the target in the reversed graph.
    end, direction = (source, None) if target is None else (target, "in")
    if weight is None:
        check_node(G, end, f"Source {end} is not in G")
    elif is_dijkstra:
        check_node(G, end, f"Node {end} not found in graph")
    else:
        check_node(G, end, f"Source {end} not in G")
    return _nearest_first(_lengths(G, end, weight, direction))


@backed(weights("weight"))
def single_source_dijkstra_path_length(G: Graph, source: Hashable, cutoff: Any = None, weight: Any = "weight") -> Lengths:
    check_node(G, source, f"Node {source} not found in graph")
    return _near(_lengths(G, source, weight), cutoff)


@backed(weights("weight"))
def dijkstra_path_length(G: Graph, source: Hashable, target: Hashable, weight: Any = "weight") -> Any:
    check_node(G, source, f"Node {source} not found in graph")
    return _weighted_length(G, source, target, weight, "Node")


def _weighted_length(G: Graph, source: Hashable, target: Hashable, weight: Any, what: str) -> float:
    import networkx

    if source == target:
        return 0
    length = G.path_length(source, target, weight) if target in G else None
    if length is None:
        raise networkx.NetworkXNoPath(f"{what} {target} not reachable from {source}")
    return _whole(length)


@backed(weights("weight"))
def all_pairs_dijkstra_path_length(
    G: Graph, cutoff: Any = None, weight: Any = "weight"
) -> Iterator[tuple[Hashable, Lengths]]:
    for node in G.nodes():
        yield node, _near(_lengths(G, node, weight), cutoff)


@backed(weights("weight"))
def single_source_bellman_ford_path_length(G: Graph, source: Hashable, weight: Any = "weight") -> Lengths:
    check_node(G, source, f"Source {source} not in G")
    return _nearest_first(_lengths(G, source, weight))


@backed(weights("weight"))
def bellman_ford_path_length(G: Graph, source: Hashable, target: Hashable, weight: Any = "weight") -> Any:
    check_node(G, source, f"Node {source} not found in graph" if source == target else f"Source {source} not in G")
    return _weighted_length(G, source, target, weight, "node")


@backed(weights("weight"))
def all_pairs_bellman_ford_path_length(G: Graph, weight: Any = "weight") -> Iterator[tuple[Hashable, Lengths]]:
    for node in G.nodes():
        yield node, _nearest_first(_lengths(G, node, weight))
