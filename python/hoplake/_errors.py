"""Exceptions: a class for each thing that a caller can do about an error."""

from __future__ import annotations

import sys


class Error(Exception):
    """Something did not work: a sentence that says what and where, and a note that says what to do.

    Attributes:
        reason: the exact cause where a class has several, such as ``"no_graph"`` or ``"credentials"``; otherwise ``None``.
        operation: which operation of a batch it is about, from 0.
        row: which row of the columns of that operation, from 0.
        item: the change that it is about, as text.
        location: where that change is written, such as ``"changes.jsonl, line 7"``.
        hint: what to do about it.
    """

    reason: str | None = None
    operation: int | None = None
    row: int | None = None
    item: str | None = None
    location: str | None = None
    hint: str | None = None


class InvalidError(Error, ValueError):
    """The request or the input is wrong: change it."""


class NotFoundError(Error, LookupError):
    """What was named is not there: check the name."""


class ConflictError(Error):
    """Another writer was faster, or the target exists already: look at it and try again."""


class OutcomeUnknownError(Error):
    """It is not known whether a change was published: look at the graph before you try again, or send it again with its idempotency key."""


class UnavailableError(Error, OSError):
    """A store or a file cannot be reached, read or written: check address and credentials, or try again later."""


class LimitError(Error):
    """A limit was reached: raise it or ask for less."""


class CorruptError(Error):
    """Stored bytes are damaged: verify, and restore from a copy."""


class InternalError(Error):
    """A bug in Hoplake: report it."""


_CLASSES: dict[str, type[Error]] = {
    "invalid": InvalidError,
    "not_found": NotFoundError,
    "conflict": ConflictError,
    "unknown": OutcomeUnknownError,
    "unavailable": UnavailableError,
    "limit": LimitError,
    "corrupt": CorruptError,
    "internal": InternalError,
}

_BY_REASON: dict[str, str] = {
    "url": "write a folder, or s3://bucket/prefix, gs://bucket/prefix, az://container/prefix",
    "no_graph": "check the address, or make a graph with hoplake.load or hoplake.create",
    "no_version": "graph.log() lists the versions and their tags",
    "exists": "choose a target that is empty; load(replace=True) loads over a graph, and export(overwrite=True) over files",
    "overtaken": "graph.log() shows what the other writer did; then try again",
    "credentials": "set the environment variables of the store, such as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "denied": "these credentials have to be allowed to list, read, write and delete objects there",
    "no_bucket": "make the bucket first, or check its name",
    "region": "set AWS_REGION to the region of the bucket",
    "unreachable": "check the address and the network, or try again later",
    "full": "make room; graph.vacuum(keep_versions=1) removes what only older versions need",
    "file": "check that it exists and that you may read it",
    "missing_end": "pass create_missing=True, or add the vertex to the changes",
    "undeclared": "correct the name, or leave out strict=True to add it to the graph",
    "bad_row": "correct the row, or pass rejects=PATH to load the rest and put such rows aside",
    "memory_in_use": "try again when other calls are done",
    "call": "graph.queries() lists the prepared queries of this version, and what each takes; graph.refresh() moves on to the newest version",
    "read_only": "pass commit=True to let the query change the graph",
    "format_version": "use the version of hoplake that wrote it, or load the graph again with this one",
}

_BY_KIND: dict[str, str] = {
    "not_found": "check the name; graph.schema lists labels, edge labels and properties",
    "conflict": "look at the graph, and at graph.log(), then decide anew",
    "unknown": "graph.log() shows whether the version exists; try again only if not",
    "unavailable": "try again later; if it persists, ask the operator of the store",
    "limit": "raise the limit with graph.within(…), or ask for less",
    "corrupt": "graph.verify() lists the damage; restore it from a copy, or open an older version",
    "internal": "this is a bug in Hoplake; please report it with the call that led to it",
}


def make(
    kind: str,
    message: str,
    *,
    reason: str | None = None,
    operation: int | None = None,
    row: int | None = None,
    item: str | None = None,
    location: str | None = None,
    hint: str | None = None,
) -> Error:
    """The exception of a kind, with its note."""
    hint = hint or _BY_REASON.get(reason or "") or _BY_KIND.get(kind)
    has_notes = sys.version_info >= (3, 11)
    # Before 3.11 no traceback shows notes.
    text = message if hint is None or has_notes else f"{message}\nhint: {hint}"
    error = _CLASSES[kind](text)
    error.reason = reason
    error.operation = operation
    error.row = row
    error.item = item
    error.location = location
    error.hint = hint
    if hint is not None and has_notes:
        error.add_note(f"hint: {hint}")
    return error
