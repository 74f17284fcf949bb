"""Asks a server as users of gremlinpython do. Arguments: URL, token."""

import logging
import os
import sys

from gremlin_python.driver import serializer
from gremlin_python.driver.client import Client
from gremlin_python.driver.driver_remote_connection import DriverRemoteConnection
from gremlin_python.driver.protocol import GremlinServerError
from gremlin_python.process.anonymous_traversal import traversal

URL, TOKEN = sys.argv[1:]
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


def ask(name, chosen):
    settings = {"message_serializer": chosen, "username": "ann"}
    connection = DriverRemoteConnection(URL, "new", password=TOKEN, **settings)
    g = traversal().with_remote(connection)
    named = g.V().has("name", name)

    # Written and read.
    vertex = g.add_v("person").property("name", name).next()
    assert vertex.label == "person"
    assert named.clone().to_list() == [vertex]
    assert g.V(vertex.id).values("name").to_list() == [name]
    assert sorted(g.inject(*range(200)).to_list()) == list(range(200))
    assert g.inject("a", "a", "b").group_count().next() == {"a": 2, "b": 1}

    # Told what is wrong.
    assert "enough" in fails(595, lambda: g.inject(1).fail("enough").iterate())
    assert "sum" in fails(500, lambda: g.inject("a").sum_().next())

    # A transaction that is given up, and one that is not.
    transaction = g.tx()
    within = transaction.begin()
    within.add_v("person").property("name", name + " 2").iterate()
    assert within.V().has("name", name + " 2").count().next() == 1
    assert g.V().has("name", name + " 2").count().next() == 0
    transaction.rollback()
    assert g.V().has("name", name + " 2").count().next() == 0
    transaction = g.tx()
    within = transaction.begin()
    within.add_v("person").property("name", name + " 2").iterate()
    transaction.commit()
    assert g.V().has("name", name + " 2").count().next() == 1
    connection.close()

    # Texts.
    client = Client(URL, "new", password=TOKEN, **settings)
    assert client.submit("g.V().has('name', x).count()", {"x": name}).all().result() == [1]
    assert "line 1, column 5" in fails(597, lambda: client.submit("g.V(").all().result())
    assert "`foo`" in fails(498, lambda: client.submit("g.V().foo()").all().result())
    endless = "g.inject(1).repeat(__.identity()).times(1000000000)"
    fails(598, lambda: client.submit(endless, request_options={"evaluationTimeout": 50}).all().result())
    client.close()

    client = Client(URL, "new", password="wrong", **settings)
    assert "token" in fails(401, lambda: client.submit("g.V()").all().result())
    client.close()
    client = Client(URL, "nothing", password=TOKEN, **settings)
    assert "\"nothing\"" in fails(499, lambda: client.submit("g.V()").all().result())
    client.close()


ask("binary", serializer.GraphBinarySerializersV1())
ask("json", serializer.GraphSONSerializersV3d0())
ask("old json", serializer.GraphSONSerializersV2d0())

# A query whose client leaves: the test looks whether it ends.
client = Client(URL, "new", username="ann", password=TOKEN)
print("ready", flush=True)
sys.stdin.readline()
client.submit("g.inject(1).repeat(__.identity()).times(1000000000)")
sys.stdin.readline()
# Without a goodbye: the driver's own would wait for the answer.
os._exit(0)
