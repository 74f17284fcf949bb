"""What changes, loads and copies did."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from ._cost import Cost


@dataclass(frozen=True)
class Committed:
    """A batch of changes that was applied.

    Attributes:
        version: the version that has it.
        repeated: whether an earlier commit had applied it already, as its idempotency key shows.
        pairs_removed: pairs of vertices without edges from then on.
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
    """A version of a graph: what made it, when, and why."""

    version: int
    created_ms: int
    kind: str
    writer: str
    message: str
    source_positions: dict[str, str]
    tags: list[str]

    @property
    def created(self) -> datetime:
        """When it was made, in UTC."""
        return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=self.created_ms)


@dataclass(frozen=True)
class Difference:
    """A vertex or an edge that two versions do not share.

    Attributes:
        label: of the vertex or of the edge.
        source: the vertex, or the one that the edge leaves, as a pair of label and key.
        target: the vertex that the edge reaches; ``None`` of a vertex.
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
    """A copy that has a version now; ``was_current`` if it had it before."""

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
    """Sorted runs that were merged."""

    version: int
    merges: int
    runs: int
    bytes_read: int
    bytes_written: int


@dataclass(frozen=True)
class Verified:
    """What was read and checked, and all damage: the version that has it (``None`` if no version does) and a sentence."""

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
    """An edition of a prepared query: ``parameters`` as they are written, such as ``"name:string, most:int64=10"``."""

    name: str
    number: int
    text: str
    parameters: str
    description: str
