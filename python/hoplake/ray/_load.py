"""Loading on many machines.

::

    blocks ── read ──▶ rows ── split by sampled keys ──▶ ranges ── sort ──▶ vertices in order, whose counts give ordinals
    blocks ── read ──▶ edges ── split by source ──▶ resolve ── split by target ──▶ resolve ── split by vertex ──▶ sort
    spans of sorted vertices and edges ── write ──▶ objects ──▶ one version

Every step is a task of Ray, which runs it again if its node dies. Spans are the same objects whoever writes them, so that a load that was killed writes only those that are
not noted yet. Whether it is published or given up is decided by one object, so that of two drivers none takes away what the other has published.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from .. import _hoplake
from .._arguments import Location, as_text, is_a, location, whole
from .._errors import ConflictError, Error, InvalidError, LimitError, make
from .._load_tables import EdgeName, EdgeTables, VertexTables, edge_pairs, edge_tables, in_tables, vertex_tables
from .._waiting import wait_sync
from . import _arguments, _load_steps
from ._checkpoints import Objects
from ._engine import RayTaskError, pa, ray
from ._load_steps import Keys, Piece, Spec, Table, patiently

#: Keys or edges of a span, as in a load by one machine.
_SPAN_ITEMS = 1 << 26
#: The part of the memory of a task that the rows of a range may have: its keys are looked up in a table of a quarter of it.
_RANGE_PART = 16
#: Rows for which a range is worth its tasks, in bytes.
_RANGE_BYTES = 16 << 20
#: The memory of a task, by default.
_MEMORY = 1 << 30
#: The least memory of a task, below which buffers do not fit.
_LEAST_MEMORY = 32 << 20
#: Each step hands something to each range.
_MOST_RANGES = 4096
#: How long a cancelled driver may take to end.
_CANCEL_SECONDS = 5
#: Rows of a block of a table in memory.
_BLOCK_ROWS = 1 << 20


@dataclass(frozen=True)
class Loaded:
    """A graph that was loaded."""

    #: The name of the load.
    id: str
    version: int
    vertices: int
    edges: int


def load(
    url: Location,
    /,
    *,
    vertices: VertexTables | None = None,
    edges: EdgeTables | None = None,
    keys: Mapping[str, str] | None = None,
    ends: tuple[str, str] | Mapping[EdgeName, tuple[str, str]] | None = None,
    ranges: int | None = None,
    memory: int = _MEMORY,
    replace: bool = False,
    message: str = "",
    id: str | None = None,
    temp_dir: Location | None = None,
    patience_seconds: float | timedelta = 600.0,
    task_options: Mapping[str, Any] | None = None,
) -> Loaded:
    """Loads a graph on many machines, from Ray Datasets or tables in memory.

    The graph is that of :func:`hoplake.load` with the same tables, byte for byte: vertices are in the order of their keys. The first bad row ends the load. Files are
    read by Ray, such as with ``ray.data.read_parquet``.

    Args:
        url: the location of the new graph: one that all nodes reach.
        vertices: Datasets or tables of vertices by label, as in :func:`hoplake.load`.
        edges: Datasets or tables of edges by labels of source, edge and target, as in :func:`hoplake.load`.
        keys: the columns of keys by label, if they have other names.
        ends: the columns of the ends of edges, if they have other names.
        ranges: into how many ranges of keys rows are divided. By default up to as many as the cluster has processors, and more if a range would not fit its task.
        memory: bytes of memory of a task.
        replace: whether an existing graph may be replaced; its versions stay readable.
        message: a message that is stored with the version.
        id: the name of the load. Call it again with the same id and the same tables if the program that called it died.
        temp_dir: a folder of each node for temporary files.
        patience_seconds: how long a task waits for a store that does not answer.
        task_options: further options of Ray for tasks.

    Raises:
        ConflictError: a graph exists there, and ``replace`` is not set; or another load was faster.
        InvalidError: a row cannot be loaded; the message says which.
    """
    request = _request(
        url,
        vertices=vertices,
        edges=edges,
        keys=keys,
        ends=ends,
        ranges=ranges,
        memory=memory,
        replace=replace,
        message=message,
        id=id,
        temp_dir=temp_dir,
        patience_seconds=patience_seconds,
        task_options=task_options,
    )
    task = ray.remote(_drive).options(num_cpus=0, max_retries=-1, name=f"hoplake.ray load {request.id}")
    reference = task.remote(request)
    try:
        return Loaded(**ray.get(reference))
    except RayTaskError as error:
        raise _cause(error) from None
    except BaseException:
        # Ctrl-C: tasks end with the driver.
        ray.cancel(reference, force=True)
        ray.wait([reference], timeout=_CANCEL_SECONDS)
        if not request.is_named:
            _give_up(request)
        raise


def _cause(error: Exception) -> Exception:
    """What a task raised, and tasks that waited for it."""
    cause: Any = error
    while isinstance(cause, RayTaskError) and isinstance(cause.cause, Exception):
        cause = cause.cause
    found: Exception = cause
    return found


@dataclass(frozen=True)
class _Blocks:
    """A table whose rows are in Ray's object store."""

    label: str
    key: str | None
    ends: tuple[tuple[str, str | None], tuple[str, str | None]] | None
    references: tuple[Any, ...]


