"""A fuzz target: public functions of the package with hostile arguments (docs/fuzzing.md).

The input says which functions are called, one after the other on one graph, and with what: the hostile values of ``tests/hostile_values.py``, values made of
the input, and combinations of both. An exception that the package does not document, a panic, a crash or a call that takes too long is a finding.

    PYTHONPATH=PACKAGE python python/fuzz/calls.py [-max_total_time=SECONDS] [-artifact_prefix=/FOLDER/] [CORPUS…]
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import atheris

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
with atheris.instrument_imports(include=["hoplake"]):
    import hoplake

    import hostile
    from hostile_values import VALUES

#: Calls of one input, at most: what one leaves behind, another finds.
CALLS_MAX = 6
#: Values within values, at most; `VALUES` has deeper ones.
DEPTH_MAX = 4
#: Inputs that use one graph. Its versions accumulate.
INPUTS_OF_A_PLACE = 500

#: Functions that take a second each, and one whose calls start threads.
LEFT_OUT = ("serve", "Server.", "Graph.plot", "aio.Graph.plot", "pickle.Server", "deepcopy.Server")

_WORDS = (
    "Person Person:1 knows name age since key source target out in both out:knows age>3 pagerank parquet csv keys locality g.V() x 1 op label "
    "upsert_vertex properties damping int64=1"
).split()


class Calls:
    """The functions, and the graph that they are called on."""

    def __init__(self) -> None:
        self.functions = [it for name, it in sorted(hostile.functions().items()) if not name.startswith(LEFT_OUT)]
        self.values = list(VALUES.items())
        self.inputs = 0
        self.places = 0
        self.place = hostile.Place(0)

    def run(self, data: bytes) -> None:
        self.inputs += 1
        if self.inputs % INPUTS_OF_A_PLACE == 0:
            self.renew()
        provider: Any = atheris.FuzzedDataProvider(data)
        for _ in range(provider.ConsumeIntInRange(1, CALLS_MAX)):
            function = self.functions[provider.ConsumeIntInRange(0, len(self.functions) - 1)]
            self.call(provider, function)
            if provider.remaining_bytes() == 0:
                return

    def renew(self) -> None:
        self.places += 1
        self.place = hostile.Place(self.places)

    def call(self, provider: Any, function: hostile.Function) -> None:
        """Calls a function, of whose arguments at least one is hostile."""
        names: list[str] = []
        try:
            positional, named = hostile.arguments(self.place, function, None, None)
        except hoplake.Error:
            # A vacuum before it removed the version.
            self.renew()
            return
        for parameter in function.parameters:
            if (function.name, parameter.name) in hostile.LEFT_OUT or not provider.ConsumeBool():
                continue
            name, value = self.value(provider, parameter.name)
            names.append(f"{parameter.name}={name}")
            if parameter.kind is parameter.VAR_POSITIONAL:
                positional.append(value)
            elif parameter.kind is parameter.VAR_KEYWORD:
                named[_WORDS[provider.ConsumeIntInRange(0, len(_WORDS) - 1)]] = value
            elif parameter.kind is not parameter.POSITIONAL_ONLY:
                named[parameter.name] = value
            elif len(positional) == 1 + function.parameters.index(parameter):
                positional.append(value)
        what = f"{function.name}({', '.join(names)})"
        if not all(map(hostile.is_called, [what, *(f"{function.name}({name}" for name in names)])):
            return
        wrong = hostile.call(self.place, function, positional, named, names)
        found = [f"{function.name}({name}): {wrong}" for name in names or [""]]
        if wrong is not None and not any(known.matches(it) for known in hostile.KNOWN for it in found):
            raise AssertionError(f"{what}: {wrong}")

    def value(self, provider: Any, parameter: str, depth: int = 0) -> tuple[str, Any]:
        """A value, and what it is called."""
        kind = provider.ConsumeIntInRange(0, 9)
        if kind >= 6 or depth >= DEPTH_MAX:
            name, make = self.values[provider.ConsumeIntInRange(0, len(self.values) - 1)]
            return name, make()
        if kind == 0:
            number = provider.ConsumeInt(provider.ConsumeIntInRange(1, 9))
            # Numbers of what is built or started: `VALUES` has the large ones.
            number = number % 64 if parameter in ("threads", "depth") else number
            return repr(number), number
        if kind == 1:
            text = provider.ConsumeUnicode(provider.ConsumeIntInRange(0, 20))
            return ascii(text), text
        if kind == 2:
            word = _WORDS[provider.ConsumeIntInRange(0, len(_WORDS) - 1)]
            return repr(word), word
        if kind == 3:
            number = provider.ConsumeFloat()
            return repr(number), number
        items = [self.value(provider, parameter, depth + 1) for _ in range(provider.ConsumeIntInRange(0, 3))]
        names, values = [name for name, _ in items], [value for _, value in items]
        if kind == 4:
            as_tuple = provider.ConsumeBool()
            return f"{'tuple' if as_tuple else 'list'} of {names}", tuple(values) if as_tuple else values
        keys = [_WORDS[provider.ConsumeIntInRange(0, len(_WORDS) - 1)] for _ in values]
        return f"dict of {dict(zip(keys, names))}", dict(zip(keys, values))


def _mutated(custom: random.Random, values: int) -> Callable[[bytes, int, int], bytes]:
    """Half of the inputs are new ones: coverage of the extension is not seen, and mutations alone would stay near what Python's code tells apart."""

    def mutate(data: bytes, size_max: int, seed: int) -> bytes:
        custom.seed(seed)
        if custom.randrange(2):
            return custom.randbytes(custom.randrange(8, values))[:size_max]
        return bytes(atheris.Mutate(data, size_max))

    return mutate


def main() -> None:
    # libFuzzer's own files are named from where it was started.
    arguments = [os.path.abspath(it) if os.path.exists(it) and not it.startswith("-") else it for it in sys.argv]
    for it in arguments:
        if it.startswith("-artifact_prefix="):
            os.makedirs(os.path.dirname(it.split("=", 1)[1]), exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        hostile.prepare()
        calls = Calls()
        # Of one input libFuzzer keeps 4 KiB at most; a call takes some dozens of bytes.
        atheris.Setup(arguments, calls.run, custom_mutator=_mutated(random.Random(), 400))
        # After libFuzzer, which has an alarm of its own.
        signal.signal(signal.SIGALRM, hostile.hung)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
