"""Hoplake: a graph engine whose graphs live in object storage.

>>> import hoplake
>>> people = {"key": [1, 2, 3], "name": ["Ann", "Bo", "Cy"]}
>>> knows = {"source": [1, 2, 3], "target": [2, 3, 2]}
>>> loaded = hoplake.load("memory://docs/people", vertices={"Person": people}, edges={("Person", "knows", "Person"): knows})
>>> graph = hoplake.open("memory://docs/people")
>>> ranks = graph.run("pagerank", edges="out:knows")
>>> ranks.top(1, select="name")["name"]
['Bo']

The same with ``async`` and ``await`` is :mod:`hoplake.aio`.
"""

from __future__ import annotations

from . import gremlin as gremlin
from ._changes import (
    Committed,
    Compacted,
    Difference,
    Exported,
    Index,
    Loaded,
    Mirrored,
    PreparedQuery,
    Vacuumed,
    Verified,
    Version,
)
from ._cost import Cost
from ._errors import (
    ConflictError,
    CorruptError,
    Error,
    InternalError,
    InvalidError,
    LimitError,
    NotFoundError,
    OutcomeUnknownError,
    UnavailableError,
)
from ._hoplake import __version__
from ._schema import EdgeType, Info, Label, Schema
from ._serve import Server, serve
from ._sync.commit import Commit
from ._sync.computation import Computation, algorithms
from ._sync.graph import Graph, create, load
from ._sync.graph import open as open
from ._quote import quote
from ._sync.results import Plan, Profile, Results, Scan, Walks
from ._sync.traversal import Traversal
from ._table import ArrowStream, Rows, Table
from ._walks import Edge, Path, Vertex, Walk

__all__ = [
    "ArrowStream",
    "Commit",
    "Committed",
    "Compacted",
    "Computation",
    "ConflictError",
    "CorruptError",
    "Cost",
    "Difference",
    "Edge",
    "EdgeType",
    "Error",
    "Exported",
    "Graph",
    "Index",
    "Info",
    "InternalError",
    "InvalidError",
    "Label",
    "LimitError",
    "Loaded",
    "Mirrored",
    "NotFoundError",
    "OutcomeUnknownError",
    "Path",
    "Plan",
    "PreparedQuery",
    "Profile",
    "Results",
    "Rows",
    "Scan",
    "Schema",
    "Server",
    "Table",
    "Traversal",
    "UnavailableError",
    "Vacuumed",
    "Verified",
    "Version",
    "Vertex",
    "Walk",
    "Walks",
    "__version__",
    "algorithms",
    "create",
    "gremlin",
    "load",
    "quote",
    "serve",
]
