"""What becomes of the people asked in one round: who answered, and which shards could be opened."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hazemap.errors import NotOpened
from hazemap.privacy.mechanisms import DiscreteLaplace
from hazemap.queries import Answer
from hazemap.trust.cohorts import Cohort


@dataclass(frozen=True)
class Participation:
    """For each shard how many were asked and how many answered; public, like all counts of devices.

    >>> turnout = Participation(Cohort(30, 10, dropout=Fraction(1, 5), corrupt=Fraction(0)), (10, 9, 4))
    >>> turnout.opened, turnout.lost, turnout.people, turnout.parts
    (2, 1, 19, Fraction(19, 8))
    """

    cohort: Cohort
    answered: tuple[int, ...]

    @property
    def opened(self) -> int:
        """How many shards were opened."""
        return len(self._open)

    @property
    def lost(self) -> int:
        """How many were not: too few answered, and nothing was learned of anybody in them."""
        return len(self.answered) - self.opened

    @property
    def people(self) -> int:
        """Whom the sums are over."""
        return sum(answered for _, answered in self._open)

    @property
    def by_honest(self) -> dict[int, int]:
        """People in the opened shards, by the number N that shares of their noise were made for."""
        people: dict[int, int] = {}
        for size, answered in self._open:
            honest = self.cohort.honest(size)
            people[honest] = people.get(honest, 0) + answered
        return people

    @property
    def parts(self) -> Fraction:
        """Σ people/N: how many times the noise that one curator would add is in the sum."""
        return sum((Fraction(people, honest) for honest, people in self.by_honest.items()), Fraction(0))

    def answer(self, sums: NDArray[np.int64], scale: Fraction) -> Answer:
        """The sums as an answer, with the law of the noise that is really in them.

        A sum of a·N Pólya shares of 1/N has a times the second and the fourth cumulant of one discrete Laplace number.
        """
        one, parts = DiscreteLaplace(scale), float(self.parts)
        return Answer(sums, np.array([one.stddev * parts**0.5]), one.kurtosis / parts, self.people)

    def need(self) -> None:
        """Raise `NotOpened` if no shard was."""
        if not self.opened:
            raise NotOpened(
                f"none of {len(self.answered)} shards could be opened: too few of their people answered; nothing was "
                "learned, and the round is paid for. Allow for more dropouts, or ask when more devices are there"
            )

    @property
    def _open(self) -> list[tuple[int, int]]:
        shards = zip(self.cohort.shards, self.answered, strict=True)
        return [(size, answered) for size, answered in shards if answered >= self.cohort.survivors(size)]
