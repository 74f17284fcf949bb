from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import hoplake


def test_get_reads_all_properties_or_those_that_are_named(social: hoplake.Graph) -> None:
    table = social.get(["Person:1", ("Person", 4)])
    assert table.columns == ["label", "key", "name", "age"]
    assert table.to_pylist() == [
        {"label": "Person", "key": 1, "name": "Ann", "age": 30},
        {"label": "Person", "key": 4, "name": None, "age": 7},
    ]
    assert social.get("Person[age > 35]", select="age")["age"] == [41]
    assert social.get("Person:1", select=[]).columns == ["label", "key"]


def test_scans_are_streams(social: hoplake.Graph) -> None:
    assert [row["key"] for row in social.scan("Person", where="age >= 30")] == [1, 2]
    ordered = social.scan("Person", order_by="age desc", select="age").table()
    assert ordered["age"] == [41, 30, 7, None]
    assert social.scan(limit=2).table()["key"] == [1, 2]
    assert social.scan("Person", where="age > 1000").to_pylist() == []
    scan = hoplake.open(social.url).scan("Person", select=[])
    assert scan.cost.waves == 0
    # Each time that rows are taken it begins anew.
    assert [len(table) for table in scan.batches()] == [4]
    assert scan.cost.waves > 0
    assert len(scan.table()) == len(scan.table()) == 4


def test_counts(social: hoplake.Graph) -> None:
    assert (social.count(), social.count("Person"), social.count("Person", where="name is null")) == (4, 4, 1)


def test_neighbors(social: hoplake.Graph) -> None:
    table = social.neighbors("Person:1", "out:knows", select=["since", "name"])
    assert table.columns == ["from_label", "from_key", "edge", "direction", "label", "key", "since", "name"]
    assert [(row["key"], row["since"], row["name"]) for row in table] == [(2, 2019, "Bo"), (3, 2020, "Cy")]
    assert social.neighbors("Person:1", limit=1)["key"] == [2]
    assert social.neighbors(["Person:1", "Person:2"], "out:knows[since > 2019]")["key"] == [3, 3]
    assert social.neighbors("Person:1", ids=True).columns[0] == "edge_id"
    assert social.degrees(["Person:3", "Person:1", "Person:4"], "out") == [1, 2, 0]


def test_traversals_read_like_their_hops(social: hoplake.Graph) -> None:
    two = social.traverse("Person:1").out("knows").out("knows")
    assert two.keys()["key"] == [3, 4]
    assert two.rows("name")["name"] == ["Cy", None]
    assert two.rows().columns == ["label", "key", "name", "age"]
    assert (two.count(), two.count_walks()) == (2, 2)
    assert social.traverse("Person:4").in_("knows").keys()["key"] == [3]
    assert social.traverse("Person:1").out("knows", where="since > 2019").keys()["key"] == [3]
    assert social.traverse("Person:1").out("knows").where("since > 2019").where("age is null").keys()["key"] == [3]
    assert social.traverse("Person:1").hop("out:knows[since > 2019]").keys()["key"] == [3]
    back = social.traverse("Person:1").both("knows").both("knows")
    assert (back.count(), back.once().count()) == (4, 1)
    assert two.rows("name", limit=1)["name"] == ["Cy"]
    # A traversal is not changed by its steps.
    assert social.traverse("Person:1").count() == 1


def test_walks_and_paths(social: hoplake.Graph) -> None:
    walks = social.traverse("Person:1").out("knows").out("knows").walks(select=["name", "since"])
    assert [str(walk) for walk in walks] == [
        "Person:1 -knows-> Person:2 -knows-> Person:3",
        "Person:1 -knows-> Person:3 -knows-> Person:4",
    ]
    assert walks[0].vertices[1].properties == {"name": "Bo"}
    assert walks[0].edges[1].properties == {"since": 2021}
    assert walks.cost.waves > 0
    path = social.path("Person:1", "Person:4", "out:knows")
    assert path is not None
    assert (len(path), path.length, str(path.vertices[1])) == (2, 2, "Person:3")
    weighted = social.path("Person:1", "Person:3", "out:knows", weight="since")
    assert weighted is not None
    assert (len(weighted), weighted.length) == (1, 2020.0)
    assert social.path("Person:4", "Person:1", "out:knows") is None
    with pytest.raises(hoplake.LimitError, match="longer paths were not searched"):
        social.path("Person:1", "Person:4", "out:knows", max_edges=1)


