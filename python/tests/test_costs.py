"""What calls cost, and the memory that they may use."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoplake
import hoplake.aio


def _stored(tmp_path: Path) -> str:
    """A graph of two versions, which differ in all of its vertices."""
    url = str(tmp_path / "graph")
    keys = list(range(2_000))
    people: Any = {"key": keys, "name": ["x" * 50] * 2_000}
    knows = {"source": keys, "target": keys[::-1], "since": keys}
    hoplake.load(url, vertices={"Person": people}, edges={("Person", "knows", "Person"): knows})
    with hoplake.open(url).begin() as commit:
        commit.upsert_vertices("Person", {"key": keys, "name": ["y" * 50] * 2_000})
    return url


def _raises(call: Callable[[], Any]) -> None:
    with pytest.raises(hoplake.Error):
        call()


#: Calls of a graph that was just opened, all of which send requests.
CALLS: dict[str, Callable[[hoplake.Graph, str], Any]] = {
    "get": lambda graph, _: graph.get("Person:1"),
    "failed query": lambda graph, _: _raises(lambda: graph.query("g.V().values('name').fail()")),
    "query at its limit": lambda graph, _: _raises(lambda: graph.within(requests=1).query("g.V().values('name')")),
    "failed walks": lambda graph, _: _raises(lambda: graph.within(memory=1_000).traverse("Person:1").out().walks(select="name")),
    "failed computation": lambda graph, _: _raises(lambda: graph.within(requests=1).run("pagerank", lists="streamed")),
    "scan": lambda graph, _: graph.scan().table(),
    "batch of a scan": lambda graph, _: next(iter(graph.scan().batches())),
    "stream of a scan": lambda graph, _: pa.table(graph.scan()),
    "scan of edges": lambda graph, _: graph.scan_edges().table(),
    "failed scan": lambda graph, _: _raises(lambda: graph.within(memory=1_000).scan().table()),
    "run": lambda graph, _: graph.run("components"),
    "log": lambda graph, _: graph.log(),
    "diff": lambda graph, _: graph.diff(1),
    "export": lambda graph, target: graph.export(target),
    "mirror": lambda graph, target: graph.mirror(target),
    "clone": lambda graph, target: graph.clone(target),
    "tag": lambda graph, _: graph.tag("x"),
    "failed tag": lambda graph, _: _raises(lambda: graph.untag("nothing")),
    "restore": lambda graph, _: graph.restore(1),
    "save": lambda graph, _: graph.save_query("q", "g.V()"),
    "compact": lambda graph, _: graph.compact(everything=True),
    "vacuum": lambda graph, _: graph.vacuum(keep_versions=1),
    "verify": lambda graph, _: graph.verify(),
    "index": lambda graph, _: graph.create_index("Person.name"),
    "refresh": lambda graph, _: graph.refresh(),
    "commit": lambda graph, _: graph.apply(json_lines='{"op": "upsert_vertex", "label": "Person", "key": 1, "properties": {"age": 3}}'),
    "write": lambda graph, _: graph.run("components").write("component"),
}


@pytest.mark.parametrize("name", CALLS)
def test_all_calls_count(tmp_path: Path, name: str) -> None:
    graph = hoplake.open(_stored(tmp_path))
    assert graph.cost == hoplake.Cost()
    CALLS[name](graph, str(tmp_path / "target"))
    cost = graph.cost
    assert cost.requests + cost.writes > 0, cost
    assert cost.seconds > 0
    # It stays, and later calls are added.
    CALLS["verify"](graph, "")
    assert graph.cost.requests > cost.requests


def test_a_check_and_sizes_count(tmp_path: Path) -> None:
    graph = hoplake.open(_stored(tmp_path))
    commit = graph.begin()
    commit.upsert_vertex("Person", 1, age=3)
    commit.check()
    assert graph.cost.requests > 0
    seconds = graph.cost.seconds
    # They need no requests here, and take time.
    graph.info()
    graph.indexes()
    assert graph.cost.seconds > seconds


def test_a_cancelled_call_counts(large: str) -> None:
    async def calls() -> None:
        graph = await hoplake.aio.open(large)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(graph.run("betweenness", edges="both"), 0.5)
        # Once its future is dropped, and before that, too.
        assert graph.cost.requests > 0

    asyncio.run(calls())


def test_scans_that_are_read_count_while_they_are(large: str) -> None:
    graph = hoplake.open(large)
    scan = graph.scan()
    batches = iter(scan.batches())
    next(batches)
    first = graph.cost
    assert first.requests == scan.cost.requests > 0
    assert sum(len(table) for table in batches) > 0
    assert graph.cost.bytes == scan.cost.bytes >= first.bytes
    pa.table(graph.scan())
    assert graph.cost.seconds > scan.cost.seconds


#: Results that need more than the limit, as a whole.
LARGE: dict[str, Callable[[hoplake.Graph], Any]] = {
    "table of a scan": lambda graph: graph.scan().table(),
    "table of edges": lambda graph: graph.scan_edges().table(),
    "walks": lambda graph: graph.traverse("Person[~key >= 0]").out().walks(2_000, select="name"),
    "diff": lambda graph: graph.diff(1),
}


@pytest.mark.parametrize("name", LARGE)
def test_results_count_against_memory(tmp_path: Path, name: str) -> None:
    graph = hoplake.open(_stored(tmp_path))
    with pytest.raises(hoplake.LimitError, match="memory"):
        LARGE[name](graph.within(memory=100_000))
    assert len(LARGE[name](graph.within(memory=100 << 20))) == 2_000
