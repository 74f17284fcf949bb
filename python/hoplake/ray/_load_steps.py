"""Steps of a load on Ray: what runs in tasks.

Rows are lists of pairs of a number, which says whose rows they are, and a record batch. Batches are in Ray's object store, which hands them to tasks of a node
without a copy, and which writes to disk what its memory has no room for.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Any, TypeVar

from .. import _hoplake
from .._errors import Error, OutcomeUnknownError, UnavailableError
from .._load_tables import in_tables
from ._checkpoints import Objects
from ._engine import compute, np, pa, ray

_T = TypeVar("_T")

#: Rows of a piece of sorted vertices, about.
_PIECE_ROWS = 1 << 17

#: The longest wait between two attempts, in seconds.
_LONGEST_WAIT = 10.0

#: Pairs of a number and a record batch.
Rows = list[tuple[int, Any]]


@dataclass(frozen=True)
class Table:
    """A table of vertices or edges, whose rows come in blocks."""

    label: str
    #: The column of keys; or labels and columns of both ends.
    key: str | None
    ends: tuple[tuple[str, str | None], tuple[str, str | None]] | None
    schema: Any
    #: How many rows each block has, and a digest of it.
    rows: tuple[int, ...]
    digests: tuple[str, ...]

    @property
    def shown(self) -> str:
        """The table as messages name it."""
        if self.ends is None:
            return f"vertices {self.label!r}"
        (source, _), (target, _) = self.ends
        return f"edges {(source, self.label, target)!r}"

    def described(self) -> dict[str, Any]:
        """What another driver with the same id has to have, too."""
        return {"label": self.label, "key": self.key, "ends": self.ends, "columns": str(self.schema), "blocks": list(self.digests)}


@dataclass(frozen=True)
class Spec:
    """What all tasks of a load know."""

    id: str
    url: str
    writer: str
    base_version: int
    tables: tuple[Table, ...]
    memory: int
    temp_dir: str | None
    span_items: int
    ranges: int
    checkpoints: str
    patience_seconds: float

    def __hash__(self) -> int:
        return hash((self.id, self.writer))

    @property
    def objects(self) -> Objects:
        """Where the load keeps what is done."""
        return Objects(self.checkpoints, self.id)

    @property
    def shown(self) -> list[str]:
        """Tables as messages name them."""
        return [table.shown for table in self.tables]

    @property
    def implies_vertices(self) -> bool:
        """Whether the vertices are those that edges name."""
        return all(table.ends is not None for table in self.tables)


@lru_cache(maxsize=2)
def steps(spec: Spec) -> _hoplake.LoadSteps:
    """The steps of a load, made once in each process."""
    vertices: list[Any] = []
    edges: list[Any] = []
    for table in spec.tables:
        empty = table.schema.empty_table()
        if table.ends is None:
            vertices.append((table.label, table.key, empty, len(table.rows)))
        else:
            edges.append((table.label, *table.ends, empty, len(table.rows)))
    given = (vertices, edges, spec.implies_vertices, spec.writer, spec.base_version, spec.memory, spec.temp_dir, spec.span_items)
    return _hoplake.LoadSteps(*given)


def patiently(call: Callable[[], _T], seconds: float) -> _T:
    """Calls until the store answers."""
    begun = time.monotonic()
    while True:
        try:
            return call()
        except (UnavailableError, OutcomeUnknownError):
            waited = time.monotonic() - begun
            if waited > seconds:
                raise
            time.sleep(min(_LONGEST_WAIT, 0.2 + waited / 10))


def _batch(batch: Any) -> Any:
    """A record batch of pyarrow, which shares the buffers."""
    return pa.record_batch(batch)


def _rows(found: Sequence[tuple[int, Any]]) -> Rows:
    return [(feed, _batch(batch)) for feed, batch in found]


def _outputs(values: list[Any]) -> Any:
    """What a task with as many returns returns."""
    return values[0] if len(values) == 1 else tuple(values)


@dataclass(frozen=True)
class Facts:
    """What a load knows of a block before it reads it."""

    schema: Any
    rows: int
    bytes: int
    digest: str


def schema(block: Any) -> Facts:
    """What a block is."""
    digest = blake2b(digest_size=16)
    columns: list[Any] = []
    for field in block.schema.remove_metadata():
        kind = field.type
        columns.append(field.with_type(kind.value_type) if pa.types.is_dictionary(kind) else field)
    with pa.ipc.new_stream(_Digested(digest), block.schema) as writer:
        writer.write_table(block)
    return Facts(pa.schema(columns), block.num_rows, block.nbytes, digest.hexdigest())


class _Digested(io.RawIOBase):
    """A file whose bytes are digested."""

    def __init__(self, digest: Any) -> None:
        self._digest = digest

    def writable(self) -> bool:
        return True

    def write(self, content: Any, /) -> int:
        self._digest.update(content)
        return len(content)


def _fit(block: Any, schema: Any) -> Any:
    """A block with the columns of all: what it lacks is null."""
    known = set(block.column_names)
    rows = block.num_rows
    columns = [block.column(field.name).cast(field.type) if field.name in known else pa.nulls(rows, field.type) for field in schema]
    return pa.table(columns, schema=schema)


def read(spec: Spec, table: int, number: int, first: int, block: Any, is_edges: bool) -> Any:
    """The rows of a block, and a sample of the keys of its vertices. ``first`` is how many rows the table has before it."""
    found: Rows = []
    sampled: list[tuple[str, Any]] = []
    if block.num_rows == 0:
        return found, sampled
    own = steps(spec)
    # One batch, unless a column of text is longer than Arrow's offsets.
    for batch in _fit(block, spec.tables[table].schema).combine_chunks().to_batches():
        try:
            rows = _rows(own.read(table, number, first, batch, is_edges))
        except Error as error:
            # The rows of the block are in a file of their own.
            in_tables(error, spec.shown, first)
            raise
        if not is_edges:
            sampled += [(space, _batch(keys)) for space, keys in own.sample(rows)]
        found += rows
        first += batch.num_rows
    return found, sampled


def bounds(samples: list[list[tuple[str, Any]]], ranges: int) -> list[tuple[str, Any]]:
    """Keys at which ranges begin, so that each has as many keys of the samples."""
    by_space: dict[str, list[Any]] = {}
    for sample in samples:
        for space, keys in sample:
            by_space.setdefault(space, []).append(keys.column(0))
    found: list[tuple[str, Any]] = []
    for space, columns in sorted(by_space.items()):
        keys = pa.concat_arrays(columns)
        keys = keys.take(compute.sort_indices(keys))
        at = sorted({len(keys) * number // ranges for number in range(1, ranges)})
        cut = keys.take(pa.array(at, pa.int64())).unique() if len(keys) else keys
        found.append((space, pa.record_batch([cut], names=["key"])))
    return found


def split(spec: Spec, rows: Rows, is_target: bool, bounds: list[tuple[str, Any]]) -> Any:
    """Rows by ranges."""
    divided = steps(spec).split(rows, is_target, bounds, spec.ranges)
    return _outputs([_rows(of_range) for of_range in divided])


def _each(references: Iterable[Any]) -> Iterator[Any]:
    """Values one after the other, so that one is in use at a time."""
    for reference in references:
        yield ray.get(reference)


def vertices(spec: Spec, references: list[Any]) -> Iterator[Any]:
    """The vertices of a range in the order of their keys: label and count, keys, and rows of each piece."""
    own = steps(spec)
    sorted_range = own.vertices(_each(references))
    label, batches, rows = -1, list[Any](), 0
    while True:
        found = own.next_vertices(sorted_range)
        if batches and (found is None or found[0] != label or rows >= _PIECE_ROWS):
            for batch in pa.Table.from_batches(batches).combine_chunks().to_batches():
                yield label, batch.num_rows
                yield pa.record_batch([batch.column(0)], names=["key"])
                yield batch
            batches, rows = [], 0
        if found is None:
            return
        label = found[0]
        batch = _batch(found[1])
        batches.append(batch)
        rows += batch.num_rows


@dataclass(frozen=True)
class Keys:
    """Keys of vertices of a range: the label, the ordinal of the first, and the reference of the keys."""

    label: int
    first: int
    reference: Any


def resolve(
    spec: Spec,
    is_target: bool,
    keys: list[Keys],
    references: list[Any],
    bounds: list[tuple[str, Any]],
    firsts: list[list[int]],
) -> Any:
    """Edges of a range with the vertices of one end. Those of the first end are divided by the keys of the other; and those of both by the vertices of the first, and
    are returned as a whole before that."""
    own = steps(spec)
    in_order = sorted(keys, key=lambda it: (it.label, it.first))
    table = own.keys((piece.label, piece.first, ray.get(piece.reference)) for piece in in_order)
    whole: Rows = []
    ranges: list[Rows] = [[] for _ in range(spec.ranges)]
    for rows in _each(references):
        resolved = _rows(own.resolve(table, rows, is_target))
        if is_target:
            whole += resolved
            divided = own.split_resolved(resolved, False, firsts, spec.ranges)
        else:
            divided = own.split(resolved, True, bounds, spec.ranges)
        for of_range, more in zip(ranges, divided):
            of_range += _rows(more)
    return (whole, *ranges) if is_target else _outputs(ranges)


def edges(spec: Spec, is_in: bool, counts: list[int], references: list[Any]) -> Iterator[Any]:
    """The edges of a range in the order of one end: type, count, and first and last ordinal of each piece, and the piece."""
    own = steps(spec)
    sorted_range = own.edges(is_in, counts, _each(references))
    while (found := sorted_range.next()) is not None:
        kind, batch = found[0], _batch(found[1])
        near = batch.column(0)
        yield kind, batch.num_rows, near[0].as_py(), near[-1].as_py()
        yield batch


def list_begin(piece: Any, row: int, before: int | None) -> int | None:
    """The first row from one on that begins a list. ``before`` is the ordinal of the row before, if that is of another piece."""
    near = piece.column(0).to_numpy()
    begins = np.flatnonzero(near[row:] != (near[row - 1] if before is None else before))
    return row + int(begins[0]) if len(begins) else None


@dataclass(frozen=True)
class Piece:
    """Rows of a span: of a label, or of a type by its number."""

    owner: int
    kind: tuple[int, int, int] | None
    #: How many rows of the owner there are before.
    first: int
    #: Rows of the piece.
    offset: int
    rows: int
    reference: Any


def write(spec: Spec, name: str, stream: str, items: int, pieces: list[Piece]) -> bytes:
    """Writes a span, unless that is done; returns what there is to publish of it."""
    objects = spec.objects
    known = patiently(lambda: objects.get(name), spec.patience_seconds)
    if known is not None:
        return known

    def vertices() -> Iterator[tuple[int, int, Any]]:
        for piece in pieces:
            yield piece.first, piece.owner, ray.get(piece.reference).slice(piece.offset, piece.rows)

    def edges() -> Iterator[tuple[int, int, tuple[int, int, int], Any]]:
        for piece in pieces:
            assert piece.kind is not None
            yield piece.owner, piece.first, piece.kind, ray.get(piece.reference).slice(piece.offset, piece.rows)

    def attempt() -> bytes:
        own = steps(spec)
        if stream == "vertices":
            return own.write_vertices(spec.url, items, vertices()).encode()
        return own.write_edges(spec.url, stream == "in", items, edges()).encode()

    written = patiently(attempt, spec.patience_seconds)
    patiently(lambda: objects.create(name, written), spec.patience_seconds)
    return written
