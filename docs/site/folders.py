"""Sphinx extension: links to folders, which GitHub lists, lead to the pages that list them here."""

from __future__ import annotations

from pathlib import PurePosixPath

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx

PAGES = {"docs/rfcs": "docs/site/rfcs"}


def _lead_to_page(app: Sphinx, doctree: nodes.document) -> None:
    for node in doctree.findall(pending_xref):
        folder = PurePosixPath(app.env.docname).parent / node["reftarget"]
        if node["reftype"] == "myst" and (page := PAGES.get(str(folder))):
            node["refdomain"], node["reftarget"], node["reftargetid"] = "doc", page, None


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("doctree-read", _lead_to_page)
    return {"parallel_read_safe": True}
