from __future__ import annotations

import json
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoplake


def test_a_block_is_one_commit(social: hoplake.Graph) -> None:
    with social.begin("Di joins") as commit:
        commit.upsert_vertex("Person", 5, name="Di", born=date(2000, 1, 1), tags=["a", "b"])
        commit.upsert_edge("knows", ("Person", 5), ("Person", 1), since=2026)
        commit.upsert_vertex("Person", 1, age=None)
        commit.delete_vertex("Person", 4)
        assert len(commit) == 4
    assert commit.committed is not None
    assert (commit.committed.version, commit.committed.vertices_added, commit.committed.vertices_removed) == (2, 1, 1)
    assert social.version == 1
    assert social.refresh()
    assert social.get("Person:5").to_pylist()[0]["born"] == date(2000, 1, 1)
    assert social.get("Person:1").to_pylist()[0]["age"] is None
    assert social.traverse("Person:5").out("knows").keys()["key"] == [1]
    assert social.log()[0].message == "Di joins"
    assert social.log()[0].created.tzinfo is timezone.utc


def test_an_exception_commits_nothing(social: hoplake.Graph) -> None:
    commit = social.begin()
    with pytest.raises(RuntimeError):
        with commit:
            commit.delete_vertex("Person", 1)
            raise RuntimeError("changed my mind")
    assert commit.committed is None
    assert not social.refresh()


def test_what_another_writer_changed_is_a_conflict(social: hoplake.Graph) -> None:
    commit = social.begin()
    commit.upsert_vertex("Person", 1, age=1)
    with hoplake.open(social.url).begin() as other:
        other.upsert_vertex("Person", 1, age=2)
    with pytest.raises(hoplake.ConflictError):
        commit.commit()
    again = social.begin(on_newest=True)
    again.upsert_vertex("Person", 1, age=1)
    assert again.commit().version == 3


def test_a_batch_with_an_idempotency_key_is_applied_once(social: hoplake.Graph) -> None:
    versions: list[tuple[int, bool]] = []
    for _ in range(2):
        commit = social.begin(idempotency_key="order-7", on_newest=True)
        commit.upsert_vertex("Person", 9, name="Ed")
        committed = commit.commit()
        versions.append((committed.version, committed.repeated))
    assert versions == [(2, False), (2, True)]


def test_tables_are_changes(social: hoplake.Graph) -> None:
    commit = social.begin()
    commit.upsert_vertices("Person", pa.table({"key": [1, 7], "name": ["Anna", "Flo"]}))
    commit.upsert_edges("knows", "Person", "Person", pa.table({"source": [7], "target": [1], "since": [2026]}))
    assert commit.check()["vertices_added"] == 1
    commit.commit()
    social.refresh()
    assert social.get(["Person:1", "Person:7"])["name"] == ["Anna", "Flo"]


def test_apply_takes_tables_files_and_texts(social: hoplake.Graph, tmp_path: Path) -> None:
    lines = [{"op": "upsert_vertex", "label": "Person", "key": 8, "properties": {"name": "Gil"}}]
    text = "\n".join(json.dumps(line) for line in lines)
    assert social.apply(json_lines=text).vertices_added == 1
    file = tmp_path / "changes.jsonl"
    file.write_text(text.replace("8", "9"))
    assert social.apply(file, message="from a file").vertices_added == 1
    table = pa.table({"op": ["upsert_vertex", "delete_vertex"], "label": ["Person"] * 2, "key": [10, 9], "name": ["Hal", None]})
    applied = social.apply(table)
    assert (applied.vertices_added, applied.vertices_removed) == (1, 1)
    with pytest.raises(hoplake.InvalidError) as wrong:
        social.apply(json_lines='{"op": "upsert_vertex", "label": "Person"}')
    assert wrong.value.location is not None
    with pytest.raises(hoplake.InvalidError) as missing:
        social.apply(json_lines='{"op": "upsert_edge", "label": "knows", "source": ["Person", 1], "target": ["Person", 99]}')
    assert missing.value.reason == "missing_end"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (2**63, "more than 64 bits"),
        (object(), "cannot be a property"),
        ([[1]], "a list within a list"),
        (Decimal("NaN"), "without a finite value"),
        (Decimal(2**70), "more than 64 bits"),
        ("\udfff", "lone surrogate"),
        ({"a": 1}, "cannot be a property"),
        (1j, "cannot be a property"),
    ],
)
def test_values_that_no_property_holds_are_exceptions(social: hoplake.Graph, value: object, message: str) -> None:
    commit = social.begin()
    with pytest.raises(hoplake.InvalidError, match=message):
        commit.upsert_vertex("Person", 1, x=value)
    assert len(commit) == 0


