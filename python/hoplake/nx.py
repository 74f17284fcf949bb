"""A backend of networkx: its functions, computed by Hoplake.

``networkx.pagerank(hoplake.open(url).nx("knows"), backend="hoplake")`` runs on the bucket, without a conversion. A graph of networkx is converted when
one of its functions is called with ``backend="hoplake"``, or when networkx is configured to prefer this backend; networkx keeps the conversion with
the graph.

Where a result could differ from networkx's by more than the last bits of floats, ``can_run`` says no, and networkx computes it itself if it may.
"""

from __future__ import annotations

import functools
import inspect
import math
import shutil
import tempfile
import weakref
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from itertools import combinations
from typing import TYPE_CHECKING, Any, TypeVar

from ._sync.graph import Graph as HoplakeGraph
from ._sync.graph import load
from ._sync.graph import open as open_graph

if TYPE_CHECKING:
    import networkx

_LABEL = "n"
_EDGE = "e"
_FUNCTIONS: dict[str, Callable[..., Any]] = {}
_REFUSALS: dict[str, Callable[..., str | None]] = {}


class Graph:
    """The vertices and some edges of a graph of Hoplake, for functions of networkx.

    Its nodes are keys of vertices or, if vertices of several labels take part, pairs of label and key.
    """

    __networkx_backend__ = "hoplake"

    def __init__(
        self,
        graph: HoplakeGraph,
        edge_labels: Collection[str] = (),
        *,
        directed: bool = True,
        multigraph: bool = True,
        weights: dict[str, str] | None = None,
        nodes: list[Hashable] | None = None,
    ) -> None:
        self.hoplake = graph
        self._edge_labels = list(edge_labels)
        self._directed = directed
        self._multigraph = multigraph
        #: The properties of edges that can be weights, by the attributes that they are.
        self._weights = dict(weights or {})
        # Of a converted graph: the node of each key.
        self._nodes = nodes
        self._numbers: dict[Hashable, int] | None = None
        types = [it for it in graph.schema.edge_types if not self._edge_labels or it.label in self._edge_labels]
        labels = {label for it in types for label in (it.source_label, it.target_label)}
        #: Labels of vertices that take part.
        self._labels = [it.name for it in graph.schema.labels if it.name in labels or nodes is not None or not graph.schema.edge_types]
        if nodes is None:
            numbers = {name for it in types for name, kind in it.properties.items() if kind in ("int64", "float64")}
            self._weights = {name: name for name in numbers}

    def is_directed(self) -> bool:
        """Whether edges have a direction."""
        return self._directed

    def is_multigraph(self) -> bool:
        """Whether there may be several edges between two nodes."""
        return self._multigraph

    def __len__(self) -> int:
        return self.hoplake.count(self._labels) if self._nodes is None else len(self._nodes)

    def number_of_nodes(self) -> int:
        """How many nodes there are."""
        return len(self)

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self.nodes())

    def __contains__(self, node: Hashable) -> bool:
        try:
            return node in self.numbers()
        except TypeError:
            return False

    def nodes(self) -> list[Hashable]:
        """All nodes, in the order of networkx or, of a graph in a store, in its own."""
        if self._nodes is None:
            found = self.hoplake.scan(self._labels, select=[]).table()
            self._nodes = [self.node(label, key) for label, key in zip(found["label"], found["key"])]
        return self._nodes

    def numbers(self) -> dict[Hashable, int]:
        """The position of each node."""
        if self._numbers is None:
            self._numbers = {node: number for number, node in enumerate(self.nodes())}
        return self._numbers

    @property
    def _is_converted(self) -> bool:
        return self._labels == [_LABEL] and self._edge_labels == [_EDGE]

    def node(self, label: str, key: int | str) -> Hashable:
        """The node of a vertex."""
        if self._is_converted and self._nodes is not None:
            return self._nodes[int(key)]
        return key if len(self._labels) == 1 else (label, key)

    def vertex(self, node: Hashable) -> tuple[str, int | str]:
        """The vertex of a node, as calls of Hoplake take it."""
        if self._is_converted:
            return _LABEL, self.numbers()[node]
        key: Any = node
        label, own = (self._labels[0], key) if len(self._labels) == 1 else key
        return label, own

    def hop(self, direction: str | None = None) -> str:
        """The edges, as calls of Hoplake take them."""
        direction = direction if self._directed and direction is not None else "out" if self._directed else "both"
        quoted = ",".join('"' + label.replace('"', '""') + '"' for label in self._edge_labels)
        return f"{direction}:{quoted}" if quoted else direction

    def edges(self, weight: str | None = None) -> Iterator[tuple[Hashable, Hashable, Any]]:
        """All edges with a property, or 1 without it."""
        labels: list[str | None] = [*self._edge_labels] or [None]
        for label in labels:
            column = None if weight is None else self._weights.get(weight)
            for table in self.hoplake.scan_edges(label, select=[] if column is None else [column]).batches():
                names = table["source_label"], table["source"], table["target_label"], table["target"]
                values: list[Any] = [1] * len(table) if column is None else table[column]
                for source_label, source, target_label, target, value in zip(*names, values):
                    yield self.node(source_label, source), self.node(target_label, target), 1 if value is None else value

    def values(self, algorithm: str, direction: str | None = None, **options: Any) -> dict[Hashable, Any]:
        """The values of an algorithm by node, in the order of nodes; nodes without one are left out."""
        run: Any = self.hoplake.run
        computed = run(algorithm, edges=self.hop(direction), labels=self._labels, **options).table()
        name = computed.columns[2]
        found = zip(computed["label"], computed["key"], computed[name])
        return {self.node(label, key): value for label, key, value in found if value is not None}

    def figure(self, algorithm: str, name: str) -> Any:
        """A number of an algorithm for the whole graph."""
        return self.hoplake.run(algorithm, edges=self.hop(), labels=self._labels).figures[name]

    def to_networkx(self) -> networkx.Graph[Any]:
        """As a graph of networkx, with the properties that can be weights as attributes."""
        import networkx

        kinds: dict[tuple[bool, bool], Any] = {
            (False, False): networkx.Graph,
            (True, False): networkx.DiGraph,
            (False, True): networkx.MultiGraph,
            (True, True): networkx.MultiDiGraph,
        }
        graph: networkx.Graph[Any] = kinds[self._directed, self._multigraph]()
        graph.add_nodes_from(self.nodes())
        labels: list[str | None] = [*self._edge_labels] or [None]
        for label in labels:
            for table in self.hoplake.scan_edges(label).batches():
                for row in table:
                    source = self.node(row.pop("source_label"), row.pop("source"))
                    target = self.node(row.pop("target_label"), row.pop("target"))
                    del row["label"]
                    names = {column: name for name, column in self._weights.items()}
                    attributes = {names.get(name, name): value for name, value in row.items() if value is not None}
                    graph.add_edges_from([(source, target, attributes)])
        return graph

    def __repr__(self) -> str:
        return f"<hoplake.nx.Graph of {self.hoplake.url}: {self.hop()}>"


