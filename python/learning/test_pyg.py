"""Graph neural networks of PyTorch Geometric that are trained on a stored graph. ``./test learning`` runs this."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import hoplake
import numpy as np
import pytest
import torch
from hoplake.pyg import HoplakeFeatureStore, HoplakeGraphStore, HoplakeSampler, LinkNeighborLoader, NeighborLoader
from torch_geometric.loader import NodeLoader
from torch_geometric.nn import SAGEConv
from torch_geometric.sampler import NegativeSampling

NODES, GROUPS, WIDTH = 6_000, 5, 16
#: Edges within a group, and to any node, for each node.
WITHIN, ANYWHERE = 6, 3


@pytest.fixture(scope="session")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A planted partition, whose features alone say little of a node's group."""
    random = np.random.default_rng(1)
    group = random.integers(0, GROUPS, NODES)
    centres = random.normal(size=(GROUPS, WIDTH))
    x = (centres[group] * 0.3 + random.normal(size=(NODES, WIDTH))).astype(np.float32)
    members = [np.flatnonzero(group == at) for at in range(GROUPS)]
    source, target = [], []
    for node in range(NODES):
        within = random.choice(members[group[node]], WITHIN)
        target += [*within.tolist(), *random.integers(0, NODES, ANYWHERE).tolist()]
        source += [node] * (WITHIN + ANYWHERE)
    nodes: dict[str, Any] = {"key": list(range(NODES)), "x": x.tolist(), "group": group.tolist()}
    url = str(tmp_path_factory.mktemp("learning") / "graph")
    films = {"key": list(range(50)), "year": list(range(1950, 2000))}
    rates = {"source": list(range(0, NODES, 3)), "target": [node * 7 % 50 for node in range(0, NODES, 3)]}
    edges: dict[Any, Any] = {("Node", "to", "Node"): {"source": source, "target": target}, ("Node", "rates", "Film"): rates}
    hoplake.load(url, vertices={"Node": nodes, "Film": films}, edges=edges)
    return url


def stores(url: str, **options: Any) -> tuple[HoplakeFeatureStore, HoplakeGraphStore]:
    graph = hoplake.open(url)
    features = HoplakeFeatureStore(graph, {"Node": {"x": "x", "y": "group"}})
    return features, HoplakeGraphStore(graph, [("Node", "to", "Node")], reverse=True, **options)


