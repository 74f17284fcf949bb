"""Loaders of PyTorch Geometric that sample straight from a bucket.

.. code-block:: python

    import hoplake
    from hoplake.pyg import HoplakeFeatureStore, HoplakeGraphStore, NeighborLoader

    graph = hoplake.open("s3://my-bucket/papers")
    features = HoplakeFeatureStore(graph, {"Paper": {"x": "embedding", "y": "field"}})
    edges = HoplakeGraphStore(graph, reverse=True)
    loader = NeighborLoader((features, edges), num_neighbors=[15, 10], input_nodes="Paper", batch_size=1024, shuffle=True, seed=7)
    for batch in loader:
        out = model(batch.x_dict, batch.edge_index_dict)

Nodes are numbered as PyTorch Geometric does it: by the ordinals of :class:`hoplake.Sampler`. Nothing of the graph is loaded before it is needed.
"""

# torch and torch_geometric are not installed where types are checked.
# mypy: disable-error-code="import-not-found, misc, no-any-return, unused-ignore"
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportUntypedBaseClass=false, reportUnknownLambdaType=false, reportPrivateUsage=false

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, Union

from ._arguments import own_as, whole
from ._errors import InvalidError, NotFoundError, make
from ._samples import FeatureNames, LinkSample, Sample, feature_names, link_numbers, shuffled, times_of
from ._sync.graph import Graph
from ._sync.sampler import Sampler
from ._waiting import wait_sync

try:
    import numpy as np
    import torch
    from torch_geometric.data import FeatureStore, GraphStore, TensorAttr
    from torch_geometric.data.graph_store import EdgeAttr, EdgeLayout
    from torch_geometric.loader import LinkLoader, NodeLoader
    from torch_geometric.sampler import BaseSampler, HeteroSamplerOutput, NodeSamplerInput, SamplerOutput
except ModuleNotFoundError as error:
    # An ImportError of a module that is there has a cause of its own, such as a library that cannot be loaded.
    hint = "pip install torch torch_geometric numpy"
    raise make("invalid", f"hoplake.pyg needs {error.name}, which is not installed", hint=hint) from None

__all__ = ["HoplakeFeatureStore", "HoplakeGraphStore", "HoplakeSampler", "LinkNeighborLoader", "NeighborLoader"]

#: A method of the extension, and its arguments.
_Asked = tuple[str, tuple[Any, ...]]

#: An edge type of PyTorch Geometric: the label of the sources, that of the edges, and that of the targets.
Triple = "tuple[str, str, str]"

#: How many neighbours in each hop, also by edge type; -1 takes all.
NumNeighbors = Union[Sequence[int], Mapping[Any, Sequence[int]]]

_REVERSED = "rev_"


