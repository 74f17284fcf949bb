"""A worker, a node and the driver die at every step of a run."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
from conftest import Nodes
from programs import assert_close, assert_same, by_key, commits, left, stored, tags, wait
from traps import Trap

import hoplake
import hoplake.ray

#: The steps of a worker, in a run of three supersteps.
STEPS = [
    "load",
    "initial",
    "aggregate 0",
    *(f"{what} {superstep}" for superstep in (1, 2, 3) for what in ("signal", "apply")),
    "aggregate 2",
    "state 1",
    "stated 2",
    "table",
]


@pytest.mark.usefixtures("nodes")
def test_a_worker_dies_at_every_step(graph: hoplake.Graph, tmp_path: Path) -> None:
    trap = Trap(tmp_path, "worker", STEPS)
    found = hoplake.ray.pregel(graph.url, workers=2, checkpoint_seconds=0, **trap.program())
    # Of two workers each may die at the next step meanwhile.
    assert trap.reached() == set(STEPS) and found.table is not None and found.figures["restarts"] >= len(STEPS) // 2
    expected = graph.pregel(**trap.program()).to_arrow()
    assert_same(found.table, expected, "rank")
    assert_same(found.table, expected, "steps")
    assert not left(graph) and not tags(graph)


def test_a_node_dies_at_every_step(graph: hoplake.Graph, nodes: Nodes, tmp_path: Path) -> None:
    steps = ["load", "signal 1", "apply 1", "signal 2", "apply 2", "state 2", "signal 3", "apply 3"]
    trap = Trap(tmp_path, "node", steps)
    found: list[hoplake.ray.Result] = []
    call = lambda: found.append(hoplake.ray.pregel(graph.url, workers=2, checkpoint_seconds=0, **trap.program()))  # noqa: E731
    running = threading.Thread(target=call)
    running.start()
    killed: set[str] = set()
    while killed != set(steps):
        wait(lambda: any((tmp_path / f"{step} of").exists() for step in set(steps) - killed) or not running.is_alive())
        assert running.is_alive(), f"{set(steps) - killed} were not reached"
        for step in set(steps) - killed:
            if (tmp_path / f"{step} of").exists() and (known := (tmp_path / f"{step} of").read_text()):
                node, process = known.split()
                nodes.kill(node)
                # It may have ended with its node.
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(process), signal.SIGKILL)
                killed.add(step)
    running.join(120)
    assert found and found[0].table is not None
    assert_same(found[0].table, graph.pregel(**trap.program()).to_arrow(), "rank")
    assert not left(graph) and not tags(graph)


@pytest.mark.usefixtures("nodes")
def test_the_driver_dies_at_every_step(graph: hoplake.Graph, tmp_path: Path) -> None:
    steps = ["agreed plan", "load", "initial", "signal 1", "apply 1", "aggregate 1", "list 1", "signal 2", "apply 2", "state 2", "signal 3", "apply 3"]
    # The commit is there before the result is, and the result before the tag goes.
    steps += ["commit", "committed", "agreed result", "untag"]
    trap = Trap(tmp_path, "driver", steps)
    before = commits(graph)
    found = hoplake.ray.pregel(graph.url, workers=2, checkpoint_seconds=0, write=["rank", "steps"], id="driver", **trap.program())
    assert trap.reached() == set(steps)
    assert found.supersteps == 3 and commits(graph) == [*before, found.version]
    expected = graph.pregel(**trap.program()).to_arrow()
    for name in ("rank", "steps"):
        assert_close(stored(graph, name), by_key(expected, name))
    assert left(graph) == ["result"] and not tags(graph)


def test_the_driver_dies_without_a_result_to_write(graph: hoplake.Graph, nodes: Nodes, tmp_path: Path) -> None:
    trap: Any = Trap(tmp_path, "driver", ["tagged", "untag"])
    found = hoplake.ray.pregel(graph.url, workers=2, checkpoint_seconds=0, **trap.program())
    assert trap.reached() == set(trap.places) and found.table is not None
    assert_same(found.table, graph.pregel(**trap.program()).to_arrow(), "rank")
    assert not left(graph) and not tags(graph)
