"""Waiting for calls of the extension, with and without asyncio.

A call is a task on threads of the extension. Both ways wait for it in short steps. Between two steps the interpreter handles signals, so that Ctrl-C
ends every call, and progress is reported on the caller's thread, so that an exception raised by a callback ends the call, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar, Union

from ._arguments import shown
from ._errors import InvalidError
from ._hoplake import Task

_T = TypeVar("_T")

#: Called with the step of a call, how much of it is done, and of how much, if that is known.
ProgressCallback = Callable[[str, int, "int | None"], None]

#: ``True`` for a bar of ``tqdm.auto`` if tqdm is installed, or a function.
Progress = Union[bool, ProgressCallback]

_STEP_SECONDS = 0.05
#: How long a cancelled call may take to clean up, such as to remove a load's lease from the graph.
_ORDER_SECONDS = 5.0


class _Bar:
    """A progress bar of tqdm, if it is installed."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._step = ""

    def __call__(self, step: str, done: int, total: int | None) -> None:
        try:
            from tqdm.auto import tqdm
        except ImportError:
            return
        if self._bar is None or (total is not None and self._bar.total != total) or (total is not None and step != self._step):
            self.close()
            self._bar = tqdm(total=total, unit="", unit_scale=True, desc=step)
        self._step = step
        self._bar.set_description(step, refresh=False)
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None


class Reporter:
    """Passes on what a call reports, when it has changed."""

    def __init__(self, progress: Progress) -> None:
        if not isinstance(progress, bool) and not callable(progress):
            raise InvalidError(f"progress is True, False or a function, not {shown(progress)}")
        self._bar = _Bar() if progress is True else None
        self._callback: ProgressCallback | None = self._bar if progress is True else progress or None
        self._last: tuple[str, int, int | None] | None = None

    def look(self, task: Task[Any]) -> None:
        if self._callback is None:
            return
        report = task.progress()
        if report is not None:
            self.report(report)

    def report(self, report: tuple[str, int, int | None]) -> None:
        """Passes on a step, how much of it is done, and of how much."""
        if self._callback is not None and report != self._last:
            self._last = report
            self._callback(*report)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


def wait_sync(task: Task[_T], progress: Progress = False) -> _T:
    """The result of a call, once it has ended."""
    reporter = Reporter(progress)
    try:
        while not task.wait(_STEP_SECONDS):
            reporter.look(task)
        reporter.look(task)
        return task.result()
    except BaseException:
        if task.cancel():
            task.wait(_ORDER_SECONDS)
        raise
    finally:
        reporter.close()


async def wait_async(task: Task[_T], progress: Progress = False) -> _T:
    """The result of a call, once it has ended. The call ends early if this is cancelled."""
    loop = asyncio.get_running_loop()
    done = asyncio.Event()

    def tell() -> None:
        try:
            loop.call_soon_threadsafe(done.set)
        except RuntimeError:
            # The loop is closed: no task waits any more.
            pass

    reporter = Reporter(progress)
    try:
        task.on_done(tell)
        while not done.is_set():
            try:
                await asyncio.wait_for(done.wait(), _STEP_SECONDS if progress else None)
            except asyncio.TimeoutError:
                reporter.look(task)
        reporter.look(task)
        return task.result()
    except BaseException:
        task.cancel()
        raise
    finally:
        reporter.close()
