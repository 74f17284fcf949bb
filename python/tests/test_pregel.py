"""Vertex programs over columns: against the kernels, against a plain loop over edges, and with callbacks that misbehave."""

from __future__ import annotations

import asyncio
import builtins
import collections
import doctest
import math
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import hoplake
import hoplake.aio


def _random(seed: int, vertices: int, edges: int) -> tuple[list[int], list[tuple[int, int]]]:
    random = np.random.default_rng(seed)
    pairs = random.integers(0, vertices, (edges, 2)) ** 2 // vertices
    return list(range(vertices)), [(int(source), int(target)) for source, target in pairs]


GRAPHS: dict[str, tuple[list[int], list[tuple[int, int]]]] = {
    "one vertex": ([7], []),
    "one loop": ([7], [(7, 7)]),
    "no edges": ([1, 2, 3], []),
    "loops": ([1, 2, 3], [(1, 1), (1, 2), (2, 2), (2, 2)]),
    "parallel": ([5, 1, 9, 4], [(1, 5), (1, 5), (1, 5), (5, 9), (9, 1), (4, 9)]),
    "path": (list(range(40, 0, -1)), [(key, key + 1) for key in range(1, 40)]),
    "random": _random(1, 300, 900),
    "dense": _random(2, 30, 600),
}


def _load(url: str, vertices: list[int], edges: list[tuple[int, int]]) -> hoplake.Graph:
    """Vertices in the order given; odd edges have another label than even ones, and weights have many sizes."""
    tables: list[Any] = []
    for label, parity in (("even", 0), ("odd", 1)):
        own = edges[parity::2]
        weights = pa.array([float((3 * place) % 7 + 1) for place in range(len(own))], pa.float64())
        sources, targets = ([pair[end] for pair in own] for end in (0, 1))
        table = pa.table({"source": pa.array(sources, pa.int64()), "target": pa.array(targets, pa.int64()), "km": weights})
        tables.append((("v", label, "v"), table))
    ages = pa.array([None if key % 3 == 0 else key for key in vertices], pa.int64())
    people = pa.table({"key": pa.array(vertices, pa.int64()), "age": ages, "size": pa.array(vertices, pa.int64())})
    hoplake.load(url, vertices={"v": people}, edges=tables)
    return hoplake.open(url)


@pytest.fixture(params=[*GRAPHS, "labels", "deleted"])
def graph(request: pytest.FixtureRequest, url: str) -> hoplake.Graph:
    if request.param in GRAPHS:
        return _load(url, *GRAPHS[request.param])
    if request.param == "deleted":
        graph = _load(url, *GRAPHS["random"])
        with graph.begin() as commit:
            for key in (0, 3, 150, 298, 299):
                commit.delete_vertex("v", key)
        graph.refresh()
        return graph
    edges: Any = {
        ("b", "likes", "a"): {"source": ["x", "x", "y"], "target": [3, 1, 1]},
        ("a", "likes", "a"): {"source": [1, 2], "target": [2, 1]},
        ("a", "knows", "c"): {"source": [2, 3], "target": [10, 11]},
    }
    vertices: Any = {"c": {"key": [12, 10, 11]}, "a": {"key": [3, 1, 2, 4]}, "b": {"key": ["y", "x"]}}
    hoplake.load(url, vertices=vertices, edges=edges)
    return hoplake.open(url)


def _column(computation: hoplake.Computation) -> Any:
    table = computation.to_arrow()
    return table.column(computation.name).to_numpy(zero_copy_only=False)


def _rank(graph: hoplake.Graph, **options: Any) -> hoplake.Computation:
    def follow(rank: Any, received: Any, pages: hoplake.Vertices) -> Any:
        stuck = rank[pages.degree == 0].sum()
        return (0.15 + 0.85 * stuck) / pages.count + 0.85 * received

    return graph.pregel(
        initial=lambda pages: 1 / pages.count,
        signal=lambda rank, pages: rank / np.maximum(pages.degree, 1),
        apply=follow,
        name="rank",
        **options,
    )


