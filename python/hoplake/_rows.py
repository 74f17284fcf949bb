"""Tables as input."""

from __future__ import annotations

import json
from collections.abc import Mapping
from os import PathLike
from typing import Any

from ._arguments import is_a
from ._errors import Error, InvalidError

#: The columns of keys and of ends, by the first of their usual names.
KEYS = {"key": ("key", "id")}
ENDS = {"source": ("source", "from", "src"), "target": ("target", "to", "dst")}


def _is_of(rows: Any, library: str, kind: str) -> bool:
    """Whether it is of a class of a library, which need not be installed."""
    return any(base.__module__.split(".")[0] == library and base.__name__ == kind for base in type(rows).__mro__)


def is_frame(rows: Any) -> bool:
    """Whether it is a table of another library, such as a data frame."""
    return any(hasattr(rows, name) for name in ("__arrow_c_stream__", "__arrow_c_array__", "__dataframe__", "to_table"))


def check(rows: Any, what: str) -> None:
    """Rejects what is often taken for a table, and says how to make one of it."""
    if is_a(rows, str, PathLike):
        raise InvalidError(
            f"{what} is a path, {str(rows)!r}; read it first, for example with pandas.read_parquet, or load files with files=…"
        )
    if _is_of(rows, "polars", "LazyFrame"):
        raise InvalidError(f"{what} is a LazyFrame of polars, which has no rows yet; give frame.collect()")
    if _is_of(rows, "pyarrow", "Dataset"):
        raise InvalidError(f"{what} is a Dataset of pyarrow; give dataset.to_table(), or dataset.scanner().to_reader() for one that is large")


def index_hint(rows: Any) -> str:
    """What to do about a column that is the index of a data frame of pandas; an empty text if it has no named index."""
    if not _is_of(rows, "pandas", "DataFrame"):
        return ""
    named = [str(name) for name in rows.index.names if name is not None]
    return f"; its index is named {', '.join(named)}: use frame.reset_index()" if named else ""


def _columns(rows: Any) -> list[str]:
    """The names of its columns; none if it does not say."""
    if is_a(rows, Mapping):
        return list(rows)
    if _is_of(rows, "pandas", "DataFrame"):
        # An index with a name is a column of what pandas exports.
        found: Any = [*rows.columns, *rows.index.names]
    elif isinstance(getattr(rows, "columns", None), list) and not hasattr(rows, "column_names"):
        found = rows.columns
    else:
        found = getattr(getattr(rows, "schema", None), "names", ())
    return [name for name in found if isinstance(name, str)] if is_a(found, list) else []


def with_usual_names(rows: Any, usual: Mapping[str, tuple[str, ...]]) -> Any:
    """Rows whose columns of keys have their first usual name. Other columns stay as they are."""
    columns = _columns(rows)
    renamed: dict[str, str] = {}
    for name, others in usual.items():
        found = next((other for other in others if other in columns), name)
        if found != name:
            renamed[found] = name
    if not renamed:
        return rows
    if is_a(rows, Mapping):
        return {renamed.get(name, name): values for name, values in rows.items()}
    if _is_of(rows, "polars", "DataFrame"):
        return rows.rename(renamed)
    try:
        import pyarrow as imported
    except ImportError:
        return rows
    pyarrow: Any = imported
    if not hasattr(rows, "__arrow_c_stream__"):
        # A record batch.
        rows = pyarrow.table(rows)
    reader = pyarrow.RecordBatchReader.from_stream(rows)
    schema = pyarrow.schema([field.with_name(renamed.get(field.name, field.name)) for field in reader.schema])
    batches = (pyarrow.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in reader)
    return pyarrow.RecordBatchReader.from_batches(schema, batches)


def quoted(label: str) -> str:
    """A label as messages of the extension have it."""
    return json.dumps(label, ensure_ascii=False)


def explained(error: Error, phrase: str, rows: Any) -> Error:
    """An error about a missing column, with what to do if that is the index of the frame."""
    hint = index_hint(rows) if phrase in str(error) else ""
    error.args = (f"{error}{hint}",)
    return error