def test_neighborhood(social: hoplake.Graph) -> None:
    table = social.neighborhood("Person:1", "out:knows", depth=2, select="name")
    assert [(row["distance"], row["key"]) for row in table] == [(1, 2), (1, 3), (2, 4)]


def test_the_schema_has_counts(social: hoplake.Graph) -> None:
    (label,) = social.schema.labels
    assert (label.name, label.key_type, label.vertices) == ("Person", "int64", 4)
    assert label.properties == {"name": "string", "age": "int64"}
    (edge_type,) = social.schema.edge_types
    assert (edge_type.label, edge_type.edges, edge_type.is_exact) == ("knows", 4, True)
    info = social.info()
    assert (info.vertices, info.edges, info.version) == (4, 4, 1)


def test_limits_end_a_call(social: hoplake.Graph) -> None:
    with pytest.raises(hoplake.LimitError) as raised:
        social.within(vertices=1).traverse("Person:1").both().both().count()
    assert "1 vertices" in str(raised.value) or "limit" in str(raised.value)
    with pytest.raises(hoplake.LimitError):
        hoplake.open(social.url).within(requests=0).get("Person:1")
    assert social.within(seconds=60).count() == 4
    with pytest.raises(hoplake.InvalidError, match="seconds"):
        social.within(seconds=-1)


def test_a_result_says_what_it_cost(social: hoplake.Graph) -> None:
    cost = hoplake.open(social.url).get("Person:1").cost
    assert cost.waves >= 1
    assert cost.requests >= 1
    assert cost.bytes > 0
    assert cost.seconds > 0


def test_what_is_not_there_is_named(social: hoplake.Graph) -> None:
    with pytest.raises(hoplake.NotFoundError, match="Person:99") as raised:
        social.get("Person:99")
    assert isinstance(raised.value, LookupError)
    with pytest.raises(hoplake.NotFoundError, match="City"):
        social.get("City:1")
    with pytest.raises(hoplake.NotFoundError, match="height"):
        social.get("Person:1", select="height")
    with pytest.raises(hoplake.InvalidError, match="does not name a vertex"):
        social.get("Person")
    with pytest.raises(hoplake.NotFoundError) as missing:
        hoplake.open("memory://nothing/here")
    assert missing.value.reason == "no_graph"
    assert missing.value.hint is not None
    assert any("hoplake.load" in note for note in getattr(missing.value, "__notes__", [missing.value.hint]))


def test_pictures_of_results_are_escaped(url: str) -> None:
    import pyarrow as pa

    hoplake.load(url, vertices={"<b>": pa.table({"key": ["<script>"], "<i>": ["&"]})})
    graph = hoplake.open(url)
    for html in [graph._repr_html_(), graph.get('"<b>":<script>')._repr_html_(), graph.schema._repr_html_()]:
        assert "<script>" not in html
        assert "<td><b></td>" not in html
        assert "&lt;b&gt;" in html


def test_edges_are_scanned(social: hoplake.Graph) -> None:
    scan = social.scan_edges("knows")
    assert scan.columns == ["label", "source_label", "source", "target_label", "target", "since"]
    assert [(row["source"], row["target"], row["since"]) for row in scan] == [
        (1, 2, 2019),
        (1, 3, 2020),
        (2, 3, 2021),
        (3, 4, 2022),
    ]
    assert social.scan_edges(source_label="Person", select=[], limit=2).table()["target"] == [2, 3]
    with pytest.raises(hoplake.NotFoundError, match="likes"):
        social.scan_edges("likes").table()
    with pytest.raises(hoplake.NotFoundError, match="height"):
        social.scan_edges("knows", select="height").table()


