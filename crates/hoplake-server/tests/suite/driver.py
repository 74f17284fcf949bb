"""Asks a server what the suite asks, through gremlinpython as it is.

The arguments are the URL of the server, and `text` or `bytecode`. A line of standard input is a request, a line of standard output its
answer. Values are forms: a list with the name of a type, and what makes a value of it.
"""

import base64
import datetime
import decimal
import json
import logging
import re
import sys
import uuid
from enum import Enum as StandardEnum

from aenum import Enum
from gremlin_python import statics
from gremlin_python.driver.client import Client
from gremlin_python.driver.driver_remote_connection import DriverRemoteConnection
from gremlin_python.driver.protocol import GremlinServerError
from gremlin_python.process import strategies, traversal as enumerations
from gremlin_python.process.anonymous_traversal import traversal
from gremlin_python.process.graph_traversal import __
from gremlin_python.process.traversal import CardinalityValue, P, TextP
from gremlin_python.structure.graph import Edge, Path, Property, Vertex, VertexProperty

URL, MODE = sys.argv[1:]

# An error is an answer, and nothing to be printed.
logging.disable(logging.CRITICAL)


def snake(name):
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=^l)(?=T)|(?<=^r)(?=T)", "_", name).lower()


def has(of, name):
    """Whether a class or a value has something. Not `hasattr`: of a traversal every name is a property."""
    return any(name in base.__dict__ for base in (of if isinstance(of, type) else type(of)).__mro__)


def step(of, name):
    """What gremlinpython calls a step or a predicate."""
    for candidate in (snake(name) + "_", snake(name), name):
        if has(of, candidate):
            return getattr(of, candidate)
    raise AttributeError(f"gremlinpython has no step {name}")


def member(of, name):
    """What gremlinpython calls a member of an enumeration."""
    for candidate in (name + "_", name, snake(name) + "_", snake(name)):
        if candidate in of.__members__:
            return of[candidate]
    raise AttributeError(f"gremlinpython has no {of.__name__}.{name}")


def number(kind, text):
    return {
        "byte": lambda: statics.SingleByte(int(text)),
        "short": lambda: statics.short(text),
        "int": lambda: int(text),
        "long": lambda: statics.long(text),
        "bigint": lambda: statics.bigint(text),
        "double": lambda: float(text),
        "decimal": lambda: statics.bigdecimal(decimal.Decimal(text)),
    }[kind]()


def value(form):
    """The value of a form."""
    kind, *rest = form
    if kind in ("byte", "short", "int", "long", "bigint", "double", "decimal"):
        return number(kind, rest[0])
    return {
        "null": lambda: None,
        "bool": lambda: rest[0],
        "text": lambda: rest[0],
        "char": lambda: statics.SingleChar(rest[0]),
        "datetime": lambda: datetime.datetime.fromisoformat(rest[0].replace("Z", "+00:00")),
        "duration": lambda: datetime.timedelta(seconds=rest[0]),
        "uuid": lambda: uuid.UUID(rest[0]),
        "random_uuid": uuid.uuid4,
        "now": lambda: datetime.datetime.now(datetime.timezone.utc),
        "bytes": lambda: base64.b64decode(rest[0]),
        "list": lambda: [value(item) for item in rest[0]],
        "set": lambda: {value(item) for item in rest[0]},
        "map": lambda: {value(key): value(item) for key, item in rest[0]},
        "vertex": lambda: Vertex(value(rest[0]), rest[1]),
        "edge": lambda: Edge(value(rest[0]), Vertex(*map(value, rest[2])), rest[1], Vertex(*map(value, rest[3]))),
        "token": lambda: member(getattr(enumerations, rest[0]), rest[1]),
        "cardinality": lambda: getattr(CardinalityValue, {"list": "list_", "set": "set_"}.get(rest[0], rest[0]))(value(rest[1])),
        "traversal": lambda: calls(__, rest[0]),
        "test": lambda: step(P if any(has(P, snake(rest[0]) + end) for end in ("_", "")) else TextP, rest[0])(*map(value, rest[1])),
        "and": lambda: joined("and_", rest[0]),
        "or": lambda: joined("or_", rest[0]),
        "not": lambda: P.not_(value(rest[0])),
        "strategy": lambda: strategy(*rest),
        "strategies": lambda: getattr(strategies, rest[0]),
    }[kind]()