class HoplakeFeatureStore(FeatureStore):
    """Features of nodes as tensors: properties of vertices that are read when they are needed.

    Args:
        graph: the graph. The store stays at its version.
        features: properties by label and name, as :meth:`hoplake.Graph.sampler` takes them; those of edges by their type, as in
            ``{("Person", "knows", "Person"): {"edge_attr": ["since", "weight"]}}``. The loaders of this module have them, also for edges in the other
            direction; PyTorch Geometric's own loaders do not take any from stores.
        dtype: the type of features that are not all integers.
        missing: what stands for a value that a vertex does not have.

    Raises:
        NotFoundError: the graph does not have a label or property.
        InvalidError: a property is text.
    """

    def __init__(
        self,
        graph: Graph,
        features: FeatureNames,
        *,
        dtype: Literal["float32", "float64"] = "float32",
        missing: float | None = None,
    ) -> None:
        super().__init__()
        if dtype not in ("float32", "float64"):
            raise InvalidError(f"dtype is {dtype!r}; write float32 or float64")
        everything = feature_names(features)
        named = [feature for feature in everything if isinstance(feature[0], str)]
        known = {(it.source_label, it.label, it.target_label): it.properties for it in graph.schema.edge_types}
        for kind, _, properties, _ in everything:
            if isinstance(kind, str):
                continue
            if kind not in known:
                raise NotFoundError(f"the graph has no edge type {kind}; it has {', '.join(map(str, known))}")
            for name in properties:
                if name not in known[kind]:
                    raise NotFoundError(f"edges {kind} have no property {name!r}; they have {', '.join(known[kind]) or 'none'}")
        arguments: tuple[Any, ...] = ([], False, None, False, False, 0, named, dtype == "float64", missing, False, None)
        wait_sync(graph._core.ready())
        core = graph._core.sampler(*arguments)
        wait_sync(core.ready())
        self._reader = Sampler(core, arguments, np)
        self._names = [(label, name) for label, name, *_ in named]
        self._options: dict[str, Any] = {"features": features, "dtype": dtype, "missing": missing}

    def get_all_tensor_attrs(self) -> list[Any]:
        """The features of nodes."""
        return [TensorAttr(label, name) for label, name in self._names]

    def _multi_get_tensor(self, attrs: list[Any]) -> list[Any]:
        # All begin before the first is waited for: one wave for all of them.
        begun = [self._begin(attr) for attr in attrs]
        return [self._end(*parts) for parts in begun]

    def _get_tensor(self, attr: Any) -> Any:
        return self._end(*self._begin(attr))

    def _begin(self, attr: Any) -> tuple[Any, Any, int]:
        label, name, index = attr.group_name, attr.attr_name, attr.index
        if label is None:
            # Of a graph with one label.
            label = next((known for known, of_label in self._names if of_label == name), "")
        core = self._reader._core
        if isinstance(index, torch.Tensor) and index.dtype != torch.bool:
            return core.feature(label, name, index.numpy().astype(np.int64, copy=False).tobytes()), None, 0
        shared, count = wait_sync(core.ordinals(label))
        existing = np.asarray(shared)
        if index is not None:
            at = index.numpy() if isinstance(index, torch.Tensor) else index
            wanted = np.atleast_1d(np.arange(count, dtype=np.int64)[at])
            return core.feature(label, name, wanted.tobytes()), None, 0
        return core.feature(label, name, existing.tobytes()), (existing if len(existing) < count else None), count

    def _end(self, task: Any, existing: Any, count: int) -> Any:
        numbers = np.asarray(wait_sync(task))
        if existing is not None:
            # Numbers of vertices that were deleted are 0.
            spread = np.zeros((count, *numbers.shape[1:]), dtype=numbers.dtype)
            spread[existing] = numbers
            numbers = spread
        return torch.from_numpy(numbers)

    def _get_tensor_size(self, attr: Any) -> tuple[int, ...]:
        _, count = wait_sync(self._reader._core.ordinals(attr.group_name))
        empty = self._reader.feature(attr.group_name, attr.attr_name, np.empty(0, dtype=np.int64))
        return (count, *empty.shape[1:])

    def _put_tensor(self, tensor: Any, attr: Any) -> bool:
        raise InvalidError("features are properties of the graph; change them with Graph.begin or Graph.apply")

    def _remove_tensor(self, attr: Any) -> bool:
        raise InvalidError("features are properties of the graph; change them with Graph.begin or Graph.apply")


class HoplakeGraphStore(GraphStore):
    """The edges of a graph, as PyTorch Geometric names them: ``("Person", "knows", "Person")``.

    Args:
        graph: the graph. The store stays at its version.
        edge_types: the edge types to use; all by default.
        reverse: whether there also are edges in the other direction, as ``ToUndirected`` makes them: ``("Film", "rev_rates", "Person")``. They
            are not stored a second time.

    Raises:
        NotFoundError: the graph does not have an edge type.
    """

    def __init__(self, graph: Graph, edge_types: Sequence[tuple[str, str, str]] | None = None, *, reverse: bool = False) -> None:
        super().__init__()
        # Its own, which stays at its version.
        self._graph = graph.at(wait_sync(graph._core.ready()))
        known = [(it.source_label, it.label, it.target_label) for it in self._graph.schema.edge_types]
        types = known if edge_types is None else [(source, label, target) for source, label, target in edge_types]
        for kind in types:
            if kind not in known:
                listed = ", ".join(map(str, known))
                raise NotFoundError(f"the graph has no edge type {kind}; it has {listed}")
        #: By edge type the label where neighbours are sampled for, the hop to them, and their label.
        self._kinds: dict[tuple[str, str, str], tuple[str, str, str]] = {}
        for source, label, target in types:
            # Messages flow to the target, so it is the one whose neighbours are sampled.
            self._kinds[source, label, target] = (target, f"in:{_quoted(label)}", source)
        if reverse:
            for source, label, target in types:
                self._kinds[target, _REVERSED + label, source] = (source, f"out:{_quoted(label)}", target)
        self._labels = list(dict.fromkeys(end for source, _, target in types for end in (source, target)))
        reader = HoplakeFeatureStore(self._graph, {})._reader
        self._reader = reader
        self._counts = {label: wait_sync(reader._core.ordinals(label))[1] for label in self._labels}

    def get_all_edge_attrs(self) -> list[Any]:
        """The edge types."""
        return [
            EdgeAttr(kind, EdgeLayout.COO, size=(self._counts[kind[0]], self._counts[kind[2]])) for kind in self._kinds
        ]

    def _get_edge_index(self, edge_attr: Any) -> Any:
        near_label, hop, far_label = self._kind(edge_attr.edge_type)
        if edge_attr.layout != EdgeLayout.COO:
            return None
        sampler = self._graph.sampler({(near_label, hop, far_label): [None]})
        sample = sampler.sample(sampler.ordinals(near_label))
        ((near, far),) = sample.edges.values()
        none = np.empty(0, dtype=np.int64)
        sources, targets = sample.vertices.get(far_label, none)[far], sample.vertices.get(near_label, none)[near]
        return torch.from_numpy(sources), torch.from_numpy(targets)

    def _kind(self, edge_type: Any) -> tuple[str, str, str]:
        if edge_type is None and len(self._kinds) == 1:
            return next(iter(self._kinds.values()))
        kind = self._kinds.get(tuple(edge_type or ()))  # type: ignore[arg-type]
        if kind is None:
            raise NotFoundError(f"there is no edge type {edge_type}; there are {', '.join(map(str, self._kinds))}")
        return kind

    def _put_edge_index(self, edge_index: Any, edge_attr: Any) -> bool:
        raise InvalidError("edges are those of the graph; change them with Graph.begin or Graph.apply")

    def _remove_edge_index(self, edge_attr: Any) -> bool:
        raise InvalidError("edges are those of the graph; change them with Graph.begin or Graph.apply")


