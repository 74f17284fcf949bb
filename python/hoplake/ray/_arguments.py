"""Checks of what users pass, before anything is started."""

from __future__ import annotations

import math
import re
import secrets
from collections.abc import Iterable, Mapping
from datetime import timedelta
from numbers import Real
from typing import Any

from .._arguments import Location, as_text, in_seconds, is_a, location, shown, text_or_none, whole
from .._errors import Error, InvalidError, make
from ._engine import ray
from ._results import Written

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")

#: The most workers and parts of a run. Each pair of parts exchanges a column in each superstep.
MOST_PARTS = 4096

#: The most threads of a worker, which is that of a computation in one process.
_MOST_THREADS = 1024

#: Of many parts each costs more than it helps: by default there are more than workers only up to here.
_USUAL_PARTS = 128

#: Options of actors that a run sets, or that would break it: calls are made once, in their order, by one driver.
_OWN_OPTIONS = frozenset(
    "allow_out_of_order_execution concurrency_groups get_if_exists lifetime max_concurrency max_pending_calls max_restarts max_task_retries "
    "name namespace num_returns".split()
)


def shared(url: Location, name: str = "url") -> str:
    """A location that other processes reach."""
    where = as_text(name, location(url, name))
    if where.startswith("memory:"):
        raise InvalidError(f"{where} is in the memory of one process; other processes need a folder that all nodes have, or a bucket")
    return where


def run_id(given: str | None) -> str:
    """The name of a run or a load: another one each time by default."""
    if given is None:
        return secrets.token_hex(8)
    if not _ID.fullmatch(as_text("id", given)):
        raise InvalidError(f"id is {shown(given)}; write up to 100 letters, digits, dots, hyphens and underscores, and begin with a letter or a digit")
    return given


def text_list(name: str, given: str | Iterable[str] | None) -> list[str] | None:
    """Names as a list; one may be a ``str``. ``None`` stands for all."""
    if given is None:
        return None
    if isinstance(given, str):
        return [as_text(name, given)]
    try:
        items: Any = iter(given)
    except TypeError:
        raise InvalidError(f"{name} has to be a str or a list of them, not {shown(given)}") from None
    return [as_text(f"each of {name}", item) for item in items]


def seconds(name: str, value: float | timedelta) -> float:
    """A duration in seconds, which may be infinite."""
    given: Any = in_seconds(value)
    number = math.nan
    if is_a(given, Real) and not is_a(given, bool):
        try:
            number = float(given)
        except (OverflowError, TypeError, ValueError):
            number = math.nan
    if not number >= 0:
        raise InvalidError(f"{name} has to be a number of seconds, 0 or more, not {shown(value)}")
    return number


def workers_and_parts(workers: int, parts: int | None) -> tuple[int, int]:
    """How many workers and parts there are."""
    own = at_most("workers", workers, MOST_PARTS)
    if parts is None:
        return own, own if own == 1 else max(own, min(2 * own, _USUAL_PARTS))
    count = at_most("parts", parts, MOST_PARTS)
    if count < own:
        raise InvalidError(f"parts is {count}; there has to be one for each of {own} workers")
    return own, count


def threads(value: int) -> int:
    """The threads of a worker."""
    return at_most("threads", value, _MOST_THREADS)


def at_most(name: str, value: int, most: int) -> int:
    number = whole(name, value, 1)
    if number > most:
        raise InvalidError(f"{name} is {number}; it has to be at most {most}")
    return number


def written(write: str | Mapping[str, str] | Iterable[str] | None) -> Written | None:
    """The columns that are written, and their properties."""
    if write is None:
        return None
    if isinstance(write, str):
        return ((None, as_text("write", write)),)
    given: Any = write
    pairs: list[tuple[Any, Any]]
    if is_a(write, Mapping):
        pairs = list(given.items())
    else:
        try:
            pairs = [(name, name) for name in given]
        except TypeError:
            raise InvalidError(f"write has to be a str, a dict of properties by column, or a list of columns, not {shown(write)}") from None
    found = tuple((as_text("each column of write", column), as_text("each property of write", name)) for column, name in pairs)
    if not found or len({name for _, name in found}) < len(found):
        raise InvalidError("write has to name at least one property, and each once")
    return found


def one_of(name: str, value: str, known: str) -> None:
    """Rejects a word that is none of those known."""
    words = known.split()
    if as_text(name, value) not in words:
        raise InvalidError(f"{name} is {shown(value)}; write {', '.join(words[:-1])} or {words[-1]}")


def function_or_none(name: str, value: Any) -> None:
    """Rejects what cannot be called."""
    if value is not None and not callable(value):
        raise InvalidError(f"{name} has to be a function, not {shown(value)}")


def flag(name: str, value: bool) -> bool:
    """Whether something is so."""
    if not is_a(value, bool):
        raise InvalidError(f"{name} has to be True or False, not {shown(value)}")
    return value


def actor_options(given: Mapping[str, Any] | None, actor: Any) -> dict[str, Any]:
    """Options of Ray for workers, as far as Ray can tell without starting one."""
    return _options("actor_options", given, _OWN_OPTIONS, actor)


def task_options(given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Options of Ray for tasks."""
    return _options("task_options", given, frozenset(("num_returns", "name")), ray.remote(flag))


def _options(what: str, given: Mapping[str, Any] | None, own: frozenset[str], remote: Any) -> dict[str, Any]:
    if given is None:
        return {}
    if not is_a(given, Mapping):
        raise InvalidError(f"{what} has to be a dict of options by name, not {shown(given)}")
    options: dict[str, Any] = {as_text(f"each name of {what}", name): value for name, value in given.items()}
    if decided := sorted(own & set(options)):
        raise InvalidError(f"{what} names {decided[0]!r}, which the run decides")
    try:
        remote.options(**options)
    except Error:
        raise
    except Exception as error:  # whatever Ray raises about them
        raise InvalidError(f"{what} is not what Ray takes: {error}") from error
    return options


def selection(
    edges: str | None, labels: str | Iterable[str] | None, weight: str | None, along: str
) -> tuple[str | None, list[str], str | None, str]:
    """What takes part, and what an edge does to a signal."""
    one_of("along", along, "times plus")
    return text_or_none("edges", edges), text_list("labels", labels) or [], text_or_none("weight", weight), along


def check_pickles(values: Mapping[str, Any], error: BaseException | None = None) -> None:
    """Says which argument cannot be sent to other processes."""
    for name, value in values.items():
        try:
            ray.cloudpickle.dumps(value)
        except Exception as why:  # whatever a class of the caller raises
            hint = "a function must not use open files, locks, generators or graphs in memory; open what it needs when it is called"
            message = f"{name} is {shown(value)}, which cannot be sent to other processes (pickled): {type(why).__name__}: {_text(why)}"
            raise make("invalid", message, hint=hint) from why
    if error is not None:
        raise InvalidError(f"an argument cannot be sent to other processes: {_text(error)}") from error


def _text(error: BaseException) -> str:
    try:
        return str(error).strip().split("\n", 1)[0]
    except Exception:  # whatever a class of the caller raises
        return ""