@pytest.mark.parametrize("lists", ["memory", "streamed"])
@pytest.mark.parametrize("edges", ["out", "in", "both"])
def test_page_rank_is_that_of_the_kernel(graph: hoplake.Graph, edges: str, lists: Any) -> None:
    found = _rank(graph, edges=edges, lists=lists, max_supersteps=300, tolerance=0)
    expected = graph.run("pagerank", edges=edges, iterations=300, tolerance=0)
    np.testing.assert_allclose(_column(found), _column(expected), rtol=1e-12, atol=1e-15)
    # As often as its program, which has shares of 8 bytes from the beginning, the sums are the same but for their last bits.
    found = _rank(graph, edges=edges, lists=lists, max_supersteps=7)
    expected = graph.run("pagerank", edges=edges, iterations=7, tolerance=0, lists="streamed")
    np.testing.assert_allclose(_column(found), _column(expected), rtol=1e-14, atol=0)
    assert found.iterations == expected.iterations == 7 or found.figures["converged"] == 1


@pytest.mark.parametrize("lists", ["memory", "streamed"])
def test_least_labels_are_components(graph: hoplake.Graph, lists: Any) -> None:
    def least(label: Any, received: Any, _: hoplake.Vertices) -> Any:
        smaller = np.minimum(label, received)
        # Only those whose label changed signal it again.
        return smaller, smaller != label

    found = graph.pregel(
        initial=lambda vertices: vertices.order,
        signal=lambda label, _: label,
        combine="min",
        apply=least,
        edges="both",
        lists=lists,
        name="component",
    )
    expected = graph.run("components")
    assert found.to_arrow().equals(expected.to_arrow())
    assert found.figures == {"converged": 1} and len(found) == len(expected)


@pytest.mark.parametrize("edges", ["out", "in", "both"])
def test_most_frequent_labels_are_communities(graph: hoplake.Graph, edges: str) -> None:
    found = graph.pregel(
        initial=lambda vertices: vertices.order,
        signal=lambda label, _: label,
        combine="mode",
        apply=lambda label, received, _: received,
        edges=edges,
        max_supersteps=10,
        name="community",
    )
    assert found.to_arrow().equals(graph.run("communities", edges=edges, iterations=10).to_arrow())


def test_lengths_are_those_of_paths(url: str) -> None:
    graph = _load(url, *GRAPHS["random"])
    found = graph.pregel(
        initial=lambda vertices: np.where(vertices["size"] == 0, 0.0, np.inf),
        signal=lambda length, _: length,
        combine="min",
        apply=lambda length, received, _: np.minimum(length, received),
        weight="km",
        along="plus",
    )
    lengths = _column(found)
    expected = _column(graph.run("paths", from_="v:0", weight="km"))
    # There infinity is no value, and here it is one.
    assert np.array_equal(np.where(np.isinf(lengths), np.nan, lengths), expected, equal_nan=True)


# Against a plain loop over edges


def _combined(how: str, signals: list[float], own: float, is_float: bool) -> float:
    greatest: float = math.inf if is_float else 2**63 - 1
    least: float = -math.inf if is_float else -(2**63)
    if how == "mode":
        counts = collections.Counter(signals)
        return min(counts, key=lambda value: (-counts[value], value)) if signals else own
    if how == "mean":
        return sum(signals) / len(signals) if signals else math.nan
    plain: dict[str, Callable[[], float]] = {
        "sum": lambda: sum(signals),
        "count": lambda: len(signals),
        "min": lambda: min(signals, default=greatest),
        "max": lambda: max(signals, default=least),
    }
    return plain[how]()


