"""Asks a server as users of gremlinpython 4 do. Arguments: URL, token."""

import logging
import sys

from gremlin_python.driver.auth import basic
from gremlin_python.driver.client import Client
from gremlin_python.driver.connection import GremlinServerError
from gremlin_python.driver.driver_remote_connection import DriverRemoteConnection
from gremlin_python.process.anonymous_traversal import traversal
from gremlin_python.process.graph_traversal import __
from gremlin_python.process.traversal import P

URL, TOKEN = sys.argv[1:]
ENDLESS = "g.inject(1).repeat(__.identity()).times(1000000000)"
# The driver logs each failure.
logging.disable(logging.CRITICAL)


def fails(status, call):
    """The message of a failure with this status."""
    try:
        call()
    except GremlinServerError as error:
        assert error.status_code == status, (error.status_code, error.status_message)
        return error.status_message
    raise AssertionError(f"no failure, and not {status}")


connection = DriverRemoteConnection(URL, "new", auth=basic("ann", TOKEN))
g = traversal().with_remote(connection)

# Written and read.
vertex = g.add_v("person").property("name", "Ann").property("age", 7).next()
assert vertex.label == "person", vertex
other = g.add_v("person").property("name", "Bob").next()
edge = g.V(vertex.id).add_e("knows").to(__.V(other.id)).property("since", 2020).next()
assert (edge.label, edge.outV.id, edge.inV.id) == ("knows", vertex.id, other.id), edge
assert g.V().has("name", "Ann").to_list() == [vertex]
assert g.V(vertex.id).values("name", "age").to_set() == {"Ann", 7}
assert g.V().has("age", P.gt(6)).out("knows").values("name").to_list() == ["Bob"]
assert sorted(g.inject(*range(200)).to_list()) == list(range(200))
assert g.inject("a", "a", "b").group_count().next() == {"a": 2, "b": 1}
assert [vertex, other] == list(g.V(vertex.id).out().path().next())
assert g.V(vertex.id).element_map().next()["name"] == "Ann"
assert g.V().value_map("age").to_list().count({}) == 1
assert g.V(vertex.id).properties("name").next().value == "Ann"
tree = g.V(vertex.id).out().tree().by("name").next()
assert [str(key) for key in tree.root_nodes()] == ["Ann"], tree
graph = g.V(vertex.id).out_e().subgraph("x").cap("x").next()
assert len(graph.vertices) == 2 and len(graph.edges) == 1
assert g.V().aggregate("x").by("name").cap("x").next() in (["Ann", "Bob"], ["Bob", "Ann"])

# Told what is wrong.
assert "enough" in fails(400, lambda: g.inject(1).fail("enough").iterate())
assert "time" in fails(504, lambda: g.with_("timeoutMillis", 50).inject(1).repeat(__.identity()).times(1000000000).iterate())
assert "transactions over several requests" in fails(400, lambda: g.tx().begin())
connection.close()

client = Client(URL, "new", auth=basic("ann", TOKEN))
assert client.submit("g.V().has('name', who).count()", {"who": "Ann"}).all().result() == [1]
assert "program" in fails(400, lambda: client.submit("g.V().program()").all().result())
assert "time" in fails(504, lambda: client.submit(ENDLESS, request_options={"timeoutMillis": 50}).all().result())
assert client.submit("g.inject(1)").all().result() == [1]
client.close()
bulked = Client(URL, "new", auth=basic("ann", TOKEN), bulk_results=True)
found = bulked.submit("g.inject(1, 1, 1).barrier()").all().result()
assert sum(getattr(it, "bulk", 1) for it in found) == 3, found
bulked.close()

stranger = Client(URL, "new", auth=basic("ann", "no"))
fails(401, lambda: stranger.submit("g.V()").all().result())
stranger.close()

# The test ends this program in the middle of a query, and looks whether the query ends with it.
left = Client(URL, "new", auth=basic("ann", TOKEN))
left.submit_async(ENDLESS)
print("asked", flush=True)
sys.stdin.read()
