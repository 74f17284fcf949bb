"""What queries of Gremlin return: elements of the graph as Python has them.

Numbers, texts, dates, lists, sets and maps are Python's own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Vertex:
    """A vertex. Two with the same id are equal. Its properties are ``None`` where a query did not ask for them."""

    id: Any
    label: str = field(compare=False)
    properties: dict[str, Any] | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Edge:
    """An edge, and the vertices that it leaves and reaches. Two with the same id are equal."""

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
    """What a traverser has met, and the labels of the steps where it did."""

    objects: tuple[Any, ...]
    labels: tuple[frozenset[str], ...]

    def __len__(self) -> int:
        return len(self.objects)

    def __getitem__(self, at: int) -> Any:
        return self.objects[at]


@dataclass(frozen=True)
class Subgraph:
    """Some vertices and edges of the graph."""

    vertices: tuple[Vertex, ...]
    edges: tuple[Edge, ...]
