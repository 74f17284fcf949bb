"""What the functions of a vertex program return, superstep by superstep: for all vertices in one process, or for those of a part."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, Union

from ._arguments import as_text, is_a, names_or_all, shown
from ._columns import Exchange, Vertices
from ._errors import make

if TYPE_CHECKING:
    from ._columns import Column

#: What a vertex makes of the signals that it receives.
Combine = Literal["sum", "min", "max", "mean", "count", "mode"]

#: The first state: a number, an array, a dict of columns by name, or a function of the vertices that returns one of them.
Initial = Union["Callable[[Vertices], Any]", Any]

#: Sums over vertices by name.
Sums = dict[str, Union[int, float]]


@dataclass(frozen=True)
class Functions:
    """The functions of a program, and what decides on its end."""

    initial: Initial
    signal: Callable[[Any, Vertices], Any]
    apply: Callable[[Any, Any, Vertices], Any]
    aggregate: Callable[[Any, Vertices], Any] | None
    combine: Combine
    default: float | None
    tolerance: float | None
    max_supersteps: int | None
    name: str
    #: The columns of the result; all of the state without it.
    result: list[str] | None

    @classmethod
    def checked(cls, *, tolerance: float | None, default: Any, result: str | Iterable[str] | None, **rest: Any) -> Functions:
        """The functions of a program, with arguments of :meth:`Graph.pregel`."""
        for what in ("signal", "apply"):
            if not callable(rest[what]):
                raise make("invalid", f"{what} has to be a function, not {shown(rest[what])}")
        if rest["aggregate"] is not None and not callable(rest["aggregate"]):
            raise make("invalid", f"aggregate has to be a function, not {shown(rest['aggregate'])}")
        if tolerance is not None and (not is_a(tolerance, Real) or not tolerance >= 0):
            raise make("invalid", f"tolerance is {shown(tolerance)}; it has to be a number, 0 or more")
        if isinstance(default, bool) or not (default is None or isinstance(default, (int, float))):
            raise make("invalid", f"default is {shown(default)}; it has to be a number")
        as_text("name", rest["name"])
        columns = names_or_all(result)
        if columns is not None and (not columns or len(set(columns)) < len(columns)):
            raise make("invalid", "result has to name at least one column, and each once")
        return cls(tolerance=tolerance, default=default, result=columns, **rest)

    def is_over(self, superstep: int, report: Report) -> bool:
        """Whether a program ends after a superstep that all vertices reported."""
        return report.is_over(self.tolerance) or (self.max_supersteps is not None and superstep >= self.max_supersteps)


@dataclass(frozen=True)
class Report:
    """What vertices did in a superstep. Reports of parts add up to that of all."""

    #: Whether any goes on, if the program said that.
    goes_on: bool | None = None
    #: How many go on, if it said that of each.
    active: int | None = None
    #: Whether a state changed, and by how much in sum, if that decides.
    is_changed: bool | None = None
    change: float | None = None
    sums: Sums = field(default_factory=dict[str, Union[int, float]])

    @staticmethod
    def of_all(reports: list[Report]) -> Report:
        """The sum of the reports of all parts."""

        def total(values: list[Any]) -> Any:
            known = [value for value in values if value is not None]
            return sum(known) if known else None

        def some(values: list[Any]) -> Any:
            known = [value for value in values if value is not None]
            return any(known) if known else None

        sums: Sums = {}
        for report in reports:
            for name, value in report.sums.items():
                sums[name] = sums.get(name, 0) + value
        return Report(
            some([report.goes_on for report in reports]),
            total([report.active for report in reports]),
            some([report.is_changed for report in reports]),
            total([report.change for report in reports]),
            sums,
        )

    def is_over(self, tolerance: float | None) -> bool:
        """Whether the program ends."""
        if self.goes_on is not None and not self.goes_on:
            return True
        if tolerance is not None:
            return self.change is None or self.change <= tolerance
        return self.goes_on is None and not self.is_changed

    def __str__(self) -> str:
        if self.change is not None:
            return f": changed by {self.change:.2e} in sum"
        return "" if self.active is None else f": {self.active} vertices go on"


class Steps:
    """The state of vertices, and the calls of the functions of their program."""

    def __init__(self, functions: Functions, exchange: Exchange) -> None:
        self._functions = functions
        self._exchange = exchange
        self.state: Any = None
        #: Which vertices signal: all without it.
        self.active: Any = None

    @property
    def vertices(self) -> Vertices:
        """The vertices, as functions get them."""
        return self._exchange.vertices

    @property
    def columns(self) -> dict[str, Column]:
        """The state by the names of its columns."""
        return self._exchange.columns(self.state)

    def begin(self) -> Report:
        """Makes the first state. Without vertices no function is called, so that none has to expect that; the state has columns of the result's names."""
        initial = self._functions.initial
        if callable(initial):
            names = self._functions.result or [self._functions.name]
            initial = dict.fromkeys(names, 0.0) if len(self.vertices) == 0 else initial(self.vertices)
        self.state = self._exchange.state(initial, "initial")
        self.active = None
        return Report(is_changed=len(self.vertices) > 0, sums=self._sums())

    def signals(self) -> Column:
        """What vertices signal in the superstep that begins."""
        if len(self.vertices) == 0:
            return self._exchange.column(0.0, "a signal")
        return self._exchange.column(self._functions.signal(self.state, self.vertices), "what signal returned")

    def apply(self, received: Column) -> Report:
        """Makes the next state."""
        if len(self.vertices) == 0:
            return Report()
        applied, goes_on = _parts(self._functions.apply(self.state, received, self.vertices))
        before, self.state = self.state, self._exchange.state(applied, "what apply returned", self.state)
        is_active, active, is_changed, change = None, None, None, None
        if goes_on is not None:
            is_active, self.active = self._exchange.is_active(goes_on, "apply")
            active = None if self.active is None else int(self.active.sum())
        if goes_on is None or self._functions.tolerance is not None:
            is_changed, change = self._exchange.change(before, self.state)
        return Report(is_active, active, is_changed, change, self._sums())

    def restore(self, columns: dict[str, Column], *, is_named: bool, active: Any) -> None:
        """Makes columns that were kept the state."""
        (first, *_) = columns.values()
        self.state = self._exchange.state(columns if is_named else first, "a state that was kept")
        self.active = active

    def results(self) -> dict[str, Column]:
        """The columns of the result; the first is the value."""
        columns = self.columns
        for name in self._functions.result or ():
            if name not in columns:
                raise make("invalid", f"result names the column {name!r}; the state has {', '.join(columns)}")
        return {name: columns[name] for name in (self._functions.result or columns)}

    def _sums(self) -> Sums:
        if self._functions.aggregate is None or len(self.vertices) == 0:
            return {}
        found: Any = self._functions.aggregate(self.state, self.vertices)
        if not is_a(found, Mapping):
            raise make("invalid", f"aggregate returned {shown(found)}; it has to return a dict of numbers by name")
        return {str(name): self._exchange.number(value, f"aggregate[{name!r}]") for name, value in found.items()}


def _parts(applied: Any) -> tuple[Any, Any]:
    """The state that a function returned, and who goes on, if it said that."""
    parts: Any = applied
    if not isinstance(applied, tuple):
        return parts, None
    if len(parts) != 2:
        raise make("invalid", f"apply returned a tuple of {len(parts)}; it has to be a state, or a state and who goes on")
    return parts[0], parts[1]
