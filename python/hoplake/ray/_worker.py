"""A worker of a run: an actor with some parts of the vertices.

It keeps no promise beyond its own life: what it has lost when it is started again, the driver has it load and restore. A call for a part that it does not have
is an error that says that, upon which the driver does so.
"""

from __future__ import annotations

import resource
import sys
import time
from dataclasses import dataclass
from typing import Any

from .. import _hoplake
from .._columns import Exchange
from .._errors import make
from .._sync.graph import Graph
from .._sync.graph import open as open_graph
from .._supersteps import Functions, Report, Steps, Sums
from .._waiting import wait_sync
from . import _checkpoints, _programs, _results
from ._engine import np, pa, ray


@dataclass(frozen=True)
class Job:
    """What a run computes, on which version."""

    url: str
    version: int
    bounds: list[int]
    edges: str | None
    labels: list[str]
    weight: str | None
    along: str
    #: An algorithm of the registry with its options, or the functions of a program.
    algorithm: tuple[str, dict[str, Any]] | None
    functions: Functions | None
    threads: int
    #: The most memory of a part, in bytes.
    memory: int | None
    #: The columns that will be written.
    write: _results.Written | None

    @property
    def parts(self) -> int:
        """How many parts there are."""
        return len(self.bounds) - 1

    def open(self) -> Graph:
        """The graph, within the memory of a part."""
        graph = open_graph(self.url, version=self.version)
        return graph if self.memory is None else graph.within(memory=self.memory)

    def begin(self, graph: Graph, number: int) -> _hoplake.Part:
        """Reads the lists of a part."""
        name, options = self.algorithm or (None, {})
        task = graph._core.part(
            self.bounds, number, self.edges, self.labels, self.threads, self.weight, self.along, name, options
        )
        return wait_sync(task)

    def functions_of(self, core: _hoplake.Part) -> Functions:
        """The functions of the program, for a part."""
        if self.functions is not None:
            return self.functions
        assert self.algorithm is not None

        def starts() -> tuple[Any, int]:
            rows, count = wait_sync(core.starts())
            return np.array(rows, dtype=np.int64), count

        name, options = self.algorithm
        return _programs.algorithm(name, options).functions(starts)


@dataclass(frozen=True)
class State:
    """What a part has at the end of a superstep, for the worker that it moves to. Its columns travel through Ray's object store."""

    columns: dict[str, Any]
    is_named: bool
    active: Any
    #: For each part, the rows whose signals it needs.
    serves: list[Any]


class _Part:
    """The vertices of a part, and their state."""

    def __init__(self, job: Job, graph: Graph, number: int) -> None:
        begun = time.perf_counter()
        self.core = job.begin(graph, number)
        self.functions = job.functions_of(self.core)
        self.core.check(self.functions.combine)
        self.exchange = Exchange(self.core, np, self.functions.name)
        self.steps = Steps(self.functions, self.exchange)
        self.load_seconds = time.perf_counter() - begun
        #: For each part, the rows whose signals it needs.
        self.serves: list[bytes] = []
        #: What the vertices signal in this superstep.
        self.own: Any = None

    def keep(self) -> None:
        """Counts the columns of the state, before and after a superstep, and of signals."""
        wait_sync(self.core.keep(2 * len(self.steps.columns) + 3))


def _batch(values: Any, is_sent: Any = None) -> Any:
    """Columns as the extension takes them: without a copy, also of memory that processes share."""
    columns: list[Any] = [pa.array(values)] + ([] if is_sent is None else [pa.array(is_sent.view(np.uint8))])
    return pa.RecordBatch.from_arrays(columns, ["values", "sent"][: len(columns)])


