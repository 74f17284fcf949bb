"""No vacuum removes the version that a run computes."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import ray
from conftest import S3, Nodes, load
from programs import assert_close, assert_same, by_key, commits, left, once, program, stored, tags, wait

import hoplake
import hoplake.ray

ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])


def _vacuum(url: str) -> None:
    """Changes the graph, and removes all versions but the last and those with tags."""
    graph = hoplake.open(url)
    with graph.begin("meanwhile", on_newest=True) as commit:
        commit.upsert_vertex("Town", 1000, size=1)
        commit.upsert_edge("road", ("Town", 1000), ("Town", 3), km=1.0)
    graph.vacuum(keep_versions=1)


def _vacuuming(folder: Path, url: str) -> Callable[[str, int, int | None], None]:
    """Progress that has a vacuum run after the second superstep, and then kills the driver, whose successor reads all lists again."""

    def report(_: str, superstep: int, most: int | None) -> None:
        if superstep == 2 and once(folder / "vacuumed"):
            _vacuum(url)
            (folder / "tags").write_text(" ".join(tags(hoplake.open(url))))
            os.kill(os.getpid(), signal.SIGKILL)

    return report


@pytest.mark.usefixtures("nodes")
def test_a_vacuum_keeps_what_is_computed(graph: hoplake.Graph, tmp_path: Path) -> None:
    expected = graph.pregel(**program(4)).to_arrow()
    found = hoplake.ray.pregel(graph.url, workers=2, progress=_vacuuming(tmp_path, graph.url), **program(4))
    assert found.table is not None and found.computed_version == graph.version
    assert_same(found.table, expected, "rank")
    (tag,) = (tmp_path / "tags").read_text().split()
    assert tag.startswith(f"hoplake.ray-{found.id}-") and tags(graph) == []
    assert not left(graph)
    # No other version than the new one is left now, so it was the tag that kept it.
    hoplake.open(graph.url).vacuum(keep_versions=1)
    with pytest.raises(hoplake.NotFoundError):
        hoplake.open(graph.url, version=found.computed_version)


@pytest.mark.usefixtures("nodes")
def test_a_result_is_based_on_what_was_computed(graph: hoplake.Graph, tmp_path: Path) -> None:
    expected = by_key(graph.pregel(**program(4)).to_arrow(), "rank")
    progress = _vacuuming(tmp_path, graph.url)
    found = hoplake.ray.pregel(graph.url, workers=2, progress=progress, write="rank", id="kept", **program(4))
    assert (tmp_path / "tags").read_text() == "hoplake.ray-kept" and tags(graph) == []
    values = stored(graph, "rank")
    # The vertex that was added meanwhile has no rank.
    assert values.pop(("Town", "1000")) is None
    assert_close(values, expected)
    assert found.version is not None and graph.log(2)[1].version == found.version


@pytest.mark.usefixtures("nodes")
@pytest.mark.parametrize("write", [None, "rank"])
def test_two_drivers_keep_what_they_compute(graph: hoplake.Graph, tmp_path: Path, write: str | None) -> None:
    expected = graph.pregel(**program(4)).to_arrow()
    begun = commits(graph)
    found: dict[str, hoplake.ray.Result] = {}

    def call(name: str, progress: Any = None) -> threading.Thread:
        def run() -> None:
            found[name] = hoplake.ray.pregel(graph.url, workers=2, id="both", write=write, progress=progress, **program(4))

        thread = threading.Thread(target=run)
        thread.start()
        return thread

    def waiting(_: str, superstep: int, most: int | None) -> None:
        # The other driver ends the run, and a vacuum removes what has no tag; then this one has to read all again.
        if superstep == 2 and once(tmp_path / "waits"):
            while not (tmp_path / "vacuumed").exists():
                time.sleep(0.02)
            os.kill(os.getpid(), signal.SIGKILL)

    slow = call("slow", waiting)
    wait(lambda: (tmp_path / "waits").exists())
    assert len(tags(graph)) == 1
    fast = call("fast")
    fast.join(60)
    # Who writes the result has it for both.
    assert len(tags(graph)) == (1 if write is None else 0)
    _vacuum(graph.url)
    (tmp_path / "vacuumed").touch()
    slow.join(60)
    assert found["slow"].computed_version == found["fast"].computed_version == begun[-1]
    assert found["slow"].version == found["fast"].version and tags(graph) == []
    if write is None:
        for one in found.values():
            assert one.table is not None
            assert_same(one.table, expected, "rank")
        assert not left(graph)
    else:
        values = stored(graph, "rank")
        assert values.pop(("Town", "1000")) is None
        assert_close(values, by_key(expected, "rank"))


def test_a_graph_that_cannot_be_tagged(s3: S3, nodes: Nodes, tmp_path: Path) -> None:
    graph = load("s3://bucket/graph")
    begun = commits(graph)
    s3.stop()
    s3.start("--readonly")
    found = hoplake.ray.pregel(graph.url, workers=2, checkpoints=tmp_path / "elsewhere", checkpoint_seconds=0, **program(3))
    assert found.table is not None and found.figures["checkpoints"] == 2
    assert_same(found.table, graph.pregel(**program(3)).to_arrow(), "rank")
    # What has to be written is rejected before it is computed, and not tried again for ten minutes.
    for options in ({"checkpoints": tmp_path / "elsewhere", "write": "rank"}, {}):
        begun_seconds = time.monotonic()
        with pytest.raises(hoplake.UnavailableError, match="denies access|read-only|permission") as raised:
            hoplake.ray.pregel(graph.url, workers=2, **options, **program(3))
        assert raised.value.reason == "denied" and time.monotonic() - begun_seconds < 20
    assert commits(graph) == begun and tags(graph) == []


@pytest.mark.usefixtures("nodes")
def test_runs_that_fail_or_are_cancelled_leave_what_goes_on(graph: hoplake.Graph, tmp_path: Path) -> None:
    def wrong(state: Any, received: Any, pages: hoplake.Vertices) -> Any:
        if pages.superstep == 2:
            raise ZeroDivisionError("on purpose")
        return program()["apply"](state, received, pages)

    fails = {**program(3), "apply": wrong}
    with pytest.raises(ZeroDivisionError):
        hoplake.ray.pregel(graph.url, workers=2, checkpoint_seconds=0, **fails)
    assert not left(graph) and tags(graph) == []
    computed = graph.version
    # With an id, another call goes on from the checkpoint, once the program is mended.
    with pytest.raises(ZeroDivisionError):
        hoplake.ray.pregel(graph.url, workers=2, checkpoint_seconds=0, write="rank", id="mended", **fails)
    assert "list" in left(graph) and tags(graph) == ["hoplake.ray-mended"]
    _vacuum(graph.url)
    found = hoplake.ray.pregel(graph.url, workers=2, write="rank", id="mended", **program(3))
    assert found.computed_version == computed and len(found.figures["superstep_seconds"]) == 2
    assert left(graph) == ["result"] and tags(graph) == []

    def interrupting(text: str, superstep: int, most: int | None) -> None:
        (tmp_path / "reported").touch()
        time.sleep(60)

    def interrupt() -> None:
        wait(lambda: (tmp_path / "reported").exists())
        os.kill(os.getpid(), signal.SIGINT)

    # A shell has background processes ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        hoplake.ray.pregel(graph.url, workers=2, checkpoint_seconds=0, progress=interrupting, **program(3))
    assert left(graph) == ["result"] and tags(graph) == []


@pytest.mark.usefixtures("nodes")
def test_states_of_another_plan_are_not_restored(graph: hoplake.Graph) -> None:
    """A driver writes states after another one has ended the run and removed its plan, and then dies."""
    plan = Path(graph.url) / "runs" / "again" / "plan"

    def dies(_: str, superstep: int, most: int | None) -> None:
        if superstep == 1:
            plan.unlink()
        if superstep == 2:
            raise ZeroDivisionError("on purpose")

    with pytest.raises(ZeroDivisionError):
        hoplake.ray.pregel(graph.url, workers=2, id="again", checkpoint_seconds=0, progress=dies, **program(3))
    assert "list" in left(graph)
    _vacuum(graph.url)
    found = hoplake.ray.pregel(graph.url, workers=2, id="again", **program(3))
    graph.refresh()
    assert found.table is not None and len(found.figures["superstep_seconds"]) == 3
    assert_same(found.table, graph.pregel(**program(3)).to_arrow(), "rank")
    assert not left(graph)
