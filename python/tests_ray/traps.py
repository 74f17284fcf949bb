"""Places of a run at which a worker, the node of a worker, or the driver dies, each once.

A trap travels with the functions of a program. In each process that gets it, it puts itself into the calls of ``hoplake.ray`` that no function of a program sees:
reading lists, writing checkpoints, tags and results.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any, Literal

import ray
from programs import once, program

ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])


class Trap:
    """Places, and who dies there."""

    def __init__(self, folder: Path, who: Literal["worker", "node", "driver"], places: list[str]) -> None:
        self.folder = folder
        self.who = who
        self.places = places

    def __reduce__(self) -> Any:
        return _set, (self.folder, self.who, self.places)

    def at(self, place: str) -> None:
        """Reaches a place."""
        if place not in self.places or not once(self.folder / place):
            return
        if self.who == "node":
            (self.folder / f"{place} of").write_text(f"{ray.get_runtime_context().get_node_id()} {os.getpid()}")
            # Until the node ends.
            time.sleep(60)
        os.kill(int((self.folder / "driver").read_text()) if self.who == "driver" else os.getpid(), signal.SIGKILL)

    def reached(self) -> set[str]:
        """The places at which something has died."""
        return {path.name for path in self.folder.iterdir()} & set(self.places)

    def program(self, supersteps: int = 3) -> dict[str, Any]:
        """A program whose functions reach places."""
        own = program(supersteps)
        trap = self

        def initial(pages: Any) -> Any:
            trap.at("initial")
            return own["initial"](pages)

        def signalled(state: Any, pages: Any) -> Any:
            trap.at(f"signal {pages.superstep}")
            return own["signal"](state, pages)

        def apply(state: Any, received: Any, pages: Any) -> Any:
            trap.at(f"apply {pages.superstep}")
            return own["apply"](state, received, pages)

        def aggregate(state: Any, pages: Any) -> Any:
            trap.at(f"aggregate {pages.superstep}")
            return own["aggregate"](state, pages)

        return {**own, "initial": initial, "signal": signalled, "apply": apply, "aggregate": aggregate}


def _set(folder: Path, who: Any, places: list[str]) -> Trap:
    from hoplake.ray import _checkpoints, _driver, _worker

    trap = Trap(folder, who, places)
    # Processes of drivers run one after the other.
    modules: Any = sys
    is_first = not hasattr(modules, "_trap")
    modules._trap = trap
    if not is_first:
        return trap

    def around(kind: Any, name: str, before: str = "", after: str = "") -> None:
        inner = getattr(kind, name)

        def call(self: Any, *arguments: Any, **options: Any) -> Any:
            step = {"write_state": 0, "agree": 0, "agree_on_list": 0}.get(name)
            suffix = "" if step is None else f" {arguments[step]}"
            # Ray may send what is changed here to processes that have no trap.
            trap = getattr(modules, "_trap", None)
            if trap is None:
                return inner(self, *arguments, **options)
            trap.at(f"{before}{suffix}")
            result = inner(self, *arguments, **options)
            trap.at(f"{after}{suffix}")
            return result

        setattr(kind, name, call)

    around(_worker.Job, "begin", "load")
    around(_worker.Worker, "table", "table")
    around(_worker.Worker, "leave", "leave")
    around(_worker.Worker, "take", "take")
    around(_checkpoints.Objects, "write_state", "state", "stated")
    around(_checkpoints.Objects, "agree", after="agreed")
    around(_checkpoints.Objects, "agree_on_list", "list")
    around(_driver.Driver, "_tag", after="tagged")
    around(_driver.Driver, "_commit", "commit", "committed")
    around(_driver.Driver, "_untag", "untag")
    begin = _driver.Driver.__init__

    def began(self: Any, request: Any) -> None:
        (modules._trap.folder / "driver").write_text(str(os.getpid()))
        begin(self, request)

    setattr(_driver.Driver, "__init__", began)
    return trap
