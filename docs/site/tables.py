"""Sphinx extension: tables that are in the package as data.

``networkx-functions`` lists the functions of the networkx backend, and ``error-reasons`` what an error's ``reason`` can be, with its hint.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from package import IMPLEMENTED, _errors, nx
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective


def _signature(function: Callable[..., Any]) -> str:
    """Parameters and defaults, without types: networkx documents them."""
    parameters = inspect.signature(function).parameters.values()
    return ", ".join(it.name if it.default is it.empty else f"{it.name}={it.default!r}" for it in parameters)


class _Table(SphinxDirective):
    """A table of Markdown rows."""

    heads: tuple[str, ...] = ()
    widths = ""

    def rows(self) -> list[tuple[str, ...]]:
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        lines = ["| " + " | ".join(self.heads) + " |", "|" + " --- |" * len(self.heads)]
        lines += ["| " + " | ".join(cell.replace("|", r"\|") for cell in row) + " |" for row in self.rows()]
        container = nodes.Element()
        self.state.nested_parse(StringList(lines, source=self.get_location()), self.content_offset, container)
        return container.children


class Functions(_Table):
    """The functions of a module of ``hoplake.nx``."""

    required_arguments = 1
    heads = ("function",)

    def rows(self) -> list[tuple[str, ...]]:
        module = f"{nx.__name__}.{self.arguments[0]}"
        names = [name for name, function in IMPLEMENTED.items() if function.__module__ == module]
        self.env.metadata[self.env.docname].setdefault("networkx", set()).update(names)
        return [(f"`{name}({_signature(IMPLEMENTED[name])})`",) for name in names]


class Reasons(_Table):
    """The reasons of errors."""

    heads = ("`reason`", "hint")

    def rows(self) -> list[tuple[str, ...]]:
        return [(f"`{reason}`", hint) for reason, hint in _errors._BY_REASON.items()]


def _check_all_listed(app: Sphinx, env: Any) -> None:
    listed = {name for fields in env.metadata.values() for name in fields.get("networkx", ())}
    if missing := sorted(set(nx.FUNCTIONS) - listed):
        logging.getLogger(__name__).warning(f"no page lists these functions of networkx: {', '.join(missing)}")


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("networkx-functions", Functions)
    app.add_directive("error-reasons", Reasons)
    app.connect("env-check-consistency", _check_all_listed)
    return {"parallel_read_safe": False}
