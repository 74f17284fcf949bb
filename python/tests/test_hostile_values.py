"""Values and streams that once ended the process, hung it, or were taken for something else."""

from __future__ import annotations

import gc
import os
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import hoplake


@pytest.fixture
def graph(tmp_path: Path) -> hoplake.Graph:
    vertices = {"P": {"key": [1, 2]}}
    hoplake.load(tmp_path / "graph", vertices=vertices, edges={("P", "e", "P"): {"source": [1, 1, 2, 2], "target": [1, 2, 1, 2]}})
    return hoplake.open(tmp_path / "graph")


def test_lists_within_lists_are_refused(graph: hoplake.Graph) -> None:
    itself = np.empty(1, object)
    itself[0] = itself
    for value in ([[1]], [(1,)], [np.array([1, 2])], np.array([[1], [2]]), itself):
        with pytest.raises(hoplake.InvalidError, match="a list within a list"):
            graph.begin().upsert_vertex("P", 1, x=value)


def test_arrays_of_moments_do_not_become_integers(graph: hoplake.Graph) -> None:
    for value in (np.array(["2020-01-01"], dtype="datetime64[ns]"), np.array([1], dtype="timedelta64[s]")):
        with pytest.raises(hoplake.InvalidError, match="dates or durations"):
            graph.begin().upsert_vertex("P", 1, x=value)


def test_what_pandas_has_for_none_is_none(graph: hoplake.Graph) -> None:
    with graph.begin() as commit:
        commit.upsert_vertex("P", 1, a=pd.NaT, b=pd.NA, c=None, d=1)
    assert hoplake.open(graph.url).get("P:1").to_pylist() == [{"label": "P", "key": 1, "d": 1}]
    assert graph.query("g.inject(x, y)", x=pd.NaT, y=pd.NA).to_pylist() == [None, None]


def test_rows_that_are_null_are_not_rows(tmp_path: Path, graph: hoplake.Graph) -> None:
    rows: Any = pa.array([{"key": 1}, None])
    tables: list[Any] = [rows, pa.chunked_array([rows])]
    for table in tables:
        with pytest.raises(hoplake.InvalidError, match="rows are null"):
            hoplake.load(tmp_path / "rows", vertices={"P": table})
        with pytest.raises(hoplake.InvalidError, match="rows are null"):
            graph.begin().upsert_vertices("P", table)


def test_a_dictionary_may_have_null(tmp_path: Path) -> None:
    arrays: Any = pa.DictionaryArray
    column = arrays.from_arrays(pa.array([0, 1, None]), pa.array(["a", None]))
    hoplake.load(tmp_path / "rows", vertices={"P": pa.table({"key": [1, 2, 3], "x": column})})
    assert [row["x"] for row in hoplake.open(tmp_path / "rows").scan()] == ["a", None, None]


def test_what_was_published_is_said(graph: hoplake.Graph) -> None:
    query = 'g.addV("Z").property(id, 7).constant(datetime("-0100-01-01T00:00:00Z"))'
    with pytest.raises(hoplake.InvalidError, match="published as version 2"):
        graph.query(query, commit=True)
    assert graph.log(1)[0].version == 2


def test_a_bulk_set_of_any_size_is_an_error(graph: hoplake.Graph) -> None:
    for times in (40, 70):
        with pytest.raises(hoplake.InvalidError, match="a bulk set has"):
            graph.query(f"g.V().repeat(out().barrier()).times({times}).aggregate('x').cap('x')")


def test_branches_with_equal_keys_stay(graph: hoplake.Graph) -> None:
    [tree] = graph.query("g.inject(1, 1.0d, true).tree()").to_pylist()
    assert tree == [(1, {}), (1.0, {}), (True, {})]


def test_a_dict_that_changes_while_it_is_read(tmp_path: Path) -> None:
    columns: dict[str, object] = {}

    class Column:
        def __iter__(self) -> object:
            columns["more"] = [1]
            return iter([1])

    columns["key"] = Column()
    hoplake.load(tmp_path / "rows", vertices={"P": columns})  # type: ignore[dict-item]  # pyright: ignore[reportArgumentType]
    assert hoplake.open(tmp_path / "rows").count() == 1


def test_a_server_runs_without_its_object(tmp_path: Path, graph: hoplake.Graph) -> None:
    url = hoplake.serve({"g": graph.url}).http
    gc.collect()
    for _ in range(2):
        with urllib.request.urlopen(f"{url}/healthz", timeout=10) as answer:
            assert answer.status == 200


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_does_not_wait_for_a_scan_of_its_parent(graph: hoplake.Graph) -> None:
    scan = graph.scan()
    tables = scan.batches()
    next(tables)
    child = os.fork()
    if child == 0:
        try:
            next(tables)
        except hoplake.InvalidError:
            os._exit(7)
        except BaseException:
            os._exit(8)
        os._exit(9)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 7
