"""Sphinx extension: tables that are in the package as data.

``networkx-functions`` lists the functions of the networkx backend, and ``error-reasons`` what an error's ``reason`` can be, with its hint.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from package import _errors, nx
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective


def _reasons(function: Callable[..., Any]) -> list[str]:
    """What a function that refuses arguments can return, in the order of its source, also through functions that it calls."""
    tree = ast.parse(inspect.getsource(function))
    returned = [it.value for it in ast.walk(tree) if isinstance(it, ast.Return) and it.value is not None]
    parts = [part for value in returned for part in ast.walk(value) if isinstance(part, (ast.Constant, ast.Call))]
    found: list[str] = []
    for part in sorted(parts, key=lambda it: (it.lineno, it.col_offset)):
        if isinstance(part, ast.Constant) and isinstance(part.value, str) and " " in part.value:
            found.append(part.value)
        elif isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id.startswith("_"):
            found += _reasons(getattr(nx, part.func.id))
    return list(dict.fromkeys(found))


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
    """The functions of a section of ``hoplake/nx.py``, which a comment there begins."""

    required_arguments = 1
    final_argument_whitespace = True
    heads = ("function", "why some calls are left to networkx")

    def rows(self) -> list[tuple[str, ...]]:
        source = inspect.getsource(nx)
        sections = dict(zip(*[iter(re.split(r"^# (.*)\n", source, flags=re.MULTILINE)[1:])] * 2, strict=True))
        names = re.findall(r"^def ([a-z]\w*)", sections[self.arguments[0]], flags=re.MULTILINE)
        return [self._row(name) for name in names if name in nx._FUNCTIONS]

    def _row(self, name: str) -> tuple[str, ...]:
        listed = self.env.metadata[self.env.docname].setdefault("networkx", set())
        listed.add(name)
        refusal = nx._REFUSALS.get(name)
        reasons = [] if refusal is None else _reasons(refusal)
        return f"`{name}({_signature(nx._FUNCTIONS[name])})`", "; ".join(reasons)


class Reasons(_Table):
    """The reasons of errors."""

    heads = ("`reason`", "hint")

    def rows(self) -> list[tuple[str, ...]]:
        return [(f"`{reason}`", hint) for reason, hint in _errors._BY_REASON.items()]


def _check_all_listed(app: Sphinx, env: Any) -> None:
    listed = {name for fields in env.metadata.values() for name in fields.get("networkx", ())}
    if missing := sorted(nx._FUNCTIONS.keys() - listed):
        logging.getLogger(__name__).warning(f"no page lists these functions of networkx: {', '.join(missing)}")


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("networkx-functions", Functions)
    app.add_directive("error-reasons", Reasons)
    app.connect("env-check-consistency", _check_all_listed)
    return {"parallel_read_safe": False}
