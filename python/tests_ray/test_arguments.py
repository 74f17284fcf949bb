"""Every argument of hoplake.ray with hostile values: each is rejected by name, or computed."""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import ray
from programs import left, program

import hoplake
import hoplake.ray
from hoplake.ray import _driver, _run, _worker

# The values that the rest of the package is tested with.
sys.path.append(str(Path(__file__).parents[1] / "tests"))

import hostile_values
from hostile_values import SOCIAL, VALUES, Own

ray.cloudpickle.register_pickle_by_value(hostile_values)

#: Exceptions of the values themselves.
_OWN = (Own, SystemExit, MemoryError)

#: The parameters of a program, and of what computes it, which checks those of an algorithm, too.
_PROGRAM = (
    "initial signal apply combine aggregate edges labels weight along default max_supersteps tolerance name result "
    "workers parts write id version threads memory checkpoints checkpoint_seconds patience_seconds actor_options progress"
).split()

#: Those that are checked by code that no other parameter has see all values, and the others half of them.
_ONLY_HERE = ("workers", "write", "id", "checkpoint_seconds", "actor_options", "combine", "tolerance")


class _Accepted(Exception):
    """The checks of the caller let a request pass, and so did planning it and beginning its parts."""


@pytest.fixture
def planned(graph: hoplake.Graph, monkeypatch: pytest.MonkeyPatch) -> Iterator[hoplake.Graph]:
    """Plans runs and makes their first states in this process: a run takes seconds, and there are thousands."""
    hoplake.load(SOCIAL, vertices={"Person": {"key": [1, 2, 3]}}, replace=True)
    known: dict[str, Any] = {}

    def plan(request: _driver.Request) -> None:
        # As Ray sends it.
        try:
            sent = ray.cloudpickle.dumps(request)
        except Exception as error:
            _run._arguments.check_pickles(_run._sent(request), error)
            raise
        try:
            request = ray.cloudpickle.loads(sent)
        except TypeError:
            # Ray says so, and the run in its words: see the test of what cannot be read.
            raise _Accepted from None
        driver = _driver.Driver(request)
        driver._plan()
        worker = _worker.Worker(driver._job)
        worker.load(0)
        worker.begin(0)
        known["request"] = request
        driver._clean()
        raise _Accepted

    monkeypatch.setattr(_run, "_driven", plan)
    yield graph


def _problem(call: Callable[[], Any]) -> str | None:
    """What is wrong with how a call ends."""
    try:
        call()
    except (_Accepted, hoplake.Error, *_OWN) as error:
        return f"InternalError: {error}" if isinstance(error, hoplake.InternalError) else None
    except RecursionError as error:
        return f"RecursionError: {error}"[:200]
    except BaseException as error:
        return f"{type(error).__qualname__}: {error}"[:300]
    return None


def _some(first: int, step: int) -> list[tuple[str, Callable[[], Any]]]:
    """Some of the values, and others for another place, where calls are slow."""
    return list(VALUES.items())[first % step :: step]