@dataclass(frozen=True)
class _Request:
    """What a user wants to load."""

    url: str
    id: str
    #: Whether the user gave it its id.
    is_named: bool
    tables: tuple[_Blocks, ...]
    ranges: int | None
    memory: int
    replace: bool
    message: str
    temp_dir: str | None
    patience_seconds: float
    task_options: dict[str, Any]
    span_items: int


def _request(
    url: Location,
    *,
    vertices: Any = None,
    edges: Any = None,
    keys: Any = None,
    ends: Any = None,
    ranges: int | None = None,
    memory: int = _MEMORY,
    replace: bool = False,
    message: str = "",
    id: str | None = None,
    temp_dir: Location | None = None,
    patience_seconds: float | timedelta = 600.0,
    task_options: Mapping[str, Any] | None = None,
) -> _Request:
    """What a user wants to load, checked."""
    return _Request(
        url=_arguments.shared(url),
        id=_arguments.run_id(id),
        is_named=id is not None,
        ranges=None if ranges is None else _arguments.at_most("ranges", ranges, _MOST_RANGES),
        memory=whole("memory", memory, _LEAST_MEMORY),
        replace=_arguments.flag("replace", replace),
        message=as_text("message", message),
        temp_dir=None if temp_dir is None else location(temp_dir, "temp_dir"),
        patience_seconds=_arguments.seconds("patience_seconds", patience_seconds),
        task_options=_arguments.task_options(task_options),
        span_items=_SPAN_ITEMS,
        # Last: Datasets are computed.
        tables=_blocks(vertices, edges, keys, ends),
    )


def _blocks(vertices: Any, edges: Any, keys: Any, ends: Any) -> tuple[_Blocks, ...]:
    """The tables of a load, with their rows in blocks. What is wrong with their names says what loads on one machine, too."""

    def named(rows: Any) -> Any:
        # A Dataset has no rows here.
        return {} if _is_dataset(rows) else rows

    given_vertices: Any = {label: named(rows) for label, rows in vertices.items()} if is_a(vertices, Mapping) else vertices
    of_vertices = vertex_tables(given_vertices, keys)
    given: Any = list(edges.items()) if is_a(edges, Mapping) else edges
    if is_a(given, list, tuple) and all(is_a(pair, list, tuple) and len(pair) == 2 for pair in given):
        datasets: list[Any] = [rows for _, rows in given]
        given = [(name, named(rows)) for name, rows in given]
    else:
        datasets = []
    of_edges = edge_tables(edge_pairs(given), ends)
    if not of_vertices and not of_edges:
        raise InvalidError("there is nothing to load; give tables of vertices or of edges")
    found = [_Blocks(label, key, None, _references(vertices[label], f"the table of vertices {label!r}")) for label, key, _ in of_vertices]
    for (label, source, target, _), rows in zip(of_edges, datasets):
        found.append(_Blocks(label, None, (source, target), _references(rows, f"the table of edges {label!r}")))
    return tuple(found)