def joined(how, forms):
    first, *others = map(value, forms)
    for other in others:
        first = getattr(first, how)(other)
    return first


def strategy(name, options):
    options = {option: value(form) for option, form in options}
    make = getattr(strategies, name)
    try:
        return make(**options)
    except TypeError:
        return make(**{snake(option): it for option, it in options.items()})


def calls(of, forms):
    for name, arguments in forms:
        of = step(of, name)(*map(value, arguments))
    # Nothing was called: the traversal of the step's own traverser.
    return of.start() if of is __ else of


def form(it):
    """The form of a value."""
    if it is None:
        return ["null"]
    if isinstance(it, bool):
        return ["bool", it]
    if isinstance(it, int):
        return ["number", str(it)]
    if isinstance(it, float):
        return ["double", repr(it)]
    if isinstance(it, statics.BigDecimal):
        return ["decimal", str(it.value)]
    if isinstance(it, decimal.Decimal):
        return ["decimal", str(it)]
    if isinstance(it, statics.SingleChar):
        return ["char", it]
    if isinstance(it, str):
        return ["text", it]
    if isinstance(it, datetime.datetime):
        return ["datetime", (it if it.tzinfo else it.replace(tzinfo=datetime.timezone.utc)).isoformat()]
    if isinstance(it, datetime.timedelta):
        return ["duration", it.total_seconds()]
    if isinstance(it, uuid.UUID):
        return ["uuid", str(it)]
    if isinstance(it, (bytes, bytearray)):
        return ["bytes", base64.b64encode(it).decode()]
    if isinstance(it, Path):
        return ["path", [form(item) for item in it.objects], [sorted(labels) for labels in it.labels]]
    if isinstance(it, (list, tuple)):
        return ["list", [form(item) for item in it]]
    if isinstance(it, (set, frozenset)):
        return ["set", [form(item) for item in it]]
    if isinstance(it, dict):
        return ["map", [[form(key), form(item)] for key, item in it.items()]]
    if isinstance(it, Vertex):
        return ["vertex", form(it.id), it.label, [form(item) for item in it.properties]]
    if isinstance(it, Edge):
        ends = [[form(end.id), end.label] for end in (it.outV, it.inV)]
        return ["edge", form(it.id), it.label, ends, [form(item) for item in it.properties]]
    if isinstance(it, VertexProperty):
        return ["vertex_property", form(it.id), it.key, form(it.value)]
    if isinstance(it, Property):
        return ["property", it.key, form(it.value)]
    if isinstance(it, (Enum, StandardEnum)):
        return ["token", type(it).__name__, it.name.rstrip("_")]
    raise TypeError(f"a {type(it).__name__} came")


class Connections:
    """One for each of the graphs that are asked again and again, and one for what was asked last."""

    def __init__(self):
        self.shared = {}
        self.last = (None, None)

    def of(self, graph, is_shared):
        if is_shared:
            if graph not in self.shared:
                self.shared[graph] = self.open(graph)
            return self.shared[graph]
        if self.last[0] != graph:
            self.close()
            self.last = (graph, self.open(graph))
        return self.last[1]

    def open(self, graph):
        if MODE == "text":
            return Client(URL, graph, pool_size=1, max_workers=1)
        return DriverRemoteConnection(URL, graph, pool_size=1, max_workers=1)

    def close(self):
        if self.last[1]:
            self.last[1].close()
        self.last = (None, None)


def answer(connections, request):
    connection = connections.of(request["graph"], request["shared"])
    if MODE == "text":
        bindings = {name: value(form) for name, form in request["bindings"]}
        return connection.submit(request["text"], bindings).all().result()
    results = []
    for source, steps in request["traversals"]:
        g = traversal().with_(connection)
        results = calls(calls(g, source) if source else g, steps).to_list()
    return results


def main():
    connections = Connections()
    for line in sys.stdin:
        try:
            said = {"results": [form(it) for it in answer(connections, json.loads(line))]}
        except GremlinServerError as error:
            said = {"error": error.status_message}
        except Exception as error:
            said = {"error": f"gremlinpython: {type(error).__name__}: {error}"}
        print(json.dumps(said), flush=True)


main()
