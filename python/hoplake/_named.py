"""Vertices as callers name them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Union

from ._arguments import shown
from ._errors import InvalidError
from ._table import Table
from ._walks import Vertex

#: A vertex: ``"Person:933"``, ``"airport[code = AUS]"``, ``("Person", 933)``, or a vertex of a walk.
VertexName = Union[str, "tuple[str, int | str]", Vertex]


def one(vertex: Any) -> Any:
    """A vertex as the extension takes it."""
    return (vertex.label, vertex.key) if isinstance(vertex, Vertex) else vertex


def several(vertices: Any) -> list[Any]:
    """Vertices of one or several. A tuple is one: a label and a key."""
    items: Any = vertices
    if isinstance(vertices, Table):
        return list(zip(vertices["label"], vertices["key"]))
    if isinstance(vertices, (str, tuple, Vertex)):
        return [one(vertices)]
    if not isinstance(vertices, Iterable):
        raise InvalidError(f"{shown(vertices)} does not name a vertex; write \"Person:933\" or (\"Person\", 933)")
    return [one(vertex) for vertex in items]
