"""How long a device leaves a server alone that does not answer, or asks to be left alone."""

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Backoff:
    """How long to leave a server alone after some failures in a row: doubling, up to `most`, with jitter.

    >>> 0.5 <= Backoff().wait(1) <= 1.5, 150 <= Backoff().wait(1_000) <= 450
    (True, True)
    """

    first: float = 1.0
    most: float = 300.0

    def wait(self, failures: int) -> float:
        """Seconds: half to one and a half of first · 2^(failures − 1)."""
        return jittered(min(self.most, self.first * 2.0 ** min(failures - 1, 32)))


def jittered(seconds: float) -> float:
    """Half to one and a half as long, so that devices that failed together do not come back together."""
    return seconds * (0.5 + int.from_bytes(os.urandom(2), "big") / 65_536)
