"""Tables go to other libraries and come from them without their being needed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import date, datetime, timezone
from typing import Any

import pyarrow as pa
import pytest

import hoplake

EVERYTHING = pa.table(
    {
        "key": ["a", "b"],
        "flag": [True, None],
        "count": pa.array([1, None], pa.int64()),
        "share": [0.5, None],
        "text": ["ä", None],
        "day": pa.array([date(2020, 2, 29), None], pa.date32()),
        "moment": pa.array([datetime(2020, 1, 2, 3, 4, 5, 6, timezone.utc), None], pa.timestamp("us", "UTC")),
        "tags": pa.array([["x", "y"], None], pa.list_(pa.string())),
    }
)


@pytest.fixture
def graph(url: str) -> hoplake.Graph:
    hoplake.load(url, vertices={"Thing": EVERYTHING})
    return hoplake.open(url)


def test_all_types_come_back(graph: hoplake.Graph) -> None:
    table = graph.get(["Thing:a", "Thing:b"])
    assert table.to_pylist()[0] == {
        "label": "Thing",
        "key": "a",
        "flag": True,
        "count": 1,
        "share": 0.5,
        "text": "ä",
        "day": date(2020, 2, 29),
        "moment": datetime(2020, 1, 2, 3, 4, 5, 6, timezone.utc),
        "tags": ["x", "y"],
    }
    assert all(value is None for name, value in table.to_pylist()[1].items() if name not in ("label", "key"))
    arrow = table.to_arrow().drop_columns(["label"])
    assert arrow.column_names == EVERYTHING.column_names
    assert arrow.to_pylist() == EVERYTHING.to_pylist()


def test_pandas_polars_and_duckdb_read_results(graph: hoplake.Graph) -> None:
    duckdb = pytest.importorskip("duckdb")
    polars = pytest.importorskip("polars")
    things = table = graph.get(["Thing:a", "Thing:b"])
    assert things.columns
    assert table.to_pandas()["text"].tolist()[0] == "ä"
    assert table.to_polars()["count"].to_list() == [1, None]
    assert polars.DataFrame(graph.scan("Thing")).height == 2
    assert duckdb.sql("select count(*), max(share) from things").fetchall() == [(2, 0.5)]
    stream = graph.scan("Thing")
    assert stream.columns[0] == "label"
    assert duckdb.sql("select text from stream where key = 'a'").fetchall() == [("ä",)]


def test_buffers_are_shared(graph: hoplake.Graph) -> None:
    table = graph.get(["Thing:a", "Thing:b"])
    # Both are alive: a copy would have another address.
    columns: list[Any] = [pa.table(table)["count"].chunk(0) for _ in range(2)]
    first, second = [int(column.buffers()[1].address) for column in columns]
    assert first == second


def test_a_stream_is_read_while_it_is_consumed(large: str) -> None:
    scan = hoplake.open(large).scan("v")
    reader = pa.RecordBatchReader.from_stream(scan)
    rows = reader.read_next_batch().num_rows
    # Nothing else was taken, so the stream has more.
    assert 0 < rows < 150_000
    for batch in reader:
        assert batch.num_columns == 2
        rows += batch.num_rows
    assert rows == 150_000
    assert scan.cost.seconds > 0


def test_tables_of_any_library_are_loaded(url: str) -> None:
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    duckdb = pytest.importorskip("duckdb")
    frame = pandas.DataFrame({"id": [1, 2], "name": ["Ann", None], "score": [1.5, float("nan")]})
    towns = polars.DataFrame({"key": ["x", "y"], "size": [3, None]})
    lives = duckdb.sql("select * from (values (1, 'x'), (2, 'y')) t(source, target)")
    loaded = hoplake.load(
        url,
        vertices={"Person": frame, "Town": towns},
        edges={("Person", "lives", "Town"): lives},
    )
    assert (loaded.vertices, loaded.edges) == (4, 2)
    graph = hoplake.open(url)
    assert graph.get("Person:2").to_pylist() == [{"label": "Person", "key": 2, "name": None, "score": None}]
    assert graph.traverse("Person:2").out("lives").rows("size")["size"] == [None]


def test_a_generator_of_batches_is_loaded_a_batch_at_a_time(url: str) -> None:
    schema = pa.schema({"source": pa.int64(), "target": pa.int64()})

    def batches() -> Iterator[pa.RecordBatch]:
        for part in range(10):
            numbers = list(range(part * 1000, (part + 1) * 1000))
            yield pa.record_batch({"source": numbers, "target": [n + 1 for n in numbers]}, schema=schema)

    loaded = hoplake.load(url, edges=[(("v", "e", "v"), pa.RecordBatchReader.from_batches(schema, batches()))])
    assert (loaded.vertices, loaded.edges) == (10_001, 10_000)


def test_an_exception_of_a_generator_ends_the_load(url: str) -> None:
    schema = pa.schema({"source": pa.int64(), "target": pa.int64()})

    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"source": [1], "target": [2]}, schema=schema)
        raise RuntimeError("the source is gone")

    class Numbers:
        def __iter__(self) -> Iterator[int]:
            yield 1
            raise RuntimeError("the source is gone")

    tables: list[Any] = [pa.RecordBatchReader.from_batches(schema, batches()), {"source": Numbers(), "target": [2]}]
    for rows in tables:
        # As itself, and not as what a stream of Arrow makes of it.
        with pytest.raises(RuntimeError, match="the source is gone"):
            hoplake.load(url, edges=[(("v", "e", "v"), rows)])
    with pytest.raises(hoplake.NotFoundError):
        hoplake.open(url)
    hoplake.create(url)
    commit = hoplake.open(url).begin()
    tables = [pa.RecordBatchReader.from_batches(schema, batches()), {"source": Numbers(), "target": [2]}]
    for rows in tables:
        with pytest.raises(RuntimeError, match="the source is gone"):
            commit.upsert_edges("e", "v", "v", rows)
    assert len(commit) == 0


def test_what_cannot_be_loaded_is_named(url: str) -> None:
    with pytest.raises(hoplake.InvalidError, match='the table of vertices "P" has no column "key"; its columns are name'):
        hoplake.load(url, vertices={"P": pa.table({"name": ["a"]})})
    nested = pa.table({"key": [1], "place": [{"x": 1}]})
    with pytest.raises(hoplake.InvalidError, match="column place is of type struct"):
        hoplake.load(url, vertices={"P": nested})
    with pytest.raises(hoplake.InvalidError, match="is a (builtins.)?list"):
        hoplake.load(url, vertices={"P": [1, 2]})  # type: ignore[dict-item]
    edges = {("P", "knows", "Q"): pa.table({"source": [1], "target": [2]})}
    with pytest.raises(hoplake.InvalidError, match="Q"):
        hoplake.load(url, vertices={"P": pa.table({"key": [1]})}, edges=edges)


def test_none_of_these_libraries_is_needed(social: hoplake.Graph) -> None:
    """A fresh interpreter that cannot import them."""
    program = f"""
