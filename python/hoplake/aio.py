"""The same calls with ``async`` and ``await``.

``graph = await hoplake.aio.open(url)``. Exceptions, tables and other results are those of :mod:`hoplake`. A call whose task is cancelled ends.
"""

from __future__ import annotations

from ._async.commit import Commit
from ._async.computation import Computation, algorithms
from ._async.graph import Graph, create, load, open
from ._async.results import Plan, Profile, Results, Scan, Walks
from ._async.traversal import Traversal

__all__ = [
    "Commit",
    "Computation",
    "Graph",
    "Plan",
    "Profile",
    "Results",
    "Scan",
    "Traversal",
    "Walks",
    "algorithms",
    "create",
    "load",
    "open",
]
