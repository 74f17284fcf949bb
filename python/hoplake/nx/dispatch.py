"""Which functions there are, and which calls of them networkx is to compute itself: it asks ``can_run`` before it calls one."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from .graph import Graph

#: The functions of the backend by name, in the form in which networkx calls them.
IMPLEMENTED: dict[str, Callable[..., Any]] = {}
_SIGNATURES: dict[str, inspect.Signature] = {}
_RULES: dict[str, tuple[Rule, ...]] = {}

_F = TypeVar("_F", bound=Callable[..., Any])


class Call:
    """A call of a function: its arguments by name, those that were left out with their defaults."""

    def __init__(self, arguments: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
        self.graph = arguments["G"]
        self._arguments = arguments
        self._defaults = defaults

    def __getitem__(self, name: str) -> Any:
        return self._arguments[name]

    def is_default(self, name: str) -> bool:
        """Whether an argument has its default."""
        return _is_same(self._arguments[name], self._defaults[name])


#: Why networkx is to compute a call itself, or None. Graphs of calls are those of networkx before they are converted.
Rule = Callable[[Call], "str | None"]


def backed(*rules: Rule) -> Callable[[_F], _F]:
    """A function of the backend, and rules of which calls it does not compute. It may be called with arguments of a newer networkx at their defaults."""

    def add(function: _F) -> _F:
        name = function.__name__
        _SIGNATURES[name] = inspect.signature(function)
        _RULES[name] = rules

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            known, reason = _known(name, kwargs)
            if reason is not None:
                raise NotImplementedError(f"{name} is not computed by Hoplake with these arguments: {reason}")
            return function(*args, **known)

        IMPLEMENTED[name] = call
        return function

    return add


def can_run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | str:
    """Whether a function gives networkx's results for these arguments, or why not."""
    if name not in IMPLEMENTED:
        return f"{name} is not computed by Hoplake"
    known, reason = _known(name, kwargs)
    if reason is not None:
        return reason
    signature = _SIGNATURES[name]
    try:
        bound = signature.bind(*args, **known)
    except TypeError as error:
        return str(error)
    bound.apply_defaults()
    graph = bound.arguments["G"]
    if len(graph) == 0 or graph.number_of_edges() == 0:
        return "a graph without nodes or edges is answered by networkx"
    call = Call(bound.arguments, {it.name: it.default for it in signature.parameters.values()})
    for rule in _RULES[name]:
        reason = rule(call)
        if reason is not None:
            return reason
    return True


def should_run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | str:
    """Whether a conversion pays off."""
    graph = args[0] if args else kwargs.get("G")
    if isinstance(graph, Graph) or graph is None:
        return True
    return True if graph.number_of_edges() >= 100_000 else "the graph is small, and networkx has it in memory"


def _known(name: str, kwargs: dict[str, Any]) -> tuple[dict[str, Any], str | None]:
    """Arguments that the backend knows, and why others cannot be left out: networkx passes those of newer versions, too, with their defaults."""
    known = _SIGNATURES[name].parameters
    unknown = kwargs.keys() - known.keys()
    if unknown:
        import networkx

        function = getattr(networkx, name, None) or getattr(networkx.community, name, None)
        parameters: Mapping[str, inspect.Parameter] = {} if function is None else inspect.signature(function).parameters
        for argument in sorted(unknown):
            default = parameters[argument].default if argument in parameters else inspect.Parameter.empty
            if not _is_same(kwargs[argument], default):
                return kwargs, f"it does not know the argument {argument}"
    return {argument: value for argument, value in kwargs.items() if argument in known}, None


def _is_same(value: Any, default: Any) -> bool:
    return value is default or (isinstance(value, (str, int, float)) and bool(value == default))


# Rules


def only_defaults(*names: str) -> Rule:
    """Arguments that must have their defaults."""

    def rule(call: Call) -> str | None:
        changed = [name for name in names if not call.is_default(name)]
        return f"it computes with the default of {' and '.join(changed)}" if changed else None

    return rule


def directed(call: Call) -> str | None:
    """For directed graphs alone."""
    return None if call.graph.is_directed() else "the graph has no directions"


def undirected(call: Call) -> str | None:
    """For graphs without directions alone."""
    return "directions of edges count in networkx" if call.graph.is_directed() else None


def no_self_loops(call: Call) -> str | None:
    """Edges from a node to itself count otherwise in networkx."""
    G = call.graph
    has_some = G.has_self_loops() if isinstance(G, Graph) else any(node in G[node] for node in G)
    return "edges from a node to itself count otherwise" if has_some else None


def no_self_loops_undirected(call: Call) -> str | None:
    """The same, of graphs without directions."""
    return None if call.graph.is_directed() else no_self_loops(call)


def no_parallel_edges(call: Call) -> str | None:
    """Parallel edges count otherwise in networkx, or it raises an exception. Of a stored graph, its edges are looked at."""
    G = call.graph
    is_stored = isinstance(G, Graph) and not G.is_converted
    has_some = G.has_parallel_edges() if is_stored else G.is_multigraph()
    return "parallel edges count otherwise" if has_some else None


def weights(name: str, *, is_scanned: bool = False) -> Rule:
    """Weights are numbers, 0 or more, and properties of all edges or of none. Scanned edges without one weigh 1."""

    def rule(call: Call) -> str | None:
        G, weight = call.graph, call[name]
        if weight is None:
            return None
        if callable(weight):
            return "a weight is a property"
        if isinstance(G, Graph):
            return G.why_not_weight(weight, is_scanned=is_scanned)
        for _, _, value in G.edges(data=weight, default=1):
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                return "a weight is a number"
            if value < 0 or math.isnan(value):
                return "a weight is 0 or more"
        return None

    return rule
