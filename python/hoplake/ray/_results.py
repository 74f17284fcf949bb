"""What becomes of the columns of a result: one table, or one commit."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Any

from .._errors import make
from .._sync.graph import Graph
from ._engine import compute, pa

#: The columns that are written, and the properties that they are written as. ``None`` stands for the first column.
Written = tuple[tuple["str | None", str], ...]


def chosen(write: Written, columns: Iterable[str]) -> list[tuple[str, str]]:
    """The columns that are written, by their names, and their properties."""
    known = list(columns)
    for column, _ in write:
        if column is not None and column not in known:
            raise make("invalid", f"write names the column {column!r}; the result has {', '.join(known)}")
    return [(known[0] if column is None else column, name) for column, name in write]


def commit(graph: Graph, tables: list[Any], write: Written, name: str, id: str) -> int:
    """Writes columns as properties, in one commit, and returns the version. Another attempt, or another driver of the run, changes nothing more."""
    written = count = 0
    # The message has how many vertices get a value, so the changes are put together first.
    changes: list[tuple[str, Any, list[tuple[Any, list[str]]]]] = []
    schema = {label.name: label for label in graph.schema.labels}
    for table in tables:
        columns = chosen(write, table.column_names[2:])
        count += table.num_rows
        for label in table.column("label").unique().to_pylist():
            own = table.filter(compute.equal(table.column("label"), label))
            # Next to keys of another type they are text.
            keys = own.column("key").cast(pa.int64() if schema[label].key_type == "int64" else pa.string())
            values = {property: own.column(column) for column, property in columns}
            there = reduce(compute.or_, [compute.is_valid(column) for column in values.values()])
            # The dot says that it is a property, also if it is called key.
            rows = pa.table({"key": keys, **{f".{property}": column for property, column in values.items()}}).filter(there)
            known = {property: column for property, column in values.items() if property in schema[label].properties}
            changes.append((label, rows, _removed(keys, known)))
            written += rows.num_rows
    properties = ", ".join(property for _, property in write)
    message = f"{properties}: {name} of {written} of {count} vertices, by the run {id}"
    batch = graph.begin(message, idempotency_key=f"hoplake.ray {id}")
    for label, rows, removed in changes:
        if rows.num_rows:
            batch.upsert_vertices(label, rows)
        for key, gone in removed:
            batch.upsert_vertex(label, key, **dict.fromkeys(gone))
    return batch.commit().version


def _removed(keys: Any, columns: dict[str, Any]) -> list[tuple[Any, list[str]]]:
    """The vertices without a value, and the properties that go: in a table a null changes nothing, but what an earlier run wrote has to go."""
    if not columns:
        return []
    missing = {property: compute.is_null(column) for property, column in columns.items()}
    some = reduce(compute.or_, missing.values())
    flags = [missing[property].filter(some).to_pylist() for property in columns]
    return [
        (key, [property for property, is_missing in zip(columns, own) if is_missing])
        for key, *own in zip(keys.filter(some).to_pylist(), *flags)
    ]


def together(tables: list[Any]) -> Any:
    """The tables of parts as one. Keys of several types are text, as they are within a table."""
    at = tables[0].schema.get_field_index("key")
    if len({table.schema.field(at).type for table in tables}) > 1:
        as_text = pa.field("key", pa.string(), nullable=False)
        tables = [table.set_column(at, as_text, table.column(at).cast(pa.string())) for table in tables]
    return pa.concat_tables(tables)
