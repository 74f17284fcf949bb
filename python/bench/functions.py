"""Functions of networkx by four means: ``python functions.py [--scale 17] [--rounds 3]``; needs networkx, scipy, igraph and pyarrow.

A graph of a Kronecker generator with 2**scale nodes and up to 8 edges for each, without parallel edges and loops, with a weight; ranks follow its
directions, and the others do without. Each function is called with the same arguments by networkx, by igraph, by Hoplake on a stored graph that is opened
for each call, and by Hoplake on networkx's graph: once with the conversion, and once more without. The fastest of the rounds counts, in which
all take turns. Results are compared.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from collections.abc import Callable
from typing import Any

import igraph
import networkx as nx
import numpy as np
import pyarrow as pa
from kronecker import kronecker

import hoplake

SAMPLE = 8


def edges_of(scale: int) -> Any:
    """Pairs of different nodes, each once, the lower one first."""
    ends = kronecker(scale)
    pairs = np.sort(ends, axis=0)[:, ends[0] != ends[1]]
    return np.unique(pairs, axis=1)


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    begun = time.perf_counter()
    result = call()
    return time.perf_counter() - begun, result


def agree(one: Any, other: Any) -> bool:
    """Whether two results are the same but for the last bits of floats."""
    if isinstance(one, dict):
        return len(one) == len(other) and all(agree(value, other[node]) for node, value in one.items())
    return math.isclose(one, other, rel_tol=1e-5, abs_tol=1e-9)


def finite(values: Any) -> dict[int, float]:
    return {node: value for node, value in enumerate(values) if math.isfinite(value)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=int, default=17)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    count = 1 << given.scale
    ends = edges_of(given.scale)
    weights = np.random.default_rng(7).integers(1, 100, ends.shape[1]).astype(float)
    print(f"{count:,} nodes, {ends.shape[1]:,} edges, fastest of {given.rounds} rounds")

    def networkx_graph(kind: type[Any]) -> Any:
        graph = kind()
        graph.add_nodes_from(range(count))
        graph.add_weighted_edges_from(zip(*ends.tolist(), weights.tolist()))
        return graph

    lone, directed = networkx_graph(nx.Graph), networkx_graph(nx.DiGraph)

    def igraph_graph(is_directed: bool) -> Any:
        return igraph.Graph(count, ends.T.tolist(), directed=is_directed, edge_attrs={"weight": weights.tolist()})

    ig_lone, ig_directed = igraph_graph(False), igraph_graph(True)
    hub = int(np.bincount(ends.ravel()).argmax())
    sampled = nx.utils.create_py_random_state(1).sample(list(lone.nodes()), SAMPLE)

    def between(graph: Any, **options: Any) -> Any:
        return nx.betweenness_centrality(graph, k=SAMPLE, seed=1, normalized=False, **options)

    def scaled(values: Any) -> dict[int, float]:
        return {node: value * count / SAMPLE for node, value in enumerate(values)}

    def triangles() -> dict[int, int]:
        # igraph has the share of pairs of neighbours that are adjacent.
        degrees = np.array(ig_lone.degree())
        shares = np.array(ig_lone.transitivity_local_undirected(mode="zero"))
        return dict(enumerate(np.rint(shares * degrees * (degrees - 1) / 2).astype(int).tolist()))

    rows: dict[str, tuple[Callable[..., Any], bool, Callable[[], Any]]] = {
        "pagerank": (nx.pagerank, True, lambda: finite(ig_directed.pagerank())),
        "number_connected_components": (nx.number_connected_components, False, lambda: len(ig_lone.connected_components())),
        f"betweenness_centrality, k={SAMPLE}": (between, False, lambda: scaled(ig_lone.betweenness(sources=sampled))),
        "single_source_shortest_path_length": (
            lambda graph, **options: nx.single_source_shortest_path_length(graph, hub, **options),
            False,
            lambda: finite(ig_lone.distances(hub)[0]),
        ),
        "single_source_dijkstra_path_length": (
            lambda graph, **options: nx.single_source_dijkstra_path_length(graph, hub, **options),
            False,
            lambda: finite(ig_lone.distances(hub, weights="weight")[0]),
        ),
        "triangles": (nx.triangles, False, triangles),
    }
    with tempfile.TemporaryDirectory() as folder:
        table = {"source": pa.array(ends[0]), "target": pa.array(ends[1]), "weight": pa.array(weights)}
        seconds, _ = timed(lambda: hoplake.load(folder, vertices={"v": {"key": pa.array(np.arange(count))}}, edges={("v", "e", "v"): table}))
        print(f"load from Arrow: {seconds:.2f} s; a graph of networkx from lists: {timed(lambda: networkx_graph(nx.Graph))[0]:.2f} s; "
              f"of igraph: {timed(lambda: igraph_graph(False))[0]:.2f} s; igraph.Graph.from_networkx: {timed(lambda: igraph.Graph.from_networkx(lone))[0]:.2f} s\n")
        print("| | networkx | igraph | Hoplake, stored | converted, with the conversion | without it |\n| --- | --- | --- | --- | --- | --- |")
        for name, (call, is_directed, by_igraph) in rows.items():
            graph = directed if is_directed else lone

            def stored() -> Any:
                view = hoplake.open(folder).nx("e", directed=is_directed, multigraph=False)
                return call(view, backend="hoplake")

            def converting() -> Any:
                graph.__networkx_cache__.clear()
                return call(graph, backend="hoplake")

            ways: dict[str, Callable[[], Any]] = {
                "networkx": lambda: call(graph),
                "igraph": by_igraph,
                "stored": stored,
                "converting": converting,
                "converted": lambda: call(graph, backend="hoplake"),
            }
            best = dict.fromkeys(ways, float("inf"))
            results: dict[str, Any] = {}
            for number in range(given.rounds):
                for way, run in ways.items():
                    # networkx takes long enough to be timed once.
                    if way == "networkx" and best[way] < float("inf") and best[way] > 10:
                        continue
                    seconds, results[way] = timed(run)
                    best[way] = min(best[way], seconds)
            for way, result in results.items():
                if not agree(results["networkx"], result):
                    print(f"{name}: the result of {way} differs")
            print(f"| `{name}` | {' | '.join(f'{seconds:.2f} s' for seconds in best.values())} |", flush=True)


if __name__ == "__main__":
    main()
