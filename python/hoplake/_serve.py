"""Graphs as a service within this process."""

from __future__ import annotations

import json
from collections.abc import Mapping
from os import PathLike
from types import TracebackType

from . import _hoplake
from ._arguments import as_text, location, whole
from ._waiting import wait_sync


class Server:
    """A server that runs until it is stopped or the process ends.

    Attributes:
        http: the address of HTTP and of Gremlin's WebSocket.
        grpc: the address of gRPC.
    """

    def __init__(self, core: _hoplake.Server) -> None:
        self._core = core
        self.http = core.http
        self.grpc = core.grpc

    def stop(self) -> None:
        """Stops the server after it has answered the requests in flight."""
        wait_sync(self._core.stop())

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<hoplake.Server at {self.http}>"


def _toml(text: str) -> str:
    """A text of TOML: one of JSON, in which it has no surrogates and no delete character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def serve(
    graphs: Mapping[str, str | PathLike[str]] | str | PathLike[str],
    *,
    port: int = 0,
    grpc_port: int = 0,
    writable: bool = False,
    token: str | None = None,
) -> Server:
    """Serves graphs over HTTP, gRPC and Gremlin's WebSocket on the loopback interface, for notebooks and tests.

    >>> import hoplake
    >>> from urllib.request import urlopen
    >>> _ = hoplake.create("memory://docs/serve")
    >>> with hoplake.serve({"people": "memory://docs/serve"}) as server:
    ...     urlopen(server.http + "/healthz").status
    200

    Args:
        graphs: locations of graphs by name, or a folder of graphs.
        port: the port for HTTP; 0 takes a free one.
        grpc_port: the port for gRPC; 0 takes a free one.
        writable: whether clients may change the graphs.
        token: the bearer token that requests must send; none by default.
    """
    if isinstance(graphs, Mapping):
        sources = [f"{name}={location(url, 'a graph')}" for name, url in graphs.items()]
    else:
        sources = [location(graphs, "graphs")]
    ports = whole("port", port), whole("grpc_port", grpc_port)
    settings = [
        f"graphs = [{', '.join(map(_toml, sources))}]",
        f'http = "127.0.0.1:{ports[0]}"',
        f'grpc = "127.0.0.1:{ports[1]}"',
        f"writable = {str(bool(writable)).lower()}",
    ]
    if token is not None:
        settings.append(f"token = {_toml(as_text('token', token))}")
    return Server(_hoplake.serve("\n".join(settings)))
