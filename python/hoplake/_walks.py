"""Walks and paths."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


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
    """Vertices one after the other, and the edges between them."""

    vertices: list[Vertex] = field(hash=False)
    edges: list[Edge] = field(hash=False)

    def __len__(self) -> int:
        """How many edges it has."""
        return len(self.edges)

    def __str__(self) -> str:
        text = str(self.vertices[0]) if self.vertices else ""
        for edge, vertex in zip(self.edges, self.vertices[1:]):
            text += f" -{edge.label}-> {vertex}" if edge.direction == "out" else f" <-{edge.label}- {vertex}"
        return text


@dataclass(frozen=True)
class Path(Walk):
    """A shortest path, and its length: the sum of weights, or the number of edges."""

    length: float = 0