def convert_from_nx(graph: Any, *, edge_attrs: dict[str, Any] | None = None, **_: Any) -> Graph:
    """A graph of networkx as one of Hoplake, in a temporary folder that is removed with it."""
    if isinstance(graph, Graph):
        return graph
    nodes: list[Hashable] = list(graph)
    numbers = {node: number for number, node in enumerate(nodes)}
    sources: list[int] = []
    targets: list[int] = []
    attributes: dict[str, list[Any]] = {name: [] for name in edge_attrs or {}}
    for source, target, data in graph.edges(data=True):
        sources.append(numbers[source])
        targets.append(numbers[target])
        for name, column in attributes.items():
            value = data.get(name, (edge_attrs or {})[name])
            value = 1 if value is None else value
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise NotImplementedError(f"the attribute {name!r} of an edge is {value!r}, which is not a number")
            column.append(float(value))
    folder = tempfile.mkdtemp(prefix="hoplake-nx-")
    try:
        # Attributes have any names.
        columns = {name: f"attribute{number}" for number, name in enumerate(attributes)}
        edges: dict[str, list[Any]] = {"source": sources, "target": targets}
        edges.update((columns[name], values) for name, values in attributes.items())
        tables: Any = {_LABEL: {"key": list(range(len(nodes)))}}
        load(folder + "/graph", vertices=tables, edges={(_LABEL, _EDGE, _LABEL): edges})
        stored = open_graph(folder + "/graph")
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    converted = Graph(
        stored,
        [_EDGE],
        directed=graph.is_directed(),
        multigraph=graph.is_multigraph(),
        weights=columns,
        nodes=nodes,
    )
    weakref.finalize(converted, shutil.rmtree, folder, ignore_errors=True)
    return converted


def convert_to_nx(result: Any, *, name: str | None = None) -> Any:
    """A result as networkx has it."""
    return result.to_networkx() if isinstance(result, Graph) else result


_F = TypeVar("_F", bound=Callable[..., Any])


def _refuses(reason: Callable[..., str | None]) -> Callable[[_F], _F]:
    """Says when networkx is to compute a function itself: a reason, or None. It gets the arguments of the function."""

    def add(function: _F) -> _F:
        _REFUSALS[function.__name__] = reason
        return function

    return add


def _backed(function: _F) -> _F:
    """A function of the backend. Arguments that a newer networkx has added may have their defaults."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        known, reason = _known(function.__name__, kwargs)
        if reason is not None:
            raise NotImplementedError(f"{function.__name__} is not computed by Hoplake with these arguments: {reason}")
        return function(*args, **known)

    _FUNCTIONS[function.__name__] = call
    return call  # type: ignore[return-value]


def _known(name: str, kwargs: dict[str, Any]) -> tuple[dict[str, Any], str | None]:
    """Arguments that the backend knows, and why others cannot be left out: networkx passes those of newer versions, too, with their defaults."""
    known = inspect.signature(_FUNCTIONS[name]).parameters
    unknown = kwargs.keys() - known.keys()
    if unknown:
        import networkx

        function = getattr(networkx, name, None) or getattr(networkx.community, name, None)
        defaults: Mapping[str, inspect.Parameter] = {} if function is None else inspect.signature(function).parameters
        for argument in sorted(unknown):
            default = defaults[argument].default if argument in defaults else inspect.Parameter.empty
            value = kwargs[argument]
            if not (value is default or (isinstance(value, (str, int, float)) and value == default)):
                return kwargs, f"it does not know the argument {argument}"
    return {argument: value for argument, value in kwargs.items() if argument in known}, None


def can_run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | str:
    """Whether a function gives networkx's results for these arguments, or why not."""
    if name not in _FUNCTIONS:
        return f"{name} is not computed by Hoplake"
    graph = args[0] if args else kwargs.get("G")
    if not isinstance(graph, Graph) and graph is not None and (len(graph) == 0 or graph.number_of_edges() == 0):
        return "a graph without nodes or edges is answered by networkx"
    kwargs, reason = _known(name, kwargs)
    refusal = _REFUSALS.get(name)
    if reason is None and refusal is not None:
        reason = refusal(*args, **kwargs)
    return True if reason is None else reason


