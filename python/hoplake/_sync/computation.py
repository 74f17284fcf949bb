# Generated from hoplake/_async by generate_sync.py: change it there.
"""Computations over the whole graph."""

from __future__ import annotations

import re
from collections.abc import Iterator, Iterable
from html import escape
from typing import TYPE_CHECKING, Any

from .. import _hoplake
from .._cost import Cost
from .._table import Table
from .._waiting import wait_sync

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


class Computation:
    """A value for each vertex of a version, or figures for the whole graph.

    It iterates over vertices and their values as dicts, and pandas, polars, pyarrow and DuckDB read it as a stream of Arrow.
    """

    def __init__(self, core: _hoplake.Computation) -> None:
        self._core = core

    @property
    def name(self) -> str:
        """What its values are called, such as ``"rank"``."""
        return self._core.name

    @property
    def iterations(self) -> int | None:
        """How many supersteps or iterations it took, if it took any."""
        return self._core.iterations

    @property
    def figures(self) -> dict[str, int | float]:
        """Numbers for the whole graph, by name."""
        return self._core.figures

    @property
    def groups(self) -> tuple[int, int] | None:
        """How many components or communities there are, and how many vertices the largest has."""
        return self._core.groups

    @property
    def cost(self) -> Cost:
        """What it cost."""
        return self._core.cost

    def __len__(self) -> int:
        """How many vertices were computed."""
        return len(self._core)

    def top(self, count: int = 20, *, select: str | Iterable[str] | None = None) -> Table:
        """The vertices that come first: those with the greatest values, or the least of components, communities, levels and lengths."""
        return Table(wait_sync(self._core.table(count, _names(select))))

    def table(self, *, select: str | Iterable[str] | None = None) -> Table:
        """All vertices with their values: the columns ``label``, ``key``, the value, and these properties."""
        return Table(wait_sync(self._core.table(None, _names(select))))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for row in self.table():
            yield row

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return wait_sync(self._core.table(None, [])).__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> pyarrow.Table:
        """All values as a table of pyarrow."""
        return (self.table()).to_arrow()

    def to_polars(self) -> polars.DataFrame:
        """All values as a data frame of polars."""
        return (self.table()).to_polars()

    def to_pandas(self) -> pandas.DataFrame:
        """All values as a data frame of pandas."""
        return (self.table()).to_pandas()

    def write(self, property: str) -> int:
        """Writes the values as a property, in one commit on the version that they are of, and returns the new version."""
        version, _ = wait_sync(self._core.write(property))
        return int(version)

    def __repr__(self) -> str:
        figures = "".join(f", {name} {figure:,}" for name, figure in self.figures.items())
        return f"<hoplake.Computation: {self.name} of {len(self):,} vertices{figures}>"

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self)[1:-1])}<br>{escape(str(self.cost))}</p>"


def _names(names: str | Iterable[str] | None) -> list[str]:
    if names is None:
        return []
    return [names] if isinstance(names, str) else list(names)


def _names_of_options(help: str) -> str:
    """A text about options with their names as keyword arguments have them."""
    return re.sub(r"--([a-z-]+)", lambda option: option[1].replace("-", "_"), help).replace("`from`", "`from_`")


def algorithms() -> list[dict[str, Any]]:
    """The algorithms that :meth:`Graph.run` computes: name, value, help, and options with kind, help and default."""
    return [
        {
            "name": name,
            "value": value,
            "help": _names_of_options(help),
            "options": {
                option.replace("-", "_"): {"kind": kind, "help": _names_of_options(text), "default": default, "requires": requires}
                for option, kind, text, default, requires in options
            },
        }
        for name, value, help, options in _hoplake.algorithms()
    ]