@pytest.mark.usefixtures("nodes")
@pytest.mark.parametrize("parameter", _PROGRAM)
def test_programs_reject_hostile_values(planned: hoplake.Graph, parameter: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    wrong: list[str] = []
    # Functions of a program raise what they raise.
    others = ("function", "type") if parameter in ("initial", "aggregate") else ()
    usual = {**program(2), "patience_seconds": 0.1}
    if parameter == "initial":
        # It needs columns with its names.
        usual["aggregate"] = None
    for name, make in _some(_PROGRAM.index(parameter), 1 if parameter in _ONLY_HERE else 2):
        if name in others:
            continue
        arguments = {**usual, parameter: make()}
        if problem := _problem(lambda arguments=arguments: hoplake.ray.pregel(planned.url, **arguments)):
            wrong.append(f"{parameter}={name}: {problem}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.usefixtures("nodes")
@pytest.mark.parametrize("option", ["from_", "iterations", "tolerance", "damping", "weight", "colour", "edges", "labels", "write", "version"])
def test_runs_reject_hostile_values(planned: hoplake.Graph, option: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    wrong: list[str] = []
    for name, make in _some(len(option), 1 if option in ("from_", "iterations") else 2):
        if (option, name) == ("from_", "class_lies"):
            # It says that it is a vertex, and has no label.
            continue
        arguments = {"patience_seconds": 0.1, option: make()}
        if problem := _problem(lambda arguments=arguments: hoplake.ray.run(planned.url, "pagerank", **arguments)):
            wrong.append(f"{option}={name}: {problem}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.usefixtures("nodes", "planned")
def test_urls_and_names_of_algorithms_are_rejected(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    wrong: list[str] = []
    calls: dict[str, Callable[[Any], Any]] = {
        "url": lambda value: hoplake.ray.run(value, "degrees", patience_seconds=0),
        "algorithm": lambda value: hoplake.ray.run(str(tmp_path), value, patience_seconds=0),
        "vertices": lambda value: hoplake.ray.vertices(value),
        "edges": lambda value: hoplake.ray.edges(value),
    }
    for first, (what, call) in enumerate(calls.items()):
        for name, make in _some(first, 2):
            if problem := _problem(lambda call=call, make=make: call(make())):
                wrong.append(f"{what}={name}: {problem}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.usefixtures("nodes")
@pytest.mark.parametrize("call", [hoplake.ray.vertices, hoplake.ray.edges])
def test_datasets_reject_hostile_values(graph: hoplake.Graph, call: Callable[..., Any]) -> None:
    wrong: list[str] = []
    parameters = ["labels" if call is hoplake.ray.vertices else "label", "columns", "version"]
    parameters += ["where"] if call is hoplake.ray.vertices else ["source_label", "target_label"]
    for first, parameter in enumerate([*parameters, "override_num_blocks", "ray_remote_args", "colour"]):
        for name, make in _some(first, 4 if first > 3 else 2):
            label = (make(),) if parameter.startswith("label") else ()
            named = {} if label else {parameter: make()}
            if problem := _problem(lambda label=label, named=named: call(graph.url, *label, **named)):
                wrong.append(f"{parameter}={name}: {problem}")
    assert not wrong, "\n".join(wrong)


class _Lock:
    """Something that no other process can have."""

    def __init__(self) -> None:
        self.lock = threading.Lock()


@pytest.mark.usefixtures("nodes")
@pytest.mark.parametrize("parameter", ["initial", "signal", "apply", "aggregate", "progress", "actor_options"])
def test_what_cannot_be_pickled_is_named(graph: hoplake.Graph, parameter: str) -> None:
    lock = _Lock()
    own: Any = {"runtime_env": {"env_vars": {}}, "_labels": lock} if parameter == "actor_options" else lambda *_: lock
    with pytest.raises(hoplake.InvalidError, match=parameter) as raised:
        hoplake.ray.pregel(graph.url, **{**program(2), parameter: own})
    assert parameter == "actor_options" or "cannot be sent to other processes" in str(raised.value)
    assert not left(graph)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"checkpoint_seconds": math.nan}, "checkpoint_seconds has to be a number of seconds, 0 or more, not nan"),
        ({"patience_seconds": -1}, "patience_seconds has to be a number of seconds, 0 or more, not -1"),
        ({"patience_seconds": timedelta(days=-1)}, "patience_seconds has to be a number of seconds"),
        ({"checkpoint_seconds": 10**400}, "checkpoint_seconds has to be a number of seconds"),
        ({"checkpoint_seconds": "1"}, "checkpoint_seconds has to be a number of seconds, 0 or more, not '1'"),
        ({"workers": 0}, "workers has to be a whole number of 1 or more, not 0"),
        ({"workers": 5000}, "workers is 5000; it has to be at most 4096"),
        ({"workers": 3, "parts": 2}, "parts is 2; there has to be one for each of 3 workers"),
        ({"parts": 2**63}, "parts has to be a whole number of at most"),
        ({"threads": 2000}, "threads is 2000; it has to be at most 1024"),
        ({"memory": -5}, "memory has to be a whole number of 0 or more, not -5"),
        ({"version": 1.5}, "version has to be a whole number"),
        ({"id": 3}, "id has to be a str, not int"),
        ({"id": "\ud800"}, "id has half of a character"),
        ({"labels": 3}, "labels has to be a str or a list of them, not 3"),
        ({"labels": ["\ud800"]}, "each of labels has half of a character"),
        ({"edges": b"out"}, "edges has to be a str, not bytes"),
        ({"checkpoints": 3}, "checkpoints has to be a path or a URL, not int"),
        ({"checkpoints": "memory://x"}, "in the memory of one process"),
        ({"progress": True}, "progress has to be a function, not True"),
        ({"actor_options": []}, "actor_options has to be a dict of options by name"),
        ({"actor_options": {"max_concurrency": 3}}, "actor_options names 'max_concurrency', which the run decides"),
        ({"actor_options": {"colour": "red"}}, "actor_options is not what Ray takes: .*colour"),
        ({"actor_options": {"num_gpus": -1}}, "actor_options is not what Ray takes: .*num_gpus"),
        ({"write": {}}, "write has to name at least one property, and each once"),
        ({"write": {"rank": "x", "steps": "x"}}, "write has to name at least one property, and each once"),
        ({"write": {"rank": 3}}, "each property of write has to be a str, not int"),
        ({"write": 3}, "write has to be a str, a dict of properties by column, or a list of columns, not 3"),
        ({"combine": "median"}, "combine is 'median'; write sum, min, max, mean, count or mode"),
        ({"along": "over"}, "along is 'over'; write times or plus"),
        ({"weight": 3}, "weight has to be a str, not int"),
        ({"result": 3}, "result has to be a str or a list of them, not 3"),
        ({"signal": 3}, "signal has to be a function, not 3"),
        ({"tolerance": math.nan}, "tolerance is nan; it has to be a number, 0 or more"),
    ],
)
def test_messages_say_what_is_wrong(graph: hoplake.Graph, arguments: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def started(_: Any) -> None:
        raise AssertionError("it was started")

    monkeypatch.setattr(_run, "_driven", started)
    with pytest.raises(hoplake.InvalidError, match=message):
        hoplake.ray.pregel(graph.url, **{**program(2), **arguments})


@pytest.mark.usefixtures("nodes")
def test_what_nodes_cannot_read_is_named(graph: hoplake.Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "only_here.py").write_text("def apply(state, received, pages):\n    return state\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import only_here  # type: ignore[import-not-found]

    with pytest.raises(hoplake.InvalidError, match="cannot be read by other processes: .*only_here"):
        hoplake.ray.pregel(graph.url, **{**program(2), "apply": only_here.apply})
    with pytest.raises(hoplake.InvalidError, match="cannot be read by other processes: TypeError: .*offset"):
        hoplake.ray.run(graph.url, "pagerank", damping=VALUES["zone_raises"]())


@pytest.mark.usefixtures("nodes")
def test_workers_that_ray_cannot_start_are_said(graph: hoplake.Graph) -> None:
    with pytest.raises(hoplake.UnavailableError, match="Ray has not started the 2 workers of the run impossible in 2 seconds"):
        hoplake.ray.run(graph.url, "degrees", id="impossible", threads=500, patience_seconds=2)
