"""Exceptions, one class for each way in which a caller can react."""

from __future__ import annotations

import re
import sys


class Error(Exception):
    """A call failed. The message says what failed and where; a note says what to do.

    Attributes:
        reason: the exact cause, where a class has several, such as ``"no_graph"`` or ``"credentials"``; otherwise ``None``.
        operation: the operation of a batch that failed, counted from 0.
        row: the row of that operation's table, or of a table that was loaded, counted from 0.
        item: the change that failed, as text.
        location: where that change was read from, such as ``"changes.jsonl, line 7"``.
        hint: what to do about it.
    """

    reason: str | None = None
    operation: int | None = None
    row: int | None = None
    item: str | None = None
    location: str | None = None
    hint: str | None = None


class InvalidError(Error, ValueError):
    """An argument or the input is wrong."""


class NotFoundError(Error, LookupError):
    """The named object does not exist."""


class ConflictError(Error):
    """Another writer changed the graph first, or the target already exists."""


class OutcomeUnknownError(Error):
    """It is unknown whether a change was published. Check :meth:`Graph.log` before trying again, or repeat it with its idempotency key."""


class UnavailableError(Error, OSError):
    """A store or a file cannot be reached, read or written."""


class LimitError(Error):
    """A call exceeded a limit."""


class CorruptError(Error):
    """Stored bytes are damaged. :meth:`Graph.verify` lists the damage."""


class InternalError(Error):
    """A bug in Hoplake; please report it."""


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
    "no_graph": "check the address, or create a graph with hoplake.load or hoplake.create",
    "no_version": "graph.log() lists the versions and their tags",
    "exists": "choose a target that is empty; load(replace=True) loads over a graph, and export(overwrite=True) over files",
    "overtaken": "graph.log() shows what the other writer changed; then try again",
    "denied": "these credentials need permission to list, read, write and delete objects there",
    "no_bucket": "create the bucket first, or check its name",
    "region": "set AWS_REGION to the region of the bucket",
    "unreachable": "check the address and the network, or try again later",
    "full": "free some space; graph.vacuum(keep_versions=1) removes objects that only older versions need",
    "file": "check that it exists and that you may read it",
    "missing_end": "pass create_missing=True, or add the vertex to the changes",
    "undeclared": "correct the name, or leave out strict=True to add it to the graph",
    "bad_row": "correct the row, or pass rejects=PATH to load the rest and put such rows aside",
    "memory_in_use": "try again when other calls have ended",
    "call": "graph.queries() lists the prepared queries of this version, and their parameters; graph.refresh() moves on to the newest version",
    "read_only": "pass commit=True to let the query change the graph",
    "format_version": "use the version of hoplake that wrote it, or load the graph again with this one",
}

#: What sets the credentials of a store, by the scheme of its URLs.
_CREDENTIALS: dict[str, str] = {
    **dict.fromkeys(("s3", "s3a"), "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and AWS_SESSION_TOKEN if they are temporary"),
    "gs": "set GOOGLE_APPLICATION_CREDENTIALS to the file of a key",
    **dict.fromkeys(
        ("az", "azure", "abfs", "abfss"),
        "set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY, or those of an Entra ID client",
    ),
}

_BY_KIND: dict[str, str] = {
    "not_found": "check the name; graph.schema lists labels, edge labels and properties",
    "conflict": "look at the graph, and at graph.log(), then decide whether to retry",
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
    if hint is None and reason == "credentials" and (store := re.search(r"\b([a-z0-9]+)://", message)):
        hint = _CREDENTIALS.get(store[1])
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
