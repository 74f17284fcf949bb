"""Random graphs with widely different degrees, from a seed: a Kronecker generator with Graph500's initiator."""

from __future__ import annotations

from typing import Any

import numpy as np


def kronecker(scale: int, seed: int = 42) -> Any:
    """The ends of 8 edges for each of 2**scale vertices, as two rows; they are drawn bit by bit."""
    random = np.random.default_rng(seed)
    count = 8 << scale
    ends = np.zeros((2, count), np.int64)
    for bit in range(scale):
        quarter = random.choice(4, count, p=[0.57, 0.19, 0.19, 0.05])
        ends[0] += (quarter >> 1) << bit
        ends[1] += (quarter & 1) << bit
    # So that the widest lists are not next to each other.
    return random.permutation(1 << scale)[ends]
