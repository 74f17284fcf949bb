"""Parts move from a worker that lags."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
from programs import turns, once, program
from traps import Trap

import hoplake
import hoplake.ray
from hoplake.ray._balance import Balance, Move


def _observed(balance: Balance, *supersteps: list[float]) -> Move | None:
    for seconds in supersteps:
        balance.observe(seconds)
    return balance.next_move()


def test_half_of_the_parts_move_to_the_fastest_after_three_supersteps() -> None:
    balance = Balance([0, 1, 2, 0, 1, 2, 0, 1, 2], most=9)
    balance.weigh([10] * 9, [1.0] * 9)
    slow = [5.0, 1.0, 0.9] * 3
    assert _observed(balance, slow, slow) is None
    # One superstep that is not slow, and it begins again.
    assert _observed(balance, [1.0] * 9, slow, slow) is None
    # The times of one superstep say little: those of three decide which one is the fastest.
    assert _observed(balance, [5.0, 0.1, 0.9] * 3) == Move([0, 3], 0, 1)


def test_two_workers_have_a_median() -> None:
    balance = Balance([0, 1, 0, 1], most=4)
    assert _observed(balance, *[[1.0, 2.9, 1.0, 2.9]] * 3) == Move([1], 1, 0)
    balance = Balance([0, 1, 0, 1], most=4)
    assert _observed(balance, *[[1.0, 1.9, 1.0, 1.9]] * 9) is None


def test_a_part_moves_once() -> None:
    balance = Balance([0, 1, 0, 1], most=4)
    assert _observed(balance, *[[1.0, 9.0, 1.0, 9.0]] * 3) == Move([1], 1, 0)
    balance.moved(1, 0)
    assert balance.placed == [0, 0, 0, 1]
    # The other part of the slow one goes, too; then it has none, and is not the fastest for that.
    assert _observed(balance, *[[1.0, 1.0, 1.0, 9.0]] * 3) == Move([3], 1, 0)
    balance.moved(3, 0)
    assert _observed(balance, *[[9.0] * 4] * 5) is None
    # The other way round only parts go that have not moved.
    balance = Balance([0, 1, 1], most=3)
    balance.moved(0, 1)
    balance.moved(1, 0)
    assert _observed(balance, *[[9.0, 1.0, 9.0]] * 3) == Move([2], 1, 0)
    balance.stays(2)
    assert balance.next_move() is None


def test_nothing_moves_for_less_than_it_costs() -> None:
    slow = [0.01, 0.03, 0.01, 0.03]
    balance = Balance([0, 1, 0, 1], most=4)
    # What was waited for is 0.04 s a superstep.
    balance.weigh([10] * 4, [0.21] * 4)
    assert _observed(balance, *[slow] * 5) is None
    assert _observed(balance, slow) == Move([1], 1, 0)
    # A part that is long by its edges would be as long elsewhere.
    balance = Balance([0, 1], most=2)
    balance.weigh([10, 90], [0.0] * 2)
    assert _observed(balance, *[[1.0, 9.0]] * 5) is None
    # There is no room.
    balance = Balance([0, 1, 0, 1], most=2)
    assert _observed(balance, *[slow] * 5) is None


def _slow(folder: Path, own: dict[str, Any], where: str = "apply", seconds: float = 0.2) -> dict[str, Any]:
    """A program that is slow in the process that begins first, for each of its parts."""

    def slow(*arguments: Any) -> Any:
        if once(folder / "slow is chosen"):
            (folder / "slow").write_text(str(os.getpid()))
        path = folder / "slow"
        if path.exists() and path.read_text() == str(os.getpid()):
            with (folder / "sleeps").open("a") as file:
                file.write(f"{arguments[-1].superstep}\n")
            time.sleep(seconds)
        return own[where](*arguments)

    return {**own, where: slow}


def _bits(result: hoplake.ray.Result) -> Any:
    assert result.table is not None
    return result.table.sort_by([("label", "ascending"), ("key", "ascending")]).combine_chunks()


@pytest.mark.usefixtures("nodes")
@pytest.mark.parametrize("where", ["signal", "apply"])
def test_parts_leave_a_slow_worker(graph: hoplake.Graph, tmp_path: Path, where: str) -> None:
    own = program(12) if where == "apply" else turns()
    expected = hoplake.ray.pregel(graph.url, workers=1, parts=6, **own)
    assert (len(expected.figures["parts"]), expected.figures["moved"]) == (6, 0)
    found = hoplake.ray.pregel(graph.url, workers=3, parts=6, **_slow(tmp_path, own, where))
    figures = found.figures
    # All bits are those of the run that moved nothing.
    assert _bits(found).equals(_bits(expected)) and found.supersteps == expected.supersteps
    assert figures["restarts"] == 0
    # Others that wait for its signals do not count as slow. The first superstep reads degrees, which may take as long.
    sleeps = (tmp_path / "sleeps").read_text().split()
    parts = [sleeps.count(str(superstep)) for superstep in range(1, found.supersteps + 1)]
    assert parts == sorted(parts, reverse=True) and parts[:3] == [2, 2, 2] and parts[-1] < 2, "a part leaves after three supersteps"
    assert figures["moved"] >= 2 - parts[-1]
    if where == "apply":
        assert parts.count(1) >= 3 and parts[-1] == 0, "and the other one after three more"
        assert min(worker["parts"] for worker in figures["workers"]) == 0
        assert figures["superstep_seconds"][-1] < figures["superstep_seconds"][0]


@pytest.mark.usefixtures("nodes")
@pytest.mark.parametrize("place", ["leave", "take"])
def test_a_worker_dies_while_parts_move(graph: hoplake.Graph, tmp_path: Path, place: str) -> None:
    # Which vertices signal is in checkpoints, too.
    own = turns() if place == "take" else program(5)
    expected = hoplake.ray.pregel(graph.url, workers=1, parts=4, **own)
    trap = Trap(tmp_path, "worker", [place])
    slow = _slow(tmp_path, own)
    initial = slow["initial"]

    def armed(pages: hoplake.Vertices) -> Any:
        trap.at("initial")
        return initial(pages)

    found = hoplake.ray.pregel(graph.url, workers=2, parts=4, checkpoint_seconds=0, **{**slow, "initial": armed})
    assert trap.reached() == {place} and found.figures["restarts"] >= 1
    assert _bits(found).equals(_bits(expected))


@pytest.mark.usefixtures("nodes")
def test_a_part_that_cannot_move_stays(graph: hoplake.Graph, tmp_path: Path) -> None:
    slow = _slow(tmp_path, program(7))
    objects = [path for path in (Path(graph.url) / "data").iterdir() if path.is_file()]

    def breaks(state: Any, received: Any, pages: hoplake.Vertices) -> Any:
        # Meanwhile nothing can be read but what is known.
        if pages.superstep == 2 and once(tmp_path / "broken"):
            for path in objects:
                path.rename(path.with_suffix(".away"))
        if pages.superstep == 6 and once(tmp_path / "mended"):
            for path in objects:
                path.with_suffix(".away").rename(path)
        return slow["apply"](state, received, pages)

    expected = hoplake.ray.pregel(graph.url, workers=1, parts=4, **program(7))
    found = hoplake.ray.pregel(graph.url, workers=2, **{**slow, "apply": breaks})
    # Of two parts of the slow worker, one was tried, and then the other one.
    assert (found.figures["moved"], found.figures["restarts"]) == (0, 0)
    assert len((tmp_path / "sleeps").read_text().split()) == 14
    assert _bits(found).equals(_bits(expected))
