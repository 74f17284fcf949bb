"""Ranks and centralities."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

from .dispatch import Call, backed, directed, no_parallel_edges, no_self_loops_undirected, only_defaults, weights
from .distances import levels
from .graph import Graph
from .nodes import check_node, nodes_of


def _equal_starts(call: Call) -> str | None:
    starts = call["personalization"]
    if starts is not None and len({value for value in starts.values() if value}) != 1:
        return "personalised PageRank has equal weights for its nodes"
    return None


@backed(only_defaults("nstart", "dangling"), _equal_starts, weights("weight"), no_self_loops_undirected)
def pagerank(
    G: Graph,
    alpha: float = 0.85,
    personalization: Any = None,
    max_iter: int = 100,
    tol: float = 1.0e-6,
    nstart: Any = None,
    weight: str | None = "weight",
    dangling: Any = None,
) -> dict[Hashable, float]:
    options: dict[str, Any] = {"damping": alpha, "weight": weight}
    if personalization is not None:
        starts = [node for node, value in personalization.items() if value and node in G]
        if not starts:
            raise ZeroDivisionError
        options["from_"] = [G.vertex(node) for node in starts]
    return _iterated(G, "pagerank", max_iter, tol, **options)


def _iterated(G: Graph, algorithm: str, max_iter: int, tol: float, **options: Any) -> dict[Hashable, float]:
    import networkx

    computed = G.run(algorithm, iterations=max_iter + 1, tolerance=len(G) * tol, **options)
    if computed.iterations is not None and computed.iterations > max_iter:
        raise networkx.PowerIterationFailedConvergence(max_iter)
    return G.by_node(computed)


def _no_weights(call: Call) -> str | None:
    G = call.graph
    if isinstance(G, Graph):
        has_some = G.column("weight") is not None and not G.is_converted
    else:
        has_some = any(weight != 1 for _, _, weight in G.edges(data="weight", default=1))
    return "edges have weights, which count in networkx" if has_some else None


_HITS_ITERATIONS = 1000


def _enough_iterations(call: Call) -> str | None:
    # networkx's iterations are others in each of its versions, and so is when they have failed.
    return "it computes as many iterations as are needed" if call["max_iter"] < 100 else None


@backed(only_defaults("nstart", "normalized"), _enough_iterations, _no_weights, directed)
def hits(
    G: Graph, max_iter: int = 100, tol: float = 1.0e-8, nstart: Any = None, normalized: bool = True
) -> tuple[dict[Hashable, float], dict[Hashable, float]]:
    import networkx

    most = max(max_iter, _HITS_ITERATIONS)
    found: list[dict[Hashable, float]] = []
    for algorithm in ("hubs", "authorities"):
        computed = G.run(algorithm, iterations=most + 1, tolerance=tol / 100)
        if computed.iterations is not None and computed.iterations > most:
            raise networkx.PowerIterationFailedConvergence(max_iter)
        found.append(G.by_node(computed))
    return found[0], found[1]


@backed(only_defaults("nstart", "weight"), no_parallel_edges, no_self_loops_undirected)
def eigenvector_centrality(
    G: Graph, max_iter: int = 100, tol: float = 1.0e-6, nstart: Any = None, weight: Any = None
) -> dict[Hashable, float]:
    return _iterated(G, "eigenvector", max_iter, tol)


def _samples_as_known(call: Call) -> str | None:
    import networkx

    if call["k"] == 0:
        return "a sample without nodes is networkx's to reject"
    if call["k"] is None or tuple(map(int, networkx.__version__.split(".")[:2])) >= (3, 5):
        return None
    return "networkx scales samples in another way from 3.5 on"


@backed(only_defaults("weight", "endpoints"), _samples_as_known, no_parallel_edges)
def betweenness_centrality(
    G: Graph, k: Any = None, normalized: bool = True, weight: Any = None, endpoints: bool = False, seed: Any = None
) -> dict[Hashable, float]:
    import networkx

    nodes = G.nodes()
    count, direction = len(nodes), 1 if G.is_directed() else 2
    if k is None or k == count:
        values = G.values("betweenness")
        pairs = (count - 1) * (count - 2) / direction if normalized else 1
        return {node: value / pairs if pairs > 0 else value for node, value in values.items()}
    utils: Any = networkx.utils
    sources: list[Hashable] = utils.create_py_random_state(seed).sample(nodes, k)
    if count < 3:
        return dict.fromkeys(nodes, 0.0)
    # Estimated for pairs of all nodes; no path from a source has it in between, so networkx takes each source for one less.
    values = G.values("betweenness", from_=[G.vertex(node) for node in sources])
    pairs = count * (count - 2) / direction if normalized else count / (count - 1)
    of_source = k / (k - 1) if k > 1 else math.nan
    sampled = set(sources)
    return {node: value / pairs * (of_source if node in sampled else 1) for node, value in values.items()}


@backed(only_defaults("distance", "wf_improved"))
def closeness_centrality(G: Graph, u: Any = None, distance: Any = None, wf_improved: bool = True) -> Any:
    if u is None:
        return G.values("closeness")
    check_node(G, u, f"Source {u} is not in G")
    near = levels(G, u, "in")
    total, others = sum(near.values()), len(near) - 1
    return 0.0 if total == 0 else others / total * (others / (len(G) - 1))


@backed(only_defaults("distance"))
def harmonic_centrality(G: Graph, nbunch: Any = None, distance: Any = None, sources: Any = None) -> dict[Hashable, float]:
    sums: dict[Hashable, float] = dict.fromkeys(nodes_of(G, nbunch), 0)
    for source in nodes_of(G, sources):
        for node, level in levels(G, source).items():
            if level > 0 and node in sums:
                sums[node] += 1 / level
    return sums


def _degree_centrality(G: Graph, direction: str) -> dict[Hashable, float]:
    count = len(G)
    if count <= 1:
        return dict.fromkeys(G.nodes(), 1)
    scale = 1.0 / (count - 1.0)
    return {node: degree * scale for node, degree in G.values("degrees", direction).items()}


@backed()
def degree_centrality(G: Graph) -> dict[Hashable, float]:
    return _degree_centrality(G, "both")


@backed(directed)
def in_degree_centrality(G: Graph) -> dict[Hashable, float]:
    return _degree_centrality(G, "in")


@backed(directed)
def out_degree_centrality(G: Graph) -> dict[Hashable, float]:
    return _degree_centrality(G, "out")
