"""Checks of arguments that several calls share."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Iterable
from datetime import datetime, timedelta
from operator import index
from os import PathLike, fspath
from os.path import abspath, expanduser
from typing import Any, Union

from ._errors import InvalidError

#: A location: a folder, or a URL such as ``s3://bucket/prefix``.
Location = Union[str, "PathLike[str]"]

#: The greatest number that the extension takes.
MOST = 2**63 - 1

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")


def names(given: str | Iterable[str] | None) -> list[str]:
    """Names as a list; one name may be a ``str``."""
    if given is None:
        return []
    return [as_text("a name", name) for name in ([given] if isinstance(given, str) else given)]


def names_or_all(given: str | Iterable[str] | None) -> list[str] | None:
    """Names as a list; ``None`` stands for all."""
    return None if given is None else names(given)


def as_text(name: str, value: Any) -> str:
    """The argument ``name``, which has to be a ``str`` of whole characters."""
    if not isinstance(value, str):
        raise InvalidError(f"{name} has to be a str, not {_kind(value)}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidError(f"{name} has half of a character (a lone surrogate), which cannot be stored or compared") from None
    return value


def text_or_none(name: str, value: Any) -> str | None:
    """The same for an argument that may be left out."""
    return None if value is None else as_text(name, value)


def whole(name: str, value: Any, least: int = 0) -> int:
    """The argument ``name`` as a whole number, which must not be less than ``least``."""
    try:
        number = None if isinstance(value, bool) else index(value)
    except TypeError:
        number = None
    if number is None or not least <= number <= MOST:
        range = f"of {least} or more" if number is None or number < least else "of at most 2⁶³ - 1"
        raise InvalidError(f"{name} has to be a whole number {range}, not {shown(value)}")
    return number


def whole_or_none(name: str, value: Any, least: int = 0) -> int | None:
    """The same for an argument that may be left out."""
    return None if value is None else whole(name, value, least)


def in_seconds(time: float | timedelta | None) -> float | None:
    """A duration in seconds."""
    return time.total_seconds() if isinstance(time, timedelta) else time


def zoned(time: datetime) -> str:
    """A point in time as text."""
    if time.tzinfo is None:
        raise InvalidError("a datetime has no time zone; give one, as in datetime.now(timezone.utc)")
    return time.isoformat()


def file(path: Location, name: str) -> str:
    """A path as text, with ``~`` expanded; a URL as it is."""
    try:
        text: Any = fspath(path)
    except TypeError:
        text = None
    if not isinstance(text, str):
        raise InvalidError(f"{name} has to be a path or a URL, not {_kind(path)}")
    return text if _URL.match(text) else expanduser(text)


def location(path: Location, name: str) -> str:
    """A path as text, absolute, so that it stays the same when the working directory changes; a URL as it is."""
    text = file(path, name)
    # An empty text is an error of the store, not the working directory.
    return text if not text or _URL.match(text) else abspath(text)


def shown(value: object) -> str:
    """A value as a message shows it: of what is long, deep or not to be shown, its beginning or its type."""
    try:
        return reprlib.repr(value)
    except Exception:  # whatever a class of the caller raises
        return _kind(value)


def is_a(value: object, *kinds: type[Any]) -> bool:
    """Whether a value that a caller passed is of these types, whatever its annotation says."""
    return isinstance(value, kinds)


def _kind(value: object) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def own_as(module: str, members: dict[str, Any], public: Iterable[str]) -> None:
    """Has classes show the module that users import them from, in tracebacks, in ``help()`` and in pickles."""
    for name in public:
        if isinstance(members[name], type):
            members[name].__module__ = module
