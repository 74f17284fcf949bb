# pyright: basic, reportAttributeAccessIssue=false
# networkx has types in part.
"""Functions of networkx, computed by Hoplake: next to networkx itself, on converted graphs and on stored ones."""

from __future__ import annotations

import importlib
import inspect
import math
import random
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hoplake

networkx: Any = pytest.importorskip("networkx")
backend: Any = pytest.importorskip("hoplake.nx")


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The backend, which networkx finds by its entry point once the package is installed."""
    warnings.filterwarnings("ignore", module="networkx")
    registry: Any = importlib.import_module("networkx.utils.backends")

    class EntryPoint:
        name = "hoplake"

        def load(self) -> Any:
            return backend.backend

    monkeypatch.setitem(registry.backends, "hoplake", EntryPoint())
    monkeypatch.setitem(registry.backend_info, "hoplake", backend.get_info())
    for function in registry._registered_algorithms.values():
        if function.name in backend.FUNCTIONS:
            function.backends.add("hoplake")
    yield


def graphs() -> list[Any]:
    """Directed and undirected, connected and not, with isolated nodes and with nodes of any kind."""
    rng = random.Random(5)
    connected = networkx.connected_watts_strogatz_graph(25, 4, 0.3, seed=1)
    sparse = networkx.gnp_random_graph(30, 0.06, seed=2)
    directed = networkx.gnp_random_graph(25, 0.12, seed=3, directed=True)
    strong = networkx.compose(directed, networkx.cycle_graph(25, create_using=networkx.DiGraph))
    named = networkx.relabel_nodes(connected, {node: (str(node), node) for node in connected})
    for graph in (connected, directed, strong):
        for _, _, data in graph.edges(data=True):
            data["weight"] = rng.randint(1, 9)
    plain = [networkx.gnp_random_graph(20, 0.2, seed=seed, directed=True) for seed in (4, 5)]
    return [connected, sparse, directed, strong, named, networkx.path_graph(4), networkx.star_graph(5), *plain]


def _plain(value: Any) -> Any:
    """A result in a form in which order does not matter where networkx has none."""
    if hasattr(value, "__next__"):
        value = list(value)
    if isinstance(value, list) and value and isinstance(value[0], set):
        return sorted(sorted(map(repr, part)) for part in value)
    if isinstance(value, list) and value and isinstance(value[0], tuple) and len(value[0]) == 3:
        return {frozenset((first, last)): score for first, last, score in value}
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return dict(value)
    return value


def _same(ours: Any, theirs: Any) -> bool:
    if isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(_same(ours[key], theirs[key]) for key in theirs)
    if isinstance(theirs, (list, tuple)):
        return len(ours) == len(theirs) and all(map(_same, ours, theirs))
    if isinstance(theirs, float) or isinstance(ours, float):
        return math.isclose(ours, theirs, rel_tol=1e-5, abs_tol=1e-6)
    return bool(ours == theirs)


def _arguments(name: str, graph: Any) -> list[Any]:
    nodes = list(graph)
    first, last = nodes[0], nodes[-1]
    takes_pair = {"has_path", "dijkstra_path_length", "bellman_ford_path_length"}
    if name in takes_pair:
        return [first, last]
    if name == "descendants_at_distance":
        return [first, 2]
    if name in {"modularity", "is_partition"}:
        return [[set(nodes[:3]), set(nodes[3:])]]
    takes_node = {"node_connected_component", "is_isolate", "descendants", "ancestors"}
    return [first] if name in takes_node or name.startswith("single_") else []


def _call(function: Any, graph: Any, arguments: list[Any], **options: Any) -> Any:
    try:
        return _plain(function(graph, *arguments, **options))
    except networkx.NetworkXException as error:
        return type(error)


@pytest.mark.parametrize("name", sorted(set(backend.FUNCTIONS) - {"leiden_communities"}))
def test_results_are_those_of_networkx(name: str) -> None:
    if name in {"pagerank", "hits"}:
        pytest.importorskip("scipy")
    function = getattr(networkx, name, None) or getattr(networkx.community, name, None)
    if not hasattr(function, "backends"):
        pytest.skip("this version of networkx asks no backend for it")
    compared = 0
    for graph in graphs():
        arguments = _arguments(name, graph)
        if backend.can_run(name, (graph, *arguments), {}) is not True:
            continue
        theirs = _call(function, graph, arguments)
        ours = _call(function, graph, arguments, backend="hoplake")
        assert _same(ours, theirs), (graph, ours, theirs)
        compared += 1
    assert compared >= 2


def test_there_are_sixty() -> None:
    assert len(backend.FUNCTIONS) >= 60


def test_communities_are_partitions() -> None:
    if not hasattr(networkx.community, "leiden_communities"):
        pytest.skip("this version of networkx does not have it")
    graph = networkx.karate_club_graph()
    is_old = "metric" not in inspect.signature(networkx.community.leiden_communities).parameters
    options: dict[str, Any] = {} if is_old else {"metric": "modularity"}
    found = networkx.community.leiden_communities(graph, backend="hoplake", seed=1, **options)
    assert networkx.community.is_partition(graph, found)
    assert networkx.community.modularity(graph, found) > 0.4
    assert "directions" in str(backend.can_run("leiden_communities", (networkx.DiGraph([(0, 1)]),), {}))


def test_arguments_of_a_newer_networkx_are_taken_with_their_defaults_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def newer(G: Any, *, way: str = "short", times: int = 1) -> None: ...

    monkeypatch.setattr(networkx, "transitivity", newer)
    graph = networkx.karate_club_graph()
    assert backend.can_run("transitivity", (graph,), {"way": "short", "times": 1}) is True
    assert backend.backend.transitivity(backend.convert_from_nx(graph), way="short", times=1) > 0
    refused: list[dict[str, Any]] = [{"way": "long"}, {"times": 2}, {"other": None}, {"way": [1]}]
    for kwargs in refused:
        assert "does not know the argument" in str(backend.can_run("transitivity", (graph,), kwargs))
        with pytest.raises(NotImplementedError, match="does not know the argument"):
            backend.backend.transitivity(backend.convert_from_nx(graph), **kwargs)


def test_a_stored_graph_is_not_converted(social: hoplake.Graph) -> None:
    stored = social.nx("knows")
    theirs = networkx.DiGraph([(1, 2), (1, 3), (2, 3), (3, 4)])
    assert _same(networkx.pagerank(stored, backend="hoplake", weight=None), networkx.pagerank(theirs, weight=None))
    # The graph says whose it is.
    assert networkx.descendants(stored, 1) == {2, 3, 4}
    assert networkx.shortest_path_length(stored, 1, 4) == 2
    assert networkx.dijkstra_path_length(stored, 1, 3, weight="since") == 2020
    assert networkx.number_connected_components(social.nx("knows", directed=False)) == 1
    with pytest.raises(networkx.NodeNotFound):
        networkx.has_path(stored, 1, 99)
    converted = stored.to_networkx()
    assert sorted(converted.edges(data="since")) == [(1, 2, 2019), (1, 3, 2020), (2, 3, 2021), (3, 4, 2022)]


def test_what_differs_is_left_to_networkx() -> None:
    graph = networkx.karate_club_graph()
    loops = networkx.Graph([(1, 1), (1, 2)])
    texts = networkx.Graph([(1, 2, {"weight": "far"})])
    for name, arguments, options in [
        ("pagerank", (graph,), {"nstart": {0: 1}}),
        ("betweenness_centrality", (graph,), {"endpoints": True}),
        ("core_number", (loops,), {}),
        ("dijkstra_path_length", (texts, 1, 2), {}),
        ("dijkstra_path_length", (networkx.Graph([(1, 2, {"weight": -1})]), 1, 2), {}),
        ("louvain_communities", (graph,), {}),
        ("pagerank", (networkx.Graph(),), {}),
    ]:
        assert isinstance(backend.can_run(name, arguments, options), str), name


def test_folders_of_conversions_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import gc
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    converted = backend.convert_from_nx(networkx.path_graph(3))
    assert len(list(tmp_path.iterdir())) == 1
    assert len(converted) == 3
    del converted
    gc.collect()
    assert list(tmp_path.iterdir()) == []
