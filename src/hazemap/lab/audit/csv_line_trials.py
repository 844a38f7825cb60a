"""One person's lines among many people's: does what they do to the whole file exceed what one person may do?"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import log, sqrt

import numpy as np

from hazemap.lab.audit.audited_settings import AuditedSetting
from hazemap.lab.audit.evidence.distinguishing_events import Facts, certain, confirmed
from hazemap.lab.audit.findings import Claim, LawTest, LossTest, Test, at_least, at_most
from hazemap.lab.audit.random_canaries import CanaryKind
from hazemap.lab.audit.subprocess_runs import RunOrder, RunOutcome
from hazemap.lab.audit.synthetic_people import HEADER, Square, row
from hazemap.lab.audit.trial_types import AuditTrial

TINY, REFUSED = "1/1000", 20
"""At so small an ε refusals that differ in all of a few runs are no chance; and how many runs that are."""


@dataclass(frozen=True)
class CsvLineTrial(AuditTrial):
    """Two files that differ in the lines of one person, who stand first, in the middle or last; few runs of each.

    The people around write their lines in all the ways that CSV has, so that a file read in another way counts them in
    another way. Where numbers are moved is learned from half of the runs, and how far from the others: at least by what
    is left when the noise of so many numbers is taken off (Bernstein's bound for Laplace noise). A person who moves
    them by s in all loses s times what a step of one tells.
    """

    square: Square
    setting: AuditedSetting
    kind: CanaryKind
    where: str
    late: bool = False
    runs: int = 4

    def orders(self) -> list[RunOrder]:
        """With the person, and without."""
        people = self._people()
        place = self.square.size - 4
        own = self.kind.lines(0, float(self.square.lon[place]), float(self.square.lat[place]), 1)
        at = {"first": 0, "in the middle": len(people) // 2, "last": len(people)}[self.where]
        with_them = b"".join([HEADER, *people[:at], own, *people[at:]])
        return [RunOrder(self.setting, content, self.runs) for content in (with_them, HEADER + b"".join(people))]

    def again(self, outcomes: Sequence[RunOutcome]) -> list[RunOrder]:
        """Where runs end otherwise with the person than without: more of them, at a small ε."""
        if not certain(*_ends(outcomes)):
            return []
        tiny = replace(self.setting, epsilon=TINY, rho=None)
        return [RunOrder(tiny, order.content, REFUSED) for order in self.orders()]

    def _people(self) -> list[bytes]:
        """A row each; where `late`, 25,000 plain ones and then a thousand in quotes."""
        size = self.square.size * 3 // 4
        if self.late:
            plain = [row(self.square, f"u{number}", number % size).text for number in range(25_000)]
            quoted = [self._row(f'"q{number}"', number % size, '"a, b"') for number in range(1_000)]
            return [*plain, *quoted]
        notes = ("", '"a, b"', "''", '"say ""so"""', "o'clock")
        ids = ("u{}", '"q{}"', "0{}", "w {}", "n'{}", "é{}")
        return [
            self._row(ids[number % len(ids)].format(number), number % size, notes[number % len(notes)])
            for number in range(300)
        ]

    def _row(self, person: str, place: int, note: str) -> bytes:
        return row(self.square, person, place, note=note).text

    def tests(self, outcomes: Sequence[RunOutcome], confirming: Sequence[RunOutcome]) -> Iterator[Test]:
        """How far the numbers move, and whether the release fails with the person or without."""
        about = f"{self.setting}: {self.kind.name}, {self.where}" + (" of 26,000 lines" if self.late else "")
        claim = self.setting.claim
        sides = [
            [seen.transcript[0].answer.sums for seen in outcome.observations if seen.transcript] for outcome in outcomes
        ]

        def moved(alpha: float) -> float:
            return _moved(sides[0], sides[1], alpha) if min(map(len, sides)) >= 2 else 0.0

        yield LossTest("moving others' numbers", about, claim, moved, 2 * self.runs)
        note = next((seen.error for outcome in outcomes for seen in outcome.observations if seen.error), "")[:200]
        events = certain(*_ends(outcomes))
        pvalue = confirmed(Claim("ε", float(Fraction(TINY))), events, *_ends(confirming))[0] if confirming else 1.0
        yield LawTest("refusals do not tell", about, pvalue, 2 * self.runs, note)
        yield from super().tests(outcomes, confirming)


def _ends(outcomes: Sequence[RunOutcome]) -> tuple[list[Facts], list[Facts]]:
    """What runs end in, with the person and without."""
    sides: list[list[Facts]] = [[{"ends in": seen.error} for seen in outcome.observations] for outcome in outcomes]
    return sides[0], sides[1]


def _moved(there: list[np.ndarray], gone: list[np.ndarray], alpha: float) -> float:
    """ε of a move that is certain: wrong with probability alpha. All answers are of one question."""
    if len({len(each) for each in (*there, *gone)}) > 1:
        return 0.0
    one, other = (np.mean(side[0::2], axis=0) for side in (there, gone))
    judged = [side[1::2] for side in (there, gone)]
    runs = min(map(len, judged))
    # the noise, from differences of runs on one file; a Laplace difference of scale b has deviation 2b
    width = max(float(np.std(side[0] - side[1])) / 2 for side in (there, gone))
    width = min(width, max(float(np.median(np.abs(side[0] - side[1]))) / 1.1 for side in (there, gone)) + 1.0) * 1.1
    apart = one - other
    chosen = np.flatnonzero(np.abs(apart) > 6 * width)
    if not len(chosen):
        return 0.0
    signs = np.sign(apart[chosen])
    total = sum(float((signs * (a[chosen] - b[chosen])).sum()) for a, b in zip(*judged, strict=True)) / runs
    doubt = log(2 / alpha)
    noise = sqrt(2 * doubt * len(chosen) * 4 * width**2 / runs) + width * doubt / runs
    return max(0.0, total - noise) * _step(gone, chosen, alpha / 2)


def _step(gone: list[np.ndarray], moved: np.ndarray, alpha: float) -> float:
    """What a step of one tells, from places where nobody is (the last quarter) and nothing is moved."""
    size = len(gone[0])
    empty = np.setdiff1d(np.arange(size * 3 // 4, size), moved)
    noise = np.concatenate([each[empty] for each in gone])
    if not len(noise):
        return 0.0
    here, there = int((noise >= 0).sum()), int((noise >= 1).sum())
    least, most = at_least(here, len(noise), alpha / 2), at_most(there, len(noise), alpha / 2)
    return max(0.0, log(least / most)) if least > 0 < most else 0.0
