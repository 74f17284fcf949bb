"""Graph elements that Gremlin queries return.

Numbers, strings, dates, lists, sets and maps are the types of Python.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Vertex:
    """A vertex. Vertices with the same id are equal. ``properties`` is ``None`` if the query did not request them."""

    id: Any
    label: str = field(compare=False)
    properties: dict[str, Any] | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Edge:
    """An edge with its source and its target. Edges with the same id are equal."""

    id: Any
    label: str = field(compare=False)
    source: Vertex = field(compare=False)
    target: Vertex = field(compare=False)
    properties: dict[str, Any] | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Property:
    """A property of a vertex or an edge."""

    key: str
    value: Any


@dataclass(frozen=True)
class Path:
    """The objects that a traverser visited, and the labels of the steps where it did."""

    objects: tuple[Any, ...]
    labels: tuple[frozenset[str], ...]

    def __len__(self) -> int:
        return len(self.objects)

    def __getitem__(self, at: int) -> Any:
        return self.objects[at]


@dataclass(frozen=True)
class Subgraph:
    """A part of the graph: some vertices and edges."""

    vertices: tuple[Vertex, ...]
    edges: tuple[Edge, ...]
