"""Components, weak and strong."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

from .dispatch import backed, directed, only_defaults
from .graph import Graph


def groups(values: dict[Hashable, Any]) -> list[set[Hashable]]:
    """The nodes of each value."""
    found: dict[Any, set[Hashable]] = {}
    for node, value in values.items():
        found.setdefault(value, set()).add(node)
    return list(found.values())


def _components(prefix: str, algorithm: str) -> None:
    """Three functions of networkx: the components, their number, and whether there is one. It checks directions itself."""

    def components(G: Graph) -> Iterator[set[Hashable]]:
        yield from groups(G.values(algorithm))

    def number(G: Graph) -> int:
        return number_of_components(G, algorithm)

    def is_one(G: Graph) -> bool:
        return number(G) == 1

    components.__name__ = f"{prefix}connected_components"
    number.__name__ = f"number_{prefix}connected_components"
    is_one.__name__ = f"is_{prefix}connected"
    for function in (components, number, is_one):
        backed()(function)


_components("", "components")
_components("weakly_", "components")
_components("strongly_", "strong-components")


def number_of_components(G: Graph, algorithm: str = "components") -> int:
    """How many components there are."""
    found = G.run(algorithm).groups
    assert found is not None, "an algorithm that has groups"
    return found[0]


@backed()
def node_connected_component(G: Graph, n: Hashable) -> set[Hashable]:
    values = G.values("components")
    return {node for node, value in values.items() if value == values[n]}


@backed()
def is_directed_acyclic_graph(G: Graph) -> bool:
    return G.is_directed() and number_of_components(G, "strong-components") == len(G) and not G.has_self_loops()


@backed(directed, only_defaults("weight"))
def flow_hierarchy(G: Graph, weight: Any = None) -> float:
    component = G.values("strong-components")
    inside = [component[source] == component[target] for source, target, _ in G.edges()]
    return float(1 - sum(inside) / len(inside))
