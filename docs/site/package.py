"""The package, imported without its compiled extension: signatures, docstrings and tables are in its Python sources."""

from __future__ import annotations

from sphinx.ext.autodoc.mock import mock

EXTENSION = "hoplake._hoplake"

#: What is not installed with Sphinx: the extension, and what hoplake.pyg imports.
MISSING = [EXTENSION, "numpy", "pyarrow", "ray", "torch", "torch_geometric"]

with mock(MISSING):
    import hoplake
    from hoplake import _errors, aio, nx, pyg
    from hoplake.nx.dispatch import IMPLEMENTED

__all__ = ["IMPLEMENTED", "MISSING", "_errors", "aio", "hoplake", "nx", "pyg"]
