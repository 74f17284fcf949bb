"""Vertex programs over columns: the loop of supersteps below :meth:`Graph.pregel`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from numbers import Real
from typing import Any, Literal, Union

from .. import _hoplake
from .._arguments import as_text, is_a, names_or_all, shown
from .._columns import Exchange, Vertices, numpy
from .._errors import make
from .._waiting import Progress, Reporter, wait_async
from .computation import Computation

#: What a vertex makes of the signals that it receives.
Combine = Literal["sum", "min", "max", "mean", "count", "mode"]

#: The first state: a number, an array, a dict of columns by name, or a function of the vertices that returns one of them.
Initial = Union["Callable[[Vertices], Any]", Any]


class _Supersteps:
    """A program that was begun."""

    def __init__(
        self,
        core: _hoplake.Program,
        exchange: Exchange,
        signal: Callable[[Any, Vertices], Any],
        combine: Combine,
        apply: Callable[[Any, Any, Vertices], Any],
        default: float | None,
        tolerance: float | None,
    ) -> None:
        self._core = core
        self._exchange = exchange
        self._signal = signal
        self._combine = combine
        self._apply = apply
        self._default = default
        self._tolerance = tolerance
        self.state: Any = None
        self.superstep = 0
        self.is_converged = False
        self.residual: float | None = None
        #: Which vertices signal: all without it.
        self._active: Any = None

    async def begin(self, initial: Initial, names: list[str]) -> None:
        """Makes the first state. Without vertices no function is called, so that none has to expect that; the state has columns of these names."""
        if callable(initial):
            is_empty = len(self._core) == 0
            initial = dict.fromkeys(names, 0.0) if is_empty else initial(self._exchange.vertices)
        self.state = self._exchange.state(initial, "initial")
        # The states before and after a superstep, signals with who sends them, and what is received.
        await wait_async(self._core.keep(2 * len(self._exchange.columns(self.state)) + 4))
        self.is_converged = len(self._core) == 0

    async def next(self) -> str:
        """Computes a superstep, and returns a text about it."""
        exchange = self._exchange
        self.superstep += 1
        exchange.vertices.superstep = self.superstep
        signals = exchange.column(self._signal(self.state, exchange.vertices), "what signal returned")
        column, is_float = exchange.sent(signals)
        del signals
        active = None if self._active is None else self._active.tobytes()
        task = self._core.combine(column, is_float, active, self._combine, self._default)
        del column, active
        received = exchange.received(*await wait_async(task))
        applied: Any = self._apply(self.state, received, exchange.vertices)
        del received
        applied, goes_on = _parts(applied)
        before, self.state = self.state, exchange.state(applied, "what apply returned", self.state)
        return self._look(before, goes_on)

    def _look(self, before: Any, goes_on: Any) -> str:
        """Decides whether the program goes on."""
        if goes_on is not None:
            is_active, self._active = self._exchange.is_active(goes_on, "apply")
            self.is_converged = not is_active
        text = f"superstep {self.superstep}"
        if goes_on is None or self._tolerance is not None:
            is_changed, self.residual = self._exchange.change(before, self.state)
            if self._tolerance is not None:
                self.is_converged = self.is_converged or self.residual <= self._tolerance
            else:
                self.is_converged = not is_changed
            text += f": changed by {self.residual:.2e} in sum"
        elif self._active is not None:
            text += f": {int(self._active.sum())} vertices go on"
        return text

    async def end(self, result: list[str] | None) -> Computation:
        """Makes the result of the state."""
        columns = self._exchange.columns(self.state)
        for name in result or ():
            if name not in columns:
                raise make("invalid", f"result names the column {name!r}; the state has {', '.join(columns)}")
        parts = [(name, *self._exchange.sent(columns[name])) for name in (columns if result is None else result)]
        residual = self.residual if self._tolerance is not None else None
        return Computation(await wait_async(self._core.finish(parts, self.superstep, self.is_converged, residual)))


def _parts(applied: Any) -> tuple[Any, Any]:
    """The state that a function returned, and who goes on, if it said that."""
    parts: Any = applied
    if not isinstance(applied, tuple):
        return parts, None
    if len(parts) != 2:
        raise make("invalid", f"apply returned a tuple of {len(parts)}; it has to be a state, or a state and who goes on")
    return parts[0], parts[1]


async def run_program(
    core: _hoplake.Graph,
    initial: Initial,
    signal: Callable[[Any, Vertices], Any],
    combine: Combine,
    apply: Callable[[Any, Any, Vertices], Any],
    *,
    selection: tuple[str | None, list[str], str, int | None],
    weight: str | None,
    along: str,
    default: float | None,
    max_supersteps: int | None,
    tolerance: float | None,
    name: str,
    result: str | Iterable[str] | None,
    progress: Progress,
) -> Computation:
    """Runs a program, with the arguments of :meth:`Graph.pregel`."""
    np = numpy()
    for what, callback in (("signal", signal), ("apply", apply)):
        if not callable(callback):
            raise make("invalid", f"{what} has to be a function, not {shown(callback)}")
    if tolerance is not None and (not is_a(tolerance, Real) or not tolerance >= 0):
        raise make("invalid", f"tolerance is {shown(tolerance)}; it has to be a number, 0 or more")
    number: Any = default
    if isinstance(number, bool) or not (number is None or isinstance(number, (int, float))):
        raise make("invalid", f"default is {shown(default)}; it has to be a number")
    name = as_text("name", name)
    columns = names_or_all(result)
    if columns is not None and (not columns or len(set(columns)) < len(columns)):
        raise make("invalid", "result has to name at least one column, and each once")
    reporter = Reporter(progress)
    try:
        program = await wait_async(core.program(*selection, weight, along))
        program.check(combine)
        steps = _Supersteps(program, Exchange(program, np, name), signal, combine, apply, default, tolerance)
        await steps.begin(initial, columns or [name])
        while not steps.is_converged and (max_supersteps is None or steps.superstep < max_supersteps):
            reporter.report((await steps.next(), steps.superstep, max_supersteps))
        return await steps.end(columns)
    finally:
        reporter.close()
