"""Vertices and edges as Ray Datasets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Union

from .._arguments import Location, text_or_none, whole_or_none
from .._errors import Error, InvalidError, NotFoundError
from .._sync.graph import open as open_graph
from .._waiting import wait_sync
from ._arguments import shared, text_list
from ._engine import datasets, pa

#: Rows of a block, about.
_BLOCK_ROWS = 1 << 20

#: Rows of a block, about, if the number of blocks is not given: a task takes longer to begin than to read fewer.
_USUAL_ROWS = 1 << 16


@dataclass(frozen=True)
class _Piece:
    """A scan of a label of vertices, or of a type of edges, and which part of it."""

    label: str
    ends: tuple[str, str] | None
    #: The names of its properties.
    properties: tuple[str, ...]
    number: int
    count: int


#: A label, those of ends if it is of edges, properties, and how many rows there are.
_Kind = tuple[str, Union[tuple[str, str], None], "dict[str, str]", int]


class _Scan:
    """Scans of a version, cut by ranges of the vertices that rows are of, or are from."""

    def __init__(self, url: str, version: int, name: str, kinds: list[_Kind], rest: tuple[Any, ...]) -> None:
        self._url, self._version, self._name, self._kinds, self._rest = url, version, name, kinds, rest

    @property
    def usual_blocks(self) -> int:
        """How many blocks there are if nobody says."""
        return sum(max(1, -(-count // _USUAL_ROWS)) for *_, count in self._kinds) or 1

    def get_name(self) -> str:
        return self._name

    def estimate_inmemory_data_size(self) -> int | None:
        return None

    def get_read_tasks(self, parallelism: int, per_task_row_limit: int | None = None, data_context: Any = None) -> list[Any]:
        rows = sum(count for *_, count in self._kinds)
        block = max(1, min(_BLOCK_ROWS, -(-rows // max(parallelism, 1))))
        pieces: list[_Piece] = []
        for label, ends, properties, own in self._kinds:
            count = max(1, -(-own // block))
            pieces += [_Piece(label, ends, tuple(properties), number, count) for number in range(count)]
        return [self._task(piece, per_task_row_limit) for piece in pieces]

    def _task(self, piece: _Piece, limit: int | None) -> Any:
        url, version, rest = self._url, self._version, self._rest
        library = datasets()
        metadata = library.block.BlockMetadata(num_rows=None, size_bytes=None, exec_stats=None, input_files=None)
        return library.datasource.ReadTask(lambda: _read(url, version, piece, rest), metadata, per_task_row_limit=limit)


def _source(*arguments: Any) -> Any:
    """Scans as a source of Ray, whose class is known once its library is imported."""
    library = datasets()
    return type("HoplakeScan", (_Scan, library.datasource.Datasource), {})(*arguments)


def _read(url: str, version: int, piece: _Piece, rest: tuple[Any, ...]) -> Iterator[Any]:
    core = open_graph(url, version=version)._core
    of = (piece.number, piece.count)
    schema, where = rest
    select = [name for name in schema.names if name in piece.properties]
    try:
        if piece.ends is None:
            scan = wait_sync(core.scan([piece.label], where, select, [], None, of))
        else:
            scan = wait_sync(core.scan_edges(piece.label, *piece.ends, select, None, of))
    except NotFoundError:
        # The whole scan was begun before: the condition is on a property that only other labels have.
        yield schema.empty_table()
        return
    is_empty = True
    while (table := wait_sync(scan.next())) is not None:
        is_empty = False
        yield _fit(pa.table(table), schema)
    if is_empty:
        yield schema.empty_table()


def _fit(table: Any, schema: Any) -> Any:
    """Rows of a label with the columns of all: without a property they have nulls, and keys next to those of another type are text."""
    known = set(table.column_names)
    rows = table.num_rows
    columns = [table.column(field.name).cast(field.type) if field.name in known else pa.nulls(rows, field.type) for field in schema]
    return pa.table(columns, schema=schema)


def vertices(
    url: Location,
    labels: str | Iterable[str] | None = None,
    /,
    *,
    where: str | None = None,
    columns: str | Iterable[str] | None = None,
    version: int | None = None,
    **options: Any,
) -> Any:
    """Vertices as a Ray Dataset, which tasks on all nodes read, a range of vertices each.

    The columns are ``label``, ``key``, and properties.

    Args:
        url: where the graph is: a location that all nodes reach.
        labels: labels of vertices; all by default.
        where: a condition, as in :meth:`hoplake.Graph.scan`.
        columns: properties to read; all by default, and none with ``[]``.
        version: the version; the newest by default.
        options: options of ``ray.data.read_datasource``, such as ``override_num_blocks`` or ``ray_remote_args``.
    """
    where_is = shared(url)
    with open_graph(where_is, version=whole_or_none("version", version)) as graph:
        wanted = text_list("labels", labels) or []
        # What is wrong with it says the scan of all.
        schema = _schema(wait_sync(graph._core.scan(wanted, text_or_none("where", where), text_list("columns", columns), [], None)))
        kinds: list[_Kind] = [
            (label.name, None, label.properties, label.vertices) for label in graph.schema.labels if not wanted or label.name in wanted
        ]
        return _dataset(_source(where_is, graph.version, "HoplakeVertices", kinds, (schema, where)), options)


def edges(
    url: Location,
    label: str | None = None,
    /,
    *,
    source_label: str | None = None,
    target_label: str | None = None,
    columns: str | Iterable[str] | None = None,
    version: int | None = None,
    **options: Any,
) -> Any:
    """Edges as a Ray Dataset, which tasks on all nodes read, those of a range of sources each.

    The columns are ``label``, ``source_label``, ``source``, ``target_label``, ``target``, and properties.

    Args:
        url: where the graph is: a location that all nodes reach.
        label: the label of the edges; all by default.
        source_label: the label of their sources; all by default.
        target_label: the label of their targets; all by default.
        columns: properties to read; all by default, and none with ``[]``.
        version: the version; the newest by default.
        options: options of ``ray.data.read_datasource``, such as ``override_num_blocks`` or ``ray_remote_args``.
    """
    where_is = shared(url)
    with open_graph(where_is, version=whole_or_none("version", version)) as graph:
        wanted = {"label": label, "source_label": source_label, "target_label": target_label}
        for name, given in wanted.items():
            text_or_none(name, given)
        found = [it for it in graph.schema.edge_types if all(name is None or getattr(it, key) == name for key, name in wanted.items())]
        schema = _schema(wait_sync(graph._core.scan_edges(label, source_label, target_label, text_list("columns", columns), None)))
        kinds: list[_Kind] = [(it.label, (it.source_label, it.target_label), it.properties, it.edges) for it in found]
        return _dataset(_source(where_is, graph.version, "HoplakeEdges", kinds, (schema, None)), options)


def _dataset(source: Any, options: dict[str, Any]) -> Any:
    """A Dataset of a source, with options of Ray."""
    # Ray's own choice is some 200 blocks, however few rows there are.
    given = {"override_num_blocks": source.usual_blocks, **options}
    try:
        return datasets().read_datasource(source, **given)
    except Error:
        raise
    except Exception as error:  # whatever Ray raises about them
        if not options:
            raise
        raise InvalidError(f"ray.data.read_datasource does not take these options: {error}") from error


def _schema(scan: Any) -> Any:
    """The columns of a scan that was begun."""
    return pa.schema(scan)
