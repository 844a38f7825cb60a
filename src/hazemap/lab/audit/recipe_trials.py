"""Trials of recipes: what a report, a study's answer and an opened sum tell of one device's events."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hazemap.lab.audit.audited_settings import REPORT, AuditedSetting
from hazemap.lab.audit.evidence.distinguishing_events import Facts, distinguished
from hazemap.lab.audit.findings import Fact, LossTest, Test
from hazemap.lab.audit.observed_output import Observation
from hazemap.lab.audit.subprocess_runs import RunOrder, RunOutcome
from hazemap.lab.audit.trial_types import AuditTrial

_PART = 250


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
        parts = [_PART] * (self.runs // _PART) + [self.runs % _PART] * bool(self.runs % _PART)
        ordered = [
            RunOrder(self.setting, self._content(word), part, self.people) for word in ("so", "") for part in parts
        ]
        if self.setting.method != REPORT:
            ordered.append(RunOrder(self.setting, self._content("so"), 2, self.people + 1))
        return ordered

    def tests(self, outcomes: Sequence[RunOutcome], confirming: Sequence[RunOutcome]) -> Iterator[Test]:  # noqa: ARG002
        """Whether answers tell the two apart better than is stated, and whether too few are refused."""
        sides = [each for each in outcomes if each.order.people == self.people]
        half, claim, about = (
            len(sides) // 2,
            self.setting.claim,
            f"{self.setting}: somebody who typed a word, or nothing",
        )
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