@pytest.mark.parametrize("lists", ["memory", "streamed"])
@pytest.mark.parametrize("hop", ["out", "in", "both", "out:odd", "out[km > 3]", "in:even[km < 6]"])
@pytest.mark.parametrize("how", ["sum", "min", "max", "mean", "count", "mode"])
def test_combined_signals_are_those_of_a_loop_over_edges(url: str, how: Any, hop: str, lists: Any) -> None:
    graph = _load(url, *GRAPHS["random"])
    with graph.begin() as commit:
        for key in (0, 17, 150, 299):
            commit.delete_vertex("v", key)
    graph.refresh()
    keys = graph.run("degrees").to_arrow().column("key").to_pylist()
    place = {key: number for number, key in enumerate(keys)}
    edges: list[tuple[int, int, float]] = []
    for row in graph.scan_edges():
        km = row["km"]
        if (":odd" in hop and row["label"] != "odd") or (":even" in hop and row["label"] != "even"):
            continue
        if ("km > 3" in hop and not km > 3) or ("km < 6" in hop and not km < 6):
            continue
        source, target = place[row["source"]], place[row["target"]]
        edges += [(source, target, km)] * (not hop.startswith("in"))
        edges += [(target, source, km)] * (not hop.startswith("out"))
    random = np.random.default_rng(3)
    integers = random.integers(-4, 4, len(keys))
    floats = np.where(random.random(len(keys)) < 0.2, np.nan, integers / 4)
    senders = random.random(len(keys)) < 0.7
    for column in (integers, floats):
        for is_masked in (False, True):
            for weight in (None, "times", "plus"):
                for default in (None, 42):
                    if weight is not None and how in ("count", "mode"):
                        continue
                    is_float = weight is not None or column is floats
                    received: list[list[float]] = [[] for _ in keys]
                    for source, target, km in edges:
                        value = column[source].item()
                        value = value * km if weight == "times" else value + km if weight == "plus" else value
                        if not math.isnan(value) and (senders[source] or not is_masked):
                            received[target].append(value)
                    expected = [_combined(how, signals, own.item(), is_float) for signals, own in zip(received, column)]
                    if default is not None:
                        expected = [value if signals else default for value, signals in zip(expected, received)]
                    found: list[Any] = []

                    def apply(_: Any, combined: Any, __: hoplake.Vertices) -> Any:
                        found.append(combined)
                        return 0, senders

                    weighted: Any = {} if weight is None else {"weight": "km", "along": weight}
                    graph.pregel(
                        initial=0,
                        signal=lambda _, __: column,
                        combine=how,
                        apply=apply,
                        edges=hop,
                        lists=lists,
                        default=default,
                        max_supersteps=2,
                        **weighted,
                    )
                    last = found[1 if is_masked else 0]
                    is_float = how == "mean" or (is_float and how != "count")
                    assert last.dtype == (np.float64 if is_float else np.int64)
                    # Quarters add up exactly.
                    assert np.array_equal(last, np.array(expected, last.dtype), equal_nan=is_float) or how == "mean"
                    np.testing.assert_allclose(last, expected, rtol=1e-15)


