"""The package, imported without its compiled extension: signatures, docstrings and tables are in its Python sources."""

from __future__ import annotations

from sphinx.ext.autodoc.mock import mock

EXTENSION = "hoplake._hoplake"

with mock([EXTENSION]):
    import hoplake
    from hoplake import _errors, aio, nx
    from hoplake.nx.dispatch import IMPLEMENTED

__all__ = ["EXTENSION", "IMPLEMENTED", "_errors", "aio", "hoplake", "nx"]
