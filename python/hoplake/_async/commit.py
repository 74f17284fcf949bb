"""Changes."""

from __future__ import annotations

from os import PathLike
from types import TracebackType
from typing import Any

from .. import _hoplake, _rows
from .._arguments import as_text, file
from .._changes import Committed
from .._cost import Cost
from .._errors import Error, InvalidError
from .._table import Rows
from .._waiting import wait_async

#: A vertex of a change: its label and key.
VertexKey = tuple[str, "int | str"]


class Commit:
    """A batch of changes. They are applied by :meth:`commit`, or at the end of a ``with`` block that raises no exception.

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
        #: The result, once the batch was committed.
        self.committed: Committed | None = None
        self._is_under_way = False

    def __len__(self) -> int:
        """The number of changes."""
        return len(self._core)

    def upsert_vertex(self, label: str, key: int | str, /, **properties: Any) -> None:
        """Adds or updates a vertex. Properties that are not given keep their values; ``None`` removes a property.

        Here, in tables and in files, a ``datetime`` without a time zone is one of UTC, what is finer than a microsecond is rounded down, and
        a ``Decimal`` is an integer if it has no digits after the point, and otherwise the nearest float.
        """
        self._core.upsert_vertex(as_text("label", label), key, properties, False)

    def replace_vertex(self, label: str, key: int | str, /, **properties: Any) -> None:
        """Adds or replaces a vertex, which then has these properties and no others."""
        self._core.upsert_vertex(as_text("label", label), key, properties, True)

    def delete_vertex(self, label: str, key: int | str, /) -> None:
        """Deletes a vertex and all its edges."""
        self._core.delete_vertex(as_text("label", label), key)

    def upsert_edge(
        self, label: str, source: VertexKey, target: VertexKey, /, *, _key: tuple[str, Any] | None = None, **properties: Any
    ) -> None:
        """Adds or updates one edge of a label between two vertices. Properties that are not given keep their values.

        ``_key`` is a pair of a property and its value, which tells parallel edges of the label apart.
        """
        self._core.upsert_edge(as_text("label", label), source, target, properties, _key, False)

    def delete_edge(
        self, label: str, source: VertexKey, target: VertexKey, /, *, _key: tuple[str, Any] | None = None
    ) -> None:
        """Deletes all edges of a label between two vertices, or the one whose property has the value of ``_key``."""
        self._core.delete_edge(as_text("label", label), source, target, _key)

    async def upsert_vertices(self, label: str, rows: Rows) -> None:
        """Adds or updates vertices, one for each row.

        The column ``key`` (or ``id``) has their keys, and every other column is a property. A null leaves the value as it is.
        """
        what = f"the table of vertices {_rows.quoted(as_text('label', label))}"
        _rows.check(rows, what)
        try:
            await wait_async(self._core.upsert_vertices(label, _rows.with_usual_names(rows, _rows.KEYS)))
        except InvalidError as error:
            raise _rows.explained(error, "lack the column", rows)

    async def upsert_edges(self, label: str, source_label: str, target_label: str, rows: Rows) -> None:
        """Adds or updates edges between vertices of two labels, one for each row.

        The columns ``source`` and ``target`` (or ``from`` and ``to``, ``src`` and ``dst``) have the keys of their ends, and every other column is a
        property. A null leaves the value as it is.
        """
        what = f"the table of edges {_rows.quoted(as_text('label', label))}"
        _rows.check(rows, what)
        try:
            named = _rows.with_usual_names(rows, _rows.ENDS)
            ends = as_text("source_label", source_label), as_text("target_label", target_label)
            await wait_async(self._core.upsert_edges(label, *ends, named))
        except InvalidError as error:
            raise _rows.explained(error, "lack the column", rows)

    async def add(self, changes: Rows | PathLike[str] | str | None = None, *, json_lines: str | None = None) -> None:
        """Adds changes from a table, from a file (JSON Lines, CSV or Parquet), or from text with one JSON object per line."""
        if (changes is None) == (json_lines is None):
            raise InvalidError("give changes as a table or file, or as json_lines")
        # Reading them takes the schema of the graph, which may not be open in this process.
        await wait_async(self._graph.ready())
        if json_lines is not None:
            task = self._core.add(json_lines, False)
        elif isinstance(changes, (str, PathLike)):
            task = self._core.add(file(changes, "changes"), True)
        else:
            task = self._core.add(changes, False)
        await wait_async(task)

    async def commit(self) -> Committed:
        """Applies the changes, all or none.

        Without any change, and without ``positions`` and ``if_positions``, nothing is published: the result has no changes, and its version is the
        one that they would have been based on.
        """
        if self.committed is not None:
            raise InvalidError(f"this batch was already committed, as version {self.committed.version}; begin another one")
        if self._is_under_way:
            raise InvalidError("this batch is being committed; wait for that, or begin another one")
        settings = self._settings
        if len(self) == 0 and not settings["positions"] and not settings["if_positions"]:
            base = settings["base"]
            version = base if base is not None else await wait_async(self._graph.newest())
            self.committed = Committed(version, 0, 0, 0, 0, 0, repeated=False, cost=Cost())
            return self.committed
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
            note = "it is unknown whether the changes were published: graph.log() shows it, and an idempotency key makes it safe to commit them again"
            if hasattr(error, "add_note"):
                error.add_note(note)
            raise
        finally:
            self._is_under_way = False
        return self.committed

    async def check(self) -> dict[str, int]:
        """Counts what the changes would do, without applying them."""
        settings = self._settings
        task = self._core.check(settings["base"], settings["strict"], settings["create_missing"])
        return await wait_async(task)

    async def __aenter__(self) -> Commit:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None and self.committed is None:
            await self.commit()

    def __repr__(self) -> str:
        changes = "change" if len(self) == 1 else "changes"
        state = "" if self.committed is None else f", committed as version {self.committed.version}"
        return f"<hoplake.Commit of {len(self):,} {changes} to {self._graph.url}{state}>"
