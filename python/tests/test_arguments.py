"""Arguments are checked where they are given, and errors use the names and the rows of the caller."""

from __future__ import annotations

import enum
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import date, datetime, timezone
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, get_type_hints

import pyarrow as pa
import pytest

import hoplake
from hoplake import _errors


class Colour(enum.IntEnum):
    RED = 3


class Word(str, enum.Enum):
    HELLO = "hello"


QUOTED: list[tuple[Any, str]] = [
    ("Paris", '"Paris"'),
    ('a"b', '"a""b"'),
    (7, '"7"'),
    (True, '"true"'),
    (0.5, '"0.5"'),
    (Decimal("1.50"), '"1.50"'),
    (Colour.RED, '"3"'),
    (Word.HELLO, '"hello"'),
    (date(2020, 1, 2), '"2020-01-02"'),
    (datetime(2020, 1, 2, tzinfo=timezone.utc), '"2020-01-02T00:00:00+00:00"'),
]


@pytest.mark.parametrize(("value", "quoted"), QUOTED)
def test_values_are_parts_of_conditions(value: Any, quoted: str) -> None:
    assert hoplake.quote(value) == quoted


def test_scalars_of_numpy_are_parts_of_conditions() -> None:
    numpy = pytest.importorskip("numpy")
    scalars: list[tuple[Any, str]] = [
        (numpy.float64(1.5), "1.5"),
        (numpy.int64(3), "3"),
        (numpy.bool_(True), "true"),
        (numpy.str_("x"), "x"),
        (numpy.datetime64("2020-01-02"), "2020-01-02"),
    ]
    for value, text in scalars:
        assert hoplake.quote(value) == f'"{text}"'
    for wrong in (numpy.array([1, 2]), numpy.datetime64("2020-01-01T00:00:00", "ns"), numpy.complex64(1j)):
        with pytest.raises(hoplake.InvalidError, match="cannot be part of a condition"):
            hoplake.quote(wrong)


@pytest.mark.parametrize("value", [None, [1], {"a": 1}, b"x", 1j, Decimal("NaN"), object()])
def test_other_values_are_not_parts_of_conditions(value: Any) -> None:
    with pytest.raises(hoplake.InvalidError, match="cannot be part of a condition; give a str, a number"):
        hoplake.quote(value)


def test_relative_folders_stay_where_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert hoplake.create("empty")
    hoplake.load("graph", vertices={"P": {"key": [1]}})
    graph = hoplake.open("graph", disk_cache="cache")
    pickled = pickle.dumps(graph)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert graph.url == str(tmp_path / "graph")
    assert graph.at(1).count() == 1
    graph.close()
    assert graph.count() == pickle.loads(pickled).count() == 1
    graph.export("files")
    graph.mirror("mirror")
    graph.clone(os.path.join("..", "clone"))
    assert {path.name for path in (tmp_path / "elsewhere").iterdir()} == {"files", "mirror"}
    assert hoplake.open(tmp_path / "clone").count() == 1
    with hoplake.serve({"g": "mirror"}):
        pass
    with pytest.raises(hoplake.Error):
        hoplake.open("")


def test_the_home_directory_is_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "routes.csv").write_text("~from,~to,~label\na,b,route\n")
    assert hoplake.load("~/graph", "~/routes.csv").edges == 1
    assert hoplake.open("~/graph").url == str(tmp_path / "graph")
    (tmp_path / "changes.jsonl").write_text('{"op": "delete_vertex", "label": "vertex", "key": "a"}')
    commit = hoplake.open("~/graph").begin()
    commit.add("~/changes.jsonl")
    assert len(commit) == 1


@pytest.mark.parametrize("url", [None, 3, b"graph"])
def test_locations_are_text(url: Any) -> None:
    with pytest.raises(hoplake.InvalidError, match="url has to be a path or a URL"):
        hoplake.open(url)


