"""What a run keeps in the bucket, below ``runs/ID`` of the graph, or of another location.

::

    runs/ID/plan                   version, parts and TOKEN; the first driver creates it
    runs/ID/TOKEN/000007/part-0003 the state of a part after superstep 7
    runs/ID/TOKEN/000007/list      all parts are there: sums of the superstep
    runs/ID/result                 what the run came to, once it is committed; all else is removed then

Each object is created if there is none of its name. Supersteps are deterministic, so of two drivers with the same id both would write the same; the one whose
plan or list is there wins, and the other one goes on from it. States are of the plan whose token they have: where one driver ended the run and removed the
plan, what another one still writes is not taken for states of a later plan, which may be of another version.
"""

from __future__ import annotations

import json
from typing import Any

from .. import _hoplake
from .._errors import Error, make
from .._waiting import wait_sync
from ._engine import np, pa


class Objects:
    """The objects of a run."""

    def __init__(self, location: str, id: str) -> None:
        self.location = location
        self.id = id
        #: That of the plan, once it is agreed on.
        self.token = ""

    @property
    def _store(self) -> _hoplake.Objects:
        return _hoplake.Objects(self.location)

    def _name(self, name: str) -> str:
        return f"runs/{self.id}/{name}"

    def _state_name(self, superstep: int, part: int) -> str:
        return f"{self.token}/{superstep:06}/part-{part:04}"

    def get(self, name: str) -> bytes | None:
        """An object, if it is there."""
        return wait_sync(self._store.get(self._name(name)))

    def create(self, name: str, content: bytes) -> bool:
        """Creates an object unless there is one of its name; returns whether it did."""
        return wait_sync(self._store.create(self._name(name), content))

    def _json(self, name: str) -> Any:
        content = self.get(name)
        if content is None:
            return None
        try:
            return json.loads(content)
        except ValueError as error:
            raise make("corrupt", f"{self._name(name)} of {self.location} is not what a run writes: {error}") from error

    def agree(self, name: str, value: dict[str, Any]) -> dict[str, Any]:
        """Creates an object, and returns it: or the one that is there already."""
        try:
            if self.create(name, json.dumps(value).encode()):
                return value
        except Error:
            # Whether it was created is unknown if the store gave no answer.
            there = self._json(name)
            if there is None:
                raise
            return dict(there)
        there = self._json(name)
        if there is None:
            raise make("unavailable", f"{self._name(name)} of {self.location} was removed meanwhile: another driver has ended the run")
        return dict(there)

    def plan(self) -> dict[str, Any] | None:
        """The plan of the run, if there is one."""
        return self._json("plan")  # type: ignore[no-any-return]

    def result(self) -> dict[str, Any] | None:
        """What the run came to, if it has ended."""
        return self._json("result")  # type: ignore[no-any-return]

    def write_state(self, superstep: int, part: int, columns: dict[str, Any], *, is_named: bool, active: Any) -> int:
        """Writes the state of a part; returns its bytes."""
        arrays = [pa.array(column) for column in columns.values()]
        if active is not None:
            arrays.append(pa.array(active.view(np.uint8)))
        known = {"columns": list(columns), "named": is_named, "active": active is not None}
        names = [str(number) for number in range(len(arrays))]
        batch = pa.RecordBatch.from_arrays(arrays, names).replace_schema_metadata({"hoplake": json.dumps(known)})
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        content = sink.getvalue().to_pybytes()
        self.create(self._state_name(superstep, part), content)
        return len(content)

    def read_state(self, superstep: int, part: int) -> tuple[dict[str, Any], bool, Any]:
        """Reads the state of a part: its columns, whether they have names, and which vertices signal."""
        name = self._name(self._state_name(superstep, part))
        content = wait_sync(self._store.get(name))
        if content is None:
            raise make("unavailable", f"{name} of {self.location} was removed meanwhile: another driver has ended the run")
        try:
            table = pa.ipc.open_stream(content).read_all()
            known = json.loads(table.schema.metadata[b"hoplake"])
            arrays = [column.combine_chunks().to_numpy(zero_copy_only=False) for column in table.columns]
        except (pa.ArrowInvalid, OSError, ValueError, KeyError, TypeError) as error:
            raise make("corrupt", f"{name} of {self.location} is not what a run writes: {error}") from error
        active = arrays.pop().astype(bool) if known["active"] else None
        return dict(zip(known["columns"], arrays)), known["named"], active

    def agree_on_list(self, superstep: int, known: dict[str, Any]) -> None:
        """Says that all parts of a superstep are written."""
        self.agree(f"{self.token}/{superstep:06}/list", known)

    def newest(self) -> tuple[int, dict[str, Any]] | None:
        """The last superstep after which all parts are written, and its list."""
        folder = self._name(self.token)
        steps = sorted(name.split("/")[3] for name in wait_sync(self._store.list(folder)) if name.endswith("/list"))
        if not steps:
            return None
        known = self._json(f"{self.token}/{steps[-1]}/list")
        return None if known is None else (int(steps[-1]), known)

    def remove(self, *, before: int | None = None, keep: tuple[str, ...] = (), only: tuple[str, ...] | None = None) -> None:
        """Removes the objects of the run: those of supersteps before one; or all but some, or only those with names that begin so."""
        names: list[str] = []
        for name in wait_sync(self._store.list(self._name("").rstrip("/"))):
            own = name.removeprefix(self._name(""))
            token, _, rest = own.partition("/")
            is_old = before is not None and token == self.token and rest < f"{before:06}"
            is_named = own not in keep and (only is None or own.startswith(only))
            if is_old or (before is None and is_named):
                names.append(name)
        # A list goes first: without it, its superstep is not complete.
        lists = [name for name in names if name.endswith("/list")]
        for some in (lists, [name for name in names if not name.endswith("/list")]):
            if some:
                wait_sync(self._store.delete(some))
