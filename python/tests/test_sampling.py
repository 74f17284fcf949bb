"""Samples next to the edges and properties of the graph."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import hoplake
import hoplake.aio
import numpy as np
import pytest

SIZE = 300


def tables() -> tuple[dict[str, Any], dict[Any, Any]]:
    random = np.random.default_rng(5)
    people: dict[str, Any] = {
        "key": [f"p{at}" for at in range(SIZE)],
        "age": list(range(SIZE)),
        "embedding": [[at + 0.5, -1.0, 2.0 * at] for at in range(SIZE)],
        "name": [f"n{at}" for at in range(SIZE)],
        "height": [None if at == 4 else at / 2 for at in range(SIZE)],
    }
    films: dict[str, Any] = {"key": list(range(40)), "year": list(range(1960, 2000))}
    source, target = random.integers(0, SIZE, 3000), random.integers(0, SIZE, 3000)
    knows = {"source": [f"p{at}" for at in source], "target": [f"p{at}" for at in target], "weight": [1.0] * 3000}
    rates = {"source": [f"p{at % SIZE}" for at in range(900)], "target": [at * 7 % 40 for at in range(900)], "weight": [2.0] * 900}
    edges = {("Person", "knows", "Person"): knows, ("Person", "rates", "Film"): rates}
    return {"Person": people, "Film": films}, edges


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    url = str(tmp_path_factory.mktemp("sampling") / "graph")
    vertices, edges = tables()
    hoplake.load(url, vertices=vertices, edges=edges)
    return url


@pytest.fixture()
def graph(url: str) -> hoplake.Graph:
    return hoplake.open(url)


def numbers(samples: Any) -> list[Any]:
    """What samples have, to compare them."""
    return [
        (
            sample.batch,
            sample.seeds.tolist(),
            {label: ordinals.tolist() for label, ordinals in sample.vertices.items()},
            {kind: (near.tolist(), far.tolist()) for kind, (near, far) in sample.edges.items()},
            {label: {name: rows.tolist() for name, rows in of.items()} for label, of in sample.features.items()},
        )
        for sample in samples
    ]


def test_a_sample_has_edges_of_the_graph_and_features_of_its_vertices(graph: hoplake.Graph) -> None:
    features: Any = {"Person": {"x": ["age", "embedding"], "age": "age"}, "Film": {"x": ["year"]}}
    sampler = graph.sampler({"both:knows": [4, 3], ("Person", "out:rates", "Film"): [2], "in:rates": [0, 2]}, seed=1, features=features)
    sample = sampler.sample(["Person:p3", "Film:7", "Person:p3", "Person:p9"])
    assert sample.seeds.tolist() == [0, 0, 0, 1]
    assert [sampler.keys(label, sample.vertices[label][:2])[:1] for label in ("Person", "Film")] == [["p3"], [7]]
    keys: dict[str, Any] = {label: sampler.keys(label, ordinals) for label, ordinals in sample.vertices.items()}
    assert list(sample.edges) == [
        ("Person", "out:knows", "Person"),
        ("Person", "in:knows", "Person"),
        ("Person", "out:rates", "Film"),
        ("Film", "in:rates", "Person"),
    ]
    for (near_label, hop, far_label), (near, far) in sample.edges.items():
        assert len(near)
        for near_at, far_at in zip(near, far):
            found = graph.neighbors((near_label, keys[near_label][near_at]), hop)
            assert (far_label, keys[far_label][far_at]) in list(zip(found["label"], found["key"]))
    ages = [int(key[1:]) for key in keys["Person"]]
    assert sample.features["Person"]["age"].tolist() == ages
    x = sample.features["Person"]["x"]
    assert str(x.dtype) == "float32" and x.shape == (len(ages), 4)
    assert x.tolist() == [[age, age + 0.5, -1, 2 * age] for age in ages]
    assert sample.features["Film"]["x"].tolist() == [[1960 + key] for key in keys["Film"]]
    assert sample.cost.requests > 0
    assert "2 vertices" not in repr(sample) and "4 seeds" in repr(sample)


def test_arrays_are_shared_and_outlive_everything_else(graph: hoplake.Graph) -> None:
    sampler = graph.sampler([5, 5], features={"Person": {"x": "age"}, "Film": {}})
    sample = sampler.sample(sampler.ordinals("Person"))
    x, ordinals = sample.features["Person"]["x"], sample.vertices["Person"]
    assert x.base is not None and not x.flags.owndata and x.flags.writeable and x.flags.aligned
    expected = ordinals.tolist(), x.tolist()
    del sample, sampler, graph
    assert (ordinals.tolist(), x.tolist()) == expected
    x[0] = 7
    assert x[0] == 7


def test_batches_are_the_same_in_a_run_that_begins_later(graph: hoplake.Graph) -> None:
    sampler = graph.sampler([4, 2], seed=3, features={"Person": {"x": "embedding"}})
    seeds = sampler.ordinals("Person")
    whole = numbers(sampler.batches(seeds, 64, epochs=3))
    assert [batch[0] for batch in whole] == list(range(15))
    assert numbers(sampler.batches(seeds, 64, epochs=3, start=7, ahead=0)) == whole[7:]
    in_memory = graph.sampler([4, 2], seed=3, features={"Person": {"x": "embedding"}}, lists="memory")
    assert numbers(in_memory.batches(seeds, 64, epochs=3, ahead=5)) == whole
    other = numbers(graph.sampler([4, 2], seed=4).batches(seeds, 64))
    assert [batch[2] for batch in other] != [batch[2] for batch in whole[:5]]
    for epoch in range(3):
        of_epoch = [ordinal for batch in whole[5 * epoch : 5 * epoch + 5] for ordinal in batch[2]["Person"][: len(batch[1])]]
        assert sorted(of_epoch) == list(range(SIZE)) and of_epoch != list(range(SIZE))
    in_order = numbers(sampler.batches(seeds, 64, shuffle=False))
    assert [ordinal for batch in in_order for ordinal in batch[2]["Person"][: len(batch[1])]] == list(range(SIZE))
    endless = sampler.batches(seeds, 100, epochs=None, start=10**6)
    assert [next(iter(endless)).batch for _ in range(1)] == [10**6]


def test_features_of_edges_are_those_of_the_chosen_ones() -> None:
    random = np.random.default_rng(7)
    count = 4_000
    source, target = random.integers(0, 200, count), random.integers(0, 200, count)
    # Edges to a hub, and several between the same people, which only the number tells apart.
    target[::4], source[:300], target[:300] = 3, 5, 6
    number = random.permutation(count)
    knows: dict[str, Any] = {"source": source, "target": target, "number": number, "half": number / 2, "day": number.astype("datetime64[D]").tolist()}
    knows["some"] = [None if at % 3 else at for at in number.tolist()]
    people: dict[str, Any] = {"key": np.arange(200), "age": np.arange(200)}
    ends: dict[int, tuple[int, int]] = {int(it): (int(a), int(b)) for it, a, b in zip(number, source, target)}
    hoplake.load("memory://sampling/edges", vertices={"Person": people}, edges={("Person", "knows", "Person"): knows})
    graph = hoplake.open("memory://sampling/edges")
    with graph.begin() as commit:
        for at in range(50):
            commit.upsert_edge("knows", ("Person", at), ("Person", 199 - at), _key=("number", count + at), half=0.5, some=1)
            ends[count + at] = (at, 199 - at)
    graph.refresh()
    names = {"number": "number", "x": ["half", "number"]}
    kinds = [("Person", "out:knows", "Person"), ("Person", "in:knows", "Person")]
    every: list[dict[str, Any]] = [
        {},
        {"lists": "memory"},
        {"replace": True},
        {"disjoint": True},
        {"induced": True},
        {"induced": True, "disjoint": True},
    ]
    for options in every:
        fan_out: Any = {"out:knows": [3, 5], "in:knows": [4]} if "induced" in options else {"out:knows": [30, 5], "in:knows": [0, 9]}
        features: Any = {"Person": {"age": "age"}, ("Person", "both:knows", "Person"): names}
        sampler = graph.sampler(fan_out, seed=5, features=features, **options)
        sample = sampler.sample({"Person": [5, 6, 3, 17, 199]}, 3)
        keys = np.array(sampler.keys("Person", sample.vertices["Person"]))
        assert list(sample.features) == ["Person", *kinds] and (sample.features["Person"]["age"] == keys).all()
        for kind in kinds:
            near, far = (keys[end].tolist() for end in sample.edges[kind])
            found = sample.features[kind]["number"]
            assert found.dtype == np.int64 and len(found) > 10
            expected = [ends[it] if kind[1] == "out:knows" else ends[it][::-1] for it in found.tolist()]
            assert list(zip(near, far)) == expected, options
            assert sample.features[kind]["x"].dtype == np.float32 and sample.features[kind]["x"][:, 1].tolist() == found.tolist()
            pairs = set(zip(sample.edges[kind][0].tolist(), found.tolist()))
            assert (len(pairs) == len(found)) != bool(options.get("replace")), "each edge once"
    kind = kinds[0]
    filled = graph.sampler({kind: [None]}, features={kind: {"some": "some", "day": "day"}}, missing=-1).sample({"Person": [5]})
    assert {-1} < set(filled.features[kind]["some"].tolist())
    assert graph.sampler({kind: [2]}, features={kind: {"x": "number"}}).sample({}).features[kind]["x"].shape == (0,)
    with pytest.raises(hoplake.InvalidError, match="the edge knows from Person:5 to Person:.* has no value of some"):
        graph.sampler({kind: [None]}, features={kind: {"some": "some"}}).sample({"Person": [5]})
    with pytest.raises(hoplake.InvalidError, match="no fan-out along them"):
        graph.sampler({kinds[1]: [1]}, features={kind: {"x": "number"}}).sample({"Person": [5]})
    with pytest.raises(hoplake.NotFoundError, match='knows has no property "nothing"'):
        graph.sampler({kind: [1]}, features={kind: {"x": "nothing"}})
    with pytest.raises(hoplake.InvalidError, match="write a label, or edges"):
        graph.sampler({kind: [1]}, features={("Person", "out:knows"): {"x": "number"}})


def test_batches_ahead_wait_for_memory(graph: hoplake.Graph) -> None:
    def batches(memory: int, ahead: int, **options: Any) -> list[Any]:
        sampler = graph.within(memory=memory).sampler({"both:knows": [20, 20]}, seed=3, features={"Person": {"x": "embedding"}}, **options)
        samples = sampler.batches({"Person": list(range(SIZE))}, 20, ahead=ahead)
        return [found for sample in samples for found in numbers([sample])]

    expected = batches(1 << 30, 0)
    enough = 0
    for memory in range(100_000, 2_000_000, 100_000):
        try:
            assert batches(memory, 0) == expected
        except hoplake.LimitError:
            assert not enough, "with less there was enough"
            continue
        enough += 1
        assert batches(memory, 8) == expected, memory
    assert enough > 3
    # All that the caller keeps counts, and is not waited for.
    with pytest.raises(hoplake.LimitError):
        list(graph.within(memory=1_000_000).sampler([None, None], seed=3).batches({"Person": list(range(SIZE))}, 20, epochs=9))


def test_awaited_samples_are_the_same(url: str) -> None:
    async def batches() -> list[Any]:
        graph = await hoplake.aio.open(url)
        sampler = await graph.sampler([3, 3], seed=2)
        found = [sample async for sample in sampler.batches(await sampler.ordinals("Person"), 50)]
        return numbers(found)

    sampler = hoplake.open(url).sampler([3, 3], seed=2)
    assert asyncio.run(batches()) == numbers(sampler.batches(sampler.ordinals("Person"), 50))


def _in_child(sampler: hoplake.Sampler, connection: Any) -> None:
    connection.send(numbers([sampler.sample(["Person:p1", "Person:p2"], 5)]))
    connection.close()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_other_processes_make_the_same_samples(graph: hoplake.Graph, method: str) -> None:
    sampler = graph.sampler([3, 3], seed=2, lists="memory")
    expected = numbers([sampler.sample(["Person:p1", "Person:p2"], 5)])
    context: Any = multiprocessing.get_context(method)
    mine, theirs = context.Pipe()
    process = context.Process(target=_in_child, args=(sampler, theirs))
    process.start()
    assert mine.poll(60)
    assert mine.recv() == expected
    process.join(60)
    assert process.exitcode == 0


RUN = """
import sys, hoplake
sampler = hoplake.open(sys.argv[1]).sampler([4, 2], seed=9)
for sample in sampler.batches(sampler.ordinals("Person"), 16, epochs=None, start=int(sys.argv[2])):
    print(sample.batch, sum(sample.vertices["Person"].tolist()), sample.edges["Person", "out:knows", "Person"][1].tolist(), flush=True)
