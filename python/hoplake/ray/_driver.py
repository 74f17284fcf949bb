"""The driver of a run: plans parts, runs supersteps, and commits the result.

It holds numbers and references, and no column. It is a task of Ray, which starts it again if its process or node dies; it then goes on from the last
checkpoint with new workers, since those of the old one ended with it.
"""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from .._errors import Error, NotFoundError, OutcomeUnknownError, UnavailableError, make
from .._sync.graph import Graph
from .._sync.graph import open as open_graph
from .._supersteps import Functions, Report
from .._waiting import wait_sync
from . import _results
from ._balance import Balance
from ._checkpoints import Objects
from ._engine import GetTimeoutError, RayError, RayTaskError, ray
from ._worker import Job, Worker

#: The longest wait between two attempts, in seconds.
_LONGEST_WAIT = 10.0

#: Why a store does not answer, where waiting does not help.
_LASTING = ("credentials", "denied", "no_bucket", "region")


@dataclass(frozen=True)
class Request:
    """What a user wants a run to compute."""

    url: str
    id: str
    #: Whether the user chose the id, and so can call again with it.
    is_named: bool
    #: A name for the call, which a driver that is started again has, too.
    call: str
    version: int | None
    edges: str | None
    labels: list[str]
    weight: str | None
    along: str
    #: The name of an algorithm, and its options as keyword arguments.
    algorithm: tuple[str, dict[str, Any]] | None
    functions: Functions
    workers: int
    parts: int
    write: _results.Written | None
    threads: int
    memory: int | None
    checkpoints: str
    checkpoint_seconds: float
    patience_seconds: float
    actor_options: dict[str, Any]
    progress: Callable[[str, int, int | None], None] | None

    @property
    def tag(self) -> str:
        """The tag that keeps the version from being removed.

        Drivers that write the result share one: who ends first has written it for all. Each of those that return a table needs the version itself.
        """
        return f"hoplake.ray-{self.id}" if self.write else f"hoplake.ray-{self.id}-{self.call}"

    @property
    def memory_of_part(self) -> int | None:
        """An equal share for each part that a worker may have."""
        return None if self.memory is None else self.memory // self.most_parts

    @property
    def most_parts(self) -> int:
        """How many parts a worker may have: with a limit of memory, room for one that moves to it."""
        planned = -(-self.parts // self.workers)
        if self.workers == 1:
            return planned
        return self.parts if self.memory is None else planned + 1


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
            if isinstance(cause, (RayError, OutcomeUnknownError)) or (isinstance(cause, UnavailableError) and cause.reason not in _LASTING):
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
        self._superstep = 0
        self._report = Report()
        #: The last superstep that was ever computed, and since when there was trouble before the next one.
        self._furthest = 0
        self._troubled: float | None = None
        self._written = time.monotonic()
        self._facts: list[dict[str, Any]] = []
        self.figures: dict[str, Any] = {"restarts": 0, "superstep_seconds": [], "exchanged_bytes": [], "checkpoints": 0, "moved": 0}

    def run(self) -> dict[str, Any]:
        """Runs to the end, and returns what the run came to."""
        known = self._known()
        if known is not None:
            return known
        try:
            return self._run()
        except Exception as error:
            # Another driver may have ended the run, and removed what this one needs.
            if isinstance(error, Error) and (known := self._known()) is not None:
                return known
            if not isinstance(error, (UnavailableError, OutcomeUnknownError)):
                self._abandon()
            raise

    def _known(self) -> dict[str, Any] | None:
        """What the run came to, if it has ended."""
        known = self._patiently(self._objects.result)
        if known is None:
            return None
        # A driver that died may not have done it.
        self._clean(keep=("result",))
        return {**known, "table": None}

    def _run(self) -> dict[str, Any]:
        self._plan()
        self._start()
        try:
            while True:
                try:
                    self._prepare()
                    self._advance()
                    return self._end()
                except _LostError as error:
                    self._lost(error)
        finally:
            # Otherwise they keep their processors as long as the exception is kept, which has the frames of this run.
            for worker in self._workers:
                ray.kill(worker)

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
        plan, is_new = self._patiently(self._objects.plan), False
        if plan is None:
            graph = self._patiently(self._open)
            name, options = request.algorithm or (None, {})
            arguments = (request.parts, request.edges, request.labels, request.weight, name, options)
            bounds = self._patiently(lambda: wait_sync(graph._core.plan_parts(*arguments)))
            own = {
                "what": what,
                "version": graph.version,
                "bounds": bounds,
                "token": secrets.token_hex(4),
                "begun_unix_seconds": int(time.time()),
            }
            plan = self._patiently(lambda: self._objects.agree("plan", own))
            is_new = plan["token"] == own["token"]
        if plan["what"] != what or (request.version not in (None, plan["version"])):
            message = f"the run {request.id} is of something else: {plan['what']} of version {plan['version']}"
            raise make("invalid", message, hint="give this run another id, or leave it out")
        self._objects.token = plan["token"]
        try:
            self._tag(plan["version"])
        except NotFoundError:
            # A vacuum was faster. Without a plan another attempt begins with a version that is there.
            if is_new:
                self._objects.remove()
            raise
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
            memory=request.memory_of_part,
            write=request.write,
        )

    def _open(self) -> Graph:
        """The graph at the version to compute: the one that this driver has tagged, if another one has ended the run since and removed the plan."""
        if self._request.version is None:
            try:
                return open_graph(self._request.url, tag=self._request.tag)
            except NotFoundError:
                # It is the first attempt.
                pass
        return open_graph(self._request.url, version=self._request.version)

    def _tag(self, version: int) -> None:
        """Keeps a version from being removed by a vacuum. Nothing changes if it has the tag."""
        try:
            self._patiently(lambda: open_graph(self._request.url).tag(self._request.tag, version))
        except NotFoundError:
            raise
        except Error:
            # Who may only read cannot keep a version, and can compute it all the same.
            if self._request.write is not None:
                raise

    def _untag(self) -> None:
        try:
            open_graph(self._request.url).untag(self._request.tag)
        except NotFoundError:
            # Another driver of the run has removed it.
            return

    def _start(self) -> None:
        options = {"num_cpus": self._request.threads, "max_restarts": -1, "scheduling_strategy": "SPREAD", **self._request.actor_options}
        actor = ray.remote(Worker).options(**options)
        count = min(self._request.workers, self._job.parts)
        self._workers = [actor.remote(self._job) for _ in range(count)]
        self._balance = Balance([part % count for part in range(self._job.parts)], most=self._request.most_parts)

    def _worker(self, part: int) -> Any:
        return self._workers[self._balance.placed[part]]

    def _settle(self) -> None:
        """Waits until all workers run, and has them forget parts that are not theirs."""
        references = [worker.retain.remote(self._balance.parts(number)) for number, worker in enumerate(self._workers)]
        patience = self._request.patience_seconds
        try:
            ray.get(references, timeout=None if patience == math.inf else patience)
        except GetTimeoutError:
            needed, there = len(self._workers) * self._request.threads, ray.cluster_resources().get("CPU", 0)
            message = (
                f"Ray has not started the {len(self._workers)} workers of the run {self._request.id} in {patience:.0f} seconds: "
                f"they ask for {needed} processors, and the cluster has {there:g}, with those of others"
            )
            hint = "`ray status` shows what they wait for: take fewer workers or threads, or start it again with the same id once there are more nodes"
            raise make("unavailable", message, hint=hint) from None
        except RayError as error:
            if getattr(error, "actor_init_failed", False):
                message = f"workers could not be started: {error}"
                raise make("invalid", message, hint="nodes need the modules that functions of the program use") from None
            raise _LostError(str(error)) from error

    def _prepare(self) -> None:
        """Has all workers read the lists that they do not have, and go back to the last checkpoint, or to the beginning."""
        self._settle()
        parts = range(self._job.parts)
        loaded = [self._worker(part).load.options(num_returns=len(parts) + 1).remote(part) for part in parts]
        self._facts = _gathered([facts for facts, *_ in loaded])
        _gathered([self._worker(part).serve.remote(part, [needed[part + 1] for needed in loaded]) for part in parts])
        del loaded
        self._balance.restart()
        self._balance.weigh(
            [facts["vertices"] + facts["edges"] for facts in self._facts], [facts["load_seconds"] for facts in self._facts]
        )
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
            found = _gathered([figures for figures, *_ in sent] + applied)
            del sent
            signalled, done = found[: len(parts)], found[len(parts) :]
            self._superstep, self._report = step, Report.of_all([report for report, _ in done])
            if step > self._furthest:
                self._furthest, self._troubled = step, None
            self.figures["superstep_seconds"].append(time.perf_counter() - begun)
            self.figures["exchanged_bytes"].append(sum(sent_bytes for sent_bytes, _ in signalled))
            self._balance.observe([before + after for (_, before), (_, after) in zip(signalled, done)])
            if not self._is_over():
                self._checkpoint()
                self._move()
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
            self._objects.agree_on_list(step, {"report": asdict(self._report), "written_unix_seconds": int(time.time())})
            self._objects.remove(before=step)
        except (_LostError, UnavailableError, OutcomeUnknownError):
            # If a worker was lost, the next superstep says so.
            return
        self._written = time.monotonic()
        self.figures["checkpoints"] += 1

    def _move(self) -> None:
        """Moves parts from a worker that lags. Bounds and numbers of parts stay, and so does every bit of the result."""
        move = self._balance.next_move()
        if move is None:
            return
        origin, target = self._workers[move.origin], self._workers[move.target]
        for part in move.parts:
            try:
                _gathered([target.take.remote(part, origin.leave.remote(part))])
            except (_LostError, Error):
                # It stays where it is: no memory, or no answer of the store. If a worker was lost, the next superstep says so.
                self._balance.stays(part)
                target.drop.remote(part)
                continue
            self._balance.moved(part, move.target)
            origin.drop.remote(part)
            self.figures["moved"] += 1

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
        write = self._request.write
        if write is None:
            table = _results.together(tables) if tables else None
            self._clean()
            return {**known, "table": table}
        known["version"] = self._patiently(lambda: self._commit(tables, write))
        # A driver that comes later with the id finds what the run came to.
        known = self._patiently(lambda: self._objects.agree("result", known))
        self._clean(keep=("result",))
        return {**known, "table": None}

    def _commit(self, tables: list[Any], write: _results.Written) -> int:
        graph = open_graph(self._job.url, version=self._job.version)
        return _results.commit(graph, tables, write, self._functions.name, self._request.id)

    def _clean(self, keep: tuple[str, ...] = ()) -> None:
        """Removes what the run needs no more."""
        self._patiently(lambda: self._objects.remove(keep=keep))
        try:
            self._patiently(self._untag)
        except Error:
            # Who may only read has set no tag.
            if self._request.write is not None:
                raise

    def _abandon(self) -> None:
        """Leaves a run that has failed, and would fail again.

        With an id of the user's, checkpoints stay for a call with the same id, and so does a tag that other drivers may share.
        """
        try:
            if not self._request.is_named or self._request.write is None:
                self._untag()
            if not self._request.is_named:
                self._objects.remove()
        except Error:
            return

    def give_up(self) -> None:
        """Removes what a run leaves that was cancelled, and that no call goes on with."""
        if not self._request.is_named:
            self._abandon()

    def _lost(self, error: _LostError) -> None:
        """Waits before the next attempt, unless nothing has gone on for too long."""
        now = time.monotonic()
        self._troubled = now if self._troubled is None else self._troubled
        waited = now - self._troubled
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
            except (UnavailableError, OutcomeUnknownError) as error:
                waited = time.monotonic() - begun
                if waited > self._request.patience_seconds or error.reason in _LASTING:
                    raise
                time.sleep(min(_LONGEST_WAIT, 0.2 + waited / 10))


def give_up(request: Request) -> None:
    """Removes what a cancelled run leaves: nothing, if its user may call again with its id."""
    Driver(request).give_up()


def drive(request: Request) -> dict[str, Any]:
    """Runs to the end, in a task of Ray."""
    return Driver(request).run()
