"""What results cost."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Cost:
    """What a call cost at its store.

    Attributes:
        waves: round trips that depend on each other; parallel requests count once.
        requests: requests that read, with retries.
        bytes: bytes read from the store.
        writes: requests that write or list.
        written_bytes: bytes written to the store.
        background_requests: reads in the background that the call caused and did not wait for.
        background_bytes: their bytes.
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
