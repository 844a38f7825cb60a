"""How long things took, in a few buckets."""

from bisect import bisect_left
from dataclasses import dataclass, field

SECONDS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)


@dataclass(eq=False)
class DurationHistogram:
    """How often something took how long, in buckets of seconds that end at `bounds`. One thread writes.

    >>> times = DurationHistogram()
    >>> times.observe(0.002)
    >>> times.count, times.buckets[:2]
    (1, [0, 1])
    """

    bounds: tuple[float, ...] = SECONDS
    buckets: list[int] = field(init=False)
    total: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self.buckets = [0] * (len(self.bounds) + 1)

    def observe(self, seconds: float) -> None:
        """One more."""
        self.buckets[bisect_left(self.bounds, seconds)] += 1
        self.total += seconds

    @property
    def count(self) -> int:
        """How many."""
        return sum(self.buckets)
