"""What users call."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

from .._arguments import Location, whole_or_none
from .._columns import Vertices
from .._errors import Error, make
from .._supersteps import Combine, Functions, Initial
from . import _arguments, _programs
from ._driver import Request, drive, give_up
from ._engine import RaySystemError, RayTaskError, ray
from ._worker import Worker

if TYPE_CHECKING:
    import pandas
    import pyarrow

#: How long a cancelled driver may take to end.
_CANCEL_SECONDS = 5


@dataclass(frozen=True)
class Result:
    """What a run came to."""

    #: The name of the run. Another run with the same id goes on from its checkpoints, or returns the same result.
    id: str
    #: The version of the graph that was computed.
    computed_version: int
    #: The version that has the values as a property, if they were written.
    version: int | None
    #: How many supersteps it took.
    supersteps: int
    #: How many vertices took part.
    vertices: int
    #: Labels, keys and values, unless they were written.
    table: pyarrow.Table | None
    #: What it took: ``superstep_seconds``, ``exchanged_bytes`` of each superstep, ``restarts``, ``checkpoints``, how many parts have ``moved``; ``parts``
    #: with the vertices, edges and bytes of each, and ``workers`` with the peak of their memory and the seconds that they worked.
    figures: dict[str, Any]

    def to_arrow(self) -> pyarrow.Table:
        """Labels, keys and values as a table of Arrow."""
        if self.table is None:
            message = f"the values of the run {self.id} were written, as version {self.version} of the graph"
            raise make("invalid", message, hint="read them with graph.scan, or leave out write")
        return self.table

    def to_pandas(self) -> pandas.DataFrame:
        """The same as a data frame of pandas."""
        return self.to_arrow().to_pandas()  # pyright: ignore[reportUnknownMemberType]

    def __repr__(self) -> str:
        written = "" if self.version is None else f", written as version {self.version}"
        return f"<hoplake.ray.Result {self.id}: {self.vertices:,} vertices in {self.supersteps} supersteps{written}>"


def run(
    url: Location,
    algorithm: str,
    /,
    *,
    workers: int = 2,
    parts: int | None = None,
    write: str | Mapping[str, str] | Iterable[str] | None = None,
    id: str | None = None,
    version: int | None = None,
    edges: str | None = None,
    labels: str | Iterable[str] | None = None,
    threads: int = 1,
    memory: int | None = None,
    checkpoints: Location | None = None,
    checkpoint_seconds: float | timedelta = 60.0,
    patience_seconds: float | timedelta = 600.0,
    actor_options: Mapping[str, Any] | None = None,
    progress: Callable[[str, int, int | None], None] | None = None,
    **options: Any,
) -> Result:
    """Computes an algorithm on many machines: ``pagerank``, ``components``, ``communities``, ``levels``, ``paths`` or ``degrees``.

    The result is that of :meth:`hoplake.Graph.run`, except for the last bits of floats. Each worker is an actor of Ray, which has a part of the vertices and reads
    their edges once. A worker, a node or the driver that dies is replaced, and the run goes on from the last checkpoint.

    Args:
        url: where the graph is: a location that all nodes reach.
        algorithm: the name of the algorithm.
        workers: how many actors there are.
        parts: how many parts the vertices are cut into; twice as many as workers by default, up to 128. Parts move from a worker that lags.
        write: the property that the values are written as, in one commit. Without it the result has a table of them.
        id: the name of the run. Start a run that was given up again with its id: it goes on from its last checkpoint.
        version: the version to compute; the newest by default.
        edges: which edges take part, and in which direction they are followed, as in :meth:`hoplake.Graph.run`.
        labels: vertices with these labels take part, with or without such edges.
        threads: the threads of a worker, and the processors that Ray reserves for it.
        memory: the most memory of a worker, in bytes. Its parts have equal shares, and there is one more for a part that moves to it.
        checkpoints: where states are kept meanwhile; below the graph by default.
        checkpoint_seconds: the least time between two checkpoints; ``math.inf`` for none.
        patience_seconds: how long the run waits for a store or for workers before it fails.
        actor_options: further options of Ray for workers, such as ``{"resources": {"large": 1}}``.
        progress: a function that is called after each superstep, in the process of the driver.
        options: options of the algorithm, as in :meth:`hoplake.Graph.run`.

    Raises:
        InvalidError: the algorithm does not run by parts, or has no such option.
        ConflictError: another writer has changed the vertices since the version that was computed.
        UnavailableError: nothing went on for ``patience_seconds``.
    """
    known = _programs.algorithm(algorithm, options)

    def no_starts() -> tuple[Any, int]:
        raise AssertionError("the driver has no vertices")

    functions = known.functions(no_starts)
    return _drive(
        url,
        functions,
        algorithm=(algorithm, known.options),
        selection=_arguments.selection(edges, labels, known.weight, known.along),
        workers=workers,
        parts=parts,
        write=write,
        id=id,
        version=version,
        threads=threads,
        memory=memory,
        checkpoints=checkpoints,
        checkpoint_seconds=checkpoint_seconds,
        patience_seconds=patience_seconds,
        actor_options=actor_options,
        progress=progress,
    )


def pregel(
    url: Location,
    /,
    *,
    initial: Initial,
    signal: Callable[[Any, Vertices], Any],
    apply: Callable[[Any, Any, Vertices], Any],
    combine: Combine = "sum",
    aggregate: Callable[[Any, Vertices], Any] | None = None,
    edges: str | None = None,
    labels: str | Iterable[str] | None = None,
    weight: str | None = None,
    along: Literal["times", "plus"] = "times",
    default: float | None = None,
    max_supersteps: int | None = None,
    tolerance: float | None = None,
    name: str = "value",
    result: str | Iterable[str] | None = None,
    workers: int = 2,
    parts: int | None = None,
    write: str | Mapping[str, str] | Iterable[str] | None = None,
    id: str | None = None,
    version: int | None = None,
    threads: int = 1,
    memory: int | None = None,
    checkpoints: Location | None = None,
    checkpoint_seconds: float | timedelta = 60.0,
    patience_seconds: float | timedelta = 600.0,
    actor_options: Mapping[str, Any] | None = None,
    progress: Callable[[str, int, int | None], None] | None = None,
) -> Result:
    """Runs a vertex program over columns of NumPy on many machines.

    Functions and their arguments are those of :meth:`hoplake.Graph.pregel`, and the result is the same except for the last bits of floats, if they keep to two rules.
    They see the vertices of a part: ``len(vertices)`` numbers in each column, of ``vertices.count`` in the graph; what depends on all of them is
    computed by ``aggregate``, and is in ``vertices.sums`` in the next superstep. And they return the same for the same arguments, in whichever process,
    since a superstep is repeated if a worker is lost, and parts move from a worker that lags.

    ``write="rank"`` writes the first column of the result as the property ``rank``; ``write={"rank": "rank", "steps": "n"}`` writes columns as the
    properties that they are paired with, and ``write=["rank", "steps"]`` as those of their own names, in one commit. Other arguments are those of
    :func:`run`.

    Raises:
        InvalidError: a function returned something else than numbers for all vertices of its part.
    """
    _arguments.one_of("combine", combine, "sum min max mean count mode")
    functions = Functions.checked(
        initial=initial,
        signal=signal,
        apply=apply,
        aggregate=aggregate,
        combine=combine,
        default=default,
        tolerance=tolerance,
        max_supersteps=whole_or_none("max_supersteps", max_supersteps),
        name=name,
        result=_arguments.text_list("result", result),
    )
    return _drive(
        url,
        functions,
        algorithm=None,
        selection=_arguments.selection(edges, labels, weight, along),
        workers=workers,
        parts=parts,
        write=write,
        id=id,
        version=version,
        threads=threads,
        memory=memory,
        checkpoints=checkpoints,
        checkpoint_seconds=checkpoint_seconds,
        patience_seconds=patience_seconds,
        actor_options=actor_options,
        progress=progress,
    )


def _drive(
    url: Location,
    functions: Functions,
    *,
    algorithm: tuple[str, dict[str, Any]] | None,
    selection: tuple[str | None, list[str], str | None, str],
    workers: int,
    parts: int | None,
    write: str | Mapping[str, str] | Iterable[str] | None,
    id: str | None,
    version: int | None,
    threads: int,
    memory: int | None,
    checkpoints: Location | None,
    checkpoint_seconds: float | timedelta,
    patience_seconds: float | timedelta,
    actor_options: Mapping[str, Any] | None,
    progress: Callable[[str, int, int | None], None] | None,
) -> Result:
    where = _arguments.shared(url)
    edges, labels, weight, along = selection
    count, cut = _arguments.workers_and_parts(workers, parts)
    _arguments.function_or_none("progress", progress)
    request = Request(
        url=where,
        id=_arguments.run_id(id),
        is_named=id is not None,
        call=secrets.token_hex(4),
        version=whole_or_none("version", version),
        edges=edges,
        labels=labels,
        weight=weight,
        along=along,
        algorithm=algorithm,
        functions=functions,
        workers=count,
        parts=cut,
        write=_arguments.written(write),
        threads=_arguments.threads(threads),
        memory=whole_or_none("memory", memory),
        checkpoints=where if checkpoints is None else _arguments.shared(checkpoints, "checkpoints"),
        checkpoint_seconds=_arguments.seconds("checkpoint_seconds", checkpoint_seconds),
        patience_seconds=_arguments.seconds("patience_seconds", patience_seconds),
        actor_options=_arguments.actor_options(actor_options, ray.remote(Worker)),
        progress=progress,
    )
    return _driven(request)


def _driven(request: Request) -> Result:
    """Has a task of Ray drive a run, and waits for its result."""
    # Ray starts the task again if its process or node dies, and not if the run fails.
    task = ray.remote(drive).options(num_cpus=0, max_retries=-1, name=f"hoplake.ray {request.id}")
    try:
        reference = task.remote(request)
    except Error:
        raise
    except Exception as error:  # whatever an argument raises when it is pickled
        _arguments.check_pickles(_sent(request), error)
        raise
    try:
        found = ray.get(reference)
    except RayTaskError as error:
        cause = error.cause if isinstance(error.cause, Exception) else error
        if isinstance(cause, RaySystemError):
            # What cannot be read where it arrives: its last line says what is missing.
            message = f"an argument cannot be read by other processes: {str(cause).strip().splitlines()[-1]}"
            raise make("invalid", message, hint="nodes need the modules that functions use; runtime_env of ray.init sends them") from None
        raise cause from None
    except BaseException:
        # Ctrl-C: workers end with the driver. What goes wrong in that is not what the caller has to know.
        with suppress(Exception):
            ray.cancel(reference, force=True)
            ray.wait([reference], timeout=_CANCEL_SECONDS)
            give_up(request)
        raise
    return Result(**found)


def _sent(request: Request) -> dict[str, Any]:
    """Arguments that reach other processes as they are, by their names."""
    functions = request.functions
    options = request.algorithm[1] if request.algorithm else {}
    # The functions of an algorithm are not the user's.
    own = {} if request.algorithm else {name: getattr(functions, name) for name in ("initial", "signal", "apply", "aggregate", "default", "tolerance")}
    names = {name: f"{name}_" if name == "from" else name.replace("-", "_") for name in options}
    given = {names[name]: value for name, value in options.items()}
    return {**own, **given, "progress": request.progress, "actor_options": request.actor_options}