def test_vertices_have_degrees_weights_places_and_properties(graph: hoplake.Graph) -> None:
    seen: list[hoplake.Vertices] = []

    def initial(vertices: hoplake.Vertices) -> Any:
        seen.append(vertices)
        return 0

    places: Any = ("memory", "streamed")
    for lists in places:
        has_km = "km" in str(graph.schema)
        options: Any = {"weight": "km"} if has_km else {}
        found = graph.pregel(
            initial=initial,
            signal=_same,
            apply=lambda state, received, _: (state, False),
            edges="out",
            lists=lists,
            **options,
        )
        vertices, rows = seen[-1], found.to_arrow()
        assert vertices.count == len(vertices) == len(found) == rows.num_rows
        degrees, weights = collections.Counter[Any](), collections.Counter[Any]()
        for row in graph.scan_edges():
            degrees[row["source_label"], row["source"]] += 1
            weights[row["source_label"], row["source"]] += row.get("km", 0)
        names: list[Any] = list(zip(rows.column("label").to_pylist(), rows.column("key").to_pylist()))
        if has_km:
            assert vertices.degree.tolist() == [degrees[name] for name in names]
            assert vertices.weight.tolist() == [weights[name] for name in names]
            by_key = sorted(range(len(names)), key=lambda number: names[number])
            assert vertices.order.tolist() == np.argsort(by_key).tolist()
            assert vertices["size"].tolist() == [key for _, key in names] and vertices["size"].dtype == np.int64
            ages = vertices["age"]
            expected: list[float] = [math.nan if key % 3 == 0 else key for _, key in names]
            assert ages.tolist() == pytest.approx(expected, nan_ok=True)
            assert ages.dtype == (np.float64 if any(map(math.isnan, expected)) else np.int64)
        else:
            assert sorted(vertices.order.tolist()) == list(range(len(names)))
        with pytest.raises(ValueError, match="read-only"):
            vertices.degree[:] = 0
        with pytest.raises(hoplake.NotFoundError):
            vertices["weather"]


def test_a_graph_without_vertices_calls_nothing(url: str) -> None:
    hoplake.create(url)
    graph = hoplake.open(url)
    assert len(_rank(graph)) == 0
    assert _rank(graph).iterations == 0
    assert _rank(graph).to_arrow().num_rows == 0

    def never(*_: Any) -> Any:
        raise AssertionError

    states: Any = (0, np.zeros(0), {"a": [], "b": 1})
    for initial in states:
        assert len(graph.pregel(initial=initial, signal=never, apply=never)) == 0


# Results


def test_a_state_of_several_columns(social: hoplake.Graph) -> None:
    """Hops and the sum of signals; integers and floats; nulls for missing values."""

    def apply(state: Any, received: Any, people: hoplake.Vertices) -> Any:
        reached: Any = (received < np.inf) & (state["hops"] < 0)
        after: dict[str, Any] = {
            "hops": np.where(reached, people.superstep, state["hops"]),
            "age": np.where(reached, received, state["age"]),
        }
        return after

    def run(**options: Any) -> hoplake.Computation:
        return social.pregel(
            initial=lambda people: {"age": people["age"], "hops": np.where(people.order == 0, 0, -1)},
            signal=lambda state, _: np.where(state["hops"] >= 0, state["age"], np.nan),
            combine="min",
            apply=apply,
            edges="out:knows",
            **options,
        )

    found = run()
    assert found.name == "age" and found.iterations == 3
    assert found.to_pandas().fillna(-1.0).to_dict("list") == {
        "label": ["Person"] * 4,
        "key": [1, 2, 3, 4],
        "age": [30.0] * 4,
        "hops": [0, 1, 1, 2],
    }
    only = run(result="hops", max_supersteps=1)
    assert only.to_arrow().column_names == ["label", "key", "hops"]
    assert only.table(select=["name"])["name"] == ["Ann", "Bo", "Cy", None]
    assert [row["hops"] for row in only] == [0, 1, 1, -1]
    assert only.top(2)["key"] == [2, 3] and only.figures["converged"] == 0
    assert run(result=["hops", "age"]).to_arrow().column_names == ["label", "key", "hops", "age"]
    assert only.write("hops") == 2
    social.refresh()
    assert social.get("Person:4")["hops"] == [-1]
    with pytest.raises(hoplake.InvalidError, match="result names the column 'h'; the state has age, hops"):
        run(result="h")


def test_nan_is_no_value(social: hoplake.Graph) -> None:
    found = social.pregel(initial=[1.5, math.nan, -math.inf, -0.0], signal=_same, apply=lambda state, _, __: (state, False))
    assert found.to_arrow().column("value").to_pylist() == [1.5, None, -math.inf, 0.0]
    # NaN that stays NaN does not change.
    assert social.pregel(initial=math.nan, signal=_same, apply=lambda state, _, __: state).iterations == 1


