"""Calls of every public function with every hostile value in the place of each of its parameters.

``test_hostile.py`` runs this file in a child process, which prints a line of JSON for each function. ``python/fuzz/calls.py`` combines the same values
and calls at random.

    python tests/hostile.py FOLDER [FUNCTION…]
"""

# What is wrong on purpose has no types.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import asyncio
import copy
import dataclasses
import faulthandler
import inspect
import itertools
import json
import os
import pickle
import re
import resource
import signal
import sys
import time
import traceback
from collections import abc
from collections.abc import Callable, Iterator
from typing import Any

import networkx
import pyarrow as pa
from hostile_values import SOCIAL, VALUES, Own, always, with_methods

import hoplake
import hoplake.aio
import hoplake.nx
from hoplake import gremlin
from hoplake._sync.graph import _graph_at  # what a pickle of a graph calls


def people() -> dict[str, Any]:
    return {"key": [1, 2, 3], "name": ["Ann", "Bo", None], "age": [30, 41, None]}


def knows() -> dict[str, Any]:
    return {"source": [1, 2, 1], "target": [2, 3, 3], "since": [2020, 2021, 2022]}


class Place:
    """A graph, and what is made of it, for the calls of one function."""

    def __init__(self, number: int) -> None:
        self.url = f"memory://hostile/{number}"
        self.number = 0
        hoplake.load(self.url, vertices={"Person": people()}, edges={("Person", "knows", "Person"): knows()})
        self.graph = hoplake.open(self.url)
        self.computation = self.graph.run("pagerank")
        self.vertices = _vertices_of(self.graph)
        self.loop = asyncio.new_event_loop()
        self.aio_graph = self.now(hoplake.aio.open(self.url))
        self.aio_computation = self.now(self.aio_graph.run("pagerank"))

    def now(self, result: Any) -> Any:
        """What a call returns once it has ended."""
        return self.loop.run_until_complete(_awaited(result)) if inspect.isawaitable(result) else result

    def elsewhere(self) -> str:
        self.number += 1
        return f"{self.url}/elsewhere/{self.number}"


def _vertices_of(graph: hoplake.Graph) -> hoplake.Vertices:
    """The vertices that the functions of a program get."""
    seen: list[hoplake.Vertices] = []

    def initial(vertices: hoplake.Vertices) -> int:
        seen.append(vertices)
        return 0

    graph.pregel(initial=initial, **_PROGRAM)
    return seen[0]


#: Functions of a program whose state stays as it is.
_PROGRAM: dict[str, Any] = {"signal": lambda *_: 1, "apply": lambda state, *_: state}


def _sampler_of(graph: Any) -> Any:
    """A sampler, or what is awaited for one."""
    return graph.sampler({"out:knows": [2]}, features={"Person": {"x": "age"}}, missing=0)


_LINKS: dict[str, Any] = {"kind": ("Person", "out:knows", "Person"), "near": [0], "far": [1]}

#: Makes what the function is a method of.
Target = Callable[[Place], Any]

_TARGETS: dict[str, Target] = {
    "Graph": lambda place: place.graph,
    "Commit": lambda place: place.graph.begin(on_newest=True),
    "Computation": lambda place: place.computation,
    "Results": lambda place: place.graph.query("g.V()"),
    "Scan": lambda place: place.graph.scan(),
    "Server": lambda place: hoplake.serve({"x": place.url}),
    "Table": lambda place: place.graph.get("Person:1"),
    "Traversal": lambda place: place.graph.traverse("Person:1").out(),
    "Sampler": lambda place: _sampler_of(place.graph),
    "Sample": lambda place: _sampler_of(place.graph).sample("Person:1"),
    "LinkSample": lambda place: _sampler_of(place.graph).sample_links(**_LINKS),
    "Vertices": lambda place: place.vertices,
    "Walks": lambda place: place.graph.traverse("Person:1").out().walks(),
    "nx.Graph": lambda place: place.graph.nx(),
    "aio.Graph": lambda place: place.aio_graph,
    "aio.Commit": lambda place: place.now(place.aio_graph.begin(on_newest=True)),
    "aio.Computation": lambda place: place.aio_computation,
    "aio.Sampler": lambda place: place.now(_sampler_of(place.aio_graph)),
    "aio.Scan": lambda place: place.aio_graph.scan(),
    "aio.Traversal": lambda place: place.aio_graph.traverse("Person:1").out(),
    "aio.Results": lambda place: place.now(place.aio_graph.query("g.V()")),
    "aio.Walks": lambda place: place.now(place.aio_graph.traverse("Person:1").out().walks()),
}

