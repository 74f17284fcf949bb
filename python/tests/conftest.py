from __future__ import annotations

import itertools
from pathlib import Path

import pyarrow as pa
import pytest

import hoplake

_NAMES = itertools.count()


def people() -> pa.Table:
    return pa.table({"key": [1, 2, 3, 4], "name": ["Ann", "Bo", "Cy", None], "age": [30, 41, None, 7]})


def knows() -> pa.Table:
    return pa.table({"source": [1, 1, 2, 3], "target": [2, 3, 3, 4], "since": [2019, 2020, 2021, 2022]})


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A location without a graph."""
    return str(tmp_path / "graph")


@pytest.fixture
def social(url: str) -> hoplake.Graph:
    """Four people, one of them without a name, and whom they know."""
    hoplake.load(url, vertices={"Person": people()}, edges={("Person", "knows", "Person"): knows()})
    return hoplake.open(url)


@pytest.fixture(scope="session")
def large(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The location of a graph that keeps a computation busy for seconds."""
    url = str(tmp_path_factory.mktemp("large") / "graph")
    count, degree = 150_000, 10
    sources = pa.array([vertex for vertex in range(count) for _ in range(degree)], pa.int64())
    targets = pa.array([(vertex * 31 + step * step * 7919) % count for vertex in range(count) for step in range(degree)], pa.int64())
    edges = pa.table({"source": sources, "target": targets})
    hoplake.load(url, edges={("v", "e", "v"): edges})
    return url
