"""Hoplake: a graph engine whose graphs live in object storage.

>>> import hoplake
>>> people = {"key": [1, 2, 3], "name": ["Ann", "Bo", "Cy"]}
>>> knows = {"source": [1, 2, 3], "target": [2, 3, 2]}
>>> loaded = hoplake.load("memory://docs/people", vertices={"Person": people}, edges={("Person", "knows", "Person"): knows})
>>> graph = hoplake.open("memory://docs/people")
>>> ranks = graph.run("pagerank", edges="out:knows")
>>> ranks.top(1, select="name")["name"]
['Bo']

:mod:`hoplake.aio` has the same calls with ``async`` and ``await``, :mod:`hoplake.nx` is a backend of networkx,
:mod:`hoplake.pyg` has loaders of PyTorch Geometric, and :mod:`hoplake.gremlin` has the
classes of Gremlin results.
"""

from __future__ import annotations

# Annotations of the classes below are evaluated in this module, the one that they name as theirs.
from typing import TYPE_CHECKING, Any

from . import gremlin as gremlin
from ._arguments import own_as
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
from ._columns import Vertices
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
from ._samples import LinkSample, Sample
from ._sync.results import Plan, Profile, Results, Scan, Walks
from ._sync.sampler import Sampler
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
    "LinkSample",
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
    "Sample",
    "Sampler",
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
    "Vertices",
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

own_as(__name__, globals(), __all__)

if TYPE_CHECKING:
    from . import aio as aio
    from . import nx as nx
    from . import pyg as pyg
else:

    def __getattr__(name: str) -> Any:
        """Modules that are imported when they are first used."""
        if name in ("aio", "nx", "pyg"):
            from importlib import import_module

            return import_module(f"{__name__}.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), "aio", "nx", "pyg"})
