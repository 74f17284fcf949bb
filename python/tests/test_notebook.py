"""The notebook of the examples runs from its first cell to its last."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
SAMPLE = EXAMPLES.parent.parent / "samples" / "air-routes"


def _source() -> Any:
    spec = importlib.util.spec_from_file_location("make_notebook", EXAMPLES / "make_notebook.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _kinds(document: Any) -> list[list[str]]:
    """What kinds of output each cell has."""
    return [[output["output_type"] for output in cell.get("outputs", [])] for cell in document.cells]


def test_the_notebook_is_what_its_source_makes() -> None:
    source = _source()
    assert source.without_outputs(json.loads((EXAMPLES / "airports.ipynb").read_text())) == source.notebook()


def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat: Any = pytest.importorskip("nbformat")
    client: Any = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    pytest.importorskip("matplotlib")
    monkeypatch.setenv("BUCKET", str(tmp_path))
    monkeypatch.setenv("SAMPLE", str(SAMPLE))
    document = nbformat.read(EXAMPLES / "airports.ipynb", as_version=4)
    stored = _kinds(document)
    client.NotebookClient(document, timeout=120, kernel_name="python3").execute()
    # Those that readers see are of this source, apart from times and what libraries print in their own way.
    assert _kinds(document) == stored, "run python/examples/make_notebook.py"
    outputs = [output for cell in document.cells for output in cell.get("outputs", [])]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert any("3,504 airports" in output.get("text", "") for output in outputs)
    assert any("<table" in output.get("data", {}).get("text/html", "") for output in outputs)
