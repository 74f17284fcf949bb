"""Breadth-first searches of networkit: milliseconds of each round, and what each source reaches.

Arguments: a file of edges as pairs of 32-bit numbers, the number of vertices, rounds, sources.
"""

import json
import sys
import time

import networkit
import numpy

edges, vertices, rounds, sources = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
ends = numpy.fromfile(edges, dtype="<u4").reshape(-1, 2).astype(numpy.int64)
graph = networkit.GraphFromCoo((ends[:, 0].copy(), ends[:, 1].copy()), n=vertices)
times, levels = [], []
for number in range(rounds):
    begun = time.perf_counter()
    searches = [networkit.distance.BFS(graph, int(source), storePaths=False).run() for source in sources]
    times.append((time.perf_counter() - begun) * 1e3)
    if number == 0:
        for search in searches:
            distances = numpy.array(search.getDistances(asarray=True))
            reached = distances[distances < vertices]
            levels.append([len(reached), int(reached.sum())])
json.dump({"milliseconds": times, "levels": levels}, sys.stdout)
