"""Numbers for Prometheus: counters and histograms in memory, written in its text format 0.0.4.

No label names a person, a device, a campaign or an address: reasons are sorted into a few classes first.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hazemap.federated.service.prometheus_text import DurationHistogram, ServerMetrics, labels, series

_REFUSED = (
    ("budget", ("budget", "spent", "costs", "ε")),
    ("people", ("people", "clients", "survive", "invited", "corrupt", "drop")),
    ("purpose", ("purpose", "does not answer", "campaign")),
    ("cells", ("cell", "fine", "number", "area")),
)
_LOST = (
    ("too_few", ("too few", "only", "fewer", "takes", "survive", "within")),
    ("stopped", ("stopped",)),
    ("bug", ("bug in hazemap",)),
    ("cheating", ("lied", "wrong", "does not")),
)


def refusal_class(reason: str) -> str:
    """What a device's refusal is about; its own words are on the campaign's status alone.

    >>> refusal_class("the budget of this month is spent"), refusal_class("anna says no")
    ('budget', 'other')
    """
    return _sorted(reason, _REFUSED)


def loss_class(reason: str) -> str:
    """Why a secure sum was not opened.

    >>> loss_class("a bug in hazemap; see the server's log")
    'bug'
    """
    return _sorted(reason, _LOST)


def _sorted(reason: str, classes: Iterable[tuple[str, tuple[str, ...]]]) -> str:
    lower = reason.lower()
    return next((name for name, words in classes if any(word in lower for word in words)), "other")


@dataclass(eq=False)
class Metrics(ServerMetrics):
    """What the server counts of itself since it was started.

    >>> metrics = Metrics()
    >>> metrics.summed(False, "too few answered", {})
    >>> metrics.sums
    Counter({('lost', 'too_few'): 1})
    """

    polls: int = 0
    enrolments: Counter[str] = field(default_factory=Counter)
    sums: Counter[tuple[str, str]] = field(default_factory=Counter)
    study_rounds: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)

    def summed(self, opened: bool, reason: str, refusals: Mapping[str, int]) -> None:
        """A secure sum is over."""
        self.sums["opened" if opened else "lost", "" if opened else loss_class(reason)] += 1
        for words, number in refusals.items():
            self.refusals[refusal_class(words)] += number

    def text(self, gauges: Mapping[str, tuple[str, float]], commits: DurationHistogram) -> str:
        """Everything in the text format 0.0.4; `gauges` are names with their help and value."""
        lines: list[str] = []
        for name, (about, value) in gauges.items():
            lines += series(name, "gauge", about, [("", value)])
        lines += series("polls_total", "counter", "Times that a device asked for work.", [("", self.polls)])
        sums = [(labels(outcome=outcome, reason=why), n) for (outcome, why), n in sorted(self.sums.items())]
        lines += series("sums_total", "counter", "Secure sums that are over.", sums)
        for name, about, label, counter in (
            ("enrolments_total", "Attempts to enrol a device.", "outcome", self.enrolments),
            ("study_rounds_total", "Rounds of studies that are over.", "outcome", self.study_rounds),
            ("refusals_total", "Refusals of devices, by what they are about.", "reason", self.refusals),
        ):
            rows = [(labels(**{label: key}), number) for key, number in sorted(counter.items())]
            lines += series(name, "counter", about, rows)
        return self.written(lines, commits)
