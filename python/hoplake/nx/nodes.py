"""Nodes that calls name, and what networkx raises if the graph does not have them."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from .graph import Graph


def check_node(G: Graph, node: Hashable, message: str) -> None:
    """Raises networkx.NodeNotFound for a node that the graph does not have."""
    import networkx

    if node not in G:
        raise networkx.NodeNotFound(message)


def check_has(G: Graph, node: Hashable, kind: str = "graph") -> None:
    """Raises networkx.NetworkXError for a node that the graph does not have."""
    import networkx

    if node not in G:
        raise networkx.NetworkXError(f"The node {node} is not in the {kind}.")


def nodes_of(G: Graph, nbunch: Any) -> list[Hashable]:
    """Some nodes, each once: all, one, or those of a collection that the graph has."""
    import networkx

    if nbunch is None:
        return G.nodes()
    if nbunch in G:
        return [nbunch]
    try:
        return list(dict.fromkeys(node for node in nbunch if node in G))
    except TypeError as error:
        raise networkx.NetworkXError(f"Node {nbunch} is not in the graph.") from error


def of_nodes(G: Graph, values: dict[Hashable, Any], nodes: Any) -> Any:
    """The value of one node, or the values of several."""
    if nodes is None:
        return values
    if nodes in G:
        return values[nodes]
    return {node: values[node] for node in nodes_of(G, nodes)}
