# Generated from hoplake/_async by generate_sync.py: change it there.
"""Samplers of neighbourhoods, below :meth:`Graph.sampler`."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Union

from .. import _hoplake
from .._arguments import whole, whole_or_none
from .._errors import InvalidError
from .._named import several
from .._samples import LinkSample, Sample, Schedule, Seeds, link_numbers, ordinals_of, times_of
from .._waiting import wait_sync
from .._walks import Vertex

if TYPE_CHECKING:
    from .._samples import Numbers

#: Seeds: vertices by key, or arrays of ordinals by label.
SeedVertices = Union[str, "tuple[str, int | str]", Vertex, "Iterable[Any]", "Mapping[str, Any]"]


class Sampler:
    """Samples neighbourhoods of one version of a graph: :meth:`Graph.sampler` makes it.

    It may be pickled, and works in forked and spawned processes. A sample follows from the sampler's seed, the number of the batch and the seeds, and
    from nothing else: not from the number of threads, nor from whether lists are in memory.

    The ordinal of a vertex is its place among the vertices of its label, from 0. It stays the same as long as the vertex exists.
    """

    def __init__(self, core: _hoplake.Sampler, arguments: tuple[Any, ...], np: Any) -> None:
        self._core = core
        self._arguments = arguments
        self._np = np

    @property
    def seed(self) -> int:
        """What the random choices follow from."""
        return self._arguments[5]  # type: ignore[no-any-return]

    def sample(self, seeds: SeedVertices, batch: int = 0, *, times: Any = None) -> Sample:
        """Samples the neighbourhoods of seeds, as one batch.

        Args:
            seeds: vertices by key, or a dict of ordinals by label, as :meth:`ordinals` returns them. One may be given twice.
            batch: the number of the batch. With another number, other neighbours are chosen.
            times: a time for each seed, if the sampler has one: whole numbers, or NumPy's ``datetime64``. Dates and timestamps are in microseconds since 1970.

        Raises:
            NotFoundError: a seed does not exist.
            InvalidError: a weight is not a number of 0 or more, or a vertex does not have a feature.
            LimitError: a limit of the graph was reached, such as its memory.
        """
        number = whole("batch", batch)
        given = self._seeds(seeds)
        at = times_of(self._np, times, len(given))
        task = self._core.sample(given.sent(), None if at is None else at.tobytes(), number)
        return Sample(wait_sync(task), number, self._np)

    def sample_links(
        self,
        kind: tuple[str, str, str],
        near: Any,
        far: Any,
        *,
        times: Any = None,
        negatives: Literal["binary", "triplet"] | None = None,
        ratio: float = 1,
        batch: int = 0,
    ) -> LinkSample:
        """Samples the neighbourhoods of the ends of links, next to pairs that are not edges, as one batch.

        Each end of a negative is drawn from all vertices of its label with the same chance. A pair that is an edge is drawn again, up to 5 times.

        Args:
            kind: the label where links begin, the hop, and the label where they end: ``("Person", "out:knows", "Person")``.
            near: the ordinals of the vertices where links begin.
            far: the ordinals of those where they end, as many.
            times: a time for each link, as in :meth:`sample`. Negatives have those of links.
            negatives: ``"binary"`` for pairs of random vertices, ``"triplet"`` for random ends of pairs that begin where links do.
            ratio: how many negatives there are for each link.
            batch: the number of the batch.

        Raises:
            NotFoundError: the graph does not have these edges, or an ordinal is not one of its label.
            LimitError: a limit of the graph was reached, such as its memory.
        """
        begins, ends = ordinals_of(self._np, near, "near"), ordinals_of(self._np, far, "far")
        if len(begins) != len(ends):
            raise InvalidError(f"near has {len(begins)} ordinals, and far {len(ends)}; a link has two ends")
        anywhere, per_link = link_numbers(negatives, ratio, len(begins))
        number = whole("batch", batch)
        at = times_of(self._np, times, len(begins))
        sent = None if at is None else at.tobytes()
        task = self._core.sample_links(kind, begins.tobytes(), ends.tobytes(), sent, anywhere, per_link, number)
        return LinkSample(wait_sync(task), number, len(begins), per_link, self._np)

    def batches(
        self,
        seeds: SeedVertices,
        size: int = 1024,
        *,
        times: Any = None,
        epochs: int | None = 1,
        shuffle: bool = True,
        start: int = 0,
        ahead: int = 2,
    ) -> Iterator[Sample]:
        """Yields batches of seeds with their neighbourhoods, while the next ones are sampled.

        Batch *n* follows from the sampler's seed, these seeds and their order, ``size`` and *n*. So a run that was killed goes on with ``start``, the number
        of its next batch, as if it had not been.

        Args:
            seeds: as in :meth:`sample`.
            size: how many seeds a batch has; the last of an epoch may have fewer.
            times: a time for each seed, as in :meth:`sample`.
            epochs: how often each seed is used; ``None`` does not end.
            shuffle: whether each epoch has an order of its own.
            start: the number of the first batch; batches of the second epoch go on from those of the first.
            ahead: how many batches are sampled while the caller has one. Each takes its memory from that of the graph before it begins, and waits if there
                is not enough left.

        Raises:
            As :meth:`sample`.
        """
        size, start, ahead = whole("size", size, 1), whole("start", start), whole("ahead", ahead)
        epochs = whole_or_none("epochs", epochs)
        given = self._seeds(seeds)
        at = times_of(self._np, times, len(given))
        order = Schedule(self._np, given, at, size, epochs=epochs, shuffle=bool(shuffle), start=start, seed=self.seed)
        # A batch begins in the extension, once there is memory for it.
        batches = wait_sync(self._core.batches())
        numbers: deque[int] = deque()
        for number, of_batch, of_times in order:
            batches.sample(of_batch, of_times, number)
            numbers.append(number)
            if len(numbers) > ahead:
                yield Sample(wait_sync(batches.next()), numbers.popleft(), self._np)
        while numbers:
            yield Sample(wait_sync(batches.next()), numbers.popleft(), self._np)

    def ordinals(self, vertices: SeedVertices) -> dict[str, Numbers]:
        """The ordinals of vertices by label: of those with these keys, or of all of a label, such as ``"Person"``.

        Raises:
            NotFoundError: a vertex or label does not exist.
        """
        if isinstance(vertices, str) and ":" not in vertices and "[" not in vertices:
            existing, _ = wait_sync(self._core.ordinals(vertices))
            return {vertices: self._np.asarray(existing)}
        found: dict[str, list[int]] = {}
        for label, ordinal in wait_sync(self._core.look_up(several(vertices))):
            found.setdefault(label, []).append(ordinal)
        return {label: self._np.array(ordinals, dtype=self._np.int64) for label, ordinals in found.items()}

    def keys(self, label: str, ordinals: Any) -> list[int | str]:
        """The keys of vertices of a label with these ordinals.

        Raises:
            NotFoundError: an ordinal is not one of the label.
        """
        return wait_sync(self._core.keys(label, ordinals_of(self._np, ordinals, "ordinals").tobytes()))

    def feature(self, label: str, name: str, ordinals: Any = None) -> Numbers:
        """A feature of the vertices with these ordinals, in their order, or of all that exist.

        Raises:
            NotFoundError: the sampler does not have the feature, or an ordinal is not one of the label.
        """
        if ordinals is None:
            existing, _ = wait_sync(self._core.ordinals(label))
            ordinals = self._np.asarray(existing)
        given = ordinals_of(self._np, ordinals, "ordinals")
        return self._np.asarray(wait_sync(self._core.feature(label, name, given.tobytes())))  # type: ignore[no-any-return]

    def _seeds(self, seeds: SeedVertices) -> Seeds:
        given: Any = seeds
        if isinstance(seeds, Mapping):
            return Seeds.given(self._np, given)
        return Seeds.found(self._np, wait_sync(self._core.look_up(several(given))))

    def __reduce__(self) -> Any:
        if self._core.url.startswith("memory:"):
            raise TypeError(f"{self._core.url} is in the memory of this process, and cannot be pickled for another one")
        return _sampler_of, (type(self), self._core.location(), self._core.limits(), self._arguments)

    def __repr__(self) -> str:
        return f"<hoplake.Sampler of {self._core.url}, seed {self.seed}>"


def _sampler_of(kind: type[Sampler], location: tuple[Any, ...], limits: tuple[Any, ...], arguments: tuple[Any, ...]) -> Sampler:
    """A sampler that was pickled. The first call opens its graph."""
    from .._columns import numpy

    core = _hoplake.Graph(*location).within(*limits).sampler(*arguments)
    return kind(core, arguments, numpy("a sampler"))
