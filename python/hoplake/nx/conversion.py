"""Graphs of networkx become graphs of Hoplake, and the other way round."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Hashable
from typing import Any

from .._arguments import shown
from .._sync.graph import load
from .._sync.graph import open as open_graph
from .graph import EDGE, LABEL, Graph


def convert_from_nx(graph: Any, *, edge_attrs: dict[str, Any] | None = None, **_: Any) -> Graph:
    """A graph of networkx as one of Hoplake, in a temporary folder that is removed with it."""
    if isinstance(graph, Graph):
        return graph
    if not callable(getattr(graph, "edges", None)):
        raise TypeError(f"{shown(graph)} is not a graph of networkx")
    nodes: list[Hashable] = list(graph)
    numbers = {node: number for number, node in enumerate(nodes)}
    sources: list[int] = []
    targets: list[int] = []
    attributes: dict[str, list[Any]] = {name: [] for name in edge_attrs or {}}
    for source, target, data in graph.edges(data=True):
        sources.append(numbers[source])
        targets.append(numbers[target])
        for name, column in attributes.items():
            value = data.get(name, (edge_attrs or {})[name])
            value = 1 if value is None else value
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise NotImplementedError(f"the attribute {name!r} of an edge is {value!r}, which is not a number")
            column.append(float(value))
    folder = tempfile.mkdtemp(prefix="hoplake-nx-")
    try:
        # Attributes have any names.
        columns = {name: f"attribute{number}" for number, name in enumerate(attributes)}
        edges: dict[str, list[Any]] = {"source": sources, "target": targets}
        edges.update((columns[name], values) for name, values in attributes.items())
        tables: Any = {LABEL: {"key": list(range(len(nodes)))}}
        load(folder + "/graph", vertices=tables, edges={(LABEL, EDGE, LABEL): edges})
        stored = open_graph(folder + "/graph")
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    converted = Graph(
        stored,
        [EDGE],
        directed=graph.is_directed(),
        multigraph=graph.is_multigraph(),
        weights=columns,
        nodes=nodes,
    )
    weakref.finalize(converted, shutil.rmtree, folder, ignore_errors=True)
    return converted


def convert_to_nx(result: Any, *, name: str | None = None) -> Any:
    """A result as networkx has it."""
    return result.to_networkx() if isinstance(result, Graph) else result
