"""Trials of a shuffle: what an analyser, one with people of its own, and a shuffler learn of one person."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from hazemap.lab.audit.audited_settings import AuditedSetting
from hazemap.lab.audit.evidence.distinguishing_events import Facts, certain, confirmed, distinguished
from hazemap.lab.audit.findings import Claim, Fact, LawTest, LossTest, Test
from hazemap.lab.audit.shuffle_runs import ANALYSER, SHUFFLER, WITH_CORRUPT
from hazemap.lab.audit.subprocess_runs import RunOrder, RunOutcome
from hazemap.lab.audit.trial_types import CONFIRMING, AuditTrial

VIEWS = (ANALYSER, WITH_CORRUPT, SHUFFLER)
_PART = 25
_NOTHING = Claim("ε", 0.0)
"""What a shuffler may learn: messages are sealed, so nothing."""


@dataclass(frozen=True)
class ShuffleTrial(AuditTrial):
    """Many runs of a shuffle in which the first person has a row in the first place, or none."""

    setting: AuditedSetting
    runs: int

    def orders(self) -> list[RunOrder]:
        """Both, in parts."""
        parts = [_PART] * (self.runs // _PART) + [self.runs % _PART] * bool(self.runs % _PART)
        return [RunOrder(self.setting, side, part) for side in (b"there", b"gone") for part in parts]

    def again(self, outcomes: Sequence[RunOutcome]) -> list[RunOrder]:
        """More runs, if some fact told both apart in every run."""
        if not any(certain(*_told(outcomes, view)) for view in VIEWS):
            return []
        return [replace(self.orders()[at], runs=CONFIRMING) for at in (0, -1)]

    def tests(self, outcomes: Sequence[RunOutcome], confirming: Sequence[RunOutcome]) -> Iterator[Test]:
        """Of each view: whether it tells more than is stated, often or always."""
        for view in VIEWS:
            claim = _NOTHING if view == SHUFFLER else self.setting.claim
            about, count, told = f"{self.setting}: what {view} sees", 2 * self.runs, _told(outcomes, view)
            found = distinguished(claim, *told)
            yield LossTest("telling neighbours apart", about, claim, found.lower, count, str(found))
            events = certain(*told)
            pvalue, event = confirmed(claim, events, *_told(confirming, view)) if confirming else (1.0, None)
            yield LawTest("no fact tells for certain", about, pvalue, count, str(event) if event else "")
        failed = [seen.error for outcome in outcomes for seen in outcome.observations if seen.error]
        yield Fact("batches are opened", str(self.setting), bool(failed), 2 * self.runs, "; ".join(failed[:1])[:160])


def _told(outcomes: Sequence[RunOutcome], view: str) -> tuple[list[Facts], list[Facts]]:
    """The facts of one party's runs, with the person's row and without."""
    sides: dict[bytes, list[Facts]] = {b"there": [], b"gone": []}
    for outcome in outcomes:
        for seen in outcome.observations:
            numbers = seen.columns.get(view, ())
            found: Facts = {f"number {at}": float(number) for at, number in enumerate(numbers)}
            sides[outcome.order.content].append(found | ({"ends in": seen.error} if seen.error else {}))
    return sides[b"there"], sides[b"gone"]
