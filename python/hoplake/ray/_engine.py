"""Ray, Arrow and NumPy: as ``Any``, since type checkers do not need to have them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from .._errors import make


def _imported(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        hint = 'pip install "ray[data]" pyarrow numpy typing_extensions'
        raise make("invalid", f"hoplake.ray needs {error.name}, which is not installed", hint=hint) from None


np = _imported("numpy")
pa = _imported("pyarrow")
compute = _imported("pyarrow.compute")
ray = _imported("ray")
RayError = ray.exceptions.RayError
GetTimeoutError = ray.exceptions.GetTimeoutError
RaySystemError = ray.exceptions.RaySystemError
RayTaskError = ray.exceptions.RayTaskError


def datasets() -> Any:
    """Ray's library of Datasets, which takes seconds to import."""
    return _imported("ray.data")
