"""Runs on Ray: against one process, and with workers, nodes, drivers and stores that fail."""

from __future__ import annotations

import os
import signal
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

import hoplake
import hoplake.ray

# Workers do not find this file, so its functions travel as they are.
ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])


def _by_key(table: pa.Table, name: str) -> dict[tuple[str, Any], Any]:
    columns = [table.column(column).to_pylist() for column in ("label", "key", name)]
    return {(label, key): value for label, key, value in zip(*columns)}


def _objects(graph: hoplake.Graph) -> list[str]:
    """What runs have left below a graph."""
    return [path.name for path in (Path(graph.url) / "runs").rglob("*") if path.is_file()]


def _assert_same(found: pa.Table, expected: pa.Table, name: str) -> None:
    """The same values of the same vertices; floats but for their last bits."""
    assert found.schema.equals(expected.schema), f"{found.schema} is not {expected.schema}"
    ours, theirs = _by_key(found, name), _by_key(expected, name)
    assert ours.keys() == theirs.keys()
    for key, value in theirs.items():
        if isinstance(value, float):
            assert ours[key] == pytest.approx(value, rel=1e-12, abs=1e-15), key
        else:
            assert ours[key] == value, key


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
        _assert_same(found.table, expected.to_arrow(), expected.name)
    assert not _objects(graph), "a run that ended leaves nothing"


def _program() -> dict[str, Any]:
    """Ranks as a program of a user, which sees all vertices through sums alone."""

    def follow(state: Any, received: Any, pages: hoplake.Vertices) -> Any:
        rank = (0.15 + 0.85 * pages.sums["stuck"]) / pages.count + 0.85 * received
        return {"rank": rank, "steps": state["steps"] + 1}

    return {
        "initial": lambda pages: {"rank": np.full(len(pages), 1 / pages.count), "steps": np.zeros(len(pages), dtype=np.int64)},
        "signal": lambda state, pages: state["rank"] / np.maximum(pages.degree, 1),
        "apply": follow,
        "aggregate": lambda state, pages: {"stuck": state["rank"][pages.degree == 0].sum()},
        "max_supersteps": 6,
        "result": ["rank", "steps"],
    }


@pytest.mark.usefixtures("nodes")
def test_programs_are_those_of_one_process(graph: hoplake.Graph) -> None:
    expected = graph.pregel(**_program())
    found = hoplake.ray.pregel(graph.url, workers=3, **_program())
    assert found.table is not None and found.supersteps == expected.iterations == 6
    _assert_same(found.table, expected.to_arrow(), "rank")
    _assert_same(found.table, expected.to_arrow(), "steps")
    figures = found.figures
    assert len(figures["superstep_seconds"]) == len(figures["exchanged_bytes"]) == 6 and min(figures["exchanged_bytes"]) > 0
    assert sum(part["vertices"] for part in figures["parts"]) == found.vertices and len(figures["workers"]) == 3


@pytest.mark.usefixtures("nodes")
def test_a_result_is_one_commit(graph: hoplake.Graph) -> None:
    version = graph.version
    first = hoplake.ray.run(graph.url, "levels", from_="Town:3", write="level", id="levels", workers=2)
    assert (first.version, first.table) == (version + 1, None)
    # A run that has ended has its result, whoever asks.
    again = hoplake.ray.run(graph.url, "levels", from_="Town:3", write="level", id="levels", workers=2)
    assert (again.version, again.supersteps, again.vertices) == (first.version, first.supersteps, first.vertices)
    graph.refresh()
    assert graph.version == version + 1
    expected = _by_key(graph.run("levels", from_="Town:3").to_arrow(), "level")
    stored = {("Town", str(row["key"])): row["level"] for row in graph.scan("Town", select="level")}
    assert stored == {key: value for key, value in expected.items() if key[0] == "Town"}
    # What another run does not reach loses its value.
    hoplake.ray.run(graph.url, "levels", from_="Town:399", write="level", workers=2)
    graph.refresh()
    expected = _by_key(graph.run("levels", from_="Town:399").to_arrow(), "level")
    stored = {("Town", str(row["key"])): row["level"] for row in graph.scan("Town", select="level")}
    assert stored == {key: value for key, value in expected.items() if key[0] == "Town"}
    assert None in stored.values()


