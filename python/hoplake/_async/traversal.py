"""Traversals, hop by hop."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from .. import _hoplake
from .._arguments import as_text, names, shown, whole, whole_or_none
from .._errors import InvalidError
from .._quote import quote
from .._table import Table
from .._waiting import wait_async
from .results import Walks

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


class Traversal:
    """A traversal, built hop by hop. Its methods do not modify it: each step returns a new traversal.

    >>> import hoplake
    >>> routes = {"source": ["a", "b", "b"], "target": ["b", "c", "d"], "dist": [800, 300, 900]}
    >>> _ = hoplake.load("memory://docs/traversal", edges={("airport", "route", "airport"): routes})
    >>> graph = hoplake.open("memory://docs/traversal")
    >>> two_hops = graph.traverse("airport:a").out("route").out("route")
    >>> two_hops.count(), two_hops.where("dist > 500").count()
    (2, 1)
    >>> print(two_hops.where("dist > 500").walks()[0])
    airport:a -route-> airport:b -route-> airport:d
    """

    def __init__(self, core: _hoplake.Graph, starts: Sequence[Any], hops: Sequence[str] = (), once: bool = False) -> None:
        self._core = core
        self._starts = list(starts)
        self._hops = list(hops)
        self._once = once

    def _with(self, hop: str) -> Traversal:
        return Traversal(self._core, self._starts, [*self._hops, hop], self._once)

    def out(self, *labels: str, where: str | None = None) -> Traversal:
        """Follows edges of these labels, or of all labels, from source to target.

        ``where`` is a condition on properties of the edge or of the vertex that it reaches, such as ``"dist > 500"``.
        """
        return self._with(_hop("out", labels, where))

    def in_(self, *labels: str, where: str | None = None) -> Traversal:
        """Follows edges from target to source; the underscore is there because ``in`` is a Python keyword."""
        return self._with(_hop("in", labels, where))

    def both(self, *labels: str, where: str | None = None) -> Traversal:
        """Follows edges in both directions."""
        return self._with(_hop("both", labels, where))

    def hop(self, text: str) -> Traversal:
        """Follows a hop given as text, such as ``"out:knows,likes[since > 2020]"``."""
        return self._with(text)

    def where(self, condition: str) -> Traversal:
        """Restricts the last hop to edges that match a condition, on properties of the edge or of the vertex that it reaches."""
        if not self._hops:
            raise InvalidError("where() applies to a hop; call out(), in_() or both() first, or put the condition in the start vertex")
        *before, last = self._hops
        # Several conditions in a row must all hold.
        joined = f"{last.rstrip()}[{as_text('condition', condition)}]"
        return Traversal(self._core, self._starts, [*before, joined], self._once)

    def once(self) -> Traversal:
        """Counts each vertex only at the first depth that reaches it; otherwise it appears once at every depth that reaches it."""
        return Traversal(self._core, self._starts, self._hops, True)

    async def rows(self, *select: str | Iterable[str], limit: int | None = None) -> Table:
        """The vertices that the last hop reaches.

        Args:
            select: properties to read, as names or as one list: ``rows("code", "city")`` or ``rows(["code", "city"])``. All by default, and none with
                ``[]``, as in :meth:`Graph.scan`.
            limit: the most vertices to return.
        """
        selected = [name for given in select for name in names(given)] if select else None
        task = self._core.traverse(self._starts, self._hops, selected, whole_or_none("limit", limit), self._once)
        return Table(await wait_async(task))

    async def to_arrow(self) -> pyarrow.Table:
        """The vertices that the last hop reaches, with all their properties, as a table of pyarrow."""
        return (await self.rows()).to_arrow()

    async def to_polars(self) -> polars.DataFrame:
        """The vertices that the last hop reaches, with all their properties, as a data frame of polars."""
        return (await self.rows()).to_polars()

    async def to_pandas(self) -> pandas.DataFrame:
        """The vertices that the last hop reaches, with all their properties, as a data frame of pandas."""
        return (await self.rows()).to_pandas()

    async def keys(self, *, limit: int | None = None) -> Table:
        """The labels and keys of the vertices that the last hop reaches."""
        return Table(await wait_async(self._core.traverse(self._starts, self._hops, [], whole_or_none("limit", limit), self._once)))

    async def count(self) -> int:
        """The number of vertices that the last hop reaches."""
        return await wait_async(self._core.count_reached(self._starts, self._hops, self._once))

    async def walks(self, limit: int = 1_000, *, select: str | Iterable[str] | None = None) -> Walks:
        """The first walks, each with its vertices and edges; ``walks.has_more`` tells whether there are more.

        Args:
            limit: the most walks to return.
            select: properties of vertices and edges to read; none by default.
        """
        most = whole("limit", limit) + 1
        walks, cost = await wait_async(self._core.walks(self._starts, self._hops, names(select), most, self._once))
        return Walks(walks[:limit], cost, len(walks) > limit)

    async def count_walks(self) -> int | None:
        """The number of walks; ``None`` if there are more than 2¹²⁸."""
        return await wait_async(self._core.count_walks(self._starts, self._hops, self._once))

    def __repr__(self) -> str:
        return f"<hoplake.Traversal from {', '.join(map(str, self._starts))}: {' '.join(self._hops)}>"


def _hop(direction: str, labels: Sequence[str], where: str | None) -> str:
    for label in labels:
        given: Any = label
        if not isinstance(given, str):
            many = 'several are several arguments, as in out("knows", "likes")'
            raise InvalidError(f"the label of an edge is a str, not {shown(given)}; {many}")
    # Within quotes a label may contain any characters.
    quoted = ",".join(quote(as_text("an edge label", label)) for label in labels)
    hop = f"{direction}:{quoted}" if labels else direction
    return hop if where is None else f"{hop}[{as_text('where', where)}]"
