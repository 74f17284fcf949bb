"""Loads, computations, versions, copies, upkeep, and the service."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pyarrow as pa
import pytest

import hoplake


def test_files_are_loaded(url: str, tmp_path: Path) -> None:
    file = tmp_path / "routes.csv"
    file.write_text("~from,~to,~label,dist:Int\na,b,route,800\nb,c,route,300\n")
    steps: list[str] = []
    loaded = hoplake.load(url, file, message="routes", indexes=[], progress=lambda step, done, total: steps.append(step))
    assert (loaded.version, loaded.vertices, loaded.edges, loaded.bad_rows) == (1, 3, 2, 0)
    assert loaded.cost.writes > 0
    assert set(steps) <= {"vertices", "order", "edges"}
    with pytest.raises(hoplake.ConflictError) as exists:
        hoplake.load(url, [str(file)])
    assert exists.value.reason == "exists"
    assert hoplake.load(url, [str(file)], replace=True).version > 1
    with pytest.raises(hoplake.InvalidError, match=r"nothing\.csv") as missing:
        hoplake.load(url, tmp_path / "nothing.csv", replace=True)
    assert missing.value.reason == "file"
    rejects = tmp_path / "rejects.csv"
    file.write_text("~from,~to,~label,dist:Int\na,b,route,far\nb,c,route,300\n")
    with pytest.raises(hoplake.InvalidError, match="far"):
        hoplake.load(url, file, replace=True)
    assert hoplake.load(url, file, replace=True, rejects=rejects).bad_rows == 1
    assert "far" in rejects.read_text()


def test_options_are_checked(url: str) -> None:
    table = {("v", "e", "v"): pa.table({"source": [1], "target": [2]})}
    with pytest.raises(hoplake.InvalidError, match="order"):
        hoplake.load(url, edges=table, order="random")  # type: ignore[arg-type]
    with pytest.raises(hoplake.InvalidError, match="memory has to be"):
        hoplake.load(url, edges=table, memory=-1)
    with pytest.raises(hoplake.InvalidError, match="a memory budget of"):
        hoplake.load(url, edges=table, memory=1)


def test_computations(social: hoplake.Graph) -> None:
    ranks = social.run("pagerank", edges="out:knows", damping=0.9, iterations=30)
    assert (ranks.name, len(ranks)) == ("rank", 4)
    top = ranks.top(2, select="name")
    assert top.columns == ["label", "key", "rank", "name"]
    assert top["key"][0] == 4
    frame = ranks.to_pandas()
    assert frame["rank"].sum() == pytest.approx(1.0)
    assert pa.table(ranks).to_pylist() == ranks.table().to_pylist() == list(ranks)
    assert social.run("components").groups == (1, 4)
    assert social.run("triangles").figures == {"triangles": 1}
    assert social.run("triangles").table().to_pylist() == [{"triangles": 1}]
    levels = social.run("levels", from_="Person:1", edges="out:knows")
    assert dict(zip(levels.table()["key"], levels.table()["level"])) == {1: 0, 2: 1, 3: 1, 4: 2}
    lengths = social.run("paths", from_=("Person", 1), weight="since", edges="out:knows")
    assert lengths.table()["length"][2] == 2020.0
    assert social.run("pagerank", threads=1).iterations == social.run("pagerank").iterations


def test_mistakes_of_computations(social: hoplake.Graph) -> None:
    with pytest.raises(hoplake.InvalidError, match="unknown algorithm"):
        social.run("magic")
    with pytest.raises(hoplake.InvalidError, match="pagerank has no option dampening"):
        social.run("pagerank", dampening=1)
    with pytest.raises(hoplake.InvalidError, match="damping"):
        social.run("pagerank", damping=2)
    with pytest.raises(hoplake.InvalidError, match="iterations has to be"):
        social.run("pagerank", iterations="many")
    with pytest.raises(hoplake.InvalidError, match="lists"):
        social.run("pagerank", lists="cloud")  # type: ignore[arg-type]
    with pytest.raises(hoplake.InvalidError, match="vertex"):
        social.run("levels")


def test_every_algorithm_is_described_and_runs(social: hoplake.Graph) -> None:
    for algorithm in hoplake.algorithms():
        options: dict[str, Any] = {}
        if algorithm["options"].get("from_", {}).get("kind") == "vertex":
            options["from_"] = "Person:1"
        if algorithm["name"] == "paths":
            options["weight"] = "since"
        result = social.run(algorithm["name"], **options)
        assert result.cost.seconds > 0
        assert algorithm["help"]


def test_values_become_a_property(social: hoplake.Graph) -> None:
    version = social.run("pagerank", edges="out:knows").write("rank")
    assert version == 2
    graph = hoplake.open(social.url)
    assert sum(graph.scan("Person", select="rank").table()["rank"]) == pytest.approx(1.0)
    # A computation is of its version, whatever the graph moves on to.
    components = social.run("components")
    with graph.begin() as commit:
        commit.upsert_vertex("Person", 9)
    social.refresh()
    assert len(components.table()) == 4


def test_versions(social: hoplake.Graph) -> None:
    assert social.tag("first") is not None
    with hoplake.open(social.url).begin("delete Ann") as commit:
        commit.delete_vertex("Person", 1)
    social.refresh()
    before = social.at("first")
    assert (before.version, before.count(), social.count()) == (1, 4, 3)
    assert hoplake.open(social.url, version=1).count() == 4
    assert hoplake.open(social.url, tag="first").count() == 4
    with pytest.raises(hoplake.NotFoundError, match="has no tag"):
        social.at("second")
    with pytest.raises(hoplake.InvalidError, match="one of them"):
        hoplake.open(social.url, version=1, tag="first")
    differences = social.diff("first")
    assert [(it.kind, it.source, it.target) for it in differences if it.target is None] == [("removed", ("Person", 1), None)]
    assert {it.target for it in differences if it.target} == {("Person", 2), ("Person", 3)}
    newest = social.log(1)[0]
    assert (newest.message, newest.kind) == ("delete Ann", "commit")
    assert social.at(newest.created + timedelta(seconds=1)).count() == 3
    assert social.restore(1) > 3
    social.refresh()
    assert social.count() == 4


def test_copies(social: hoplake.Graph, tmp_path: Path) -> None:
    mirrored = social.mirror(tmp_path / "mirror")
    assert not mirrored.was_current
    assert social.mirror(tmp_path / "mirror").was_current
    assert hoplake.open(tmp_path / "mirror", mapped=True).count() == 4
    exported = social.export(tmp_path / "files")
    assert (exported.vertices, exported.edges) == (4, 4)
    assert hoplake.load(tmp_path / "again", mapping=tmp_path / "files" / "mapping.toml").edges == 4
    with pytest.raises(hoplake.ConflictError):
        social.export(tmp_path / "files")
    with pytest.raises(hoplake.InvalidError, match="format"):
        social.export(tmp_path / "other", format="xml")  # type: ignore[arg-type]
    social.clone(str(Path(social.url).parent / "clone"))
    assert hoplake.open(Path(social.url).parent / "clone").count() == 4


def test_upkeep(social: hoplake.Graph) -> None:
    for key in range(5, 8):
        with hoplake.open(social.url).begin() as commit:
            commit.upsert_vertex("Person", key, name="x")
    assert social.compact(everything=True).runs >= 2
    social.create_index("Person.name")
    social.refresh()
    (index,) = social.indexes()
    assert (index.label, index.property) == ("Person", "name")
    social.drop_index("Person.name")
    assert social.vacuum(keep_versions=1).versions >= 1
    verified = social.verify()
    assert verified.is_intact
    assert verified.objects > 0


def test_damage_is_found(social: hoplake.Graph) -> None:
    (segment, *_) = sorted((Path(social.url) / "data").iterdir())
    data = bytearray(segment.read_bytes())
    data[len(data) // 3] ^= 0xFF
    segment.write_bytes(bytes(data))
    assert not social.verify().is_intact


def test_a_server_answers(social: hoplake.Graph) -> None:
    with hoplake.serve({"social": social.url}, token="secret") as server:
        address, body = f"{server.http}/v1/graphs/social/look-up", json.dumps({"vertices": ["Person:1"]}).encode()

        def headers(**more: str) -> dict[str, str]:
            return {"content-type": "application/json", **more}

        with urlopen(Request(address, headers=headers(authorization="Bearer secret")), body) as response:
            assert response.status == 200
        for wrong in (headers(authorization="Bearer wrong"), headers()):
            with pytest.raises(HTTPError) as rejected:
                urlopen(Request(address, headers=wrong), body)
            assert rejected.value.code == 401
    with pytest.raises(OSError):
        urlopen(f"{server.http}/healthz", timeout=5)
    server.stop()
    with pytest.raises(hoplake.InvalidError):
        hoplake.serve({"a b/c": social.url})


def test_building_a_scan_reads_nothing(social: hoplake.Graph) -> None:
    """Nothing is read before rows are taken."""
    graph = hoplake.open(social.url)
    graph.scan("Person", where="age > 3")
    graph.traverse("Person:1").out("knows")
    assert graph.cost.requests == 0
