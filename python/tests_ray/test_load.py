"""Loads on Ray are the loads of one machine, whatever dies meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import ray
import ray.data
from conftest import Nodes
from programs import once

import hoplake
import hoplake.ray
from hoplake.ray import _load

ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])

Tables = dict[str, Any]
_PATIENTLY = _load.patiently


def _tables(people: int = 600) -> Tables:
    """Keys that are numbers, and text; edges with and without properties; parallel ones, and a hub."""
    random = np.random.default_rng(people)
    ends = random.integers(0, people, (2, 5 * people))
    ends[0, : people // 2] = 17
    tags = [f"tag {tag}" for tag in range(50)]
    knows = pa.table({"source": ends[0], "target": ends[1], "since": random.integers(0, 9, 5 * people)})
    likes = pa.table({"source": random.integers(0, people, people), "target": pa.array(tags).take(random.integers(0, 50, people))})
    vertices = {"Person": pa.table({"key": random.permutation(people), "age": random.integers(0, 90, people)}), "Tag": pa.table({"id": tags})}
    edges = {
        ("Person", "knows", "Person"): knows,
        ("Person", "likes", "Tag"): likes,
        ("Person", "follows", "Person"): pa.table({"src": ends[1], "dst": ends[0]}),
    }
    return {"vertices": vertices, "edges": edges}


def _rows(graph: hoplake.Graph) -> list[Any]:
    return [graph.scan().table().to_arrow(), graph.scan_edges().table().to_arrow()]


def _assert_same(found: str, expected: str, *, in_order: bool = True) -> None:
    graph, other = hoplake.open(found), hoplake.open(expected)
    assert graph.schema == other.schema and graph.version == 1
    for rows, theirs in zip(_rows(graph), _rows(other)):
        if not in_order:
            order = [(name, "ascending") for name in rows.column_names]
            rows, theirs = rows.sort_by(order), theirs.sort_by(order)
        assert rows.equals(theirs)
    assert not graph.verify().damages


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spans and blocks of few rows. The driver gets them with its request."""
    monkeypatch.setattr(_load, "_SPAN_ITEMS", 700)
    monkeypatch.setattr(_load, "_BLOCK_ROWS", 250)


@pytest.mark.usefixtures("nodes", "small")
@pytest.mark.parametrize("ranges", [1, 3])
def test_a_graph_is_that_of_one_machine(ranges: int, tmp_path: Path) -> None:
    tables = _tables()
    hoplake.load(tmp_path / "one", **tables)
    loaded = hoplake.ray.load(tmp_path / "many", ranges=ranges, message="by many", **tables)
    assert (loaded.version, loaded.vertices, loaded.edges) == (1, 650, 6600)
    _assert_same(str(tmp_path / "many"), str(tmp_path / "one"))
    assert hoplake.open(tmp_path / "many").log()[0].message == "by many"
    # Of a load that has ended its result stays.
    assert [path.name for path in (tmp_path / "many" / "runs" / loaded.id).rglob("*") if path.is_file()] == ["result"]


@pytest.mark.usefixtures("nodes", "small")
def test_vertices_are_those_that_edges_name(tmp_path: Path) -> None:
    edges = {("v", "e", "v"): {"source": [5, 1, 5, 9], "target": [1, 7, 5, 3]}, ("w", "f", "v"): {"source": ["a", "b"], "target": [1, 100]}}
    hoplake.load(tmp_path / "one", edges=edges)
    loaded = hoplake.ray.load(tmp_path / "many", edges=edges, ranges=3)
    assert (loaded.vertices, loaded.edges) == (8, 6)
    _assert_same(str(tmp_path / "many"), str(tmp_path / "one"))


@pytest.mark.usefixtures("nodes", "small")
def test_datasets_are_loaded(tmp_path: Path) -> None:
    tables = _tables()
    hoplake.load(tmp_path / "one", **tables)
    people = tables["vertices"]["Person"]
    (tmp_path / "people").mkdir()
    for part in range(3):
        pq.write_table(people.slice(part * 200, 200), tmp_path / "people" / f"{part}.parquet")
    vertices = {"Person": ray.data.read_parquet(str(tmp_path / "people")), "Tag": ray.data.from_arrow(tables["vertices"]["Tag"])}
    edges = {name: ray.data.from_arrow([rows.slice(0, 300), rows.slice(300)]) for name, rows in tables["edges"].items()}
    hoplake.ray.load(tmp_path / "many", ranges=2, vertices=vertices, edges=edges)
    _assert_same(str(tmp_path / "many"), str(tmp_path / "one"), in_order=False)