def _same(state: Any, _: Any) -> Any:
    return state


def _grow(state: Any, received: Any, _: Any) -> Any:
    return state + 1


def test_integers_beyond_floats_stay_exact(social: hoplake.Graph) -> None:
    big = [2**62, 2**62 - 1, -(2**63), 2**63 - 1]
    found = social.pregel(initial=big, signal=_same, apply=lambda state, _, __: (state, False))
    assert found.to_arrow().column("value").to_pylist() == big
    received: list[Any] = []

    def keep(state: Any, combined: Any, _: Any) -> Any:
        received.append(combined.tolist())
        return state, False

    social.pregel(initial=big, signal=_same, apply=keep)
    assert received == [[0, 2**62, 2**63 - 1, -(2**63)]]
    with pytest.raises(hoplake.InvalidError, match="add up to 18446744073709551614, beyond int64"):
        social.pregel(initial=2**63 - 1, signal=_same, apply=_grow)
    # A sum that is beyond int64 on the way fits at the end.
    social.pregel(initial=[2**63 - 1, 2**63 - 1, 0, -5], signal=_same, apply=keep, edges="in:knows", max_supersteps=1)
    assert received[1] == [2**63 - 1, 0, -5, 0]


def test_a_program_ends(social: hoplake.Graph) -> None:
    reports: list[tuple[str, int, int | None]] = []

    def progress(step: str, done: int, of: int | None) -> None:
        reports.append((step, done, of))

    def half(state: Any, _: Any, __: Any) -> Any:
        return state / 2

    halve: Any = {"initial": 16.0, "signal": _same, "apply": half}
    found = social.pregel(**halve, tolerance=4, progress=progress)
    assert found.iterations == 4 and found.figures == {"converged": 1, "residual": 4.0}
    assert reports[-1] == ("superstep 4: changed by 4.00e+00 in sum", 4, None) and len(reports) == 4
    assert social.pregel(**halve, max_supersteps=3).figures == {"converged": 0}
    assert social.pregel(**halve, max_supersteps=0).iterations == 0
    # Until half of the least number is 0.
    assert social.pregel(**halve).iterations == 1080
    seen: list[int] = []

    def three(state: Any, _: Any, vertices: hoplake.Vertices) -> Any:
        seen.append(vertices.superstep)
        return state, vertices.superstep < 3

    assert social.pregel(initial=0, signal=_same, apply=three).iterations == 3
    assert seen == [1, 2, 3]


def test_limits(large: str) -> None:
    graph = hoplake.open(large)
    with pytest.raises(hoplake.LimitError):
        graph.within(memory=1 << 20).pregel(initial=0, signal=_same, apply=_grow)
    places: Any = ("memory", "streamed")
    for lists in places:
        begun = time.monotonic()
        with pytest.raises(hoplake.LimitError):
            graph.within(seconds=0.5).pregel(initial=0, signal=_same, apply=_grow, lists=lists)
        assert time.monotonic() - begun < 10
    # Streamed lists take less, which is what happens by itself.
    room = 1_500_000 * 4 + 150_000 * 48
    graph.within(memory=2 * room).pregel(initial=0, signal=_same, apply=_grow, lists="streamed", max_supersteps=2)

    def slow(state: Any, _: Any, __: Any) -> Any:
        time.sleep(0.6)
        return state + 1

    with pytest.raises(hoplake.LimitError):
        graph.within(seconds=0.5).pregel(initial=0, signal=_same, apply=slow)


def test_it_costs_what_a_run_costs(large: str) -> None:
    graph, other = hoplake.open(large), hoplake.open(large)
    found = graph.pregel(initial=0, signal=_same, apply=_grow, max_supersteps=3)
    expected = other.run("eigenvector", iterations=3)
    assert (found.cost.requests, found.cost.bytes) == (expected.cost.requests, expected.cost.bytes)
    assert graph.cost.requests == found.cost.requests


