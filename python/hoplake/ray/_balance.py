"""Which parts move away from a worker that lags.

A worker lags if its parts took more than twice the median of all workers in three supersteps in a row. Half of its parts then move to the fastest worker, if
what was waited for already costs more than reading their lists again, and if the fastest one is expected to be done with them sooner. A part moves once, so
that none goes back and forth between workers that are slow in turn, or for a part that takes long anywhere. Decisions need times alone: no Ray.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from statistics import median_low

#: A worker lags if it takes so many times the median,
_TIMES = 2.0
#: in so many supersteps in a row.
_SUPERSTEPS = 3


@dataclass(frozen=True)
class Move:
    """Parts that leave a worker for another one."""

    parts: list[int]
    origin: int
    target: int


class Balance:
    """The worker of each part, and how long each part takes."""

    def __init__(self, placed: list[int], *, most: int) -> None:
        #: The worker of each part.
        self.placed = placed
        #: How many parts a worker may have.
        self._most = most
        self._settled: set[int] = set()
        self._work: list[int] = [1] * len(placed)
        self._load_seconds: list[float] = [0.0] * len(placed)
        self.restart()

    def restart(self) -> None:
        """Forgets times: those of workers that were started again say nothing about the new ones."""
        self._seconds: deque[list[float]] = deque(maxlen=_SUPERSTEPS)
        self._lagging: dict[int, int] = {}
        self._waited: dict[int, float] = {}

    def weigh(self, work: list[int], load_seconds: list[float]) -> None:
        """Takes the vertices and edges of each part, and how long their lists took to read."""
        self._work = [max(one, 1) for one in work]
        self._load_seconds = load_seconds

    def parts(self, worker: int) -> list[int]:
        """The parts of a worker."""
        return [part for part, placed in enumerate(self.placed) if placed == worker]

    def observe(self, seconds: list[float]) -> None:
        """Takes the time that each part took in a superstep."""
        self._seconds.append(seconds)
        took = self._by_worker(seconds)
        # Of two workers that is the faster one, which the other one can take twice the time of.
        median = median_low(took.values())
        for worker, own in took.items():
            if own > _TIMES * median:
                self._lagging[worker] = self._lagging.get(worker, 0) + 1
                self._waited[worker] = self._waited.get(worker, 0.0) + own - median
            else:
                self._lagging.pop(worker, None)
                self._waited.pop(worker, None)

    def next_move(self) -> Move | None:
        """What is to move now, if anything."""
        lagging = [worker for worker, times in self._lagging.items() if times >= _SUPERSTEPS]
        if not lagging:
            return None
        seconds = [float(sum(own)) for own in zip(*self._seconds)]
        took = self._by_worker(seconds)
        for origin in sorted(lagging, key=lambda worker: -took[worker]):
            room = {worker: self._most - len(self.parts(worker)) for worker in took if worker != origin}
            targets = [worker for worker, free in room.items() if free > 0]
            if not targets:
                continue
            target = min(targets, key=lambda worker: took[worker])
            parts = self._worth_moving(origin, target, took, room[target])
            if parts and self._waited[origin] >= sum(self._load_seconds[part] for part in parts):
                return Move(parts, origin, target)
        return None

    def _worth_moving(self, origin: int, target: int, took: dict[int, float], room: int) -> list[int]:
        own = self.parts(origin)
        pace = took[target] / sum(self._work[part] for part in self.parts(target))
        chosen: list[int] = []
        expected = took[target]
        for part in own:
            if len(chosen) == min(room, (len(own) + 1) // 2):
                break
            longer = expected + pace * self._work[part]
            if part not in self._settled and longer < took[origin]:
                chosen.append(part)
                expected = longer
        return chosen

    def moved(self, part: int, target: int) -> None:
        """A part has moved. Times of both workers begin again."""
        for worker in (self.placed[part], target):
            self._lagging.pop(worker, None)
            self._waited.pop(worker, None)
        self.placed[part] = target
        self._settled.add(part)

    def stays(self, part: int) -> None:
        """A part could not move, and is not tried again."""
        self._settled.add(part)

    def _by_worker(self, seconds: list[float]) -> dict[int, float]:
        """The time of each worker that has parts."""
        took: dict[int, float] = {}
        for worker, own in zip(self.placed, seconds):
            took[worker] = took.get(worker, 0.0) + own
        return took
