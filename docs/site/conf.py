"""The documentation site: how Sphinx builds it.

Pages are the repository's Markdown where it is, so the root of the repository is Sphinx's folder of sources. ``./test site`` is the command.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT / "python")]

import package  # noqa: E402

project = "Hoplake"
author = "the Hoplake maintainers"
copyright = "the Hoplake maintainers, Apache License 2.0"
version = release = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "console", "docstrings", "notebook", "tables", "folders"]
root_doc = "docs/site/index"
include_patterns = [
    "*.md",
    "docs/*.md",
    "docs/rfcs/*.md",
    "docs/site/*.md",
    "docs/site/python/*.md",
    "python/README.md",
    "python/examples/*.ipynb",
]
# Folders that Sphinx would otherwise walk through.
exclude_patterns = ["target", "crates", "compare", "fuzz", "samples", "bench-data", ".git", "python/hoplake", "python/tests"]

# A link that leads nowhere is a warning, and a warning an error.
nitpicky = True
# Types of other packages: their documentation is not fetched.
nitpick_ignore_regex = [
    ("py:.*", r"(collections|datetime|matplotlib|networkx|numpy|os|pandas|polars|pyarrow|typing)\..*"),
    ("py:class", r"(bool|bytes|datetime|dict|float|int|list|object|set|str|timedelta|tuple|Any|Axes|Decimal|NxGraph|PathLike|date)"),
]

# The slugs that GitHub gives to headings.
myst_heading_anchors = 6

# The compiled extension is not needed: signatures and docstrings are in the sources.
autodoc_mock_imports = package.MISSING
autodoc_member_order = "bysource"
autodoc_inherit_docstrings = False
autodoc_typehints_format = "short"
autodoc_default_options = {"members": True, "undoc-members": True, "special-members": "__len__, __getitem__"}
add_module_names = False
python_maximum_signature_line_length = 100
napoleon_numpy_docstring = False

html_theme = "furo"
html_title = "Hoplake"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_additional_pages = {"index": "redirect.html"}
templates_path = ["templates"]
html_copy_source = False
html_show_sourcelink = False
# Everything that a page needs comes with it.
html_use_opensearch = ""
pygments_style = "friendly"
pygments_dark_style = "github-dark"
