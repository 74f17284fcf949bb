"""Graphs in other processes, and calls that are interrupted."""

from __future__ import annotations

import concurrent.futures
import gc
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import hoplake


def _everything(graph: hoplake.Graph) -> list[Any]:
    """Calls on all kinds of threads: reads, Gremlin, computations, commits that are only checked."""
    commit = graph.begin()
    commit.upsert_vertex("Person", 77, name="X")
    return [
        graph.version,
        graph.get("Person:1")["name"],
        graph.query("g.V().out('knows').count()")[0],
        graph.query("g.V().pageRank().count()")[0],
        graph.run("components").groups,
        commit.check()["vertices_added"],
        graph.schema.labels[0].vertices,
    ]


EXPECTED = [1, ["Ann"], 4, 4, (1, 4), 1, 4]


def _in_child(graph: hoplake.Graph, answers: Any) -> None:
    answers.put(_everything(graph))


def test_graphs_are_pickled_without_credentials(social: hoplake.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "very secret")
    bytes_of = pickle.dumps(social.within(seconds=5, dollars=0.5))
    assert b"very secret" not in bytes_of
    copy = pickle.loads(bytes_of)
    assert _everything(copy) == EXPECTED
    assert copy._core.limits()[0] == 5.0
    with social.begin() as commit:
        commit.delete_vertex("Person", 4)
    # It is of the version that it was of.
    assert pickle.loads(bytes_of).count() == 4


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_graphs_work_in_other_processes(social: hoplake.Graph, method: str) -> None:
    assert _everything(social) == EXPECTED
    context: Any = multiprocessing.get_context(method)
    answers = context.Queue()
    processes = [context.Process(target=_in_child, args=(social, answers)) for _ in range(3)]
    for process in processes:
        process.start()
    assert [answers.get(timeout=60) for _ in processes] == [EXPECTED] * 3
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    assert _everything(social) == EXPECTED


def test_a_child_of_a_child_works(social: hoplake.Graph) -> None:
    assert _everything(social) == EXPECTED
    child = os.fork()
    if child == 0:
        status = 1
        try:
            first = _everything(social) == EXPECTED
            grandchild = os.fork()
            if grandchild == 0:
                os._exit(0 if _everything(social) == EXPECTED else 2)
            _, ended = os.waitpid(grandchild, 0)
            status = 0 if first and ended == 0 else 3
        finally:
            os._exit(status)
    assert _ends_with(child) == 0


def test_a_child_may_drop_what_its_parent_made(social: hoplake.Graph) -> None:
    """Also while threads of the parent are at work, whose locks the child cannot take."""
    ranks = social.run("pagerank")
    scan = social.scan("Person")
    server = hoplake.serve({"social": social.url})
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            social.traverse("Person:1").both().both().count()

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(20):
            child = os.fork()
            if child == 0:
                try:
                    del ranks, scan, server
                    gc.collect()
                    os._exit(0 if social.count() == 4 else 2)
                finally:
                    os._exit(1)
            assert _ends_with(child) == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    server.stop()


def _ends_with(child: int) -> int:
    """The status of a child, which is killed if it hangs."""
    for _ in range(600):
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.1)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise AssertionError("the child hangs")


def test_threads_share_a_graph(social: hoplake.Graph) -> None:
    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(_everything, [social] * 32))
    assert answers == [EXPECTED] * 32


