"""Hostile values, for every place where a user gives one: wrong types, extremes, objects that raise, lie or change, and broken tables of Arrow."""

# What is wrong on purpose has no types.
# pyright: reportUnknownLambdaType=false, reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import functools
import sys
import uuid
from collections import abc
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa

import hoplake
from hoplake import gremlin


#: Without its types, which do not know all of it.
_ARROW: Any = pa


class Own(Exception):
    """Raised by the methods of hostile objects."""


def _raise(*_: Any, **__: Any) -> Any:
    raise Own


#: Methods that the package and the extension call on what they are given.
_CALLED = (
    "__arrow_c_array__ __arrow_c_stream__ __bool__ __call__ __contains__ __eq__ __float__ __fspath__ __getitem__ __hash__ __index__ __int__ __iter__ "
    "__len__ __next__ __repr__ __str__ items keys tolist utcoffset values"
).split()


#: These would return other types, or without end.
_RETURN_OTHERS = ("__hash__", "__eq__", "__iter__", "__next__", "__getitem__")


def with_methods(name: str, **methods: Any) -> Any:
    return type(name, (), methods)()


def always(value: Any) -> Callable[..., Any]:
    return lambda *_, **__: value


class _RaisesAlways:
    """Every attribute raises, also those that are looked up on the way, such as ``__class__``."""

    def __getattribute__(self, name: str) -> Any:
        raise Own


class _ClassRaises:
    __class__ = property(_raise)  # pyright: ignore[reportIncompatibleMethodOverride]


class _ClassLies:
    __class__ = property(always(hoplake.Vertex))  # pyright: ignore[reportIncompatibleMethodOverride]


class _Text(str):
    """A text whose methods raise, and which C code reads as it is."""

    __str__ = __repr__ = __len__ = __iter__ = __getitem__ = __contains__ = replace = rstrip = strip = startswith = _raise


class _Integer(int):
    __index__ = __int__ = __add__ = __repr__ = __str__ = bit_length = _raise


class _Dict(dict[Any, Any]):
    __iter__ = __len__ = __getitem__ = items = keys = values = copy = get = _raise


class _List(list[Any]):
    __iter__ = __len__ = __getitem__ = _raise


class _Mapping(abc.Mapping[Any, Any]):
    """A mapping that names keys and then does not have them."""

    def __iter__(self) -> Iterator[Any]:
        return iter(["Person", 3])

    def __len__(self) -> int:
        return 2

    def __getitem__(self, key: Any) -> Any:
        raise Own


class _Zone(tzinfo):
    def __init__(self, offset: Any) -> None:
        self.offset = offset

    def utcoffset(self, dt: datetime | None, /) -> Any:
        return self.offset() if callable(self.offset) else self.offset

    def tzname(self, dt: datetime | None, /) -> str:
        return "hostile"

    def dst(self, dt: datetime | None, /) -> Any:
        return None


def _cyclic_list() -> Any:
    items: list[Any] = []
    items.append(items)
    return items


def _cyclic_dict() -> Any:
    items: dict[Any, Any] = {}
    items["x"] = items
    return items


def _cyclic_vertex() -> Any:
    vertex = gremlin.Vertex("x", "Person")
    object.__setattr__(vertex, "id", vertex)
    return vertex


def _deep(wrap: Callable[[Any], Any], levels: int = 100_000) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = wrap(value)
    return value


_DEEP_LIST = _deep(lambda value: [value])
_DEEP_TUPLE = _deep(lambda value: (value,))
_DEEP_DICT = _deep(lambda value: {"x": value})
_DEEP_VERTEX = _deep(lambda value: gremlin.Vertex(value, "Person"), 10_000)


def _raises_midway() -> Iterator[Any]:
    yield "Person:1"
    raise Own