def test_values_and_columns_are_rounded_alike(url: str) -> None:
    pandas = pytest.importorskip("pandas")
    utc = timezone.utc
    nanos = 1_577_836_800_123_456_789
    rounded = datetime(2020, 1, 1, 0, 0, 0, 123456, tzinfo=utc)
    values: list[tuple[Any, pa.Array[Any], Any]] = [
        (datetime(2020, 1, 1), pa.array([datetime(2020, 1, 1)]), datetime(2020, 1, 1, tzinfo=utc)),
        (pandas.Timestamp(nanos), pa.array([nanos], pa.timestamp("ns")), rounded),
        (pandas.Timestamp(nanos, tz="UTC"), pa.array([nanos], pa.timestamp("ns", "UTC")), rounded),
        (pandas.Timestamp(-1), pa.array([-1], pa.timestamp("ns")), datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=utc)),
        (Decimal("0.1"), pa.array([Decimal("0.1")]), 0.1),
        (Decimal("2.00"), pa.array([Decimal("2.00")]), 2.0),
        (Decimal(7), pa.array([Decimal(7)]), 7),
    ]
    hoplake.create(url)
    with hoplake.open(url).begin() as commit:
        for number, (value, column, _) in enumerate(values):
            commit.upsert_vertex(f"V{number}", 1, x=value)
            commit.upsert_vertices(f"D{number}", {"key": [1], "x": [value]})
            commit.upsert_vertices(f"C{number}", pa.table({"key": [1], "x": column}))
            commit.upsert_vertices(f"L{number}", pa.table({"key": [1], "x": pa.array([[column[0].as_py()]], pa.list_(column.type))}))
    graph = hoplake.open(url)
    columns = {f"C{number}": pa.table({"key": [1], "x": column}) for number, (_, column, _) in enumerate(values)}
    hoplake.load("memory://changes/rounded", vertices=columns)
    loaded = hoplake.open("memory://changes/rounded")
    for number, (value, _, expected) in enumerate(values):
        found = [graph.get(f"{how}{number}:1")["x"][0] for how in "VDC"] + [loaded.get(f"C{number}:1")["x"][0]]
        assert found == [expected] * 4, value
        assert [type(it) for it in found] == [type(expected)] * 4, value
    # Conditions and parameters have the same time zone.
    assert graph.count("V0", where=f"x = {hoplake.quote(datetime(2020, 1, 1))}") == 1
    assert graph.query("g.inject(x)", x=datetime(2020, 1, 1)).to_pylist() == [datetime(2020, 1, 1, tzinfo=utc)]


@pytest.mark.parametrize("key", [1.5, None, True, 2**64, ["a"], b"a"])
def test_keys_are_integers_or_texts(social: hoplake.Graph, key: object) -> None:
    with pytest.raises(hoplake.InvalidError):
        social.begin().upsert_vertex("Person", key)  # type: ignore[arg-type]


def test_an_empty_graph_is_filled(url: str) -> None:
    assert hoplake.create(url)
    graph = hoplake.open(url)
    with graph.begin() as commit:
        commit.upsert_vertex("Town", "x", size=3)
    assert graph.refresh()
    assert graph.get("Town:x")["size"] == [3]
    with pytest.raises(hoplake.ConflictError):
        hoplake.create(url)


def test_a_batch_is_committed_once_whoever_asks(social: hoplake.Graph) -> None:
    from concurrent.futures import ThreadPoolExecutor

    commit = social.begin(on_newest=True)
    commit.upsert_vertex("Person", 50, name="x")

    def ask(_: int) -> bool:
        try:
            commit.commit()
        except hoplake.InvalidError:
            return False
        return True

    with ThreadPoolExecutor(4) as threads:
        assert sum(threads.map(ask, range(4))) == 1
    social.refresh()
    assert social.version == 2


def test_a_pickled_graph_takes_changes(social: hoplake.Graph) -> None:
    import pickle

    copy = pickle.loads(pickle.dumps(social))
    assert copy.apply(json_lines='{"op": "delete_vertex", "label": "Person", "key": 1}').vertices_removed == 1


def test_numbers_of_numpy_and_pandas_are_what_they_are(social: hoplake.Graph) -> None:
    numpy = pytest.importorskip("numpy")
    pandas = pytest.importorskip("pandas")
    with social.begin() as commit:
        commit.upsert_vertex(
            "Thing", 1, flag=numpy.True_, count=numpy.int32(7), share=numpy.float32(0.5), many=numpy.array([1, 2]), none=pandas.NA
        )
    social.refresh()
    assert social.get("Thing:1").to_pylist()[0] == {
        "label": "Thing", "key": 1, "flag": True, "count": 7, "share": 0.5, "many": [1, 2]
    }
    with pytest.raises(hoplake.InvalidError):
        social.begin().upsert_vertex("Thing", 1, x=numpy.complex64(1 + 2j))
    late = social.begin(seconds=float("nan"), on_newest=True)
    late.upsert_vertex("Thing", 2)
    with pytest.raises(hoplake.InvalidError, match="seconds"):
        late.commit()
