"""Makes `driver.txt`: what the Python driver of TinkerPop 3.8.1 writes, for the tests of the codecs.

    pip install gremlinpython==3.8.1 && python make.py > driver.txt

Each line has the kind, a name, the bytes of GraphBinary 1 in hexadecimal digits, and GraphSON 3 and 2 (`-` where the driver has no
form, `=` for a 2 that is as the 3), separated by tabs. Of a `bytecode` the name is the same traversal as text; of a `value` it is what Rust's test looks
up.
"""

import datetime
import json
import uuid
import warnings

from gremlin_python.driver.request import RequestMessage
from gremlin_python.driver.serializer import (
    GraphBinarySerializersV1,
    GraphSONSerializersV2d0,
    GraphSONSerializersV3d0,
)
from gremlin_python.process.graph_traversal import GraphTraversalSource, __
from gremlin_python.process.strategies import *
from gremlin_python.process.traversal import *
from gremlin_python.statics import (
    BigDecimal,
    ByteBufferType,
    SingleByte,
    SingleChar,
    bigint,
    long,
    short,
    timestamp,
)
from gremlin_python.structure.graph import Edge, Graph, Path, Property, Vertex, VertexProperty
from gremlin_python.structure.io.graphbinaryV1 import GraphBinaryWriter
from gremlin_python.structure.io.graphsonV2d0 import GraphSONWriter as GraphSON2
from gremlin_python.structure.io.graphsonV3d0 import GraphSONWriter as GraphSON3

warnings.simplefilter("ignore")
g = GraphTraversalSource(Graph(), TraversalStrategies())

UUID = uuid.UUID("41d2e28a-20a4-4ab0-b379-d810dede3786")
HOUR = datetime.timezone(datetime.timedelta(hours=1))
VERTEX = Vertex(1, "person")

VALUES = {
    "null": None,
    "true": True,
    "false": False,
    "byte": SingleByte(-5),
    "short": short(-300),
    "int": 42,
    "int min": -2147483648,
    "long": long(42),
    "long max": long(9223372036854775807),
    "bigint": bigint(123456789012345678901234567890),
    "bigint negative": bigint(-100),
    "double": 1.5,
    "nan": float("nan"),
    "infinity": float("inf"),
    "bigdecimal": BigDecimal(2, 314),
    "char": SingleChar("é"),
    "text": "hé\"llo\n😀",
    "empty": "",
    "uuid": UUID,
    "bytes": ByteBufferType(b"\x00\x01\xff"),
    "time": datetime.datetime(2024, 2, 29, 12, 30, 15, 250000, tzinfo=HOUR),
    "date": datetime.datetime(2024, 2, 29, 12, 30, 15),
    "timestamp": timestamp(1481750076.295),
    "duration": datetime.timedelta(seconds=90, microseconds=5),
    "list": [1, "a", None, [2.0]],
    "set": {7},
    "map": {"a": 1, 2: [True]},
    "vertex": VERTEX,
    "edge": Edge("e1", VERTEX, "knows", Vertex(2, "dog")),
    "vertex property": VertexProperty(long(9), "name", "marko", VERTEX),
    "property": Property("since", 2010, None),
    "path": Path([{"a"}, set()], [VERTEX, 5]),
    "traverser": Traverser(3, long(7)),
    "T": T.id_,
    "direction": Direction.OUT,
    "order": Order.desc,
    "cardinality": Cardinality.set_,
    "gtype": GType.INT,
    "merge": Merge.on_create,
}

