from __future__ import annotations

import uuid
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

import hoplake
from hoplake.gremlin import Edge, Path, Property, Subgraph, Vertex


def test_results_are_values_of_python(social: hoplake.Graph) -> None:
    assert social.query("g.V().has('age', gt(20)).values('name')") == ["Ann", "Bo"]
    (vertex,) = social.query("g.V().has('name', 'Ann')")
    assert isinstance(vertex, Vertex)
    assert (vertex.label, vertex.properties) == ("Person", {"name": "Ann", "age": 30})
    (edge,) = social.query("g.V().has('name', 'Ann').outE('knows').has('since', 2020)")
    assert isinstance(edge, Edge)
    assert (edge.label, edge.properties, edge.source) == ("knows", {"since": 2020}, vertex)
    (path,) = social.query("g.V().has('name', 'Bo').as('a').out('knows').path()")
    assert isinstance(path, Path)
    assert (len(path), path.labels) == (2, (frozenset({"a"}), frozenset()))
    assert social.query("g.V().properties('age').limit(1)") == [Property("age", 30)]
    (tree,) = social.query("g.V().has('name', 'Bo').out().tree().by('name')")
    assert tree == {"Bo": {"Cy": {}}}
    (subgraph,) = social.query("g.E().has('since', 2019).subgraph('s').cap('s')")
    assert isinstance(subgraph, Subgraph)
    assert (len(subgraph.vertices), len(subgraph.edges)) == (2, 1)


def test_results_are_tables(social: hoplake.Graph) -> None:
    ages = social.query("g.V().has('name').project('name', 'age').by('name').by('age')")
    assert ages.to_arrow().to_pydict() == {"name": ["Ann", "Bo", "Cy"], "age": [30, 41, None]}
    assert ages.to_polars().columns == list(ages.to_pandas().columns) == ["name", "age"]
    people = social.query("g.V().has('name', within('Ann', 'Bo'))").to_pandas()
    assert list(people.columns) == ["id", "label", "name", "age"]
    assert list(people["name"]) == ["Ann", "Bo"]
    knows = social.query("g.E()").to_arrow()
    assert knows.column_names == ["id", "label", "source", "target", "since"]
    assert social.query("g.V().values('name')").to_arrow().to_pydict()["value"] == ["Ann", "Bo", "Cy"]
    # Columns are those of all results, and maps whose keys are no texts are values.
    assert social.query("g.inject(['a': 1], ['b': 2])").to_arrow().to_pydict() == {"a": [1, None], "b": [None, 2]}
    assert social.query("g.V().groupCount().by('age').unfold().limit(1).fold()").to_pandas().columns == ["value"]
    assert social.query("g.V().limit(0)").to_arrow().num_rows == 0


def test_plans_and_profiles(social: hoplake.Graph) -> None:
    plan = social.explain("g.V().has('name', who).out()", who="Ann")
    assert "out" in plan
    assert plan._repr_html_().startswith("<pre>")
    profile = social.profile("g.V().out().count()")
    assert profile
    assert profile._repr_html_().startswith("<pre>")
    # A parameter may have any name.
    assert social.query("g.inject(text, commit)", {"text": 1, "commit": 2}) == [1, 2]


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        7,
        -(2**31),
        2**40,
        2**70,
        0.5,
        "",
        "ä\n'quote'",
        Decimal("1.50"),
        uuid.UUID(int=5),
        b"\x00\xff",
        datetime(2020, 1, 2, 3, 4, 5, 6, timezone.utc),
        datetime(2020, 1, 2, tzinfo=timezone(timedelta(hours=5, minutes=30))),
        timedelta(days=-1, seconds=5, microseconds=7),
        [1, "a", [2.0]],
        {1, 2},
        {"a": 1, "b": [None]},
    ],
)
def test_parameters_come_back(social: hoplake.Graph, value: Any) -> None:
    assert social.query("g.inject(x)", x=value)[0] == value


def test_a_parameter_is_never_a_part_of_the_text(social: hoplake.Graph) -> None:
    assert social.query("g.V().has('name', who)", who="Ann').drop().V().has('name', 'Bo") == []
    assert social.count() == 4


def test_keys_that_python_cannot_tell_apart_stay(social: hoplake.Graph) -> None:
    (pairs,) = social.query("g.inject(1, 1.0).groupCount()")
    assert pairs == [(1, 1), (1.0, 1)]


def test_mistakes_are_exceptions(social: hoplake.Graph) -> None:
    with pytest.raises(hoplake.InvalidError) as syntax:
        social.query("g.V(")
    assert syntax.value.reason == "syntax"
    with pytest.raises(hoplake.InvalidError) as step:
        social.query("g.V().fly()")
    assert step.value.reason == "step"
    with pytest.raises(hoplake.InvalidError) as read_only:
        social.query("g.addV('Person')")
    assert read_only.value.reason == "read_only"
    assert read_only.value.hint == "pass commit=True to let the query change the graph"
    with pytest.raises(hoplake.InvalidError, match="contains itself"):
        cyclic: list[Any] = []
        cyclic.append(cyclic)
        social.query("g.inject(x)", x=cyclic)
    with pytest.raises(hoplake.InvalidError, match="lone surrogate"):
        social.query("g.inject(x)", x="\ud800")
    with pytest.raises(hoplake.InvalidError, match="cannot be a value"):
        social.query("g.inject(x)", x=object())


def test_a_query_may_change_the_graph(social: hoplake.Graph) -> None:
    results = social.query("g.V().has('name', 'Ann').property('age', 31)", commit=True)
    assert results.version == 2
    assert social.version == 1
    assert social.refresh()
    assert social.query("g.V().has('name', 'Ann').values('age')") == [31]


def test_prepared_queries(social: hoplake.Graph) -> None:
    number = social.save_query("older", "g.V().has('age', gt(age)).values('name')", ["age:int64=20"], description="who is older")
    assert number == 1
    assert social.refresh()
    assert social.call("older") == ["Ann", "Bo"]
    assert social.call("older@1", age=35) == ["Bo"]
    (query,) = social.queries()
    assert (query.name, query.description) == ("older", "who is older")
    with pytest.raises(hoplake.InvalidError) as wrong:
        social.call("older", height=3)
    assert wrong.value.reason == "call"
    social.delete_query("older")
    social.refresh()
    assert social.queries() == []


def test_memory_of_results_is_bounded(social: hoplake.Graph) -> None:
    with pytest.raises(hoplake.LimitError):
        social.within(memory=1 << 16).query("g.V().repeat(both()).times(8).path()")


def test_parameters_of_queries_are_listed_as_they_are_declared(social: hoplake.Graph) -> None:
    declared = ["who:string", "most:int64=10"]
    social.save_query("q", "g.V().has('name', who).limit(most)", declared)
    social.save_query("plain", "g.V()")
    social.refresh()
    known = {query.name: query.parameters for query in social.queries()}
    assert known == {"q": declared, "plain": []}
    # They can be given again as they are.
    social.save_query("copy", "g.V().has('name', who).limit(most)", known["q"])