import sys
for name in ("pyarrow", "pandas", "polars", "duckdb", "networkx", "numpy", "tqdm"):
    sys.modules[name] = None
import hoplake
graph = hoplake.open({social.url!r})
assert [row["name"] for row in graph.get(["Person:1"])] == ["Ann"]
assert graph.query("g.V().count()") == [4]
assert len(graph.run("pagerank").top(2)) == 2
assert graph.run("pagerank", progress=True).name == "rank"
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_dict_of_lists_is_a_table(url: str) -> None:
    people = {"key": ["a", "b"], "age": [1, 2.5], "tags": [[], ["x"]], "born": [None, date(2000, 1, 1)], "nothing": [None, None]}
    tables: Any = {"Person": people}
    hoplake.load(url, vertices=tables, edges={("Person", "knows", "Person"): {"source": ["a"], "target": ["b"]}})
    graph = hoplake.open(url)
    assert graph.get(["Person:a", "Person:b"]).to_pylist() == [
        {"label": "Person", "key": "a", "age": 1.0, "tags": [], "born": None},
        {"label": "Person", "key": "b", "age": 2.5, "tags": ["x"], "born": date(2000, 1, 1)},
    ]
    wrongs: list[tuple[Any, str]] = [
        ({"key": [1], "x": [1, 2]}, "column x has 2 values, and the first column 1"),
        ({"key": [1, 2], "x": [1, "a"]}, "column x: it has values of int64 and of string"),
        ({"key": [1, 2], "x": [2**53 + 1, 0.5]}, "does not fit float64"),
        ({"key": 1}, "a column is a list"),
        ({1: [1]}, "not a str"),
        ({"key": [object()]}, "cannot be a property"),
    ]
    for wrong, message in wrongs:
        with pytest.raises(hoplake.InvalidError, match=message):
            hoplake.load(url, vertices={"P": wrong}, replace=True)


def test_data_of_arrow_is_checked(url: str) -> None:
    """Text that is not UTF-8, arrays without columns, and capsules that are used twice."""
    offsets = pa.py_buffer(b"\0\0\0\0\2\0\0\0")
    bad: Any = pa.Array.from_buffers(pa.string(), 1, [None, offsets, pa.py_buffer(b"\xff\xfe")])
    hoplake.create(url)
    graph = hoplake.open(url)
    commit = graph.begin()
    table = pa.table({"key": bad})
    with pytest.raises(hoplake.InvalidError, match="(?i)utf"):
        commit.upsert_vertices("P", table)
    with pytest.raises(hoplake.InvalidError, match="(?i)utf"):
        hoplake.load(url, vertices={"P": table}, replace=True)
    numbers: Any = pa.array([1, 2])
    with pytest.raises(hoplake.InvalidError, match="without columns"):
        commit.upsert_vertices("P", numbers)
    nulls: Any = pa.array([{"key": 1}, None])
    with pytest.raises(hoplake.InvalidError, match="rows are null"):
        commit.upsert_vertices("P", nulls)

    class Twice:
        def __init__(self) -> None:
            batch: Any = pa.record_batch({"key": [1]})
            self.capsules: Any = batch.__arrow_c_array__()

        def __arrow_c_array__(self) -> Any:
            return self.capsules

    twice: Any = Twice()
    commit.upsert_vertices("P", twice)
    with pytest.raises(hoplake.InvalidError, match="was read already"):
        commit.upsert_vertices("P", twice)
    for wrong in (None, (1, 2), ()):
        twice.capsules = wrong
        with pytest.raises(hoplake.InvalidError, match="PyCapsule interface"):
            commit.upsert_vertices("P", twice)
    assert len(commit) == 1


def test_the_index_of_pandas_is_not_a_property(url: str) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"key": [1, 2, 3], "x": [1, 2, 3]})
    hoplake.load(url, vertices={"P": frame[frame.x > 1]})
    assert list(hoplake.open(url).schema.labels[0].properties) == ["x"]


@pytest.mark.parametrize("days", [2_932_897, -4_371_588, 2**31 - 1])
def test_days_beyond_the_calendar_are_refused(url: str, days: int) -> None:
    hoplake.create(url)
    column: Any = pa.array([days], pa.int32())
    table = pa.table({"key": [1], "day": column.cast(pa.date32())})
    with pytest.raises(hoplake.InvalidError, match="day"):
        hoplake.open(url).begin().upsert_vertices("P", table)
    with pytest.raises(hoplake.InvalidError, match="day"):
        hoplake.load(url, vertices={"P": table}, replace=True)
