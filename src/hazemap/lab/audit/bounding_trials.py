"""What a bounding rule does with rows, seen where noise is next to nothing: which rows count, and how many.

At an ε of thousands a published number is the exact sum, but for one in 10¹⁵ or fewer. There it shows directly what
drowns in noise elsewhere: a row beyond the cap, ids that are taken for one, numbers that are rounded, people outside.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import floor

import numpy as np

from hazemap.lab.audit.audited_settings import AuditedSetting, most_rows
from hazemap.lab.audit.evidence.noise_residuals import Sums
from hazemap.lab.audit.findings import Fact, LawTest, Test
from hazemap.lab.audit.subprocess_runs import RunOrder, RunOutcome
from hazemap.lab.audit.synthetic_people import FAR, File, Square, row
from hazemap.lab.audit.trial_types import AuditTrial
from hazemap.machine_code.arrays import Ints

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
