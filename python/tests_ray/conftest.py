"""Two Ray nodes on one machine."""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

# Before Ray is imported: nodes and workers inherit it.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
# Nodes are on the loopback. Otherwise Ray takes that for the address of the machine, which does not answer.
os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
# A node that was killed counts as dead after seconds, and not after minutes.
os.environ.setdefault("RAY_health_check_initial_delay_ms", "1000")
os.environ.setdefault("RAY_health_check_period_ms", "500")
os.environ.setdefault("RAY_health_check_failure_threshold", "3")


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


#: Where an S3 server will be: nodes know it before it starts.
_S3_PORT = _free_port()
os.environ.update(
    AWS_ENDPOINT_URL=f"http://127.0.0.1:{_S3_PORT}",
    AWS_ACCESS_KEY_ID="user",
    AWS_SECRET_ACCESS_KEY="password",
    AWS_REGION="us-east-1",
    AWS_ALLOW_HTTP="true",
)

import ray
from ray.cluster_utils import Cluster

import hoplake

_OBJECT_STORE_BYTES = 80_000_000


class Nodes:
    """A head without workers, and nodes that tests may kill."""

    def __init__(self) -> None:
        head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": _OBJECT_STORE_BYTES, "node_ip_address": "127.0.0.1"}
        self.cluster = Cluster(initialize_head=True, connect=False, head_node_args=head)
        self.nodes: list[Any] = []
        self.add()
        self.add()

    def add(self) -> None:
        """Adds a node."""
        self.nodes.append(self.cluster.add_node(num_cpus=8, object_store_memory=_OBJECT_STORE_BYTES, node_ip_address="127.0.0.1"))

    def kill(self, id: str) -> None:
        """Kills a node with its workers, which go on at another one, and adds one for the next time."""
        (node,) = [node for node in self.nodes if node.node_id == id]
        self.nodes.remove(node)
        self.cluster.remove_node(node, allow_graceful=False)
        self.add()


@pytest.fixture(scope="session")
def nodes() -> Iterator[Nodes]:
    started = Nodes()
    ray.init(address=started.cluster.address, log_to_driver=False, namespace="tests", _node_ip_address="127.0.0.1")
    yield started
    ray.shutdown()
    started.cluster.shutdown()


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A location without a graph."""
    return str(tmp_path / "graph")


def load(url: str) -> hoplake.Graph:
    """Two labels, weights, vertices without edges, and some that were deleted."""
    random = np.random.default_rng(7)
    pairs = random.integers(0, 400, (1500, 2)) ** 2 // 400
    weights = pa.array([float(3 * place % 7 + 1) for place in range(len(pairs))])
    roads = pa.table({"source": pairs[:, 0], "target": pairs[:, 1], "km": weights})
    far = pa.table({"source": [3, 5, 9], "target": ["x", "y", "x"], "km": [1.0, 2.0, 3.0]})
    towns = pa.table({"key": list(range(399, -1, -1)), "size": list(range(400))})
    ports = pa.table({"key": ["z", "y", "x"]})
    hoplake.load(url, vertices={"Town": towns, "Port": ports}, edges={("Town", "road", "Town"): roads, ("Town", "line", "Port"): far})
    graph = hoplake.open(url)
    with graph.begin() as commit:
        for key in (1, 17, 200, 398):
            commit.delete_vertex("Town", key)
    graph.refresh()
    return graph


@pytest.fixture
def graph(url: str) -> hoplake.Graph:
    return load(url)


class S3:
    """An S3 server over a folder, which can stop and go on."""

    def __init__(self, binary: str, folder: Path) -> None:
        self._binary = binary
        self._folder = folder
        self.port = _S3_PORT
        (folder / "bucket").mkdir(parents=True)
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self, *options: str) -> None:
        """Starts it, on the same port."""
        access = ("--port", f"127.0.0.1:{self.port}", "--access", "user", "--secret", "password")
        command = [self._binary, *access, *options, "posix", str(self._folder)]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(100):
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                time.sleep(0.1)
        raise TimeoutError("the S3 server does not answer")

    def stop(self) -> None:
        """Ends it, as a store that does not answer."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@pytest.fixture
def s3() -> Iterator[S3]:
    binary = os.environ.get("HOPLAKE_VERSITYGW")
    if not binary:
        pytest.skip("HOPLAKE_VERSITYGW names no S3 server")
    with tempfile.TemporaryDirectory() as folder:
        server = S3(binary, Path(folder))
        yield server
        server.stop()
