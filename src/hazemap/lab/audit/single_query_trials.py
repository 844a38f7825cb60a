"""Single questions and single rules, tried apart from whole runs, where noise drowns what they give away.

A curator is asked one question that is not a sum thousands of times, at the whole budget, on tables opened from the
bytes of two files. Bounding rules are seen at an ε of thousands, where a published number is the exact sum but for one
in 10¹⁵: there a row beyond the cap, two ids taken for one, a rounded number or people outside show directly.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import floor

import numpy as np

from hazemap import codec
from hazemap.lab.audit.audited_settings import LOCAL, AuditedSetting, most_rows
from hazemap.lab.audit.evidence.distinguishing_events import distinguished
from hazemap.lab.audit.evidence.ledger_and_transcript import prices
from hazemap.lab.audit.evidence.noise_residuals import Sums
from hazemap.lab.audit.findings import Fact, LawTest, LossTest, Test
from hazemap.lab.audit.observed_output import Observation
from hazemap.lab.audit.subprocess_runs import RunOrder, RunOutcome
from hazemap.lab.audit.synthetic_people import FAR, File, NeighbouringTables, Square, alone, canary, row
from hazemap.lab.audit.trial_types import AuditTrial
from hazemap.machine_code.arrays import Ints
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


LARGE = 100_000
"""An ε at which noise of a hundredth of the budget does not show."""

FAINT = 60
"""So many scales of its noise no number of an audit ever passes: e^−60 is 10⁻²⁶."""

LOOK_ALIKES = ("p{}", "P{}", " p{}", "p{} ", "p0{}", "p{}.0", "p+{}", "p{}e0", "'p{}'", "pé{}", "pe\u0301{}")
"""Ids that somebody might take for one; all of them are people of their own."""


@dataclass(frozen=True)
class ExactTrial(AuditTrial):
    """Look-alike ids, people with more rows than the rule leaves, and people outside: sums are what the rule says."""

    square: Square
    setting: AuditedSetting
    noisy = False

    @property
    def file(self) -> File:
        """Everybody in a place of their own; whoever has many rows has them all there, with one weight."""
        single = not self.setting.people_have_ids
        lines = [
            row(self.square, form.format(number), (number * len(LOOK_ALIKES) + kind) % (self.square.size - 9))
            for number in range(1, 9)
            for kind, form in enumerate(LOOK_ALIKES)
        ]
        often = 1 if single else 4 * max(3, most_rows(self.setting.bounding))
        lines += [row(self.square, f"m{at}", self.square.size - 1 - at) for at in range(8) for _ in range(often)]
        if self.setting.of_values:  # nobody asks about values elsewhere, and the auditor does not know the box
            return File(tuple(lines))
        return File((*lines, replace(FAR, person="far", text=FAR.text.replace(b"zz", b"far")), FAR))

    def orders(self) -> list[RunOrder]:
        """One run with next to no noise."""
        loud = replace(self.setting, epsilon=str(LARGE), rho=None, delta=None)
        return [RunOrder(loud, self.file.content, 1)]

    def tests(self, outcomes: Sequence[RunOutcome], confirming: Sequence[RunOutcome]) -> Iterator[Test]:
        """A fact: it is wrong with probability 10⁻²⁰ at most."""
        table = self.file.table
        sums, broken = Sums(table, table), list[str]()
        for seen in outcomes[0].observations:
            for each, (exact, _) in sums.known(seen):
                scale = each.asked.sensitivity.l1 / (LARGE * each.question.share)
                off = np.abs(each.answer.sums - exact) > floor(FAINT * scale)
                if off.any():
                    at = int(np.argmax(off))
                    broken.append(
                        f"answer {each.number}: {each.answer.sums[at]} at {at}, where the rule says {exact[at]}"
                    )
        about = f"{self.setting}: with next to no noise"
        yield Fact("numbers are those of the rule", about, bool(broken), 1, broken[0] if broken else "")
        yield from super().tests(outcomes, confirming)


@dataclass(frozen=True)
class RowChoiceTrial(AuditTrial):
    """People with twice as many rows as the rule leaves, each row in a place of its own: which of them count?

    By the secret of a run alone: in another run of the same file others do, by a coin for each person.
    """

    square: Square
    setting: AuditedSetting
    runs: int
    noisy = False

    @property
    def _most(self) -> int:
        return most_rows(self.setting.bounding)

    @property
    def people(self) -> int:
        """As many as have places of their own."""
        return self.square.size // (2 * self._most)

    def orders(self) -> list[RunOrder]:
        """Runs of one file, one after another in one process and in processes of their own."""
        places = range(self.people * 2 * self._most)
        lines = (row(self.square, f"c{place // (2 * self._most)}", place) for place in places)
        loud = replace(self.setting, epsilon=str(LARGE), rho=None, delta=None)
        content = File(tuple(lines)).content
        return [RunOrder(loud, content, self.runs), RunOrder(loud, content, 1, alone=True)]

    def tests(self, outcomes: Sequence[RunOutcome], confirming: Sequence[RunOutcome]) -> Iterator[Test]:
        """How often two runs keep a person's first row alike; whether it is kept in half of them; how many are kept."""
        from scipy.stats import binom

        seen = [each for outcome in outcomes for each in outcome.observations if each.transcript]
        kept = [self._kept(each.transcript[0].question.encoder, each.transcript[0].answer.sums) for each in seen]  # type: ignore[union-attr]
        about, number = f"{self.setting}: people with more rows than count", len(kept)
        first = [rows[:, 0] > 0 for rows in kept]
        pairs = list(zip(first[0::2], first[1::2], strict=False)) + ([(first[0], first[-1])] if number > 2 else [])
        alike = [int((one == other).sum()) for one, other in pairs]
        likely = [2 * float(min(binom.cdf(a, self.people, 0.5), binom.sf(a - 1, self.people, 0.5))) for a in alike]
        pvalue = min(1.0, len(pairs) * min(likely, default=1.0))
        note = f"{max(alike, default=0)} of {self.people} alike"
        yield LawTest("which rows count is drawn anew in every run", about, pvalue, number, note)
        chosen, all_ = sum(int(each.sum()) for each in first), self.people * number
        fair = 2 * float(min(binom.cdf(chosen, all_, 0.5), binom.sf(chosen - 1, all_, 0.5)))
        yield LawTest("no row is likelier to count than others", about, min(1.0, fair), number, f"{chosen} of {all_}")
        wrong = sum(int((rows.sum(axis=1) != self._most).sum()) for rows in kept)
        yield Fact("as many rows of a person count as the rule leaves", about, bool(wrong), number, f"not of {wrong}")
        yield from super().tests(outcomes, confirming)

    def _kept(self, encoder: object, sums: Ints) -> Ints:
        """What each person counts in each of their places, int64[people, places]."""
        where = encoder.cells.locate(self.square.leaves.cells)  # type: ignore[attr-defined]  # a question of counts
        return np.asarray(sums[where][: self.people * 2 * self._most].reshape(self.people, -1))