#: Arguments with which a function works, where it needs some: a value that is a function is called with the place.
ARGUMENTS: dict[str, dict[str, Any]] = {
    "Graph.at": {"version": 1},
    "Graph.get": {"vertices": "Person:1"},
    "Graph.neighbors": {"vertices": "Person:1"},
    "Graph.degrees": {"vertices": "Person:1"},
    "Graph.traverse": {"vertices": "Person:1"},
    "Graph.path": {"source": "Person:1", "target": "Person:3"},
    "Graph.neighborhood": {"vertex": "Person:1"},
    "Graph.plot": {"vertex": "Person:1"},
    "Graph.query": {"text": "g.inject(x)", "parameters": {"x": 1}},
    "Graph.explain": {"text": "g.inject(x)", "parameters": {"x": 1}},
    "Graph.profile": {"text": "g.inject(x)", "parameters": {"x": 1}},
    "Graph.call": {"name": "q"},
    "Graph.save_query": {"name": "q", "text": "g.V()"},
    "Graph.delete_query": {"name": "q"},
    "Graph.run": {"algorithm": "pagerank"},
    # Two supersteps: what is returned may say that the program goes on.
    "Graph.pregel": {"initial": 0, "max_supersteps": 2, **{name: always(function) for name, function in _PROGRAM.items()}},
    "Graph.sampler": {"fan_out": [2]},
    "Graph.apply": {"json_lines": '{"op":"upsert_vertex","label":"Person","key":1}'},
    "Graph.diff": {"before": 1},
    "Graph.tag": {"name": "t"},
    "Graph.untag": {"name": "t"},
    "Graph.restore": {"version": 1},
    "Graph.clone": {"target": Place.elsewhere},
    "Graph.mirror": {"target": Place.elsewhere},
    "Graph.export": {"target": Place.elsewhere},
    "Graph.create_index": {"name": "Person.name"},
    "Graph.drop_index": {"name": "Person.name"},
    "Commit.upsert_vertex": {"label": "Person", "key": 1},
    "Commit.replace_vertex": {"label": "Person", "key": 1},
    "Commit.delete_vertex": {"label": "Person", "key": 1},
    "Commit.upsert_edge": {"label": "knows", "source": ("Person", 1), "target": ("Person", 2)},
    "Commit.delete_edge": {"label": "knows", "source": ("Person", 1), "target": ("Person", 2)},
    "Commit.upsert_vertices": {"label": "Person", "rows": people()},
    "Commit.upsert_edges": {"label": "knows", "source_label": "Person", "target_label": "Person", "rows": knows()},
    "Computation.write": {"property": "rank"},
    "Sampler.sample": {"seeds": "Person:1"},
    "Sampler.sample_links": _LINKS,
    "Sampler.batches": {"seeds": "Person:1"},
    "Sampler.ordinals": {"vertices": "Person"},
    "Sampler.keys": {"label": "Person", "ordinals": [0]},
    "Sampler.feature": {"label": "Person", "name": "x"},
    "Traversal.hop": {"text": "out"},
    "Traversal.where": {"condition": "~key = 3"},
    "Results.__getitem__": {"at": 0},
    "Walks.__getitem__": {"at": 0},
    "Table.__getitem__": {"name": "key"},
    "Vertices.__getitem__": {"name": "age"},
    "Graph.__exit__": {"kind": None, "error": None, "traceback": None},
    "Commit.__exit__": {"kind": None, "error": None, "traceback": None},
    "Server.__exit__": {"kind": None, "error": None, "traceback": None},
    "Results.__eq__": {"other": []},
    "Table.__contains__": {"item": {}},
    "nx.Graph.__contains__": {"node": 1},
    "nx.Graph.degree": {"node": 1},
    "nx.convert_from_nx": {"graph": lambda place: place.graph.nx()},
    "nx.convert_to_nx": {"result": lambda place: place.graph.nx()},
    "open": {"url": lambda place: place.url},
    "create": {"url": Place.elsewhere},
    "load": {"url": Place.elsewhere, "vertices": {"Person": people()}},
    "quote": {"value": "x"},
    "serve": {"graphs": lambda place: {"x": place.url}},
    "unpickle": {
        "kind": hoplake.Graph,
        "location": lambda place: place.graph._core.location(),
        "limits": lambda place: place.graph._core.limits(),
    },
}
_IN_AIO = ("Graph", "Commit", "Computation", "Sampler", "Traversal", "Results", "Walks", "open", "create", "load")
ARGUMENTS.update({f"aio.{name}": given for name, given in list(ARGUMENTS.items()) if name.split(".")[0] in _IN_AIO})
ARGUMENTS.update({f"aio.{name}": {"kind": None, "error": None, "traceback": None} for name in ("Graph.__aexit__", "Commit.__aexit__")})

