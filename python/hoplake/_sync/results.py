# Generated from hoplake/_async by generate_sync.py: change it there.
"""Results that are lists, and results that are read while the caller consumes them."""

from __future__ import annotations

import json
from collections import abc
from collections.abc import Iterator, Callable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, NoReturn, cast, overload

from .. import _hoplake
from .._cost import Cost
from .._errors import InvalidError
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
    """Results of a Gremlin query: values of Python and of :mod:`hoplake.gremlin`.

    Attributes:
        version: the version that contains the query's changes; ``None`` if it changed nothing.
        cost: what the query cost.
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

    def _typed(self, column: Callable[[str, list[Any]], Any]) -> dict[str, Any]:
        """The columns of a library that has a type for each."""
        columns: dict[str, Any] = {}
        for name, values in self._columns().items():
            try:
                columns[name] = column(name, values)
            except Exception as error:
                first = str(error).splitlines()[0] if str(error) else type(error).__name__
                message = f"the values of {name!r} have no type in common, or one that no table has ({first}); use to_pylist()"
                raise InvalidError(message) from error
        return columns

    def to_arrow(self) -> pyarrow.Table:
        """As a table of pyarrow.

        Maps become rows with a column for each key. Vertices and edges become rows with their id, label and properties; a property with the name of
        another column has a dot before its name. Other results are in the column ``value``.

        Raises:
            InvalidError: a column has values of several types; :meth:`to_pylist` returns them.
        """
        import pyarrow

        return pyarrow.table(self._typed(lambda _, values: pyarrow.array(values)))

    def to_polars(self) -> polars.DataFrame:
        """As a data frame of polars, with the columns and exceptions of :meth:`to_arrow`."""
        import polars

        return polars.DataFrame(self._typed(polars.Series))

    def to_pandas(self) -> pandas.DataFrame:
        """As a data frame of pandas, with the columns of :meth:`to_arrow`; one with values of several types is of type ``object``."""
        import pandas

        return pandas.DataFrame(self._columns())

    def __repr__(self) -> str:
        return repr(self._results)

    def _repr_html_(self) -> str:
        return _list_html(self._results, self.cost)


class Walks(Sequence[Walk]):
    """Walks of a traversal.

    Attributes:
        cost: what the call cost.
        has_more: whether the traversal has walks beyond these.
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
        """As a networkx graph: nodes are pairs ``(label, key)``, and each edge appears once, from its source to its target."""
        return networkx_of(self._walks)

    def __repr__(self) -> str:
        return repr([str(walk) for walk in self._walks])

    def _repr_html_(self) -> str:
        return _list_html(self._walks, self.cost)


class Scan:
    """Rows of a scan, read while you iterate over them. Iterating a second time scans a second time.

    Iterating yields rows as dicts; :meth:`batches` yields tables. pandas, polars, pyarrow and DuckDB read it as an Arrow stream.
    """

    def __init__(self, begin: Callable[[], _hoplake.Task[_hoplake.Scan]], arguments: abc.Mapping[str, Any]) -> None:
        self._begin = begin
        self._arguments = dict(arguments)
        self._begun: _hoplake.Scan | None = None

    def __reduce__(self) -> NoReturn:
        raise TypeError("a scan cannot be pickled; pickle its graph, and begin the scan where it is read")

    def _start(self) -> _hoplake.Scan:
        self._begun = wait_sync(self._begin())
        return self._begun

    @property
    def cost(self) -> Cost:
        """What the most recent iteration has cost so far."""
        return Cost() if self._begun is None else self._begun.cost

    @property
    def columns(self) -> list[str]:
        """The names of the columns. This starts a scan, if none was started yet."""
        begun = self._begun if self._begun is not None else wait_sync(self._begin())
        return begun.columns

    def batches(self) -> Iterator[Table]:
        """Yields the rows in batches, each a table."""
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
        """All rows as a list of dicts."""
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
        # Not the columns: finding them starts the scan.
        given = ", ".join(f"{name}={value!r}" for name, value in self._arguments.items() if value is not None)
        return f"<hoplake.Scan({given})>"


class Plan(str):
    """The plan of a Gremlin query, as text."""

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self)}</pre>"


class Profile(dict[str, Any]):
    """The profile of a Gremlin query: its total duration, and metrics of each step."""

    def _repr_html_(self) -> str:
        return f"<pre>{escape(json.dumps(self, indent=2, default=str))}</pre>"
