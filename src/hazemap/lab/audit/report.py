"""An audit: trials, evidence and findings in order, and the report of them."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

from hazemap.errors import InputError
from hazemap.lab.audit.evidence.noise_independence import Copies
from hazemap.lab.audit.findings import AuditFinding, Test, judge
from hazemap.lab.audit.subprocess_runs import RunOrder, RunOutcome, SubprocessRuns
from hazemap.lab.audit.trial_types import AuditTrial
from hazemap.lab.compare.report_page import html_page

Progress = Callable[[str, float | None], None]


@dataclass(frozen=True)
class AuditReport:
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
) -> AuditReport:
    """Run all trials, in processes of their own, and judge what the public saw of them.

    With probability `confidence` or more nothing sound is called broken, whichever and however many the trials are.
    `plant` names a sabotage that the runs take place under (`lab.audit.planted_faults`); what judges them is never
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
    return AuditReport(findings, confidence, runs, seconds, plant, sum(published.values()), silent)


LIMITS = (
    "A lower bound is what was proved of these tables by these runs. It is no upper bound: the proof is that.",
    "Neighbours are made by hand to be hard. A fault that shows on other tables only is not found.",
    "Whether the system's randomness is random: noise that is predictable to somebody and looks random is not found.",
    "What is not in the file or the ledger: time, memory, what is printed, what a process leaves on a disk.",
    "Events of a probability far below one in the number of runs; so large ε cannot be told from larger ones.",
)
"""What an audit cannot see."""


def markdown(report: AuditReport) -> str:
    """The page in Markdown: the verdict, bounds by setting, everything that is broken, limits."""
    return "\n".join([*_verdict(report), "", *_bounds(report), *_broken(report), *_silent(report), *_limits(), ""])


def html(report: AuditReport) -> str:
    """The same as one HTML file without anything from elsewhere."""
    return html_page(markdown(report), Path())


def verdict(report: AuditReport) -> str:
    """One sentence."""
    looked = f"{len(report.findings):,} things were looked at in {report.releases:,} runs"
    sure = f"at a confidence of {100 * report.confidence:g} % for all of them together"
    if report.broken:
        return f"{looked}: {len(report.broken):,} do not hold, {sure}"
    if report.nothing:
        return f"nothing could be audited: all {report.releases:,} runs were refused or failed, so nothing was released"
    return f"{looked}: no lower bound is above what is stated, and nothing else is broken, {sure}"


def bounds(report: AuditReport) -> dict[str, dict[str, float]]:
    """Of each setting the largest lower bound by kind of evidence, and what is stated."""
    found: dict[str, dict[str, float]] = {}
    for each in report.findings:
        if each.bound is not None:
            row = found.setdefault(each.about.partition(": ")[0], {"stated": each.stated})
            row[each.evidence] = max(row.get(each.evidence, 0.0), each.bound)
    return found


def _verdict(report: AuditReport) -> list[str]:
    planted = f" of a build with a planted fault, {report.plant}" if report.plant else ""
    return [f"# Audit{planted}", "", f"{verdict(report)}. It took {report.seconds:,.0f} seconds."]


def _bounds(report: AuditReport) -> list[str]:
    lines = ["## Lower bounds", "", "| setting | stated | largest lower bound | by |", "|---|---|---|---|"]
    for setting, row in bounds(report).items():
        evidence = max((name for name in row if name != "stated"), key=lambda name: row[name])
        lines.append(f"| {setting} | {row['stated']:.4g} | {shown(row[evidence])} | {evidence} |")
    return lines


def shown(bound: float) -> str:
    """A bound with three digits."""
    return "∞" if bound == inf else f"{bound:.3f}"


def _broken(report: AuditReport) -> list[str]:
    if not report.broken:
        return []
    listed = (f"* {each.evidence} ({each.about}): {told(each)}; {each.note}".rstrip("; ") for each in report.broken)
    return ["", "## What does not hold", "", *listed]


def _silent(report: AuditReport) -> list[str]:
    if not report.silent:
        return []
    return [
        "",
        "## What released nothing, so that nothing is known of it",
        "",
        *(f"* {each}" for each in report.silent),
    ]


def told(each: AuditFinding) -> str:
    """What a finding says in numbers."""
    if each.bound is not None:
        return f"{each.measure} is at least {shown(each.bound)}, and {each.stated:.4g} is stated"
    return f"by chance with probability {each.pvalue:.1g} at most" if each.pvalue is not None else "certain"


def _limits() -> list[str]:
    return ["", "## What an audit cannot see", "", *(f"* {each}" for each in LIMITS)]
