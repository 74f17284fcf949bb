"""Walks and paths."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import networkx


@dataclass(frozen=True)
class Vertex:
    """A vertex of a walk, with the properties that were selected."""

    label: str
    key: int | str
    properties: dict[str, Any] = field(default_factory=dict[str, Any], hash=False)

    def __str__(self) -> str:
        return f"{self.label}:{self.key}"


@dataclass(frozen=True)
class Edge:
    """An edge of a walk, and whether the walk follows it ``"out"``, to its target, or ``"in"``, to its source."""

    label: str
    direction: str
    properties: dict[str, Any] = field(default_factory=dict[str, Any], hash=False)


@dataclass(frozen=True)
class Walk:
    """A sequence of vertices and the edges between them."""

    vertices: tuple[Vertex, ...]
    edges: tuple[Edge, ...]

    def __len__(self) -> int:
        """The number of edges."""
        return len(self.edges)

    def __bool__(self) -> bool:
        """Always true, also for a walk without edges."""
        return True

    def __str__(self) -> str:
        text = str(self.vertices[0]) if self.vertices else ""
        for edge, vertex in zip(self.edges, self.vertices[1:]):
            text += f" -{edge.label}-> {vertex}" if edge.direction == "out" else f" <-{edge.label}- {vertex}"
        return text


def add_edge(graph: Any, source: Any, target: Any, label: str, properties: dict[str, Any]) -> None:
    """Adds an edge with attributes of any names; a property ``label`` is ``.label``, as in tables."""
    number = graph.add_edge(source, target)
    attributes = graph.edges[source, target, number]
    attributes["label"] = label
    attributes.update((".label" if name == "label" else name, value) for name, value in properties.items())


def networkx_of(walks: Iterable[Walk]) -> networkx.MultiDiGraph[tuple[str, int | str]]:
    """The vertices and edges of walks as a graph of networkx. Of edges that are alike in label and properties one stays."""
    import networkx

    graph: networkx.MultiDiGraph[tuple[str, int | str]] = networkx.MultiDiGraph()
    seen: set[Any] = set()
    for walk in walks:
        nodes = [(vertex.label, vertex.key) for vertex in walk.vertices]
        for node, vertex in zip(nodes, walk.vertices):
            graph.add_node(node)
            graph.nodes[node].update(vertex.properties)
        for near, far, edge in zip(nodes, nodes[1:], walk.edges):
            source, target = (near, far) if edge.direction == "out" else (far, near)
            key = (source, target, edge.label, repr(sorted(edge.properties.items())))
            if key not in seen:
                seen.add(key)
                add_edge(graph, source, target, edge.label, edge.properties)
    return graph


@dataclass(frozen=True)
class Path(Walk):
    """A shortest path. ``length`` is the sum of the weights, or the number of edges."""

    length: float = 0