def _dying(folder: Path, name: str, who: str) -> Callable[..., Any]:
    """A step whose first process dies, or whose node."""
    inner = getattr(_load._load_steps, name)

    def die() -> None:
        if once(folder / name):
            if who == "node":
                (folder / f"{name} of").write_text(str(ray.get_runtime_context().get_node_id()))
                time.sleep(60)
            os.kill(os.getpid(), signal.SIGKILL)

    if name in ("vertices", "edges"):

        def generator(*arguments: Any) -> Any:
            for number, value in enumerate(inner(*arguments)):
                if number == 1:
                    die()
                yield value

        return generator

    def step(*arguments: Any) -> Any:
        value = inner(*arguments)
        die()
        return value

    return step


def _drive(monkeypatch: pytest.MonkeyPatch, folder: Path, who: str, names: list[str], **given: Any) -> dict[str, Any]:
    """Loads with a driver in this process, whose steps die."""
    for name in names:
        monkeypatch.setattr(_load._load_steps, name, _dying(folder, name, who))
    return _load._drive(_load._request(**given))


@pytest.mark.usefixtures("nodes", "small")
def test_a_process_dies_in_every_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hoplake.load(tmp_path / "one", **_tables())
    names = ["schema", "read", "split", "vertices", "resolve", "edges", "write"]
    _drive(monkeypatch, tmp_path, "process", names, url=tmp_path / "many", ranges=2, **_tables())
    assert {path.name for path in tmp_path.iterdir()} >= set(names)
    _assert_same(str(tmp_path / "many"), str(tmp_path / "one"))


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", ["vertices", "resolve", "write"])
def test_a_node_dies(name: str, nodes: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hoplake.load(tmp_path / "one", **_tables())
    found: list[Any] = []

    def call() -> None:
        found.append(_drive(monkeypatch, tmp_path, "node", [name], url=tmp_path / "many", ranges=2, **_tables()))

    running = threading.Thread(target=call)
    running.start()
    _wait((tmp_path / f"{name} of").exists)
    _wait(lambda: (tmp_path / f"{name} of").read_text() != "")
    nodes.kill((tmp_path / f"{name} of").read_text())
    running.join(120)
    assert found
    _assert_same(str(tmp_path / "many"), str(tmp_path / "one"))


def _wait(until: Callable[[], bool], seconds: float = 60) -> None:
    begun = time.monotonic()
    while not until():
        assert time.monotonic() - begun < seconds
        time.sleep(0.01)


def _process(title: str) -> int | None:
    """A process by the beginning of its title."""
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and (folder / "cmdline").read_bytes().startswith(title.encode()):
                return int(folder.name)
        except OSError:
            continue
    return None


@pytest.mark.usefixtures("nodes", "small")
def test_the_driver_dies(tmp_path: Path) -> None:
    hoplake.load(tmp_path / "one", **_tables())
    own = tmp_path / "many" / "runs" / "driver"
    found: list[Any] = []
    running = threading.Thread(target=lambda: found.append(hoplake.ray.load(tmp_path / "many", id="driver", ranges=2, **_tables())))
    running.start()
    # Once the load has begun, and once it has written something.
    for exists in ((own / "plan").exists, lambda: any(own.glob("*/vertices/*"))):
        _wait(exists)
        driver = _process("ray::hoplake.ray load driver")
        assert driver is not None
        os.kill(driver, signal.SIGKILL)
    running.join(120)
    assert found and found[0].edges == 6600
    _assert_same(str(tmp_path / "many"), str(tmp_path / "one"))


_CALLER = """
import sys, ray, hoplake.ray
from hoplake.ray import _load
from test_load import _tables
_load._SPAN_ITEMS, _load._BLOCK_ROWS = 700, 250
ray.init(address=sys.argv[1], log_to_driver=False, namespace="tests", _node_ip_address="127.0.0.1")
hoplake.ray.load(sys.argv[2], id="again", ranges=2, **_tables())
"""


@pytest.mark.usefixtures("small")
def test_a_load_whose_caller_was_killed_goes_on(nodes: Nodes, tmp_path: Path) -> None:
    hoplake.load(tmp_path / "one", **_tables())
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    caller = subprocess.Popen([sys.executable, "-c", _CALLER, nodes.cluster.address, str(tmp_path / "many")], env=environment)
    own = tmp_path / "many" / "runs" / "again"
    _wait(lambda: len(list(own.glob("*/out/*"))) > 1)
    caller.kill()
    caller.wait()
    # Ray ends the tasks of a program that has died.
    _wait(lambda: _process("ray::hoplake.ray load again") is None)
    kept = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "many" / "data").iterdir()}
    assert not (tmp_path / "many" / "manifest").exists()
    with pytest.raises(hoplake.InvalidError, match="the load again is of other tables"):
        hoplake.ray.load(tmp_path / "many", id="again", **_tables(500))
    loaded = hoplake.ray.load(tmp_path / "many", id="again", ranges=2, **_tables())
    assert loaded.edges == 6600
    _assert_same(str(tmp_path / "many"), str(tmp_path / "one"))
    after = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "many" / "data").iterdir()}
    # What was written is not written again, but for the objects of spans that were under way.
    same = [name for name, time in kept.items() if after[name] == time]
    assert len(same) >= 3 and len(after) > len(kept)