def should_run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | str:
    """Whether a conversion pays off."""
    graph = args[0] if args else kwargs.get("G")
    if isinstance(graph, Graph) or graph is None:
        return True
    return True if graph.number_of_edges() >= 100_000 else "the graph is small, and networkx has it in memory"


def _has_self_loops(G: Any) -> bool:
    if isinstance(G, Graph):
        return any(source == target for source, target, _ in G.edges())
    return any(node in G[node] for node in G)


def _no_self_loops(G: Any, *_: Any, **__: Any) -> str | None:
    return "edges from a node to itself count otherwise" if _has_self_loops(G) else None


def _parallel(G: Any) -> str | None:
    return "parallel edges are several paths here" if not isinstance(G, Graph) and G.is_multigraph() else None


def _group(values: dict[Hashable, Any]) -> list[set[Hashable]]:
    groups: dict[Any, set[Hashable]] = {}
    for node, value in values.items():
        groups.setdefault(value, set()).add(node)
    return list(groups.values())


def _check_node(G: Graph, node: Hashable, message: str) -> None:
    import networkx

    if node not in G:
        raise networkx.NodeNotFound(message)


# Ranks


def _refuse_pagerank(
    G: Any, alpha: float = 0.85, personalization: Any = None, max_iter: int = 100, tol: float = 1.0e-6, nstart: Any = None,
    weight: Any = "weight", dangling: Any = None,
) -> str | None:
    if nstart is not None or dangling is not None:
        return "nstart and dangling are not options of Hoplake"
    if personalization is not None and len({value for value in personalization.values() if value}) != 1:
        return "personalised PageRank has equal weights for its nodes"
    return _no_self_loops(G) if not G.is_directed() else None


@_backed
@_refuses(_refuse_pagerank)
def pagerank(
    G: Graph, alpha: float = 0.85, personalization: Any = None, max_iter: int = 100, tol: float = 1.0e-6, nstart: Any = None,
    weight: str | None = "weight", dangling: Any = None,
) -> dict[Hashable, float]:
    import networkx

    options: dict[str, Any] = {"damping": alpha, "iterations": max_iter + 1, "tolerance": len(G) * tol}
    if personalization is not None:
        starts = [node for node, value in personalization.items() if value and node in G]
        if not starts:
            raise ZeroDivisionError
        options["from_"] = [G.vertex(node) for node in starts]
    if weight is not None and weight in G._weights:
        options["weight"] = G._weights[weight]
    run: Any = G.hoplake.run
    computed = run("pagerank", edges=G.hop(), labels=G._labels, **options)
    if computed.iterations is not None and computed.iterations > max_iter:
        raise networkx.PowerIterationFailedConvergence(max_iter)
    table = computed.table()
    return {G.node(label, key): rank for label, key, rank in zip(table["label"], table["key"], table["rank"])}


def _refuse_hits(G: Any, max_iter: int = 100, tol: float = 1.0e-8, nstart: Any = None, normalized: bool = True) -> str | None:
    if nstart is not None or not normalized:
        return "scores begin alike and add up to 1"
    if isinstance(G, Graph) and "weight" in G._weights:
        return "edges have weights, which count in networkx"
    if not isinstance(G, Graph) and any(weight != 1 for _, _, weight in G.edges(data="weight", default=1)):
        return "edges have weights, which count in networkx"
    return None if G.is_directed() else "scores of an undirected graph may be ambiguous"


@_backed
@_refuses(_refuse_hits)
def hits(
    G: Graph, max_iter: int = 100, tol: float = 1.0e-8, nstart: Any = None, normalized: bool = True
) -> tuple[dict[Hashable, float], dict[Hashable, float]]:
    options: dict[str, Any] = {"iterations": max(max_iter, 1000), "tolerance": tol / 100}
    return G.values("hubs", **options), G.values("authorities", **options)


def _refuse_eigenvector(
    G: Any, max_iter: int = 100, tol: float = 1.0e-6, nstart: Any = None, weight: Any = None
) -> str | None:
    if nstart is not None or weight is not None:
        return "all nodes begin alike, and edges have no weight"
    return _parallel(G) or (_no_self_loops(G) if not G.is_directed() else None)


@_backed
@_refuses(_refuse_eigenvector)
def eigenvector_centrality(
    G: Graph, max_iter: int = 100, tol: float = 1.0e-6, nstart: Any = None, weight: Any = None
) -> dict[Hashable, float]:
    import networkx

    computed = G.hoplake.run(
        "eigenvector", edges=G.hop(), labels=G._labels, iterations=max_iter + 1, tolerance=len(G) * tol
    )
    if computed.iterations is not None and computed.iterations > max_iter:
        raise networkx.PowerIterationFailedConvergence(max_iter)
    table = computed.table()
    return {G.node(label, key): value for label, key, value in zip(table["label"], table["key"], table["centrality"])}


