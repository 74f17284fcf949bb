"""A graph and its calls."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from operator import index
from os import PathLike, fspath
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Union

from .. import _hoplake
from .._changes import (
    Committed,
    Compacted,
    Difference,
    Exported,
    Index,
    Loaded,
    Mirrored,
    PreparedQuery,
    Vacuumed,
    Verified,
    Version,
)
from .._cost import Cost
from .._errors import Error, InvalidError, make
from .._plot import plot
from .._schema import Info, Schema
from .._table import Rows, Table
from .._waiting import Progress, wait_async, wait_sync
from .._walks import Path, Vertex, Walk
from .commit import Commit
from .computation import Computation
from .results import Plan, Profile, Results, Scan
from .traversal import Traversal

if TYPE_CHECKING:
    import networkx
    from matplotlib.axes import Axes

    from ..nx import Graph as NxGraph

#: A vertex: ``"Person:933"``, ``"airport[code = AUS]"``, ``("Person", 933)``, or a vertex of a walk.
VertexName = Union[str, "tuple[str, int | str]", Vertex]

#: A location: a folder, or a URL such as ``s3://bucket/prefix``.
Location = Union[str, "PathLike[str]"]


def _one(vertex: Any) -> Any:
    """A vertex as the extension takes it."""
    return (vertex.label, vertex.key) if isinstance(vertex, Vertex) else vertex


def _several(vertices: Any) -> list[Any]:
    """Vertices of one or several. A tuple is one: a label and a key."""
    items: Any = vertices
    if isinstance(vertices, Table):
        return list(zip(vertices["label"], vertices["key"]))
    if isinstance(vertices, (str, tuple, Vertex)):
        return [_one(vertices)]
    if not isinstance(vertices, Iterable):
        raise make("invalid", f"{vertices!r} does not name a vertex; write \"Person:933\" or (\"Person\", 933)")
    return [_one(vertex) for vertex in items]


def _start(value: Any) -> Any:
    """An option of an algorithm; vertices as the extension takes them."""
    items: Any = value
    return [_one(vertex) for vertex in items] if isinstance(value, list) else _one(value)


def _names(names: str | Iterable[str] | None) -> list[str]:
    if names is None:
        return []
    return [names] if isinstance(names, str) else list(names)


def _names_or_all(names: str | Iterable[str] | None) -> list[str] | None:
    return None if names is None else _names(names)


def _seconds(time: float | timedelta | None) -> float | None:
    return time.total_seconds() if isinstance(time, timedelta) else time


class Graph:
    """One version of a graph, open for reading.

    Every call runs on threads of its own with the interpreter lock released, and ends promptly with Ctrl-C. A graph may be used from several
    threads, can be pickled (its location and version, never credentials), and works in processes that were forked or spawned, which open it
    again. It keeps its version until :meth:`refresh`.

    >>> import hoplake
    >>> people = {"key": [1, 2, 3], "name": ["Ann", "Bo", "Cy"]}
    >>> knows = {"source": [1, 2], "target": [2, 3], "since": [2020, 2021]}
    >>> edges = {("Person", "knows", "Person"): knows}
    >>> loaded = hoplake.load("memory://docs/graph", vertices={"Person": people}, edges=edges)
    >>> graph = hoplake.open("memory://docs/graph")
    >>> graph.version, graph.count("Person")
    (1, 3)
    >>> graph.traverse("Person:1").out("knows").out("knows").rows("name")["name"]
    ['Cy']
    """

    def __init__(self, core: _hoplake.Graph) -> None:
        self._core = core
        self._schema: Schema | None = None

    @property
    def url(self) -> str:
        """Where it is."""
        return self._core.url

    @property
    def version(self) -> int:
        """The version that is open."""
        version = self._core.version
        return version if version is not None else wait_sync(self._core.ready())

    @property
    def schema(self) -> Schema:
        """Labels, edge types and properties. In a process where the graph is not open yet, this opens it."""
        if self._schema is None:
            self._schema = wait_sync(self._core.schema())
        return self._schema

    async def info(self) -> Info:
        """Counts and sizes."""
        return await wait_async(self._core.info())

    def within(
        self,
        *,
        seconds: float | timedelta | None = None,
        vertices: int | None = None,
        requests: int | None = None,
        bytes: int | None = None,
        dollars: float | None = None,
        memory: int | None = None,
    ) -> Graph:
        """The same graph, each of whose calls ends with a :class:`hoplake.LimitError` beyond these limits.

        Args:
            seconds: time.
            vertices: vertices that a traversal visits or a scan finds.
            requests: requests to the store.
            bytes: bytes from the store.
            dollars: US dollars for requests and bytes.
            memory: bytes of memory for what a call builds; caches do not count.
        """
        return Graph(self._core.within(_seconds(seconds), vertices, requests, bytes, dollars, memory))

    async def refresh(self) -> bool:
        """Moves on to the newest version, and returns whether there was a newer one. Calls under way stay where they are."""
        moved = await wait_async(self._core.refresh())
        if moved:
            self._schema = None
        return moved

    async def at(self, version: int | str | datetime) -> Graph:
        """Another version of the graph, with the same limits: by its number, its tag, or the time (``datetime``) at which it was the newest."""
        url, _, cache, folder, disk, mapped = self._core.location()
        tag = version if isinstance(version, str) else None
        as_of = _time(version) if isinstance(version, datetime) else None
        number = None if isinstance(version, (str, datetime)) else index(version)
        core = await wait_async(_hoplake.Graph.open(url, number, tag, as_of, cache, folder, disk, mapped))
        return Graph(core.within(*self._core.limits()))

    @property
    def cost(self) -> Cost:
        """What all calls of this graph so far have cost, with those of graphs that :meth:`within` made of it."""
        return self._core.cost

    def close(self) -> None:
        """Releases its caches and connections. The next call opens it again, at the same version."""
        self._core.close()

    # Reading

    async def get(
        self, vertices: VertexName | Iterable[VertexName] | Table, *, select: str | Iterable[str] | None = None
    ) -> Table:
        """Vertices by key or condition, with these properties, or all that they have.

        Raises:
            NotFoundError: a vertex, label or property is not there.
        """
        return Table(await wait_async(self._core.get(_several(vertices), _names_or_all(select))))

    def scan(
        self,
        labels: str | Iterable[str] | None = None,
        *,
        where: str | None = None,
        select: str | Iterable[str] | None = None,
        order_by: str | Iterable[str] | None = None,
        limit: int | None = None,
    ) -> Scan:
        """Vertices of these labels, or of all, that match a condition. Nothing is read before rows are taken, and then as they are taken.

        Args:
            labels: labels of vertices.
            where: a condition, such as ``"age > 30 and city = Austin"``; ``~key`` is the key. :func:`hoplake.quote` makes any value a part of one.
            select: properties to read; all by default, and none with ``[]``.
            order_by: properties of one label to sort by, such as ``"age desc"``; ``~key`` is the key.
            limit: the most vertices to return.
        """
        core, arguments = self._core, (_names(labels), where, _names_or_all(select), _names(order_by), limit)
        return Scan(lambda: core.scan(*arguments))

    def scan_edges(
        self,
        label: str | None = None,
        *,
        source_label: str | None = None,
        target_label: str | None = None,
        select: str | Iterable[str] | None = None,
        limit: int | None = None,
    ) -> Scan:
        """Edges of a label, or of all, between vertices of these labels, a row each. Nothing is read before rows are taken.

        The columns are ``label``, ``source_label``, ``source``, ``target_label``, ``target``, then properties.
        """
        core, arguments = self._core, (label, source_label, target_label, _names_or_all(select), limit)
        return Scan(lambda: core.scan_edges(*arguments))

    async def to_networkx(self) -> networkx.MultiDiGraph[tuple[str, int | str]]:
        """All of it as a graph of networkx, whose nodes are pairs of label and key, with properties as attributes."""
        vertices, edges = await self.scan().table(), await self.scan_edges().table()
        graph = vertices.to_networkx()
        graph.update(edges.to_networkx())
        return graph

    async def count(self, labels: str | Iterable[str] | None = None, *, where: str | None = None) -> int:
        """How many vertices there are, of these labels and with this condition. Without a condition nothing is read."""
        return await wait_async(self._core.count(_names(labels), where))

    async def neighbors(
        self,
        vertices: VertexName | Iterable[VertexName] | Table,
        hop: str = "out",
        *,
        select: str | Iterable[str] | None = None,
        limit: int | None = None,
        ids: bool = False,
    ) -> Table:
        """The edges of a hop from vertices, a row each.

        ``from_label`` and ``from_key`` are label and key of the vertex that the edge was followed from, ``edge`` is its label, ``direction`` is ``out``
        or ``in``, ``label`` and ``key`` are of the vertex at its other end.

        Args:
            vertices: where the hop begins.
            hop: a direction, edge labels and a condition, such as ``"both:knows[since > 2020]"``.
            select: properties of the edge or, where its type does not have them, of the vertex at the other end.
            limit: the most edges to return.
            ids: whether the column ``edge_id`` comes first.
        """
        return Table(await wait_async(self._core.neighbors(_several(vertices), hop, _names(select), limit, ids)))

    async def degrees(self, vertices: VertexName | Iterable[VertexName] | Table, hop: str = "both") -> list[int]:
        """How many edges of a hop each of some vertices has, in the order given."""
        return await wait_async(self._core.degrees(_several(vertices), hop))

    def traverse(self, vertices: VertexName | Iterable[VertexName]) -> Traversal:
        """Begins a traversal, which is built hop by hop. Nothing is read before its last step.

        ``graph.traverse("airport:3").out("route", where="dist > 500").out("route").rows("code")``
        """
        return Traversal(self._core, _several(vertices))

    async def path(
        self,
        source: VertexName,
        target: VertexName,
        hop: str = "both",
        *,
        weight: str | None = None,
        max_edges: int = 16,
        select: str | Iterable[str] | None = None,
    ) -> Path | None:
        """A shortest path between two vertices, or ``None`` if there is none.

        Args:
            source: where it begins.
            target: where it ends.
            hop: which edges it may take, and in which direction.
            weight: a property of edges, 0 or more, whose sum is to be least; otherwise their number is.
            max_edges: the longest path that is looked for, without ``weight``.
            select: properties of vertices and edges to read.

        Raises:
            LimitError: no path of up to ``max_edges`` edges was found; longer paths were not searched.
        """
        task = self._core.path(_one(source), _one(target), hop, weight, max_edges, _names(select))
        walk, length, is_exhausted, _ = await wait_async(task)
        if walk is not None:
            return Path(walk.vertices, walk.edges, length if length is not None else len(walk.edges))
        if is_exhausted:
            return None
        message = f"no path of up to {max_edges} edges was found; longer paths were not searched"
        raise make("limit", message, hint="raise max_edges")

    async def neighborhood(
        self,
        vertex: VertexName,
        hop: str = "both",
        *,
        depth: int = 1,
        select: str | Iterable[str] | None = None,
        limit: int | None = None,
    ) -> Table:
        """The vertices that are at most ``depth`` hops away from a vertex, nearest first, with the column ``distance``. Without itself."""
        return Table(await wait_async(self._core.neighborhood(_one(vertex), hop, depth, _names(select), limit)))

    async def plot(
        self,
        vertex: VertexName,
        hop: str = "both",
        *,
        depth: int = 1,
        limit: int = 60,
        caption: str | None = None,
        axes: Axes | None = None,
    ) -> Axes:
        """Draws what is within some hops of a vertex with matplotlib, and returns the axes.

        Args:
            vertex: the middle, which has a black ring.
            hop: which edges are followed, such as ``"out:route[dist < 500]"``.
            depth: how many hops.
            limit: the most walks of each length that are drawn.
            caption: a property that names vertices in the picture; their keys do without.
            axes: where it is drawn; a new figure by default.
        """
        select = [] if caption is None else [caption]
        walks: list[Walk] = []
        for length in range(1, depth + 1):
            task = self._core.walks([_one(vertex)], [hop] * length, select, limit, False)
            found, _ = await wait_async(task)
            walks.extend(found)
        start = (walks[0].vertices[0].label, walks[0].vertices[0].key) if walks else None
        return plot(walks, start, caption, axes)

    # Gremlin

    async def query(
        self, text: str, parameters: Mapping[str, Any] | None = None, /, *, commit: bool = False, **values: Any
    ) -> Results:
        """Runs a query of Gremlin, such as ``"g.V().has('code', code).out().values('name')"``, with values for its names.

        Args:
            text: the query; of several statements the results of the last.
            parameters: values of names in the text, which is safe whatever they are.
            commit: lets it change the graph: all changes are one version, and a failure is none. The graph stays at its version until
                :meth:`refresh`.
            values: the same as keyword arguments.
        """
        task = self._core.query(text, {**(parameters or {}), **values}, commit)
        return Results(*await wait_async(task))

    async def explain(self, text: str, parameters: Mapping[str, Any] | None = None, /, **values: Any) -> Plan:
        """How a query of Gremlin would run: the steps of its plan, and what each reads. Nothing is read."""
        (plan,) = await self.query(f"{text.rstrip().rstrip(';')}.explain()", parameters, **values)
        return Plan(plan)

    async def profile(self, text: str, parameters: Mapping[str, Any] | None = None, /, **values: Any) -> Profile:
        """Runs a query of Gremlin, and returns what each of its steps took in place of its results."""
        (metrics,) = await self.query(f"{text.rstrip().rstrip(';')}.profile()", parameters, **values)
        return Profile(metrics)

    async def call(self, name: str, /, **parameters: Any) -> Results:
        """Calls a prepared query, ``name`` or ``name@number``."""
        return Results(*await wait_async(self._core.call(name, parameters)))

    async def queries(self) -> list[PreparedQuery]:
        """The prepared queries of the version."""
        return [PreparedQuery(*fields) for fields in await wait_async(self._core.queries())]

    async def save_query(self, name: str, text: str, parameters: str | Iterable[str] = (), *, description: str = "") -> int:
        """Saves a query of Gremlin under a name, and returns the number of this edition. ``parameters`` are such as ``"most:int64=10"``.

        The graph has it after :meth:`refresh`.
        """
        number, _ = await wait_async(self._core.save_query(name, text, _names(parameters), description))
        return int(number)

    async def delete_query(self, name: str) -> int:
        """Deletes a prepared query, or with ``name@number`` one edition, and returns the version without it."""
        return await wait_async(self._core.delete_query(name))

    # Whole graphs

    async def run(
        self,
        algorithm: str,
        *,
        edges: str | None = None,
        labels: str | Iterable[str] | None = None,
        lists: Literal["automatic", "memory", "packed", "streamed"] = "automatic",
        threads: int | None = None,
        checkpoint: Location | None = None,
        asynchronous: bool = False,
        progress: Progress = False,
        **options: Any,
    ) -> Computation:
        """Computes an algorithm over the whole graph; :func:`hoplake.algorithms` lists them with their options.

        ``graph.run("pagerank", edges="out:knows", damping=0.9).top(20)``

        Args:
            algorithm: its name.
            edges: which edges take part: a direction, edge labels and a condition; all by default.
            labels: vertices with these labels take part, with or without such edges.
            lists: where lists of edges are: ``automatic``, ``memory``, ``packed`` or ``streamed``.
            threads: how many compute; all processors by default.
            checkpoint: a file from which a computation that was killed goes on.
            asynchronous: whether the vertices that have most to do go first, instead of supersteps.
            progress: ``True`` for a bar of tqdm, or a function that is called with a step, how much of it is done, and of how much or ``None``.
            options: options of the algorithm, such as ``damping``. Vertices to begin at are ``from_``, since Python has ``from`` for itself:
                one, or a list where the algorithm takes several.
        """
        file = None if checkpoint is None else fspath(checkpoint)
        # A word that Python has for itself.
        options = {name.rstrip("_").replace("_", "-"): _start(value) for name, value in options.items()}
        task = self._core.run(algorithm.replace("_", "-"), options, edges, _names(labels), lists, threads, file, asynchronous)
        return Computation(await wait_async(task, progress))

    def nx(self, *edge_labels: str, directed: bool = True) -> NxGraph:
        """The vertices and edges of these labels, or of all, for functions of networkx: ``networkx.pagerank(graph.nx("knows"))``.

        They are computed on the bucket, without a conversion (:mod:`hoplake.nx`).
        """
        from .._sync.graph import Graph as SyncGraph
        from ..nx import Graph as NxGraph

        return NxGraph(SyncGraph(self._core), edge_labels, directed=directed)

    # Changing

    def begin(
        self,
        message: str = "",
        *,
        on_newest: bool = False,
        strict: bool = False,
        create_missing: bool = False,
        idempotency_key: str | None = None,
        positions: Mapping[str, str] | None = None,
        if_positions: Mapping[str, str | None] | None = None,
        seconds: float | timedelta | None = None,
    ) -> Commit:
        """A batch of changes, based on this version: it is applied as a whole by :meth:`Commit.commit`, or at the end of a ``with`` block.

        What another writer changes of the same vertices and edges until then is a :class:`hoplake.ConflictError`. The graph itself stays at its
        version until :meth:`refresh`.

        Args:
            message: kept with the version.
            on_newest: base it on the newest version at the time of the commit: what others changed is then changed again.
            strict: reject labels, edge types and properties that the graph does not have.
            create_missing: make ends of edges that are not there.
            idempotency_key: a name for the batch; if one of the last batches had it, it is not applied again.
            positions: up to where sources were read once this is applied.
            if_positions: apply only if sources were read up to here, or not at all (``None``).
            seconds: what the commit may take; 2 minutes by default.
        """
        return Commit(
            self._core,
            message=message,
            base=None if on_newest else self.version,
            strict=strict,
            create_missing=create_missing,
            idempotency_key=idempotency_key,
            positions=dict(positions or {}),
            if_positions=dict(if_positions or {}),
            seconds=_seconds(seconds),
        )

    async def apply(
        self,
        changes: Rows | Location | None = None,
        *,
        json_lines: str | None = None,
        message: str = "",
        strict: bool = False,
        create_missing: bool = False,
    ) -> Committed:
        """Applies changes to the newest version, all or none. The graph itself stays at its version until :meth:`refresh`.

        Args:
            changes: a table with the columns of changes, or a file of them: JSON Lines, CSV or Parquet.
            json_lines: changes as text, a JSON object a line.
            message: kept with the version.
            strict: reject labels, edge types and properties that the graph does not have.
            create_missing: make ends of edges that are not there.
        """
        commit = self.begin(message, on_newest=True, strict=strict, create_missing=create_missing)
        commit.add(changes, json_lines=json_lines)
        return await commit.commit()

    # Versions and copies

    async def log(self, limit: int = 20) -> list[Version]:
        """The newest versions, newest first: what made each, when, and why."""
        return await wait_async(self._core.log(limit))

    async def diff(
        self,
        before: int | str | datetime,
        after: int | str | datetime | None = None,
        *,
        labels: str | Iterable[str] | None = None,
        limit: int | None = None,
    ) -> list[Difference]:
        """The differences between two versions; the second is this one by default. ``limit`` is the most differences to return."""
        first = await self.at(before)
        second = self if after is None else await self.at(after)
        return await wait_async(first._core.diff(second._core, _names(labels), _ALL if limit is None else limit))

    async def tag(self, name: str, version: int | None = None) -> int | None:
        """Names a version, this one by default, which no vacuum removes from then on.

        Returns the number of the new version that has this change, or ``None`` if nothing was to change.
        """
        return await wait_async(self._core.tag(name, self.version if version is None else version))

    async def untag(self, name: str) -> int | None:
        """Removes a tag. Returns the number of the new version that has this change, or ``None`` if there was no such tag."""
        return await wait_async(self._core.tag(name, None))

    async def restore(self, version: int, message: str = "") -> int:
        """Publishes the content of an older version as the newest version, and returns its number."""
        return await wait_async(self._core.restore(version, message))

    async def clone(self, target: Location, version: int | None = None) -> str:
        """Makes a graph elsewhere in the bucket with the content of this version, without copying. Returns the tag that keeps it here."""
        return await wait_async(self._core.clone_to(fspath(target), self.version if version is None else version))

    async def mirror(self, target: Location, *, progress: Progress = False) -> Mirrored:
        """Copies the newest version to another store, usually a folder, or brings that copy up to date."""
        return await wait_async(self._core.mirror(fspath(target)), progress)

    async def export(
        self,
        target: Location,
        *,
        format: Literal["parquet", "csv", "neo4j", "gremlin", "graphml"] = "parquet",
        labels: str | Iterable[str] | None = None,
        overwrite: bool = False,
        progress: Progress = False,
    ) -> Exported:
        """Writes the version as files below a folder or URL: ``parquet``, ``csv``, ``neo4j``, ``gremlin`` or ``graphml``."""
        task = self._core.export(fspath(target), format, _names(labels), overwrite)
        return await wait_async(task, progress)

    # Upkeep

    async def compact(self, *, memory: int | None = None, everything: bool = False) -> Compacted:
        """Merges sorted runs that are due, or all. No answer changes."""
        return await wait_async(self._core.compact(memory, everything))

    async def vacuum(self, *, keep_versions: int | None = None, keep: float | timedelta | None = None) -> Vacuumed:
        """Removes versions that are not kept, and what no version names. Without arguments all versions are kept."""
        return Vacuumed(*await wait_async(self._core.vacuum(keep_versions, _seconds(keep))))

    async def verify(self, *, progress: Progress = False) -> Verified:
        """Reads all versions and checks them."""
        return Verified(*await wait_async(self._core.verify(), progress))

    async def create_index(self, name: str, *, memory: int | None = None) -> int:
        """Builds an index of a property of vertices, ``"airport.code"``, and returns the version that has it."""
        version, _, _ = await wait_async(self._core.create_index(name, memory))
        return int(version)

    async def drop_index(self, name: str) -> int:
        """Takes an index out, and returns the version without it."""
        return await wait_async(self._core.drop_index(name))

    async def indexes(self) -> list[Index]:
        """The indexes of the version."""
        return [Index(*fields) for fields in await wait_async(self._core.indexes())]

    async def __aenter__(self) -> Graph:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> Any:
        if self.url.startswith("memory:"):
            raise TypeError(f"{self.url} is in the memory of this process, and cannot be pickled for another one")
        limits = self._core.limits()
        return _graph_at, (type(self), self._core.location(), limits)

    def __repr__(self) -> str:
        return f"<hoplake.Graph {self.url} at version {self.version}>"

    def _repr_html_(self) -> str:
        from html import escape

        return f"<p><b>{escape(self.url)}</b>, version {self.version}</p>{self.schema._repr_html_()}"


def _graph_at(kind: type[Graph], location: tuple[Any, ...], limits: tuple[Any, ...]) -> Graph:
    """A graph that was pickled."""
    return kind(_hoplake.Graph(*location).within(*limits))


#: More than there can be.
_ALL = 2**63 - 1


def _time(time: datetime) -> str:
    if time.tzinfo is None:
        raise InvalidError("a datetime has no time zone; give one, as in datetime.now(timezone.utc)")
    return time.isoformat()


async def open(
    url: Location,
    *,
    version: int | None = None,
    tag: str | None = None,
    as_of: datetime | str | None = None,
    cache: int | None = None,
    disk_cache: Location | None = None,
    disk_cache_size: int | None = None,
    mapped: bool = False,
) -> Graph:
    """Opens the newest version of a graph, or another, in two round trips.

    Args:
        url: a folder, or ``s3://bucket/prefix``, ``gs://``, ``az://``, ``memory://``. Credentials are those of the environment.
        version: the number of another version.
        tag: the tag of another version.
        as_of: the time at which another version was the newest.
        cache: bytes of memory for blocks of the graph; 256 MiB by default.
        disk_cache: a folder that keeps blocks for the next time, and which several processes may share.
        disk_cache_size: its bytes; 8 GiB by default.
        mapped: map the files of a graph in a folder into memory: the system's page cache is the cache.

    Raises:
        NotFoundError: the graph or the version does not exist.
        UnavailableError: the store cannot be reached, or rejects the credentials.
    """
    if sum(given is not None for given in (version, tag, as_of)) > 1:
        raise InvalidError("version, tag and as_of name one version in three ways; give one of them")
    time = _time(as_of) if isinstance(as_of, datetime) else as_of
    folder = None if disk_cache is None else fspath(disk_cache)
    task = _hoplake.Graph.open(fspath(url), version, tag, time, cache, folder, disk_cache_size, mapped)
    return Graph(await wait_async(task))


async def create(url: Location) -> bool:
    """Makes a graph without labels, for commits to fill, and returns whether it did: an empty graph that is there stays."""
    return await wait_async(_hoplake.Graph.create(fspath(url)))


#: Tables of vertices by label.
VertexTables = Mapping[str, Rows]

#: Labels of source, edge and target.
EdgeName = tuple[str, str, str]

#: Tables of edges: ``{("Person", "knows", "Person"): table}``, or a list of pairs, in which several may be alike.
EdgeTables = Union["Mapping[EdgeName, Rows]", "Sequence[tuple[EdgeName, Rows]]"]


async def load(
    url: Location,
    files: Location | Iterable[Location] = (),
    *,
    mapping: Location | None = None,
    vertices: VertexTables | None = None,
    edges: EdgeTables | None = None,
    keys: Mapping[str, str] | None = None,
    ends: tuple[str, str] | Mapping[EdgeName, tuple[str, str]] | None = None,
    memory: int | None = None,
    threads: int | None = None,
    temp_dir: Location | None = None,
    order: Literal["keys", "locality"] | None = None,
    indexes: Iterable[str] | None = None,
    replace: bool = False,
    message: str = "",
    rejects: Location | None = None,
    progress: Progress = False,
) -> Loaded:
    """Loads a graph from files, from URLs, or from tables in memory. Nothing of it is visible until all of it is.

    Args:
        url: where the graph is to be.
        files: files and folders, URLs of objects and folders in stores, or of files on web servers. The layout is recognised: LDBC SNB, Gremlin or
            neo4j-admin CSV, edge lists, or the files of a mapping.
        mapping: a TOML file that assigns columns of files to the graph.
        vertices: tables of vertices by label. The column ``key`` or ``id`` has their keys; every other one is a property.
        edges: tables of edges by labels of source, edge and target. The columns ``source`` and ``target`` (or ``from`` and ``to``, ``src`` and
            ``dst``) have the keys of their ends. Without any table of vertices, the vertices are those that edges name.
        keys: the columns of keys by label, if they are called otherwise.
        ends: the columns of the ends of edges, if they are called otherwise: of all tables, or by labels of source, edge and target.
        memory: bytes of memory; what does not fit is sorted in temporary files. 1 GiB by default.
        threads: all processors by default.
        temp_dir: where temporary files go.
        order: the order of vertices: ``"keys"``, or ``"locality"`` for neighbours close to each other.
        indexes: properties of vertices that get an index, such as ``"airport.code"``.
        replace: whether a graph that is there may be replaced; its versions stay readable.
        message: kept with the version.
        rejects: load what can be loaded, and write other rows to this CSV file; otherwise the first ends the load.
        progress: ``True`` for a bar, or a function.

    Raises:
        ConflictError: there is a graph, and ``replace`` is not set.
        InvalidError: a row cannot be loaded; the message names it.
    """
    if (vertices or edges) and (mapping is not None or files):
        raise make("invalid", "a load reads either files or tables in memory; load one, and apply the other as changes")
    if not (vertices or edges or mapping is not None or files):
        raise make("invalid", "there is nothing to load; give files, a mapping, or tables of vertices and edges")
    paths: list[Location] = [files] if isinstance(files, (str, PathLike)) else list(files)
    of_labels = dict(keys or {})
    for label in of_labels:
        if label not in (vertices or {}):
            raise make("invalid", f"keys names the label {label!r}, but vertices has no table for it")
    of_vertices = [(label, of_labels.get(label), rows) for label, rows in (vertices or {}).items()]
    pairs: list[tuple[EdgeName, Rows]] = list(edges.items() if isinstance(edges, Mapping) else edges or ())
    of_edges = [_edges(name, rows, ends) for name, rows in pairs]
    given: dict[str, Any] = {
        "memory": memory,
        "threads": threads,
        "temp_dir": None if temp_dir is None else fspath(temp_dir),
        "order": order,
        "indexes": None if indexes is None else _names(indexes),
        "replace": replace,
        "message": message,
        "rejects": None if rejects is None else fspath(rejects),
    }
    options = {name: value for name, value in given.items() if value is not None}
    map_file = None if mapping is None else fspath(mapping)
    task = _hoplake.load(
        fspath(url), [fspath(path) for path in paths], map_file, of_vertices, of_edges, not of_vertices, options
    )
    try:
        return await wait_async(task, progress)
    except Error as error:
        # Tables in memory become files of a temporary folder, whose name says nothing.
        error.args = tuple(_FOLDER.sub("", str(part)) for part in error.args)
        raise


_FOLDER = re.compile(r"\S*hoplake-tables-[^/\\]*[/\\]")


def _edges(
    name: EdgeName, rows: Rows, ends: tuple[str, str] | Mapping[EdgeName, tuple[str, str]] | None
) -> tuple[str, tuple[str, str | None], tuple[str, str | None], Rows]:
    """A table of edges, and the columns of its ends if they were named."""
    parts: Any = name
    if isinstance(parts, str) or len(name) != 3:
        message = f'edges are named by labels of source, edge and target, as in ("Person", "knows", "Person"), not {name!r}'
        raise make("invalid", message)
    first, label, last = name
    source, target = (ends.get(name) if isinstance(ends, Mapping) else ends) or (None, None)
    return label, (first, source), (last, target), rows