def _quoted(label: str) -> str:
    from ._quote import quote

    return label if label.isidentifier() else quote(label)


class HoplakeSampler(BaseSampler):
    """A sampler for loaders of PyTorch Geometric: ``NodeLoader(data=(features, edges), node_sampler=…)``.

    What it samples follows from its seed, the seeds of the batch, and the number of the batch that :class:`NeighborLoader` passes to it. In another loader,
    which does not number batches, the seeds stand for the number.

    Args:
        edges: the edges.
        num_neighbors: how many neighbours in each hop, also by edge type; -1 takes all.
        replace: whether an edge may be chosen more than once.
        weight: a numeric property of edges that their chances are proportional to.
        disjoint: whether each seed has nodes of its own.
        subgraph_type: ``"induced"`` for all edges between the sampled nodes.
        seed: what the random choices follow from.
        lists: ``"memory"`` loads all lists once, in each process.
        homogeneous: whether it returns a graph with one kind of nodes and edges.
        time_attr: a property that lets a seed see nothing later than its own time. It needs ``disjoint``.
        time_of: whether it is a property of nodes or of edges.
        temporal_strategy: ``"last"`` for the latest neighbours, in place of random ones.
        features: features that are read with each sample, of the same graph. :class:`NeighborLoader` and :class:`LinkNeighborLoader` read them so.

    Raises:
        InvalidError: numbers of neighbours are not those of the edge types.
    """

    def __init__(
        self,
        edges: HoplakeGraphStore,
        num_neighbors: NumNeighbors,
        *,
        replace: bool = False,
        weight: str | None = None,
        disjoint: bool = False,
        subgraph_type: Literal["directional", "induced"] = "directional",
        seed: int = 0,
        lists: Literal["bucket", "memory"] = "bucket",
        homogeneous: bool = False,
        time_attr: str | None = None,
        time_of: Literal["edge", "vertex"] = "vertex",
        temporal_strategy: Literal["uniform", "last"] = "uniform",
        features: HoplakeFeatureStore | None = None,
    ) -> None:
        if subgraph_type not in ("directional", "induced"):
            raise InvalidError(f"subgraph_type is {subgraph_type!r}; write directional or induced")
        if homogeneous and len(edges._labels) != 1:
            labels = ", ".join(edges._labels)
            message = f"the edges lead between {labels}, so a batch has several kinds of nodes; name that of the seeds: input_nodes=({edges._labels[0]!r}, …)"
            raise InvalidError(message)
        numbers = _numbers(edges, num_neighbors)
        fan_out = {edges._kinds[kind]: counts for kind, counts in numbers.items()}
        # A sample has them in this order.
        self._sampled = list(numbers)
        self._edges = edges
        self._homogeneous = homogeneous
        self._disjoint = disjoint
        self._sampler = edges._graph.sampler(
            fan_out,
            replace=replace,
            weight=weight,
            disjoint=disjoint,
            induced=subgraph_type == "induced",
            seed=seed,
            lists=lists,
            time=time_attr,
            time_of=time_of,
            strategy=_strategy(temporal_strategy),
            **({} if features is None else self._with_features(features)),
        )

    def _with_features(self, features: HoplakeFeatureStore) -> dict[str, Any]:
        """Options of the sampler, which names features its way: those of an edge type are also of the edges in the other direction."""
        of: Any = features._options["features"]
        made: dict[Any, Any] = {label: of_label for label, of_label in of.items() if isinstance(label, str)}
        for kind in self._sampled:
            (source, label, target), hop = kind, self._edges._kinds[kind]
            is_reversed = hop[1].startswith("out:")
            stored = (target, label.removeprefix(_REVERSED), source) if is_reversed else kind
            if stored in of:
                made[hop] = of[stored]
        return {**features._options, "features": made}

    def sample_from_nodes(self, index: Any) -> Any:
        """Samples the neighbourhoods of nodes."""
        number = _of_seeds(index.node.numpy())
        return self._of_nodes(index, _alone(self._asked_of_nodes(index, number), self._sampler), number)[1]

    def sample_from_edges(self, index: Any, neg_sampling: Any = None) -> Any:
        """Samples the neighbourhoods of the ends of links, and negatives."""
        number = _of_seeds(np.concatenate([index.row.numpy(), index.col.numpy()]))
        asked = self._asked_of_edges(index, neg_sampling, number)
        return self._of_edges(index, neg_sampling, _alone(asked, self._sampler), number)[1]

    def _asked_of_nodes(self, index: Any, number: int) -> _Asked:
        """What the extension is asked for."""
        seeds = index.node.numpy().astype(np.int64, copy=False)
        times = times_of(np, _times(index), len(seeds))
        sent = [(index.input_type or self._edges._labels[0], seeds.tobytes())]
        return "sample", (sent, None if times is None else times.tobytes(), number)

    def _of_nodes(self, index: Any, parts: Any, number: int) -> tuple[Sample, Any]:
        """What it answers, as PyTorch Geometric has it."""
        sample = Sample(parts, number, np)
        label = index.input_type or self._edges._labels[0]
        if not self._disjoint and sample.vertices_per_hop.get(label, [0])[0] != len(index.node):
            raise InvalidError("a batch has a seed twice; give each node once, or set disjoint")
        out = self._output(sample)
        out.metadata = (index.input_id, index.time)
        return sample, out

    def _asked_of_edges(self, index: Any, neg_sampling: Any, number: int) -> _Asked:
        kind = index.input_type
        if kind is None:
            # Of a graph with one label: reversed edges come after those that are stored.
            kind = next(iter(self._edges._kinds))
        near_label, hop, far_label = self._edges._kind(kind)
        # Links begin at their source, as negatives do; neighbours are sampled for targets.
        links = (far_label, _other(hop), near_label)
        sources, targets = (end.numpy().astype(np.int64, copy=False) for end in (index.row, index.col))
        if neg_sampling is not None and (neg_sampling.src_weight is not None or neg_sampling.dst_weight is not None):
            raise InvalidError("negatives have no weights: each vertex has the same chance")
        times = times_of(np, _times(index), len(sources))
        sent = None if times is None else times.tobytes()
        numbers = link_numbers(*_negatives(neg_sampling), len(sources))
        return "sample_links", (links, sources.tobytes(), targets.tobytes(), sent, *numbers, number)

    def _of_edges(self, index: Any, neg_sampling: Any, parts: Any, number: int) -> tuple[Sample, Any]:
        mode, ratio = _negatives(neg_sampling)
        count = len(index.row)
        sample = LinkSample(parts, number, count, link_numbers(mode, ratio, count)[1], np)
        out = self._output(sample)
        (near, far), (near_not, far_not) = (map(torch.from_numpy, ends) for ends in (sample.links, sample.negatives))
        if mode == "triplet":
            out.metadata = (index.input_id, near, far, far_not.squeeze(-1) if ratio == 1 else far_not, index.time)
        else:
            label = index.label
            if mode is not None:
                label = torch.ones(count) if label is None else label
                label = torch.cat([label, label.new_zeros((len(near_not), *label.shape[1:]))])
            pairs = torch.stack([torch.cat([near, near_not]), torch.cat([far, far_not])])
            time = index.time
            if time is not None and len(near_not):
                # Those of links, one after the other, as negatives were sampled with them.
                time = torch.cat([time, time[torch.arange(len(near_not)) % count]])
            out.metadata = (index.input_id, pairs, label, time)
        if self._disjoint:
            # Both ends of a link, and its negatives, have its number. Seeds are the beginnings of links and of negatives, and then the other ends.
            links = torch.arange(count)
            each = links.repeat_interleave(ratio) if mode == "triplet" else torch.arange(far_not.numel()) % max(count, 1)
            of_seeds = torch.cat([links, each[:0] if mode == "triplet" else each, links, each])
            batches = out.batch if isinstance(out.batch, dict) else {None: out.batch}
            joined = {key: of_seeds[trees] for key, trees in batches.items()}
            out.batch = joined if isinstance(out.batch, dict) else joined[None]
        return sample, out

    def _add_features(self, batch: Any, sample: Sample) -> None:
        """Adds features of edges, in the order of the edges."""
        found = [sample.features.get(hop, {}) for hop in sample.edges]
        if not self._homogeneous:
            for kind, of_kind in zip(self._sampled, found):
                for name, numbers in of_kind.items():
                    batch[kind][name] = torch.from_numpy(numbers)
            return
        for name in dict.fromkeys(name for of_kind in found for name in of_kind):
            if not all(name in of_kind for of_kind in found):
                raise InvalidError(f"{name} is a feature of some edge types; in a graph of one kind of edges it has to be one of all")
            tensors = {kind: torch.from_numpy(of_kind[name]) for kind, of_kind in zip(self._sampled, found)}
            per_hop = dict(zip(self._sampled, sample.edges_per_hop.values()))
            batch[name] = self._in_order(tensors, per_hop)

    def _in_order(self, tensors: dict[Any, Any], per_hop: dict[Any, list[int]]) -> Any:
        """Rows of all edge types, hop by hop, as layers that trim expect them."""
        if len(tensors) == 1:
            return next(iter(tensors.values()))
        parts = []
        for hop in range(len(next(iter(per_hop.values())))):
            for kind, counts in per_hop.items():
                parts.append(tensors[kind][sum(counts[:hop]) : sum(counts[: hop + 1])])
        return torch.cat(parts)

    def _output(self, sample: Sample) -> Any:
        none = np.empty(0, dtype=np.int64)
        hops = len(next(iter(sample.edges_per_hop.values()), []))
        node = {label: torch.from_numpy(sample.vertices.get(label, none)) for label in self._edges._labels}
        batch = {label: torch.from_numpy(sample.trees.get(label, none)) for label in self._edges._labels} if self._disjoint else None
        nodes = {label: sample.vertices_per_hop.get(label, [0] * (hops + 1)) for label in self._edges._labels}
        row, col, edges = {}, {}, {}
        for kind, (near, far), per_hop in zip(self._sampled, sample.edges.values(), sample.edges_per_hop.values()):
            row[kind], col[kind] = torch.from_numpy(far), torch.from_numpy(near)
            edges[kind] = per_hop
        if not self._homogeneous:
            return HeteroSamplerOutput(
                node=node, row=row, col=col, edge=None, batch=batch, num_sampled_nodes=nodes, num_sampled_edges=edges
            )
        (label,) = node
        joined = [self._in_order(ends, edges) for ends in (row, col)]
        return SamplerOutput(
            node=node[label],
            row=joined[0],
            col=joined[1],
            edge=None,
            batch=None if batch is None else batch[label],
            num_sampled_nodes=nodes[label],
            num_sampled_edges=[sum(edges[kind][hop] for kind in edges) for hop in range(hops)],
        )


