"""Runs on Ray: against one process, and with workers, nodes, drivers and stores that fail."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import ray
from conftest import S3, Nodes, load
from programs import assert_close, assert_same, by_key, commits, left, once, program, stored, tags, wait

import hoplake
import hoplake.ray

# Workers do not find this file, so its functions travel as they are.
ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])


ALGORITHMS: dict[str, tuple[str, dict[str, Any]]] = {
    "pagerank": ("pagerank", {"iterations": 20, "tolerance": 1e-9}),
    "pagerank from": ("pagerank", {"iterations": 12, "from_": ["Town:3", "Town:250"], "edges": "both"}),
    "pagerank by weight": ("pagerank", {"iterations": 200, "tolerance": 0.0, "weight": "km"}),
    "components": ("components", {}),
    "communities": ("communities", {"iterations": 5}),
    "levels": ("levels", {"from_": "Town:3"}),
    "paths": ("paths", {"from_": "Town:3", "weight": "km"}),
    "hops": ("paths", {"from_": "Town:5", "edges": "in:road"}),
    "degrees": ("degrees", {"edges": "out:road"}),
}


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.usefixtures("nodes")
def test_runs_are_those_of_one_process(graph: hoplake.Graph, name: str) -> None:
    algorithm, options = ALGORITHMS[name]
    # The kernel of ranks rounds what vertices pass on, until ranks hardly change; the program does not.
    lists: Any = "streamed" if name.startswith("pagerank") and "weight" not in options else "automatic"
    expected = graph.run(algorithm, lists=lists, **options)
    for workers in {"pagerank": [1, 2, 4], "components": [1, 2, 4]}.get(name, [3]):
        found = hoplake.ray.run(graph.url, algorithm, workers=workers, **options)
        assert found.table is not None and found.vertices == len(expected)
        assert_same(found.table, expected.to_arrow(), expected.name)
    assert not left(graph), "a run that ended leaves nothing"


@pytest.mark.usefixtures("nodes")
def test_programs_are_those_of_one_process(graph: hoplake.Graph) -> None:
    expected = graph.pregel(**program())
    found = hoplake.ray.pregel(graph.url, workers=3, **program())
    assert found.table is not None and found.supersteps == expected.iterations == 6
    assert_same(found.table, expected.to_arrow(), "rank")
    assert_same(found.table, expected.to_arrow(), "steps")
    figures = found.figures
    assert len(figures["superstep_seconds"]) == len(figures["exchanged_bytes"]) == 6 and min(figures["exchanged_bytes"]) > 0
    assert sum(part["vertices"] for part in figures["parts"]) == found.vertices and len(figures["workers"]) == 3


@pytest.mark.usefixtures("nodes")
def test_a_result_is_one_commit(graph: hoplake.Graph) -> None:
    before = commits(graph)
    first = hoplake.ray.run(graph.url, "levels", from_="Town:3", write="level", id="levels", workers=2)
    assert first.table is None and commits(graph) == [*before, first.version]
    # A run that has ended has its result, whoever asks.
    again = hoplake.ray.run(graph.url, "levels", from_="Town:3", write="level", id="levels", workers=2)
    assert (again.version, again.supersteps, again.vertices) == (first.version, first.supersteps, first.vertices)
    assert commits(graph) == [*before, first.version] and tags(graph) == []
    expected = by_key(graph.run("levels", from_="Town:3").to_arrow(), "level")
    found = stored(graph, "level")
    assert {key: found[key] for key in expected} == expected
    # What another run does not reach loses its value.
    hoplake.ray.run(graph.url, "levels", from_="Town:399", write="level", workers=2)
    expected = by_key(graph.run("levels", from_="Town:399").to_arrow(), "level")
    found = stored(graph, "level")
    assert {key: found[key] for key in expected} == expected and None in expected.values()


def _of(graph: hoplake.Graph, name: str, column: str) -> dict[tuple[str, str], Any]:
    return {(row["label"], str(row["key"])): row[column] for row in graph.scan(["Town", "Port"], select=name)}


@pytest.mark.usefixtures("nodes")
def test_several_columns_are_one_commit(graph: hoplake.Graph) -> None:
    def ends(state: Any, received: Any, pages: hoplake.Vertices) -> Any:
        # Some have one of the values, and some have none.
        return {"a": np.where(pages.order % 2 == 0, np.nan, pages.order), "b": np.where(pages.order % 3 == 0, np.nan, -pages.order), "c": state["c"]}

    columns = {"initial": {"a": 0.0, "b": 0.0, "c": 1}, "signal": lambda state, pages: 0, "apply": ends, "max_supersteps": 1}
    with graph.begin() as commit:
        commit.upsert_vertex("Town", 2, key=0.5, n=0.5)
    graph.refresh()
    before = commits(graph)
    # A property may be called as a column of tables is.
    found = hoplake.ray.pregel(graph.url, workers=2, write={"a": "key", "b": "n"}, id="several", **columns)
    assert commits(graph) == [*before, found.version]
    (version,) = [version for version in graph.log(10) if version.version == found.version]
    assert version.message == f"key, n: value of 332 of {found.vertices} vertices, by the run several"
    expected = graph.pregel(**columns).to_arrow()
    assert_close(_of(graph, "key", ".key"), by_key(expected, "a"))
    assert_close(_of(graph, "n", "n"), by_key(expected, "b"))
    hoplake.ray.pregel(graph.url, workers=2, write=["c"], result="c", **columns)
    assert set(stored(graph, "c").values()) == {1}
    # A vertex that this run does not reach loses the value of an earlier run.
    hoplake.ray.pregel(graph.url, workers=2, write={"b": "key"}, **columns)
    graph.refresh()
    assert_close(_of(graph, "key", ".key"), by_key(expected, "b"))
    with pytest.raises(hoplake.InvalidError, match="write names the column 'd'; the result has a, b, c"):
        hoplake.ray.pregel(graph.url, workers=2, write={"a": "x", "d": "y"}, **columns)
    with pytest.raises(hoplake.InvalidError, match="write names the column 'rank'; the result has level"):
        hoplake.ray.run(graph.url, "levels", from_="Town:3", write=["rank"])
    assert not [name for name in left(graph) if name != "result"] and tags(graph) == []


@pytest.mark.usefixtures("nodes")
def test_two_drivers_have_one_result(graph: hoplake.Graph) -> None:
    before = commits(graph)
    found: list[hoplake.ray.Result] = []
    options: dict[str, Any] = {"workers": 2, "checkpoint_seconds": 0, "write": "rank", "id": "both", "iterations": 8, "tolerance": 0}
    call = lambda: found.append(hoplake.ray.run(graph.url, "pagerank", **options))  # noqa: E731
    both = [threading.Thread(target=call) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join(120)
    first, second = found
    assert first.version == second.version and commits(graph) == [*before, first.version]
    expected = by_key(graph.run("pagerank", iterations=8, tolerance=0, lists="streamed").to_arrow(), "rank")
    assert_close(stored(graph, "rank"), expected)
    assert left(graph) == ["result"] and tags(graph) == []


@pytest.mark.usefixtures("nodes")
def test_programs_that_fail_say_so(graph: hoplake.Graph) -> None:
    def wrong(state: Any, received: Any, pages: hoplake.Vertices) -> Any:
        raise ZeroDivisionError("on purpose")

    with pytest.raises(ZeroDivisionError, match="on purpose"):
        hoplake.ray.pregel(graph.url, workers=2, **{**program(), "apply": wrong})
    with pytest.raises(hoplake.InvalidError, match="shape"):
        hoplake.ray.pregel(graph.url, workers=2, **{**program(), "signal": lambda state, pages: np.zeros(pages.count)})


def test_what_cannot_run_by_parts_says_so(graph: hoplake.Graph) -> None:
    with pytest.raises(hoplake.InvalidError, match="betweenness does not run by parts; these do: pagerank, components"):
        hoplake.ray.run(graph.url, "betweenness")
    with pytest.raises(hoplake.InvalidError, match="unknown algorithm 'rank'"):
        hoplake.ray.run(graph.url, "rank")
    with pytest.raises(hoplake.InvalidError, match="in the memory of one process"):
        hoplake.ray.run("memory://elsewhere", "pagerank")
    with pytest.raises(hoplake.InvalidError, match="id is 'a/b'"):
        hoplake.ray.run(graph.url, "pagerank", id="a/b")


@pytest.mark.usefixtures("nodes")
def test_wrong_options_and_ids_are_rejected(graph: hoplake.Graph) -> None:
    with pytest.raises(hoplake.InvalidError, match="pagerank has no option colour"):
        hoplake.ray.run(graph.url, "pagerank", colour="red")
    with pytest.raises(hoplake.NotFoundError):
        hoplake.ray.run(graph.url, "levels", from_="Town:1")
    (Path(graph.url) / "runs" / "other").mkdir(parents=True)
    (Path(graph.url) / "runs" / "other" / "plan").write_text('{"what": "something", "version": 2, "bounds": [0, 1]}')
    with pytest.raises(hoplake.InvalidError, match="the run other is of something else"):
        hoplake.ray.run(graph.url, "degrees", id="other", workers=1)


@pytest.mark.usefixtures("nodes")
def test_vertices_and_edges_are_datasets(graph: hoplake.Graph) -> None:
    towns = hoplake.ray.vertices(graph.url, "Town", columns="size", override_num_blocks=3)
    rows = sorted((row["key"], row["size"]) for row in towns.take_all())
    assert rows == sorted((row["key"], row["size"]) for row in graph.scan("Town", select="size"))
    large = hoplake.ray.vertices(graph.url, "Town", where="size > 390", override_num_blocks=3)
    assert large.count() == graph.count("Town", where="size > 390")
    every = hoplake.ray.vertices(graph.url)
    # The labels are small.
    assert every.materialize().num_blocks() <= 4 and towns.materialize().num_blocks() == 3
    assert every.count() == graph.count()
    found = hoplake.ray.edges(graph.url, "road", override_num_blocks=4)
    key = lambda row: (row["source"], row["target"], row["km"])  # noqa: E731
    assert sorted(map(key, found.take_all())) == sorted(map(key, graph.scan_edges("road")))
    with pytest.raises(hoplake.NotFoundError):
        hoplake.ray.vertices(graph.url, "City")


def test_a_store_that_fails_for_a_minute(s3: S3, nodes: Nodes, tmp_path: Path) -> None:
    graph = load("s3://bucket/graph")
    before = commits(graph)
    ranks = program()

    def slow(state: Any, received: Any, pages: hoplake.Vertices) -> Any:
        # Checkpoints fail meanwhile, and so does reading degrees for those who begin.
        if pages.superstep == 2 and once(tmp_path / "second"):
            time.sleep(1)
        return ranks["apply"](state, received, pages)

    found: list[Any] = []

    def call() -> None:
        found.append(hoplake.ray.pregel(graph.url, workers=2, checkpoint_seconds=0, write="rank", **{**ranks, "apply": slow}))

    running = threading.Thread(target=call)
    running.start()
    wait(lambda: (tmp_path / "second").exists())
    s3.stop()
    time.sleep(60)
    assert running.is_alive(), "the result cannot be written"
    s3.start()
    running.join(120)
    assert found and commits(graph) == [*before, found[0].version] and tags(graph) == []
    assert_close(stored(graph, "rank"), by_key(graph.pregel(**ranks).to_arrow(), "rank"))
    assert ray.is_initialized()
