"""A shuffler's numbers for Prometheus: what it counts while it runs, and how its batches stand.

No label names a person, an address or a batch: analysers are named as their operator has named them.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from hazemap.protocols.shuffle.batch_terms import BatchTerms
from hazemap.service.prometheus_text import histograms, labels, series
from hazemap.service.store import Store

_STATES: Final = ("open", "permuted", "forgotten")


@dataclass(eq=False)
class ShufflerMetrics:
    """What a shuffler counts of itself since it was started; `expired` are batches that nobody collected in time.

    >>> metrics = ShufflerMetrics()
    >>> metrics.requests["messages", "people", 204] += 1
    """

    connections: int = 0
    received: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    requests: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    """by the resource, who asked, and the status"""
    expired: int = 0

    def text(self, store: Store) -> str:
        """Everything in the text format 0.0.4. O(batches)."""
        lines = series("connections_open", "gauge", "Connections that are open.", [("", self.connections)])
        lines += series("received_bytes_total", "counter", "Bytes of requests.", [("", self.received)])
        turned = [(labels(limit=limit), number) for limit, number in sorted(self.rejected.items())]
        lines += series("rejected_total", "counter", "Requests and connections that a limit turned away.", turned)
        asked = [
            (labels(resource=resource, who=who, status=str(status)), number)
            for (resource, who, status), number in sorted(self.requests.items())
        ]
        lines += series("requests_total", "counter", "Requests that were answered.", asked)
        lines += series("batches_expired_total", "counter", "Batches that nobody collected.", [("", self.expired)])
        lines += _stored(store)
        commits = histograms("store_commit_seconds", "Seconds of a commit.", [({}, store.commit_seconds)])
        return "\n".join([*lines, *commits]) + "\n"


def _stored(store: Store) -> list[str]:
    """What the store has of each analyser's batches."""
    batches, people, promised = Counter[tuple[str, str]](), Counter[str](), Counter[str]()
    for analyser, state, came, terms in store.read("SELECT analyser, state, people, terms FROM batches"):
        batches[analyser, state] += 1
        if state == "open":
            people[analyser] += came
        if state != "forgotten":
            promised[analyser] += BatchTerms.from_bytes(bytes(terms)).most_bytes
    known = sorted({analyser for analyser, _ in batches})
    rows = [(labels(analyser=each, state=state), batches[each, state]) for each in known for state in _STATES]
    lines = series("batches", "gauge", "Batches, by how they stand.", rows)
    each_one = [(labels(analyser=each), people[each]) for each in known]
    lines += series("people_waiting", "gauge", "People whose messages are in open batches.", each_one)
    held = [(labels(analyser=each), promised[each]) for each in known]
    return lines + series("promised_bytes", "gauge", "Bytes that batches may need, at most.", held)