_VERTEX: list[Callable[[Any], Any]] = [
    lambda value: ("Person", value),
    lambda value: (value, 1),
    lambda value: [value],
    lambda value: hoplake.Vertex(value, value),
]
_NAMES: list[Callable[[Any], Any]] = [lambda value: [value], lambda value: ("name", value)]
_ROWS: list[Callable[[Any], Any]] = [
    lambda value: {"key": [value], "source": [value], "target": [value]},
    lambda value: {"key": [1, 2], "source": [1, 2], "target": [1, 2], "x": [value, None]},
    lambda value: {"key": value, "source": value, "target": value},
    lambda value: with_methods("Arrow", __arrow_c_stream__=always(value)),
    lambda value: with_methods("Arrow", __arrow_c_array__=always((value, value))),
]


def _keyed(value: Any) -> Any:
    return {value: {"key": [1]}}


#: Values within others, for parameters of a name.
WITHIN: dict[str, list[Callable[[Any], Any]]] = {
    **dict.fromkeys(["vertices", "vertex", "source", "target", "from_"], _VERTEX),
    **dict.fromkeys(["labels", "select", "order_by", "indexes", "files", "edge_labels"], _NAMES),
    **dict.fromkeys(["rows", "changes"], _ROWS),
    **dict.fromkeys(["parameters", "positions", "if_positions", "keys", "graphs"], [lambda value: {"x": value}, lambda value: {value: "x"}]),
    "_key": [lambda value: ("since", value), lambda value: (value, 1)],
    "key": [lambda value: [value]],
    "location": [lambda value: (value, None, None, None, None, False), lambda value: ("memory://hostile/1", value, value, None, value, True)],
    "limits": [lambda value: (value,) * 6],
    "properties": [lambda value: [value]],
    **dict.fromkeys(["initial", "signal"], [always, lambda value: {"x": value}]),
    "apply": [always, lambda value: always((value, True)), lambda value: always((0, value))],
    "values": [
        lambda value: [value],
        lambda value: {"k": value},
        lambda value: {value: 1},
        lambda value: {value},
        lambda value: gremlin.Vertex(value, value),
    ],
}
#: Of a load, where the names of its parameters have another meaning.
WITHIN_LOAD: dict[str, list[Callable[[Any], Any]]] = {
    "vertices": [lambda value: {"Person": value}, _keyed, *(lambda value, wrap=wrap: {"Person": wrap(value)} for wrap in _ROWS)],
    "edges": [
        lambda value: {("Person", "knows", "Person"): value},
        _keyed,
        lambda value: [(value, knows())],
        lambda value: [(("Person", value, "Person"), knows())],
        lambda value: [value],
        *(lambda value, wrap=wrap: [(("Person", "knows", "Person"), wrap(value))] for wrap in _ROWS),
    ],
    "ends": [lambda value: (value, value), lambda value: {("Person", "knows", "Person"): value}],
}
#: Other arguments that a parameter needs to be looked at.
TOGETHER: dict[tuple[str, str], dict[str, Any]] = {
    ("load", "ends"): {"edges": {("Person", "knows", "Person"): knows()}},
    ("load", "keys"): {"vertices": {"x": {"id": [1], "key": [2]}}},
    ("load", "files"): {"vertices": None},
    ("load", "mapping"): {"vertices": None},
    ("Graph.apply", "changes"): {"json_lines": None},
    ("Graph.query", "values"): {"parameters": None},
    ("Graph.explain", "values"): {"parameters": None},
    ("Graph.profile", "values"): {"parameters": None},
}
TOGETHER.update({(f"aio.{name}", parameter): given for (name, parameter), given in list(TOGETHER.items())})