def test_without_the_main_thread_and_without_blocking(url: str) -> None:
    _load(url, *GRAPHS["random"])

    def pass_on(state: Any, received: Any, _: Any) -> Any:
        return received, True

    async def ranks() -> Any:
        graph = await hoplake.aio.open(url)
        options: Any = {"initial": 1.0, "signal": _same, "apply": pass_on, "max_supersteps": 3}
        both = await asyncio.gather(graph.pregel(**options), graph.pregel(**options))
        return [await one.to_arrow() for one in both]

    first, second = asyncio.run(ranks())
    assert first.equals(second)
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(_rank(hoplake.open(url), tolerance=1e-9)))
    thread.start()
    thread.join()
    assert len(found[0]) == 300


# Callbacks that misbehave


class _Odd:
    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise ValueError("odd")


BAD_COLUMNS: dict[str, tuple[Any, str]] = {
    "none": (None, "is None; return a number for each vertex"),
    "short": (np.zeros(3), r"has the shape \(3,\); it has to be one number for each of 4 vertices"),
    "long": (np.zeros(5), r"has the shape \(5,\)"),
    "empty": ([], r"has the shape \(0,\)"),
    "wide": (np.zeros((4, 1)), r"has the shape \(4, 1\)"),
    "ragged": ([[1], [2, 3], [], []], "is not an array"),
    "text": (["a"] * 4, "has the type <U1"),
    "bytes": (b"abcd", "has the type |S4"),
    "objects": (np.array([1, 2, 3, None], dtype=object), "has the type object"),
    "one object": (object(), "has the type object"),
    "complex": (np.zeros(4, complex), "has the type complex128"),
    "time": (np.zeros(4, "datetime64[s]"), "has the type datetime64"),
    "records": (np.zeros(4, [("a", int)]), "has the type"),
    "masked": (np.ma.masked_array([1, 2, 3, 4], [False, False, True, False]), "is a masked array"),
    "beyond int64": (np.full(4, 2**63, np.uint64), "has the type uint64"),
    "huge": (2**70, "has the type object"),
    "odd": (_Odd(), "is not an array: odd"),
}
if np.dtype(np.longdouble).itemsize > 8:
    BAD_COLUMNS["long floats"] = (np.zeros(4, np.longdouble), "has the type float128|has the type longdouble")


@pytest.mark.parametrize("name", BAD_COLUMNS)
def test_a_column_has_a_number_for_each_vertex(social: hoplake.Graph, name: str) -> None:
    bad, message = BAD_COLUMNS[name]
    with pytest.raises(hoplake.InvalidError, match=f"^initial.*{message}"):
        social.pregel(initial=lambda _: bad, signal=_same, apply=_grow, max_supersteps=2)
    with pytest.raises(hoplake.InvalidError, match=f"^initial.'a'.*{message}"):
        social.pregel(initial={"a": bad}, signal=_same, apply=_grow, max_supersteps=2)
    with pytest.raises(hoplake.InvalidError, match=f"^what signal returned.*{message}"):
        social.pregel(initial=0, signal=lambda _, __: bad, apply=_grow, max_supersteps=2)
    with pytest.raises(hoplake.InvalidError, match=f"^what apply returned.*{message}"):
        social.pregel(initial=0, signal=_same, apply=lambda _, __, ___: bad)
    with pytest.raises(hoplake.InvalidError, match=f"^what apply returned.*{message}"):
        social.pregel(initial=0, signal=_same, apply=lambda _, __, ___: (bad, True))