def _changing() -> Any:
    """A dict that a value changes while it is read."""
    items: dict[str, Any] = {}

    def index(_: Any) -> int:
        for number in range(100):
            items[f"x{number}"] = number
        return 1

    items.update(key=[with_methods("Changing", __index__=index)], x=with_methods("Changing", __index__=index))
    return items


def _shrinking() -> Any:
    """A list that an item empties while it is read."""
    items: list[Any] = []

    def index(_: Any) -> int:
        items.clear()
        return 1

    items.extend([with_methods("Shrinking", __index__=index)] * 10)
    return items


def _stream_that_raises() -> Any:
    schema = pa.schema([("key", pa.int64())])

    def batches() -> Iterator[Any]:
        yield pa.record_batch([pa.array([1])], schema=schema)
        raise Own

    return pa.RecordBatchReader.from_batches(schema, batches())


def _stream_that_lies() -> Any:
    """Batches of other columns than the schema."""
    schema = pa.schema([("key", pa.int64())])
    return with_methods("Lies", __arrow_c_stream__=always(pa.table({"key": [1]}).schema.__arrow_c_schema__()), schema=schema)


def _consumed() -> Any:
    reader = _ARROW.RecordBatchReader.from_batches(pa.schema([("key", pa.int64())]), [])
    capsule = reader.__arrow_c_stream__()
    _ARROW.RecordBatchReader._import_from_c_capsule(capsule)
    return with_methods("Consumed", __arrow_c_stream__=always(capsule))


def _only_stream(table: Any) -> Any:
    """A table that can be read through Arrow alone: pyarrow itself crashes when it shows a broken one."""
    return with_methods("Broken", __arrow_c_stream__=lambda _, requested_schema=None: table.__arrow_c_stream__(requested_schema))


def _broken_text() -> Any:
    """A column of texts whose bytes are not UTF-8."""
    values = pa.py_buffer(b"\xff\xfe")
    offsets = pa.py_buffer((0).to_bytes(4, "little") + (2).to_bytes(4, "little"))
    column = pa.Array.from_buffers(pa.string(), 1, [None, offsets, values])
    return _only_stream(pa.table({"key": column, "source": column, "target": column}))


def _broken_offsets() -> Any:
    """A column of texts one of which lies outside of its buffer."""
    offsets = b"".join(offset.to_bytes(4, "little") for offset in (0, 2**31 - 1, 1))
    column = pa.Array.from_buffers(pa.string(), 2, [None, pa.py_buffer(offsets), pa.py_buffer(b"x")])
    return _only_stream(pa.table({"key": column, "source": column, "target": column}))


def _columns(**columns: Any) -> Any:
    rows = len(next(iter(columns.values())))
    ends = {name: [1] * rows for name in ("key", "source", "target") if name not in columns}
    return pa.table({**ends, **columns})


@functools.cache
def _social() -> hoplake.Graph:
    return hoplake.open(SOCIAL)


def _graph_that_is_closed() -> Any:
    graph = hoplake.open(SOCIAL)
    graph.close()
    return graph


SOCIAL = "memory://hostile/social"


def _next_stop(_: Any) -> Any:
    raise StopIteration