def _is_dataset(rows: Any) -> bool:
    return hasattr(rows, "to_arrow_refs")


def _references(rows: Any, what: str) -> tuple[Any, ...]:
    """The rows of a table as references of tables of Arrow."""
    if _is_dataset(rows):
        options = rows.context.execution_options
        before, options.preserve_order = options.preserve_order, True
        try:
            references = tuple(rows.to_arrow_refs())
        finally:
            options.preserve_order = before
        if not references:
            raise InvalidError(f"{what} has neither rows nor columns; leave it out")
        return references
    table = pa.Table.from_batches([pa.record_batch(batch) for batch in _hoplake.batches(rows, what)])
    _check_names(table.schema, what)
    return tuple(ray.put(table.slice(first, _BLOCK_ROWS)) for first in range(0, max(table.num_rows, 1), _BLOCK_ROWS))


#: The writer of a load, and number and reset of the version that it began from.
_Begun = tuple[str, int, int]


def _begun_of(plan: dict[str, Any]) -> _Begun:
    writer, version, reset = plan["begun"]
    return writer, version, reset


def _give_up(request: _Request, begun: _Begun | None = None) -> None:
    """Removes what a load has written, unless it is published."""
    objects = Objects(request.url, request.id)
    try:
        plan = objects.plan()
        begun = begun or (None if plan is None else _begun_of(plan))
        if begun is None or not objects.agree(f"{begun[0]}/end", {"given_up": True})["given_up"]:
            return
        wait_sync(_hoplake.give_up_load(request.url, begun))
        # Another driver may have begun anew with the id.
        of_plan = ("plan",) if plan is not None and _begun_of(plan) == begun else ()
        objects.remove(only=(f"{begun[0]}/", *of_plan))
    except Error:
        # The store does not answer: a vacuum removes what is left.
        return


def _check_names(schema: Any, what: str) -> None:
    """Rejects columns of one name."""
    names = schema.names
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise make("invalid", f"{what}: the column {twice!r} occurs twice", hint="rename one of them")


def _drive(request: _Request) -> dict[str, Any]:
    """Loads to the end, in a task of Ray."""
    return _Driver(request).run()


@dataclass(frozen=True)
class _Sorted:
    """A piece of sorted rows: of a label, or of a type; edges with the ordinals of its first and last list."""

    owner: Any
    rows: int
    reference: Any
    keys: Any = None
    ends: tuple[int, int] = (0, 0)


#: What runs in tasks.
_STEPS = ("schema", "read", "split", "vertices", "resolve", "edges", "list_begin", "write")


