"""Sphinx extension: the colours of blocks of ``console``, as ``crates/hoplake-cli/tests/cli/documents`` reads them.

A line that begins with ``$ `` is a command, which goes on until its quotes and pipes end; other lines are what it prints. Pygments ends a command
with its line.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pygments.lexer import Lexer
from pygments.lexers.shell import BashLexer
from pygments.token import Generic
from sphinx.application import Sphinx


def _is_complete(command: str) -> bool:
    quote = ""
    escaped = False
    for character in command:
        if escaped:
            escaped = False
        elif character == "\\" and quote != "'":
            escaped = True
        elif quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
    return not quote and not command.rstrip().endswith(("|", "\\", "&&"))


class ConsoleLexer(Lexer):
    """Commands with their prompts, and their output."""

    name = "Console"
    aliases = ["console"]

    def get_tokens_unprocessed(self, text: str) -> Iterator[tuple[int, Any, str]]:
        shell = BashLexer(**self.options)
        lines = text.splitlines(keepends=True)
        at = 0
        while lines:
            line = lines.pop(0)
            if not line.startswith("$ "):
                yield at, Generic.Output, line
                at += len(line)
                continue
            yield at, Generic.Prompt, "$ "
            at += 2
            command = line[2:]
            while lines and not _is_complete(command):
                command += lines.pop(0)
            for offset, token, value in shell.get_tokens_unprocessed(command):
                yield at + offset, token, value
            at += len(command)


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_lexer("console", ConsoleLexer)
    return {"parallel_read_safe": True}
