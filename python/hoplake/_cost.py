"""Costs of calls."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Cost:
    """What a call cost at the store.

    Attributes:
        waves: successive round trips; requests in parallel count once.
        requests: read requests, including retries.
        bytes: bytes read from the store.
        writes: requests that write or list.
        written_bytes: bytes written to the store.
        background_requests: reads that the call started in the background without waiting for them.
        background_bytes: bytes read in the background.
        dollars: US dollars for all of it, at the store's prices.
        seconds: how long the call took.
    """

    waves: int = 0
    requests: int = 0
    bytes: int = 0
    writes: int = 0
    written_bytes: int = 0
    background_requests: int = 0
    background_bytes: int = 0
    dollars: float = 0.0
    seconds: float = 0.0

    def __str__(self) -> str:
        return f"{self.waves} waves, {self.requests} requests, {self.bytes:,} bytes, ${self.dollars:.6f}, {self.seconds:.3f} s"