SLOW_CALLS: dict[str, str] = {
    "run": "hoplake.open(url).run('betweenness', edges='both')",
    "pregel": "hoplake.open(url).pregel(initial=0, signal=lambda state, v: state, apply=lambda state, received, v: state + 1)",
    "pregel streamed": "hoplake.open(url).pregel(initial=0, signal=lambda *_: 1, apply=lambda s, *_: (s, True), lists='streamed')",
    "callback": "hoplake.open(url).pregel(initial=0, signal=lambda *_: [1 for _ in range(10**10)], apply=lambda s, *_: s)",
    "query": "hoplake.open(url).within(memory=1 << 40).query('g.V().repeat(both()).times(9).count()')",
    "traverse": "[hoplake.open(url).traverse('v[~key < 150000]').both().both().both().count() for _ in range(1000)]",
    "scan": "[hoplake.open(url).scan('v').to_pylist() for _ in range(1000)]",
    "stream": "[__import__('pyarrow').table(hoplake.open(url).scan('v')) for _ in range(1000)]",
    "export": "[hoplake.open(url).export(target, overwrite=True) for _ in range(1000)]",
    "verify": "[hoplake.open(url).verify() for _ in range(1000)]",
    "mirror": "[hoplake.open(url).mirror(target + str(n)) for n in range(1000)]",
    "commit": "[hoplake.open(target0).apply(json_lines=text) for _ in range(10000)]",
    "load": "[hoplake.load(target + str(n), edges=edges) for n in range(1000)]",
    "load of a dict": "hoplake.load(target, vertices={'v': {'key': itertools.count()}})",
    "changes": "hoplake.open(target0).begin().add(json_lines=text.join(['\\n'] * 2_000_000))",
    "upserts of a dict": "hoplake.open(target0).begin().upsert_vertices('v', {'key': itertools.count()})",
    "upserts of a stream": "hoplake.open(target0).begin().upsert_vertices('v', endless())",
    "upserts with asyncio": "asyncio.run(upserts(target0))",
    "silent": "hoplake.open('s3://bucket/graph')",
}

PROGRAM = """
import os, socket, sys
# Takes connections, and says nothing.
silent = socket.create_server(("127.0.0.1", 0))
endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
os.environ.update(AWS_ENDPOINT_URL=endpoint, AWS_ALLOW_HTTP="true", AWS_REGION="r", AWS_ACCESS_KEY_ID="k", AWS_SECRET_ACCESS_KEY="s")
os.environ["NO_PROXY"] = "127.0.0.1"
import asyncio, itertools, pyarrow, hoplake, hoplake.aio
url, target = sys.argv[1:3]
target0 = target + "-empty"
hoplake.create(target0)
text = '{"op": "upsert_vertex", "label": "v", "key": 1}'
rows = list(range(3_000_000))
edges = {("v", "e", "v"): pyarrow.table({"source": rows, "target": rows})}
def endless():
    batch = pyarrow.record_batch({"key": [1]})
    return pyarrow.RecordBatchReader.from_batches(batch.schema, itertools.repeat(batch))
async def upserts(url):
    await (await hoplake.aio.open(url)).begin().upsert_vertices("v", {"key": itertools.count()})
print("ready", flush=True)
try:
    CALL
except KeyboardInterrupt:
    # Whatever was at work, the interpreter and the package go on.
    print("interrupted", hoplake.open(url).count(), flush=True)
"""


@pytest.mark.parametrize("name", SLOW_CALLS)
def test_ctrl_c_ends_every_call_promptly(name: str, large: str, tmp_path: Path) -> None:
    program = PROGRAM.replace("CALL", SLOW_CALLS[name])
    arguments = [sys.executable, "-c", program, large, str(tmp_path / "target")]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(1.5)
        assert process.poll() is None, process.communicate()
        begun = time.monotonic()
        process.send_signal(signal.SIGINT)
        try:
            out, err = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        took = time.monotonic() - begun
    assert (out, process.returncode) == ("interrupted 150000\n", 0), err
    # 50 ms between two steps, the clean-up of a load, and the end of the interpreter, on a machine that is busy with other tests.
    assert took < 2, took


def test_an_exception_of_a_callback_ends_the_call(large: str) -> None:
    class Enough(Exception):
        pass

    calls = 0

    def progress(step: str, done: int, total: int | None) -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise Enough

    with pytest.raises(Enough):
        for _ in range(1000):
            hoplake.open(large).verify(progress=progress)


HANDLER = """
import signal, sys, time
import pyarrow, hoplake
class Enough(Exception):
    pass
def handler(*_):
    raise Enough
signal.signal(signal.SIGALRM, handler)
try:
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    while True:
        pyarrow.table(hoplake.open(sys.argv[1]).scan("v"))
except Enough:
    print("its own", flush=True)
# No other is left over.
for _ in range(1000):
    pass
print(hoplake.open(sys.argv[1]).count())
"""


def test_the_exception_of_a_handler_is_raised_within_a_stream(large: str) -> None:
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", HANDLER, large], capture_output=True, text=True, timeout=60, check=False)
        assert done.stdout == "its own\n150000\n", done.stderr