def _alone(asked: _Asked, sampler: Sampler) -> Any:
    """The answer to a call of its own."""
    name, arguments = asked
    return wait_sync(getattr(sampler._core, name)(*arguments))


def _negatives(neg_sampling: Any) -> tuple[Any, Any]:
    """Of which mode negatives are, and how many there are for each link."""
    return (None, 1) if neg_sampling is None else (neg_sampling.mode.value, neg_sampling.amount)


class _Read(FeatureStore):
    """Features that were read with a sample, of the labels that it may have."""

    def __init__(self, sample: Sample, labels: list[str]) -> None:
        super().__init__()
        self._features = {label: sample.features[label] for label in labels if label in sample.features}

    def get_all_tensor_attrs(self) -> list[Any]:
        return [TensorAttr(label, name) for label, of_label in self._features.items() for name in of_label]

    def _get_tensor(self, attr: Any) -> Any:
        return torch.from_numpy(self._features[attr.group_name][attr.attr_name])

    def _get_tensor_size(self, attr: Any) -> tuple[int, ...]:
        return tuple(self._get_tensor(attr).shape)

    def _put_tensor(self, tensor: Any, attr: Any) -> bool:
        return False

    def _remove_tensor(self, attr: Any) -> bool:
        return False


def _strategy(given: str) -> Literal["random", "last"]:
    if given not in ("uniform", "last"):
        raise InvalidError(f"temporal_strategy is {given!r}; write uniform or last")
    return "last" if given == "last" else "random"


