"""Samples of neighbourhoods, and the arguments of a sampler. NumPy is imported when a sampler begins, and not before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import ceil
from typing import TYPE_CHECKING, Any, Union


from ._arguments import is_a, names, shown, whole
from ._cost import Cost
from ._errors import InvalidError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    #: Numbers that are shared with the extension, not copied.
    Numbers = NDArray[Any]

#: How many neighbours of each vertex, hop by hop; ``None`` takes all.
Counts = Sequence[Union[int, None]]

#: Features by label, or by kind of edges such as ``("Person", "out:knows", "Person")``, and by name: a property, or several that become the columns
#: of a matrix.
FeatureNames = Mapping[Any, Mapping[str, Union[str, "Iterable[str]"]]]


_MASK = 2**64 - 1


class Sample:
    """A sampled neighbourhood of seeds. Its arrays are NumPy's, and share the memory in which they were made: ``torch.from_numpy`` does not copy them either.

    Attributes:
        batch: the number of the batch.
        seeds: for each seed, where it is among the vertices of its label, int64.
        vertices: the ordinals of the vertices by label, int64: seeds come first, each once, then what each hop reached.
        edges: by the label where edges begin, the hop and the label that they lead to, two arrays of int64: for each edge, where the vertex whose
            neighbour it is and the neighbour are among the vertices of their labels.
        features: features by label and name, with a row for each vertex; and by kind of edges and name, with a row for each edge.
        trees: by label, for each vertex the number of the seed that it was reached from; empty unless the sampler is ``disjoint``.
        vertices_per_hop: by label, how many vertices are seeds, and how many each hop reached first.
        edges_per_hop: the number of edges of each kind in each hop.
        cost: what the batch cost.
    """

    def __init__(self, parts: Any, batch: int, np: Any) -> None:
        seeds, vertices, edges, features, cost = parts
        self.batch = batch
        self.seeds: Numbers = np.asarray(seeds)
        self.vertices: dict[str, Numbers] = {label: np.asarray(ordinals) for label, ordinals, *_ in vertices}
        self.trees: dict[str, Numbers] = {label: np.asarray(trees) for label, _, trees, _ in vertices if trees is not None}
        self.vertices_per_hop: dict[str, list[int]] = {label: per_hop for label, _, _, per_hop in vertices}
        self.edges: dict[tuple[str, str, str], tuple[Numbers, Numbers]] = {
            kind: (np.asarray(near), np.asarray(far)) for kind, near, far, _ in edges
        }
        self.edges_per_hop: dict[tuple[str, str, str], list[int]] = {kind: per_hop for kind, _, _, per_hop in edges}
        self.features: dict[Any, dict[str, Numbers]] = {}
        for of, name, numbers in features:
            self.features.setdefault(of, {})[name] = np.asarray(numbers)
        self.cost: Cost = cost

    def __repr__(self) -> str:
        vertices = sum(map(len, self.vertices.values()))
        edges = sum(len(near) for near, _ in self.edges.values())
        return f"<hoplake.Sample {self.batch}: {len(self.seeds):,} seeds, {vertices:,} vertices, {edges:,} edges>"


class LinkSample(Sample):
    """A sampled neighbourhood of the ends of links.

    Attributes:
        links: where each link begins and ends among the vertices of these labels, two arrays of int64.
        negatives: the same of pairs that are not edges. With ``"triplet"``, those of link *i* are row *i*, and begin where it does.
    """

    def __init__(self, parts: Any, batch: int, count: int, per_link: int, np: Any) -> None:
        super().__init__(parts, batch, np)
        near_count = count if per_link else len(self.seeds) // 2
        near, far = self.seeds[:near_count], self.seeds[near_count:]
        self.links: tuple[Numbers, Numbers] = (near[:count], far[:count])
        negatives = (near[count:], far[count:])
        if per_link:
            negatives = (np.repeat(near, per_link).reshape(count, per_link), far[count:].reshape(count, per_link))
        self.negatives: tuple[Numbers, Numbers] = negatives


def link_numbers(negatives: Any, ratio: Any, count: int) -> tuple[int, int]:
    """How many negatives begin anywhere, and how many where each link does."""
    if negatives is None:
        return 0, 0
    if negatives not in ("binary", "triplet"):
        raise InvalidError(f"negatives is {shown(negatives)}; write binary or triplet")
    if isinstance(ratio, bool) or not isinstance(ratio, (int, float)) or not 0 < ratio <= 1_000_000:
        raise InvalidError(f"ratio is {shown(ratio)}; it has to be a number above 0, and at most 1,000,000")
    if negatives == "binary":
        return ceil(count * ratio), 0
    if ratio != int(ratio):
        raise InvalidError(f"ratio is {shown(ratio)}; it has to be a whole number for triplets")
    return 0, int(ratio)


def fan_outs(given: Any) -> list[tuple[str | None, str, str | None, list[int | None]]]:
    """Fan-outs as the extension takes them: numbers alone are for all edges in both directions."""
    of_kinds: dict[Any, Any] = dict(given) if is_a(given, Mapping) else {"both": given}
    made: list[tuple[str | None, str, str | None, list[int | None]]] = []
    for kind, counts in of_kinds.items():
        if is_a(counts, str, bytes) or not is_a(counts, Iterable):
            raise InvalidError(f"fan_out has to be a list of numbers, one for each hop, not {shown(counts)}")
        numbers = [None if count is None else _count(count) for count in counts]
        if is_a(kind, str):
            made.append((None, kind, None, numbers))
        elif is_a(kind, tuple) and len(kind) == 3 and all(is_a(part, str) for part in kind):
            near, hop, far = kind
            made.append((near, hop, far, numbers))
        else:
            message = f"fan_out names {shown(kind)}; write a hop, such as \"out:knows\", or (\"Person\", \"out:knows\", \"Person\")"
            raise InvalidError(message)
    return made


def _count(count: Any) -> int:
    number = whole("a number of neighbours", count)
    if number >= 2**32:
        raise InvalidError(f"a number of neighbours is {number}; it has to be less than 2³²; None takes all")
    return number


def feature_names(given: Any) -> list[tuple[Any, str, list[str], bool]]:
    """Features as the extension takes them."""
    made: list[tuple[Any, str, list[str], bool]] = []
    of_labels: Any = given or {}
    if not is_a(of_labels, Mapping) or not all(is_a(of_names, Mapping) for of_names in of_labels.values()):
        message = f"features are properties by label and name, such as {{\"Person\": {{\"x\": [\"age\", \"height\"]}}}}, not {shown(given)}"
        raise InvalidError(message)
    for of, of_names in of_labels.items():
        if not is_a(of, str) and not (is_a(of, tuple) and len(of) == 3 and all(is_a(part, str) for part in of)):
            message = f"features name {shown(of)}; write a label, or edges such as (\"Person\", \"out:knows\", \"Person\")"
            raise InvalidError(message)
        for name, properties in of_names.items():
            made.append((of, name, names(properties), not is_a(properties, str)))
    return made


def shuffled(np: Any, count: int, seed: int, epoch: int) -> Numbers:
    """The order of an epoch: a permutation that follows from the seed and the epoch, with any version of NumPy."""
    # SplitMix64 of each position, sorted.
    with np.errstate(over="ignore"):
        base = np.uint64((seed * 0x9E3779B97F4A7C15 + epoch * 0xD1B54A32D192ED03 + 0x632BE59BD9B4E019) & _MASK)
        mixed = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + base
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
        mixed ^= mixed >> np.uint64(31)
    return np.argsort(mixed, kind="stable")  # type: ignore[no-any-return]


class Seeds:
    """Seeds of several labels, one after the other."""

    def __init__(self, np: Any, labels: list[str], of_labels: Numbers, ordinals: Numbers) -> None:
        self._np = np
        self._labels = labels
        #: For each seed its label, or nothing if all have the first.
        self._of_labels = of_labels
        self._ordinals = ordinals

    @classmethod
    def given(cls, np: Any, seeds: Mapping[str, Any]) -> Seeds:
        """Seeds that were given as ordinals by label."""
        labels = list(seeds)
        ordinals = [ordinals_of(np, seeds[label], f"seeds[{label!r}]") for label in labels]
        of_labels = np.repeat(np.arange(len(labels)), [len(part) for part in ordinals])
        return cls(np, labels, of_labels, np.concatenate([*ordinals, np.empty(0, dtype=np.int64)]))

    @classmethod
    def found(cls, np: Any, found: list[tuple[str, int]]) -> Seeds:
        """Seeds that were looked up."""
        labels = list(dict.fromkeys(label for label, _ in found))
        at = {label: number for number, label in enumerate(labels)}
        of_labels = np.array([at[label] for label, _ in found], dtype=np.int64)
        return cls(np, labels, of_labels, np.array([ordinal for _, ordinal in found], dtype=np.int64))

    def __len__(self) -> int:
        return len(self._ordinals)

    def sent(self, positions: Any = None) -> list[tuple[str, bytes]]:
        """Some of them, or all, as the extension takes them: runs of one label."""
        np = self._np
        of_labels = self._of_labels if positions is None else self._of_labels[positions]
        ordinals = self._ordinals if positions is None else self._ordinals[positions]
        if not len(ordinals):
            return []
        ends = [*(np.flatnonzero(np.diff(of_labels)) + 1).tolist(), len(ordinals)]
        runs = zip([0, *ends[:-1]], ends)
        return [(self._labels[int(of_labels[begin])], ordinals[begin:end].tobytes()) for begin, end in runs]


def ordinals_of(np: Any, given: Any, what: str) -> Numbers:
    """Ordinals as an array of int64."""
    try:
        array = np.asarray(given)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidError(f"{what} is not an array: {error}") from error
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise InvalidError(f"{what} has to be whole numbers, one for each vertex, not {array.dtype} of shape {array.shape}")
    return np.ascontiguousarray(array, dtype=np.int64)  # type: ignore[no-any-return]


def times_of(np: Any, given: Any, count: int) -> Numbers | None:
    """Times of seeds as an array of int64; those of datetime64 in microseconds since 1970."""
    if given is None:
        return None
    array = np.asarray(given)
    if array.dtype.kind == "M":
        array = array.astype("datetime64[us]").astype(np.int64)
    times = ordinals_of(np, array, "times")
    if len(times) != count:
        raise InvalidError(f"there are {len(times)} times for {count} seeds; each seed needs one")
    return times


class Schedule:
    """Which seeds each batch has, and its number: batch *n* is the same in a run that begins there."""

    def __init__(
        self, np: Any, seeds: Seeds, times: Numbers | None, size: int, *, epochs: int | None, shuffle: bool, start: int, seed: int
    ) -> None:
        self._times = times
        self._np, self._seeds, self._size, self._shuffle, self._seed = np, seeds, size, shuffle, seed
        self.per_epoch = -(-len(seeds) // size)
        self._numbers = self._count(start, epochs)

    def _count(self, number: int, epochs: int | None) -> Iterator[int]:
        while self.per_epoch and (epochs is None or number < epochs * self.per_epoch):
            yield number
            number += 1

    def __iter__(self) -> Iterator[tuple[int, list[tuple[str, bytes]], bytes | None]]:
        order: Any = None
        of_epoch = -1
        for number in self._numbers:
            epoch, at = divmod(number, self.per_epoch)
            if epoch != of_epoch:
                of_epoch = epoch
                count = len(self._seeds)
                order = shuffled(self._np, count, self._seed, epoch) if self._shuffle else self._np.arange(count)
            positions = order[at * self._size : (at + 1) * self._size]
            times = None if self._times is None else self._times[positions].tobytes()
            yield number, self._seeds.sent(positions), times


