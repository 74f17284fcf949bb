# Generated from hoplake/_async by generate_sync.py: change it there.
"""Results that are lists, and results that are read while they are consumed."""

from __future__ import annotations

import json
from collections import abc
from collections.abc import Iterator, Callable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, cast, overload

from .. import _hoplake
from .._cost import Cost
from .._table import Table
from .._waiting import wait_sync
from .._walks import Walk, networkx_of
from ..gremlin import Edge, Vertex

if TYPE_CHECKING:
    import networkx
    import pandas
    import polars
    import pyarrow


_HTML_ITEMS = 20


def _list_html(items: Sequence[Any], cost: Cost) -> str:
    rows = "".join(f"<li>{escape(str(item))}</li>" for item in items[:_HTML_ITEMS])
    return f"<ol>{rows}</ol><p>{len(items):,} results. {escape(str(cost))}</p>"


def _row_of(result: Any) -> dict[str, Any]:
    """A result as a row of a table."""
    if isinstance(result, (Vertex, Edge)):
        row: dict[str, Any] = {"id": result.id, "label": result.label}
        if isinstance(result, Edge):
            row.update(source=result.source.id, target=result.target.id)
        properties = result.properties or {}
        return {**row, **{f".{name}" if name in row else name: value for name, value in properties.items()}}
    if isinstance(result, dict):
        if all(isinstance(name, str) for name in cast("dict[object, Any]", result)):
            return cast("dict[str, Any]", result)
    return {"value": result}


class Results(Sequence[Any]):
    """Results of a query of Gremlin: values of Python and of :mod:`hoplake.gremlin`.

    Attributes:
        version: the version that the query's changes are, if it changed something.
        cost: what it cost.
    """

    def __init__(self, results: list[Any], version: int | None, cost: Cost) -> None:
        self._results = results
        self.version = version
        self.cost = cost

    def __len__(self) -> int:
        return len(self._results)

    @overload
    def __getitem__(self, at: int) -> Any: ...
    @overload
    def __getitem__(self, at: slice) -> list[Any]: ...
    def __getitem__(self, at: int | slice) -> Any:
        return self._results[at]

    def __iter__(self) -> abc.Iterator[Any]:
        return iter(self._results)

    def __eq__(self, other: object) -> bool:
        return self._results == (other._results if isinstance(other, Results) else other)

    __hash__ = None  # type: ignore[assignment]

    def to_pylist(self) -> list[Any]:
        """As a list."""
        return list(self._results)

    def _columns(self) -> dict[str, list[Any]]:
        rows = [_row_of(result) for result in self._results]
        names = dict.fromkeys(name for row in rows for name in row)
        return {name: [row.get(name) for row in rows] for name in names}

    def to_arrow(self) -> pyarrow.Table:
        """As a table of pyarrow.

        Maps become rows with a column for each key, and vertices and edges rows with their id, label and properties, of which one that is called
        like these has a dot before its name; other results are in the column ``value``.
        """
        import pyarrow

        return pyarrow.table(self._columns())

    def to_polars(self) -> polars.DataFrame:
        """As a data frame of polars, with the columns of :meth:`to_arrow`."""
        import polars

        return polars.DataFrame(self._columns())

    def to_pandas(self) -> pandas.DataFrame:
        """As a data frame of pandas, with the columns of :meth:`to_arrow`."""
        import pandas

        return pandas.DataFrame(self._columns())

    def __repr__(self) -> str:
        return repr(self._results)

    def _repr_html_(self) -> str:
        return _list_html(self._results, self.cost)


class Walks(Sequence[Walk]):
    """Walks of a traversal.

    Attributes:
        cost: what they cost.
        has_more: whether the traversal has more walks than these.
    """

    def __init__(self, walks: list[Walk], cost: Cost, has_more: bool = False) -> None:
        self._walks = walks
        self.cost = cost
        self.has_more = has_more

    def __len__(self) -> int:
        return len(self._walks)

    @overload
    def __getitem__(self, at: int) -> Walk: ...
    @overload
    def __getitem__(self, at: slice) -> list[Walk]: ...
    def __getitem__(self, at: int | slice) -> Any:
        return self._walks[at]

    def to_networkx(self) -> networkx.MultiDiGraph[tuple[str, int | str]]:
        """Their vertices as nodes ``(label, key)`` of a networkx graph, and their edges in their own direction, each once."""
        return networkx_of(self._walks)

    def __repr__(self) -> str:
        return repr([str(walk) for walk in self._walks])

    def _repr_html_(self) -> str:
        return _list_html(self._walks, self.cost)


class Scan:
    """Rows of a scan, read while you iterate over them. Iterating a second time scans a second time.

    It iterates over its rows as dicts, and :meth:`batches` over tables. pandas, polars, pyarrow and DuckDB read it as a stream of Arrow.
    """

    def __init__(self, begin: Callable[[], _hoplake.Task[_hoplake.Scan]]) -> None:
        self._begin = begin
        self._begun: _hoplake.Scan | None = None

    def _start(self) -> _hoplake.Scan:
        self._begun = wait_sync(self._begin())
        return self._begun

    @property
    def cost(self) -> Cost:
        """What was spent the last time that rows were taken, so far."""
        return Cost() if self._begun is None else self._begun.cost

    @property
    def columns(self) -> list[str]:
        """The names of its columns."""
        begun = self._begun if self._begun is not None else wait_sync(self._begin())
        return begun.columns

    def batches(self) -> Iterator[Table]:
        """Parts of the result, one after the other."""
        scan = self._start()
        while True:
            table = wait_sync(scan.next())
            if table is None:
                return
            yield Table(table)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for table in self.batches():
            for row in table:
                yield row

    def table(self) -> Table:
        """All rows as a table."""
        return Table(wait_sync((self._start()).rest()))

    def to_pylist(self) -> list[dict[str, Any]]:
        """All rows as dicts."""
        return (self.table()).to_pylist()

    def to_arrow(self) -> pyarrow.Table:
        """All rows as a table of pyarrow."""
        return (self.table()).to_arrow()

    def to_polars(self) -> polars.DataFrame:
        """All rows as a data frame of polars."""
        return (self.table()).to_polars()

    def to_pandas(self) -> pandas.DataFrame:
        """All rows as a data frame of pandas."""
        return (self.table()).to_pandas()

    def to_networkx(self) -> networkx.MultiDiGraph[tuple[str, int | str]]:
        """All rows as a graph of networkx, as :meth:`Table.to_networkx` makes it."""
        return (self.table()).to_networkx()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        self._begun = wait_sync(self._begin())
        return self._begun.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        begun = self._begun if self._begun is not None else wait_sync(self._begin())
        return begun.__arrow_c_schema__()

    def __repr__(self) -> str:
        return f"<hoplake.Scan of {', '.join(self.columns)}>"


class Plan(str):
    """How a query of Gremlin would run, as text."""

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self)}</pre>"


class Profile(dict[str, Any]):
    """What each step of a query of Gremlin took: the duration of all, and metrics of each step."""

    def _repr_html_(self) -> str:
        return f"<pre>{escape(json.dumps(self, indent=2, default=str))}</pre>"