class _Driver:
    """A load under way: it holds numbers and references."""

    def __init__(self, request: _Request) -> None:
        self._request = request
        self._remote = {name: ray.remote(getattr(_load_steps, name)) for name in _STEPS}
        #: A reference of each step under way, by which it can be cancelled, and those of spans that are written.
        self._steps: list[Any] = []
        self._writing: list[Any] = []

    def _call(self, name: str, *arguments: Any, returns: int | str = 1) -> Any:
        """Begins a step. Ray runs it again if its process or node dies."""
        options = {"num_cpus": 1, "max_retries": -1, **self._request.task_options, "num_returns": returns}
        begun: Any = self._remote[name].options(**options).remote(*arguments)
        self._steps.append(begun[0] if is_a(begun, list) else begun)
        return begun

    def _for_ranges(self, name: str, *arguments: Any) -> list[Any]:
        """Begins a step that returns something for each range."""
        references = self._call(name, *arguments, returns=self._spec.ranges)
        return references if self._spec.ranges > 1 else [references]

    def run(self) -> dict[str, Any]:
        """Runs to the end, and returns what the load came to."""
        objects = Objects(self._request.url, self._request.id)
        tables = self._tables()
        what = _as_json([table.described() for table in tables])
        known = patiently(objects.result, self._request.patience_seconds)
        if known is None:
            self._begun, self._spec = self._planned(objects, tables, what)
            try:
                loaded = self._loaded(objects)
            except Exception as error:
                raise self._failed(_cause(error)) from None
            known = patiently(lambda: objects.agree("result", {**loaded, "what": what}), self._request.patience_seconds)
        self._patiently(lambda: objects.remove(keep=("result",)))
        if known["what"] != what:
            raise make("invalid", f"the load {self._request.id} was of other tables, and has ended", hint="give this load another id, or leave it out")
        return {name: value for name, value in known.items() if name != "what"}

    def _failed(self, error: Exception) -> Exception:
        """The error of a load that goes on no more, whose steps end."""
        for step in self._steps:
            ray.cancel(step)
        # What is still written would be left over.
        ray.wait(self._writing, num_returns=len(self._writing), timeout=_CANCEL_SECONDS, fetch_local=False)
        # What is wrong with the rows will be wrong again; otherwise another call with the id goes on.
        if isinstance(error, (InvalidError, ConflictError)) or not self._request.is_named:
            _give_up(self._request, self._begun)
        if not isinstance(error, Error):
            return error
        in_tables(error, self._spec.shown)
        message, _, _ = str(error).partition("\nhint: ")
        if error.reason == "bad_row":
            # A load of one machine could put it aside.
            return make("invalid", message, reason=error.reason, row=error.row, hint="correct the row")
        if isinstance(error, LimitError):
            return make("limit", message, reason=error.reason, hint="pass more ranges, or more memory")
        return error

    def _patiently(self, call: Any) -> Any:
        return patiently(call, self._request.patience_seconds)

    def _tables(self) -> tuple[Table, ...]:
        """The tables with their columns, which are those of all their blocks."""
        seen = [[self._call("schema", block) for block in table.references] for table in self._request.tables]
        found: list[Table] = []
        self._bytes = 0
        for table, references in zip(self._request.tables, seen):
            blocks = ray.get(references)
            self._bytes += sum(facts.bytes for facts in blocks)
            own = Table(table.label, table.key, table.ends, None, tuple(facts.rows for facts in blocks), tuple(facts.digest for facts in blocks))
            # A block that a filter has emptied may have no columns.
            schemas = [facts.schema for facts in blocks if facts.rows or len(facts.schema)] or [pa.schema([])]
            for schema in schemas:
                _check_names(schema, own.shown)
            try:
                schema = pa.unify_schemas(schemas, promote_options="permissive")
            except pa.ArrowException as error:
                raise make("invalid", f"blocks of {own.shown} have different columns: {error}") from error
            found.append(replace(own, schema=schema))
        self._ended()
        return tuple(found)

    def _planned(self, objects: Objects, tables: tuple[Table, ...], what: Any) -> tuple[_Begun, Spec]:
        """Begins the load: or goes on with one of the same id."""
        request = self._request
        plan = self._patiently(objects.plan)
        if plan is None:
            ranges = request.ranges
            if ranges is None:
                processors = int(ray.cluster_resources().get("CPU", 1))
                needed = -(-self._bytes * _RANGE_PART // request.memory)
                ranges = max(needed, min(processors, -(-self._bytes // _RANGE_BYTES)), 1)
                if ranges > _MOST_RANGES:
                    memory = -(-self._bytes * _RANGE_PART // _MOST_RANGES)
                    raise make("limit", f"the rows of a range do not fit {request.memory} bytes of memory", hint=f"pass memory={memory} or more")
            begun: _Begun = self._patiently(lambda: wait_sync(_hoplake.begin_load(request.url, request.replace)))
            own = {"what": what, "begun": begun, "ranges": ranges, "span_items": request.span_items}
            plan = self._patiently(lambda: objects.agree("plan", own))
            if _begun_of(plan) != begun:
                self._patiently(lambda: wait_sync(_hoplake.give_up_load(request.url, begun)))
        if plan["what"] != what:
            raise make("invalid", f"the load {request.id} is of other tables", hint="give this load another id, or leave it out")
        writer, base_version, _ = _begun_of(plan)
        spec = Spec(
            id=request.id,
            url=request.url,
            writer=writer,
            base_version=base_version,
            tables=tables,
            memory=request.memory,
            temp_dir=request.temp_dir,
            span_items=plan["span_items"],
            ranges=plan["ranges"],
            checkpoints=request.url,
            patience_seconds=request.patience_seconds,
        )
        return _begun_of(plan), spec

    def _ended(self) -> None:
        """Waits until all steps so far have ended, so that those after them do not begin to wait for them, with memory of their own."""
        waiting = [step for step in self._steps if not is_a(step, ray.ObjectRefGenerator)]
        ray.wait(waiting, num_returns=len(waiting), fetch_local=False)
        self._steps = []

    def _loaded(self, objects: Objects) -> dict[str, Any]:
        spec = self._spec
        own = _load_steps.steps(spec)
        names, order = own.labels()
        self._shared = ray.put(spec)
        bounds, in_order = self._vertices()
        counts = [sum(piece.rows for pieces in in_order for piece in pieces if piece.owner == label) for label in range(len(names))]
        by_label = [[piece for pieces in in_order for piece in pieces if piece.owner == label] for label in order]
        written = [self._written("vertices", by_label, {})]
        sorted_edges = self._edges(bounds, in_order, counts)
        kinds = {piece.owner for pieces in sorted_edges for of_range in pieces for piece in of_range}
        types = own.edge_types(sorted(kinds))
        numbers = {kind: number for number, kind in enumerate(types)}
        for stream, pieces in zip(("out", "in"), sorted_edges):
            by_type = [[piece for of_range in pieces for piece in of_range if piece.owner == kind] for kind in types]
            written.append(self._written(stream, by_type, numbers))
        spans: list[list[bytes]] = [ray.get(references) for references in written]
        if self._patiently(lambda: objects.agree(f"{spec.writer}/end", {"given_up": False}))["given_up"]:
            raise make("conflict", f"the load {spec.id} was given up by another driver of it", hint="call it again")
        publish = lambda: wait_sync(own.publish(spec.url, self._begun, counts, types, spans, self._request.message))  # noqa: E731
        version, vertices, edges = self._patiently(publish)
        return {"id": spec.id, "version": version, "vertices": vertices, "edges": edges}

    def _read(self, is_edges: bool) -> list[tuple[Any, Any]]:
        """The rows of all blocks that have vertices, or edges, with samples of keys."""
        found: list[tuple[Any, Any]] = []
        number = 0
        for table, of_table in enumerate(self._request.tables):
            is_read = (of_table.ends is not None) if is_edges else (of_table.ends is None or self._spec.implies_vertices)
            first = 0
            for block, rows in zip(of_table.references, self._spec.tables[table].rows):
                if is_read:
                    found.append(tuple(self._call("read", self._shared, table, number, first, block, is_edges, returns=2)))
                number, first = number + 1, first + rows
        return found

    def _vertices(self) -> tuple[list[tuple[str, Any]], list[list[_Sorted]]]:
        """Bounds of ranges, and the sorted vertices of each."""
        ranges = self._spec.ranges
        read = self._read(False)
        bounds = _load_steps.bounds(ray.get([sample for _, sample in read]), ranges)
        divided = [self._for_ranges("split", self._shared, rows, False, bounds) for rows, _ in read]
        del read
        self._ended()
        own = [[rows[number] for rows in divided] for number in range(ranges)]
        begun = [self._call("vertices", self._shared, references, returns="streaming") for references in own]
        found: list[list[_Sorted]] = []
        for generator in begun:
            pieces: list[_Sorted] = []
            for facts, keys, rows in _yielded(generator, 3):
                label, count = ray.get(facts)
                pieces.append(_Sorted(label, count, rows, keys))
            found.append(pieces)
        return bounds, found

    def _edges(
        self, bounds: list[tuple[str, Any]], in_order: list[list[_Sorted]], counts: list[int]
    ) -> tuple[list[list[_Sorted]], list[list[_Sorted]]]:
        """The sorted edges of each range, by their source, and by their target."""
        ranges = self._spec.ranges
        firsts: list[list[int]] = []
        keys: list[list[Keys]] = [[] for _ in range(ranges)]
        for label in range(len(counts)):
            first = 0
            firsts.append([])
            for number, pieces in enumerate(in_order):
                firsts[label].append(first)
                for piece in pieces:
                    if piece.owner == label:
                        keys[number].append(Keys(label, first, piece.keys))
                        first += piece.rows
        divided = [self._for_ranges("split", self._shared, rows, False, bounds) for rows, _ in self._read(True)]
        self._ended()
        of_source: list[Any] = []
        for number in range(ranges):
            references = [rows[number] for rows in divided]
            of_source.append(self._for_ranges("resolve", self._shared, False, keys[number], references, bounds, firsts))
        self._ended()
        del divided
        of_target: list[Any] = []
        for number in range(ranges):
            arguments = (self._shared, True, keys[number], [rows[number] for rows in of_source], bounds, firsts)
            of_target.append(self._call("resolve", *arguments, returns=ranges + 1))
        self._ended()
        del of_source
        out: list[Any] = []
        for number in range(ranges):
            references = [rows[number + 1] for rows in of_target]
            out.append(self._call("edges", self._shared, False, counts, references, returns="streaming"))
        into = [self._call("edges", self._shared, True, counts, [rows[0]], returns="streaming") for rows in of_target]
        return [self._sorted(generator) for generator in out], [self._sorted(generator) for generator in into]

    def _sorted(self, generator: Any) -> list[_Sorted]:
        pieces: list[_Sorted] = []
        for facts, rows in _yielded(generator, 2):
            kind, count, first, last = ray.get(facts)
            pieces.append(_Sorted(tuple(kind), count, rows, ends=(first, last)))
        return pieces

    def _written(self, stream: str, sections: list[list[_Sorted]], numbers: dict[Any, int]) -> list[Any]:
        """Begins to write the spans of a stream, whose sections follow each other."""
        each = self._spec.span_items
        spans: list[tuple[int, list[Piece]]] = []
        items, end = 0, 0
        for section in sections:
            first = 0
            for at, piece in enumerate(section):
                offset = 0
                while offset < piece.rows:
                    until = piece.rows
                    if items >= end:
                        until = offset if stream == "vertices" else self._list_begin(section, at, offset)
                    if until == offset:
                        spans.append((items, []))
                        end = (items // each + 1) * each
                        until = piece.rows
                    # Of a list that began before the end of the span, all edges are in it.
                    rows = until - offset if items >= end else min(until - offset, end - items)
                    owner, kind = (piece.owner, None) if stream == "vertices" else (numbers[piece.owner], piece.owner)
                    spans[-1][1].append(Piece(owner, kind, first, offset, rows, piece.reference))
                    offset, first, items = offset + rows, first + rows, items + rows
        # Below the name of the writer: a load that was given up may have had the same id.
        own = f"{self._spec.writer}/{stream}"
        begun = [self._call("write", self._shared, f"{own}/{items // each:08}", stream, items, pieces) for items, pieces in spans]
        self._writing += begun
        return begun

    def _list_begin(self, section: list[_Sorted], at: int, row: int) -> int:
        """The first row of a piece, from one on, at which a list begins: its end if there is none."""
        if at == 0 and row == 0:
            return 0
        piece = section[at]
        if row == 0:
            before = section[at - 1].ends[1]
            if piece.ends[0] != before:
                return 0
        elif piece.ends[0] == piece.ends[1]:
            return piece.rows
        else:
            before = None
        found = ray.get(self._call("list_begin", piece.reference, row, before))
        return piece.rows if found is None else int(found)


def _yielded(generator: Any, each: int) -> list[list[Any]]:
    """What a step yielded, so many at a time."""
    references = list(generator)
    if len(references) % each:
        # The error that ended it is its last value.
        ray.get(references[-1])
    return [references[at : at + each] for at in range(0, len(references), each)]


def _as_json(value: Any) -> Any:
    """A value as it is once it was written and read."""
    return json.loads(json.dumps(value))