def _times(index: Any) -> Any:
    return None if index.time is None else index.time.numpy()


def _other(hop: str) -> str:
    """The same hop in the other direction."""
    direction, _, label = hop.partition(":")
    return f"{'in' if direction == 'out' else 'out'}:{label}"


def _numbers(edges: HoplakeGraphStore, given: NumNeighbors) -> dict[tuple[str, str, str], list[int | None]]:
    """The numbers of neighbours of each edge type."""
    of_types: Any = given if isinstance(given, Mapping) else dict.fromkeys(edges._kinds, given)
    for kind in of_types:
        edges._kind(kind)
    if not of_types or len({len(counts) for counts in of_types.values()}) != 1:
        raise InvalidError("num_neighbors has to have as many numbers for each edge type, one for each hop")
    return {tuple(kind): [None if count == -1 else count for count in counts] for kind, counts in of_types.items()}


def _of_seeds(seeds: Any) -> int:
    return int.from_bytes(hashlib.blake2b(seeds.tobytes(), digest_size=8).digest(), "little") >> 1


class _Order(torch.utils.data.Sampler):
    """The batches of the next epoch, each as its number and the positions of its seeds."""

    def __init__(self, count: int, size: int, *, shuffle: bool, drop_last: bool, seed: int, start: int) -> None:
        self._count, self._size, self._shuffle, self._seed = count, size, shuffle, seed
        self.per_epoch = count // size if drop_last else -(-count // size)
        self.next = start

    def __len__(self) -> int:
        return self.per_epoch - (self.next % self.per_epoch if self.per_epoch else 0)

    def __iter__(self) -> Iterator[list[tuple[int, Any]]]:
        if not self.per_epoch:
            return
        begin = self.next
        epoch, first = divmod(begin, self.per_epoch)
        self.next = (epoch + 1) * self.per_epoch
        order = shuffled(np, self._count, self._seed, epoch) if self._shuffle else np.arange(self._count)
        for at in range(first, self.per_epoch):
            yield [(epoch * self.per_epoch + at, order[at * self._size : (at + 1) * self._size])]


