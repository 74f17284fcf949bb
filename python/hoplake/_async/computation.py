"""Computations over the whole graph."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable
from html import escape
from typing import TYPE_CHECKING, Any

from .. import _hoplake
from .._arguments import names, whole
from .._cost import Cost
from .._table import Table
from .._waiting import wait_async, wait_sync

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


class Computation:
    """A value for each vertex of a version, or figures for the whole graph.

    Iterating yields vertices and their values as dicts; pandas, polars, pyarrow and DuckDB read it as an Arrow stream.
    """

    def __init__(self, core: _hoplake.Computation) -> None:
        self._core = core

    @property
    def name(self) -> str:
        """The name of the values, such as ``"rank"``."""
        return self._core.name

    @property
    def iterations(self) -> int | None:
        """The number of supersteps or iterations; ``None`` if the algorithm has none."""
        return self._core.iterations

    @property
    def figures(self) -> dict[str, int | float]:
        """Numbers for the whole graph, by name."""
        return self._core.figures

    @property
    def groups(self) -> tuple[int, int] | None:
        """The number of components or communities, and the size of the largest; ``None`` for other algorithms."""
        return self._core.groups

    @property
    def cost(self) -> Cost:
        """What it cost."""
        return self._core.cost

    def __len__(self) -> int:
        """The number of vertices that took part."""
        return len(self._core)

    async def top(self, count: int = 20, *, select: str | Iterable[str] | None = None) -> Table:
        """The first vertices by value: those with the greatest values, or with the least for components, communities, levels and lengths."""
        return Table(await wait_async(self._core.table(whole("count", count), names(select))))

    async def table(self, *, select: str | Iterable[str] | None = None) -> Table:
        """All vertices with their values. The columns are ``label``, ``key``, the value, and the selected properties."""
        return Table(await wait_async(self._core.table(None, names(select))))

    async def __aiter__(self) -> AsyncIterator[dict[str, Any]]:
        for row in await self.table():
            yield row

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return wait_sync(self._core.table(None, [])).__arrow_c_stream__(requested_schema)

    async def to_arrow(self) -> pyarrow.Table:
        """All values as a table of pyarrow."""
        return (await self.table()).to_arrow()

    async def to_polars(self) -> polars.DataFrame:
        """All values as a data frame of polars."""
        return (await self.table()).to_polars()

    async def to_pandas(self) -> pandas.DataFrame:
        """All values as a data frame of pandas."""
        return (await self.table()).to_pandas()

    async def write(self, property: str) -> int:
        """Writes the values as a property, in one commit based on the version that was computed, and returns the new version."""
        version, _ = await wait_async(self._core.write(property))
        return int(version)

    def __repr__(self) -> str:
        figures = "".join(f", {name} {figure:,}" for name, figure in self.figures.items())
        return f"<hoplake.Computation: {self.name} of {len(self):,} vertices{figures}>"

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self)[1:-1])}<br>{escape(str(self.cost))}</p>"


def _names_of_options(help: str) -> str:
    """A text about options, with their names as keyword arguments."""
    return re.sub(r"--([a-z-]+)", lambda option: option[1].replace("-", "_"), help).replace("`from`", "`from_`")


def _keyword(option: str) -> str:
    """The name of an option as a keyword argument; ``from`` is a keyword of Python."""
    return "from_" if option == "from" else option.replace("-", "_")


#: Kinds of options whose name in the extension is not a description.
_KINDS = {"part": "fraction", "notnegative": "non-negative number"}


def algorithms() -> list[dict[str, Any]]:
    """The algorithms that :meth:`Graph.run` computes, each with its name, the name of its values, help, and options.

    An option has a kind, such as ``"vertex"``, ``"count"``, ``"fraction"`` or ``"non-negative number"``, a help text, a default, and ``requires``, the
    option without which it has no effect.
    """
    return [
        {
            "name": name,
            "value": value,
            "help": _names_of_options(help),
            "options": {
                _keyword(option): {
                    "kind": _KINDS.get(kind, kind),
                    "help": _names_of_options(text),
                    "default": default,
                    "requires": None if requires is None else _keyword(requires),
                }
                for option, kind, text, default, requires in options
            },
        }
        for name, value, help, options in _hoplake.algorithms()
    ]