#: Values by name. Each is made again for each call: a call may consume or change it.
VALUES: dict[str, Callable[[], Any]] = {
    "none": always(None),
    "true": always(True),
    "zero": always(0),
    "minus_one": always(-1),
    "int32": always(2**31),
    "int64": always(2**63 - 1),
    "int64_less": always(-(2**63) - 1),
    "int64_more": always(2**63),
    "uint64": always(2**64 - 1),
    "uint64_more": always(2**64),
    "huge": always(10**5000),
    "half": always(0.5),
    "nan": always(float("nan")),
    "infinity": always(float("inf")),
    "minus_infinity": always(float("-inf")),
    "large_float": always(1.7e308),
    "complex": always(1j),
    "decimal_nan": always(Decimal("sNaN")),
    "decimal_infinity": always(Decimal("-Infinity")),
    "decimal_large": always(Decimal("1E+999999999999999999")),
    "decimal_small": always(Decimal("1E-999999")),
    "fraction": always(Fraction(1, 3)),
    "uuid": always(uuid.UUID(int=2**128 - 1)),
    "empty_text": always(""),
    "null_character": always("\0"),
    "surrogate": always("\ud800"),
    "surrogate_within": always('Person:"\udfff"'),
    "not_a_character": always("\uffff\U0010ffff"),
    "long_text": always("x" * 100_000),
    "long_name": always("Person:" + "9" * 100_000),
    "opening": always("(" * 100_000),
    "brackets": always("out" + "[" * 50_000),
    "negations": always("not " * 50_000 + "~key = 1"),
    "nested_json": always('{"op":' + "[" * 100_000),
    "nested_query": always("g.V()" + ".where(__.out()" * 20_000),
    "long_query": always("g.V()" + ".out()" * 20_000),
    "large_integer_text": always("Person:" + str(2**63)),
    "quote": always('"'),
    "new_lines": always("\r\n\u2028;"),
    "no_vertex": always("Person:77"),
    "bytes": always(b"Person:1"),
    "bytearray": always(bytearray(b"x")),
    "memoryview": always(memoryview(b"x")),
    "ellipsis": always(...),
    "not_implemented": always(NotImplemented),
    "slice": always(slice(None, 2**63, -1)),
    "range": always(range(3)),
    "type": always(type),
    "module": always(sys),
    "function": lambda: lambda: None,
    "object": object,
    "empty_list": list,
    "empty_tuple": tuple,
    "empty_dict": dict,
    "empty_set": set,
    "nones": always([None, None]),
    "surrogates": always(["\ud800"]),
    "long_list": lambda: ["Person:1"] * 10_000,
    "mixed": always([1, "a", 2.5, None, b""]),
    "cyclic_list": _cyclic_list,
    "cyclic_tuple": lambda: (_cyclic_list(),),
    "cyclic_dict": _cyclic_dict,
    "cyclic_vertex": _cyclic_vertex,
    "deep_list": lambda: _DEEP_LIST,
    "deep_tuple": lambda: _DEEP_TUPLE,
    "deep_dict": lambda: _DEEP_DICT,
    "deep_vertex": lambda: _DEEP_VERTEX,
    "changing": _changing,
    "shrinking": _shrinking,
    "raises_midway": _raises_midway,
    "exhausted": lambda: iter(()),
    "raisesalways": _RaisesAlways,
    "class_raises": _ClassRaises,
    "class_lies": _ClassLies,
    "text_raises": lambda: _Text("Person:1"),
    "integer_raises": lambda: _Integer(1),
    "dict_raises": lambda: _Dict(key=[1]),
    "list_raises": lambda: _List(["Person:1"]),
    "mapping_raises": _Mapping,
    "returns_itself": lambda: with_methods("Itself", **{name: lambda self, *_, **__: self for name in _CALLED if name not in _RETURN_OTHERS}),
    "raises_system_exit": lambda: with_methods("Exit", __iter__=lambda _: sys.exit(3), __index__=lambda _: sys.exit(3)),
    **{f"raises_{name.strip('_')}": functools.partial(with_methods, "Raises", **{name: _raise}) for name in _CALLED},
    "negative_length": lambda: with_methods("Negative", __len__=always(-1), __getitem__=_raise),
    "huge_length": lambda: with_methods("Huge", __len__=always(2**62), __iter__=lambda _: iter(["Person:1"])),
    "huge_hint": lambda: with_methods("Hint", __iter__=lambda self: self, __next__=_next_stop, __length_hint__=always(2**62)),
    "index_is_huge": lambda: with_methods("Index", __index__=always(2**200)),
    "index_is_text": lambda: with_methods("Index", __index__=always("x")),
    "path_is_bytes": lambda: with_methods("Path", __fspath__=always(b"\xff\xfe")),
    "path_has_null": lambda: with_methods("Path", __fspath__=always("a\0b")),
    "path_has_surrogate": lambda: with_methods("Path", __fspath__=always("a\udcff")),
    "naive_datetime": always(datetime(2020, 1, 1)),
    "first_datetime": always(datetime.min.replace(tzinfo=timezone(timedelta(hours=23)))),
    "last_datetime": always(datetime.max.replace(tzinfo=timezone(-timedelta(hours=23, minutes=59)))),
    "zone_raises": lambda: datetime(2020, 1, 1, tzinfo=_Zone(_raise)),
    "zone_has_micros": lambda: datetime(2020, 1, 1, tzinfo=_Zone(timedelta(microseconds=1))),
    "zone_is_wrong": lambda: datetime(2020, 1, 1, tzinfo=_Zone("x")),
    "first_date": always(date.min),
    "last_date": always(date.max),
    "longest_time": always(timedelta.max),
    "least_time": always(timedelta.min),
    "arrow_is_none": lambda: with_methods("Arrow", __arrow_c_stream__=always(None)),
    "arrow_array_is_none": lambda: with_methods("Arrow", __arrow_c_array__=always((None, None))),
    "arrow_array_is_short": lambda: with_methods("Arrow", __arrow_c_array__=always(())),
    "arrow_schema_as_stream": _stream_that_lies,
    "arrow_consumed": _consumed,
    "arrow_raises": _stream_that_raises,
    "arrow_broken_text": _broken_text,
    "arrow_broken_offsets": _broken_offsets,
    "arrow_array": lambda: pa.array([1, 2]),
    "arrow_struct_with_nulls": lambda: pa.array([{"key": 1}, None]),
    "arrow_no_columns": lambda: pa.table({}),
    "arrow_no_rows": lambda: pa.table({"key": pa.array([], pa.int64())}),
    "arrow_same_names": lambda: pa.Table.from_arrays([pa.array([1])] * 4, ["key", "key", "source", "target"]),
    "arrow_null_type": lambda: _columns(x=pa.nulls(3)),
    "arrow_null_keys": lambda: _columns(key=pa.array([None, 1]), source=pa.array([None, 1])),
    "arrow_duplicate_keys": lambda: _columns(key=["a", "a"], x=[1.0, float("nan")]),
    "arrow_uint64": lambda: _columns(key=pa.array([2**64 - 1], pa.uint64()), x=pa.array([2**64 - 1], pa.uint64())),
    "arrow_decimal": lambda: _columns(x=pa.array([Decimal(1)], pa.decimal128(38, 0))),
    "arrow_nested": lambda: _columns(x=[[[1]]], y=[{"a": 1}]),
    "arrow_map": lambda: _columns(x=pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64()))),
    "arrow_dictionary": lambda: _columns(key=_ARROW.array(["a", None, "a"]).dictionary_encode()),
    "arrow_far_timestamp": lambda: _columns(x=pa.array([2**63 - 1, -(2**63)], pa.timestamp("s"))),
    "arrow_far_date": lambda: _columns(x=pa.array([2**31 - 1, -(2**31)], pa.date32())),
    "arrow_run_ends": lambda: _columns(x=_ARROW.RunEndEncodedArray.from_arrays([3], [1])),
    "arrow_view": lambda: _columns(key=pa.array(["a" * 20], pa.string_view()), x=pa.array([b"a" * 20], pa.binary_view())),
    "a_table": lambda: _social().get("Person:1"),
    "a_closed_graph": _graph_that_is_closed,
    "a_commit": lambda: _social().begin(),
    "a_scan": lambda: _social().scan(),
    "a_vertex": lambda: hoplake.Vertex("Person", 1),
    "a_wrong_vertex": lambda: hoplake.Vertex(_cyclic_list(), _RaisesAlways()),  # type: ignore[arg-type]
}
