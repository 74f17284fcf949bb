# Generated from hoplake/_async by generate_sync.py: change it there.
"""Vertex programs over columns: the loop of supersteps below :meth:`Graph.pregel`."""

from __future__ import annotations

from .. import _hoplake
from .._columns import Exchange, numpy
from .._supersteps import Functions, Report, Steps
from .._waiting import Progress, Reporter, wait_sync
from .computation import Computation


class _Supersteps:
    """A program that was begun."""

    def __init__(self, core: _hoplake.Program, exchange: Exchange, functions: Functions) -> None:
        self._core = core
        self._exchange = exchange
        self._functions = functions
        self._steps = Steps(functions, exchange)
        self.superstep = 0
        self.report = Report()

    def begin(self) -> None:
        """Makes the first state."""
        self.report = self._steps.begin()
        self._steps.vertices.sums = self.report.sums
        # The states before and after a superstep, signals with who sends them, and what is received.
        wait_sync(self._core.keep(2 * len(self._steps.columns) + 4))

    def is_over(self) -> bool:
        """Whether the last superstep has run."""
        if self.superstep == 0:
            return len(self._core) == 0 or self._functions.max_supersteps == 0
        return self._functions.is_over(self.superstep, self.report)

    def next(self) -> str:
        """Computes a superstep, and returns a text about it."""
        exchange, functions = self._exchange, self._functions
        self.superstep += 1
        exchange.vertices.superstep = self.superstep
        column, is_float = exchange.sent(self._steps.signals())
        active = None if self._steps.active is None else self._steps.active.tobytes()
        task = self._core.combine(column, is_float, active, functions.combine, functions.default)
        del column, active
        self.report = self._steps.apply(exchange.received(*wait_sync(task)))
        exchange.vertices.sums = self.report.sums
        return f"superstep {self.superstep}{self.report}"

    def end(self) -> Computation:
        """Makes the result of the state."""
        parts = [(name, *self._exchange.sent(column)) for name, column in self._steps.results().items()]
        tolerance = self._functions.tolerance
        residual = self.report.change if tolerance is not None and self.superstep else None
        converged = len(self._core) == 0 or (self.superstep > 0 and self.report.is_over(tolerance))
        return Computation(wait_sync(self._core.finish(parts, self.superstep, converged, residual)))


def run_program(
    core: _hoplake.Graph,
    functions: Functions,
    *,
    selection: tuple[str | None, list[str], str, int | None],
    weight: str | None,
    along: str,
    progress: Progress,
) -> Computation:
    """Runs a program, with the arguments of :meth:`Graph.pregel`."""
    np = numpy()
    reporter = Reporter(progress)
    try:
        program = wait_sync(core.program(*selection, weight, along))
        program.check(functions.combine)
        steps = _Supersteps(program, Exchange(program, np, functions.name), functions)
        steps.begin()
        while not steps.is_over():
            reporter.report((steps.next(), steps.superstep, functions.max_supersteps))
        return steps.end()
    finally:
        reporter.close()