def test_results_become_graphs_of_networkx(social: hoplake.Graph) -> None:
    pytest.importorskip("networkx")
    graph = social.to_networkx()
    assert (graph.number_of_nodes(), graph.number_of_edges()) == (4, 4)
    assert graph.nodes[("Person", 1)] == {"name": "Ann", "age": 30}
    assert graph.edges[("Person", 2), ("Person", 3), 0] == {"label": "knows", "since": 2021}
    near: Any = social.neighbors(["Person:3"], "both:knows", select="since").to_networkx()
    assert sorted(near.edges(data="since")) == [
        (("Person", 1), ("Person", 3), 2020),
        (("Person", 2), ("Person", 3), 2021),
        (("Person", 3), ("Person", 4), 2022),
    ]
    walks = social.traverse("Person:1").out("knows").out("knows").walks(select="name").to_networkx()
    assert (walks.number_of_nodes(), walks.number_of_edges()) == (4, 4)
    assert walks.nodes[("Person", 2)] == {"name": "Bo"}


def test_a_neighbourhood_is_drawn(social: hoplake.Graph) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    axes = social.plot("Person:1", "out:knows", depth=2, caption="name")
    texts = {text.get_text() for text in axes.texts}
    assert {"Ann", "Bo", "Cy"} <= texts
    assert len(axes.collections) >= 2
    assert len(social.plot("Person:4", "out:knows").texts) == 0


def test_labels_and_conditions_are_what_they_say(url: str) -> None:
    """Whatever characters they have."""
    labels = ["a,b", "x[y]", "*", " sp ", 'quo"te', "a"]
    tables = {("v", label, "v"): {"source": [1], "target": [number], "w": [number]} for number, label in enumerate(labels, 2)}
    hoplake.load(url, edges=tables)
    graph = hoplake.open(url)
    for number, label in enumerate(labels, 2):
        assert graph.traverse("v:1").out(label).keys()["key"] == [number]
    every = graph.traverse("v:1").out(where="w > 2")
    assert every.where("w < 4").keys()["key"] == [3]
    assert graph.traverse("v:1").hop('out:"x[y]"').where("w = 3").count() == 1
    with pytest.raises(hoplake.InvalidError):
        every.where("w > 1) or (w > 0").count()
    name = "Paris or w > 0"
    assert graph.count("v", where=f"~key = {hoplake.quote(2)}") == 1
    with pytest.raises(hoplake.InvalidError):
        graph.count("v", where=f"~key = {hoplake.quote(name)}")


def test_limits_stay(social: hoplake.Graph) -> None:
    with pytest.raises(hoplake.LimitError):
        social.within(vertices=1).within(seconds=60).scan().table()
    with pytest.raises(hoplake.LimitError):
        social.within(vertices=1).at(1).scan().table()
    scan = social.within(vertices=1).scan()
    for _ in range(2):
        with pytest.raises(hoplake.LimitError):
            scan.table()
    with pytest.raises(hoplake.InvalidError, match="depth"):
        social.neighborhood("Person:1", depth=2**40)
    with pytest.raises(hoplake.LimitError):
        social.within(memory=1 << 20).query("g.V().repeat(both()).times(30)")


def test_a_graph_knows_what_its_calls_have_cost(social: hoplake.Graph) -> None:
    graph = hoplake.open(social.url)
    assert graph.cost.requests == 0
    graph.count("Person", where="age > 3")
    first = graph.cost.requests
    assert first > 0
    graph.within(seconds=5).neighbors("Person:1")
    assert graph.cost.requests > first
    with hoplake.open(social.url) as other:
        assert other.count() == 4
    # Closed, it is opened again.
    assert other.count() == 4


