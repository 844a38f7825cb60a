"""Single questions that are not sums: a curator is asked the same one thousands of times, at the whole budget.

In a whole run a choice has a small part of the budget, and what it gives away drowns in doubt. So one question of each
kind that a method asks is asked by itself, on tables opened from the bytes of two files.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hazemap import codec
from hazemap.lab.audit.audited_settings import LOCAL, AuditedSetting
from hazemap.lab.audit.evidence.distinguishing_events import distinguished
from hazemap.lab.audit.evidence.ledger_and_transcript import prices
from hazemap.lab.audit.findings import LossTest, Test
from hazemap.lab.audit.observed_output import Observation
from hazemap.lab.audit.subprocess_runs import RunOrder, RunOutcome
from hazemap.lab.audit.synthetic_people import File, NeighbouringTables, Square, alone, canary, row
from hazemap.lab.audit.trial_types import AuditTrial
from hazemap.queries.noisy_queries import Answer, Choice, Growth, Measure, Query, Question

QUESTIONS = {"kd-tree": Choice, "kd-tree-uniform": Choice, "htf": Measure, "privtree": Growth}
"""Methods that ask what is no sum, and what that is."""

_WIDTH = 16


@dataclass(frozen=True)
class SingleQueryTrial(AuditTrial):
    """The first question of its kind that a method asks, on a few people and one more."""

    setting: AuditedSetting
    times: int
    crowd: int = 0

    @property
    def square(self) -> Square:
        """Sixteen places."""
        return Square(2)

    @property
    def neighbours(self) -> NeighbouringTables:
        """A crowd in one place and somebody more; or two people on either side of a middle line, and one at an edge.

        How likely a cell is split grows fastest, as much as one person can make it, while few are in it; with how many
        depends on the method, so several crowds are tried. Without the third person the middle line is the best; with
        them it is as good as the one before it: scores of two lines move against each other, as far as they can.
        """
        if self.setting.trust == LOCAL:
            return alone(self.square)
        if self.crowd:
            same = tuple(row(self.square, f"b{number}", 0) for number in range(self.crowd))
            return NeighbouringTables(
                f"{self.crowd} people and one more", File((*same, *canary(self.square, 0, 3))), File(same)
            )
        column = np.unique(self.square.lon.round(9), return_inverse=True)[1]
        at = [int(np.flatnonzero(column == number)[0]) for number in (0, 1, 2)]
        few = (row(self.square, "b1", at[1]), row(self.square, "b2", at[2]))
        return NeighbouringTables("two people and one more", File((*few, *canary(self.square, at[0], 3))), File(few))

    def orders(self) -> list[RunOrder]:
        """The question travels in the place of the setting's method: the same to both files."""
        pair, text = self.neighbours, codec.dumps(self._question())
        return [RunOrder(self.setting, each.content, self.times, question=text) for each in (pair.there, pair.gone)]

    @property
    def kind(self) -> type[Question]:
        """What is asked: for sums where people report alone, and else what is no sum."""
        return Query if self.setting.trust == LOCAL else QUESTIONS[self.setting.method.partition(":")[0]]

    def _report(self, seen: Observation) -> dict[str, float | str]:
        """What one person says of the place where they are, or are not."""
        sums = seen.transcript[0].answer.sums
        return {"their own number": float(sums[self.square.size - 4])}

    def _question(self) -> Question:
        """Go through the method's rounds, with answers of a crowd that is not there, until it asks what is no sum."""
        rounds = self.setting.algorithm.rounds(prices(self.setting))
        question = next(rounds)
        while not isinstance(question, self.kind):
            question = rounds.send(Answer(np.full(question.size or 0, 10_000), np.ones(1)))
        return question

    def tests(self, outcomes: Sequence[RunOutcome], confirming: Sequence[RunOutcome]) -> Iterator[Test]:  # noqa: ARG002
        """Whether answers tell the tables apart better than the budget allows."""
        claim = self.setting.claim
        facts = self._report if self.setting.trust == LOCAL else _facts
        told = [[facts(seen) for seen in outcome.observations] for outcome in outcomes]
        found = distinguished(claim, told[0], told[1])
        about = f"{self.setting}: one {self.kind.__name__} at the whole budget, {self.neighbours.name}"
        yield LossTest("one question alone", about, claim, found.lower, 2 * self.times, str(found))


def _facts(seen: Observation) -> dict[str, float | str]:
    """The answer, number by number, its size and its total."""
    sums = seen.transcript[0].answer.sums
    each = {f"number {at}": float(number) for at, number in enumerate(sums[:_WIDTH].tolist())}
    return {**each, "how many": float(len(sums)), "total": float(np.sum(sums.astype(np.float64)))}