@pytest.mark.parametrize(
    "good",
    [
        7,
        True,
        np.float32(0.5),
        np.array(3),
        [1, 2, 3, 4],
        range(4),
        np.ones(4, np.uint8),
        np.ones(4, np.float16),
        np.ones(4, ">i8"),
        np.arange(8)[::2],
        np.ones(4, bool),
        np.full(4, 2**63 - 1, np.uint64),
        pd.Series([1.0, 2.0, 3.0, 4.0], index=[4, 3, 2, 1]),
        pa.array([1, 2, 3, 4]),
    ],
    ids=str,
)
def test_numbers_that_are_int64_or_float64_exactly_are_taken(social: hoplake.Graph, good: Any) -> None:
    found = social.pregel(initial=good, signal=lambda _, __: good, apply=lambda _, __, ___: (good, False), combine="max")
    expected = np.broadcast_to(np.asarray(good), 4).tolist()
    assert found.to_arrow().column("value").to_pylist() == expected


@pytest.mark.parametrize("goes_on", [1, 0.5, "yes", [True] * 3, np.ones(4), np.ones((4, 1), bool), np.array([True, None, True, True])], ids=str)
def test_who_goes_on_is_a_bool_for_each(social: hoplake.Graph, goes_on: Any) -> None:
    with pytest.raises(hoplake.InvalidError, match="apply says with .* who goes on"):
        social.pregel(initial=0, signal=_same, apply=lambda state, _, __: (state, goes_on))


def test_a_state_keeps_its_columns(social: hoplake.Graph) -> None:
    def run(initial: Any, after: Any) -> None:
        social.pregel(initial=initial, signal=lambda _, __: 1, apply=lambda _, __, ___: after)

    with pytest.raises(hoplake.InvalidError, match="has the columns a; they have to be those of the state before: a, b"):
        run({"a": 1, "b": 2}, {"a": 1})
    with pytest.raises(hoplake.InvalidError, match="is not a dict; it has to have the columns a"):
        run({"a": 1}, 1)
    with pytest.raises(hoplake.InvalidError, match="those of the state before: one array without a name"):
        run(1, {"a": 1})
    states: Any = ({}, {"": 1}, {1: 1})
    for bad in states:
        with pytest.raises(hoplake.InvalidError, match="initial is a dict of columns by name"):
            run(bad, 1)
    with pytest.raises(hoplake.InvalidError, match="apply returned a tuple of 3"):
        run(1, (1, True, True))


def test_a_state_is_not_changed_in_place(social: hoplake.Graph) -> None:
    def in_place(state: Any, received: Any, _: Any) -> Any:
        state += 1
        return state

    with pytest.raises(ValueError, match="read-only"):
        social.pregel(initial=0, signal=_same, apply=in_place)
    buffer = np.zeros(4)

    def reuse(state: Any, received: Any, vertices: hoplake.Vertices) -> Any:
        received += 1
        buffer[:] = vertices.superstep
        return buffer

    # Had the state been the buffer, it would not seem to change.
    assert social.pregel(initial=0.0, signal=_same, apply=reuse, max_supersteps=5).iterations == 5
    given = np.zeros(4)
    found = social.pregel(initial=given, signal=_same, apply=_grow, max_supersteps=1)
    given[:] = 9
    assert given.flags.writeable and found.to_arrow().column("value").to_pylist() == [1.0] * 4


class _Enough(Exception):
    pass


def _raise(*_: Any) -> Any:
    raise _Enough


@pytest.mark.parametrize("where", ["initial", "signal", "apply", "progress"])
def test_exceptions_of_callbacks_are_raised(social: hoplake.Graph, where: str) -> None:
    callbacks: dict[str, Any] = {"initial": 0, "signal": _same, "apply": _grow, where: _raise}
    with pytest.raises(_Enough):
        social.pregel(**callbacks)
    assert social.count() == 4


def test_callbacks_may_use_the_graph(social: hoplake.Graph) -> None:
    def inner(state: Any, received: Any, people: hoplake.Vertices) -> Any:
        assert social.run("components").groups == (1, 4)
        assert social.query("g.V().count()")[0] == 4
        depth = social.pregel(initial=0, signal=_same, apply=_grow, max_supersteps=2).iterations
        return state + depth

    found = social.pregel(initial=0, signal=_same, apply=inner, max_supersteps=2)
    assert found.to_arrow().column("value").to_pylist() == [4] * 4