class _Identity(torch.utils.data.Dataset):
    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, item: Any) -> Any:
        return item


class _Loader(torch.utils.data.DataLoader):
    """Batches by number: batch *n* is the same in a run that begins there."""

    def __init__(
        self,
        count: int,
        batch_size: int,
        shuffle: bool,
        drop_last: bool,
        seed: int,
        start: int,
        ahead: int,
        arguments: dict[str, Any],
        data: tuple[Any, HoplakeGraphStore],
        sampler: HoplakeSampler,
        joiner: Any,
    ) -> None:
        self._data, self._sampled_by, self._joiner = data, sampler, joiner
        for name in ("dataset", "collate_fn", "sampler", "batch_sampler"):
            if arguments.pop(name, None) is not None:
                raise InvalidError(f"{name} cannot be given: batches are made by their number; shuffle and seed decide their order")
        order = _Order(
            count, whole("batch_size", batch_size, 1), shuffle=shuffle, drop_last=drop_last, seed=seed, start=whole("start", start)
        )
        self._order = order
        self._ahead = whole("ahead", ahead)
        super().__init__(_Identity(count), batch_sampler=order, collate_fn=self._collate, **arguments)

    def _collate(self, items: Any) -> Any:
        ((number, positions),) = items
        at = torch.from_numpy(positions)
        return self._joined(number, at, _alone(self._asked(number, at), self._sampled_by._sampler))

    def _asked(self, number: int, positions: Any) -> _Asked:
        """What a batch asks the extension for."""
        raise NotImplementedError

    def _answered(self, number: int, positions: Any, parts: Any) -> tuple[Sample, Any]:
        """What the extension answers."""
        raise NotImplementedError

    def _joined(self, number: int, positions: Any, parts: Any) -> Any:
        """The batch with its features."""
        sample, out = self._answered(number, positions, parts)
        features, edges = self._data
        self._joiner.data = (features if _with_samples(features, edges) is None else _Read(sample, edges._labels), edges)
        transform, self._joiner.transform = self._joiner.transform, None
        try:
            batch = self._joiner.filter_fn(out)
        finally:
            self._joiner.transform = transform
        batch.number = number
        self._sampled_by._add_features(batch, sample)
        return batch if transform is None else transform(batch)

    def __iter__(self) -> Any:
        if self.num_workers or not self._ahead:
            return super().__iter__()
        return self._read_ahead()

    def _read_ahead(self) -> Iterator[Any]:
        batches = wait_sync(self._sampled_by._sampler._core.batches())
        begun: deque[tuple[int, Any]] = deque()
        for ((number, positions),) in self._order:
            at = torch.from_numpy(positions)
            name, arguments = self._asked(number, at)
            getattr(batches, name)(*arguments)
            begun.append((number, at))
            if len(begun) > self._ahead:
                yield self._joined(*begun.popleft(), wait_sync(batches.next()))
        while begun:
            yield self._joined(*begun.popleft(), wait_sync(batches.next()))