class Worker:
    """Has some parts of a run."""

    def __init__(self, job: Job) -> None:
        # The graph is opened by a call, whose exceptions reach the driver; those of a constructor are the end of an actor.
        self._job = job
        self._graph: Graph | None = None
        self._parts: dict[int, _Part] = {}
        self._busy_seconds = 0.0

    def _part(self, number: int) -> _Part:
        part = self._parts.get(number)
        if part is None:
            raise make("unavailable", f"a worker was started again, and has lost part {number}")
        return part

    def _worked(self, begun: float, waited: float = 0.0) -> float:
        """The time since a call began, without that in which it waited for others."""
        seconds = time.perf_counter() - begun - waited
        self._busy_seconds += seconds
        return seconds

    def retain(self, numbers: list[int]) -> None:
        """Forgets parts that are not among these. Also the first call, by which the driver sees that the worker runs."""
        for number in set(self._parts) - set(numbers):
            del self._parts[number]

    def load(self, number: int) -> Any:
        """Reads the lists of a part, unless it has them, and returns facts about it and, for each part, the rows that this one needs of it."""
        part = self._loaded(number)
        core = part.core
        facts = {"part": number, "vertices": len(core), "edges": core.edges, "bytes": core.bytes, "load_seconds": part.load_seconds}
        needed = [np.frombuffer(wait_sync(core.needed(source)), dtype=np.uint32) for source in range(self._job.parts)]
        facts["needed"] = int(sum(len(rows) for rows in needed))
        return facts, *needed

    def _loaded(self, number: int) -> _Part:
        part = self._parts.get(number)
        if part is None:
            if self._graph is None:
                self._graph = self._job.open()
            part = self._parts[number] = _Part(self._job, self._graph, number)
        return part

    def serve(self, number: int, needed: list[Any]) -> None:
        """Takes the rows of a part that each part needs."""
        self._part(number).serves = [ray.get(rows).tobytes() for rows in needed]

    def begin(self, number: int) -> Report:
        """Makes the first state of a part."""
        part = self._part(number)
        part.exchange.vertices.superstep = 0
        part.exchange.vertices.sums = {}
        report = part.steps.begin()
        part.keep()
        if len(part.core):
            # Before supersteps are computed for a result that there is not.
            _results.chosen(self._job.write or (), part.steps.results())
        return report

    def signals(self, number: int, superstep: int, sums: Sums) -> Any:
        """What the vertices of a part signal: how many bytes travel to other parts, the seconds that it took, and a column for each part."""
        begun = time.perf_counter()
        part = self._part(number)
        vertices = part.exchange.vertices
        vertices.superstep, vertices.sums = superstep, sums
        part.own = part.steps.signals()
        batch = _batch(part.own, part.steps.active)
        columns: list[Any] = []
        sent_bytes = 0
        for to, rows in enumerate(part.serves):
            (buffer, is_float), is_sent = wait_sync(part.core.gather(batch, rows))
            values = np.frombuffer(buffer, dtype=np.float64 if is_float else np.int64)
            sent = None if is_sent is None else np.frombuffer(is_sent, dtype=np.uint8)
            columns.append((values, sent))
            sent_bytes += 0 if to == number else len(buffer) + len(is_sent or b"")
        return (sent_bytes, self._worked(begun)), *columns

    def apply(self, number: int, superstep: int, columns: list[Any]) -> tuple[Report, float]:
        """Folds the signals of all parts, one after the other, and makes the next state of a part. Also the seconds that it took."""
        begun, waited = time.perf_counter(), 0.0
        part = self._part(number)
        functions = part.functions
        if part.own is None:
            raise make("unavailable", f"a worker was started again, and has lost the signals of part {number}")
        wait_sync(part.core.begin_fold(part.own.dtype == np.float64, functions.combine, functions.default))
        for at, column in enumerate(columns):
            # The next one is fetched while this one is folded.
            if at + 1 < len(columns):
                ray.wait([columns[at + 1]], timeout=0, fetch_local=True)
            waiting = time.perf_counter()
            values, is_sent = ray.get(column)
            waited += time.perf_counter() - waiting
            wait_sync(part.core.fold(_batch(values, is_sent)))
            del values, is_sent
        received = part.exchange.received(*wait_sync(part.core.finish_fold(_batch(part.own))))
        part.own = None
        report = part.steps.apply(received)
        return report, self._worked(begun, waited)

    def leave(self, number: int) -> State:
        """The state of a part that moves to another worker."""
        part = self._part(number)
        steps = part.steps
        serves = [np.frombuffer(rows, dtype=np.uint8) for rows in part.serves]
        return State(dict(steps.columns), isinstance(steps.state, dict), steps.active, serves)

    def take(self, number: int, state: State) -> None:
        """Reads the lists of a part, and goes on with its state."""
        part = self._loaded(number)
        part.serves = [rows.tobytes() for rows in state.serves]
        # What is in the object store is not kept.
        active = None if state.active is None else state.active.copy()
        part.steps.restore(state.columns, is_named=state.is_named, active=active)
        part.keep()

    def drop(self, number: int) -> None:
        """Forgets a part."""
        self._parts.pop(number, None)

    def write(self, number: int, objects: _checkpoints.Objects, superstep: int) -> int:
        """Writes the state of a part to the bucket, and returns its bytes."""
        steps = self._part(number).steps
        columns = dict(steps.columns)
        return objects.write_state(superstep, number, columns, is_named=isinstance(steps.state, dict), active=steps.active)

    def restore(self, number: int, objects: _checkpoints.Objects, superstep: int) -> None:
        """Reads the state of a part after a superstep."""
        part = self._part(number)
        columns, is_named, active = objects.read_state(superstep, number)
        part.steps.restore(columns, is_named=is_named, active=active)
        part.keep()

    def table(self, number: int) -> Any:
        """The labels, keys and results of the vertices of a part."""
        part = self._part(number)
        name = self._job.algorithm[0] if self._job.algorithm else ""
        results = part.steps.results()
        arrays = [pa.array(column, mask=_programs.is_missing(name, column)) for column in results.values()]
        return pa.table(wait_sync(part.core.table(pa.RecordBatch.from_arrays(arrays, list(results)))))

    def figures(self) -> dict[str, Any]:
        """What this process took."""
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        node = ray.get_runtime_context().get_node_id()
        return {"peak_bytes": peak, "node": node, "parts": len(self._parts), "busy_seconds": self._busy_seconds}
