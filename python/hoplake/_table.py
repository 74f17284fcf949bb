"""Results as tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, Protocol, Union

from . import _hoplake
from ._arguments import shown
from ._cost import Cost
from ._walks import add_edge

if TYPE_CHECKING:
    import networkx
    import pandas
    import polars
    import pyarrow

_HTML_ROWS = 20
_REPR_ROWS = 5
_ROWS = 1_000


class ArrowStream(Protocol):
    """An object that exports its rows through Arrow, such as a data frame of pandas or polars, or a table of pyarrow or DuckDB."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


#: Rows as input: a data frame, a table, or a dict of columns, each a list. They are read on another thread than the caller's.
Rows = Union[ArrowStream, "Mapping[str, Sequence[Any]]"]


class Table:
    """Rows of a result: a table of Arrow that pandas, polars, pyarrow and DuckDB read without copying.

    Iterating yields its rows as dicts; ``table["name"]`` is a column as a list, and ``"name" in table`` tells whether there is one. The columns are
    ``label`` and ``key``, then the selected properties. A property with the name of another column has a dot before its name.

    >>> import hoplake
    >>> people = {"key": [1, 2], "name": ["Ann", "Bo"]}
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
        """What reading it cost."""
        return self._table.cost

    def __len__(self) -> int:
        return len(self._table)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for start in range(0, len(self), _ROWS):
            yield from self._table.rows(start, _ROWS)

    def __getitem__(self, name: str) -> list[Any]:
        """The values of a column."""
        key: Any = name
        if not isinstance(key, str):
            raise TypeError(f"a table is indexed by the name of a column, not by {shown(key)}; table.to_pylist() is a list of its rows")
        return self._table.column(name)

    def __contains__(self, item: object) -> bool:
        """For a ``str``, whether there is a column of this name, as in pandas and polars; otherwise whether a row equals it."""
        return item in self.columns if isinstance(item, str) else any(row == item for row in self)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self._table.__arrow_c_schema__()

    def to_pylist(self) -> list[dict[str, Any]]:
        """The rows as a list of dicts."""
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
        """As a graph of networkx, whose nodes are pairs of label and key: rows of edges become edges, and rows of vertices become
        nodes.

        The other columns become attributes; nulls are left out.
        """
        import networkx

        graph: networkx.MultiDiGraph[tuple[str, int | str]] = networkx.MultiDiGraph()
        columns = self.columns
        for row in self:
            rest = {name: value for name, value in row.items() if value is not None}
            if "source_label" in columns and "target_label" in columns:
                source = (rest.pop("source_label"), rest.pop("source"))
                target = (rest.pop("target_label"), rest.pop("target"))
                add_edge(graph, source, target, rest.pop("label"), rest)
            elif "from_label" in columns:
                near, far = (rest.pop("from_label"), rest.pop("from_key")), (rest.pop("label"), rest.pop("key"))
                source, target = (near, far) if rest.pop("direction") == "out" else (far, near)
                add_edge(graph, source, target, rest.pop("edge"), rest)
            else:
                node = (rest.pop("label"), rest.pop("key"))
                graph.add_node(node)
                graph.nodes[node].update(rest)
        return graph

    def __repr__(self) -> str:
        rows = "row" if len(self) == 1 else "rows"
        lines = [", ".join(f"{name}={value!r}" for name, value in row.items()) for row in self._table.rows(0, _REPR_ROWS)]
        more = ["…"] if len(self) > _REPR_ROWS else []
        return "\n".join([f"<hoplake.Table: {len(self):,} {rows} of {', '.join(self.columns)}>", *lines, *more])

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{escape(name)}</th>" for name in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{'' if value is None else escape(str(value))}</td>" for value in row.values()) + "</tr>"
            for row in self._table.rows(0, _HTML_ROWS)
        )
        more = f"<p>{len(self):,} rows; the first {_HTML_ROWS}. {escape(str(self.cost))}</p>" if len(self) > _HTML_ROWS else ""
        return f"<table><tr>{head}</tr>{body}</table>{more}"
