"""Sphinx extension: the docstrings of the package as they are written.

- The public name of a class is ``hoplake.Graph``, whatever private module defines it: references find it there.
- ``Attributes:`` describes fields of a class, and annotations have their types and the fields that need no description: both are one list.
- Annotations are those of the source, such as ``Location``, and not what they stand for.
- Classes show no constructor: calls return them.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

from docutils import nodes
from package import aio, hoplake
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.inspect import stringify_signature

_ENTRY = re.compile(r"^    (\w+): (.*)$")
#: The fields of the class that is being documented: they are in its own text.
_fields: dict[str, str | None] = {}
#: Names that `hoplake.aio` leaves to `hoplake`.
PUBLIC = set(hoplake.__all__) - set(aio.__all__)


def _write_fields(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    if what not in ("class", "exception"):
        return
    _fields.clear()
    _fields.update((field, kind) for field, kind in inspect.get_annotations(obj).items() if not field.startswith("_"))
    described: dict[str, str] = {}
    if "Attributes:" in lines:
        start = lines.index("Attributes:")
        for line in lines[start + 1 :]:
            if entry := _ENTRY.match(line):
                described[entry[1]] = entry[2]
            elif line.strip():
                # A description goes on in the next line.
                described[[*described][-1]] += f" {line.strip()}"
        del lines[start:]
    for field in {**_fields, **described}:
        kind, text = _fields.get(field), described.get(field, "")
        lines += ["", f".. attribute:: {field}", *([f"   :type: {kind}"] if kind else []), "", f"   {text[:1].upper()}{text[1:]}"]
    _fields.update(dict.fromkeys(described))


def _signature(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, signature: str | None, returns: str | None
) -> tuple[str, str | None] | None:
    if signature is None:
        return None
    if what in ("class", "exception"):
        return "", None
    written = inspect.signature(obj)
    if what == "method":
        written = written.replace(parameters=list(written.parameters.values())[1:])
    arguments, _, result = stringify_signature(written, unqualified_typehints=True).rpartition(" -> ")
    return arguments, result


def _skip(app: Sphinx, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Fields are in the text of their class, and special methods are shown where they have a docstring."""
    is_special = name.startswith("__") and name.endswith("__")
    if what in ("class", "exception") and name in _fields:
        return True
    return not obj.__doc__ if is_special and inspect.isfunction(obj) else None


def _name_public(app: Sphinx, doctree: nodes.document) -> None:
    """In the module ``hoplake.aio``, names that it does not have are those of ``hoplake``."""
    for node in doctree.findall(pending_xref):
        target = node["reftarget"]
        if node.get("py:module") == "hoplake.aio" and target in PUBLIC:
            node["reftarget"] = f"hoplake.{target}"


def _resolve(app: Sphinx, env: Any, node: pending_xref, content: nodes.Element) -> nodes.Element | None:
    """A reference to a name of a private module, or without a module: ``hoplake._sync.graph.Graph`` is ``hoplake.Graph``."""
    if node.get("refdomain") != "py":
        return None
    target = node["reftarget"]
    # As `graph.py` imports it.
    target = "hoplake.nx.Graph" if target == "NxGraph" else target
    is_async = "._async." in target or node.get("py:module") == "hoplake.aio"
    last = re.sub(r"^hoplake(\.aio)?\.(_\w+\.)*(\w+\.)?", "", target)
    objects = env.domains.python_domain.objects
    for module in ("hoplake.aio", "hoplake") if is_async else ("hoplake",):
        for found in (target, f"{module}.{target}", f"{module}.{last}"):
            if found in objects:
                entry = objects[found]
                reference = nodes.reference("", "", content.deepcopy(), internal=True)
                reference["refuri"] = app.builder.get_relative_uri(node["refdoc"], entry.docname) + f"#{entry.node_id}"
                return reference
    return None


def _check_all_documented(app: Sphinx, env: Any) -> None:
    gremlin = [name for name, value in vars(hoplake.gremlin).items() if getattr(value, "__module__", "") == "hoplake.gremlin"]
    public = {"hoplake": hoplake.__all__, "hoplake.aio": aio.__all__, "hoplake.gremlin": gremlin}
    names = {f"{module}.{name}" for module, names in public.items() for name in names} - {"hoplake.__version__"}
    if missing := sorted(names - set(env.domains.python_domain.objects)):
        logging.getLogger(__name__).warning(f"no page of docs/site/python has these names: {', '.join(missing)}")


def setup(app: Sphinx) -> dict[str, bool]:
    # Before napoleon, which turns sections into fields.
    app.connect("autodoc-process-docstring", _write_fields, priority=400)
    app.connect("autodoc-process-signature", _signature)
    app.connect("autodoc-skip-member", _skip)
    app.connect("doctree-read", _name_public)
    app.connect("missing-reference", _resolve)
    app.connect("env-check-consistency", _check_all_documented)
    return {"parallel_read_safe": False}