#: Exceptions that the language asks for in place of the package's.
ALSO: dict[str, tuple[type[BaseException], ...]] = {
    "Results.__getitem__": (IndexError,),
    "Walks.__getitem__": (IndexError,),
    "aio.Results.__getitem__": (IndexError,),
    "aio.Walks.__getitem__": (IndexError,),
    # As networkx has it, of what is not a node.
    "nx.Graph.degree": (KeyError, networkx.NetworkXError),
}

#: Exceptions of the values themselves.
VALUE_ALSO: dict[str, tuple[type[BaseException], ...]] = {
    # Raised by list(), which takes a length at its word.
    "huge_length": (MemoryError,),
    "huge_hint": (MemoryError,),
    # It says that it is a vertex, and has no label.
    "class_lies": (AttributeError,),
    "raises_system_exit": (SystemExit,),
    # Its own hash and repr, which recurse.
    "cyclic_vertex": (RecursionError,),
    "deep_vertex": (RecursionError,),
}

#: Parameters of which there are no hostile values, and why.
LEFT_OUT: dict[tuple[str, str], str] = {
    ("Graph.plot", "axes"): "matplotlib calls it",
    ("aio.Graph.plot", "axes"): "matplotlib calls it",
    # A server takes a second to stop.
    **{("Server.__exit__", parameter): "it is not looked at" for parameter in ("error", "traceback")},
}


@dataclasses.dataclass(frozen=True)
class Known:
    """What a call does wrong and is not yet corrected.

    ``pattern`` matches a finding, ``function(parameter=value): problem``, or, of what ends or stops the process, the call alone: that is not made.
    """

    pattern: str
    reason: str
    is_fatal: bool = False

    def matches(self, text: str) -> bool:
        return re.match(self.pattern, text, re.DOTALL) is not None


KNOWN: list[Known] = []


def is_called(what: str) -> bool:
    """Whether a call is made: it is not if it is known to end the process."""
    return not any(known.is_fatal and known.matches(what) for known in KNOWN)


#: Functions that take so long that they are called with every so many values.
SPARSE: dict[str, int] = {
    "serve": 60,
    "Server.__exit__": 150,
    "Graph.plot": 12,
    "Graph.diff": 8,
    "Graph.mirror": 4,
    "Graph.clone": 4,
    "Graph.export": 4,
    "Graph.compact": 4,
    "create": 8,
    "load": 5,
    "open": 6,
    "unpickle": 6,
    "options": 8,
}
#: The values within others are of fewer kinds, and functions of ``aio`` read them with the same code.
SPARSE_WITHIN = 12
SPARSE_AIO = 24


