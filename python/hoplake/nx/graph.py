"""The graph that functions of networkx get: the vertices and some edges of a graph of Hoplake."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator
from operator import index
from typing import TYPE_CHECKING, Any

from .._arguments import as_text
from .._errors import InvalidError, NotFoundError, make
from .._schema import EdgeType
from .._sync.computation import Computation
from .._sync.graph import Graph as HoplakeGraph

if TYPE_CHECKING:
    import networkx

#: Labels of a converted graph.
LABEL = "n"
EDGE = "e"
_NUMBERS = ("int64", "float64")


class Graph:
    """The vertices and some edges of a graph of Hoplake, for functions of networkx.

    Its nodes are keys of vertices or, if vertices of several labels take part, pairs of label and key. Edges may be parallel, so networkx takes it for
    a multigraph; with ``multigraph=False`` the caller says that none are, for functions that networkx has for simple graphs alone. Functions that are
    not in :data:`hoplake.nx.FUNCTIONS` need ``to_networkx()``.
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
        schema = graph.schema
        known = dict.fromkeys(it.label for it in schema.edge_types)
        for label in edge_labels:
            if as_text("an edge label", label) not in known:
                raise make("not_found", f'the graph has no edge label "{label}"; it has {", ".join(known) or "none"}')
        self.hoplake = graph
        self.is_converted = nodes is not None
        self._edge_labels = list(edge_labels)
        self._directed = directed
        self._multigraph = multigraph
        # Of a converted graph: the property of each attribute.
        self._weights = dict(weights or {})
        # Of a converted graph: the node of each key.
        self._nodes = nodes
        self._numbers: dict[Hashable, int] | None = None
        self._found_multiplicity: dict[str, int | float] | None = None
        #: Types of edges that take part.
        self.edge_types = [it for it in schema.edge_types if not self._edge_labels or it.label in self._edge_labels]
        ends = {label for it in self.edge_types for label in (it.source_label, it.target_label)}
        #: Labels of vertices that take part.
        self.labels = [it.name for it in schema.labels if it.name in ends or self.is_converted or not schema.edge_types]
        self._key_types = {it.name: it.key_type for it in schema.labels}

    def is_directed(self) -> bool:
        """Whether edges have a direction."""
        return self._directed

    def is_multigraph(self) -> bool:
        """Whether there may be several edges between two nodes."""
        return self._multigraph

    def __len__(self) -> int:
        return self.hoplake.count(self.labels) if self._nodes is None else len(self._nodes)

    def number_of_nodes(self) -> int:
        """How many nodes there are."""
        return len(self)

    def number_of_edges(self) -> int:
        """How many edges there are. They are read only if commits have made the counts of the schema inexact."""
        if all(it.is_exact for it in self.edge_types):
            return sum(it.edges for it in self.edge_types)
        return sum(1 for _ in self.edges())

    def degree(self, node: Hashable) -> int:
        """How many edges a node has."""
        return self.hoplake.degrees(self.vertex(node), self.hop("both"))[0]

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self.nodes())

    def __contains__(self, node: Hashable) -> bool:
        try:
            hash(node)
        except TypeError:
            return False
        if self._nodes is not None:
            return node in self.numbers()
        vertex = self._vertex(node)
        if vertex is None:
            return False
        try:
            return len(self.hoplake.get(vertex, select=[])) == 1
        except NotFoundError:
            return False

    def nodes(self) -> list[Hashable]:
        """All nodes, in the order of networkx or, of a graph in a store, in its own."""
        if self._nodes is None:
            found = self.hoplake.scan(self.labels, select=[]).table()
            self._nodes = [self.node(label, key) for label, key in zip(found["label"], found["key"])]
        return self._nodes

    def numbers(self) -> dict[Hashable, int]:
        """The position of each node."""
        if self._numbers is None:
            self._numbers = {node: number for number, node in enumerate(self.nodes())}
        return self._numbers

    def node(self, label: str, key: int | str) -> Hashable:
        """The node of a vertex. Keys are text in tables in which some are."""
        key = int(key) if self._key_types[label] == "int64" else key
        if self.is_converted:
            return self.nodes()[int(key)]
        return key if len(self.labels) == 1 else (label, key)

    def vertex(self, node: Hashable) -> tuple[str, int | str]:
        """The vertex of a node, as calls of Hoplake take it."""
        vertex = self._vertex(node)
        if vertex is None:
            raise KeyError(node)
        return vertex

    def _vertex(self, node: Any) -> tuple[str, int | str] | None:
        """The vertex that a node names, whether or not there is one; none if no vertex could have this label and key."""
        if self.is_converted:
            number = self.numbers().get(node)
            return None if number is None else (LABEL, number)
        label: str = self.labels[0]
        key: Any = node
        if len(self.labels) != 1:
            pair: Any = node
            if not isinstance(node, tuple) or len(pair) != 2 or pair[0] not in self.labels:
                return None
            label, key = pair
        if self._key_types[label] != "int64":
            return (label, key) if isinstance(key, str) else None
        try:
            # Numbers of numpy and floats without a fraction equal integers, and dicts of networkx find them.
            whole: Any = int(key) if isinstance(key, float) and key.is_integer() else key
            number = index(whole)
        except TypeError:
            return None
        return (label, number) if -(2**63) <= number < 2**63 else None

    def hop(self, direction: str | None = None) -> str:
        """The edges, as calls of Hoplake take them."""
        direction = direction if self._directed and direction is not None else "out" if self._directed else "both"
        quoted = ",".join('"' + label.replace('"', '""') + '"' for label in self._edge_labels)
        return f"{direction}:{quoted}" if quoted else direction

    def column(self, weight: Any) -> str | None:
        """The property that a weight is, or none if all edges weigh 1."""
        if self.is_converted:
            return self._weights.get(weight)
        return weight if any(weight in it.properties for it in self.edge_types) else None

    def why_not_weight(self, weight: Any, *, is_scanned: bool = False) -> str | None:
        """Why edges cannot be weighed by a property, or none. Where edges are scanned, those without it weigh 1, as in networkx."""
        column = self.column(weight)
        if column is None:
            return None
        for it in self.edge_types:
            kind = it.properties.get(column)
            if kind is None and not is_scanned:
                return f"edges {_type(it)} have no property {column!r}, and would weigh 1 in networkx"
            if kind is not None and kind not in _NUMBERS:
                return f"the property {column!r} of edges {_type(it)} is of type {kind}, and a weight is a number"
        return None

    def edges(self, weight: str | None = None) -> Iterator[tuple[Hashable, Hashable, Any]]:
        """All edges with a property, or 1 without it."""
        column = None if weight is None else self.column(weight)
        for it in self.edge_types:
            select = [column] if column in it.properties else []
            scan = self.hoplake.scan_edges(it.label, source_label=it.source_label, target_label=it.target_label, select=select)
            for table in scan.batches():
                values: list[Any] = [1] * len(table) if column is None or not select else table[column]
                for source, target, value in zip(table["source"], table["target"], values):
                    yield self.node(it.source_label, source), self.node(it.target_label, target), 1 if value is None else value

    def has_self_loops(self) -> bool:
        """Whether an edge leads from a node to itself. Reads edges, once."""
        return self._multiplicity()["self_loops"] > 0

    def has_parallel_edges(self) -> bool:
        """Whether several edges lead from one node to another or, without directions, are between two nodes. Reads edges, once."""
        return self._multiplicity()["parallel_edges"] > 0

    def _multiplicity(self) -> dict[str, int | float]:
        if self._found_multiplicity is None:
            self._found_multiplicity = self.run("multiplicity").figures
        return self._found_multiplicity

    def run(self, algorithm: str, direction: str | None = None, *, weight: Any = None, **options: Any) -> Computation:
        """Computes an algorithm over nodes and edges."""
        column = None if weight is None else self.column(weight)
        run: Any = self.hoplake.run
        if column is None:
            computed: Computation = run(algorithm, edges=self.hop(direction), labels=self.labels, **options)
            return computed
        try:
            computed = run(algorithm, edges=self.hop(direction), labels=self.labels, weight=column, **options)
            return computed
        except InvalidError as error:
            raise self._unusable(error) from error

    def values(self, algorithm: str, direction: str | None = None, **options: Any) -> dict[Hashable, Any]:
        """The values of an algorithm by node, in the order of nodes; nodes without one are left out."""
        return self.by_node(self.run(algorithm, direction, **options))

    def by_node(self, computed: Computation) -> dict[Hashable, Any]:
        """The values of a computation by node."""
        table = computed.table()
        found = zip(table["label"], table["key"], table[table.columns[2]])
        return {self.node(label, key): value for label, key, value in found if value is not None}

    def path_length(self, source: Hashable, target: Hashable, weight: Any = None) -> float | None:
        """The length of a shortest path between two nodes, or none. Reads what is near them, not the whole graph."""
        column = None if weight is None else self.column(weight)
        ends = self.vertex(source), self.vertex(target)
        try:
            path = self.hoplake.path(*ends, self.hop(), weight=column, max_edges=max(1, len(self)))
        except InvalidError as error:
            if column is None:
                raise
            raise self._unusable(error) from error
        return None if path is None else path.length

    def to_networkx(self) -> networkx.Graph[Any]:
        """As a graph of networkx, with the properties of edges as attributes."""
        import networkx

        kinds: dict[tuple[bool, bool], Any] = {
            (False, False): networkx.Graph,
            (True, False): networkx.DiGraph,
            (False, True): networkx.MultiGraph,
            (True, True): networkx.MultiDiGraph,
        }
        graph: networkx.Graph[Any] = kinds[self._directed, self._multigraph]()
        graph.add_nodes_from(self.nodes())
        names = {column: name for name, column in self._weights.items()}
        for it in self.edge_types:
            scan = self.hoplake.scan_edges(it.label, source_label=it.source_label, target_label=it.target_label)
            for table in scan.batches():
                for row in table:
                    source = self.node(row.pop("source_label"), row.pop("source"))
                    target = self.node(row.pop("target_label"), row.pop("target"))
                    del row["label"]
                    attributes = {names.get(name, name): value for name, value in row.items() if value is not None}
                    graph.add_edges_from([(source, target, attributes)])
        return graph

    def _unusable(self, error: InvalidError) -> Exception:
        """Some edge has no weight, or one below 0, which only a computation finds out. networkx computes what it converted itself."""
        if self.is_converted:
            return NotImplementedError(str(error))
        hint = "networkx computes with such weights after graph.nx(…).to_networkx()"
        return make("invalid", f"Hoplake does not compute with these weights: {error}", hint=hint)

    def __str__(self) -> str:
        # As networkx has it in messages.
        kind = ("Multi" if self._multigraph else "") + ("DiGraph" if self._directed else "Graph")
        return f"{kind} with {len(self)} nodes and {self.number_of_edges()} edges"

    def __repr__(self) -> str:
        return f"<hoplake.nx.Graph of {self.hoplake.url}: {self.hop()}>"


def _type(it: EdgeType) -> str:
    return f"{it.source_label} -{it.label}-> {it.target_label}"
