"""Values as parts of conditions."""

from __future__ import annotations

from datetime import date, datetime

from ._errors import make


def quote(value: str | int | float | bool | date) -> str:
    """A value as a part of a condition, whatever it is.

    >>> import hoplake
    >>> f"city = {hoplake.quote('Paris or runways > 0')}"
    'city = "Paris or runways > 0"'
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime) and value.tzinfo is None:
        raise make("invalid", "a datetime has no time zone; give one, as in datetime.now(timezone.utc)")
    text = value.isoformat() if isinstance(value, date) else repr(value) if isinstance(value, (int, float)) else value
    quoted = text.replace('"', '""')
    return f'"{quoted}"'
