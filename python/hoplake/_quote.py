"""Values as parts of conditions."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

from ._arguments import shown
from ._errors import InvalidError


def quote(value: str | int | float | bool | Decimal | date) -> str:
    """A value as a part of a condition, with the quotes that keep it one value.

    Scalars of NumPy are taken as the values of Python that they hold, and a ``Decimal`` with all its digits. A
    ``datetime`` without a time zone is one of UTC.

    >>> import hoplake
    >>> f"city = {hoplake.quote('Paris or runways > 0')}"
    'city = "Paris or runways > 0"'

    Raises:
        InvalidError: no condition can contain the value, such as ``None`` or a list.
    """
    text = _text(_scalar(value)).replace('"', '""')
    return f'"{text}"'


def _scalar(value: Any) -> Any:
    """The value that a scalar of NumPy holds; any other value as it is."""
    if type(value).__module__ != "numpy" or getattr(value, "shape", None) != ():
        return value
    item = value.item()
    # Dates with nanoseconds become a bare number, which would be compared as one.
    is_bare = value.dtype.kind in "mM" and isinstance(item, int)
    return value if is_bare else item


def _text(value: Any) -> str:
    # Members of enumerations are instances of these types, too: each type's own method writes the value.
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, float):
        return float.__repr__(value)
    if isinstance(value, Decimal) and value.is_finite():
        return str(value)
    if isinstance(value, datetime):
        return (value if value.tzinfo is not None else value.replace(tzinfo=timezone.utc)).isoformat()
    if isinstance(value, date):
        return value.isoformat()
    raise InvalidError(f"{shown(value)} cannot be part of a condition; give a str, a number, a bool, a date or a datetime")
