"""Columns of NumPy between a vertex program and the extension. NumPy is imported when a program begins, and not before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Union

from . import _hoplake
from ._arguments import as_text
from ._errors import make
from ._waiting import wait_sync

if TYPE_CHECKING:
    from numpy.typing import NDArray

    #: A number for each vertex, int64 or float64.
    Column = NDArray[Any]

    #: A state: a column, or several by name.
    State = Union[Column, dict[str, Column]]


def numpy(what: str = "a vertex program") -> Any:
    """NumPy, or an exception that says how to install it. ``what`` needs it."""
    try:
        import numpy
    except ImportError:
        message = f"{what} computes with columns of NumPy, which is not installed"
        raise make("invalid", message, hint="pip install numpy") from None
    return numpy


class Vertices:
    """The vertices of a program: numbers for each, in columns of the same order as its state. They are read when they are first used, and may not be changed.

    ``vertices["age"]`` is a property, with NaN for a vertex without it. In a program that runs by parts (:mod:`hoplake.ray`), they are those of a part.
    """

    #: The superstep that is computed, from 1 on; 0 while the first state is.
    superstep: int
    #: What ``aggregate`` returned of the state before this superstep, added up over all vertices.
    sums: dict[str, int | float]

    def __init__(self, core: _hoplake.Program | _hoplake.Part, np: Any) -> None:
        self._core = core
        self._np = np
        self._columns: dict[tuple[bool, str], Column] = {}
        self.superstep = 0
        self.sums = {}

    @property
    def count(self) -> int:
        """How many vertices take part, in all parts."""
        return self._core.count

    def __len__(self) -> int:
        """How many numbers a column has."""
        return len(self._core)

    @property
    def degree(self) -> Column:
        """The number of edges along which each vertex signals, int64."""
        return self._column("degree")

    @property
    def weight(self) -> Column:
        """The weights of these edges, added up, float64."""
        return self._column("weight")

    @property
    def order(self) -> Column:
        """The place of each vertex in the order of labels and keys, from 0. It does not depend on how the graph was loaded. Reads all keys."""
        return self._column("order")

    def __getitem__(self, name: str) -> Column:
        return self._column(as_text("the name of a property", name), is_property=True)

    def _column(self, name: str, *, is_property: bool = False) -> Column:
        known = self._columns.get((is_property, name))
        if known is None:
            task = self._core.property(name) if is_property else self._core.column(name)
            known = self._columns[is_property, name] = _received(self._np, *wait_sync(task))
            known.setflags(write=False)
        return known

    def __repr__(self) -> str:
        return f"<hoplake.Vertices: {len(self):,} in superstep {self.superstep}>"


class Exchange:
    """Checks what callbacks return, and makes columns of it. ``what`` names them in messages."""

    def __init__(self, core: _hoplake.Program | _hoplake.Part, np: Any, name: str) -> None:
        self.np = np
        self.vertices = Vertices(core, np)
        self._count = len(core)
        self._name = name

    def state(self, value: Any, what: str, before: State | None = None) -> State:
        """A state that was given or returned: columns of its own, which may not be changed."""
        columns: Any = value
        if not isinstance(value, Mapping):
            if isinstance(before, dict):
                raise make("invalid", f"{what} is not a dict; it has to have the columns {', '.join(before)}")
            column = self.column(columns, what)
            column.setflags(write=False)
            return column
        if not columns or not all(isinstance(name, str) and name for name in columns):
            raise make("invalid", f"{what} is a dict of columns by name, and needs at least one")
        if before is not None and (not isinstance(before, dict) or set(before) != set(columns)):
            known = ", ".join(before) if isinstance(before, dict) else "one array without a name"
            raise make("invalid", f"{what} has the columns {', '.join(columns)}; they have to be those of the state before: {known}")
        # In the order of the first state.
        made = {name: self.column(columns[name], f"{what}[{name!r}]") for name in (columns if before is None else before)}
        for column in made.values():
            column.setflags(write=False)
        return made

    def column(self, value: Any, what: str) -> Column:
        """Numbers for all vertices, int64 or float64, as a new array. A number stands for the same at each."""
        np = self.np
        if value is None:
            raise make("invalid", f"{what} is None; return a number for each vertex")
        if isinstance(value, np.ma.MaskedArray):
            raise make("invalid", f"{what} is a masked array; fill it, with NaN for numbers that are not there")
        try:
            array = np.asarray(value)
        except (TypeError, ValueError, OverflowError) as error:
            raise make("invalid", f"{what} is not an array: {error}") from error
        if array.shape not in ((), (self._count,)):
            raise make("invalid", f"{what} has the shape {array.shape}; it has to be one number for each of {self._count} vertices")
        kind, width = array.dtype.kind, array.dtype.itemsize
        if kind == "f" and width <= 8:
            target = np.float64
        elif kind in "bi" or (kind == "u" and (width < 8 or not array.size or array.max() <= np.iinfo(np.int64).max)):
            target = np.int64
        else:
            raise make("invalid", f"{what} has the type {array.dtype}; it has to be int64 or float64, or to be one of them exactly")
        made = np.empty(self._count, dtype=target)
        made[...] = array
        return made  # type: ignore[no-any-return]

    def is_active(self, value: Any, what: str) -> tuple[bool, Column | None]:
        """Whether a program goes on, and which vertices signal then: ``None`` for all."""
        np = self.np
        if isinstance(value, (bool, np.bool_)):
            return bool(value), None
        array = np.asarray(value)
        if array.dtype != np.bool_ or array.shape != (self._count,):
            message = f"{what} says with {array.dtype} of shape {array.shape} who goes on; it has to be a bool, or one for each of {self._count} vertices"
            raise make("invalid", message)
        return bool(array.any()), array.copy()

    def number(self, value: Any, what: str) -> int | float:
        """A number that a function returned."""
        array = self.np.asarray(value)
        if array.shape != () or array.dtype.kind not in "biuf":
            raise make("invalid", f"{what} is {value!r}; it has to be a number")
        return float(array) if array.dtype.kind == "f" else int(array)

    def columns(self, state: State) -> dict[str, Column]:
        """The columns of a state by name."""
        return state if isinstance(state, dict) else {self._name: state}

    def change(self, before: State, after: State) -> tuple[bool, float]:
        """Whether a state changed, and by how much in sum. A number that is not there does not change until it is."""
        np = self.np
        is_changed, total = False, 0.0
        for name, new in self.columns(after).items():
            old = self.columns(before)[name]
            # Of unsigned numbers that hold the difference of any two.
            if old.dtype == new.dtype == np.int64:
                differs = old != new
                apart = np.maximum(old, new).view(np.uint64) - np.minimum(old, new).view(np.uint64)
                total += float(apart.sum(dtype=np.float64))
            else:
                differs = ~((old == new) | (np.isnan(old) & np.isnan(new)))
                with np.errstate(invalid="ignore", over="ignore"):
                    total += float(np.abs(np.where(differs, new, 0) - np.where(differs, old, 0)).sum())
            is_changed = is_changed or bool(differs.any())
        return is_changed, total

    def sent(self, column: Column) -> tuple[bytes, bool]:
        """A column as the extension takes it."""
        return column.tobytes(), column.dtype == self.np.float64

    def received(self, buffer: bytearray, is_float: bool) -> Column:
        """A column of the extension."""
        return _received(self.np, buffer, is_float)


def _received(np: Any, buffer: bytearray, is_float: bool) -> Column:
    return np.frombuffer(buffer, dtype=np.float64 if is_float else np.int64)  # type: ignore[no-any-return]
