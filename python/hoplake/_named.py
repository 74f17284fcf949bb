"""Vertices as callers name them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Union

from . import _hoplake
from ._arguments import is_a, shown
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
        raise _unnamed(vertices)
    return [one(vertex) for vertex in items]


def _unnamed(vertex: Any) -> InvalidError:
    return InvalidError(f"{shown(vertex)} does not name a vertex; write \"Person:933\" or (\"Person\", 933)")


def option(algorithm: str, name: str, value: Any) -> Any:
    """An option of an algorithm; vertices as the extension takes them."""
    if name != "from":
        return value
    starts = several(value)
    if len(starts) == 1:
        start: Any = starts[0]
        if not is_a(start, str, tuple):
            raise _unnamed(start)
        return start
    for known, _, _, options in _hoplake.algorithms():
        if known == algorithm and any(own == "from" and kind == "vertex" for own, kind, *_ in options):
            raise InvalidError(f"{algorithm} begins at one vertex, but from_ has {len(starts)}")
    return starts
