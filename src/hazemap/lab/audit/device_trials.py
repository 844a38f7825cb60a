"""Trials of devices: what answers to a recipe tell of one device, and what each party of a shuffle learns of one."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from hazemap.lab.audit.audited_settings import REPORT, AuditedSetting
from hazemap.lab.audit.device_runs import ANALYSER, SHUFFLER, WITH_CORRUPT
from hazemap.lab.audit.evidence.distinguishing_events import Facts, certain, distinguished
from hazemap.lab.audit.findings import Claim, Fact, LossTest, Test
from hazemap.lab.audit.observed_output import Observation
from hazemap.lab.audit.subprocess_runs import RunOrder, RunOutcome
from hazemap.lab.audit.trial_types import CONFIRMING, AuditTrial, Sides, in_parts, told_apart


@dataclass(frozen=True)
class RecipeTrial(AuditTrial):
    """Many runs of a recipe among `people`, of whom the first typed a word, or nothing; the others typed another one.

    Of sums it is also asked whether they are refused where the recipe says that more people are in them.
    """

    setting: AuditedSetting
    people: int
    runs: int

    def orders(self) -> list[RunOrder]:
        """Both kinds of people, in parts; then sums of too few."""
        parts = in_parts(self.runs, 250)
        ordered = [
            RunOrder(self.setting, self._content(word), part, self.people) for word in ("so", "") for part in parts
        ]
        if self.setting.method != REPORT:
            ordered.append(RunOrder(self.setting, self._content("so"), 2, self.people + 1))
        return ordered

    def tests(self, outcomes: Sequence[RunOutcome], confirming: Sequence[RunOutcome]) -> Iterator[Test]:  # noqa: ARG002
        """Whether answers tell the two apart better than is stated, and whether too few are refused."""
        sides = [each for each in outcomes if each.order.people == self.people]
        half, claim = len(sides) // 2, self.setting.claim
        about = f"{self.setting}: somebody who typed a word, or nothing"
        told = [[_facts(seen) for each in some for seen in each.observations] for some in (sides[:half], sides[half:])]
        found = distinguished(claim, told[0], told[1])
        yield LossTest("telling neighbours apart", about, claim, found.lower, 2 * self.runs, str(found))
        failed = [seen.error for each in sides for seen in each.observations if seen.error]
        yield Fact("devices answer", str(self.setting), bool(failed), 2 * self.runs, "; ".join(failed[:1]))
        for each in outcomes:
            if each.order.people > self.people:
                opened = [seen for seen in each.observations if not seen.error]
                yield Fact("sums of too few are refused", str(self.setting), bool(opened), len(each.observations))

    def _content(self, word: str) -> bytes:
        lines = [f"{number},{word if not number else 'it'}" for number in range(self.people)]
        return "\n".join(["device,word", *lines, ""]).encode()


def _facts(seen: Observation) -> Facts:
    """Every number, what it is more than the one of people without events, and how many bits there are."""
    if seen.error:
        return {"ends in": seen.error}
    numbers = seen.columns["answer"].tolist()
    found: Facts = {f"bin {at}": number for at, number in enumerate(numbers)}
    found |= {f"bin {at} less that of none": number - numbers[-1] for at, number in enumerate(numbers[:-1])}
    return found | {"in all": sum(numbers)}


VIEWS = (ANALYSER, WITH_CORRUPT, SHUFFLER)
_NOTHING = Claim("ε", 0.0)
"""What a shuffler may learn: messages are sealed, so nothing."""


@dataclass(frozen=True)
class ShuffleTrial(AuditTrial):
    """Many runs of a shuffle in which the first person has a row in the first place, or none."""

    setting: AuditedSetting
    runs: int

    def orders(self) -> list[RunOrder]:
        """Both, in parts."""
        return [RunOrder(self.setting, side, part) for side in (b"there", b"gone") for part in in_parts(self.runs, 25)]

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
            again = _told(confirming, view) if confirming else None
            yield from told_apart(claim, about, count, told, told, again)
        failed = [seen.error for outcome in outcomes for seen in outcome.observations if seen.error]
        yield Fact("batches are opened", str(self.setting), bool(failed), 2 * self.runs, "; ".join(failed[:1])[:160])


def _told(outcomes: Sequence[RunOutcome], view: str) -> Sides:
    """The facts of one party's runs, with the person's row and without."""
    sides: dict[bytes, list[Facts]] = {b"there": [], b"gone": []}
    for outcome in outcomes:
        for seen in outcome.observations:
            numbers = seen.columns.get(view, ())
            found: Facts = {f"number {at}": float(number) for at, number in enumerate(numbers)}
            sides[outcome.order.content].append(found | ({"ends in": seen.error} if seen.error else {}))
    return sides[b"there"], sides[b"gone"]