class Sage(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = SAGEConv(WIDTH, 32), SAGEConv(32, GROUPS)

    def forward(self, batch: Any) -> Any:
        hidden = self.first(batch.x, batch.edge_index).relu()
        return self.second(hidden, batch.edge_index)[: batch.batch_size]


class Alone(torch.nn.Module):
    """The same without edges."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(WIDTH, 32), torch.nn.ReLU(), torch.nn.Linear(32, GROUPS))

    def forward(self, batch: Any) -> Any:
        return self.layers(batch.x[: batch.batch_size])


def accuracy(model: Any, train: Any, test: Any, epochs: int) -> float:
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(epochs):
        for batch in train:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(batch), batch.y[: batch.batch_size])
            loss.backward()
            optimizer.step()
    right = total = 0
    with torch.no_grad():
        for batch in test:
            right += int((model(batch).argmax(dim=1) == batch.y[: batch.batch_size]).sum())
            total += batch.batch_size
    return right / total


def digest(batch: Any) -> tuple[Any, ...]:
    return (int(batch.number), batch.n_id.tolist(), batch.edge_index.tolist(), batch.x.sum().item(), batch.input_id.tolist())


def test_graphsage_learns_what_features_alone_do_not_say(url: str) -> None:
    torch.manual_seed(0)
    data = stores(url)
    nodes = torch.randperm(NODES, generator=torch.Generator().manual_seed(3))
    options: Any = dict(num_neighbors=[10, 5], batch_size=128)
    for workers in (0, 2):
        train = NeighborLoader(data, input_nodes=nodes[:1000], shuffle=True, seed=1, num_workers=workers, **options)
        test = NeighborLoader(data, input_nodes=nodes[1000:], seed=2, **options)
        with_edges = accuracy(Sage(), train, test, epochs=6)
        if workers == 0:
            without = accuracy(Alone(), train, test, epochs=6)
        print(f"accuracy with {workers} workers: {with_edges:.3f}, of features alone {without:.3f}")
        assert with_edges > 0.85
        assert without < 0.6


def test_batches_do_not_depend_on_workers_or_on_where_lists_are(url: str) -> None:
    data = stores(url)
    options: Any = dict(num_neighbors=[6, 4], batch_size=500, shuffle=True, seed=5)
    expected = None
    for more in (dict(), dict(ahead=0), dict(num_workers=1), dict(num_workers=2), dict(lists="memory")):
        loader = NeighborLoader(data, **options, **more)
        found = [digest(batch) for _ in range(2) for batch in loader]
        assert [number for number, *_ in found] == list(range(24))
        expected = expected or found
        assert found == expected, more
    assert expected is not None
    assert expected[0][1] != expected[12][1]
    spawned = NeighborLoader(data, **options, num_workers=2, multiprocessing_context="spawn")
    assert [digest(batch) for batch in spawned] == expected[:12]


RUN = """
import sys, hoplake, hoplake.pyg as pyg
graph = hoplake.open(sys.argv[1])
data = pyg.HoplakeFeatureStore(graph, {"Node": {"x": "x"}}), pyg.HoplakeGraphStore(graph, [("Node", "to", "Node")])
loader = pyg.NeighborLoader(data, [5, 5], batch_size=700, shuffle=True, seed=8, start=int(sys.argv[2]), num_workers=int(sys.argv[3]))
while True:
    for batch in loader:
        print(batch.number, batch.n_id.sum().item(), batch.edge_index.sum().item(), batch.x.sum().item(), flush=True)
"""


def test_a_killed_run_goes_on_with_the_same_batches(url: str) -> None:
    def run(start: int, count: int, workers: int) -> list[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", RUN, url, str(start), str(workers)], stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(count)]
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        return lines

    expected = run(0, 20, 0)
    assert len(set(expected)) == 20 and all(expected)
    killed = run(0, 7, 1)
    assert killed + run(7, 13, 0) == expected


def test_a_batch_has_several_kinds_of_nodes(url: str) -> None:
    graph = hoplake.open(url)
    features = HoplakeFeatureStore(graph, {"Node": {"x": "x", "y": "group"}, "Film": {"x": ["year"]}})
    edges = HoplakeGraphStore(graph, reverse=True)
    loader = NeighborLoader((features, edges), {kind: [4, 3] for kind in edges._kinds}, ("Node", torch.arange(100, 400)), batch_size=100)
    batches = list(loader)
    assert len(batches) == 3
    for batch in batches:
        assert batch["Node"].n_id[:100].tolist() == batch["Node"].input_id.add(100).tolist()
        assert batch["Node"].x.shape == (batch["Node"].num_nodes, WIDTH) and batch["Node"].x.dtype == torch.float32
        assert batch["Film"].x.shape == (batch["Film"].num_nodes, 1)
        assert set(batch.edge_types) == set(edges._kinds)
        for kind in batch.edge_types:
            source, target = batch[kind].edge_index
            assert len(source) == sum(batch[kind].num_sampled_edges)
            known = {tuple(pair) for pair in torch.stack(edges.get_edge_index(edge_type=kind, layout="coo")).t().tolist()}
            ends = zip(batch[kind[0]].n_id[source].tolist(), batch[kind[2]].n_id[target].tolist())
            assert len(source) and all(pair in known for pair in ends)
            in_degree = torch.bincount(target)
            assert int(in_degree.max()) <= 4
    x = features.get_tensor("Film", "x", index=None)
    assert x.view(-1).tolist() == list(range(1950, 2000))
    assert features.get_tensor("Film", "x", index=torch.tensor([3, 1, 3])).view(-1).tolist() == [1953, 1951, 1953]
    assert features.get_tensor_size(group_name="Film", attr_name="x") == (50, 1)


def test_loaders_of_pyg_take_the_sampler(url: str) -> None:
    data = stores(url)
    for disjoint in (False, True):
        sampler = HoplakeSampler(data[1], [3, 3], seed=4, homogeneous=True, disjoint=disjoint)
        loader = NodeLoader(data, sampler, input_nodes=torch.arange(90), batch_size=30)
        batches = [batch for batch in loader]
        assert [batch.batch_size for batch in batches] == [30, 30, 30]
        again = [batch.n_id.tolist() for batch in loader]
        assert [batch.n_id.tolist() for batch in batches] == again
        if disjoint:
            assert batches[0].batch[:30].tolist() == list(range(30))
            source, target = batches[0].edge_index
            assert (batches[0].batch[source] == batches[0].batch[target]).all()


def test_links_are_told_from_negatives(url: str) -> None:
    torch.manual_seed(0)
    data = stores(url)
    index = data[1].get_edge_index(edge_type=("Node", "to", "Node"), layout="coo")
    links = torch.stack(index)
    known = {tuple(pair) for pair in links.t().tolist()}
    chosen = links[:, torch.randperm(links.shape[1], generator=torch.Generator().manual_seed(1))]
    options: Any = dict(num_neighbors=[8, 4], neg_sampling="binary", batch_size=256, shuffle=True)
    train = LinkNeighborLoader(data, edge_label_index=chosen[:, :4_000], seed=1, **options)
    test = LinkNeighborLoader(data, edge_label_index=chosen[:, -2_000:], seed=2, **options)
    model = Sage()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    def scores(batch: Any) -> Any:
        batch.batch_size = batch.num_nodes
        source, target = model(batch)[batch.edge_label_index]
        return (source * target).sum(dim=1)

    for _ in range(3):
        for batch in train:
            optimizer.zero_grad()
            torch.nn.functional.binary_cross_entropy_with_logits(scores(batch), batch.edge_label).backward()
            optimizer.step()
    right = total = 0
    with torch.no_grad():
        for batch in test:
            count = len(batch.input_id)
            ends = batch.n_id[batch.edge_label_index].t().tolist()
            given = chosen[:, -2_000:].t()[batch.input_id].tolist()
            assert ends[:count] == given and len(ends) == 2 * count
            assert batch.edge_label.tolist() == [1.0] * count + [0.0] * count
            assert not any(tuple(pair) in known for pair in ends[count:])
            found = scores(batch)
            # How often a link has the higher score than a negative.
            right += int((found[:count, None] > found[None, count:]).sum())
            total += count * count
    print(f"links before negatives: {right / total:.3f}")
    assert right / total > 0.7


def test_negatives_of_triplets_begin_where_links_do(url: str) -> None:
    graph = hoplake.open(url)
    features = HoplakeFeatureStore(graph, {"Node": {"y": "group"}})
    edges = HoplakeGraphStore(graph, reverse=True)
    kind = ("Node", "rates", "Film")
    rates = {tuple(pair) for pair in torch.stack(edges.get_edge_index(edge_type=kind, layout="coo")).t().tolist()}
    batches = {}
    for disjoint in (False, True):
        negatives = NegativeSampling("triplet", 3)
        options: Any = dict(neg_sampling=negatives, batch_size=100, disjoint=disjoint, seed=3)
        loader, other = (
            LinkNeighborLoader((features, edges), [2, 2], (kind, None), num_workers=workers, **options) for workers in (0, 1)
        )
        found = list(loader)
        batch = batches[disjoint] = found[0]
        source = batch["Node"].n_id[batch["Node"].src_index]
        target = batch["Film"].n_id[batch["Film"].dst_pos_index]
        others = batch["Film"].n_id[batch["Film"].dst_neg_index]
        assert others.shape == (100, 3)
        assert all(pair in rates for pair in zip(source.tolist(), target.tolist()))
        for begin, ends in zip(source.tolist(), others.tolist()):
            assert not any((begin, end) in rates for end in ends)
        assert [digest_of(again) for again in found] == [digest_of(again) for again in other]
    # A link and its negatives have its number.
    nodes, films = batches[True]["Node"], batches[True]["Film"]
    assert nodes.batch[nodes.src_index].tolist() == films.batch[films.dst_pos_index].tolist() == list(range(100))
    assert films.batch[films.dst_neg_index].tolist() == [[link] * 3 for link in range(100)]


def digest_of(batch: Any) -> tuple[Any, ...]:
    return (batch["Node"].n_id.tolist(), batch["Film"].dst_neg_index.tolist())


def test_a_batch_has_nothing_later_than_its_seed(url: str) -> None:
    graph = hoplake.open(url)
    features = HoplakeFeatureStore(graph, {"Node": {"y": "group"}})
    edges = HoplakeGraphStore(graph, [("Node", "to", "Node")], reverse=True)
    # The group stands for a time.
    times = torch.arange(400) % GROUPS
    for strategy in ("uniform", "last"):
        loader = NeighborLoader(
            (features, edges), [4, 4], torch.arange(400), times, batch_size=100, disjoint=True, time_attr="group", temporal_strategy=strategy
        )
        for batch in loader:
            now = times[batch.input_id]
            assert (batch.seed_time == now).all()
            later = batch.y > now[batch.batch]
            # A seed itself may be later than what it sees.
            assert not later[batch.batch_size :].any() and batch.num_nodes > 500


def test_negatives_have_the_times_of_links(url: str) -> None:
    graph = hoplake.open(url)
    features = HoplakeFeatureStore(graph, {"Node": {"y": "group"}})
    edges = HoplakeGraphStore(graph, [("Node", "to", "Node")], reverse=True)
    index = torch.stack(edges.get_edge_index(edge_type=("Node", "to", "Node"), layout="coo"))[:, :250]
    times = torch.arange(250) % GROUPS
    options: Any = dict(disjoint=True, time_attr="group", batch_size=100, edge_label_time=times)
    for ratio, counts in ((1.0, (100, 100, 50)), (0.5, (50, 50, 25)), (2.5, (250, 250, 125))):
        loader = LinkNeighborLoader((features, edges), [4, 4], index, neg_sampling="binary", neg_sampling_ratio=ratio, **options)
        batches = list(loader)
        assert len(batches) == 3
        for batch, negatives in zip(batches, counts):
            now = times[batch.input_id]
            count = len(now)
            # As PyTorch Geometric repeats them.
            expected = now.repeat(4)[: count + negatives]
            assert batch.edge_label_time.tolist() == expected.tolist()
            assert len(batch.edge_label) == count + negatives and batch.edge_label.sum() == count
            links = torch.arange(count).repeat(4)[: count + negatives]
            for end in batch.edge_label_index:
                assert (batch.batch[end] == links).all()
            is_seed = torch.zeros(batch.num_nodes, dtype=torch.bool)
            is_seed[batch.edge_label_index.view(-1)] = True
            assert not (batch.y > now[batch.batch])[~is_seed].any()
    triplets = LinkNeighborLoader((features, edges), [4], index, neg_sampling="triplet", **options)
    assert [batch.seed_time.tolist() for batch in triplets] == [part.tolist() for part in times.split(100)]


def test_batches_wait_for_memory(url: str) -> None:
    def loaded(memory: int, ahead: int) -> list[tuple[Any, ...]]:
        graph = hoplake.open(url).within(memory=memory)
        data = HoplakeFeatureStore(graph, {"Node": {"x": "x", "y": "group"}}), HoplakeGraphStore(graph, [("Node", "to", "Node")])
        return [digest(batch) for batch in NeighborLoader(data, [10, 10], torch.arange(4_000), batch_size=200, seed=1, ahead=ahead)]

    expected = loaded(1 << 30, 0)
    enough = 0
    for memory in range(2_000_000, 40_000_000, 3_000_000):
        try:
            assert loaded(memory, 0) == expected
        except hoplake.LimitError:
            assert not enough, "with less there was enough"
            continue
        enough += 1
        assert loaded(memory, 6) == expected, memory
    assert enough > 3


def test_features_may_be_of_another_store(url: str, tmp_path: Path) -> None:
    nodes: dict[str, Any] = {"key": list(range(NODES)), "x": [node / 2 for node in range(NODES)]}
    hoplake.load(str(tmp_path / "features"), vertices={"Node": nodes})
    graph = hoplake.open(url)
    edges = HoplakeGraphStore(graph, [("Node", "to", "Node")])
    others = HoplakeFeatureStore(hoplake.open(str(tmp_path / "features")), {"Node": {"x": "x"}})
    # Those of films are not in batches of nodes.
    same = HoplakeFeatureStore(graph, {"Node": {"y": "group"}, "Film": {"y": "year"}})
    keys = torch.tensor(graph.sampler([1]).keys("Node", np.arange(NODES)))
    for batch in NeighborLoader((others, edges), [3], torch.arange(600), batch_size=200):
        assert (batch.x == keys[batch.n_id] / 2).all()
    for batch in NeighborLoader((same, edges), [3], torch.arange(600), batch_size=200):
        assert len(batch.y) == batch.num_nodes and batch.y.max() < GROUPS


def test_edges_have_features(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    source, target, film = random.integers(0, 300, 3_000), random.integers(0, 300, 3_000), random.integers(0, 20, 3_000)
    number = random.permutation(3_000)
    nodes: dict[str, Any] = {"Node": {"key": np.arange(300), "x": np.arange(300)}, "Film": {"key": np.arange(20)}}
    to = {"source": source, "target": target, "number": number, "weight": number / 4}
    rates = {"source": source, "target": film, "number": number}
    hoplake.load(str(tmp_path / "g"), vertices=nodes, edges={("Node", "to", "Node"): to, ("Node", "rates", "Film"): rates})
    graph = hoplake.open(str(tmp_path / "g"))
    of_edges: Any = {("Node", "to", "Node"): {"edge_attr": ["number", "weight"], "number": "number"}, ("Node", "rates", "Film"): {"number": "number"}}
    features = HoplakeFeatureStore(graph, {"Node": {"x": "x"}, **of_edges})
    keys = {label: torch.tensor(graph.sampler([1]).keys(label, np.arange(count))) for label, count in (("Node", 300), ("Film", 20))}
    stored = {("Node", "to", "Node"): (source, target), ("Node", "rates", "Film"): (source, film)}

    def check(kind: Any, sources: Any, targets: Any, numbers: Any) -> None:
        at = {int(it): edge for edge, it in enumerate(number)}
        is_reversed = kind[1].startswith("rev_")
        begin, end = stored[(kind[2], kind[1].removeprefix("rev_"), kind[0]) if is_reversed else kind]
        found = [(int(begin[at[it]]), int(end[at[it]])) for it in numbers.tolist()]
        given = list(zip(keys[kind[0]][sources].tolist(), keys[kind[2]][targets].tolist()))
        assert len(found) > 5 and given == [pair[::-1] if is_reversed else pair for pair in found]

    edges = HoplakeGraphStore(graph, reverse=True)
    for workers in (0, 1):
        for batch in NeighborLoader((features, edges), [5, 3], "Node", batch_size=100, seed=1, num_workers=workers):
            for kind in batch.edge_types:
                row, col = batch[kind].edge_index
                check(kind, batch[kind[0]].n_id[row], batch[kind[2]].n_id[col], batch[kind].number)
            attr = batch["Node", "rev_to", "Node"].edge_attr
            assert attr.dtype == torch.float32 and (attr[:, 0] == attr[:, 1] * 4).all()
    # A graph of one label has those of both directions one after the other, hop by hop.
    alone = HoplakeGraphStore(graph, [("Node", "to", "Node")], reverse=True)
    seen = []
    transformed = NeighborLoader((features, alone), [5, 3], batch_size=100, transform=lambda batch: seen.append(batch.edge_attr.shape) or batch)
    for batch in transformed:
        row, col = batch.edge_index
        at = {int(it): edge for edge, it in enumerate(number)}
        pairs = zip(keys["Node"][batch.n_id[row]].tolist(), keys["Node"][batch.n_id[col]].tolist())
        edges_of = [at[int(it)] for it in batch.edge_attr[:, 0].tolist()]
        assert [set(pair) for pair in pairs] == [{int(source[it]), int(target[it])} for it in edges_of]
    assert seen == [batch.edge_attr.shape for batch in NeighborLoader((features, alone), [5, 3], batch_size=100)]
    links = LinkNeighborLoader((features, alone), [3], torch.tensor([source[:50], target[:50]]), neg_sampling="binary", batch_size=25)
    assert all(len(batch.edge_attr) == batch.num_edges for batch in links)
    with pytest.raises(hoplake.NotFoundError, match="no property 'nothing'"):
        HoplakeFeatureStore(graph, {("Node", "to", "Node"): {"x": "nothing"}})
    with pytest.raises(hoplake.NotFoundError, match="no edge type"):
        HoplakeFeatureStore(graph, {("Node", "to", "Film"): {"x": "number"}})


def test_what_cannot_be_loaded_is_an_exception(url: str) -> None:
    data = stores(url)
    graph = hoplake.open(url)
    with pytest.raises(hoplake.NotFoundError, match="no edge type"):
        HoplakeGraphStore(graph, [("Node", "knows", "Node")])
    with pytest.raises(hoplake.NotFoundError, match="no property"):
        HoplakeFeatureStore(graph, {"Node": {"x": "nothing"}})
    with pytest.raises(hoplake.NotFoundError, match="'Film'"):
        NeighborLoader(data, [3], "Film")
    with pytest.raises(hoplake.InvalidError, match="several kinds of nodes"):
        NeighborLoader((data[0], HoplakeGraphStore(graph)), [3])
    with pytest.raises(hoplake.InvalidError, match="sampler cannot be given"):
        NeighborLoader(data, [3], sampler=[1])
    with pytest.raises(hoplake.InvalidError, match="one for each hop"):
        NeighborLoader(data, {})
    with pytest.raises(hoplake.InvalidError, match="a seed twice"):
        list(NeighborLoader(data, [3], torch.tensor([1, 1])))
    with pytest.raises(hoplake.NotFoundError, match=str(NODES)):
        list(NeighborLoader(data, [3], torch.tensor([NODES])))


def test_importing_hoplake_does_not_import_torch() -> None:
    program = "import sys, hoplake, hoplake.aio; assert 'torch' not in sys.modules; hoplake.pyg; assert 'torch' in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)