NUMBERS: dict[str, Callable[[hoplake.Graph, Any], Any]] = {
    "max_edges": lambda graph, number: graph.path("Person:1", "Person:2", max_edges=number),
    "cache": lambda graph, number: hoplake.open(graph.url, cache=number),
    "disk_cache_size": lambda graph, number: hoplake.open(graph.url, disk_cache_size=number),
    "count": lambda graph, number: graph.run("pagerank").top(number),
    "threads": lambda graph, number: graph.run("pagerank", threads=number),
    "version": lambda graph, number: graph.at(number),
    "depth": lambda graph, number: graph.neighborhood("Person:1", depth=number),
    "keep_versions": lambda graph, number: graph.vacuum(keep_versions=number),
    "requests": lambda graph, number: graph.within(requests=number),
    "port": lambda graph, number: hoplake.serve({"g": graph.url}, port=number),
}
LIMITS: list[Callable[[hoplake.Graph, Any], Any]] = [
    lambda graph, limit: graph.diff(1, limit=limit),
    lambda graph, limit: graph.log(limit),
    lambda graph, limit: graph.traverse("Person:1").out().walks(limit),
    lambda graph, limit: graph.traverse("Person:1").out().rows(limit=limit),
    lambda graph, limit: graph.scan(limit=limit),
    lambda graph, limit: graph.scan_edges(limit=limit),
    lambda graph, limit: graph.neighbors("Person:1", limit=limit),
]


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_out_of_range_are_named(social: hoplake.Graph, name: str) -> None:
    for wrong in (-1, 1.5, True, 2**64):
        with pytest.raises(hoplake.InvalidError, match=f"^{name} has to be a whole number"):
            NUMBERS[name](social, wrong)


@pytest.mark.parametrize("call", LIMITS)
def test_limits_out_of_range_are_named(social: hoplake.Graph, call: Callable[[hoplake.Graph, Any], Any]) -> None:
    for wrong in (-1, "1GiB"):
        with pytest.raises(hoplake.InvalidError, match="^limit has to be a whole number of 0 or more"):
            call(social, wrong)


PEOPLE: Any = {"key": [1, 2], "name": ["a", "b"]}
EDGE = ("P", "e", "P")


