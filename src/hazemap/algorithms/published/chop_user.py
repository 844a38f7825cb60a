"""CHOP-USER: removes people from some cells, so that a release of many cells costs everyone less.

Cells that are released with ε each cost a person ε for every cell they are in; the release costs the most that it costs
anybody, K · ε. Rameshwar and Tandon (2024) leave people out where that hurts least, as long as no cell's worst-case
error exceeds what the worst cell's noise alone was before.

Privacy model: VALUES ONLY. Who is in which cell with how many samples is public, and nothing else is looked at.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hazemap.errors import InputError
from hazemap.machine_code.arrays import Ints


@dataclass(frozen=True, eq=False)
class CellVisits:
    """Who is in which cell with how many samples: a row for each pair, none twice; `person` and `cell` count from 0.

    >>> CellVisits(np.array([0, 0, 1]), np.array([0, 1, 1]), np.array([5, 2, 9])).cells_of_people
    array([2, 1])
    """

    person: Ints
    cell: Ints
    samples: Ints

    def __post_init__(self) -> None:
        for name in ("person", "cell", "samples"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.int64))
        if not len(self.person) or not self.person.shape == self.cell.shape == self.samples.shape:
            raise InputError("there must be at least one pair of a person and a cell, each with its number of samples")
        if min(self.person.min(), self.cell.min()) < 0 or self.samples.min() < 1:
            raise InputError("numbers of people and cells start at 0, and every pair needs at least one sample")
        order = np.lexsort((self.cell, self.person))
        person, cell = self.person[order], self.cell[order]
        if ((person[1:] == person[:-1]) & (cell[1:] == cell[:-1])).any():
            raise InputError("a pair of a person and a cell occurs twice: add up its samples first")

    @classmethod
    def counted(cls, person: NDArray[Any], cell: NDArray[Any]) -> "CellVisits":
        """From rows: any codes of people and of cells. O(rows log rows)."""
        people, cells = (np.unique(codes, return_inverse=True)[1].astype(np.int64) for codes in (person, cell))
        width = int(cells.max(initial=0)) + 1
        pairs, samples = np.unique(people * width + cells, return_counts=True)
        return cls(pairs // width, pairs % width, samples)

    @property
    def cells_of_people(self) -> Ints:
        """In how many cells each person is, G_ℓ."""
        return np.bincount(self.person)


@dataclass(frozen=True)
class ChopUserQuery:
    """What is released of each cell with ε: the mean of values in a range of width U, perhaps their variance as well.

    The worst-case error of a cell is the sum over both of the largest bias and the mean size of its noise; each is
    given an equal part of ε.

    >>> ChopUserQuery(65.0).error(samples=100, kept=90, most=10, epsilon=1.0)
    13.722222222222221
    """

    width: float
    variance: bool = False

    def error(self, samples: int, kept: int, most: int, epsilon: float) -> float:
        """In units of the value (and, for the variance, of its square, as in the paper)."""
        parts = 2 if self.variance else 1
        error = self.width * float(mean_bias(kept, samples) + parts * mean_sensitivity(kept, most) / Fraction(epsilon))
        if self.variance:
            spread = variance_bias(kept, samples) + parts * variance_sensitivity(kept, most) / Fraction(epsilon)
            error += self.width**2 * float(spread)
        return error


class ChopUserResult(NamedTuple):
    """Which pairs are kept, bool[pairs]; K before and after; and the largest worst-case error before and after."""

    kept: NDArray[np.bool_]
    before: int
    after: int
    threshold: float
    error: float


def chop_user(presence: CellVisits, asked: ChopUserQuery, epsilon: float) -> ChopUserResult:
    """Leave those out who are in most cells, each where the error is least afterwards, until that would exceed it.

    Only people who are in as many cells as anybody, K, are left out of one: to leave out others would lower no price.
    Once all of them are in K − 1, K falls; what was left out for the last K that could not be reached is put back.
    O(pairs · cells by which K falls), and O(pairs log pairs) for one person in far more cells than others.

    >>> pairs = CellVisits(np.array([0, 0, 1, 2, 3, 4]), np.array([0, 1, 0, 0, 1, 1]), np.array([50, 50, 5, 5, 5, 5]))
    >>> chopped = chop_user(pairs, ChopUserQuery(1.0), epsilon=0.1)
    >>> chopped.before, chopped.after, chopped.error <= chopped.threshold
    (2, 1, True)
    """
    from hazemap.algorithms.published.chop_user_kernels import chop

    if not epsilon > 0 or not asked.width > 0:
        raise InputError(f"epsilon and the width of the range must be positive, not {epsilon} and {asked.width}")
    by_cell = np.lexsort((-presence.samples, presence.cell))  # within a cell, those with most samples first
    by_person = np.argsort(presence.person, kind="stable")
    cells, people = int(presence.cell.max()) + 1, int(presence.person.max()) + 1
    starts = np.concatenate([[0], np.cumsum(np.bincount(presence.cell, minlength=cells))])
    firsts = np.concatenate([[0], np.cumsum(np.bincount(presence.person, minlength=people))])
    order = np.argsort(-np.diff(firsts), kind="stable")
    kept, threshold, error = chop(
        presence.cell,
        presence.samples,
        by_cell,
        starts,
        by_person,
        firsts,
        order,
        float(asked.width),
        asked.variance,
        float(epsilon),
    )
    after = int(np.bincount(presence.person[kept]).max())
    return ChopUserResult(kept, int(presence.cells_of_people.max()), after, threshold, error)


QUARTER = Fraction(1, 4)


def mean_sensitivity(kept: int, most: int) -> Fraction:
    """Γ*/ΣΓ, where `kept` = ΣΓ and `most` = Γ* = max Γ.

    >>> mean_sensitivity(kept=10, most=4)
    Fraction(2, 5)
    """
    _some(kept, most, kept)
    return Fraction(most, kept)


def variance_sensitivity(kept: int, most: int) -> Fraction:
    """Γ*(ΣΓ − Γ*)/(ΣΓ)² if ΣΓ > 2Γ*; otherwise the largest variance there is: of ΣΓ values at both ends of the range.

    >>> variance_sensitivity(kept=10, most=4), variance_sensitivity(kept=10, most=6), variance_sensitivity(3, 2)
    (Fraction(6, 25), Fraction(1, 4), Fraction(2, 9))
    """
    _some(kept, most, kept)
    return Fraction(most * (kept - most), kept**2) if kept > 2 * most else _largest_variance(kept)


def mean_bias(kept: int, samples: int) -> Fraction:
    """1 − ΣΓ/Σm: all that is left out may lie at one end, and all that is kept at the other.

    >>> mean_bias(kept=9, samples=12)
    Fraction(1, 4)
    """
    _some(kept, 1, samples)
    return 1 - Fraction(kept, samples)


def variance_bias(kept: int, samples: int) -> Fraction:
    """0 if all is kept; ΣΓ(Σm − ΣΓ)/(Σm)² if 2ΣΓ > Σm; otherwise the largest variance of Σm values.

    >>> variance_bias(kept=12, samples=12), variance_bias(kept=9, samples=12), variance_bias(kept=2, samples=12)
    (Fraction(0, 1), Fraction(3, 16), Fraction(1, 4))
    """
    _some(kept, 1, samples)
    if kept == samples:
        return Fraction(0)
    return Fraction(kept * (samples - kept), samples**2) if 2 * kept > samples else _largest_variance(samples)


def _largest_variance(samples: int) -> Fraction:
    return QUARTER if samples % 2 == 0 else QUARTER * (1 - Fraction(1, samples**2))


def _some(kept: int, most: int, samples: int) -> None:
    if not 1 <= most <= kept <= samples:
        raise InputError(f"of {samples} samples 1 or more are kept, not {kept}, of one person {most}")
