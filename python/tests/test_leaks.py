"""Calls that are repeated do not grow the process: its memory, its threads, its open files.

Each group runs in a child process, so that nothing else allocates in it.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

TIMES = 10_000

#: Calls by group, each with ``graph``, and ``raised`` for those that end with an exception. A group runs them in turn.
GROUPS: dict[str, list[str]] = {
    "made without a call": [
        "hoplake.quote('x')",
        "graph.traverse('Person:1').out('knows').both(where='since > 1').once()",
        "graph.within(seconds=5, memory=1 << 30).cost",
        "graph.begin(on_newest=True).upsert_vertex('Person', 1, name='x', tags=['a', 'b'])",
        "graph.begin(on_newest=True).upsert_edge('knows', ('Person', 1), ('Person', 2), since=1)",
        "pickle.loads(pickle.dumps(stored)).url",
        "hoplake.algorithms()",
    ],
    "vertices": [
        "graph.get('Person:1').to_pylist()",
        "graph.get('Person:1').__arrow_c_stream__()",
        "pyarrow.table(graph.get('Person:1'))",
        "graph.count('Person')",
        "graph.degrees(['Person:1', 'Person:2'])",
        "graph.neighbors('Person:1').columns",
    ],
    "traversals": [
        "graph.traverse('Person:1').out().count()",
        "graph.traverse('Person:1').out().rows()",
        "graph.traverse('Person:1').out().walks()",
        "graph.path('Person:1', 'Person:3')",
        "graph.neighborhood('Person:1', depth=2)",
    ],
    "scans": [
        "graph.scan('Person', where='age > 3').to_pylist()",
        "next(iter(graph.scan().batches()))",
        "graph.scan().__arrow_c_stream__()",
        "graph.scan_edges().columns",
    ],
    "queries": [
        "graph.query('g.V().path()')",
        "graph.query('g.inject(x)', x={'a': [1, 2.5, 'x', None, {1, 2}]})",
        "graph.explain('g.V()')",
        "graph.queries(), graph.indexes()",
    ],
    "tables of Arrow": [
        "graph.begin(on_newest=True).upsert_vertices('Person', table)",
        "graph.begin(on_newest=True).upsert_vertices('Person', {'key': [1, 2], 'name': ['x', None]})",
        "graph.begin(on_newest=True).add(json_lines='{\"op\": \"delete_vertex\", \"label\": \"Person\", \"key\": 1}')",
    ],
    "exceptions": [
        "raised(graph.get, 'Person:99')",
        "raised(graph.get, [object()])",
        "raised(graph.count, where='[')",
        "raised(graph.query, 'g.V(')",
        "raised(graph.query, 'g.inject(x)', x=object())",
        "raised(graph.within(vertices=1).traverse('Person:1').both().both().count)",
        "raised(graph.begin(on_newest=True).upsert_vertex, 'Person', 1, x=cyclic)",
        "raised(graph.begin(on_newest=True).upsert_vertices, 'Person', {'key': [1, object()]})",
        "raised(graph.begin(on_newest=True).upsert_vertices, 'Person', Raises())",
        "raised(graph.run, 'pagerank', damping='x')",
        "raised(hoplake.open, 'memory://nothing/here')",
    ],
    "computations": [
        "graph.run('degrees').top(1)",
        "graph.pregel(initial=1, signal=lambda *_: 2.5, apply=lambda _, received, v: (received, v.superstep < 3)).to_arrow()",
        "graph.info()",
        "graph.log(1)",
        "graph.refresh()",
    ],
    "asyncio": ["loop.run_until_complete(asynchronous.count())", "loop.run_until_complete(asynchronous.get('Person:1'))"],
}

PROGRAM = """
import asyncio, gc, json, os, pickle, sys
import pyarrow, hoplake, hoplake.aio

class Raises:
    def __arrow_c_stream__(self, requested_schema=None):
        raise KeyError

def raised(call, *arguments, **named):
    try:
        call(*arguments, **named)
    except Exception:
        return
    raise AssertionError(f"{call} has not raised")

def state():
    gc.collect()
    with open("/proc/self/status") as file:
        fields = dict(line.split(":", 1) for line in file)
    return int(fields["VmRSS"].split()[0]), int(fields["Threads"]), len(os.listdir("/proc/self/fd"))

folder, times, calls = sys.argv[1], int(sys.argv[2]), [compile(call, call, "eval") for call in sys.argv[3:]]
url = "memory://leaks/graph"
people = {"key": [1, 2, 3], "name": ["Ann", "Bo", None], "age": [30, 41, None]}
knows = {"source": [1, 2, 1], "target": [2, 3, 3], "since": [2020, 2021, 2022]}
hoplake.load(url, vertices={"Person": people}, edges={("Person", "knows", "Person"): knows})
graph = hoplake.open(url)
hoplake.create(folder)
stored = hoplake.open(folder)
table = pyarrow.table({"key": [1, 2], "name": ["x", None]})
cyclic = []
cyclic.append(cyclic)
loop = asyncio.new_event_loop()
asynchronous = loop.run_until_complete(hoplake.aio.open(url))

def repeat(times):
    for number in range(times):
        eval(calls[number % len(calls)])

# Caches fill, threads start, allocators take what they keep.
repeat(times // 4)
states = [state()]
for _ in range(2):
    repeat(times // 2)
    states.append(state())
print(json.dumps(states))
"""

#: 10,000 calls of a group grow the process by 40 KiB at most. Half of this for each half is 50 bytes a call.
GROWTH_KIB = 512


@pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")
@pytest.mark.parametrize("group", GROUPS)
def test_repeated_calls_leave_nothing(group: str, url: str) -> None:
    arguments = [sys.executable, "-c", PROGRAM, url, str(TIMES), *GROUPS[group]]
    ended = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-2_000:]
    before, middle, after = json.loads(ended.stdout)
    # A leak grows in both halves; what an allocator takes once does not.
    grown = [middle[0] - before[0], after[0] - middle[0]]
    assert min(grown) < GROWTH_KIB / 2, f"{sum(grown)} KiB after {TIMES} calls: {grown}"
    assert after[1] <= before[1] + 2, f"{after[1]} threads, {before[1]} before"
    assert after[2] <= before[2] + 2, f"{after[2]} open files, {before[2]} before"
