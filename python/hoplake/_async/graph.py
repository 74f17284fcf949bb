"""Graphs: open, create, load, and everything that is read from or written to them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from .. import _hoplake, _rows
from .._arguments import (
    Location,
    MOST,
    as_text,
    file,
    in_seconds,
    is_a,
    location,
    names,
    names_or_all,
    shown,
    text_or_none,
    whole,
    whole_or_none,
    zoned,
)
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
from .._columns import Vertices, numpy
from .._cost import Cost
from .._errors import Error, InvalidError, make
from .._load_tables import EdgeName, EdgeTables, VertexTables, edge_pairs, edge_tables, in_tables, vertex_tables
from .._named import VertexName, one, option, several
from .._plot import plot
from .._samples import Counts, FeatureNames, fan_outs, feature_names
from .._schema import Info, Schema
from .._table import Rows, Table
from .._supersteps import Combine, Functions, Initial
from .._waiting import Progress, wait_async, wait_sync
from .._walks import Path, Walk
from .commit import Commit
from .computation import Computation
from .program import run_program
from .results import Plan, Profile, Results, Scan
from .sampler import Sampler
from .traversal import Traversal

if TYPE_CHECKING:
    import networkx
    from matplotlib.axes import Axes

    from ..nx import Graph as NxGraph


#: Strings, comments, and what is between them.
_TOKEN = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|//[^\r\n]*|[^'"/]+|.""", re.DOTALL)


def _with_step(text: str, step: str) -> str:
    """A query with one more step at its end, whatever comments are there."""
    bare = "".join(token for token in _TOKEN.findall(text) if not token.startswith("//"))
    return f"{bare.rstrip().rstrip(';').rstrip()}\n.{step}()"


#: The most hops of a picture: each is a query of its own, and more cannot be told apart.
_DRAWN_DEPTH_MAX = 32


