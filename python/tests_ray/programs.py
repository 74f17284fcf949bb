"""A program of a user, and what tests make of it. Processes of Ray do not find these files, so functions travel as they are."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import ray

import hoplake

ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])


def program(supersteps: int = 6) -> dict[str, Any]:
    """Ranks as a program of a user, which sees all vertices through sums alone."""

    def follow(state: Any, received: Any, pages: hoplake.Vertices) -> Any:
        rank = (0.15 + 0.85 * pages.sums["stuck"]) / pages.count + 0.85 * received
        return {"rank": rank, "steps": state["steps"] + 1}

    return {
        "initial": lambda pages: {"rank": np.full(len(pages), 1 / pages.count), "steps": np.zeros(len(pages), dtype=np.int64)},
        "signal": lambda state, pages: state["rank"] / np.maximum(pages.degree, 1),
        "apply": follow,
        "aggregate": lambda state, pages: {"stuck": state["rank"][pages.degree == 0].sum()},
        "max_supersteps": supersteps,
        "result": ["rank", "steps"],
    }


def turns() -> dict[str, Any]:
    """How many signals each vertex gets, where vertices signal in turn: what becomes of those who do not would show."""
    return {
        "initial": lambda vertices: np.zeros(len(vertices), dtype=np.int64),
        "signal": lambda total, vertices: total,
        "apply": lambda total, received, vertices: (total + received, (vertices.order + vertices.superstep) % 3 == 0),
        "combine": "count",
        "max_supersteps": 8,
        "name": "total",
    }


def by_key(table: pa.Table, name: str) -> dict[tuple[str, Any], Any]:
    """The values of a column by label and key."""
    columns = [table.column(column).to_pylist() for column in ("label", "key", name)]
    return {(label, key): value for label, key, value in zip(*columns)}


def stored(graph: hoplake.Graph, name: str) -> dict[tuple[str, str], Any]:
    """The same of a property of all vertices of the newest version."""
    graph.refresh()
    labels = [label.name for label in graph.schema.labels]
    return {(label, str(row["key"])): row[name] for label in labels for row in graph.scan(label, select=name)}


def assert_same(found: pa.Table, expected: pa.Table, name: str) -> None:
    """The same values of the same vertices; floats but for their last bits."""
    assert found.schema.equals(expected.schema), f"{found.schema} is not {expected.schema}"
    ours, theirs = by_key(found, name), by_key(expected, name)
    assert ours.keys() == theirs.keys()
    assert_close(ours, theirs)


def assert_close(ours: dict[Any, Any], theirs: dict[Any, Any]) -> None:
    """The same values of the same vertices; floats but for their last bits."""
    assert ours.keys() == theirs.keys()
    for key, value in theirs.items():
        if isinstance(value, float):
            assert ours[key] == pytest.approx(value, rel=1e-12, abs=1e-15), key
        else:
            assert ours[key] == value, key


def left(graph: hoplake.Graph) -> list[str]:
    """What runs have left below a graph. A folder's file with a # was being written when its process died: no object, and not listed."""
    return [path.name for path in (Path(graph.url) / "runs").rglob("*") if path.is_file() and "#" not in path.name]


def tags(graph: hoplake.Graph) -> list[str]:
    """The tags of all versions."""
    graph.refresh()
    return [tag for version in graph.log(1000) for tag in version.tags]


def commits(graph: hoplake.Graph) -> list[int]:
    """The versions that changes made, without those that are about tags."""
    graph.refresh()
    return sorted(version.version for version in graph.log(1000) if version.kind != "tag")


def once(path: Path) -> bool:
    """Whether this is the first call with a path, in whichever process."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def wait(until: Any, seconds: float = 60) -> None:
    """Waits until something is so."""
    begun = time.monotonic()
    while not until():
        assert time.monotonic() - begun < seconds
        time.sleep(0.02)