@pytest.mark.usefixtures("nodes", "small")
def test_two_calls_with_one_id_are_one_load(tmp_path: Path) -> None:
    found: list[Any] = []
    call = lambda: found.append(hoplake.ray.load(tmp_path / "many", id="both", ranges=2, **_tables()))  # noqa: E731
    both = [threading.Thread(target=call) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join(120)
    assert len(found) == 2 and found[0] == found[1] and found[0].version == 1
    hoplake.load(tmp_path / "one", **_tables())
    _assert_same(str(tmp_path / "many"), str(tmp_path / "one"))


@pytest.mark.usefixtures("nodes", "small")
def test_blocks_may_lack_columns_and_rows(tmp_path: Path) -> None:
    one = pa.table({"key": [1, 2], "a": [1, 2], "b": pa.array(["x", "y"]).dictionary_encode()})
    other = pa.table({"b": ["z"], "key": pa.array([3], pa.int32())})
    gone = pa.table({"key": [4], "c": [1.5]})
    people = ray.data.from_arrow([one, other, gone]).filter(lambda row: row["key"] not in (2, 4))
    hoplake.ray.load(tmp_path / "many", vertices={"Person": people}, ranges=2)
    hoplake.load(tmp_path / "one", vertices={"Person": {"key": [1, 3], "a": [1, None], "b": ["x", "z"]}})
    _assert_same(str(tmp_path / "many"), str(tmp_path / "one"))
    with pytest.raises(hoplake.InvalidError, match="the table of vertices 'Person': the column 'key' occurs twice"):
        twice = pa.Table.from_arrays([pa.array([1]), pa.array([1])], names=["key", "key"])
        hoplake.ray.load(tmp_path / "twice", vertices={"Person": twice}, ranges=2)


@pytest.mark.usefixtures("nodes", "small")
def test_what_is_published_is_not_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver that dies after publishing, an answer that is lost, and another driver that fails."""
    class Lost(BaseException):
        pass

    def lost(call: Any, seconds: float) -> Any:
        found = _PATIENTLY(call, seconds)
        if isinstance(found, tuple) and len(found) == 3 and all(isinstance(number, int) for number in found):
            raise Lost
        return found

    tables = {"vertices": {"Person": {"key": [1, 2, 3]}}}
    request = _load._request(tmp_path / "graph", id="x", ranges=2, **tables)
    with monkeypatch.context() as broken:
        broken.setattr(_load, "patiently", lost)
        with pytest.raises(Lost):
            _load._drive(request)
    assert hoplake.open(tmp_path / "graph").count() == 3
    # Neither who stops waiting for it, nor who has other rows, takes it away.
    _load._give_up(request)
    with pytest.raises(hoplake.InvalidError, match="of other tables"):
        hoplake.ray.load(tmp_path / "graph", id="x", ranges=2, vertices={"Person": {"key": [1, 2, 2]}})
    assert not hoplake.open(tmp_path / "graph").verify().damages
    assert hoplake.ray.load(tmp_path / "graph", id="x", ranges=2, **tables).version == 1
    assert hoplake.open(tmp_path / "graph").count() == 3
    # A load that has ended is not that of other tables.
    with pytest.raises(hoplake.InvalidError, match="the load x was of other tables, and has ended"):
        hoplake.ray.load(tmp_path / "graph", id="x", replace=True, ranges=2, vertices={"Tag": {"key": [1]}})


@pytest.mark.usefixtures("nodes", "small")
def test_versions_are_vacuumed_while_a_graph_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hoplake.load(tmp_path / "graph", vertices={"Person": {"key": [1]}})
    inner = _load._load_steps.bounds

    def meanwhile(*arguments: Any) -> Any:
        graph = hoplake.open(tmp_path / "graph")
        for name in ("a", "b", "c"):
            graph.tag(name)
            graph.untag(name)
        graph.refresh()
        graph.vacuum(keep_versions=1)
        return inner(*arguments)

    monkeypatch.setattr(_load._load_steps, "bounds", meanwhile)
    request = _load._request(tmp_path / "graph", ranges=2, replace=True, vertices={"Person": {"key": [2, 3]}})
    _load._drive(request)
    graph = hoplake.open(tmp_path / "graph")
    assert graph.count() == 2 and not graph.verify().damages


@pytest.mark.usefixtures("nodes", "small")
def test_bad_rows_are_named_and_leave_nothing(tmp_path: Path) -> None:
    people = {"key": [1, 2, 3]}
    knows = ("Person", "knows", "Person")
    wrong: list[tuple[Tables, str]] = [
        ({"vertices": {"Person": people}, "edges": {knows: {"source": [1, 4], "target": [2, 1]}}}, 'edges .*knows.*, row 1.*"4" is the key of no Person'),
        ({"vertices": {"Person": people}, "edges": {knows: {"source": [1], "target": [9]}}}, 'edges .*knows.*, row 0.*"9" is the key of no Person'),
        ({"vertices": {"Person": {"key": [1, 2, 1]}}}, '"1" is the key of another Person'),
        ({"vertices": {"Person": {"key": [1, None]}}}, "vertices 'Person', row 1"),
        ({"vertices": {"Person": {"name": ["a"]}}}, "has no column"),
    ]
    for tables, message in wrong:
        with pytest.raises(hoplake.InvalidError, match=message) as raised:
            hoplake.ray.load(tmp_path / "graph", ranges=2, **tables)
        assert "rejects" not in (raised.value.hint or "")
        assert not list((tmp_path / "graph").rglob("*.hls"))
    hoplake.ray.load(tmp_path / "graph", ranges=2, vertices={"Person": people})
    with pytest.raises(hoplake.ConflictError, match="there is a graph"):
        hoplake.ray.load(tmp_path / "graph", vertices={"Person": people})
    with pytest.raises(hoplake.InvalidError):
        hoplake.ray.load(tmp_path / "graph", ranges=2, replace=True, **wrong[0][0])
    graph = hoplake.open(tmp_path / "graph")
    assert graph.count() == 3 and hoplake.ray.load(tmp_path / "graph", ranges=2, replace=True, vertices={"Person": {"key": [7]}}).vertices == 1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"ranges": 0}, "ranges"),
        ({"ranges": 1 << 70}, "ranges"),
        ({"memory": 1000}, "memory"),
        ({"memory": "x"}, "memory"),
        ({"id": "a/b"}, "id is 'a/b'"),
        ({"id": 3}, "id"),
        ({"replace": 1}, "replace"),
        ({"message": None}, "message"),
        ({"patience_seconds": float("nan")}, "patience_seconds"),
        ({"task_options": [1]}, "task_options"),
        ({"task_options": {"num_returns": 2}}, "task_options"),
        ({"temp_dir": 5}, "temp_dir"),
        ({"vertices": [1]}, "vertices"),
        ({"vertices": {"Person": 5}}, "Person"),
        ({"vertices": {5: {"key": [1]}}}, "label"),
        ({"edges": {"knows": {"source": [1], "target": [1]}}}, "edges"),
        ({"edges": 5}, "edges"),
        ({"keys": {"Tag": "id"}}, "keys"),
        ({"vertices": {}}, "nothing to load"),
        ({"vertices": {"\ud800": {"key": [1]}}}, "label"),
    ],
)
@pytest.mark.usefixtures("nodes")
def test_hostile_arguments_are_named(wrong: dict[str, Any], message: str, tmp_path: Path) -> None:
    given: dict[str, Any] = {"vertices": {"Person": {"key": [1]}}, **wrong}
    with pytest.raises(hoplake.Error, match=message):
        hoplake.ray.load(tmp_path / "graph", **given)
    with pytest.raises(hoplake.InvalidError, match="in the memory of one process"):
        hoplake.ray.load("memory://elsewhere", vertices={"Person": {"key": [1]}})