def _refuse_betweenness(
    G: Any, k: Any = None, normalized: bool = True, weight: Any = None, endpoints: bool = False, seed: Any = None
) -> str | None:
    if weight is not None or endpoints or (k is not None and k != len(G)):
        return "paths are by the number of edges, from all nodes, and without their ends"
    return _parallel(G)


@_backed
@_refuses(_refuse_betweenness)
def betweenness_centrality(
    G: Graph, k: Any = None, normalized: bool = True, weight: Any = None, endpoints: bool = False, seed: Any = None
) -> dict[Hashable, float]:
    values = G.values("betweenness")
    count = len(values)
    if not normalized:
        return values
    pairs = (count - 1) * (count - 2) / (1 if G.is_directed() else 2)
    return {node: value / pairs if pairs > 0 else value for node, value in values.items()}


def _refuse_closeness(G: Any, u: Any = None, distance: Any = None, wf_improved: bool = True) -> str | None:
    return None if distance is None and wf_improved else "distances are numbers of edges, scaled by what a node reaches"


@_backed
@_refuses(_refuse_closeness)
def closeness_centrality(G: Graph, u: Any = None, distance: Any = None, wf_improved: bool = True) -> Any:
    values = G.values("closeness")
    if u is None:
        return values
    return values[u]


def _refuse_harmonic(G: Any, nbunch: Any = None, distance: Any = None, sources: Any = None) -> str | None:
    return None if distance is None else "distances are numbers of edges"


@_backed
@_refuses(_refuse_harmonic)
def harmonic_centrality(G: Graph, nbunch: Any = None, distance: Any = None, sources: Any = None) -> dict[Hashable, float]:
    of = _nodes_of(G, nbunch)
    sums: dict[Hashable, float] = dict.fromkeys(of, 0)
    for source in _nodes_of(G, sources):
        for node, level in _levels(G, source).items():
            if level > 0 and node in sums:
                sums[node] += 1 / level
    return sums


def _nodes_of(G: Graph, nbunch: Any) -> list[Hashable]:
    """Some nodes: all, one, or those of a collection that the graph has."""
    import networkx

    if nbunch is None:
        return G.nodes()
    if nbunch in G:
        return [nbunch]
    try:
        return [node for node in nbunch if node in G]
    except TypeError as error:
        raise networkx.NetworkXError(f"Node {nbunch} is not in the digraph." if G.is_directed() else f"Node {nbunch} is not in the graph.") from error


def _degree_centrality(G: Graph, direction: str) -> dict[Hashable, float]:
    count = len(G)
    if count <= 1:
        return dict.fromkeys(G.nodes(), 1)
    scale = 1.0 / (count - 1.0)
    return {node: degree * scale for node, degree in _degrees(G, direction).items()}


def _degrees(G: Graph, direction: str = "both") -> dict[Hashable, int]:
    return G.values("degrees", direction)


@_backed
def degree_centrality(G: Graph) -> dict[Hashable, float]:
    return _degree_centrality(G, "both")


@_backed
def in_degree_centrality(G: Graph) -> dict[Hashable, float]:
    return _degree_centrality(G, "in")


@_backed
def out_degree_centrality(G: Graph) -> dict[Hashable, float]:
    return _degree_centrality(G, "out")


# Components


@_backed
def connected_components(G: Graph) -> Iterator[set[Hashable]]:
    yield from _group(G.values("components"))


@_backed
def number_connected_components(G: Graph) -> int:
    return len(_group(G.values("components")))


@_backed
def is_connected(G: Graph) -> bool:
    return number_connected_components(G) == 1


@_backed
def node_connected_component(G: Graph, n: Hashable) -> set[Hashable]:
    values = G.values("components")
    return {node for node, value in values.items() if value == values[n]}


@_backed
def weakly_connected_components(G: Graph) -> Iterator[set[Hashable]]:
    yield from _group(G.values("components"))


@_backed
def number_weakly_connected_components(G: Graph) -> int:
    return len(_group(G.values("components")))


@_backed
def is_weakly_connected(G: Graph) -> bool:
    return number_weakly_connected_components(G) == 1


@_backed
def strongly_connected_components(G: Graph) -> Iterator[set[Hashable]]:
    yield from _group(G.values("strong-components"))


@_backed
def number_strongly_connected_components(G: Graph) -> int:
    return len(_group(G.values("strong-components")))


@_backed
def is_strongly_connected(G: Graph) -> bool:
    return number_strongly_connected_components(G) == 1


@_backed
def is_directed_acyclic_graph(G: Graph) -> bool:
    if not G.is_directed():
        return False
    return number_strongly_connected_components(G) == len(G) and not _has_self_loops(G)


def _refuse_flow(G: Any, weight: Any = None) -> str | None:
    if not G.is_directed():
        return "networkx raises an exception"
    return None if weight is None else "edges count alike"


@_backed
@_refuses(_refuse_flow)
def flow_hierarchy(G: Graph, weight: Any = None) -> float:
    component = G.values("strong-components")
    ends = [(source, target) for source, target, _ in G.edges()]
    within = sum(component[source] == component[target] for source, target in ends)
    return float(1 - within / len(ends))


# Cores and triangles


def _refuse_cores(G: Any) -> str | None:
    return "edges in both directions count twice in networkx" if G.is_directed() else _no_self_loops(G)


