"""A backend of networkx: its functions, computed by Hoplake.

``networkx.pagerank(hoplake.open(url).nx("knows"), backend="hoplake")`` runs on the bucket, without a conversion. A graph of networkx is converted when
one of its functions is called with ``backend="hoplake"``, or when networkx is configured to prefer this backend; networkx keeps the conversion with
the graph. :data:`FUNCTIONS` lists the functions; ``graph.nx(…).to_networkx()`` is for all others.

Where a result could differ from networkx's by more than the last bits of floats, ``can_run`` says no, and networkx computes it itself if it may. It
does not convert a stored graph unasked: there the call fails with the reason. A weight is a property of all edges or of none, where each counts 1; that one
is null or negative is found out by the computation, which fails with :class:`hoplake.InvalidError`. ``hits`` computes up to 1,000 iterations, also where
networkx gives up after ``max_iter``. Of a stored graph, betweenness, eigenvector centrality,
cores, clustering, reciprocity and scores of pairs look for parallel edges first, and fail if there are some.

>>> import hoplake.nx
>>> "pagerank" in hoplake.nx.FUNCTIONS
True
"""

from __future__ import annotations

from typing import Any

# Each adds its functions to those of the backend.
from . import communities as _communities
from . import components as _components
from . import distances as _distances
from . import extents as _extents
from . import pairs as _pairs
from . import ranks as _ranks
from . import shapes as _shapes
from . import triangles as _triangles
from .conversion import convert_from_nx, convert_to_nx
from .dispatch import IMPLEMENTED, can_run, should_run
from .graph import Graph

__all__ = ["FUNCTIONS", "Graph", "backend", "can_run", "convert_from_nx", "convert_to_nx", "get_info", "should_run"]

_MODULES = (_communities, _components, _distances, _extents, _pairs, _ranks, _shapes, _triangles)

#: The names of networkx's functions that Hoplake computes.
FUNCTIONS: tuple[str, ...] = tuple(sorted(IMPLEMENTED))


class _Backend:
    """What networkx finds by the entry point ``networkx.backends``."""

    convert_from_nx = staticmethod(convert_from_nx)
    convert_to_nx = staticmethod(convert_to_nx)
    can_run = staticmethod(can_run)
    should_run = staticmethod(should_run)

    def __getattr__(self, name: str) -> Any:
        try:
            return IMPLEMENTED[name]
        except KeyError:
            raise AttributeError(name) from None

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *FUNCTIONS]


backend = _Backend()


def get_info() -> dict[str, Any]:
    """What networkx finds by the entry point ``networkx.backend_info``."""
    return {
        "backend_name": "hoplake",
        "project": "hoplake",
        "package": "hoplake",
        "short_summary": "Computes on graphs in object storage, without a conversion.",
        "functions": {name: {} for name in FUNCTIONS},
    }
