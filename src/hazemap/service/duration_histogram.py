"""How long things took, in a few buckets."""

from bisect import bisect_left
from dataclasses import dataclass, field

SECONDS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)


@dataclass(eq=False)
class Histogram:
    """How often something took how long, in buckets of seconds. One thread writes.

    >>> times = Histogram()
    >>> times.observe(0.002)
    >>> times.count, times.buckets[:2]
    (1, [0, 1])
    """

    buckets: list[int] = field(default_factory=lambda: [0] * (len(SECONDS) + 1))
    total: float = 0.0

    def observe(self, seconds: float) -> None:
        """One more."""
        self.buckets[bisect_left(SECONDS, seconds)] += 1
        self.total += seconds

    @property
    def count(self) -> int:
        """How many."""
        return sum(self.buckets)