def test_vertices_of_results_are_vertices(social: hoplake.Graph) -> None:
    walk = social.traverse("Person:1").out("knows").walks()[0]
    assert walk
    assert social.get(walk.vertices[1])["name"] == ["Bo"]
    assert social.neighbors(social.get(["Person:2", "Person:3"]), "out:knows")["from_key"] == [2, 3]
    assert hash(walk) == hash(social.traverse("Person:1").out("knows").walks()[0])
    assert social.traverse("Person:1").out("knows").walks(1).has_more


def _schemas(graph: hoplake.Graph) -> list[tuple[str, Any, Any]]:
    """Results without and with rows."""
    empty, full = graph.traverse("Person:1").out(where="since > 9999"), graph.traverse("Person:1").out()
    ranks = graph.run("pagerank")
    return [
        ("get", graph.get([]), graph.get("Person:1")),
        ("get, selected", graph.get([], select="age"), graph.get("Person:1", select="age")),
        ("get, keys", graph.get([], select=[]), graph.get("Person:1", select=[])),
        ("rows", empty.rows(), full.rows()),
        ("rows, selected", empty.rows("age"), full.rows("age")),
        ("rows, none", empty.rows(limit=0), full.rows(limit=1)),
        ("keys", empty.keys(), full.keys()),
        ("neighborhood", graph.neighborhood("Person:1", limit=0), graph.neighborhood("Person:1")),
        ("neighborhood, selected", graph.neighborhood("Person:1", select="age", limit=0), graph.neighborhood("Person:1", select="age")),
        ("top", ranks.top(0), ranks.top(1)),
        ("top, selected", ranks.top(0, select="age"), ranks.top(1, select="age")),
        ("scan", graph.scan(where="~key = 77").table(), graph.scan().table()),
    ]


def test_results_without_rows_have_the_same_schema(social: hoplake.Graph) -> None:
    for what, empty, full in _schemas(social):
        assert (len(empty), len(full) > 0) == (0, True), what
        assert pa.table(empty).schema == pa.table(full).schema, what


def test_results_without_rows_have_columns_of_all_labels(url: str) -> None:
    tables: Any = {"A": {"key": [1], "x": [1], "y": [2]}, "B": {"key": ["b"], "x": ["text"]}}
    ends = {"source": [1], "target": [1]}
    hoplake.load(url, vertices=tables, edges={("A", "e", "A"): ends, ("A", "f", "B"): {"source": [1], "target": ["b"]}})
    graph = hoplake.open(url)
    both = graph.traverse("A:1").out("e", "f").rows()
    none = graph.traverse("A:1").out("e", "f").rows(limit=0)
    assert pa.table(both).schema == pa.table(none).schema
    assert pa.table(graph.run("components").top(0)).schema == pa.table(graph.run("components").table()).schema
    assert pa.table(graph.traverse("A:1").out("f").rows(limit=0)).schema == pa.table(graph.get("B:b")).schema


def test_properties_called_as_columns_of_edges_are_kept(url: str) -> None:
    edges: Any = {"source": [1], "target": [2], "from_label": ["x"], "from_key": [7], "edge": ["y"], "direction": ["z"]}
    hoplake.load(url, edges={("P", "e", "P"): edges})
    names = ["from_label", "from_key", "edge", "direction"]
    [row] = hoplake.open(url).neighbors("P:1", select=names)
    assert [row[name] for name in names] == ["P", 1, "e", "out"]
    assert [row[f".{name}"] for name in names] == ["x", 7, "y", "z"]
    with hoplake.open(url).begin() as commit:
        table = hoplake.open(url).scan_edges().table()
        commit.add(pa.table({**{name: table[name] for name in table.columns}, "op": ["upsert_edge"], ".from_key": [8]}))
    [row] = hoplake.open(url).neighbors("P:1", select=names)
    assert (row[".from_label"], row[".from_key"]) == ("x", 8)
