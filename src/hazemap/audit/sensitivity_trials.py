"""Many people who all bring more than the rule leaves of them, against nobody: how far does each move the numbers?"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from hazemap.audit.audited_settings import CURATOR, SECURE_SUM, Setting, most_rows
from hazemap.audit.evidence.empirical_sensitivity import Movement
from hazemap.audit.evidence.ledger_replay import of_ledger
from hazemap.audit.evidence.noise_residuals import Sums
from hazemap.audit.findings import Test
from hazemap.audit.subprocess_runs import RunOrder, RunOutcome
from hazemap.audit.synthetic_people import CsvLine, File, row
from hazemap.audit.synthetic_places import Square
from hazemap.audit.table_formats import CSV

WEIGHT = 1000.0
MOST_PLACES = 3
"""So many hours of one place count of a person in statistics by the hour; and so many of their records in others."""


@dataclass(frozen=True)
class OfMovement:
    """A few releases with a person in every place, and as many of a file with one person alone.

    Each brings four times the rows that a rule leaves, or rows in three times as many cells; large weights; and writes
    their id with quotes and without, which is one id. Rows of a person do not stand together.
    """

    square: Square
    setting: Setting
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
        people = (self.people + 1) if self.setting.trust == SECURE_SUM else 0
        return [RunOrder(self.setting, file.content, part, people) for file in (there, gone) for part in parts if part]

    def again(self, outcomes: Sequence[RunOutcome]) -> list[RunOrder]:  # noqa: ARG002 - as the other trials
        """Nothing."""
        return []

    def tests(self, outcomes: Sequence[RunOutcome], confirming: Sequence[RunOutcome]) -> Iterator[Test]:  # noqa: ARG002
        """How far they move numbers, and what that gives away."""
        there, gone = self.files()
        found = Movement(self.setting.claim, self.people, Sums(there.table, gone.table))
        for number, outcome in enumerate(outcomes):
            for seen in outcome.observations:
                found.add(seen, number < len(outcomes) // 2)
        yield from found.tests(f"{self.setting}: {self.people} people against none", 2 * self.runs)
        for outcome in outcomes if self.setting.trust == CURATOR else ():
            yield from of_ledger(outcome)
