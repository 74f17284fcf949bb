"""Sphinx extension: notebooks as pages, with the outputs that are stored in them.

A notebook becomes Markdown. The extensions that do this for all notebooks bring Jupyter, some fifty packages, to run what this one has stored.
"""

from __future__ import annotations

import json
from typing import Any

from myst_parser.sphinx_ import Parser
from sphinx.application import Sphinx


def _text(value: str | list[str]) -> str:
    return value if isinstance(value, str) else "".join(value)


def _fenced(kind: str, text: str) -> str:
    return f"````{kind}\n{text.rstrip()}\n````"


def _output(output: dict[str, Any]) -> str:
    """The richest form of an output that a page can have."""
    if output["output_type"] == "stream":
        return _fenced("text", _text(output["text"]))
    if output["output_type"] == "error":
        raise ValueError(f"a cell failed with {output['ename']}: {output['evalue']}")
    data = {kind: _text(value) for kind, value in output["data"].items()}
    if "image/png" in data:
        return f"![A picture that this cell draws](data:image/png;base64,{data['image/png'].strip()})"
    if "text/html" in data:
        return _fenced("{raw} html", f'<div class="output">{data["text/html"]}</div>')
    return _fenced("text", data["text/plain"])


def markdown(notebook: dict[str, Any]) -> str:
    """The text of a page."""
    parts: list[str] = []
    for cell in notebook["cells"]:
        source = _text(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
        else:
            parts.append(_fenced("python", source))
            parts.extend(_output(output) for output in cell["outputs"])
    return "\n\n".join(parts) + "\n"


class NotebookParser(Parser):
    """Reads a notebook as Markdown."""

    supported = ("notebook",)

    def parse(self, inputstring: str, document: Any) -> None:
        super().parse(markdown(json.loads(inputstring)), document)


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_source_suffix(".ipynb", "notebook")
    app.add_source_parser(NotebookParser)
    return {"parallel_read_safe": True}
