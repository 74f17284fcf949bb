"""Every public function is called with hostile values (``hostile.py``): an exception says what is wrong, and the process goes on."""

from __future__ import annotations

import inspect
import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import hostile
import pytest
from hostile_values import VALUES

import hoplake

NAMES = [*hostile.functions(), "options"]


class Outcome:
    """What the calls of all functions did: findings by function, and functions in whose calls the process ended."""

    def __init__(self) -> None:
        self.found: dict[str, list[str]] = {}
        self.ended: dict[str, str] = {}


def _run(folder: Path, names: list[str], outcome: Outcome) -> None:
    left = names
    while left:
        arguments = [sys.executable, str(Path(hostile.__file__)), str(folder), *left]
        ended = subprocess.run(arguments, capture_output=True, text=True, errors="replace", env={**os.environ, "RUST_BACKTRACE": "0"})
        for line in ended.stdout.splitlines():
            done = json.loads(line)
            outcome.found[done["name"]] = [done["name"] + what for what in done["found"]]
        rest = [name for name in left if name not in outcome.found]
        if not rest or ended.returncode == 0:
            break
        # It goes on after the function in which it ended.
        how = signal.Signals(-ended.returncode).name if ended.returncode < 0 else f"status {ended.returncode}"
        call = (folder / "under_way").read_text().strip() if (folder / "under_way").exists() else ""
        outcome.ended[rest[0]] = f"{call}: {how}\n{ended.stderr[-2_000:]}"
        left = rest[1:]


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    outcome = Outcome()
    with ThreadPoolExecutor() as threads:
        halves = [threads.submit(_run, tmp_path_factory.mktemp("hostile"), NAMES[half::2], outcome) for half in range(2)]
        for each in halves:
            each.result()
    return outcome


@pytest.mark.parametrize("name", NAMES)
def test_hostile_values_are_exceptions(outcome: Outcome, name: str) -> None:
    assert name not in outcome.ended, outcome.ended[name]
    new = [what for what in outcome.found[name] if not any(known.matches(what) for known in hostile.KNOWN)]
    assert not new, "\n".join(new[:20])


@pytest.mark.parametrize("known", [known for known in hostile.KNOWN if not known.is_fatal], ids=lambda known: known.reason)
def test_what_is_known_still_happens(outcome: Outcome, known: hostile.Known) -> None:
    """Once it is corrected, take it out of the list, so that it is noticed if it comes back."""
    every = [what for found in outcome.found.values() for what in found]
    assert any(known.matches(what) for what in every), f"{known.pattern} does not happen any more: remove it from KNOWN"


def test_every_public_function_is_called_with_what_it_needs() -> None:
    assert hostile.classes_without_target() == [], "give them a target in hostile.py"
    for function in hostile.functions().values():
        needed = {it.name for it in function.parameters if it.default is it.empty and it.kind not in (it.VAR_POSITIONAL, it.VAR_KEYWORD)}
        missing = needed - set(hostile.ARGUMENTS.get(function.name, {}))
        assert not missing, f"{function.name} needs {missing} in hostile.ARGUMENTS"
    stale = set(hostile.ARGUMENTS) - set(hostile.functions())
    assert not {name for name in stale if not name.startswith("aio.")}, "these functions are not there any more"


def test_every_value_is_given_to_some_function() -> None:
    """Functions that are called with every so many values are called with others for each parameter."""
    parameters = len(inspect.signature(hoplake.load).parameters)
    assert hostile.SPARSE["load"] <= parameters
    seen = {name for number in range(hostile.SPARSE["load"]) for name, _ in hostile.values("load", number, False)}
    assert seen == set(VALUES)