def values(function: str, number: int, is_within: bool) -> list[tuple[str, Callable[[], Any]]]:
    """The values for a parameter or option of a function: others for the next one, so that together they see all."""
    step = SPARSE.get(function.removeprefix("aio."), 1) * (SPARSE_WITHIN if is_within else 1)
    step = max(step, SPARSE_AIO) if function.startswith("aio.") else step
    return list(VALUES.items())[number % step :: step]


@dataclasses.dataclass(frozen=True)
class Function:
    """A public function, and its parameters. ``name`` begins with its class, and with ``aio.`` or ``nx.`` in these modules."""

    name: str
    call: Callable[..., Any]
    target: Target | None
    parameters: list[inspect.Parameter]


#: What networkx calls of a graph, and users; the rest is for the functions of the backend.
NETWORKX_GRAPH = (
    "__contains__",
    "__iter__",
    "__len__",
    "__repr__",
    "__str__",
    "degree",
    "is_directed",
    "is_multigraph",
    "number_of_edges",
    "number_of_nodes",
    "to_networkx",
)


def _has_call(name: str, member: Any) -> bool:
    """Whether a member is public: without an underscore, or a special method that was written and that a program calls by an operator."""
    if name in ("__init__", "__hash__", "__subclasshook__", "__class_getitem__"):
        return False
    special = name.startswith("__") and name.endswith("__") and inspect.isfunction(member)
    return special or not name.startswith("_") and (callable(member) or isinstance(member, property))


def functions() -> dict[str, Function]:
    """All public functions: those of the modules, and of their classes that are no exceptions and no plain records."""
    found: dict[str, Function] = {}
    modules = {"": hoplake, "aio.": hoplake.aio, "nx.": hoplake.nx}
    names = {"": [*hoplake.__all__, "open"], "aio.": hoplake.aio.__all__, "nx.": ["Graph", "convert_from_nx", "convert_to_nx"]}
    for prefix, module in modules.items():
        for name in names[prefix]:
            item: Any = getattr(module, name)
            if not inspect.isclass(item) and callable(item):
                parameters = list(inspect.signature(item).parameters.values())
                found[prefix + name] = Function(prefix + name, item, None, parameters)
            elif _TARGETS.get(prefix + name):
                for member, call in vars(item).items():
                    if not _has_call(member, call) or prefix == "nx." and member not in NETWORKX_GRAPH:
                        continue
                    full = f"{prefix}{name}.{member}"
                    if isinstance(call, property):
                        found[full] = Function(full, call.__get__, _TARGETS[prefix + name], [])
                    else:
                        _, *parameters = inspect.signature(call).parameters.values()
                        found[full] = Function(full, call, _TARGETS[prefix + name], parameters)
    # What pickles call, and what copies and pickles make of each object.
    found["unpickle"] = Function("unpickle", _graph_at, None, list(inspect.signature(_graph_at).parameters.values()))
    copies: dict[str, Callable[..., Any]] = {"pickle": pickle.dumps, "deepcopy": copy.deepcopy}
    for name, target in _TARGETS.items():
        for how, call in copies.items():
            if not (how == "deepcopy" and name.startswith("nx.")):
                found[f"{how}.{name}"] = Function(f"{how}.{name}", call, target, [])
    return found


def classes_without_target() -> list[str]:
    """Public classes whose methods nothing calls."""
    records: set[str] = set()
    for prefix, module in {"": hoplake, "aio.": hoplake.aio}.items():
        for name in module.__all__:
            item: Any = getattr(module, name)
            if inspect.isclass(item) and not (issubclass(item, BaseException) or dataclasses.is_dataclass(item)):
                records.add(prefix + name)
    # A protocol, and a text and a dict.
    return sorted(records - set(_TARGETS) - {"ArrowStream", "Plan", "Profile", "aio.Plan", "aio.Profile"})


class Hung(BaseException):
    """A call took longer than any of these may."""


CALL_SECONDS = 30