"""


def test_a_killed_run_goes_on_where_it_was(url: str, tmp_path: Path) -> None:
    def run(start: int, count: int) -> list[str]:
        process = subprocess.Popen([sys.executable, "-c", RUN, url, str(start)], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(count)]
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        return lines

    expected = run(0, 40)
    killed = run(0, 13)
    assert killed + run(len(killed), 27) == expected
    assert len(set(expected)) == 40


def test_a_sampler_is_pickled_with_its_version(url: str) -> None:
    graph = hoplake.open(url)
    sampler = graph.sampler([3], seed=11)
    expected = numbers([sampler.sample("Person:p5")])
    again: hoplake.Sampler = pickle.loads(pickle.dumps(sampler))
    assert numbers([again.sample("Person:p5")]) == expected
    assert repr(again) == repr(sampler)
    with pytest.raises(TypeError, match="in the memory of this process"):
        hoplake.create("memory://sampling/empty")
        pickle.dumps(_with_edges("memory://sampling/pickled").sampler([1]))


def _with_edges(url: str) -> hoplake.Graph:
    hoplake.load(url, edges={("Page", "links", "Page"): {"source": [1], "target": [2]}})
    return hoplake.open(url)


def test_vertices_that_were_deleted_have_no_ordinals() -> None:
    vertices, edges = tables()
    hoplake.load("memory://sampling/deleted", vertices=vertices, edges=edges)
    graph = hoplake.open("memory://sampling/deleted")
    with graph.begin() as commit:
        commit.delete_vertex("Person", "p4")
    graph.refresh()
    sampler = graph.sampler([2], features={"Person": {"x": "height"}})
    ordinals = sampler.ordinals("Person")["Person"]
    keys = [str(key) for key in sampler.keys("Person", ordinals)]
    assert len(keys) == SIZE - 1 and "p4" not in keys
    assert sampler.feature("Person", "x").tolist() == [int(key[1:]) / 2 for key in keys]


def test_what_cannot_be_sampled_is_an_exception(graph: hoplake.Graph) -> None:
    invalid: list[tuple[dict[str, Any], str]] = [
        (dict(fan_out={}), "needs a fan-out"),
        (dict(fan_out=5), "a list of numbers"),
        (dict(fan_out=[-1]), "0 or more"),
        (dict(fan_out=[2**32]), "less than 2³²"),
        (dict(fan_out={("Person", "out:knows"): [1]}), "write a hop"),
        (dict(fan_out={"out:knows": [1], "both": [1]}), "two fan-outs"),
        (dict(fan_out={"out:knows[weight > 1]": [1]}), "has a condition"),
        (dict(fan_out=[1], features={"Person": ["age"]}), "by label and name"),
        (dict(fan_out=[1], features={"Person": {"x": "name"}}), "is text"),
        (dict(fan_out=[1], dtype="int8"), "write float32 or float64"),
        (dict(fan_out=[1], lists="disk"), "write bucket or memory"),
        (dict(fan_out=[1], seed=-1), "seed has to be"),
        (dict(fan_out=[1], time="age", time_of="vertex"), "keep seeds apart"),
        (dict(fan_out=[1], strategy="last"), "needs a time"),
    ]
    for arguments, message in invalid:
        with pytest.raises(hoplake.InvalidError, match=message):
            graph.sampler(**arguments)
    missing: list[tuple[dict[str, Any], str]] = [
        (dict(fan_out={"out:nothing": [1]}), "nothing"),
        (dict(fan_out={("Film", "out:knows", "Film"): [1]}), "no edges of out:knows lead from Film to Film"),
        (dict(fan_out=[1], features={"Cat": {"x": "age"}}), "Cat"),
        (dict(fan_out=[1], features={"Person": {"x": "nothing"}}), "no property"),
    ]
    for arguments, message in missing:
        with pytest.raises(hoplake.NotFoundError, match=message):
            graph.sampler(**arguments)
    sampler = graph.sampler([1], features={"Person": {"x": "height"}})
    with pytest.raises(hoplake.InvalidError, match="Person:p4 has no value of height"):
        sampler.sample("Person:p4")
    with pytest.raises(hoplake.NotFoundError, match="300 is not the ordinal of a Person"):
        sampler.sample({"Person": [1, 300]})
    with pytest.raises(hoplake.InvalidError, match="whole numbers, one for each vertex"):
        sampler.sample({"Person": [1.5]})
    with pytest.raises(hoplake.NotFoundError, match="no feature"):
        sampler.feature("Person", "y")
    assert graph.sampler([1], features={"Person": {"x": "height"}}, missing=-1).sample("Person:p4").features["Person"]["x"][0] == -1
    limited = graph.within(memory=20_000).sampler([None, None])
    with pytest.raises(hoplake.LimitError):
        limited.sample(limited.ordinals("Person"))
    with pytest.raises(hoplake.LimitError):
        graph.within(memory=1_000).sampler([1], lists="memory")


def test_links_have_neighbourhoods_and_negatives(graph: hoplake.Graph) -> None:
    kind = ("Person", "out:rates", "Film")
    sampler = graph.sampler({"both:knows": [2], "both:rates": [2]}, seed=6)
    everything = graph.sampler({kind: [None]})
    whole = everything.sample(everything.ordinals("Person"))
    near, far = whole.edges[kind]
    people, films = whole.vertices["Person"][near], whole.vertices["Film"][far]
    edges = set(zip(people.tolist(), films.tolist()))
    for negatives, ratio, shape in ((None, 1, (0,)), ("binary", 2.5, (50,)), ("triplet", 3, (20, 3))):
        sample = sampler.sample_links(kind, people[:20], films[:20], negatives=negatives, ratio=ratio, batch=3)  # type: ignore[arg-type]
        begins, ends = sample.links
        assert sample.vertices["Person"][begins].tolist() == people[:20].tolist()
        assert sample.vertices["Film"][ends].tolist() == films[:20].tolist()
        begins, ends = sample.negatives
        assert begins.shape == ends.shape == shape
        pairs = zip(sample.vertices["Person"][begins].ravel().tolist(), sample.vertices["Film"][ends].ravel().tolist())
        assert not any(pair in edges for pair in pairs)
        assert len(sample.edges["Film", "in:rates", "Person"][0])
        if negatives == "triplet":
            assert sample.vertices["Person"][begins].tolist() == [[person] * 3 for person in people[:20].tolist()]
    with pytest.raises(hoplake.InvalidError, match="a link has two ends"):
        sampler.sample_links(kind, [1], [1, 2])
    with pytest.raises(hoplake.InvalidError, match="whole number for triplets"):
        sampler.sample_links(kind, [1], [1], negatives="triplet", ratio=1.5)
    with pytest.raises(hoplake.NotFoundError, match="40 is not the ordinal of a Film"):
        sampler.sample_links(kind, [1], [40])


def test_nothing_is_later_than_its_seed(graph: hoplake.Graph) -> None:
    kind = ("Person", "out:knows", "Person")
    for lists in ("bucket", "memory"):
        options: Any = dict(disjoint=True, time="age", time_of="vertex", lists=lists, features={"Person": {"age": "age"}})
        sampler = graph.sampler({kind: [4, 4]}, seed=1, **options)
        seeds = sampler.ordinals("Person")
        times = np.arange(SIZE) + 20
        counts: list[int] = []
        for sample in sampler.batches(seeds, 100, times=times, shuffle=False):
            _, far = sample.edges[kind]
            now = times[sample.batch * 100 + sample.trees["Person"][far]]
            assert len(far) > 100 and (sample.features["Person"]["age"][far] <= now).all()
            counts.append(len(far))
        assert counts == sorted(counts)
        latest = graph.sampler({kind: [2]}, strategy="last", **options).sample("Person:p3", times=[250])
        ages = sorted(int(key[1:]) for key in graph.neighbors("Person:p3", "out:knows")["key"])
        found = latest.features["Person"]["age"][latest.edges[kind][1]].tolist()
        assert sorted(found) == [age for age in ages if age <= 250][-2:]
        links = sampler.sample_links(kind, [1, 2], [3, 4], times=[10, 200], negatives="triplet", ratio=2)
        now = np.array([10, 200, 10, 200, 10, 10, 200, 200])[links.trees["Person"]]
        far = links.edges[kind][1]
        assert (links.features["Person"]["age"][far] <= now[far]).all()
        with pytest.raises(hoplake.InvalidError, match="1 times for 2 seeds"):
            sampler.sample(["Person:p1", "Person:p2"], times=[1])
        with pytest.raises(hoplake.InvalidError, match="0 times for 1 seeds"):
            sampler.sample("Person:p1")


def test_no_seeds_make_no_vertices(graph: hoplake.Graph) -> None:
    sampler = graph.sampler([1], features={"Person": {"x": ["embedding"]}})
    sample = sampler.sample({})
    assert (len(sample.seeds), sample.vertices) == (0, {})
    assert sample.features["Person"]["x"].shape == (0, 3)
    assert list(sampler.batches([])) == [] and list(sampler.batches({"Person": []}, epochs=None)) == []


def test_pyg_says_what_is_not_installed() -> None:
    program = """
import sys, hoplake
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
try:
    hoplake.pyg
except hoplake.InvalidError as error:
    print(error, error.hint)
"""
    done = subprocess.run([sys.executable, "-c", program, "torch"], capture_output=True, text=True, check=True)
    assert "hoplake.pyg needs torch, which is not installed" in done.stdout
    assert "pip install torch torch_geometric numpy" in done.stdout
