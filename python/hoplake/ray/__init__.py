"""Computations on many machines, with Ray as the engine.

``hoplake.ray.run(url, "pagerank", workers=8, write="rank")`` computes what :meth:`hoplake.Graph.run` computes, on eight actors that each have a part of the
vertices; :func:`pregel` runs a program of your own, :func:`load` makes a graph of Ray Datasets, and :func:`vertices` and :func:`edges` are Ray Datasets. Ray and pyarrow are imported by this module, and by no other:
``pip install "ray[data]" pyarrow numpy typing_extensions``. `Computations on many machines <https://github.com/hoplake/hoplake/blob/main/docs/many-machines.md>`_ says what is guaranteed and what it costs.
"""

from __future__ import annotations

from ._datasets import edges, vertices
from ._load import Loaded, load
from ._run import Result, pregel, run

__all__ = ["Loaded", "Result", "edges", "load", "pregel", "run", "vertices"]
