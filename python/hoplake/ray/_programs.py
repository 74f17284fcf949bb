"""Algorithms of the registry as programs over columns, which run by parts.

Names, options and directions are the registry's; here is what a vertex signals and makes of what it receives. Results are those of :meth:`Graph.run`, except
for the last bits of floats.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .. import _hoplake
from .._arguments import as_text, shown, text_or_none, whole
from .._columns import Vertices
from .._errors import make
from .._named import option
from .._supersteps import Combine, Functions
from ._engine import np

#: Marks a missing value in a state of int64: the greatest number.
_NONE = 2**63 - 1

#: The rows of a part at which an algorithm begins, and how many it begins at in all parts.
Starts = Callable[[], "tuple[Any, int]"]


@dataclass(frozen=True)
class Algorithm:
    """An algorithm with its options."""

    name: str
    #: As the user gave them, by the registry's names.
    options: dict[str, Any]
    weight: str | None
    along: str
    functions: Callable[[Starts], Functions]


def _page_rank(options: dict[str, Any], starts: Starts) -> Functions:
    damping: float = options["damping"]
    is_weighted, is_personal = options["weight"] is not None, "from" in options
    # What a vertex gets of all that edges do not pass on.
    known: list[Any] = []

    def share(pages: Vertices) -> Any:
        if not is_personal:
            return 1 / pages.count
        if not known:
            rows, count = starts()
            own = np.zeros(len(pages))
            own[rows] = 1 / count
            known.append(own)
        return known[0]

    def passed(pages: Vertices) -> Any:
        return pages.weight if is_weighted else pages.degree

    def signal(rank: Any, pages: Vertices) -> Any:
        by = passed(pages)
        return np.divide(rank, by, out=np.zeros(len(pages)), where=by > 0)

    def follow(rank: Any, received: Any, pages: Vertices) -> Any:
        base = (1 - damping + damping * pages.sums["stuck"]) * share(pages)
        received *= damping
        received += base
        return received

    return _functions(
        "rank",
        initial=lambda pages: np.zeros(len(pages)) + share(pages),
        signal=signal,
        apply=follow,
        aggregate=lambda rank, pages: {"stuck": rank[passed(pages) == 0].sum()},
        tolerance=options["tolerance"],
        max_supersteps=options["iterations"],
    )


def _components(options: dict[str, Any], starts: Starts) -> Functions:
    def least(label: Any, received: Any, _: Vertices) -> Any:
        smaller = np.minimum(label, received)
        return smaller, smaller != label

    return _functions("component", initial=lambda vertices: vertices.order, signal=_state, combine="min", apply=least)


def _communities(options: dict[str, Any], starts: Starts) -> Functions:
    return _functions(
        "community",
        initial=lambda vertices: vertices.order,
        signal=_state,
        combine="mode",
        apply=lambda label, received, _: received,
        max_supersteps=options["iterations"],
    )


def _levels(options: dict[str, Any], starts: Starts) -> Functions:
    def begin(vertices: Vertices) -> Any:
        level = np.full(len(vertices), _NONE, dtype=np.int64)
        level[starts()[0]] = 0
        return level

    def nearest(level: Any, received: Any, _: Vertices) -> Any:
        nearer = np.minimum(level, received)
        return nearer, nearer != level

    def signal(level: Any, _: Vertices) -> Any:
        return np.where(level == _NONE, _NONE, level + 1)

    return _functions("level", initial=begin, signal=signal, combine="min", apply=nearest)


def _paths(options: dict[str, Any], starts: Starts) -> Functions:
    step = 0.0 if options["weight"] is not None else 1.0

    def begin(vertices: Vertices) -> Any:
        length = np.full(len(vertices), np.inf)
        length[starts()[0]] = 0.0
        return length

    def shortest(length: Any, received: Any, _: Vertices) -> Any:
        shorter = np.minimum(length, received)
        return shorter, shorter != length

    def signal(length: Any, _: Vertices) -> Any:
        # Infinity is no path, which no edge continues.
        return np.where(np.isinf(length), np.nan, length + step)

    return _functions("length", initial=begin, signal=signal, combine="min", apply=shortest)


def _degrees(options: dict[str, Any], starts: Starts) -> Functions:
    return _functions("degree", initial=lambda vertices: vertices.degree, signal=_state, apply=_state, max_supersteps=0)


def _state(state: Any, *_: Any) -> Any:
    return state


def _functions(
    name: str,
    *,
    initial: Callable[[Vertices], Any],
    signal: Callable[[Any, Vertices], Any],
    apply: Callable[[Any, Any, Vertices], Any],
    aggregate: Callable[[Any, Vertices], Any] | None = None,
    combine: Combine = "sum",
    tolerance: float | None = None,
    max_supersteps: int | None = None,
) -> Functions:
    return Functions(
        initial=initial,
        signal=signal,
        apply=apply,
        aggregate=aggregate,
        combine=combine,
        default=None,
        tolerance=tolerance,
        max_supersteps=max_supersteps,
        name=name,
        result=None,
    )


_ALGORITHMS: dict[str, Callable[[dict[str, Any], Starts], Functions]] = {
    "pagerank": _page_rank,
    "components": _components,
    "levels": _levels,
    "paths": _paths,
    "communities": _communities,
    "degrees": _degrees,
}


def algorithm(name: str, given: dict[str, Any]) -> Algorithm:
    """An algorithm by its name, with the options of a user, whose names are keyword arguments."""
    as_text("algorithm", name)
    known = {known: options for known, _, _, options in _hoplake.algorithms()}
    if name not in _ALGORITHMS:
        runs = ", ".join(_ALGORITHMS)
        if name in known:
            raise make("invalid", f"{name} does not run by parts; these do: {runs}", hint="graph.run computes it on one machine")
        raise make("invalid", f"unknown algorithm {name!r}; these run by parts: {runs}")
    # Whether they are right says the extension, when the first part of the run is planned.
    of_names = {key.rstrip("_").replace("_", "-"): value for key, value in given.items()}
    own = {key: _plain(key, option(name, key, value)) for key, value in of_names.items()}
    if own.get("from") == []:
        # Ranks that begin at no vertex begin at all.
        del own["from"]
    options: dict[str, Any] = {key: default for key, _, _, default, _ in known[name] if key != "from"}
    options.update(own)
    make_functions = _ALGORITHMS[name]
    if options.get("iterations") is not None:
        # The defaults of the registry are floats.
        options["iterations"] = whole("iterations", own["iterations"]) if "iterations" in own else int(options["iterations"])
    along = "plus" if name == "paths" else "times"
    return Algorithm(name, own, text_or_none("weight", options.get("weight")), along, lambda starts: make_functions(options, starts))


def _plain(name: str, value: Any) -> Any:
    """An option, by whose text a plan knows the run again."""
    try:
        repr(value)
    except Exception:  # whatever a class of the caller raises
        raise make("invalid", f"{name} is {shown(value)}, which cannot be the value of an option") from None
    return value


def is_missing(name: str, column: Any) -> Any:
    """Which values of a column are none."""
    if column.dtype.kind == "f":
            return ~np.isfinite(column) if name == "paths" else np.isnan(column)
    return column == _NONE if name == "levels" else None

