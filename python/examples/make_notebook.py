"""Writes ``airports.ipynb``, with its outputs: ``python make_notebook.py``. A notebook is JSON, which is no way to write text; this is its source.

It runs the cells, for which it needs the package and what its tests use. GitHub and the documentation site show the outputs as they are stored.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent

CELLS: list[tuple[str, str]] = [
    (
        "markdown",
        """# From Parquet in a bucket to ranks, communities and a picture

The airports of the world and the routes between them. `BUCKET` is a folder here; `s3://bucket/prefix`, `gs://` and `az://` work alike,
with the credentials of the environment.""",
    ),
    (
        "code",
        """import os, tempfile
from pathlib import Path

import hoplake
import pyarrow.parquet as parquet

BUCKET = os.environ.get("BUCKET") or tempfile.mkdtemp()
SAMPLE = Path(os.environ.get("SAMPLE", "../../samples/air-routes"))""",
    ),
    (
        "markdown",
        """First some Parquet files: the sample that comes with Hoplake, loaded and exported. With files of your own, begin with the next cell.""",
    ),
    (
        "code",
        """hoplake.load(f"{BUCKET}/sample", SAMPLE)
hoplake.open(f"{BUCKET}/sample").export(f"{BUCKET}/files")
sorted(path.name for path in Path(f"{BUCKET}/files").rglob("*.parquet"))""",
    ),
    (
        "markdown",
        """## A graph from tables

A table of vertices for each label, and a table of edges for each triple of labels. The columns `key`, `source` and `target` say who is who; all
others become properties. Anything that speaks Arrow is a table: pandas, polars, DuckDB, or a dict of lists.""",
    ),
    (
        "code",
        """airports = hoplake.open(f"{BUCKET}/sample").scan("airport", select=["code", "city", "country"]).to_arrow()
routes = hoplake.open(f"{BUCKET}/sample").scan_edges("route", select=["dist"]).to_arrow()

loaded = hoplake.load(
    f"{BUCKET}/airports",
    vertices={"airport": airports.select(["key", "code", "city", "country"])},
    edges={("airport", "route", "airport"): routes.select(["source", "target", "dist"])},
)
print(f"{loaded.vertices:,} airports, {loaded.edges:,} routes, {loaded.bytes:,} bytes")

graph = hoplake.open(f"{BUCKET}/airports")
graph""",
    ),
    (
        "markdown",
        """## Questions

Two hops take two round trips to the bucket, whatever the number of airports. Every result says what it cost.""",
    ),
    (
        "code",
        """two_hops = graph.traverse("airport[code = AUS]").out("route", where="dist < 500").out("route", where="dist < 500")
table = two_hops.rows("code", "city")
print(table.cost)
table.to_pandas().head()""",
    ),
    (
        "code",
        """path = graph.path("airport[code = AUS]", "airport[code = FNC]", "out:route", weight="dist", select="city")
" → ".join(vertex.properties["city"] for vertex in path.vertices), path.length""",
    ),
    (
        "markdown",
        """## Ranks""",
    ),
    (
        "code",
        """ranks = graph.run("pagerank", edges="out:route")
ranks.top(10, select=["code", "city"]).to_pandas()""",
    ),
    (
        "markdown",
        """## Communities

Leiden's algorithm finds groups of airports with many routes among them. Both results become properties, in two commits.""",
    ),
    (
        "code",
        """communities = graph.run("leiden")
communities.figures, communities.groups""",
    ),
    (
        "code",
        """ranks.write("rank")
graph.refresh()
graph.run("leiden").write("community")
graph.refresh()
frame = graph.scan("airport", select=["country", "rank", "community"]).to_pandas()
frame.groupby("community").agg(airports=("key", "size"), rank=("rank", "sum")).nlargest(5, "airports")""",
    ),
    (
        "markdown",
        """## A picture""",
    ),
    (
        "code",
        """graph.plot("airport[code = AUS]", "out:route[dist < 250]", depth=2, caption="code");""",
    ),
    (
        "markdown",
        """## What it cost""",
    ),
    (
        "code",
        """print(graph.cost)""",
    ),
]


def cell(number: int, kind: str, text: str) -> dict[str, object]:
    lines = text.splitlines(keepends=True)
    common: dict[str, object] = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": lines}
    return common if kind == "markdown" else {**common, "execution_count": None, "outputs": []}


def notebook() -> dict[str, Any]:
    """The notebook without outputs."""
    cells = [cell(number, kind, text) for number, (kind, text) in enumerate(CELLS)]
    metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def without_outputs(document: dict[str, Any]) -> dict[str, Any]:
    """A notebook as it was before it was run."""
    fresh: dict[str, Any] = {"execution_count": None, "outputs": []}
    cells = [{**it, **fresh} if it["cell_type"] == "code" else it for it in document["cells"]]
    return {**document, "cells": cells}


def executed(document: dict[str, Any]) -> dict[str, Any]:
    """The notebook with the outputs of its cells, run in a folder of its own, whose name they do not contain."""
    import nbclient
    import nbformat

    node: Any = nbformat.reads(json.dumps(document), as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(BUCKET="bucket", SAMPLE=str(HERE.parent.parent / "samples/air-routes"))
        client = nbclient.NotebookClient(
            node, kernel_name="python3", record_timing=False, resources={"metadata": {"path": folder}}
        )
        client.execute()
    for it, ran in zip(document["cells"], node.cells):
        if it["cell_type"] == "code":
            it["execution_count"], it["outputs"] = ran.execution_count, ran.outputs
    return document


if __name__ == "__main__":
    text = json.dumps(executed(notebook()), indent=1, ensure_ascii=False)
    (HERE / "airports.ipynb").write_text(text + "\n")