@_backed
@_refuses(_refuse_cores)
def core_number(G: Graph) -> dict[Hashable, int]:
    return G.values("cores")


def _of_nodes(G: Graph, values: dict[Hashable, Any], nodes: Any) -> Any:
    if nodes is None:
        return values
    if nodes in G:
        return values[nodes]
    return {node: values[node] for node in _nodes_of(G, nodes)}


@_backed
@_refuses(_no_self_loops)
def triangles(G: Graph, nodes: Any = None) -> Any:
    return _of_nodes(G, G.values("triangles-per-vertex"), nodes)


def _refuse_clustering(G: Any, nodes: Any = None, weight: Any = None, count_zeros: bool = True) -> str | None:
    if weight is not None:
        return "edges count alike"
    return "directed triangles count otherwise" if G.is_directed() else _no_self_loops(G)


@_backed
@_refuses(_refuse_clustering)
def clustering(G: Graph, nodes: Any = None, weight: Any = None) -> Any:
    return _of_nodes(G, G.values("clustering"), nodes)


@_backed
@_refuses(_refuse_clustering)
def average_clustering(G: Graph, nodes: Any = None, weight: Any = None, count_zeros: bool = True) -> float:
    values: dict[Hashable, float] = G.values("clustering")
    of: list[float] = [values[node] for node in _nodes_of(G, nodes)]
    of = of if count_zeros else [value for value in of if abs(value) > 0]
    return float(sum(of) / len(of))


@_backed
@_refuses(_refuse_clustering)
def transitivity(G: Graph) -> float:
    closed = sum(G.values("triangles-per-vertex").values())
    triads = sum(degree * (degree - 1) for degree in _degrees(G).values())
    return 0.0 if closed == 0 else float(2 * closed / triads)


# Distances


def _levels(G: Graph, source: Hashable, direction: str | None = None) -> dict[Hashable, int]:
    return G.values("levels", direction, from_=G.vertex(source))


def _nearest_first(lengths: dict[Hashable, Any], cutoff: Any = None) -> dict[Hashable, Any]:
    found = [(node, length) for node, length in lengths.items() if cutoff is None or length <= cutoff]
    return dict(sorted(found, key=lambda item: item[1]))


@_backed
def single_source_shortest_path_length(G: Graph, source: Hashable, cutoff: Any = None) -> dict[Hashable, int]:
    _check_node(G, source, f"Source {source} is not in G")
    return _nearest_first(_levels(G, source), cutoff)


@_backed
def single_target_shortest_path_length(G: Graph, target: Hashable, cutoff: Any = None) -> dict[Hashable, int]:
    _check_node(G, target, f"Target {target} is not in G")
    return _nearest_first(_levels(G, target, "in"), cutoff)


@_backed
def all_pairs_shortest_path_length(G: Graph, cutoff: Any = None) -> Iterator[tuple[Hashable, dict[Hashable, int]]]:
    for node in G.nodes():
        yield node, _nearest_first(_levels(G, node), cutoff)


@_backed
def has_path(G: Graph, source: Hashable, target: Hashable) -> bool:
    _check_node(G, source, f"Source {source} is not in G")
    _check_node(G, target, f"Target {target} is not in G")
    return target in _levels(G, source)


@_backed
def descendants(G: Graph, source: Hashable) -> set[Hashable]:
    import networkx

    if source not in G:
        raise networkx.NetworkXError(f"The node {source} is not in the graph.")
    return set(_levels(G, source)) - {source}


@_backed
def ancestors(G: Graph, source: Hashable) -> set[Hashable]:
    import networkx

    if source not in G:
        raise networkx.NetworkXError(f"The node {source} is not in the graph.")
    return set(_levels(G, source, "in")) - {source}


@_backed
def descendants_at_distance(G: Graph, source: Hashable, distance: int) -> set[Hashable]:
    import networkx

    if source not in G:
        raise networkx.NetworkXError(f"The node {source} is not in the graph.")
    return {node for node, level in _levels(G, source).items() if level == distance}


def _refuse_eccentricity(G: Any, v: Any = None, sp: Any = None, weight: Any = None) -> str | None:
    return None if sp is None and weight is None else "distances are numbers of edges, and computed"


@_backed
@_refuses(_refuse_eccentricity)
def eccentricity(G: Graph, v: Any = None, sp: Any = None, weight: Any = None) -> Any:
    import networkx

    found: dict[Hashable, int] = {}
    for node in _nodes_of(G, v):
        levels = _levels(G, node)
        if len(levels) < len(G):
            what = "the digraph is not strongly connected" if G.is_directed() else "the graph is not connected"
            raise networkx.NetworkXError(f"Found infinite path length because {what}")
        found[node] = max(levels.values())
    return found[v] if v in G else found


def _refuse_bounds(G: Any, e: Any = None, usebounds: bool = False, weight: Any = None) -> str | None:
    return None if e is None and not usebounds and weight is None else "distances are numbers of edges, and computed"


@_backed
@_refuses(_refuse_bounds)
def diameter(G: Graph, e: Any = None, usebounds: bool = False, weight: Any = None) -> int:
    return int(max(eccentricity(G).values()))


@_backed
@_refuses(_refuse_bounds)
def radius(G: Graph, e: Any = None, usebounds: bool = False, weight: Any = None) -> int:
    return int(min(eccentricity(G).values()))


