"""The driver of a run: plans parts, runs supersteps, and commits the result.

It holds numbers and references, and no column. It is a task of Ray, which starts it again if its process or node dies; it then goes on from the last
checkpoint with new workers, since those of the old one ended with it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from .._errors import OutcomeUnknownError, UnavailableError, make
from .._sync.graph import open as open_graph
from .._supersteps import Functions, Report
from .._waiting import wait_sync
from ._checkpoints import Objects
from ._engine import RayError, RayTaskError, compute, pa, ray
from ._worker import Job, Worker

#: The longest wait between two attempts, in seconds.
_LONGEST_WAIT = 10.0


@dataclass(frozen=True)
class Request:
    """What a user wants a run to compute."""

    url: str
    id: str
    version: int | None
    edges: str | None
    labels: list[str]
    weight: str | None
    along: str
    #: The name of an algorithm, and its options as keyword arguments.
    algorithm: tuple[str, dict[str, Any]] | None
    functions: Functions
    workers: int
    write: str | None
    threads: int
    memory: int | None
    checkpoints: str
    checkpoint_seconds: float
    patience_seconds: float
    actor_options: dict[str, Any]
    progress: Callable[[str, int, int | None], None] | None


class _LostError(Exception):
    """A worker, or what it had sent, is gone; or the store did not answer it."""


def _gathered(references: list[Any]) -> list[Any]:
    """What tasks returned. Of several errors, one of the program is raised rather than those that follow from a lost worker."""
    try:
        return list(ray.get(references))
    except RayError as error:
        first: Exception = error
    lost: Exception | None = None
    # A signal of a worker is also an argument of others: the error of the program itself comes first.
    for reference in references:
        try:
            ray.get(reference)
        except RayError as error:
            cause = error.cause if isinstance(error, RayTaskError) else error
            while isinstance(cause, RayTaskError):
                cause = cause.cause
            if isinstance(cause, (RayError, UnavailableError, OutcomeUnknownError)):
                lost = lost or cause
                continue
            raise cause from None
    raise _LostError(str(lost or first)) from (lost or first)


class Driver:
    """A run under way."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._objects = Objects(request.checkpoints, request.id)
        self._functions = request.functions
        self._workers: list[Any] = []
        #: The worker of each part.
        self._placed: list[int] = []
        self._superstep = 0
        self._report = Report()
        self._progressed = time.monotonic()
        self._written = time.monotonic()
        self._facts: list[dict[str, Any]] = []
        self.figures: dict[str, Any] = {"restarts": 0, "superstep_seconds": [], "exchanged_bytes": [], "checkpoints": 0}

    def run(self) -> dict[str, Any]:
        """Runs to the end, and returns what the run came to."""
        known = self._patiently(self._objects.result)
        if known is not None:
            return {**known, "table": None}
        self._plan()
        self._start()
        while True:
            try:
                self._prepare()
                self._advance()
                return self._end()
            except _LostError as error:
                self._lost(error)

    def _plan(self) -> None:
        """Decides on the version and the parts: or takes them over from another driver with the same id."""
        request = self._request
        what = {
            "algorithm": request.algorithm[0] if request.algorithm else None,
            "options": repr(sorted(request.algorithm[1].items())) if request.algorithm else None,
            "edges": request.edges,
            "labels": request.labels,
            "weight": request.weight,
            "along": request.along,
            "combine": request.functions.combine,
            "name": request.functions.name,
        }
        plan = self._patiently(self._objects.plan)
        if plan is None:
            graph = self._patiently(lambda: open_graph(request.url, version=request.version))
            name, options = request.algorithm or (None, {})
            arguments = (request.workers, request.edges, request.labels, request.weight, name, options)
            bounds = self._patiently(lambda: wait_sync(graph._core.plan_parts(*arguments)))
            own = {"what": what, "version": graph.version, "bounds": bounds, "begun_unix_seconds": int(time.time())}
            plan = self._patiently(lambda: self._objects.agree("plan", own))
        if plan["what"] != what or (request.version not in (None, plan["version"])):
            message = f"the run {request.id} is of something else: {plan['what']} of version {plan['version']}"
            raise make("invalid", message, hint="give this run another id, or leave it out")
        self._job = Job(
            url=request.url,
            version=plan["version"],
            bounds=plan["bounds"],
            edges=request.edges,
            labels=request.labels,
            weight=request.weight,
            along=request.along,
            algorithm=request.algorithm,
            functions=None if request.algorithm else request.functions,
            threads=request.threads,
            memory=request.memory,
        )

    def _start(self) -> None:
        options = {"num_cpus": self._request.threads, "max_restarts": -1, "scheduling_strategy": "SPREAD", **self._request.actor_options}
        actor = ray.remote(Worker).options(**options)
        count = min(self._request.workers, self._job.parts)
        self._workers = [actor.remote(self._job) for _ in range(count)]
        self._placed = [part % count for part in range(self._job.parts)]

    def _worker(self, part: int) -> Any:
        return self._workers[self._placed[part]]

    def _prepare(self) -> None:
        """Has all workers read the lists that they do not have, and go back to the last checkpoint, or to the beginning."""
        parts = range(self._job.parts)
        loaded = [self._worker(part).load.options(num_returns=len(parts) + 1).remote(part) for part in parts]
        self._facts = _gathered([facts for facts, *_ in loaded])
        _gathered([self._worker(part).serve.remote(part, [needed[part + 1] for needed in loaded]) for part in parts])
        del loaded
        newest = self._patiently(self._objects.newest)
        if newest is None:
            reports = _gathered([self._worker(part).begin.remote(part) for part in parts])
            self._superstep, self._report = 0, Report.of_all(reports)
            return
        superstep, known = newest
        _gathered([self._worker(part).restore.remote(part, self._objects, superstep) for part in parts])
        self._superstep, self._report = superstep, Report(**known["report"])
        self._written = time.monotonic()

    def _is_over(self) -> bool:
        if self._superstep == 0:
            return self._functions.max_supersteps == 0 or not any(facts["vertices"] for facts in self._facts)
        return self._functions.is_over(self._superstep, self._report)

    def _advance(self) -> None:
        """Runs supersteps until the program is over."""
        while not self._is_over():
            begun = time.perf_counter()
            step = self._superstep + 1
            parts = range(self._job.parts)
            sums = self._report.sums
            sent = [self._worker(part).signals.options(num_returns=len(parts) + 1).remote(part, step, sums) for part in parts]
            # All signals are asked for before any is waited for, so that no worker waits for another part of its own.
            applied = [self._worker(part).apply.remote(part, step, [columns[part + 1] for columns in sent]) for part in parts]
            found = _gathered([sent_bytes for sent_bytes, *_ in sent] + applied)
            del sent
            self._superstep, self._report = step, Report.of_all(found[len(parts) :])
            self._progressed = time.monotonic()
            self.figures["superstep_seconds"].append(time.perf_counter() - begun)
            self.figures["exchanged_bytes"].append(sum(found[: len(parts)]))
            if not self._is_over():
                self._checkpoint()
            if self._request.progress is not None:
                text = f"superstep {step}{self._report}"
                self._request.progress(text, step, self._functions.max_supersteps)

    def _checkpoint(self) -> None:
        """Writes the states of all parts, if the last checkpoint is old enough. One that the store does not take is tried again after the next superstep."""
        if time.monotonic() - self._written < self._request.checkpoint_seconds:
            return
        step, parts = self._superstep, range(self._job.parts)
        try:
            _gathered([self._worker(part).write.remote(part, self._objects, step) for part in parts])
            self._objects.agree(f"{step:06}/list", {"report": asdict(self._report), "written_unix_seconds": int(time.time())})
            self._objects.remove(before=step)
        except (_LostError, UnavailableError, OutcomeUnknownError):
            # If a worker was lost, the next superstep says so.
            return
        self._written = time.monotonic()
        self.figures["checkpoints"] += 1

    def _end(self) -> dict[str, Any]:
        parts = range(self._job.parts)
        tables = _gathered([self._worker(part).table.remote(part) for part in parts if self._facts[part]["vertices"]])
        self.figures["workers"] = _gathered([worker.figures.remote() for worker in self._workers])
        self.figures["parts"] = self._facts
        known: dict[str, Any] = {
            "id": self._request.id,
            "computed_version": self._job.version,
            "supersteps": self._superstep,
            "version": None,
            "vertices": sum(table.num_rows for table in tables),
            "figures": self.figures,
        }
        if self._request.write is None:
            table = _together(tables) if tables else None
            self._patiently(self._objects.remove)
            return {**known, "table": table}
        known["version"] = self._patiently(lambda: self._commit(tables, str(self._request.write)))
        # A driver that comes later with the id finds what the run came to.
        known = self._patiently(lambda: self._objects.agree("result", known))
        self._patiently(lambda: self._objects.remove(keep=("result",)))
        return {**known, "table": None}

    def _commit(self, tables: list[Any], property: str) -> int:
        """Writes the values as a property, in one commit, and returns the version. Another attempt, or another driver, changes nothing more."""
        graph = open_graph(self._job.url, version=self._job.version)
        message = f"{property}: {self._functions.name} of the run {self._request.id}"
        commit = graph.begin(message, idempotency_key=f"hoplake.ray {self._request.id}")
        known = {label.name for label in graph.schema.labels if property in label.properties}
        key_types = {label.name: label.key_type for label in graph.schema.labels}
        for table in tables:
            for label in table.column("label").unique().to_pylist():
                own = table.filter(compute.equal(table.column("label"), label))
                # Next to keys of another type they are text.
                keys = own.column("key").cast(pa.int64() if key_types[label] == "int64" else pa.string())
                values = own.column(2)
                there = compute.is_valid(values)
                rows = pa.table({"key": keys, property: values}).filter(there)
                if rows.num_rows:
                    commit.upsert_vertices(label, rows)
                if label in known:
                    # In a table a null changes nothing, but what an earlier run wrote has to go.
                    for key in keys.filter(compute.invert(there)).to_pylist():
                        commit.upsert_vertex(label, key, **{property: None})
        return commit.commit().version

    def _lost(self, error: _LostError) -> None:
        """Waits before the next attempt, unless nothing has gone on for too long."""
        waited = time.monotonic() - self._progressed
        if waited > self._request.patience_seconds:
            message = f"the run {self._request.id} has not gone on for {waited:.0f} seconds: {error}"
            raise make("unavailable", message, hint="start it again with the same id: it goes on from its last checkpoint") from error
        self.figures["restarts"] += 1
        time.sleep(min(_LONGEST_WAIT, 0.2 + waited / 10))

    def _patiently(self, call: Callable[[], Any]) -> Any:
        """Calls until the store answers."""
        begun = time.monotonic()
        while True:
            try:
                return call()
            except (UnavailableError, OutcomeUnknownError):
                waited = time.monotonic() - begun
                if waited > self._request.patience_seconds:
                    raise
                time.sleep(min(_LONGEST_WAIT, 0.2 + waited / 10))


def _together(tables: list[Any]) -> Any:
    """The tables of parts as one. Keys of several types are text, as they are within a table."""
    at = tables[0].schema.get_field_index("key")
    if len({table.schema.field(at).type for table in tables}) > 1:
        as_text = pa.field("key", pa.string(), nullable=False)
        tables = [table.set_column(at, as_text, table.column(at).cast(pa.string())) for table in tables]
    return pa.concat_tables(tables)


def drive(request: Request) -> dict[str, Any]:
    """Runs to the end, in a task of Ray."""
    return Driver(request).run()
