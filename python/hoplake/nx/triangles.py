"""Cores, triangles and clustering."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from .dispatch import Call, backed, no_parallel_edges, no_self_loops, only_defaults, undirected
from .graph import Graph
from .nodes import nodes_of, of_nodes


@backed(undirected, no_parallel_edges, no_self_loops)
def core_number(G: Graph) -> dict[Hashable, int]:
    return G.values("cores")


def _of_some(call: Call) -> str | None:
    # networkx counts triangles of all nodes of a multigraph, but not of some.
    return None if call["nodes"] is None else no_parallel_edges(call)


@backed(undirected, _of_some, no_self_loops)
def triangles(G: Graph, nodes: Any = None) -> Any:
    return of_nodes(G, G.values("triangles-per-vertex"), nodes)


@backed(only_defaults("weight"), undirected, no_parallel_edges, no_self_loops)
def clustering(G: Graph, nodes: Any = None, weight: Any = None) -> Any:
    return of_nodes(G, G.values("clustering"), nodes)


@backed(only_defaults("weight"), undirected, no_parallel_edges, no_self_loops)
def average_clustering(G: Graph, nodes: Any = None, weight: Any = None, count_zeros: bool = True) -> float:
    values: dict[Hashable, float] = G.values("clustering")
    of: list[float] = [values[node] for node in nodes_of(G, nodes)]
    of = of if count_zeros else [value for value in of if abs(value) > 0]
    return float(sum(of) / len(of))


@backed(undirected, no_parallel_edges, no_self_loops)
def transitivity(G: Graph) -> float:
    closed = sum(G.values("triangles-per-vertex").values())
    triads = sum(degree * (degree - 1) for degree in G.values("degrees").values())
    return 0.0 if closed == 0 else float(2 * closed / triads)
