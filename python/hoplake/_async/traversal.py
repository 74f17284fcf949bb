"""Traversals, hop by hop."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .. import _hoplake
from .._errors import make
from .._quote import quote
from .._table import Table
from .._waiting import wait_async
from .results import Walks


class Traversal:
    """A traversal under construction. It is not changed by its steps: each returns another one.

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
        """Follows edges of these labels, or of all, from source to target. ``where`` is on the edge or the vertex reached."""
        return self._with(_hop("out", labels, where))

    def against(self, *labels: str, where: str | None = None) -> Traversal:
        """Follows edges from target to source."""
        return self._with(_hop("in", labels, where))

    def both(self, *labels: str, where: str | None = None) -> Traversal:
        """Follows edges both ways."""
        return self._with(_hop("both", labels, where))

    def hop(self, text: str) -> Traversal:
        """Follows a hop that is written as text: ``"out:knows,likes[since > 2020]"``."""
        return self._with(text)

    def where(self, condition: str) -> Traversal:
        """Follows only edges that match a condition, on the edge or the vertex reached, in the last hop so far."""
        if not self._hops:
            raise make("invalid", "a condition is on a hop: write one before it, or the condition into the start")
        *before, last = self._hops
        # Several conditions in a row are all to hold.
        joined = f"{last.rstrip()}[{condition}]"
        return Traversal(self._core, self._starts, [*before, joined], self._once)

    def once(self) -> Traversal:
        """Has each vertex appear only at the first depth that reaches it; otherwise once at each depth."""
        return Traversal(self._core, self._starts, self._hops, True)

    async def rows(self, *select: str, limit: int | None = None) -> Table:
        """The vertices that the last hop reaches, with these properties, or all that they have."""
        names = list(select) or None
        task = self._core.traverse(self._starts, self._hops, names, limit, self._once)
        return Table(await wait_async(task))

    async def keys(self, *, limit: int | None = None) -> Table:
        """The vertices that the last hop reaches, by label and key alone."""
        return Table(await wait_async(self._core.traverse(self._starts, self._hops, [], limit, self._once)))

    async def count(self) -> int:
        """How many vertices the last hop reaches."""
        return await wait_async(self._core.count_reached(self._starts, self._hops, self._once))

    async def walks(self, limit: int = 1_000, *, select: str | Iterable[str] | None = None) -> Walks:
        """The first walks, vertex by vertex and edge by edge; ``walks.has_more`` says whether there are others."""
        names = [] if select is None else [select] if isinstance(select, str) else list(select)
        walks, cost = await wait_async(self._core.walks(self._starts, self._hops, names, limit + 1, self._once))
        return Walks(walks[:limit], cost, len(walks) > limit)

    async def count_walks(self) -> int | None:
        """How many walks there are; ``None`` if there are more than 2¹²⁸."""
        return await wait_async(self._core.count_walks(self._starts, self._hops, self._once))

    def __repr__(self) -> str:
        return f"<hoplake.Traversal from {', '.join(map(str, self._starts))}: {' '.join(self._hops)}>"


def _hop(direction: str, labels: Sequence[str], where: str | None) -> str:
    # In quotes a label may have any characters.
    quoted = ",".join(quote(label) for label in labels)
    hop = f"{direction}:{quoted}" if labels else direction
    return hop if where is None else f"{hop}[{where}]"
