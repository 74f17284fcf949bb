"""Generates ``hoplake/_sync`` from ``hoplake/_async``, or checks that it is up to date: ``python generate_sync.py [--check]``."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import unasync

HERE = Path(__file__).parent / "hoplake"
REPLACEMENTS = {
    "_async": "_sync",
    "wait_async": "wait_sync",
    "AsyncIterator": "Iterator",
    "aclose": "close",
}
HEAD = "# Generated from hoplake/_async by generate_sync.py: change it there.\n"


def generated() -> dict[str, str]:
    """The text of each file."""
    with tempfile.TemporaryDirectory() as folder:
        rule = unasync.Rule("/hoplake/_async/", "/hoplake/_sync/", additional_replacements=REPLACEMENTS)
        source = Path(folder) / "hoplake/_async"
        source.mkdir(parents=True)
        for file in sorted((HERE / "_async").glob("*.py")):
            (source / file.name).write_text(file.read_text())
        unasync.unasync_files([str(file) for file in sorted(source.glob("*.py"))], [rule])
        texts = {file.name: file.read_text() for file in sorted((Path(folder) / "hoplake/_sync").glob("*.py"))}
    texts = {name: HEAD + tidy(text) for name, text in texts.items()}
    texts["__init__.py"] = HEAD
    return texts


def tidy(text: str) -> str:
    """Removes a name that is imported twice after the replacement."""
    text = text.replace("wait_sync, wait_sync", "wait_sync")
    return text.replace("from collections.abc import Iterator, Iterator, Sequence\n", "from collections.abc import Iterator, Sequence\n")


def main() -> int:
    target = HERE / "_sync"
    texts = generated()
    if "--check" in sys.argv:
        stale = [name for name, text in texts.items() if not (target / name).exists() or (target / name).read_text() != text]
        stale += [file.name for file in target.glob("*.py") if file.name not in texts]
        for name in stale:
            print(f"hoplake/_sync/{name} is not what python/generate_sync.py makes of hoplake/_async", file=sys.stderr)
        return 1 if stale else 0
    target.mkdir(exist_ok=True)
    for name, text in texts.items():
        (target / name).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