class Graph:
    """One version of a graph, open for reading.

    Calls run on background threads with the interpreter lock released, and end promptly on Ctrl-C. A graph may be used from several threads, can be
    pickled (its location and version, never credentials), and works in forked and spawned processes, which open it again. It stays at its version
    until :meth:`refresh`.

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
        """The location of the graph. A folder is an absolute path."""
        return self._core.url

    @property
    def version(self) -> int:
        """The number of the version that is open."""
        version = self._core.version
        return version if version is not None else wait_sync(self._core.ready())

    @property
    def schema(self) -> Schema:
        """Labels, edge types and properties. If the graph is not open in this process yet, this opens it."""
        if self._schema is None:
            self._schema = wait_sync(self._core.schema())
        return self._schema

    async def info(self) -> Info:
        """Counts and sizes of the version."""
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
        """A view of this graph whose calls raise :class:`hoplake.LimitError` when they exceed these limits.

        Args:
            seconds: the duration of a call.
            vertices: vertices that a traversal visits or a scan finds.
            requests: requests to the store.
            bytes: bytes read from the store.
            dollars: US dollars for requests and bytes.
            memory: bytes of memory that a call uses for its results; caches do not count.
        """
        given = {"vertices": vertices, "requests": requests, "bytes": bytes, "memory": memory}
        counts = {name: whole_or_none(name, value) for name, value in given.items()}
        core = self._core.within(
            in_seconds(seconds), counts["vertices"], counts["requests"], counts["bytes"], dollars, counts["memory"]
        )
        return Graph(core)

    async def refresh(self) -> bool:
        """Switches to the newest version, and returns whether there was a newer one. Calls in progress keep their version."""
        moved = await wait_async(self._core.refresh())
        if moved:
            self._schema = None
        return moved

    async def at(self, version: int | str | datetime) -> Graph:
        """Opens another version of the graph, with the same limits.

        Args:
            version: its number, its tag, or a ``datetime`` at which it was the newest version.

        Raises:
            NotFoundError: the version or tag does not exist.
        """
        url, _, cache, folder, disk, mapped = self._core.location()
        tag = version if isinstance(version, str) else None
        as_of = zoned(version) if isinstance(version, datetime) else None
        number = None if isinstance(version, (str, datetime)) else whole("version", version)
        core = await wait_async(_hoplake.Graph.open(url, number, tag, as_of, cache, folder, disk, mapped))
        return Graph(core.within(*self._core.limits()))

    @property
    def cost(self) -> Cost:
        """What all calls of this graph have cost so far, including calls through :meth:`within`, those that failed, and those under way.

        A commit that failed counts without what it read and wrote. Opening the graph does not count.
        """
        return self._core.cost

    def close(self) -> None:
        """Releases caches and connections. The next call opens the graph again, at the same version."""
        self._core.close()

    # Reading

    async def get(
        self, vertices: VertexName | Iterable[VertexName] | Table, *, select: str | Iterable[str] | None = None
    ) -> Table:
        """Reads vertices by key or condition, one row each.

        Args:
            vertices: the vertices.
            select: properties to read; all by default, and none with ``[]``.

        Raises:
            NotFoundError: a vertex, label or property does not exist.
        """
        return Table(await wait_async(self._core.get(several(vertices), names_or_all(select))))

    def scan(
        self,
        labels: str | Iterable[str] | None = None,
        *,
        where: str | None = None,
        select: str | Iterable[str] | None = None,
        order_by: str | Iterable[str] | None = None,
        limit: int | None = None,
    ) -> Scan:
        """Scans vertices that match a condition. Nothing is read until the caller takes rows, and then only as far as they are taken.

        Args:
            labels: labels of vertices; all by default.
            where: a condition, such as ``"age > 30 and city = Austin"``; ``~key`` is the key. :func:`hoplake.quote` quotes a value for it.
            select: properties to read; all by default, and none with ``[]``.
            order_by: properties of one label to sort by, such as ``"age desc"``; ``~key`` is the key.
            limit: the most vertices to return.
        """
        core, limit = self._core, whole_or_none("limit", limit)
        arguments = (names(labels), where, names_or_all(select), names(order_by), limit)
        given = {"labels": labels, "where": where, "select": select, "order_by": order_by, "limit": limit}
        return Scan(lambda: core.scan(*arguments), given)

    def scan_edges(
        self,
        label: str | None = None,
        *,
        source_label: str | None = None,
        target_label: str | None = None,
        select: str | Iterable[str] | None = None,
        limit: int | None = None,
    ) -> Scan:
        """Scans edges, one row each. Nothing is read until the caller takes rows.

        The columns are ``label``, ``source_label``, ``source``, ``target_label``, ``target``, then properties.

        Args:
            label: the label of the edges; all by default.
            source_label: the label of their sources; all by default.
            target_label: the label of their targets; all by default.
            select: properties to read; all by default, and none with ``[]``.
            limit: the most edges to return.
        """
        core, limit = self._core, whole_or_none("limit", limit)
        source, target = text_or_none("source_label", source_label), text_or_none("target_label", target_label)
        arguments = (text_or_none("label", label), source, target, names_or_all(select), limit)
        given = {"label": label, "source_label": source_label, "target_label": target_label, "select": select, "limit": limit}
        return Scan(lambda: core.scan_edges(*arguments), given)

    async def to_networkx(self) -> networkx.MultiDiGraph[tuple[str, int | str]]:
        """Copies the whole graph to networkx. Nodes are pairs of label and key; properties become attributes."""
        vertices, edges = await self.scan().table(), await self.scan_edges().table()
        graph = vertices.to_networkx()
        graph.update(edges.to_networkx())
        return graph

    async def count(self, labels: str | Iterable[str] | None = None, *, where: str | None = None) -> int:
        """The number of vertices with these labels that match a condition. Without a condition nothing is read."""
        return await wait_async(self._core.count(names(labels), where))

    async def neighbors(
        self,
        vertices: VertexName | Iterable[VertexName] | Table,
        hop: str = "out",
        *,
        select: str | Iterable[str] | None = None,
        limit: int | None = None,
        ids: bool = False,
    ) -> Table:
        """Follows one hop, and returns its edges, one row each.

        ``from_label`` and ``from_key`` are the label and key of the vertex where the hop begins, ``edge`` is the label of the edge, ``direction`` is
        ``out`` or ``in``, and ``label`` and ``key`` are those of the vertex at the other end.

        Args:
            vertices: the vertices where the hop begins.
            hop: a direction, edge labels and a condition, such as ``"both:knows[since > 2020]"``.
            select: properties of the edge or, if its type does not have them, of the vertex at the other end; none by default.
            limit: the most edges to return.
            ids: whether to return the ids of edges, in a first column ``edge_id``.
        """
        return Table(await wait_async(self._core.neighbors(several(vertices), hop, names(select), whole_or_none("limit", limit), ids)))

    async def degrees(self, vertices: VertexName | Iterable[VertexName] | Table, hop: str = "both") -> list[int]:
        """The number of edges that a hop follows from each vertex, in the order of the vertices."""
        return await wait_async(self._core.degrees(several(vertices), hop))

    def traverse(self, vertices: VertexName | Iterable[VertexName] | Table) -> Traversal:
        """Begins a traversal, which is built hop by hop. Nothing is read until a method such as :meth:`Traversal.rows` asks for results.

        ``graph.traverse("airport:3").out("route", where="dist > 500").out("route").rows("code")``
        """
        return Traversal(self._core, several(vertices))

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
        """Finds a shortest path between two vertices. Returns ``None`` if there is none.

        Args:
            source: the first vertex of the path.
            target: the last vertex of the path.
            hop: the edges that it may follow, and their direction.
            weight: a property of edges, 0 or more, whose sum is minimised; by default the number of edges is.
            max_edges: the most edges of a path; not used with ``weight``.
            select: properties of vertices and edges to read; none by default.

        Raises:
            LimitError: no path of up to ``max_edges`` edges was found; longer paths were not searched.
        """
        most = whole("max_edges", max_edges)
        task = self._core.path(one(source), one(target), hop, weight, most, names(select))
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
        """The vertices at most ``depth`` hops away from a vertex, nearest first, with the column ``distance``. The vertex itself is not included."""
        most = whole_or_none("limit", limit)
        task = self._core.neighborhood(one(vertex), hop, whole("depth", depth), names(select), most)
        return Table(await wait_async(task))

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
        """Draws the neighbourhood of a vertex with matplotlib, and returns the axes.

        Args:
            vertex: the vertex in the middle, which is drawn with a black ring.
            hop: the edges to follow, such as ``"out:route[dist < 500]"``.
            depth: the number of hops.
            limit: the most walks of each length to draw.
            caption: a property whose values label the vertices; their keys do by default.
            axes: the axes to draw on; those of a new figure by default.
        """
        select = [] if caption is None else [caption]
        walks: list[Walk] = []
        limit, depth = whole("limit", limit), whole("depth", depth)
        if depth > _DRAWN_DEPTH_MAX:
            raise InvalidError(f"depth has to be at most {_DRAWN_DEPTH_MAX} in a picture, not {depth}")
        for length in range(1, depth + 1):
            task = self._core.walks([one(vertex)], [hop] * length, select, limit, False)
            found, _ = await wait_async(task)
            walks.extend(found)
        start = (walks[0].vertices[0].label, walks[0].vertices[0].key) if walks else None
        return plot(walks, start, caption, axes)

    # Gremlin

    async def query(
        self, text: str, parameters: Mapping[str, Any] | None = None, /, *, commit: bool = False, **values: Any
    ) -> Results:
        """Runs a Gremlin query, such as ``"g.V().has('code', code).out().values('name')"``, with values for its parameters.

        Args:
            text: the query. Of several statements, the results are those of the last.
            parameters: values of names in the text. A value is never parsed, so any value is safe.
            commit: lets the query change the graph. All changes become one version, or none if the query fails. The graph stays at its version
                until :meth:`refresh`.
            values: parameters as keyword arguments.
        """
        task = self._core.query(text, {**(parameters or {}), **values}, commit)
        return Results(*await wait_async(task))

    async def explain(self, text: str, parameters: Mapping[str, Any] | None = None, /, **values: Any) -> Plan:
        """The plan of a Gremlin query: its steps, and what each reads. Nothing is read."""
        (plan,) = await self.query(_with_step(text, "explain"), {**(parameters or {}), **values})
        return Plan(plan)

    async def profile(self, text: str, parameters: Mapping[str, Any] | None = None, /, **values: Any) -> Profile:
        """Runs a Gremlin query, and returns the metrics of its steps instead of its results."""
        (metrics,) = await self.query(_with_step(text, "profile"), {**(parameters or {}), **values})
        return Profile(metrics)

    async def call(self, name: str, /, **parameters: Any) -> Results:
        """Calls a prepared query: its newest edition with ``name``, or another with ``name@number``."""
        return Results(*await wait_async(self._core.call(name, parameters)))

    async def queries(self) -> list[PreparedQuery]:
        """The prepared queries of the version."""
        return [PreparedQuery(*fields) for fields in await wait_async(self._core.queries())]

    async def save_query(self, name: str, text: str, parameters: str | Iterable[str] = (), *, description: str = "") -> int:
        """Saves a Gremlin query under a name, and returns the number of this edition. A parameter is declared as in ``"most:int64=10"``.

        It can be called after :meth:`refresh`.
        """
        number, _ = await wait_async(self._core.save_query(name, text, names(parameters), description))
        return int(number)

    async def delete_query(self, name: str) -> int:
        """Deletes a prepared query, or one edition with ``name@number``, and returns the number of the new version."""
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
        """Runs an algorithm over the whole graph; :func:`hoplake.algorithms` lists them with their options.

        ``graph.run("pagerank", edges="out:knows", damping=0.9).top(20)``

        Args:
            algorithm: the name of the algorithm.
            edges: the edges that take part, as a direction, edge labels and a condition; all by default.
            labels: labels whose vertices take part even if they have no such edges.
            lists: where the lists of edges are kept: ``automatic``, ``memory``, ``packed`` or ``streamed``.
            threads: the number of threads; one for each processor by default.
            checkpoint: a file from which the same call resumes if its process was killed.
            asynchronous: compute without supersteps: vertices with the most pending work are processed first.
            progress: ``True`` for a bar of tqdm, or a function that is called with the step, how much of it is done, and its total or ``None``.
            options: options of the algorithm, such as ``damping``. The start vertices are ``from_``, because ``from`` is a Python keyword:
                one, or several if the algorithm takes several.
        """
        resumed = None if checkpoint is None else location(checkpoint, "checkpoint")
        algorithm, threads = as_text("algorithm", algorithm).replace("_", "-"), whole_or_none("threads", threads, 1)
        of_names = {name.rstrip("_").replace("_", "-"): value for name, value in options.items()}
        given = {name: option(algorithm, name, value) for name, value in of_names.items()}
        task = self._core.run(algorithm, given, edges, names(labels), lists, threads, resumed, asynchronous)
        return Computation(await wait_async(task, progress))

    async def pregel(
        self,
        *,
        initial: Initial,
        signal: Callable[[Any, Vertices], Any],
        apply: Callable[[Any, Any, Vertices], Any],
        combine: Combine = "sum",
        aggregate: Callable[[Any, Vertices], Any] | None = None,
        edges: str | None = None,
        labels: str | Iterable[str] | None = None,
        weight: str | None = None,
        along: Literal["times", "plus"] = "times",
        default: float | None = None,
        max_supersteps: int | None = None,
        tolerance: float | None = None,
        name: str = "value",
        result: str | Iterable[str] | None = None,
        lists: Literal["automatic", "memory", "streamed"] = "automatic",
        threads: int | None = None,
        progress: Progress = False,
    ) -> Computation:
        """Runs a vertex program over columns of NumPy, superstep by superstep, until its state does not change any more.

        In a superstep ``signal`` computes a number for each vertex, all at once. It travels along the vertex's edges; ``combine`` makes one number of those
        that arrive at a vertex; and ``apply`` computes the next state. The walk over edges is done by threads of Rust, with the interpreter lock
        released; functions get whole columns and run on the thread of the caller.

        >>> import hoplake, numpy as np
        >>> links = {"source": [1, 2, 3, 3], "target": [2, 3, 2, 1]}
        >>> loaded = hoplake.load("memory://docs/links", edges={("Page", "links", "Page"): links})
        >>> graph = hoplake.open("memory://docs/links")
        >>> def follow(rank, received, pages):
        ...     stuck = rank[pages.degree == 0].sum()
        ...     return (0.15 + 0.85 * stuck) / pages.count + 0.85 * received
        >>> ranks = graph.pregel(
        ...     initial=lambda pages: 1 / pages.count,
        ...     signal=lambda rank, pages: rank / np.maximum(pages.degree, 1),
        ...     combine="sum",
        ...     apply=follow,
        ...     tolerance=1e-6,
        ...     name="rank",
        ... )
        >>> ranks.top(1)["key"], round(ranks.top(1)["rank"][0], 2)
        ([2], 0.4)

        Args:
            initial: the first state: a number, an array, a dict of such columns by name, or a function of the :class:`Vertices` that returns one of them.
            signal: ``signal(state, vertices)`` returns what each vertex sends. A vertex whose value is NaN sends nothing.
            apply: ``apply(state, received, vertices)`` returns the next state, or that and who goes on: a bool, or one for each vertex. The
                program ends when none does; those that do not go on send nothing in the next superstep. Arguments may be kept, and ``received`` changed.
            combine: ``sum``, ``min``, ``max``, ``mean``, ``count`` or ``mode`` (the most frequent, and the least of these). Without a signal that is
                0, infinity (the greatest int64), minus infinity (the least), NaN, 0, and what the vertex itself signals.
            aggregate: ``aggregate(state, vertices)`` returns a dict of numbers by name. ``vertices.sums`` has them in the next superstep. A program that runs by
                parts (:mod:`hoplake.ray`) needs it for whatever depends on all vertices; here functions see all of them anyway.
            edges: which edges take part, and in which direction signals travel, as in :meth:`run`: ``"both:knows[since > 2020]"``.
            labels: vertices with these labels take part, with or without such edges.
            weight: a numeric property of edges, which every signal is multiplied by.
            along: ``plus`` to have the weight added to the signal.
            default: what a vertex has received if no signal arrives, instead of the above.
            max_supersteps: the most supersteps; without it, a program whose state goes on changing does not end.
            tolerance: ends the program when its state has changed by no more than this in sum.
            name: what the values are called, if the state is one array.
            result: which columns the result has, if the state is a dict; all by default. Its value is the first.
            lists: where lists of edges are: ``automatic``, ``memory`` or ``streamed``.
            threads: how many walk over edges; all processors by default.
            progress: ``True`` for a bar of tqdm, or a function that is called after each superstep.

        Raises:
            InvalidError: a function returned something else than numbers for all vertices.
            LimitError: a limit of :meth:`within` was reached; its seconds include the functions.
        """
        selection = (edges, names(labels), lists, whole_or_none("threads", threads, 1))
        functions = Functions.checked(
            initial=initial,
            signal=signal,
            apply=apply,
            aggregate=aggregate,
            combine=combine,
            default=default,
            tolerance=tolerance,
            max_supersteps=whole_or_none("max_supersteps", max_supersteps),
            name=name,
            result=result,
        )
        return await run_program(self._core, functions, selection=selection, weight=weight, along=along, progress=progress)

    async def sampler(
        self,
        fan_out: Counts | Mapping[Any, Counts],
        *,
        replace: bool = False,
        weight: str | None = None,
        induced: bool = False,
        disjoint: bool = False,
        seed: int = 0,
        features: FeatureNames | None = None,
        dtype: Literal["float32", "float64"] = "float32",
        missing: float | None = None,
        lists: Literal["bucket", "memory"] = "bucket",
        time: str | None = None,
        time_of: Literal["edge", "vertex"] = "edge",
        strategy: Literal["random", "last"] = "random",
    ) -> Sampler:
        """A sampler of neighbourhoods, on which graph neural networks are trained in batches. It stays at the version of the graph.

        >>> import hoplake
        >>> people = {"key": [1, 2, 3, 4], "age": [31, 45, 27, 60]}
        >>> knows = {"source": [1, 1, 1, 2], "target": [2, 3, 4, 3]}
        >>> tables = {"vertices": {"Person": people}, "edges": {("Person", "knows", "Person"): knows}}
        >>> loaded = hoplake.load("memory://docs/sampled", **tables)
        >>> graph = hoplake.open("memory://docs/sampled")
        >>> sampler = graph.sampler({"out:knows": [2, 1]}, seed=7, features={"Person": {"x": "age"}})
        >>> sample = sampler.sample("Person:1")
        >>> sample.edges_per_hop
        {('Person', 'out:knows', 'Person'): [2, 1]}
        >>> sample.features["Person"]["x"].tolist() == [people["age"][key - 1] for key in sampler.keys("Person", sample.vertices["Person"])]
        True

        Args:
            fan_out: how many neighbours of each vertex, hop by hop, such as ``[15, 10]``; ``None`` takes all. A dict has such numbers for each
                kind of edges: a hop, such as ``"out:knows"``, or also the labels at its ends, as in ``("Person", "out:knows", "Person")``.
            replace: whether an edge may be chosen more than once.
            weight: a numeric property of edges, 0 or more, that their chances are proportional to.
            induced: whether a sample has all edges between its vertices, in place of the chosen ones.
            disjoint: whether each seed has vertices of its own, so that one near two seeds is in the sample twice.
            seed: what the random choices follow from.
            features: properties that are read with each sample, by label and name: ``{"Person": {"x": ["age", "height"], "y": "group"}}``. Numbers,
                bools, dates and timestamps, and lists of one length. Several, or a list, become a matrix; one alone becomes a column. Those of edges
                are named by their kind, as in ``{("Person", "out:knows", "Person"): {"edge_attr": ["since", "weight"]}}``, and are single numbers.
            dtype: the type of features that are not all integers; those are int64.
            missing: what stands for a value that a vertex or edge does not have. Without it, such a one is an error.
            lists: ``"memory"`` loads all lists once, which takes 8 bytes a vertex and 4 an edge, or 12 with a weight, and 1 to 8 more for each time.
                ``"bucket"`` reads those of each hop, through the caches.
            time: a property that lets a seed see nothing later than its own time: an int64, a date or a timestamp. Types that do not have it are always
                seen. It needs ``disjoint``.
            time_of: whether it is a property of edges or of the vertices that they lead to.
            strategy: ``"last"`` for the latest neighbours that a seed sees, in place of random ones.

        Raises:
            NotFoundError: the graph does not have these edges, a label or a property.
            InvalidError: two fan-outs are of the same edges, a property is text, or no vertex has a list whose length could be counted.
            LimitError: lists in memory, or what a limit of :meth:`within` counts, exceed it.
        """
        np = numpy("a sampler")
        choices = (
            ("dtype", dtype, ("float32", "float64")),
            ("lists", lists, ("bucket", "memory")),
            ("time_of", time_of, ("edge", "vertex")),
            ("strategy", strategy, ("random", "last")),
        )
        for name, value, known in choices:
            if value not in known:
                raise InvalidError(f"{name} is {shown(value)}; write {known[0]} or {known[1]}")
        choice = (bool(replace), weight, bool(disjoint), bool(induced), whole("seed", seed))
        if strategy == "last" and time is None:
            raise InvalidError("strategy is 'last', which needs a time")
        edges = fan_outs(fan_out)
        if not edges:
            raise InvalidError("a sampler needs a fan-out: edges, and how many of each vertex")
        of_time = None if time is None else (time, time_of == "vertex", strategy == "last")
        arguments = (edges, *choice, feature_names(features), dtype == "float64", missing, lists == "memory", of_time)
        await wait_async(self._core.ready())
        core = self._core.sampler(*arguments)
        await wait_async(core.ready())
        return Sampler(core, arguments, np)

    def nx(self, *edge_labels: str, directed: bool = True, multigraph: bool = True) -> NxGraph:
        """A view of the edges with these labels, or of all, for functions of networkx: ``networkx.pagerank(graph.nx("knows"))``.

        The functions compute on the stored graph, without a conversion (:mod:`hoplake.nx`). Use ``graph.nx(…).to_networkx()`` for all others.

        Args:
            edge_labels: labels of edges.
            directed: whether edges have a direction.
            multigraph: whether networkx is to expect parallel edges. Some of its functions, such as ``core_number``, do not take them.

        Raises:
            NotFoundError: the graph does not have an edge label.
        """
        from .._sync.graph import Graph as SyncGraph
        from ..nx import Graph as NxGraph

        return NxGraph(SyncGraph(self._core), edge_labels, directed=directed, multigraph=multigraph)

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
        """Begins a batch of changes based on this version. It is applied as a whole by :meth:`Commit.commit`, or at the end of a ``with`` block.

        If another writer has changed the same vertices or edges by then, the commit fails with :class:`hoplake.ConflictError`. The graph itself stays
        at its version until :meth:`refresh`.

        Args:
            message: a message that is stored with the version.
            on_newest: base the batch on the newest version at the time of the commit, so that it overwrites what others have changed.
            strict: reject labels, edge types and properties that the graph does not have.
            create_missing: create vertices that edges refer to and that do not exist.
            idempotency_key: a name for the batch. If one of the last batches had the same name, this one is not applied again.
            positions: positions of sources, by name, that are stored with the version: how far each was read for these changes.
            if_positions: apply the batch only if the graph has these positions; ``None`` means that it has none for the source.
            seconds: the most time that the commit may take; 2 minutes by default.
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
            seconds=in_seconds(seconds),
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

        Without any change no version is published.

        Args:
            changes: a table with the columns of changes, or a file: JSON Lines, CSV or Parquet.
            json_lines: changes as text, with one JSON object per line.
            message: a message that is stored with the version.
            strict: reject labels, edge types and properties that the graph does not have.
            create_missing: create vertices that edges refer to and that do not exist.
        """
        commit = self.begin(message, on_newest=True, strict=strict, create_missing=create_missing)
        await commit.add(changes, json_lines=json_lines)
        return await commit.commit()

    # Versions and copies

    async def log(self, limit: int = 20) -> list[Version]:
        """The latest versions, newest first: what created each, when, and why."""
        return await wait_async(self._core.log(whole("limit", limit)))

    async def diff(
        self,
        before: int | str | datetime,
        after: int | str | datetime | None = None,
        *,
        labels: str | Iterable[str] | None = None,
        limit: int | None = None,
    ) -> list[Difference]:
        """The differences between two versions.

        Args:
            before: the first version, as in :meth:`at`.
            after: the second version; this one by default.
            labels: labels of vertices and edges to compare; all by default.
            limit: the most differences to return.
        """
        most = MOST if limit is None else whole("limit", limit)
        first = await self.at(before)
        second = self if after is None else await self.at(after)
        return await wait_async(self._core.diff(first._core, second._core, names(labels), most))

    async def tag(self, name: str, version: int | None = None) -> int | None:
        """Gives a version a tag, this one by default. A vacuum keeps versions with tags.

        Returns the number of the new version with this change, or ``None`` if the version already had the tag.
        """
        return await wait_async(self._core.tag(name, self._number(version)))

    async def untag(self, name: str) -> int | None:
        """Removes a tag, and returns the number of the new version with this change.

        Raises:
            NotFoundError: no version has the tag.
        """
        return await wait_async(self._core.tag(name, None))

    async def restore(self, version: int, message: str = "") -> int:
        """Publishes the content of an older version as a new version, and returns its number."""
        return await wait_async(self._core.restore(whole("version", version), message))

    async def clone(self, target: Location, version: int | None = None) -> str:
        """Creates a graph elsewhere in the same bucket that shares the content of this version, without copying it.

        Returns the tag that protects the version from a vacuum of this graph.
        """
        return await wait_async(self._core.clone_to(location(target, "target"), self._number(version)))

    def _number(self, version: int | None) -> int:
        return self.version if version is None else whole("version", version)

    async def mirror(self, target: Location, *, progress: Progress = False) -> Mirrored:
        """Copies the newest version to another store, usually a folder, or updates such a copy."""
        return await wait_async(self._core.mirror(location(target, "target")), progress)

    async def export(
        self,
        target: Location,
        *,
        format: Literal["parquet", "csv", "neo4j", "gremlin", "graphml"] = "parquet",
        labels: str | Iterable[str] | None = None,
        overwrite: bool = False,
        progress: Progress = False,
    ) -> Exported:
        """Writes the version as files to a folder or URL.

        Args:
            target: the folder or URL.
            format: the format of the files.
            labels: labels of vertices and edges to write; all by default.
            overwrite: whether existing files may be overwritten.
            progress: ``True`` for a bar, or a function.
        """
        task = self._core.export(location(target, "target"), format, names(labels), overwrite)
        return await wait_async(task, progress)

    # Upkeep

    async def compact(self, *, memory: int | None = None, everything: bool = False) -> Compacted:
        """Merges the sorted runs that are due, or all of them with ``everything``. The content of the graph does not change."""
        return await wait_async(self._core.compact(whole_or_none("memory", memory), everything))

    async def vacuum(self, *, keep_versions: int | None = None, keep: float | timedelta | None = None) -> Vacuumed:
        """Removes old versions, and objects that no version refers to. Without arguments all versions are kept.

        Args:
            keep_versions: the number of versions to keep.
            keep: the time in seconds for which a version is kept.
        """
        task = self._core.vacuum(whole_or_none("keep_versions", keep_versions), in_seconds(keep))
        return Vacuumed(*await wait_async(task))

    async def verify(self, *, progress: Progress = False) -> Verified:
        """Reads all versions and checks them for damage."""
        return Verified(*await wait_async(self._core.verify(), progress))

    async def create_index(self, name: str, *, memory: int | None = None) -> int:
        """Builds an index of a property of vertices, such as ``"airport.code"``, and returns the number of the new version."""
        version, _, _ = await wait_async(self._core.create_index(name, whole_or_none("memory", memory)))
        return int(version)

    async def drop_index(self, name: str) -> int:
        """Removes an index, and returns the number of the new version."""
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
    """A graph from its pickle."""
    return kind(_hoplake.Graph(*location).within(*limits))


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
    """Opens the newest version of a graph, or another version, in two round trips.

    Args:
        url: a folder, or ``s3://bucket/prefix``, ``gs://``, ``az://``, ``memory://``. Credentials come from the environment. A relative folder is made
            absolute, and ``~`` is the home directory.
        version: the number of another version.
        tag: the tag of another version.
        as_of: a time at which another version was the newest.
        cache: bytes of memory for blocks of the graph; 256 MiB by default.
        disk_cache: a folder that keeps blocks between runs. Several processes may share it.
        disk_cache_size: bytes of the disk cache; 8 GiB by default.
        mapped: map the files of a graph in a folder into memory, with the system's page cache as the cache.

    Raises:
        NotFoundError: the graph or the version does not exist.
        UnavailableError: the store cannot be reached, or rejects the credentials.
    """
    if sum(given is not None for given in (version, tag, as_of)) > 1:
        raise InvalidError("version, tag and as_of are three ways to choose a version; give one of them")
    time = zoned(as_of) if isinstance(as_of, datetime) else as_of
    folder = None if disk_cache is None else location(disk_cache, "disk_cache")
    number, memory = whole_or_none("version", version), whole_or_none("cache", cache)
    disk = whole_or_none("disk_cache_size", disk_cache_size)
    task = _hoplake.Graph.open(location(url, "url"), number, tag, time, memory, folder, disk, mapped)
    return Graph(await wait_async(task))


async def create(url: Location) -> bool:
    """Creates an empty graph, to be filled by commits. Returns ``False`` if an empty graph already exists there.

    Raises:
        ConflictError: there is a graph that is not empty.
    """
    return await wait_async(_hoplake.Graph.create(location(url, "url")))


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
    """Loads a graph from files, from URLs, or from tables in memory. Readers see the graph only when all of it is loaded.

    Args:
        url: the location of the new graph.
        files: files and folders, URLs of objects and folders in stores, or URLs of files on web servers. The layout is detected: LDBC SNB, Gremlin or
            neo4j-admin CSV, edge lists, or the files of a mapping.
        mapping: a TOML file that assigns columns of files to the graph.
        vertices: tables of vertices by label. The column ``key`` or ``id`` has their keys; every other column is a property.
        edges: tables of edges by labels of source, edge and target. The columns ``source`` and ``target`` (or ``from`` and ``to``, ``src`` and
            ``dst``) have the keys of their ends. Without any table of vertices, the vertices are those that edges refer to.
        keys: the columns of keys by label, if they have other names.
        ends: the columns of the ends of edges, if they have other names: one pair for all tables, or pairs by labels of source, edge and target.
        memory: bytes of memory; data that does not fit is sorted in temporary files. 1 GiB by default.
        threads: the number of threads; one for each processor by default.
        temp_dir: the folder for temporary files.
        order: the order of vertices: by ``"keys"``, or by ``"locality"``, which puts neighbours close to each other.
        indexes: properties of vertices that get an index, such as ``"airport.code"``.
        replace: whether an existing graph may be replaced; its versions stay readable.
        message: a message that is stored with the version.
        rejects: a CSV file for rows that cannot be loaded; the others are loaded. Without it the first such row ends the load.
        progress: ``True`` for a bar, or a function.

    Raises:
        ConflictError: a graph exists there, and ``replace`` is not set.
        InvalidError: a row cannot be loaded; the message says which. Rows of tables count from 0, also in the attribute ``row``.
    """
    paths = _paths(files)
    of_vertices = vertex_tables(vertices, keys)
    pairs = edge_pairs(edges)
    of_edges = edge_tables(pairs, ends)
    has_tables = bool(of_vertices or of_edges)
    if has_tables and (mapping is not None or paths):
        raise InvalidError("a load reads either files or tables in memory; load one, and apply the other as changes")
    if not has_tables and mapping is None and not paths:
        raise InvalidError("there is nothing to load; give files, a mapping, or tables of vertices and edges")
    given: dict[str, Any] = {
        "memory": whole_or_none("memory", memory),
        "threads": whole_or_none("threads", threads, 1),
        "temp_dir": None if temp_dir is None else location(temp_dir, "temp_dir"),
        "order": order,
        "indexes": None if indexes is None else names(indexes),
        "replace": replace,
        "message": message,
        "rejects": None if rejects is None else file(rejects, "rejects"),
    }
    options = {name: value for name, value in given.items() if value is not None}
    map_file = None if mapping is None else file(mapping, "mapping")
    task = _hoplake.load(location(url, "url"), paths, map_file, of_vertices, of_edges, not of_vertices, options)
    try:
        return await wait_async(task, progress)
    except Error as error:
        if has_tables:
            repeats = not isinstance(edges, Mapping)
            shown = [f"vertices {label!r}" for label in vertices or ()]
            shown += [f"edges[{at}] {name!r}" if repeats else f"edges {name!r}" for at, (name, _) in enumerate(pairs)]
            in_tables(error, shown)
            for label, _, rows in of_vertices:
                if str(error).startswith(f"the table of vertices {_rows.quoted(label)} has no column"):
                    raise _rows.explained(error, "has no column", rows)
        raise


def _paths(files: Location | Iterable[Location]) -> list[str]:
    given: Any = files
    if is_a(given, str, PathLike):
        return [file(given, "files")]
    if _rows.is_frame(given) or is_a(given, Mapping) or not is_a(given, Iterable):
        message = "files has to be paths or URLs; give tables by label, as in vertices={\"Person\": frame}"
        raise InvalidError(message)
    return [file(path, "each of files") for path in given]
