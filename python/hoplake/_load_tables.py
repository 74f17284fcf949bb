"""Tables of a load: which labels they have, and which columns have keys."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Union

from . import _rows
from ._arguments import as_text, is_a, shown
from ._errors import Error, InvalidError
from ._table import Rows

#: Tables of vertices by label.
VertexTables = Mapping[str, Rows]

#: Labels of source, edge and target.
EdgeName = tuple[str, str, str]

#: Tables of edges: ``{("Person", "knows", "Person"): table}``, or a list of such pairs, which may repeat a name.
EdgeTables = Union["Mapping[EdgeName, Rows]", "Sequence[tuple[EdgeName, Rows]]"]


def vertex_tables(vertices: VertexTables | None, keys: Mapping[str, str] | None) -> list[tuple[str, str | None, Rows]]:
    """Tables of vertices, with the columns of their keys if they were given."""
    tables: Any = {} if vertices is None else vertices
    if not is_a(tables, Mapping):
        raise InvalidError('vertices has to be a dict of tables by label, as in vertices={"Person": frame}')
    columns: Any = {} if keys is None else keys
    if not is_a(columns, Mapping):
        raise InvalidError('keys has to be a dict of columns by label, as in keys={"airport": "code"}')
    of_labels: dict[str, str] = dict(columns)
    for label in of_labels:
        if label not in tables:
            raise InvalidError(f"keys names the label {shown(label)}, but vertices has no table for it")
    given: dict[str, Rows] = dict(tables)
    for label, rows in given.items():
        _rows.check(rows, f"the table of vertices {as_text('each label of vertices', label)!r}")
    return [(label, of_labels.get(label), rows) for label, rows in given.items()]


def edge_pairs(edges: EdgeTables | None) -> list[tuple[EdgeName, Rows]]:
    """Names of edges and their tables."""
    given: Any = () if edges is None else edges
    wrong = InvalidError(f"edges has to be a dict of tables by labels, as in edges={{{_EXAMPLE}: frame}}, or a list of such pairs")
    if not is_a(given, Mapping) and (is_a(given, str) or _rows.is_frame(given) or not is_a(given, Iterable)):
        raise wrong
    pairs: list[Any] = list(given.items() if is_a(given, Mapping) else given)
    for pair in pairs:
        if not is_a(pair, tuple, list) or len(pair) != 2:
            raise wrong
        name, rows = pair
        if not is_a(name, tuple) or len(name) != 3 or not all(is_a(label, str) for label in name):
            raise InvalidError(f"edges are named by labels of source, edge and target, as in {_EXAMPLE}, not {shown(name)}")
        for label in name:
            as_text("each label of edges", label)
        _rows.check(rows, f"the table of edges {name!r}")
    return [(name, rows) for name, rows in pairs]


#: The name of a table of edges.
_EXAMPLE = '("Person", "knows", "Person")'


def edge_tables(
    pairs: list[tuple[EdgeName, Rows]], ends: tuple[str, str] | Mapping[EdgeName, tuple[str, str]] | None
) -> list[tuple[str, tuple[str, str | None], tuple[str, str | None], Rows]]:
    """Tables of edges, with the columns of their ends if they were given."""
    known = {name for name, _ in pairs}
    by_name: dict[EdgeName, Any] = dict(ends) if isinstance(ends, Mapping) else {} if ends is None else dict.fromkeys(known, ends)
    for name, columns in by_name.items():
        if name not in known:
            raise InvalidError(f"ends names the edges {shown(name)}, but edges has no table for them")
        if not is_a(columns, tuple, list) or len(columns) != 2:
            raise InvalidError(f'ends has to be the columns of source and target, as in ("from", "to"), not {shown(columns)}')
    found: list[tuple[str, tuple[str, str | None], tuple[str, str | None], Rows]] = []
    for name, rows in pairs:
        source, target = by_name.get(name, (None, None))
        found.append((name[1], (name[0], source), (name[2], target), rows))
    return found


#: A load reads tables in memory from temporary files, ``0.parquet`` and so on, below a temporary folder.
_STAGED = re.compile(
    r"(?:^(?:.*mapping\.toml: )?|(?<= in ))(?:\S*hoplake-tables-[^/\\]*[/\\])?(\d+)\.parquet(?:, line (\d+))?(?=[:,]|$)", re.MULTILINE
)


def in_tables(error: Error, shown: list[str], first: int = 0) -> None:
    """Rewrites an error to name rows of tables rather than lines of temporary files. ``first`` is how many rows there are before those of a file."""

    def table(found: re.Match[str]) -> str:
        number, line = int(found[1]), found[2]
        if number >= len(shown):
            return found[0]
        if line is None:
            return shown[number]
        row = int(line) - 1 + first
        if error.row is None:
            error.row = row
        return f"{shown[number]}, row {row}"

    error.args = tuple(_STAGED.sub(table, str(part)) for part in error.args)
