from __future__ import annotations

import asyncio
import inspect
import itertools
import time
from collections.abc import Callable, Coroutine
from typing import Any

import pyarrow as pa
import pytest

import hoplake
import hoplake.aio
from hoplake import _hoplake


def test_the_same_calls_are_awaited(url: str) -> None:
    async def calls() -> None:
        people = pa.table({"key": [1, 2], "name": ["Ann", "Bo"]})
        knows = pa.table({"source": [1], "target": [2]})
        await hoplake.aio.load(url, vertices={"Person": people}, edges={("Person", "knows", "Person"): knows})
        graph = await hoplake.aio.open(url)
        first, second = await asyncio.gather(graph.get("Person:1"), graph.traverse("Person:1").out("knows").rows("name"))
        assert (first["name"], second["name"]) == (["Ann"], ["Bo"])
        assert [len(table) async for table in graph.scan("Person").batches()] == [2]
        assert await graph.query("g.V().count()") == [2]
        ranks = await graph.run("pagerank", progress=True)
        assert len(await ranks.top(1)) == 1
        async with graph.begin() as commit:
            commit.upsert_vertex("Person", 3, name="Cy")
        assert commit.committed is not None
        assert await graph.refresh()
        with pytest.raises(hoplake.NotFoundError):
            await graph.get("Person:99")

    asyncio.run(calls())


def test_a_cancelled_task_ends_its_call(large: str) -> None:
    async def calls() -> None:
        graph = await hoplake.aio.open(large)
        task = asyncio.create_task(graph.run("betweenness", edges="both"))
        await asyncio.sleep(0.5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(graph.run("betweenness", edges="both"), 0.2)
        assert await graph.count() == 150_000

    asyncio.run(calls())


def test_the_loop_goes_on_while_changes_are_read(url: str) -> None:
    def endless() -> pa.RecordBatchReader:
        batch = pa.record_batch({"key": [1]})
        return pa.RecordBatchReader.from_batches(batch.schema, itertools.repeat(batch))

    async def calls() -> None:
        await hoplake.aio.create(url)
        commit = (await hoplake.aio.open(url)).begin()
        numbers: Any = {"key": itertools.count()}
        endless_calls: list[Callable[[], Coroutine[Any, Any, Any]]] = [
            lambda: commit.upsert_vertices("v", numbers),
            lambda: commit.upsert_vertices("v", endless()),
            lambda: commit.add(json_lines='{"op": "upsert_vertex", "label": "v", "key": 1}\n' * 1_000_000),
            lambda: hoplake.aio.load(url, vertices={"v": numbers}, replace=True),
        ]
        for call in endless_calls:
            begun = time.monotonic()
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(call(), 0.2)
            assert time.monotonic() - begun < 2
        # None of it is half there.
        assert len(commit) == 0
        await commit.upsert_vertices("v", {"key": [1, 2]})
        assert (await commit.commit()).vertices_added == 2

    asyncio.run(calls())


def test_both_have_the_same_methods() -> None:
    for name in hoplake.aio.__all__:
        ours, theirs = getattr(hoplake, name), getattr(hoplake.aio, name)
        if not inspect.isclass(ours):
            assert str(inspect.signature(ours)).replace("_sync", "") == str(inspect.signature(theirs)).replace("_async", "")
            continue
        public = {
            kind: {method for method in vars(kind) if not method.startswith("_")} for kind in (ours, theirs)
        }
        assert public[ours] == public[theirs], name


def test_the_stub_has_what_the_extension_has() -> None:
    """A name that one lacks is found here; types are the business of the checkers."""
    import ast
    from pathlib import Path

    stub = ast.parse((Path(hoplake.__file__).parent / "_hoplake.pyi").read_text())
    for node in stub.body:
        if isinstance(node, ast.ClassDef):
            kind: type = getattr(_hoplake, node.name)
            written = {item.name for item in node.body if isinstance(item, ast.FunctionDef)} - {"__init__"}
            there = {name for name in vars(kind) if not name.startswith("__")}
            there |= {name for name in written if name.startswith("__") and hasattr(kind, name)}
            assert written == there, node.name
        elif isinstance(node, ast.FunctionDef):
            assert hasattr(_hoplake, node.name), node.name