@_backed
@_refuses(_refuse_bounds)
def center(G: Graph, e: Any = None, usebounds: bool = False, weight: Any = None) -> list[Hashable]:
    found = eccentricity(G)
    least = min(found.values())
    return [node for node, value in found.items() if value == least]


@_backed
@_refuses(_refuse_bounds)
def periphery(G: Graph, e: Any = None, usebounds: bool = False, weight: Any = None) -> list[Hashable]:
    found = eccentricity(G)
    most = max(found.values())
    return [node for node, value in found.items() if value == most]


def _refuse_centroid(G: Any, weight: Any = None, attr: Any = None, sp: Any = None) -> str | None:
    return None if weight is None and attr is None and sp is None else "distances are numbers of edges, and computed"


@_backed
@_refuses(_refuse_centroid)
def centroid(G: Graph, weight: Any = None, attr: Any = None, sp: Any = None) -> list[Hashable]:
    import networkx

    sums: dict[Hashable, int] = {}
    for node in G.nodes():
        levels = _levels(G, node)
        if len(levels) < len(G):
            raise networkx.NetworkXNoPath(f"Input graph {G} is disconnected, so every induced subgraph has infinite barycentricity.")
        sums[node] = sum(levels.values())
    least = min(sums.values())
    return [node for node, value in sums.items() if value == least]


@_backed
@_refuses(_refuse_centroid)
def barycenter(G: Graph, weight: Any = None, attr: Any = None, sp: Any = None) -> list[Hashable]:
    # As networkx calls it before 3.7.
    return centroid(G)


def _refuse_average(G: Any, weight: Any = None, method: Any = None) -> str | None:
    return None if weight is None and method is None else "distances are numbers of edges"


@_backed
@_refuses(_refuse_average)
def average_shortest_path_length(G: Graph, weight: Any = None, method: Any = None) -> float:
    import networkx

    count = len(G)
    if count == 1:
        return 0
    total = 0
    for node in G.nodes():
        levels = _levels(G, node)
        if len(levels) < count:
            raise networkx.NetworkXError("Graph is not strongly connected." if G.is_directed() else "Graph is not connected.")
        total += sum(levels.values())
    return total / (count * (count - 1))


def _refuse_wiener(G: Any, weight: Any = None) -> str | None:
    return None if weight is None else "distances are numbers of edges"


@_backed
@_refuses(_refuse_wiener)
def wiener_index(G: Graph, weight: Any = None) -> float:
    total = 0
    for node in G.nodes():
        levels = _levels(G, node)
        if len(levels) < len(G):
            return math.inf
        total += sum(levels.values())
    return total if G.is_directed() else total / 2


@_backed
def global_efficiency(G: Graph) -> float:
    count = len(G)
    pairs = count * (count - 1)
    if pairs == 0:
        return 0
    return sum(1 / level for node in G.nodes() for level in _levels(G, node).values() if level > 0) / pairs


def _refuse_lengths(
    G: Any, source: Any = None, target: Any = None, weight: Any = None, method: str = "dijkstra", **_: Any
) -> str | None:
    if callable(weight):
        return "a weight is a property"
    if method not in ("dijkstra", "bellman-ford"):
        return "an unknown method is networkx's to reject"
    return _negative(G, weight)


def _negative(G: Any, weight: Any) -> str | None:
    if weight is None or isinstance(G, Graph):
        return None
    if any(isinstance(value, bool) or not isinstance(value, (int, float)) for _, _, value in G.edges(data=weight, default=1)):
        return "a weight is a number"
    negative = any(value < 0 or math.isnan(value) for _, _, value in G.edges(data=weight, default=1))
    return "a weight is 0 or more" if negative else None


@_backed
@_refuses(_refuse_lengths)
def shortest_path_length(
    G: Graph, source: Any = None, target: Any = None, weight: Any = None, method: str = "dijkstra"
) -> Any:
    import networkx

    for node, what in ((source, "Source"), (target, "Target")):
        if node is not None:
            _check_node(G, node, f"{what} {node} is not in G" if weight is None or what == "Source" else f"Node {node} not found in graph")
    if source is not None and target is not None:
        lengths = _lengths(G, source, weight)
        if target not in lengths:
            raise networkx.NetworkXNoPath(f"Node {target} not reachable from {source}" if weight is not None else f"No path between {source} and {target}.")
        return lengths[target]
    if source is not None:
        return _nearest_first(_lengths(G, source, weight))
    if target is not None:
        return _nearest_first(_lengths(G, target, weight, "in"))
    return ((node, _nearest_first(_lengths(G, node, weight))) for node in G.nodes())


def _lengths(G: Graph, source: Hashable, weight: Any, direction: str | None = None) -> dict[Hashable, Any]:
    if weight is None or weight not in G._weights:
        return _levels(G, source, direction)
    found = G.values("paths", direction, from_=G.vertex(source), weight=G._weights[weight])
    # Weights that are whole numbers have whole sums.
    return {node: int(length) if length == int(length) else length for node, length in found.items()}


def _refuse_weighted(G: Any, *args: Any, weight: Any = "weight", **_: Any) -> str | None:
    return "a weight is a property" if callable(weight) else _negative(G, weight)


def _refuse_single(G: Any, source: Any, cutoff: Any = None, weight: Any = "weight") -> str | None:
    return _refuse_weighted(G, weight=weight)


def _refuse_pair(G: Any, source: Any, target: Any, weight: Any = "weight") -> str | None:
    return _refuse_weighted(G, weight=weight)


