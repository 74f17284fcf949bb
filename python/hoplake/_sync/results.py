# Generated from hoplake/_async by generate_sync.py: change it there.
"""Results that are lists, and results that are read while they are consumed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, overload

from .. import _hoplake
from .._cost import Cost
from .._table import Table
from .._waiting import wait_sync
from .._walks import Walk

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


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

    def __iter__(self) -> Iterator[Any]:
        return iter(self._results)

    def __eq__(self, other: object) -> bool:
        return self._results == (other._results if isinstance(other, Results) else other)

    __hash__ = None  # type: ignore[assignment]

    def to_pylist(self) -> list[Any]:
        """As a list."""
        return list(self._results)

    def __repr__(self) -> str:
        return repr(self._results)


class Walks(Sequence[Walk]):
    """Walks of a traversal, and what they cost."""

    def __init__(self, walks: list[Walk], cost: Cost) -> None:
        self._walks = walks
        self.cost = cost

    def __len__(self) -> int:
        return len(self._walks)

    @overload
    def __getitem__(self, at: int) -> Walk: ...
    @overload
    def __getitem__(self, at: slice) -> list[Walk]: ...
    def __getitem__(self, at: int | slice) -> Any:
        return self._walks[at]

    def __repr__(self) -> str:
        return repr([str(walk) for walk in self._walks])


class Scan:
    """Rows of a scan, which are read while they are consumed, once.

    It iterates over tables, a part of the result each. ``pyarrow.RecordBatchReader.from_stream(scan)``, polars and DuckDB read it as a stream.
    """

    def __init__(self, core: _hoplake.Scan) -> None:
        self._core = core

    @property
    def columns(self) -> list[str]:
        """The names of its columns."""
        return self._core.columns

    @property
    def cost(self) -> Cost:
        """What was spent so far."""
        return self._core.cost

    def __iter__(self) -> Iterator[Table]:
        while True:
            table = wait_sync(self._core.next())
            if table is None:
                return
            yield Table(table)

    def table(self) -> Table:
        """All rows that are left as a table."""
        return Table(wait_sync(self._core.rest()))

    def to_pylist(self) -> list[dict[str, Any]]:
        """All rows that are left as dicts."""
        return (self.table()).to_pylist()

    def to_arrow(self) -> pyarrow.Table:
        """All rows that are left as a table of pyarrow."""
        return (self.table()).to_arrow()

    def to_polars(self) -> polars.DataFrame:
        """All rows that are left as a data frame of polars."""
        return (self.table()).to_polars()

    def to_pandas(self) -> pandas.DataFrame:
        """All rows that are left as a data frame of pandas."""
        return (self.table()).to_pandas()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._core.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self._core.__arrow_c_schema__()

    def __repr__(self) -> str:
        return f"<hoplake.Scan of {', '.join(self.columns)}>"
