"""What every server counts of itself since it was started, and how it says so to Prometheus."""

from collections import Counter
from dataclasses import dataclass, field

from hazemap.federated.service.duration_histogram import DurationHistogram
from hazemap.federated.service.prometheus_text import histograms, labels, series


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