def _refuse_all(G: Any, cutoff: Any = None, weight: Any = "weight") -> str | None:
    return _refuse_weighted(G, weight=weight)


def _refuse_bellman(G: Any, source: Any, weight: Any = "weight") -> str | None:
    return _refuse_weighted(G, weight=weight)


def _refuse_all_bellman(G: Any, weight: Any = "weight") -> str | None:
    return _refuse_weighted(G, weight=weight)


@_backed
@_refuses(_refuse_single)
def single_source_dijkstra_path_length(
    G: Graph, source: Hashable, cutoff: Any = None, weight: Any = "weight"
) -> dict[Hashable, Any]:
    _check_node(G, source, f"Node {source} not found in graph")
    return _nearest_first(_lengths(G, source, weight), cutoff)


@_backed
@_refuses(_refuse_pair)
def dijkstra_path_length(G: Graph, source: Hashable, target: Hashable, weight: Any = "weight") -> Any:
    import networkx

    _check_node(G, source, f"Node {source} not found in graph")
    if source == target:
        return 0
    lengths = _lengths(G, source, weight)
    if target not in lengths:
        raise networkx.NetworkXNoPath(f"Node {target} not reachable from {source}")
    return lengths[target]


@_backed
@_refuses(_refuse_all)
def all_pairs_dijkstra_path_length(
    G: Graph, cutoff: Any = None, weight: Any = "weight"
) -> Iterator[tuple[Hashable, dict[Hashable, Any]]]:
    for node in G.nodes():
        yield node, _nearest_first(_lengths(G, node, weight), cutoff)


@_backed
@_refuses(_refuse_bellman)
def single_source_bellman_ford_path_length(G: Graph, source: Hashable, weight: Any = "weight") -> dict[Hashable, Any]:
    _check_node(G, source, f"Node {source} not found in graph")
    return _nearest_first(_lengths(G, source, weight))


@_backed
@_refuses(_refuse_pair)
def bellman_ford_path_length(G: Graph, source: Hashable, target: Hashable, weight: Any = "weight") -> Any:
    import networkx

    if source == target:
        _check_node(G, source, f"Node {source} not found in graph")
        return 0
    _check_node(G, source, f"Source {source} not in G")
    lengths = _lengths(G, source, weight)
    if target not in lengths:
        raise networkx.NetworkXNoPath(f"node {target} not reachable from {source}")
    return lengths[target]


@_backed
@_refuses(_refuse_all_bellman)
def all_pairs_bellman_ford_path_length(G: Graph, weight: Any = "weight") -> Iterator[tuple[Hashable, dict[Hashable, Any]]]:
    for node in G.nodes():
        yield node, _nearest_first(_lengths(G, node, weight))


# Counts and shapes


@_backed
def isolates(G: Graph) -> Iterator[Hashable]:
    yield from (node for node, degree in _degrees(G).items() if degree == 0)


@_backed
def number_of_isolates(G: Graph) -> int:
    return sum(1 for _ in isolates(G))


@_backed
def is_isolate(G: Graph, n: Hashable) -> bool:
    return G.hoplake.degrees(G.vertex(n), G.hop("both")) == [0]


@_backed
def number_of_selfloops(G: Graph) -> int:
    return sum(source == target for source, target, _ in G.edges())


@_backed
def s_metric(G: Graph) -> float:
    degrees = _degrees(G)
    return float(sum(degrees[source] * degrees[target] for source, target, _ in G.edges()))


def _refuse_reciprocity(G: Any) -> str | None:
    return None if G.is_directed() else "networkx raises an exception"


@_backed
@_refuses(_refuse_reciprocity)
def overall_reciprocity(G: Graph) -> float:
    edges = {(source, target) for source, target, _ in G.edges()}
    pairs = {frozenset(edge) for edge in edges}
    return (len(edges) - len(pairs)) * 2 / len(edges)


@_backed
def is_regular(G: Graph) -> bool:
    directions = ["in", "out"] if G.is_directed() else ["both"]
    return all(len(set(_degrees(G, direction).values())) == 1 for direction in directions)


@_backed
def is_eulerian(G: Graph) -> bool:
    if G.is_directed():
        return _degrees(G, "in") == _degrees(G, "out") and is_strongly_connected(G)
    return all(degree % 2 == 0 for degree in _degrees(G).values()) and is_connected(G)


def _edge_count(G: Graph) -> int:
    return sum(1 for _ in G.edges())


@_backed
def is_tree(G: Graph) -> bool:
    return len(G) - 1 == _edge_count(G) and number_connected_components(G) == 1


@_backed
def is_forest(G: Graph) -> bool:
    return len(G) - number_connected_components(G) == _edge_count(G)


@_backed
def is_arborescence(G: Graph) -> bool:
    return is_tree(G) and max(_degrees(G, "in").values()) <= 1


@_backed
def is_branching(G: Graph) -> bool:
    return is_forest(G) and max(_degrees(G, "in").values()) <= 1


# Communities


def _refuse_leiden(
    G: Any,
    weight: Any = "weight",
    resolution: float = 1,
    max_level: Any = None,
    seed: Any = None,
    metric: str = "modularity",
    theta: float = 0.01,
) -> str | None:
    # Before 3.7, networkx had neither; its default is "cpm" since.
    if metric != "modularity" or theta != 0.01:
        return "it maximizes modularity, and takes the best of neighbouring communities"
    if G.is_directed():
        return "directions of edges count in networkx's modularity"
    return None if max_level is None else "all levels are computed"


