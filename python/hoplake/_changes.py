"""Results of changes, loads and copies."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from ._cost import Cost


@dataclass(frozen=True)
class Committed:
    """A batch of changes that was applied.

    Attributes:
        version: the version that contains the changes; the version they would be based on if there were none, since nothing is published then.
        repeated: whether an earlier commit with the same idempotency key had already applied them.
        pairs_removed: how many pairs of vertices have no edge left after the changes.
    """

    version: int
    vertices_added: int
    vertices_changed: int
    vertices_removed: int
    edges_written: int
    pairs_removed: int
    repeated: bool
    cost: Cost


@dataclass(frozen=True)
class Loaded:
    """A graph that was loaded."""

    version: int
    vertices: int
    edges: int
    bad_rows: int
    bytes: int
    cost: Cost


@dataclass(frozen=True)
class Version:
    """A version of a graph: what created it, when, and why."""

    version: int
    created_ms: int
    kind: str
    writer: str
    message: str
    source_positions: dict[str, str]
    tags: list[str]

    @property
    def created(self) -> datetime:
        """When it was created, in UTC."""
        return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=self.created_ms)


@dataclass(frozen=True)
class Difference:
    """A vertex or an edge that differs between two versions.

    Attributes:
        label: the label of the vertex or the edge.
        source: the vertex, or the source of the edge, as a pair of label and key.
        target: the target of the edge; ``None`` for a vertex.
        before: its properties in the first version; ``None`` if it was added.
        after: its properties in the second version; ``None`` if it was removed.
    """

    label: str
    source: tuple[str, int | str]
    target: tuple[str, int | str] | None
    before: dict[str, Any] | None
    after: dict[str, Any] | None

    @property
    def kind(self) -> str:
        """``"added"``, ``"removed"`` or ``"changed"``."""
        if self.before is None:
            return "added"
        return "removed" if self.after is None else "changed"


@dataclass(frozen=True)
class Mirrored:
    """A copy that now has the version; ``was_current`` is True if the copy already had it."""

    version: int
    was_current: bool
    objects: int
    bytes: int
    kept: int
    removed: int


@dataclass(frozen=True)
class Exported:
    """A version that was written as files."""

    vertices: int
    edges: int
    files: int
    bytes: int


@dataclass(frozen=True)
class Compacted:
    """The result of merging sorted runs."""

    version: int
    merges: int
    runs: int
    bytes_read: int
    bytes_written: int


@dataclass(frozen=True)
class Verified:
    """What was read and checked, and each damage found: the version it belongs to (``None`` if to none) and a description."""

    objects: int
    bytes: int
    damages: list[tuple[int | None, str]]

    @property
    def is_intact(self) -> bool:
        """Whether nothing is damaged."""
        return not self.damages


@dataclass(frozen=True)
class Vacuumed:
    """Versions and objects that were removed."""

    versions: int
    objects: int
    bytes: int


@dataclass(frozen=True)
class Index:
    """An index of a property of vertices."""

    label: str
    property: str
    entries: int
    bytes: int


@dataclass(frozen=True)
class PreparedQuery:
    """An edition of a prepared query. ``parameters`` has its parameters as :meth:`Graph.save_query` takes them, such as
    ``["name:string", "most:int64=10"]``."""

    name: str
    number: int
    text: str
    parameters: list[str]
    description: str