def hung(*_: Any) -> None:
    raise Hung


def use(place: Place, result: Any, depth: int = 0) -> None:
    """Does with a result what a program does, so that what is read later is read."""
    if depth > 3:
        return
    shown = type(result).__module__.startswith("hoplake.") and not inspect.isawaitable(result)
    if inspect.isawaitable(result):
        use(place, place.now(result), depth + 1)
    elif isinstance(result, abc.AsyncIterator):
        place.loop.run_until_complete(_first(result))
    elif isinstance(result, (hoplake.Traversal, hoplake.aio.Traversal)):
        use(place, result.keys(limit=10), depth + 1)
    elif isinstance(result, (hoplake.Scan, hoplake.aio.Scan)):
        use(place, result.table(), depth + 1)
    elif isinstance(result, (hoplake.Computation, hoplake.aio.Computation)):
        use(place, result.table(), depth + 1)
    elif isinstance(result, hoplake.Table):
        pa.table(result)
        list(result)
    elif isinstance(result, (hoplake.Commit, hoplake.aio.Commit)):
        use(place, result.check(), depth + 1)
    elif isinstance(result, hoplake.Server):
        result.stop()
    elif isinstance(result, (hoplake.Graph, hoplake.aio.Graph)):
        use(place, result.count(), depth + 1)
    elif isinstance(result, (hoplake.nx.Graph, hoplake.Results, hoplake.Walks)):
        len(result)
    elif isinstance(result, Iterator):
        list(itertools.islice(result, 10))
    if shown:
        repr(result)


async def _awaited(result: Any) -> Any:
    return await result


async def _first(result: Any) -> None:
    async for _ in result:
        return


def problem(name: str, error: BaseException, values: abc.Sequence[str] = ()) -> str | None:
    """What is wrong with an exception, if something is. ``values`` names the values that the function was called with."""
    if isinstance(error, hoplake.InternalError):
        return f"InternalError: {error}"
    if isinstance(error, (hoplake.Error, TypeError, ValueError, OverflowError, Own, *ALSO.get(name, ()))):
        return None
    if any(isinstance(error, also) for value, also in VALUE_ALSO.items() if any(value in name for name in values)):
        return None
    # The package is without what it does not need.
    if isinstance(error, ImportError):
        return None
    try:
        text = str(error)
    except BaseException:
        text = "…"
    return f"{type(error).__module__}.{type(error).__qualname__}: {text[:200]}".replace("builtins.", "")


