"""The same calls with ``async`` and ``await``.

``graph = await hoplake.aio.open(url)``. Exceptions, tables and other results are those of :mod:`hoplake`. Cancelling the task that awaits a call ends the call.
"""

from __future__ import annotations

from ._arguments import own_as
from ._async.commit import Commit
from ._async.computation import Computation, algorithms
from ._async.graph import Graph, create, load, open
from ._async.results import Plan, Profile, Results, Scan, Walks
from ._async.sampler import Sampler
from ._async.traversal import Traversal

__all__ = [
    "Commit",
    "Computation",
    "Graph",
    "Plan",
    "Profile",
    "Results",
    "Sampler",
    "Scan",
    "Traversal",
    "Walks",
    "algorithms",
    "create",
    "load",
    "open",
]

own_as(__name__, globals(), __all__)

for _kind in (Commit, Graph, Traversal):
    # Examples at the end of docstrings are those of the calls without await.
    _kind.__doc__ = (_kind.__doc__ or "").partition(">>> ")[0].rstrip()