@_backed
@_refuses(_refuse_leiden)
def leiden_communities(
    G: Graph,
    weight: Any = "weight",
    resolution: float = 1,
    max_level: Any = None,
    seed: Any = None,
    metric: str = "modularity",
    theta: float = 0.01,
) -> list[set[Hashable]]:
    options: dict[str, Any] = {"resolution": resolution}
    if weight is not None and weight in G._weights:
        options["weight"] = G._weights[weight]
    if isinstance(seed, int):
        options["seed"] = seed
    return _group(G.values("leiden", **options))


@_backed
def is_partition(G: Graph, communities: Iterable[Collection[Hashable]]) -> bool:
    parts = list(communities)
    nodes = {node for part in parts for node in part if node in G}
    return len(G) == len(nodes) == sum(len(part) for part in parts)


def _refuse_modularity(G: Any, communities: Any, weight: Any = "weight", resolution: float = 1) -> str | None:
    return _negative(G, weight)


@_backed
@_refuses(_refuse_modularity)
def modularity(G: Graph, communities: Iterable[Collection[Hashable]], weight: Any = "weight", resolution: float = 1) -> float:
    import networkx

    parts = list(communities)
    if not is_partition(G, parts):
        community: Any = networkx.community
        raise community.quality.NotAPartition(G, parts)
    of = {node: number for number, part in enumerate(parts) for node in part}
    inner = [0.0] * len(parts)
    leaving = [0.0] * len(parts)
    entering = [0.0] * len(parts)
    total = 0.0
    for source, target, value in G.edges(weight):
        total += value
        first, last = of[source], of[target]
        leaving[first] += value
        entering[last] += value
        if first == last:
            inner[first] += value
    if not G.is_directed():
        leaving = entering = [a + b for a, b in zip(leaving, entering)]
        norm = 1 / (2 * total) ** 2
    else:
        norm = 1 / total**2
    return sum(a / total - resolution * b * c * norm for a, b, c in zip(inner, leaving, entering))


# Pairs


def _pairs(G: Graph, ebunch: Any) -> Iterator[tuple[Hashable, Hashable, dict[Hashable, set[Hashable]]]]:
    """Pairs of nodes, and the neighbours of all nodes that are in one."""
    import networkx

    around: dict[Hashable, set[Hashable]] = {node: set() for node in G.nodes()}
    for source, target, _ in G.edges():
        around[source].add(target)
        around[target].add(source)
    if ebunch is None:
        pairs: Iterable[tuple[Hashable, Hashable]] = (
            pair for pair in combinations(G.nodes(), 2) if pair[1] not in around[pair[0]]
        )
    else:
        pairs = list(ebunch)
        for first, last in pairs:
            for node in (first, last):
                if node not in G:
                    raise networkx.NodeNotFound(f"Node {node} not in G.")
    for first, last in pairs:
        yield first, last, around


@_backed
@_refuses(_no_self_loops)
def jaccard_coefficient(G: Graph, ebunch: Any = None) -> Iterator[tuple[Hashable, Hashable, float]]:
    def score(near: set[Hashable], far: set[Hashable]) -> float:
        union = near | far
        return len(near & far) / len(union) if union else 0

    return ((first, last, score(around[first], around[last])) for first, last, around in list(_pairs(G, ebunch)))


@_backed
@_refuses(_no_self_loops)
def resource_allocation_index(G: Graph, ebunch: Any = None) -> Iterator[tuple[Hashable, Hashable, float]]:
    found = list(_pairs(G, ebunch))
    return (
        (first, last, sum(1 / len(around[node]) for node in around[first] & around[last] - {first, last}))
        for first, last, around in found
    )


@_backed
@_refuses(_no_self_loops)
def adamic_adar_index(G: Graph, ebunch: Any = None) -> Iterator[tuple[Hashable, Hashable, float]]:
    found = list(_pairs(G, ebunch))
    return (
        (first, last, sum(1 / math.log(len(around[node])) for node in around[first] & around[last] - {first, last}))
        for first, last, around in found
    )


@_backed
@_refuses(_no_self_loops)
def preferential_attachment(G: Graph, ebunch: Any = None) -> Iterator[tuple[Hashable, Hashable, int]]:
    found = list(_pairs(G, ebunch))
    return ((first, last, len(around[first]) * len(around[last])) for first, last, around in found)


class _Backend:
    """What networkx finds by the entry point ``networkx.backends``."""

    convert_from_nx = staticmethod(convert_from_nx)
    convert_to_nx = staticmethod(convert_to_nx)
    can_run = staticmethod(can_run)
    should_run = staticmethod(should_run)

    def __getattr__(self, name: str) -> Any:
        try:
            return _FUNCTIONS[name]
        except KeyError:
            raise AttributeError(name) from None

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *_FUNCTIONS]


backend = _Backend()


def get_info() -> dict[str, Any]:
    """What networkx finds by the entry point ``networkx.backend_info``."""
    return {
        "backend_name": "hoplake",
        "project": "hoplake",
        "package": "hoplake",
        "short_summary": "Computes on graphs in object storage, without a conversion.",
        "functions": {name: {} for name in sorted(_FUNCTIONS)},
    }
