"""Pictures of small parts of a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._walks import Walk, networkx_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot(walks: list[Walk], start: tuple[str, int | str] | None, caption: str | None, axes: Axes | None) -> Axes:
    """Draws the vertices and edges of walks: a colour for each label, edge labels where there are few edges."""
    import matplotlib.pyplot
    import networkx

    pyplot: Any = matplotlib.pyplot
    graph = networkx_of(walks)
    drawn_on: Any = axes if axes is not None else pyplot.figure().add_subplot()
    names = {node: str(properties.get(caption) if caption else node[1]) for node, properties in graph.nodes(data=True)}
    labels = sorted({label for label, _ in graph})
    # Colours that people with any kind of colour vision can tell apart.
    colours = pyplot.get_cmap("tab10")
    positions: Any = networkx.spring_layout(graph, seed=7)
    for number, label in enumerate(labels):
        nodes = [node for node in graph if node[0] == label]
        drawn = networkx.draw_networkx_nodes(graph, positions, nodelist=nodes, node_color=[colours(number % 10)], node_size=220, ax=drawn_on)
        drawn.set_label(label)
    if start is not None and start in graph:
        networkx.draw_networkx_nodes(graph, positions, nodelist=[start], node_color="none", edgecolors="black", node_size=320, ax=drawn_on)
    networkx.draw_networkx_edges(graph, positions, edge_color="#888888", node_size=220, ax=drawn_on)
    networkx.draw_networkx_labels(graph, positions, labels=names, font_size=7, ax=drawn_on)
    if graph.number_of_edges() <= 30:
        edges: Any = {(source, target): data["label"] for source, target, data in graph.edges(data=True)}
        networkx.draw_networkx_edge_labels(graph, positions, edge_labels=edges, font_size=6, ax=drawn_on)
    if len(labels) > 1:
        drawn_on.legend()
    drawn_on.set_axis_off()
    picture: Axes = drawn_on
    return picture
