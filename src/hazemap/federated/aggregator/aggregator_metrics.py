"""An aggregator's numbers for Prometheus: what it counts while it runs, and what its store has counted since it began.

No label names a person or an address. A task is named by the first letters of its id, as in the log.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from hazemap.federated.protocols.dap.aggregator_task import AggregatorTask
from hazemap.federated.protocols.dap.resource_paths import id_text
from hazemap.federated.service.duration_histogram import DurationHistogram
from hazemap.federated.service.prometheus_text import histograms, labels, series
from hazemap.federated.service.server_metrics import ServerMetrics
from hazemap.federated.service.store import Store

_STORED: Final = (
    ("reports_waiting", "gauge", "Reports that were taken and are not in a sum yet.", "reports WHERE body IS NOT NULL"),
    ("jobs_open", "gauge", "Aggregation jobs that are under way.", "jobs WHERE request IS NOT NULL"),
    ("batches_total", "counter", "Batches that were closed, once a level.", "collected"),
)


@dataclass(eq=False)
class AggregatorMetrics(ServerMetrics):
    """What an aggregator counts of itself since it was started.

    >>> metrics = AggregatorMetrics()
    >>> metrics.requests["reports", "", 200] += 1
    """

    def text(self, store: Store, ages: Mapping[bytes, DurationHistogram], tasks: Iterable[AggregatorTask]) -> str:
        """Everything in the text format 0.0.4; `ages` are of the reports of each task. O(tasks), and an index."""
        known = [({"task": _name(task)}, times) for task, times in ages.items()]
        old = histograms("report_age_seconds", "Our clock less a report's time, rounded down as tasks say.", known)
        return self.written([*_stored(store), *_admitted(tasks), *old], store.commit_seconds)


def _admitted(tasks: Iterable[AggregatorTask]) -> list[str]:
    """Who may report to each task that is served: whoever shows an issuer's credential, or anybody."""
    rows = []
    for each in tasks:
        admission, name = each.task.admission, _name(each.task.id)
        issuer = "none" if admission is None else admission.issuer.hex()[:16]
        most = (each.open_reports or 0) if admission is None else admission.reports
        rows.append((labels(task=name, issuer=issuer), most))
    about = "Reports that are taken at most; without an issuer, from whoever sends them."
    return series("reports_admitted", "gauge", about, rows)


def _stored(store: Store) -> list[str]:
    """What the store has of each task."""
    names = {number: _name(bytes(task)) for number, task in store.read("SELECT task, id FROM tasks")}
    lines: list[str] = []
    for name, kind, about, what in _STORED:
        found = store.read(f"SELECT task, count(*) FROM {what} GROUP BY task ORDER BY task")  # noqa: S608 - ours
        lines += series(name, kind, about, [(labels(task=names[task]), number) for task, number in found])
    counted = store.read("SELECT task, sum(count) FROM shards GROUP BY task ORDER BY task")
    rows = [(labels(task=names[task]), int(number)) for task, number in counted]
    lines += series("reports_counted_total", "counter", "Reports that are in a sum, once a level.", rows)
    refused = store.read("SELECT task, reason, number FROM rejections ORDER BY task, reason")
    rows = [(labels(task=names[task], reason=reason), number) for task, reason, number in refused]
    return lines + series("reports_rejected_total", "counter", "Reports that were not taken.", rows)


def _name(task: bytes) -> str:
    return id_text(task)[:8]
