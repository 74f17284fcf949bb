"""Changes."""

from __future__ import annotations

from os import PathLike, fspath
from types import TracebackType
from typing import Any

from .. import _hoplake
from .._changes import Committed
from .._errors import Error, InvalidError, make
from .._table import Rows
from .._waiting import wait_async, wait_sync

#: A vertex of a change: its label and key.
VertexKey = tuple[str, "int | str"]


class Commit:
    """A batch of changes. Nothing happens before :meth:`commit`, or the end of a ``with`` block without an exception.

    >>> import hoplake
    >>> _ = hoplake.create("memory://docs/commit")
    >>> graph = hoplake.open("memory://docs/commit")
    >>> with graph.begin("Ann and Bo") as commit:
    ...     commit.upsert_vertex("Person", 1, name="Ann")
    ...     commit.upsert_vertex("Person", 2, name="Bo")
    ...     commit.upsert_edge("knows", ("Person", 1), ("Person", 2), since=2026)
    >>> commit.committed.vertices_added
    2
    """

    def __init__(self, graph: _hoplake.Graph, **settings: Any) -> None:
        self._graph = graph
        self._core = graph.begin()
        self._settings = settings
        #: What it did, once it was committed.
        self.committed: Committed | None = None
        self._is_under_way = False

    def __len__(self) -> int:
        """How many changes it has."""
        return len(self._core)

    def upsert_vertex(self, label: str, key: int | str, /, **properties: Any) -> None:
        """Adds or changes a vertex: it gets these properties, and keeps others. ``None`` takes a property away."""
        self._core.upsert_vertex(label, key, properties, False)

    def replace_vertex(self, label: str, key: int | str, /, **properties: Any) -> None:
        """Adds or replaces a vertex: it has these properties and no others."""
        self._core.upsert_vertex(label, key, properties, True)

    def delete_vertex(self, label: str, key: int | str, /) -> None:
        """Deletes a vertex and all its edges."""
        self._core.delete_vertex(label, key)

    def upsert_edge(
        self, label: str, source: VertexKey, target: VertexKey, /, *, _key: tuple[str, Any] | None = None, **properties: Any
    ) -> None:
        """Has one edge of a label be between two vertices, with these properties; others it keeps.

        ``_key`` is a property and its value that tell this edge from others of the label between the two.
        """
        self._core.upsert_edge(label, source, target, properties, _key, False)

    def delete_edge(
        self, label: str, source: VertexKey, target: VertexKey, /, *, _key: tuple[str, Any] | None = None
    ) -> None:
        """Deletes all edges of a label between two vertices, or the one with this property and value."""
        self._core.delete_edge(label, source, target, _key)

    def upsert_vertices(self, label: str, rows: Rows) -> None:
        """Upserts of vertices, a row each: the column ``key`` has their keys, and every other one is a property. A null keeps the value."""
        self._core.upsert_vertices(label, rows)

    def upsert_edges(self, label: str, source_label: str, target_label: str, rows: Rows) -> None:
        """Upserts of edges between vertices of two labels, a row each: the columns ``source`` and ``target`` have the keys of their ends."""
        self._core.upsert_edges(label, source_label, target_label, rows)

    def add(self, changes: Rows | PathLike[str] | str | None = None, *, json_lines: str | None = None) -> None:
        """Adds changes: a table with the columns of changes, a file of them, or a text with a JSON object a line."""
        if (changes is None) == (json_lines is None):
            raise make("invalid", "give changes as a table or file, or as json_lines")
        # Their types are those of the graph, which may not be open in this process.
        wait_sync(self._graph.ready())
        if json_lines is not None:
            self._core.add(json_lines, False)
        elif isinstance(changes, (str, PathLike)):
            self._core.add(fspath(changes), True)
        else:
            self._core.add(changes, False)

    async def commit(self) -> Committed:
        """Applies the changes, all or none."""
        if self.committed is not None:
            raise InvalidError(f"this batch was committed as version {self.committed.version}; begin another one")
        if self._is_under_way:
            raise InvalidError("this batch is being committed; wait for that, or begin another one")
        settings = self._settings
        task = self._core.commit(
            settings["message"],
            settings["base"],
            settings["strict"],
            settings["create_missing"],
            settings["idempotency_key"],
            settings["positions"],
            settings["if_positions"],
            settings["seconds"],
        )
        self._is_under_way = True
        try:
            self.committed = await wait_async(task)
        except Error:
            raise
        except BaseException as error:
            # Ctrl-C, or a task of asyncio that was cancelled.
            note = "it is not known whether the changes were published: graph.log() shows it, and an idempotency key makes it safe to send them again"
            if hasattr(error, "add_note"):
                error.add_note(note)
            raise
        finally:
            self._is_under_way = False
        return self.committed

    async def check(self) -> dict[str, int]:
        """What the changes would do, in numbers. Writes nothing."""
        settings = self._settings
        task = self._core.check(settings["base"], settings["strict"], settings["create_missing"])
        return await wait_async(task)

    async def __aenter__(self) -> Commit:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None and self.committed is None and len(self) > 0:
            await self.commit()