# A traversal, and the same as text.
TRAVERSALS = [
    (g.V(), "g.V()"),
    (g.V(1, long(2), "3", UUID), "g.V(1, 2l, '3', UUID('41d2e28a-20a4-4ab0-b379-d810dede3786'))"),
    (g.V(VERTEX).out("knows", "created").values("name"), "g.V(new Vertex(1, 'person')).out('knows', 'created').values('name')"),
    (g.V().has("age", P.gt(30)), "g.V().has('age', gt(30))"),
    (g.V().has("person", "name", "marko").has(T.label, "person"), "g.V().has('person', 'name', 'marko').has(T.label, 'person')"),
    (g.V().has("age", P.between(20, 30)).has("age", P.inside(1, 2)).has("age", P.outside(1, 2)), "g.V().has('age', between(20, 30)).has('age', inside(1, 2)).has('age', outside(1, 2))"),
    (g.V().has("age", P.within(1, 2, 3)).has("age", P.without([4, 5])).has("age", P.within()), "g.V().has('age', within(1, 2, 3)).has('age', without([4, 5])).has('age', within())"),
    (g.V().has("age", P.eq(None)).has("age", P.neq(1.5)).has("age", P.lt(1)).has("age", P.lte(1)).has("age", P.gte(1)), "g.V().has('age', eq(null)).has('age', neq(1.5)).has('age', lt(1)).has('age', lte(1)).has('age', gte(1))"),
    (g.V().has("age", P.gt(1).and_(P.lt(5)).and_(P.neq(3))), "g.V().has('age', gt(1).and(lt(5)).and(neq(3)))"),
    (g.V().has("age", P.gt(1).and_(P.lt(5)).or_(P.eq(9))), "g.V().has('age', gt(1).and(lt(5)).or(eq(9)))"),
    (g.V().has("age", P.not_(P.gt(1))), "g.V().has('age', P.not(gt(1)))"),
    (g.V().has("age", P.type_of(GType.INT)), "g.V().has('age', P.typeOf(GType.INT))"),
    (g.V().has("name", TextP.starting_with("m")).has("name", TextP.not_starting_with("n")), "g.V().has('name', startingWith('m')).has('name', notStartingWith('n'))"),
    (g.V().has("name", TextP.ending_with("m")).has("name", TextP.not_ending_with("n")), "g.V().has('name', endingWith('m')).has('name', notEndingWith('n'))"),
    (g.V().has("name", TextP.containing("m")).has("name", TextP.not_containing("n")), "g.V().has('name', containing('m')).has('name', notContaining('n'))"),
    (g.V().has("name", TextP.regex("^m")).has("name", TextP.not_regex("^n")), "g.V().has('name', regex('^m')).has('name', notRegex('^n'))"),
    (g.V().repeat(__.out("knows").dedup()).times(2).emit(__.has("age")).until(__.loops().is_(3)), "g.V().repeat(__.out('knows').dedup()).times(2).emit(__.has('age')).until(__.loops().is(3))"),
    (g.V().order().by("age", Order.desc).by(T.id_).by(__.out().count(), Order.shuffle), "g.V().order().by('age', desc).by(T.id).by(__.out().count(), shuffle)"),
    (g.V().union(__.out(), __.in_().values("x")), "g.V().union(__.out(), __.in().values('x'))"),
    (g.V().choose(__.has("age"), __.out(), __.identity()), "g.V().choose(__.has('age'), __.out(), __.identity())"),
    (g.V().choose(T.label).option("person", __.out()).option(Pick.none, __.in_()).option(Pick.any_, __.id_()), "g.V().choose(T.label).option('person', __.out()).option(Pick.none, __.in()).option(Pick.any, __.id())"),
    (g.V().coalesce(__.values("a"), __.constant("b")), "g.V().coalesce(__.values('a'), __.constant('b'))"),
    (g.V().as_("a").out().as_("b", "c").select("a", "b").by("name"), "g.V().as('a').out().as('b', 'c').select('a', 'b').by('name')"),
    (g.V().select(Pop.last, "a").select(Column.keys).count(Scope.local), "g.V().select(Pop.last, 'a').select(keys).count(local)"),
    (g.V().where(__.as_("a").out().as_("b")).where("a", P.neq("b")), "g.V().where(__.as('a').out().as('b')).where('a', neq('b'))"),
    (g.V().match(__.as_("a").out().as_("b"), __.as_("b").in_().as_("c")), "g.V().match(__.as('a').out().as('b'), __.as('b').in().as('c'))"),
    (g.V().to_e(Direction.OUT, "x").to(Direction.IN), "g.V().toE(OUT, 'x').to(Direction.IN)"),
    (g.add_v("person").property("name", "x").property(Cardinality.single, "age", 3, "meta", True), "g.addV('person').property('name', 'x').property(single, 'age', 3, 'meta', true)"),
    (g.add_e("knows").from_(__.V(1)).to(__.V(2)).property("w", 0.5), "g.addE('knows').from(__.V(1)).to(__.V(2)).property('w', 0.5)"),
    (g.merge_v({T.label: "person", T.id_: 1, "age": 3}).option(Merge.on_create, {"a": 1}), "g.mergeV([(T.label): 'person', (T.id): 1, age: 3]).option(Merge.onCreate, [a: 1])"),
    (g.merge_v({T.id_: 1}).option(Merge.on_match, {"age": CardinalityValue.set_(3)}), "g.mergeV([(T.id): 1]).option(onMatch, [age: Cardinality.set(3)])"),
    (g.merge_e({Direction.OUT: 1, Direction.IN: Merge.in_v, T.label: "k"}).option(Merge.out_v, {T.id_: 1}), "g.mergeE([(OUT): 1, (IN): Merge.inV, (T.label): 'k']).option(Merge.outV, [(T.id): 1])"),
    (g.V().property({"a": 1}).property(Cardinality.list_, "x", None), "g.V().property([a: 1]).property(list, 'x', null)"),
    (g.inject(1, [1, 2], {"a": [1]}, None, {3}), "g.inject(1, [1, 2], [a: [1]], null, {3})"),
    (g.inject(True, SingleByte(1), short(2), long(3), bigint(4), 1.5), "g.inject(true, 1b, 2s, 3l, 4n, 1.5)"),
    (g.inject(datetime.datetime(2024, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc)), "g.inject(datetime('2024-01-02T03:04:05Z'))"),
    (g.inject(float("nan"), float("inf"), BigDecimal(2, 125)), "g.inject(NaN, Infinity, 1.25m)"),
    (g.inject([1, 3, 100]).sum_(Scope.local).math("_ + 1").fold(0, Operator.sum_), "g.inject([1, 3, 100]).sum(local).math('_ + 1').fold(0, sum)"),
    (g.with_sack(1.0, Operator.sum_).V().sack(Operator.mult).by("w").barrier(Barrier.norm_sack), "g.withSack(1.0, sum).V().sack(mult).by('w').barrier(normSack)"),
    (g.with_side_effect("a", [1, 2]).V().aggregate("a").cap("a"), "g.withSideEffect('a', [1, 2]).V().aggregate('a').cap('a')"),
    (g.with_("evaluationTimeout", 500).V(), "g.with('evaluationTimeout', 500).V()"),
    (g.with_("a").with_("b", "c").V(), "g.with('a').with('b', 'c').V()"),
    (g.with_strategies(ReadOnlyStrategy()).V(), "g.withStrategies(ReadOnlyStrategy).V()"),
    (g.with_strategies(SubgraphStrategy(vertices=__.has("age"), check_adjacent_vertices=False)).V(), "g.withStrategies(new SubgraphStrategy(vertices: __.has('age'), checkAdjacentVertices: false)).V()"),
    (g.with_strategies(PartitionStrategy(partition_key="p", write_partition="a", read_partitions=["a", "b"])).V(), "g.withStrategies(new PartitionStrategy(partitionKey: 'p', writePartition: 'a', readPartitions: ['a', 'b'])).V()"),
    (g.with_strategies(SeedStrategy(999)).V().sample(1), "g.withStrategies(new SeedStrategy(seed: 999)).V().sample(1)"),
    (g.without_strategies(ReadOnlyStrategy).V(), "g.withoutStrategies(ReadOnlyStrategy).V()"),
    (g.V().value_map("name").with_(WithOptions.tokens, WithOptions.ids), "g.V().valueMap('name').with(WithOptions.tokens, WithOptions.ids)"),
    (g.V().page_rank().with_("~tinkerpop.pageRank.times", 3), "g.V().pageRank().with(PageRank.times, 3)"),
    (g.V().limit(10).skip(2).range_(1, 5).tail(3), "g.V().limit(10).skip(2).range(1, 5).tail(3)"),
    (g.V().group().by(T.label).by(__.count()).unfold(), "g.V().group().by(T.label).by(__.count()).unfold()"),
    (g.V().path().by("name").by(__.label()).simple_path(), "g.V().path().by('name').by(__.label()).simplePath()"),
    (g.V().not_(__.out()).and_(__.in_(), __.out()).or_(__.id_()).filter_(__.has("a")), "g.V().not(__.out()).and(__.in(), __.out()).or(__.id()).filter(__.has('a'))"),
    (g.V().drop(), "g.V().drop()"),
    (g.V().has_label("a", "b").has_id(1).has_not("x").has_key("k").has_value(1), "g.V().hasLabel('a', 'b').hasId(1).hasNot('x').hasKey('k').hasValue(1)"),
    (g.V().date_add(DT.day, 3).as_number(GType.LONG), "g.V().dateAdd(DT.day, 3).asNumber(GType.LONG)"),
    (g.V().fail("no"), "g.V().fail('no')"),
    (g.V(Bindings.of("x", 1)).has("a", Bindings.of("y", "b")), "g.V(1).has('a', 'b')"),
    (g.V().side_effect(__.aggregate("x")).local(__.out().limit(1)).flat_map(__.in_()).map(__.id_()), "g.V().sideEffect(__.aggregate('x')).local(__.out().limit(1)).flatMap(__.in()).map(__.id())"),
    (g.V().index().with_(WithOptions.indexer, WithOptions.map), "g.V().index().with(WithOptions.indexer, WithOptions.map)"),
]

