"""Runs an audit, from its trials to its report."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hazemap.errors import InputError
from hazemap.lab.audit.evidence.noise_independence import Copies
from hazemap.lab.audit.findings import AuditFinding, Test, judge
from hazemap.lab.audit.subprocess_runs import RunOrder, RunOutcome, SubprocessRuns
from hazemap.lab.audit.trial_types import AuditTrial

Progress = Callable[[str, float | None], None]


@dataclass(frozen=True)
class Report:
    """All that was looked at, at a confidence that holds for all of it together.

    `published` is how many runs ended in answers and not in an error; `silent` are the settings of which none did.
    """

    findings: tuple[AuditFinding, ...]
    confidence: float
    releases: int
    seconds: float
    plant: str | None = None
    published: int | None = None
    silent: tuple[str, ...] = ()

    @property
    def nothing(self) -> bool:
        """Whether every run was refused or failed, so that nothing was there to be audited."""
        return self.published == 0

    @property
    def broken(self) -> tuple[AuditFinding, ...]:
        """What does not hold."""
        return tuple(finding for finding in self.findings if finding.broken)

    def to_json(self) -> dict[str, Any]:
        """As JSON values: every finding, also those of nothing."""
        return {
            "planted": self.plant,
            "confidence": self.confidence,
            "releases": self.releases,
            "published": self.published,
            "published nothing": list(self.silent),
            "seconds": round(self.seconds, 1),
            "looked at": len(self.findings),
            "broken": len(self.broken),
            "findings": [finding.to_json() for finding in self.findings],
        }


def audit(
    trials: Sequence[AuditTrial],
    confidence: float = 0.95,
    plant: str | None = None,
    processes: int = 1,
    progress: Progress | None = None,
) -> Report:
    """Run all trials, in processes of their own, and judge what the public saw of them.

    With probability `confidence` or more nothing sound is called broken, whichever and however many the trials are.
    `plant` names a sabotage that the runs take place under (`audit.planted_faults`); what judges them is never
    sabotaged.
    """
    if not 0.5 <= confidence < 1:
        raise InputError(f"a confidence lies from 0.5 to below 1, not at {confidence}")
    say = progress or (lambda _what, _part: None)
    begun = time.monotonic()
    tests: list[Test] = []
    orders = [trial.orders() for trial in trials]
    runs = sum(order.runs for each in orders for order in each)
    published, copies = dict[str, int](), Copies()
    done, doubtful = 0, list[tuple[AuditTrial, list[RunOutcome], list[RunOrder]]]()
    with SubprocessRuns(plant, processes) as laboratory:
        outcomes = laboratory.run([order for each in orders for order in each])
        for trial, own in zip(trials, orders, strict=True):
            say(str(trial.setting), done / max(runs, 1))
            seen = [next(outcomes) for _ in own]
            done += sum(order.runs for order in own)
            for each in seen if trial.noisy else ():
                copies.add(each.observations)
            name = str(trial.setting)
            published[name] = published.get(name, 0) + sum(not each.error for one in seen for each in one.observations)
            more = trial.again(seen)
            if more:
                doubtful.append((trial, seen, more))
            else:
                tests += trial.tests(seen, ())
        say("confirming", 1.0)
        for trial, seen, more in doubtful:
            tests += trial.tests(seen, list(laboratory.run(more)))
            runs += sum(order.runs for order in more)
    tests += copies.tests()
    findings, seconds = tuple(judge(tests, confidence)), time.monotonic() - begun
    silent = tuple(name for name, count in published.items() if not count)
    return Report(findings, confidence, runs, seconds, plant, sum(published.values()), silent)
