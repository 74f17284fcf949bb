"""Results as tables."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING, Any, Protocol

from . import _hoplake
from ._cost import Cost

if TYPE_CHECKING:
    import networkx
    import pandas
    import polars
    import pyarrow

_HTML_ROWS = 20
_ROWS = 1_000


class ArrowStream(Protocol):
    """Whatever can hand out its rows through Arrow, such as a data frame of pandas or polars, or a table of pyarrow or DuckDB."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


class Table:
    """Rows of a result: a table of Arrow that pandas, polars, pyarrow and DuckDB read without copying.

    It iterates over its rows as dicts, and has a length. Its columns are ``label`` and ``key``, then what was asked for; a property that is called
    like one of the columns has a dot before its name.

    >>> import hoplake, pyarrow
    >>> people = pyarrow.table({"key": [1, 2], "name": ["Ann", "Bo"]})
    >>> _ = hoplake.load("memory://docs/table", vertices={"Person": people})
    >>> table = hoplake.open("memory://docs/table").get(["Person:1", "Person:2"])
    >>> table.columns
    ['label', 'key', 'name']
    >>> [row["name"] for row in table]
    ['Ann', 'Bo']
    >>> table.to_arrow().num_rows
    2
    """

    def __init__(self, table: _hoplake.Table) -> None:
        self._table = table

    @property
    def columns(self) -> list[str]:
        """The names of its columns."""
        return self._table.columns

    @property
    def cost(self) -> Cost:
        """What it cost to read."""
        return self._table.cost

    def __len__(self) -> int:
        return len(self._table)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for start in range(0, len(self), _ROWS):
            yield from self._table.rows(start, _ROWS)

    def __getitem__(self, name: str) -> list[Any]:
        """The values of a column."""
        return self._table.column(name)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self._table.__arrow_c_schema__()

    def to_pylist(self) -> list[dict[str, Any]]:
        """Its rows as dicts."""
        return list(self)

    def to_arrow(self) -> pyarrow.Table:
        """As a table of pyarrow, without a copy."""
        import pyarrow

        return pyarrow.table(self)

    def to_polars(self) -> polars.DataFrame:
        """As a data frame of polars."""
        import polars

        return polars.DataFrame(self)

    def to_pandas(self) -> pandas.DataFrame:
        """As a data frame of pandas, through pyarrow."""
        return self.to_arrow().to_pandas()  # pyright: ignore[reportUnknownMemberType]

    def to_networkx(self) -> networkx.MultiDiGraph[tuple[str, int | str]]:
        """Its vertices as nodes ``(label, key)`` of a networkx graph, with the other columns as attributes."""
        import networkx

        graph: networkx.MultiDiGraph[tuple[str, int | str]] = networkx.MultiDiGraph()
        for row in self:
            node = (row.pop("label"), row.pop("key"))
            graph.add_node(node, **row)
        return graph

    def __repr__(self) -> str:
        return f"<hoplake.Table: {len(self):,} rows of {', '.join(self.columns)}>"

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{escape(name)}</th>" for name in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{'' if value is None else escape(str(value))}</td>" for value in row.values()) + "</tr>"
            for row in self._table.rows(0, _HTML_ROWS)
        )
        more = f"<p>{len(self):,} rows; the first {_HTML_ROWS}. {escape(str(self.cost))}</p>" if len(self) > _HTML_ROWS else ""
        return f"<table><tr>{head}</tr>{body}</table>{more}"
