"""Communities, and how good they are."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from typing import Any

from .components import groups
from .dispatch import backed, only_defaults, undirected, weights
from .graph import Graph


# Before 3.7, networkx had neither metric nor theta; its default of metric is "cpm" since.
@backed(only_defaults("metric", "theta", "max_level"), undirected, weights("weight"))
def leiden_communities(
    G: Graph,
    weight: Any = "weight",
    resolution: float = 1,
    max_level: Any = None,
    seed: Any = None,
    metric: str = "modularity",
    theta: float = 0.01,
) -> list[set[Hashable]]:
    options: dict[str, Any] = {"seed": seed} if isinstance(seed, int) else {}
    return groups(G.values("leiden", weight=weight, resolution=resolution, **options))


@backed()
def is_partition(G: Graph, communities: Iterable[Collection[Hashable]]) -> bool:
    parts = list(communities)
    known = G.numbers()
    nodes = {node for part in parts for node in part if node in known}
    return len(G) == len(nodes) == sum(len(part) for part in parts)


@backed(weights("weight", is_scanned=True))
def modularity(G: Graph, communities: Iterable[Collection[Hashable]], weight: Any = "weight", resolution: float = 1) -> float:
    import networkx

    parts = list(communities)
    if not is_partition(G, parts):
        community: Any = networkx.community
        raise community.quality.NotAPartition(G, parts)
    of = {node: number for number, part in enumerate(parts) for node in part}
    inner = [0.0] * len(parts)
    leaving = [0.0] * len(parts)
    entering = [0.0] * len(parts)
    total = 0.0
    for source, target, value in G.edges(weight):
        total += value
        first, last = of[source], of[target]
        leaving[first] += value
        entering[last] += value
        if first == last:
            inner[first] += value
    if total == 0:
        return 0
    if not G.is_directed():
        leaving = entering = [a + b for a, b in zip(leaving, entering)]
        norm = 1 / (2 * total) ** 2
    else:
        norm = 1 / total**2
    return sum(a / total - resolution * b * c * norm for a, b, c in zip(inner, leaving, entering))