def arguments(place: Place, function: Function, parameter: str | None, value: Any) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a call in which a parameter has a value, and others are as they have to be."""
    given = dict(ARGUMENTS.get(function.name, {}))
    given.update(TOGETHER.get((function.name, parameter or ""), {}))
    positional: list[Any] = [] if function.target is None else [function.target(place)]
    named: dict[str, Any] = {}
    for each in function.parameters:
        is_hostile = each.name == parameter
        if each.kind is each.VAR_KEYWORD:
            if is_hostile:
                named["x"] = value
        elif each.kind is each.VAR_POSITIONAL:
            if is_hostile:
                positional.append(value)
        elif is_hostile or each.name in given:
            usual = given.get(each.name)
            item = value if is_hostile else usual(place) if inspect.isfunction(usual) else usual
            if each.kind is each.KEYWORD_ONLY or each.kind is each.POSITIONAL_OR_KEYWORD:
                named[each.name] = item
            else:
                positional.append(item)
    return positional, named


def call(place: Place, function: Function, positional: list[Any], named: dict[str, Any], values: abc.Sequence[str] = ()) -> str | None:
    """Calls a function, uses its result, and returns what is wrong if something is."""
    try:
        signal.setitimer(signal.ITIMER_REAL, CALL_SECONDS)
        try:
            use(place, function.call(*positional, **named))
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except Hung:
        return f"took more than {CALL_SECONDS} seconds\n{''.join(traceback.format_exc()[-600:])}"
    except BaseException as error:
        return problem(function.name, error, values)
    return None


def wrapped(function: Function, parameter: str) -> list[tuple[str, Callable[[Any], Any]]]:
    """The ways in which a value is given for a parameter."""
    ways: list[Callable[[Any], Any]] = WITHIN.get(parameter, [])
    if function.name in ("load", "aio.load"):
        ways = WITHIN_LOAD.get(parameter, ways)
    if function.name.startswith("aio."):
        # The values are read by the same code as without aio.
        ways = []
    return [("", lambda value: value), *((f" within {number}", way) for number, way in enumerate(ways, 1))]


def findings(place: Place, function: Function, note: Callable[[str], None]) -> list[str]:
    """Calls a function with every value in the place of each parameter, and returns what was wrong."""
    found: list[str] = []
    if not function.parameters:
        note("")
        positional, named = arguments(place, function, None, None)
        if wrong := call(place, function, positional, named):
            found.append(f"(): {wrong}")
    turn = itertools.count()
    for parameter in function.parameters:
        if (function.name, parameter.name) in LEFT_OUT:
            continue
        for way, wrap in wrapped(function, parameter.name):
            for value, make in values(function.name, next(turn), bool(way)):
                what = f"{parameter.name}={value}{way}"
                if not is_called(f"{function.name}({what})"):
                    continue
                note(what)
                try:
                    item = wrap(make())
                except (TypeError, Own, RecursionError):
                    # It has no hash, and cannot be a key of a dict.
                    continue
                positional, named = arguments(place, function, parameter.name, item)
                if wrong := call(place, function, positional, named, [value]):
                    found.append(f"({what}): {wrong}")
    return found


def options() -> Iterator[tuple[str, str]]:
    """The options of all algorithms."""
    for algorithm in hoplake.algorithms():
        for option in algorithm["options"]:
            yield algorithm["name"], "from_" if option == "from" else option


def option_findings(place: Place, note: Callable[[str], None]) -> list[str]:
    """Every algorithm with every value in the place of each option."""
    found: list[str] = []
    run = Function("Graph.run", getattr(hoplake.Graph, "run"), None, [])
    turn = itertools.count()
    for algorithm, option in options():
        ways = _VERTEX if option == "from_" else []
        for wrap in [lambda value: value, *ways]:
            for value, make in values("options", next(turn), wrap in ways):
                what = f"{algorithm}, {option}={value}"
                note(what)
                try:
                    named = {option: wrap(make())}
                except (TypeError, Own, RecursionError):
                    continue
                if wrong := call(place, run, [place.graph, algorithm], named, [value]):
                    found.append(f"({what}): {wrong}")
    return found


#: Address space of the process, so that an allocation of what a value claims fails.
MEMORY = 8 << 30


def prepare() -> None:
    """Limits the memory of the process, and makes the graph of values that are made of one."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    hoplake.load(SOCIAL, vertices={"Person": people()}, edges={("Person", "knows", "Person"): knows()})


def main(folder: str, names: list[str]) -> None:
    os.chdir(folder)
    prepare()
    signal.signal(signal.SIGALRM, hung)
    every = functions()
    under_way = os.open("under_way", os.O_CREAT | os.O_WRONLY)
    for number, name in enumerate(names or [*every, "options"], 1):
        def note(what: str, name: str = name) -> None:
            # What is under way if the process dies.
            os.pwrite(under_way, f"{name}({what})\n".encode().ljust(200), 0)
            faulthandler.dump_traceback_later(CALL_SECONDS * 2, exit=True)

        place = Place(number)
        begun = time.monotonic()
        found = option_findings(place, note) if name == "options" else findings(place, every[name], note)
        faulthandler.cancel_dump_traceback_later()
        # The process goes on, whatever it was given.
        assert hoplake.open(SOCIAL).count() == 3
        seconds = round(time.monotonic() - begun, 3)
        print(json.dumps({"name": name, "found": found, "seconds": seconds}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