REQUESTS = {
    "eval": lambda: RequestMessage("", "eval", {"gremlin": "g.V(x)", "bindings": {"x": 1}, "language": "gremlin-lang", "aliases": {"g": "social"}}),
    "bytecode": lambda: RequestMessage("traversal", "bytecode", {"gremlin": g.V().has("age", P.gt(30)).bytecode, "aliases": {"g": "social"}}),
    "session": lambda: RequestMessage("session", "eval", {"gremlin": "g.V()", "session": str(UUID), "batchSize": 64}),
    "commit": lambda: RequestMessage("session", "bytecode", {"gremlin": Bytecode.GraphOp.commit(), "session": str(UUID), "aliases": {"g": "social"}}),
    "close": lambda: RequestMessage("session", "close", {"session": str(UUID)}),
    "authentication": lambda: RequestMessage("traversal", "authentication", {"sasl": "AHVzZXIAcGFzcw==", "saslMechanism": "PLAIN"}),
}


def json_of(writer, value):
    try:
        return json.dumps(json.loads(writer.write_object(value)), ensure_ascii=False, separators=(",", ":"))
    except Exception:
        return "-"


def shortened(third, second):
    return third, "=" if second == third else second


def line(kind, name, value):
    binary = bytearray()
    GraphBinaryWriter().to_dict(value, binary)
    print(kind, name, binary.hex(), *shortened(json_of(GraphSON3(), value), json_of(GraphSON2(), value)), sep="\t")


for name, value in VALUES.items():
    line("value", name, value)
for traversal, text in TRAVERSALS:
    line("bytecode", text, traversal.bytecode)
for name, request in REQUESTS.items():
    binary = GraphBinarySerializersV1().serialize_message(UUID, request())
    others = [s().serialize_message(str(UUID), request()) for s in (GraphSONSerializersV3d0, GraphSONSerializersV2d0)]
    # Without the media type that precedes a message, and its length.
    print("request", name, binary[33:].hex(), *shortened(*[other[34:].decode() for other in others]), sep="\t")