def _wrong_loads() -> list[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    frame = pa.table(PEOPLE)
    ends = {"edges": {EDGE: {"s": [1], "t": [2]}}}
    return [
        ("files has to be paths or URLs", (frame,), {}),
        ("files has to be paths or URLs", (PEOPLE,), {}),
        ("vertices has to be a dict of tables by label", (), {"vertices": frame}),
        ("vertices has to be a dict of tables by label", (), {"vertices": [frame]}),
        ("edges has to be a dict of tables by labels", (), {"edges": frame}),
        ("edges has to be a dict of tables by labels", (), {"edges": [frame]}),
        ("edges has to be a dict of tables by labels", (), {"edges": "edges.parquet"}),
        ("is a path, 'people.parquet'; read it first", (), {"vertices": {"P": "people.parquet"}}),
        ("is a path, 'e.parquet'; read it first", (), {"edges": {EDGE: Path("e.parquet")}}),
        ("keys has to be a dict", (), {"vertices": {"P": frame}, "keys": "key"}),
        ("ends has to be the columns of source and target", (), {**ends, "ends": "st"}),
        ("ends has to be the columns of source and target", (), {**ends, "ends": ("s", "t", "u")}),
        ("ends has to be the columns of source and target", (), {**ends, "ends": {EDGE: "st"}}),
        ("ends names the edges", (), {**ends, "ends": {("P", "f", "P"): ("s", "t")}}),
    ]


@pytest.mark.parametrize(("message", "arguments", "tables"), _wrong_loads())
def test_loads_check_what_they_are_given(url: str, message: str, arguments: tuple[Any, ...], tables: dict[str, Any]) -> None:
    with pytest.raises(hoplake.InvalidError, match=message):
        hoplake.load(url, *arguments, **tables)


def test_ends_are_columns(url: str) -> None:
    table: Any = {"s": [1], "t": [2]}
    assert hoplake.load(url, edges={EDGE: table}, ends={EDGE: ("s", "t")}).edges == 1
    assert hoplake.load(url, edges=[(EDGE, table), (EDGE, table)], ends=("s", "t"), replace=True).edges == 2


def test_tables_that_have_no_rows_yet_are_explained(url: str, social: hoplake.Graph) -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    dataset = pytest.importorskip("pyarrow.dataset").dataset(pa.table(PEOPLE))
    frame = pandas.DataFrame({"name": ["a"]})
    frame.index.name = "id"
    for rows, message in [
        (polars.LazyFrame(PEOPLE), r"\.collect\(\)"),
        (dataset, r"\.to_table\(\)"),
        (frame, r"its index is named id: use frame\.reset_index\(\)"),
    ]:
        with pytest.raises(hoplake.InvalidError, match=message):
            hoplake.load(url, vertices={"P": rows})
        with pytest.raises(hoplake.InvalidError, match=message):
            social.begin().upsert_vertices("P", rows)


def _wrong_rows() -> list[tuple[dict[str, Any], str, int | None]]:
    link: Any = {"source": [1, 2], "target": [2, 9]}
    fine: Any = {"source": [1], "target": [2]}
    return [
        ({"vertices": {"P": {"key": [1, 2, None]}}}, "vertices 'P', row 2, column key", 2),
        ({"vertices": {"P": {"key": [5, 6, 5]}}}, "vertices 'P', row 2, .* another P in vertices 'P', row 0", 2),
        ({"vertices": {"P": PEOPLE, "Q": {"key": ["a", None]}}}, "vertices 'Q', row 1, column key", 1),
        ({"vertices": {"P": {"key": [1.5]}}}, "^vertices 'P': column \"key\"", None),
        ({"vertices": {"P": PEOPLE}, "edges": {EDGE: link}}, r"^edges \('P', 'e', 'P'\), row 1, column target", 1),
        ({"vertices": {"P": PEOPLE}, "edges": [(EDGE, fine), (EDGE, link)]}, r"^edges\[1\] \('P', 'e', 'P'\), row 1", 1),
    ]


@pytest.mark.parametrize(("tables", "message", "row"), _wrong_rows())
def test_rows_of_tables_are_named(url: str, tables: dict[str, Any], message: str, row: int | None) -> None:
    with pytest.raises(hoplake.InvalidError, match=message) as wrong:
        hoplake.load(url, **tables)
    assert "parquet" not in str(wrong.value)
    assert wrong.value.row == row


def test_changes_have_the_columns_of_loads(social: hoplake.Graph) -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    duckdb = pytest.importorskip("duckdb")
    tables: list[Any] = [
        {"id": [10], "name": ["x"]},
        pa.table({"id": [11], "name": ["x"]}),
        pa.table({"id": [12], "name": ["x"]}).to_batches()[0],
        pandas.DataFrame({"id": [13], "name": ["x"]}),
        pandas.DataFrame({"name": ["x"]}, index=pandas.Index([14], name="id")),
        polars.DataFrame({"id": [15], "name": ["x"]}),
        duckdb.sql("select 16::bigint as id, 'x' as name"),
        pa.table({"key": [17], "name": ["x"]}),
    ]
    with social.begin() as commit:
        for table in tables:
            commit.upsert_vertices("Person", table)
        commit.upsert_edges("knows", "Person", "Person", pa.table({"from": [10], "to": [11]}))
        commit.upsert_edges("knows", "Person", "Person", polars.DataFrame({"src": [11], "dst": [12]}))
    social.refresh()
    assert social.count("Person", where="name = x") == len(tables)
    assert social.traverse("Person:10").out("knows").out("knows").keys()["key"] == [12]


def test_options_of_changes_reach_the_commit(social: hoplake.Graph) -> None:
    def begin(**options: Any) -> hoplake.Commit:
        commit = social.begin(on_newest=True, **options)
        commit.upsert_edge("knows", ("Person", 1), ("Person", 99))
        return commit

    with pytest.raises(hoplake.InvalidError) as missing:
        begin().commit()
    assert missing.value.reason == "missing_end"
    assert begin(create_missing=True).commit().vertices_added == 1
    strict = social.begin(on_newest=True, strict=True)
    strict.upsert_vertex("Robot", 1)
    with pytest.raises(hoplake.InvalidError) as undeclared:
        strict.commit()
    assert undeclared.value.reason == "undeclared"
    lines = '{"op": "upsert_edge", "label": "knows", "source": ["Person", 1], "target": ["Person", 98]}'
    assert social.apply(json_lines=lines, create_missing=True).vertices_added == 1
    with pytest.raises(hoplake.InvalidError):
        social.apply(json_lines='{"op": "upsert_vertex", "label": "Robot", "key": 1}', strict=True)


def test_positions_are_stored_and_compared(social: hoplake.Graph) -> None:
    # Positions alone are a reason to commit, also at the end of a block.
    with social.begin(on_newest=True, positions={"log": "7"}, if_positions={"log": None}) as commit:
        pass
    assert commit.committed is not None
    assert (commit.committed.version, social.log(1)[0].source_positions) == (2, {"log": "7"})
    with pytest.raises(hoplake.ConflictError):
        social.begin(on_newest=True, positions={"log": "8"}, if_positions={"log": "6"}).commit()
    assert social.begin(on_newest=True, positions={"log": "8"}, if_positions={"log": "7"}).commit().version == 3


def test_without_changes_there_is_no_version(social: hoplake.Graph) -> None:
    with hoplake.open(social.url).begin() as other:
        other.delete_vertex("Person", 4)
    assert social.begin().commit().version == 1
    nothing = social.apply(json_lines="", message="nothing")
    assert (nothing.version, nothing.vertices_changed, nothing.repeated) == (2, 0, False)
    with social.begin() as commit:
        pass
    assert commit.committed is not None
    assert commit.committed.version == 1
    assert social.log(1)[0].version == 2


def test_queries_with_comments_are_explained(social: hoplake.Graph) -> None:
    for text in ("g.V() // all", "g.V().values('name'); // names", "g.V().has('name', 'http://x')", "g.V() // a\n.out();"):
        assert social.explain(text).startswith("plan")
        assert social.profile(text)
    assert social.explain("g.inject(commit)", commit=True).startswith("plan")
    assert social.profile("g.inject(commit)", commit=True)


def test_selections_are_names_or_a_list(social: hoplake.Graph) -> None:
    two = social.traverse("Person:1").out("knows")
    assert two.rows("name").columns == two.rows(["name"]).columns == ["label", "key", "name"]
    assert two.rows([]).columns == ["label", "key"]
    assert two.rows().columns == ["label", "key", "name", "age"]
    assert two.to_arrow().column_names == list(two.to_pandas().columns) == two.to_polars().columns
    assert social.traverse(two.keys()).count() == 2
    wrong: Any = ["knows", "likes"]
    with pytest.raises(hoplake.InvalidError, match="the label of an edge is a str"):
        social.traverse("Person:1").out(wrong)
    with pytest.raises(hoplake.InvalidError, match="call out.., in_.. or both.. first"):
        social.traverse("Person:1").where("age > 3")


def test_algorithms_are_described_as_they_are_called(social: hoplake.Graph) -> None:
    options = {name: option for algorithm in hoplake.algorithms() for name, option in algorithm["options"].items()}
    assert "from_" in options
    assert "from" not in options
    assert {option["kind"] for option in options.values()} <= {
        "vertex", "vertices", "count", "property", "seed", "fraction", "non-negative number"
    }
    for starts in (["Person:1"], ("Person", 1), social.get("Person:1")):
        assert len(social.run("levels", from_=starts, edges="out:knows")) == 4
    with pytest.raises(hoplake.InvalidError, match="levels begins at one vertex, but from_ has 2"):
        social.run("levels", from_=["Person:1", "Person:2"])


def test_results_without_a_common_type_are_lists(social: hoplake.Graph) -> None:
    pytest.importorskip("polars")
    mixed = social.query("g.inject(1, 'a')")
    for call in (mixed.to_arrow, mixed.to_polars):
        with pytest.raises(hoplake.InvalidError, match=r"'value'.*to_pylist\(\)"):
            call()
    assert mixed.to_pylist() == [1, "a"]


def test_tables_have_columns(social: hoplake.Graph) -> None:
    table = social.get("Person:1")
    assert "name" in table
    assert "height" not in table
    assert next(iter(table)) in table
    wrong: Any = 0
    with pytest.raises(TypeError, match="indexed by the name of a column"):
        table[wrong]


def test_untag_names_the_tag(social: hoplake.Graph) -> None:
    social.tag("first")
    assert social.untag("first") is not None
    with pytest.raises(hoplake.NotFoundError, match="no tag first"):
        social.untag("first")


def test_classes_are_those_of_the_package(social: hoplake.Graph) -> None:
    for module in (hoplake, hoplake.aio):
        for name in module.__all__:
            member = getattr(module, name)
            if isinstance(member, type):
                assert (member.__module__, pickle.loads(pickle.dumps(member))) == (module.__name__, member)
                get_type_hints(member)
    error = pickle.loads(pickle.dumps(hoplake.ConflictError("x")))
    assert isinstance(error, hoplake.ConflictError)


def test_modules_are_imported_when_they_are_used() -> None:
    program = """
import sys, hoplake
assert "hoplake.nx" not in sys.modules and "hoplake.aio" not in sys.modules
assert hoplake.aio.open and hoplake.nx and {"aio", "nx", "open"} <= set(dir(hoplake))
assert not hasattr(hoplake, "nothing")
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_representations_read_nothing(social: hoplake.Graph) -> None:
    graph = hoplake.open(social.url)
    assert repr(graph.scan("nothing", where="age > 3", limit=2)) == "<hoplake.Scan(labels='nothing', where='age > 3', limit=2)>"
    assert repr(graph.scan_edges()) == "<hoplake.Scan()>"
    assert graph.cost.requests == 0
    commit = graph.begin()
    commit.delete_vertex("Person", 4)
    assert repr(commit) == f"<hoplake.Commit of 1 change to {graph.url}>"
    commit.commit()
    assert repr(commit).endswith("committed as version 2>")


HALF = "\ud800"
NAMES: list[Callable[[hoplake.Graph], Any]] = [
    lambda graph: graph.begin().upsert_vertex(HALF, 1),
    lambda graph: graph.begin().delete_vertex(HALF, 1),
    lambda graph: graph.begin().upsert_edge(HALF, ("Person", 1), ("Person", 2)),
    lambda graph: graph.begin().upsert_edge("knows", (HALF, 1), ("Person", 2)),
    lambda graph: graph.begin().delete_edge(HALF, ("Person", 1), ("Person", 2)),
    lambda graph: graph.begin().upsert_vertices(HALF, {"key": [1]}),
    lambda graph: graph.begin().upsert_edges("knows", HALF, "Person", {"source": [1], "target": [1]}),
    lambda graph: graph.begin().upsert_vertex("Person", 1, **{HALF: 1}),
    lambda graph: hoplake.load("memory://half/graph", vertices={HALF: {"key": [1]}}),
    lambda graph: hoplake.load("memory://half/graph", edges={("A", HALF, "A"): {"source": [1], "target": [1]}}),
    lambda graph: graph.count(HALF),
    lambda graph: graph.scan([HALF]).table(),
    lambda graph: graph.scan_edges(HALF).table(),
    lambda graph: graph.scan(select=HALF).table(),
    lambda graph: graph.traverse("Person:1").out(HALF).count(),
    lambda graph: graph.get((HALF, 1)),
    lambda graph: graph.get(f"{HALF}:1"),
    lambda graph: graph.diff(1, labels=HALF),
]


@pytest.mark.parametrize("call", NAMES)
def test_names_with_half_of_a_character_are_refused(social: hoplake.Graph, call: Callable[[hoplake.Graph], Any]) -> None:
    with pytest.raises(hoplake.InvalidError, match="lone surrogate"):
        call(social)


class _Refuses(BaseHTTPRequestHandler):
    """A store that knows no access key."""

    def do_GET(self) -> None:
        text = b"<Error><Code>InvalidAccessKeyId</Code></Error>"
        self.send_response(403)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_PUT = do_HEAD = do_GET

    def log_message(self, format: str, *args: Any) -> None:
        pass


def test_credentials_that_are_refused_are_those_of_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Refuses)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    settings = {"ENDPOINT_URL": address, "ALLOW_HTTP": "true", "REGION": "r", "ACCESS_KEY_ID": "k", "SECRET_ACCESS_KEY": "s"}
    for name, value in settings.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    calls: list[Callable[[], Any]] = [
        lambda: hoplake.open("s3://bucket/some/graph"),
        lambda: hoplake.create("s3://bucket/some/graph"),
        lambda: hoplake.load("s3://bucket/some/graph", vertices={"P": {"key": [1]}}),
    ]
    try:
        for call in calls:
            with pytest.raises(hoplake.UnavailableError, match="s3://bucket/some/graph: it does not know the access key") as refused:
                call()
            assert refused.value.reason == "credentials"
            assert "AWS_ACCESS_KEY_ID" in str(refused.value.hint)
    finally:
        server.shutdown()
        server.server_close()
    # Without their other half.
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "")
    for name in settings:
        monkeypatch.delenv(f"AWS_{name}")
    with pytest.raises(hoplake.Error) as azure:
        hoplake.open("az://container/graph")
    assert "AWS" not in str(azure.value.hint)


def test_hints_about_credentials_name_those_of_the_store() -> None:
    for scheme, setting in [("s3", "AWS_"), ("gs", "GOOGLE_"), ("az", "AZURE_"), ("abfss", "AZURE_")]:
        error = _errors.make("unavailable", f"could not read {scheme}://b/graph: there are no credentials for it", reason="credentials")
        assert error.hint is not None and setting in error.hint
