"""Distances over the whole graph: from each node to the farthest and to all others. A search from each node takes time in proportion."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator
from typing import Any

from .dispatch import backed, only_defaults
from .distances import levels
from .graph import Graph
from .nodes import nodes_of


def _extents(G: Graph, nodes: Iterable[Hashable] | None = None) -> Iterator[tuple[Hashable, int, int] | None]:
    """Of each node: itself, the distance of the farthest, and the sum of all; None if it does not reach all."""
    count = len(G)
    for node in G.nodes() if nodes is None else nodes:
        found = levels(G, node).values()
        yield (node, max(found), sum(found)) if len(found) == count else None


def _sum(G: Graph) -> int | None:
    """The sum of all distances."""
    total = 0
    for extent in _extents(G):
        if extent is None:
            return None
        total += extent[2]
    return total


@backed(only_defaults("sp", "weight"))
def eccentricity(G: Graph, v: Any = None, sp: Any = None, weight: Any = None) -> Any:
    import networkx

    found: dict[Hashable, int] = {}
    for extent in _extents(G, nodes_of(G, v)):
        if extent is None:
            what = "the digraph is not strongly connected" if G.is_directed() else "the graph is not connected"
            raise networkx.NetworkXError(f"Found infinite path length because {what}")
        found[extent[0]] = extent[1]
    return found[v] if v is not None and v in G else found


@backed(only_defaults("e", "usebounds", "weight"))
def diameter(G: Graph, e: Any = None, usebounds: bool = False, weight: Any = None) -> int:
    return int(max(eccentricity(G).values()))


@backed(only_defaults("e", "usebounds", "weight"))
def radius(G: Graph, e: Any = None, usebounds: bool = False, weight: Any = None) -> int:
    return int(min(eccentricity(G).values()))


@backed(only_defaults("e", "usebounds", "weight"))
def center(G: Graph, e: Any = None, usebounds: bool = False, weight: Any = None) -> list[Hashable]:
    found = eccentricity(G)
    least = min(found.values())
    return [node for node, value in found.items() if value == least]


@backed(only_defaults("e", "usebounds", "weight"))
def periphery(G: Graph, e: Any = None, usebounds: bool = False, weight: Any = None) -> list[Hashable]:
    found = eccentricity(G)
    most = max(found.values())
    return [node for node, value in found.items() if value == most]


@backed(only_defaults("weight", "attr", "sp"))
def centroid(G: Graph, weight: Any = None, attr: Any = None, sp: Any = None) -> list[Hashable]:
    import networkx

    sums: dict[Hashable, int] = {}
    for extent in _extents(G):
        if extent is None:
            message = f"Input graph {G} is disconnected, so every induced subgraph has infinite barycentricity."
            raise networkx.NetworkXNoPath(message)
        sums[extent[0]] = extent[2]
    least = min(sums.values())
    return [node for node, value in sums.items() if value == least]


@backed(only_defaults("weight", "attr", "sp"))
def barycenter(G: Graph, weight: Any = None, attr: Any = None, sp: Any = None) -> list[Hashable]:
    # As networkx calls it before 3.7.
    return centroid(G)


@backed(only_defaults("weight", "method"))
def average_shortest_path_length(G: Graph, weight: Any = None, method: Any = None) -> float:
    import networkx

    count = len(G)
    if count == 1:
        return 0
    total = _sum(G)
    if total is None:
        raise networkx.NetworkXError("Graph is not strongly connected." if G.is_directed() else "Graph is not connected.")
    return total / (count * (count - 1))


@backed(only_defaults("weight"))
def wiener_index(G: Graph, weight: Any = None) -> float:
    total = _sum(G)
    if total is None:
        return math.inf
    return total if G.is_directed() else total / 2


@backed()
def global_efficiency(G: Graph) -> float:
    count = len(G)
    pairs = count * (count - 1)
    if pairs == 0:
        return 0
    return sum(1 / level for node in G.nodes() for level in levels(G, node).values() if level > 0) / pairs