def test_a_program_may_close_and_change_the_graph(social: hoplake.Graph) -> None:
    def close(state: Any, received: Any, people: hoplake.Vertices) -> Any:
        social.close()
        with social.begin() as commit:
            commit.upsert_vertex("Person", 9)
        social.refresh()
        return state + people.order + received

    found = social.pregel(initial=1, signal=_same, apply=close, max_supersteps=1)
    # Its version is the one at which it began.
    assert found.to_arrow().column("value").to_pylist() == [1, 3, 5, 5] and social.count() == 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"combine": "median"}, "combine is .median.; write one of sum, min, max, mean, count, mode"),
        ({"weight": "since", "combine": "mode"}, "weight has no effect on combine=.mode."),
        ({"weight": "since", "along": "over"}, "along is .over.; write times or plus"),
        ({"lists": "packed"}, "no packed lists"),
        ({"lists": "far"}, "lists is .far."),
        ({"threads": 0}, "threads has to be a whole number of 1 or more, not 0"),
        ({"signal": 1}, "signal has to be a function"),
        ({"apply": None}, "apply has to be a function"),
        ({"max_supersteps": -1}, "max_supersteps has to be a whole number of 0 or more, not -1"),
        ({"max_supersteps": 1.5}, "max_supersteps has to be a whole number"),
        ({"tolerance": math.nan}, "tolerance is nan"),
        ({"tolerance": -1}, "tolerance is -1"),
        ({"default": "none"}, "default is .none."),
        ({"default": 0.5}, "default has to be an int"),
        ({"default": 2**63}, "default has to be an int"),
        ({"result": []}, "result has to name at least one"),
        ({"result": ["value", "value"]}, "each once"),
        ({"edges": "out:knows["}, "out:knows"),
        ({"progress": 3}, "progress is True, False or a function"),
    ],
    ids=str,
)
def test_wrong_options_are_rejected(social: hoplake.Graph, options: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"initial": 0, "signal": _same, "apply": _grow, "max_supersteps": 1, **options}
    with pytest.raises(hoplake.InvalidError, match=message):
        social.pregel(**given)


@pytest.mark.parametrize("options", [{"edges": "out:x"}, {"labels": "X"}, {"weight": "x"}, {"edges": "out[x > 1]"}], ids=str)
def test_names_that_are_not_there_are_rejected(social: hoplake.Graph, options: dict[str, Any]) -> None:
    with pytest.raises(hoplake.Error) as found:
        social.pregel(initial=0, signal=_same, apply=_grow, max_supersteps=1, **options)
    assert isinstance(found.value, (hoplake.NotFoundError, hoplake.InvalidError)), found


def test_properties_that_are_no_numbers_are_rejected(social: hoplake.Graph) -> None:
    with pytest.raises(hoplake.InvalidError, match="name is not a number"):
        social.pregel(initial=lambda people: people["name"], signal=_same, apply=_grow)


def test_without_numpy_an_error_says_what_to_install(social: hoplake.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *arguments: Any, **options: Any) -> Any:
        if name == "numpy":
            raise ImportError(name)
        return real(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(hoplake.InvalidError) as found:
        social.pregel(initial=0, signal=_same, apply=_grow)
    assert found.value.hint == "pip install numpy"


def test_the_example_of_the_documentation_runs() -> None:
    """Collected here, because pytest does not look at methods of a class that says it is of another module."""
    text = hoplake.Graph.pregel.__doc__ or ""
    example = doctest.DocTestParser().get_doctest(text, {}, "pregel", None, None)
    assert len(example.examples) == 7
    assert doctest.DocTestRunner().run(example).failed == 0


def test_the_package_does_not_import_numpy() -> None:
    program = "import hoplake, hoplake.aio, sys; assert 'numpy' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
