"""Vertex programs over NumPy columns, next to the kernels and programs of Rust with the same result: ``python pregel.py [--scale 17] [--rounds 7]``.

A graph of a Kronecker generator (Graph500's initiator) with 2**scale vertices and 8 edges for each, from a seed. The fastest of the rounds counts, in
which all take turns; the ratio is that to the kernel, and to the vertex program where there is one.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from kronecker import kronecker

import hoplake

SUPERSTEPS = 20


def follow(rank: Any, received: Any, pages: hoplake.Vertices) -> Any:
    stuck = rank[pages.degree == 0].sum()
    return (0.15 + 0.85 * stuck) / pages.count + 0.85 * received, True


def share(rank: Any, pages: hoplake.Vertices) -> Any:
    return rank / np.maximum(pages.degree, 1)


def least(label: Any, received: Any, _: hoplake.Vertices) -> Any:
    smaller = np.minimum(label, received)
    return smaller, smaller != label


def same(state: Any, _: Any) -> Any:
    return state


def take(_: Any, received: Any, __: Any) -> Any:
    return received, True


def order(vertices: hoplake.Vertices) -> Any:
    return vertices.order


def even(vertices: hoplake.Vertices) -> Any:
    return 1 / vertices.count


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--scale", type=int, default=17)
    arguments.add_argument("--rounds", type=int, default=7)
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        source, target = kronecker(given.scale)
        hoplake.load(folder, edges={("v", "e", "v"): {"source": pa.array(source), "target": pa.array(target)}})
        graph = hoplake.open(folder)
        edges = sum(kind.edges for kind in graph.schema.edge_types)
        print(f"{graph.count():,} vertices, {edges:,} edges, {SUPERSTEPS} supersteps of ranks and 10 of communities, fastest of {given.rounds} rounds, ms")
        programs = f"{folder}/states"
        rows: dict[str, dict[str, Callable[[], Any]]] = {
            "ranks": {
                "pregel": lambda: graph.pregel(initial=even, signal=share, apply=follow, max_supersteps=SUPERSTEPS),
                "kernel": lambda: graph.run("pagerank", iterations=SUPERSTEPS, tolerance=0),
                "program": lambda: graph.run("pagerank", iterations=SUPERSTEPS, tolerance=0, checkpoint=programs + "-ranks"),
            },
            "communities": {
                "pregel": lambda: graph.pregel(initial=order, signal=same, combine="mode", apply=take, edges="both", max_supersteps=10),
                "program": lambda: graph.run("communities", iterations=10),
            },
            "components": {
                "pregel": lambda: graph.pregel(initial=order, signal=same, combine="min", apply=least, edges="both"),
                "kernel": lambda: graph.run("components"),
                "program": lambda: graph.run("components", checkpoint=programs + "-components"),
            },
            "eigenvector, 1 iteration": {
                "pregel": lambda: graph.pregel(initial=1.0, signal=same, apply=take, max_supersteps=1),
                "kernel": lambda: graph.run("eigenvector", iterations=1),
            },
        }
        print("| | pregel | kernel | program | ratio to the kernel | to the program |\n| --- | --- | --- | --- | --- | --- |")
        for name, calls in rows.items():
            best = dict.fromkeys(calls, float("inf"))
            for _ in range(given.rounds):
                for kind, call in calls.items():
                    begun = time.perf_counter()
                    call()
                    best[kind] = min(best[kind], (time.perf_counter() - begun) * 1000)
            times = [f"{best[kind]:.0f}" if kind in best else "" for kind in ("pregel", "kernel", "program")]
            ratios = [f"{best['pregel'] / best[kind]:.2f}" if kind in best else "" for kind in ("kernel", "program")]
            print(f"| {name} | {' | '.join(times + ratios)} |")


if __name__ == "__main__":
    main()
