"""Metrics in Prometheus' text format 0.0.4: counters, gauges, histograms of durations, and those of every server.

Names begin with `hazemap_`.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
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


CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def series(name: str, kind: str, about: str, rows: Iterable[tuple[str, float]]) -> list[str]:
    """One counter or gauge; each row has its `labels`.

    >>> series("polls_total", "counter", "Polls.", [(labels(device="new"), 2)])[-1]
    'hazemap_polls_total{device="new"} 2'
    """
    head = [f"# HELP hazemap_{name} {about}", f"# TYPE hazemap_{name} {kind}"]
    return [*head, *(f"hazemap_{name}{own} {value:{'g' if value < 1e6 else '.0f'}}" for own, value in rows)]


_SAMPLE = re.compile(r"hazemap_([a-z0-9_]{1,80})(?:\{([^{}\n]{0,500})\})? ([0-9.e+-]{1,40})")
_LABEL = re.compile(r'([a-z_]{1,40})="([^"\\]{0,200})"')


def samples(text: str) -> list[tuple[str, dict[str, str], float]]:
    """The samples of such a text: their names, labels and numbers; other lines, and what is no number, are left out.

    >>> samples('hazemap_batches_total{task="abc"} 2')
    [('batches_total', {'task': 'abc'}, 2.0)]
    """
    found = []
    for line in text.splitlines():
        if sample := _SAMPLE.fullmatch(line):
            try:
                found.append((sample[1], dict(_LABEL.findall(sample[2] or "")), float(sample[3])))
            except ValueError:
                continue
    return found


def histograms(name: str, about: str, rows: Iterable[tuple[Mapping[str, str], DurationHistogram]]) -> list[str]:
    """Histograms of one name, each with its labels."""
    lines = series(name, "histogram", about, [])
    for own, times in rows:
        below = 0
        for bound, number in zip((*times.bounds, float("inf")), list(times.buckets), strict=True):
            below += number
            end = f"{bound:g}".replace("inf", "+Inf")
            lines.append(f"hazemap_{name}_bucket{labels(**own, le=end)} {below}")
        lines += [f"hazemap_{name}_sum{labels(**own)} {times.total:g}", f"hazemap_{name}_count{labels(**own)} {below}"]
    return lines


def labels(**named: str) -> str:
    """Labels in braces, or nothing for none; their values are ours, and plain words."""
    return "{" + ",".join(f'{name}="{value}"' for name, value in named.items()) + "}" if named else ""


@dataclass(eq=False)
class ServerMetrics:
    """Connections, bytes, requests by resource, who asked and status, and what a limit turned away.

    >>> metrics = ServerMetrics()
    >>> metrics.rejected["headers"] += 1
    >>> print(metrics.written([], DurationHistogram()).splitlines()[-1])
    hazemap_store_commit_seconds_count 0
    """

    connections: int = 0
    received: int = 0
    sent: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    requests: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    """who asked is empty where a server knows no names"""

    def written(self, own: list[str], commits: DurationHistogram) -> str:
        """Everything in the text format 0.0.4, with a server's own lines and the seconds of its store's commits."""
        lines = series("connections_open", "gauge", "Connections that are open.", [("", self.connections)])
        moved = [(labels(direction="in"), self.received), (labels(direction="out"), self.sent)]
        lines += series("bytes_total", "counter", "Bytes of requests and of answers' contents.", moved)
        turned = [(labels(limit=limit), number) for limit, number in sorted(self.rejected.items())]
        lines += series("rejected_total", "counter", "Requests and connections that a limit turned away.", turned)
        answered = [
            (labels(resource=resource, **({"who": who} if who else {}), status=str(status)), number)
            for (resource, who, status), number in sorted(self.requests.items())
        ]
        lines += series("requests_total", "counter", "Requests that were answered.", answered)
        return (
            "\n".join([*lines, *own, *histograms("store_commit_seconds", "Seconds of a commit.", [({}, commits)])])
            + "\n"
        )