def _once(path: Path) -> bool:
    """Whether this is the first call with a path, in whichever process."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


@pytest.mark.usefixtures("nodes")
def test_a_worker_dies_in_every_superstep(graph: hoplake.Graph, tmp_path: Path) -> None:
    program = _program()
    apply = program["apply"]

    def killing(state: Any, received: Any, pages: hoplake.Vertices) -> Any:
        if _once(tmp_path / f"superstep {pages.superstep}"):
            os.kill(os.getpid(), signal.SIGKILL)
        return apply(state, received, pages)

    expected = graph.pregel(**program)
    found = hoplake.ray.pregel(graph.url, workers=2, checkpoint_seconds=0, **{**program, "apply": killing})
    assert found.table is not None and found.figures["restarts"] >= 6
    _assert_same(found.table, expected.to_arrow(), "rank")
    _assert_same(found.table, expected.to_arrow(), "steps")


@pytest.mark.usefixtures("nodes")
def test_the_driver_dies_in_every_superstep(graph: hoplake.Graph, tmp_path: Path) -> None:
    def killing(text: str, superstep: int, _: int | None) -> None:
        if _once(tmp_path / f"superstep {superstep}"):
            os.kill(os.getpid(), signal.SIGKILL)

    expected = graph.pregel(**_program())
    found = hoplake.ray.pregel(graph.url, workers=2, checkpoint_seconds=0, progress=killing, write="rank", id="driver", **_program())
    # The last one had one superstep to compute.
    assert found.supersteps == 6 and len(list(tmp_path.glob("superstep *"))) == 6
    assert found.version == graph.version + 1
    graph.refresh()
    stored = {("Town", str(row["key"])): row["rank"] for row in graph.scan("Town", select="rank")}
    for key, value in _by_key(expected.to_arrow(), "rank").items():
        assert key[0] != "Town" or stored[key] == pytest.approx(value, rel=1e-12)
    assert _objects(graph) == ["result"]


def test_a_node_dies_in_every_superstep(graph: hoplake.Graph, nodes: Nodes, tmp_path: Path) -> None:
    program = {**_program(), "max_supersteps": 3}

    def waiting(text: str, superstep: int, _: int | None) -> None:
        if superstep < 3 and _once(tmp_path / f"superstep {superstep}"):
            while not (tmp_path / f"killed {superstep}").exists():
                time.sleep(0.05)

    found: list[hoplake.ray.Result] = []
    call = lambda: found.append(hoplake.ray.pregel(graph.url, workers=2, checkpoint_seconds=0, progress=waiting, **program))  # noqa: E731
    running = threading.Thread(target=call)
    running.start()
    for superstep in (1, 2):
        _wait(lambda superstep=superstep: (tmp_path / f"superstep {superstep}").exists())
        nodes.kill()
        (tmp_path / f"killed {superstep}").touch()
    running.join(120)
    assert found and found[0].table is not None
    _assert_same(found[0].table, graph.pregel(**program).to_arrow(), "rank")


def _wait(until: Any, seconds: float = 60) -> None:
    begun = time.monotonic()
    while not until():
        assert time.monotonic() - begun < seconds
        time.sleep(0.05)


@pytest.mark.usefixtures("nodes")
def test_two_drivers_have_one_result(graph: hoplake.Graph) -> None:
    found: list[hoplake.ray.Result] = []
    options: dict[str, Any] = {"workers": 2, "checkpoint_seconds": 0, "write": "rank", "id": "both", "iterations": 8, "tolerance": 0}
    call = lambda: found.append(hoplake.ray.run(graph.url, "pagerank", **options))  # noqa: E731
    both = [threading.Thread(target=call) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join(120)
    version = graph.version
    assert [result.version for result in found] == [version + 1] * 2
    graph.refresh()
    assert graph.version == version + 1
    expected = _by_key(graph.run("pagerank", iterations=8, tolerance=0, lists="streamed").to_arrow(), "rank")
    for row in graph.scan("Town", select="rank"):
        assert row["rank"] == pytest.approx(expected["Town", str(row["key"])], rel=1e-12)
    assert _objects(graph) == ["result"]


@pytest.mark.usefixtures("nodes")
def test_programs_that_fail_say_so(graph: hoplake.Graph) -> None:
    def wrong(state: Any, received: Any, pages: hoplake.Vertices) -> Any:
        raise ZeroDivisionError("on purpose")

    with pytest.raises(ZeroDivisionError, match="on purpose"):
        hoplake.ray.pregel(graph.url, workers=2, **{**_program(), "apply": wrong})
    with pytest.raises(hoplake.InvalidError, match="shape"):
        hoplake.ray.pregel(graph.url, workers=2, **{**_program(), "signal": lambda state, pages: np.zeros(pages.count)})


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
    assert every.count() == graph.count()
    found = hoplake.ray.edges(graph.url, "road", override_num_blocks=4)
    key = lambda row: (row["source"], row["target"], row["km"])  # noqa: E731
    assert sorted(map(key, found.take_all())) == sorted(map(key, graph.scan_edges("road")))
    with pytest.raises(hoplake.NotFoundError):
        hoplake.ray.vertices(graph.url, "City")


def test_a_store_that_fails_for_a_minute(s3: S3, nodes: Nodes, tmp_path: Path) -> None:
    graph = load("s3://bucket/graph")
    program = _program()

    def slow(state: Any, received: Any, pages: hoplake.Vertices) -> Any:
        # Checkpoints fail meanwhile, and so does reading degrees for those who begin.
        if pages.superstep == 2 and _once(tmp_path / "second"):
            time.sleep(1)
        return program["apply"](state, received, pages)

    found: list[Any] = []

    def call() -> None:
        found.append(hoplake.ray.pregel(graph.url, workers=2, checkpoint_seconds=0, write="rank", **{**program, "apply": slow}))

    running = threading.Thread(target=call)
    running.start()
    _wait(lambda: (tmp_path / "second").exists())
    s3.stop()
    time.sleep(60)
    assert running.is_alive(), "the result cannot be written"
    s3.start()
    running.join(120)
    assert found and found[0].version == graph.version + 1
    expected = _by_key(graph.pregel(**program).to_arrow(), "rank")
    graph.refresh()
    for row in graph.scan("Town", select="rank"):
        assert row["rank"] == pytest.approx(expected["Town", str(row["key"])], rel=1e-12)
    assert ray.is_initialized()
