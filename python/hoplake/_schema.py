"""Labels, edge types and sizes of a graph."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape


@dataclass(frozen=True)
class Label:
    """A label of vertices: its name, the type of its keys, its properties with their types, and how many vertices it has."""

    name: str
    key_type: str
    properties: dict[str, str]
    vertices: int


@dataclass(frozen=True)
class EdgeType:
    """Edges of a label between vertices of two labels. After commits ``edges`` is an upper bound, unless ``is_exact``."""

    label: str
    source_label: str
    target_label: str
    properties: dict[str, str]
    edges: int
    is_exact: bool


@dataclass(frozen=True)
class Schema:
    """Labels of vertices, and types of edges."""

    labels: list[Label]
    edge_types: list[EdgeType] = field(default_factory=list[EdgeType])

    def _repr_html_(self) -> str:
        def properties(of: dict[str, str]) -> str:
            return escape(", ".join(f"{name}: {kind}" for name, kind in of.items()))

        rows = [
            f"<tr><td>{escape(it.name)}</td><td>{it.vertices:,}</td><td>{properties(it.properties)}</td></tr>"
            for it in self.labels
        ] + [
            f"<tr><td>{escape(it.source_label)} –{escape(it.label)}→ {escape(it.target_label)}</td>"
            f"<td>{it.edges:,}</td><td>{properties(it.properties)}</td></tr>"
            for it in self.edge_types
        ]
        head = "<tr><th>label or edge type</th><th>count</th><th>properties</th></tr>"
        return f"<table>{head}{''.join(rows)}</table>"


@dataclass(frozen=True)
class Info:
    """Counts of a version, and its sizes in bytes."""

    version: int
    vertices: int
    edges: int
    is_edge_count_exact: bool
    bytes: int
    index_bytes: int
    bytes_per_directed_edge: float