def _with_samples(features: Any, edges: HoplakeGraphStore) -> HoplakeFeatureStore | None:
    """Features that a sampler can read with its samples: those of the same version of the same graph."""
    if isinstance(features, HoplakeFeatureStore) and features._reader._core.location()[:2] == edges._reader._core.location()[:2]:
        return features
    return None


class NeighborLoader(_Loader):
    """As PyTorch Geometric's ``NeighborLoader``, straight from a bucket.

    Batch *n* follows from the seed, the nodes, ``batch_size`` and *n*: not from the number of workers, and a run that was killed goes on with ``start``,
    the number of its next batch. Each iteration is the next epoch, with an order of its own. A batch has its number as ``batch.number``.

    Args:
        data: the features and the edges.
        num_neighbors: how many neighbours in each hop, also by edge type; -1 takes all.
        input_nodes: the seeds: a label for all of its nodes, or a label and a tensor of their numbers; the tensor alone, or nothing, for a graph with one
            label, whose batches are ``Data``, not ``HeteroData``.
        input_time: a time for each seed, int64, if there is a ``time_attr``.
        batch_size: how many seeds a batch has.
        shuffle: whether each epoch has an order of its own.
        drop_last: whether a last batch with fewer seeds is left out.
        seed: what the random choices and the order follow from.
        start: the number of the first batch.
        ahead: how many batches are read while the model trains, on threads of this process. Each takes its memory from that of the graph before it begins,
            and waits if there is not enough left. Not used with ``num_workers``.
        replace: whether an edge may be chosen more than once.
        weight: a numeric property of edges that their chances are proportional to.
        disjoint: whether each seed has nodes of its own.
        subgraph_type: ``"induced"`` for all edges between the sampled nodes.
        lists: ``"memory"`` loads all lists once, in each process.
        time_attr: a property that lets a seed see nothing later than its own time: an int64, a date or a timestamp. It needs ``disjoint``.
        time_of: whether it is a property of nodes or of edges.
        temporal_strategy: ``"last"`` for the latest neighbours, in place of random ones.
        transform: a function of each batch.
        arguments: others of torch's ``DataLoader``, such as ``num_workers``.

    Raises:
        NotFoundError: a label or node does not exist.
        InvalidError: an argument cannot be.
    """

    def __init__(
        self,
        data: tuple[HoplakeFeatureStore, HoplakeGraphStore],
        num_neighbors: NumNeighbors,
        input_nodes: Any = None,
        input_time: Any = None,
        *,
        batch_size: int = 1024,
        shuffle: bool = False,
        drop_last: bool = False,
        seed: int = 0,
        start: int = 0,
        ahead: int = 2,
        replace: bool = False,
        weight: str | None = None,
        disjoint: bool = False,
        subgraph_type: Literal["directional", "induced"] = "directional",
        lists: Literal["bucket", "memory"] = "bucket",
        time_attr: str | None = None,
        time_of: Literal["edge", "vertex"] = "vertex",
        temporal_strategy: Literal["uniform", "last"] = "uniform",
        transform: Any = None,
        **arguments: Any,
    ) -> None:
        features, edges = data
        label, nodes = _input(edges, input_nodes)
        self.node_sampler = HoplakeSampler(
            edges,
            num_neighbors,
            replace=replace,
            weight=weight,
            disjoint=disjoint,
            subgraph_type=subgraph_type,
            seed=seed,
            lists=lists,
            homogeneous=label is None,
            time_attr=time_attr,
            time_of=time_of,
            temporal_strategy=temporal_strategy,
            features=_with_samples(features, edges),
        )
        given = nodes if label is None else (label, nodes)
        joiner = NodeLoader(data, self.node_sampler, given, transform=transform)
        self._input = NodeSamplerInput(None, nodes, input_time, label)
        count = len(nodes)
        super().__init__(count, batch_size, shuffle, drop_last, seed, start, ahead, arguments, data, self.node_sampler, joiner)

    def _asked(self, number: int, positions: Any) -> _Asked:
        return self.node_sampler._asked_of_nodes(self._input[positions], number)

    def _answered(self, number: int, positions: Any, parts: Any) -> tuple[Sample, Any]:
        return self.node_sampler._of_nodes(self._input[positions], parts, number)

    def __repr__(self) -> str:
        return f"NeighborLoader({len(self._input.node):,} seeds)"


