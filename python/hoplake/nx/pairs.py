"""Scores of pairs of nodes by their neighbours."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import combinations
from typing import Any

from .dispatch import backed, no_parallel_edges, no_self_loops, undirected
from .graph import Graph

_Near = dict[Hashable, set[Hashable]]
_Scores = Iterator[tuple[Hashable, Hashable, float]]


def _scores(G: Graph, ebunch: Any, score: Callable[[_Near, Hashable, Hashable], float]) -> _Scores:
    """The scores of pairs, or of all that are not edges. Reads all edges."""
    import networkx

    around: _Near = {node: set() for node in G.nodes()}
    for source, target, _ in G.edges():
        around[source].add(target)
        around[target].add(source)
    pairs: Iterable[tuple[Hashable, Hashable]]
    if ebunch is None:
        pairs = (pair for pair in combinations(G.nodes(), 2) if pair[1] not in around[pair[0]])
    else:
        pairs = list(ebunch)
        for pair in pairs:
            for node in pair:
                if node not in around:
                    raise networkx.NodeNotFound(f"Node {node} not in G.")
    return ((first, last, score(around, first, last)) for first, last in pairs)


def _between(around: _Near, first: Hashable, last: Hashable) -> set[Hashable]:
    return around[first] & around[last] - {first, last}


@backed(undirected, no_parallel_edges, no_self_loops)
def jaccard_coefficient(G: Graph, ebunch: Any = None) -> _Scores:
    def score(around: _Near, first: Hashable, last: Hashable) -> float:
        union = around[first] | around[last]
        return len(around[first] & around[last]) / len(union) if union else 0

    return _scores(G, ebunch, score)


@backed(undirected, no_parallel_edges, no_self_loops)
def resource_allocation_index(G: Graph, ebunch: Any = None) -> _Scores:
    def score(around: _Near, first: Hashable, last: Hashable) -> float:
        return sum(1 / len(around[node]) for node in _between(around, first, last))

    return _scores(G, ebunch, score)


@backed(undirected, no_parallel_edges, no_self_loops)
def adamic_adar_index(G: Graph, ebunch: Any = None) -> _Scores:
    def score(around: _Near, first: Hashable, last: Hashable) -> float:
        return sum(1 / math.log(len(around[node])) for node in _between(around, first, last))

    return _scores(G, ebunch, score)


@backed(undirected, no_parallel_edges, no_self_loops)
def preferential_attachment(G: Graph, ebunch: Any = None) -> _Scores:
    def score(around: _Near, first: Hashable, last: Hashable) -> float:
        return len(around[first]) * len(around[last])

    return _scores(G, ebunch, score)
