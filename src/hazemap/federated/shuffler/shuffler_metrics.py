"""A shuffler's numbers for Prometheus: what it counts while it runs, and how its batches stand.

No label names a person, an address or a batch: analysers are named as their operator has named them.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Final

from hazemap.federated.protocols.shuffle.batch_terms import BatchTerms
from hazemap.federated.service.prometheus_text import labels, series
from hazemap.federated.service.server_metrics import ServerMetrics
from hazemap.federated.service.store import Store

_STATES: Final = ("open", "permuted", "forgotten")


@dataclass(eq=False)
class ShufflerMetrics(ServerMetrics):
    """What a shuffler counts of itself since it was started; `expired` are batches that nobody collected in time.

    >>> metrics = ShufflerMetrics()
    >>> metrics.requests["messages", "people", 204] += 1
    """

    expired: int = 0

    def text(self, store: Store) -> str:
        """Everything in the text format 0.0.4. O(batches)."""
        over = series("batches_expired_total", "counter", "Batches that nobody collected.", [("", self.expired)])
        return self.written([*over, *_stored(store)], store.commit_seconds)


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