class LinkNeighborLoader(_Loader):
    """As PyTorch Geometric's ``LinkNeighborLoader``, straight from a bucket: batches of links, next to pairs that are not edges.

    Args:
        data: the features and the edges.
        num_neighbors: as for :class:`NeighborLoader`, and so are the arguments that are not listed here.
        edge_label_index: the links: an edge type for all of its edges, or an edge type and a tensor of two rows, the numbers of sources and targets; the
            tensor alone for a graph with one label, whose batches are ``Data``.
        edge_label: a label of each link.
        edge_label_time: a time for each link, int64, if there is a ``time_attr``.
        neg_sampling: ``"binary"`` or ``"triplet"``, or PyTorch Geometric's ``NegativeSampling``, without weights. A pair that is an edge is drawn again, up
            to 5 times.
        neg_sampling_ratio: how many binary negatives there are for each link.

    Raises:
        NotFoundError: a label, edge type or node does not exist.
        InvalidError: an argument cannot be.
    """

    def __init__(
        self,
        data: tuple[HoplakeFeatureStore, HoplakeGraphStore],
        num_neighbors: NumNeighbors,
        edge_label_index: Any,
        edge_label: Any = None,
        edge_label_time: Any = None,
        *,
        neg_sampling: Any = None,
        neg_sampling_ratio: float | None = None,
        batch_size: int = 1024,
        shuffle: bool = False,
        drop_last: bool = False,
        seed: int = 0,
        start: int = 0,
        ahead: int = 2,
        replace: bool = False,
        weight: str | None = None,
        disjoint: bool = False,
        subgraph_type: Literal["directional", "induced"] = "directional",
        lists: Literal["bucket", "memory"] = "bucket",
        time_attr: str | None = None,
        time_of: Literal["edge", "vertex"] = "vertex",
        temporal_strategy: Literal["uniform", "last"] = "uniform",
        transform: Any = None,
        **arguments: Any,
    ) -> None:
        features, edges = data
        is_tensor = isinstance(edge_label_index, torch.Tensor)
        self.link_sampler = HoplakeSampler(
            edges,
            num_neighbors,
            replace=replace,
            weight=weight,
            disjoint=disjoint,
            subgraph_type=subgraph_type,
            seed=seed,
            lists=lists,
            homogeneous=is_tensor,
            time_attr=time_attr,
            time_of=time_of,
            temporal_strategy=temporal_strategy,
            features=_with_samples(features, edges),
        )
        joiner = LinkLoader(
            data,
            self.link_sampler,
            (None, edge_label_index) if is_tensor else edge_label_index,
            edge_label=edge_label,
            edge_label_time=edge_label_time,
            neg_sampling=neg_sampling,
            neg_sampling_ratio=neg_sampling_ratio,
            transform=transform,
        )
        self._input = joiner.input_data
        count = len(self._input.row)
        super().__init__(count, batch_size, shuffle, drop_last, seed, start, ahead, arguments, data, self.link_sampler, joiner)

    def _asked(self, number: int, positions: Any) -> _Asked:
        return self.link_sampler._asked_of_edges(self._input[positions], self._joiner.neg_sampling, number)

    def _answered(self, number: int, positions: Any, parts: Any) -> tuple[Sample, Any]:
        return self.link_sampler._of_edges(self._input[positions], self._joiner.neg_sampling, parts, number)

    def __repr__(self) -> str:
        return f"LinkNeighborLoader({len(self._input.row):,} links)"


def _input(edges: HoplakeGraphStore, given: Any) -> tuple[str | None, Any]:
    """The label of the seeds, if there are several, and their ordinals."""
    if isinstance(given, str):
        label, nodes = given, None
    elif isinstance(given, (tuple, list)) and len(given) == 2 and isinstance(given[0], str):
        label, nodes = given
    else:
        label, nodes = None, given
    known = edges._labels[0] if label is None else label
    if known not in edges._labels:
        raise NotFoundError(f"no edges lead from or to {known!r}; there are nodes of {', '.join(edges._labels)}")
    if nodes is None:
        nodes = edges._reader.ordinals(known)[known]
    nodes = torch.as_tensor(nodes)
    if nodes.dtype == torch.bool:
        nodes = nodes.nonzero().view(-1)
    return label, nodes.to(torch.int64)


own_as(__name__, globals(), __all__)
