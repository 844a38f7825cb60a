"""Types of trials: what to run, and the tests that the outcomes feed."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from hazemap.lab.audit.audited_settings import CSV, CURATOR, LOCAL, REPORTS, AuditedSetting, most_rows
from hazemap.lab.audit.device_runs import followed
from hazemap.lab.audit.evidence import noise_independence as noise
from hazemap.lab.audit.evidence import noise_residuals as repetition
from hazemap.lab.audit.evidence.distinguishing_events import Facts, certain, confirmed, distinguished, facts
from hazemap.lab.audit.evidence.empirical_privacy_loss import Laws
from hazemap.lab.audit.evidence.ledger_and_transcript import REPLAYED, ObservedShares, Replays, of_ledger
from hazemap.lab.audit.evidence.noise_residuals import ObservedMovement, Residual, Sums, residuals
from hazemap.lab.audit.findings import Claim, Fact, LawTest, LossTest, Test
from hazemap.lab.audit.subprocess_runs import RunOrder, RunOutcome
from hazemap.lab.audit.synthetic_people import CsvLine, File, NeighbouringTables, Square, row

PLACES = 12
"""Places of an answer that are looked at one by one: where somebody is added."""


CONFIRMING = 20
"""Runs on either side that confirm what seemed to be certain."""

WEIGHT = 1000.0
MOST_PLACES = 3
"""So many hours of one place count of a person in statistics by the hour; and so many of their records in others."""


Sides = tuple[list[Facts], list[Facts]]
"""Facts of the runs with a person, and of those without."""


class AuditTrial(ABC):
    """Something to run, and to judge; `setting` is what is tried. Answers of one that is not `noisy` may be alike."""

    setting: AuditedSetting
    noisy: ClassVar[bool] = True

    @abstractmethod
    def orders(self) -> list[RunOrder]:
        """What to run."""

    def again(self, outcomes: Sequence[RunOutcome]) -> list[RunOrder]:  # noqa: ARG002 - some trials look at them
        """What to run once more, to confirm what the outcomes seem to say: nothing."""
        return []

    def tests(self, outcomes: Sequence[RunOutcome], confirming: Sequence[RunOutcome]) -> Iterator[Test]:  # noqa: ARG002
        """What the outcomes say, as many tests whatever they say: the accounts of a curator."""
        for outcome in outcomes if self.setting.trust == CURATOR else ():
            yield from of_ledger(outcome)


@dataclass(frozen=True)
class NeighbouringTablesTrial(AuditTrial):
    """Many runs on two neighbours: the law of the noise, anything that tells them apart, the accounts."""

    setting: AuditedSetting
    neighbours: NeighbouringTables
    runs: int

    def orders(self) -> list[RunOrder]:
        """Both files, in parts of the runs, so that processes can share them."""
        sizes = in_parts(self.runs, 25)
        people = 1 if self.setting.trust == LOCAL else self.neighbours.gone.people + 1
        if self.setting.trust == REPORTS:  # whoever is in no place reports, too
            people = self.neighbours.gone.people
        files = (self.neighbours.there.content, self.neighbours.gone.content)
        return [RunOrder(self.setting, content, size, people) for content in files for size in sizes]

    def again(self, outcomes: Sequence[RunOutcome]) -> list[RunOrder]:
        """If some fact tells both files apart in every run: more runs, to see whether it always does."""
        if not certain(*_told(outcomes)):
            return []
        return [replace(order, runs=CONFIRMING) for order in (self.orders()[0], self.orders()[-1])]

    def tests(self, outcomes: Sequence[RunOutcome], confirming: Sequence[RunOutcome]) -> Iterator[Test]:
        """All of them."""
        about, half = f"{self.setting}: {self.neighbours.name}", len(outcomes) // 2
        claim, curated = self.setting.claim, self.setting.trust == CURATOR
        sums = Sums(self.neighbours.there.table, self.neighbours.gone.table)
        laws, replays, shares = Laws(claim), Replays(self.setting), ObservedShares(about)
        runs: list[list[Residual]] = []
        told: Sides = ([], [])
        for number, outcome in enumerate(outcomes):
            there = number < half
            for seen in outcome.observations:
                run = list(residuals(seen, sums, there, self.setting.dropping is not None))
                places = sorted({int(at) for each in run for at in np.flatnonzero(each.shift)[:PLACES]})
                told[0 if there else 1].append(facts(seen, places))
                runs.append(run)
                laws.add(run)
                shares.add(run)
            for seen in outcome.observations[: REPLAYED if curated else 0]:
                replays.add(seen)
        count = sum(len(outcome.observations) for outcome in outcomes)
        yield from told_apart(claim, about, count, told, _told(outcomes), _told(confirming) if confirming else None)
        yield from shares.tests()
        if self.setting.trust not in (LOCAL, REPORTS):  # the noise of reports depends on what people hold
            note = f"{laws.numbers:,} numbers of noise"
            yield LossTest("the law of the noise", about, claim, laws.lower, count, note)
            yield from noise.tests(runs, about)
            yield from repetition.tests(runs, about)
        if not curated:
            first = [(outcome.order.people, seen) for outcome in outcomes for seen in outcome.observations][:REPLAYED]
            strange = [seen for people, seen in first if seen.transcript and not followed(self.setting, people, seen)]
            yield Fact("all follows from answers", str(self.setting), bool(strange), len(first))
        if curated:
            yield from replays.tests()
        yield from super().tests(outcomes, confirming)
        yield from failures(self.setting, outcomes)


@dataclass(frozen=True)
class LedgerCapTrial(AuditTrial):
    """A data set whose cap is for two releases is asked for four."""

    setting: AuditedSetting
    neighbours: NeighbouringTables

    def orders(self) -> list[RunOrder]:
        """One order with a cap."""
        budget = self.setting.budget
        price = getattr(budget, "epsilon", None)
        return [RunOrder(self.setting, self.neighbours.there.content, 4, cap=None if price is None else str(2 * price))]


@dataclass(frozen=True)
class NoiseIndependenceTrial(AuditTrial):
    """One release each of several processes that begin for it: their noise must differ, as that of all answers.

    Noise is compared over the whole audit (`evidence.noise_independence.Copies`).
    """

    setting: AuditedSetting
    neighbours: NeighbouringTables
    processes: int = 2

    def orders(self) -> list[RunOrder]:
        """The same order for each."""
        return [RunOrder(self.setting, self.neighbours.gone.content, 1, alone=True) for _ in range(self.processes)]


@dataclass(frozen=True)
class SensitivityTrial(AuditTrial):
    """A few releases with a person in every place, and as many of a file with one person alone.

    Each brings four times the rows that a rule leaves, or rows in three times as many cells; large weights; and writes
    their id with quotes and without, which is one id. Rows of a person do not stand together.
    """

    square: Square
    setting: AuditedSetting
    runs: int

    @property
    def people(self) -> int:
        """How many are added."""
        return (self.square.size - 1) // self._places

    @property
    def _most(self) -> int:
        return most_rows(self.setting.bounding) if not self.setting.of_values else MOST_PLACES

    @property
    def _places(self) -> int:
        return 3 * self._most if self.setting.bounding.startswith("cells") else 1

    def files(self) -> tuple[File, File]:
        """With them, and without."""
        base = (row(self.square, "last", self.square.size - 1),)
        single = self.setting.bounding == "rows are people"
        times = 1 if single or self._places > 1 else 4 * self._most
        rounds = (
            self._line(number, place, turn, plain=single or self.setting.form != CSV or turn % 2 == 0)
            for turn in range(times)
            for place in range(self._places)
            for number in range(self.people)
        )
        return File((*rounds, *base)), File(base)

    def _line(self, number: int, place: int, turn: int, plain: bool) -> CsvLine:
        at = number * self._places + place
        line = row(self.square, f"c{number}", at, WEIGHT, hour=turn % 24)
        return line if plain else replace(line, text=b'"' + line.text.replace(b",", b'",', 1))

    def orders(self) -> list[RunOrder]:
        """Both files."""
        parts = [self.runs // 2, self.runs - self.runs // 2]
        there, gone = self.files()
        people = (self.people + 1) if self.setting.trust != CURATOR else 0
        return [RunOrder(self.setting, file.content, part, people) for file in (there, gone) for part in parts if part]

    def tests(self, outcomes: Sequence[RunOutcome], confirming: Sequence[RunOutcome]) -> Iterator[Test]:
        """How far they move numbers, and what that gives away."""
        there, gone = self.files()
        found = ObservedMovement(self.setting.claim, self.people, Sums(there.table, gone.table))
        for number, outcome in enumerate(outcomes):
            for seen in outcome.observations:
                found.add(seen, number < len(outcomes) // 2)
        yield from found.tests(f"{self.setting}: {self.people} people against none", 2 * self.runs)
        yield from super().tests(outcomes, confirming)


def in_parts(runs: int, most: int) -> list[int]:
    """So many runs, at most `most` at once."""
    return [most] * (runs // most) + [runs % most] * bool(runs % most)


def told_apart(
    claim: Claim, about: str, count: int, told: Sides, every: Sides, confirming: Sides | None
) -> Iterator[Test]:
    """Whether facts of `count` runs tell two neighbours apart better than is stated, often or (of `every`) always."""
    found = distinguished(claim, *told)
    yield LossTest("telling neighbours apart", about, claim, found.lower, count, str(found))
    pvalue, event = confirmed(claim, certain(*every), *confirming) if confirming else (1.0, None)
    yield LawTest("no fact tells for certain", about, pvalue, count, str(event) if event else "")


def _told(outcomes: Sequence[RunOutcome]) -> Sides:
    """Facts of the runs with the person, and of those without; outcomes are of as many orders of either."""
    half = len(outcomes) // 2
    one, other = (
        [facts(seen) for each in side for seen in each.observations] for side in (outcomes[:half], outcomes[half:])
    )
    return one, other


def failures(setting: AuditedSetting, outcomes: Sequence[RunOutcome]) -> Iterator[Test]:
    """Whether runs end in errors that are no refusals in words: what is not hazemap's own may say anything."""
    every = (seen.error for outcome in outcomes for seen in outcome.observations)
    errors = [error for error in every if "no error of hazemap's" in error]
    count = sum(len(outcome.observations) for outcome in outcomes)
    yield Fact("errors are hazemap's own", str(setting), bool(errors), count, errors[0][:160] if errors else "")
