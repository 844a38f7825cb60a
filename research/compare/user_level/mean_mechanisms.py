"""The methods for the mean of one cell that are compared."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from hazemap.algorithms.published.user_level_means import BalancedMean, median_length, most_arrays, worst_case_length
from hazemap.privacy.budget import exact
from hazemap.tables.sample_grouping import BestFit, Filling, SampleCounts, WrapAround
from hazemap.values.quantizer import Quantizer
from research.compare.user_level.published_means import ArrayAveraging, LevyMean, PlainMean, QuantileMean

Length = Callable[[SampleCounts, float], int]
"""The length of arrays from numbers of samples and ε: both are public."""


def median(contributions: SampleCounts, epsilon: float) -> int:  # noqa: ARG001 - others need ε
    """The median of m_ℓ."""
    return median_length(contributions)


def fullest(contributions: SampleCounts, epsilon: float) -> int:  # noqa: ARG001 - others need ε
    """The m of the largest K√m."""
    return most_arrays(contributions)


@dataclass(frozen=True)
class Mechanism:
    """A mean by its name: the class of the method and, where it makes arrays, their length and how they are filled.

    >>> import numpy as np
    >>> PLAIN.algorithm(Quantizer(0, 65), SampleCounts(np.array([3, 10])), "1").most
    10
    >>> ARRAYS[0].name, ARRAYS[0].algorithm(Quantizer(0, 65), SampleCounts(np.array([3, 9, 10])), "1").grouping.most
    ('Array-Averaging, median', 9)
    """

    name: str
    kind: Callable[..., Any]
    length: Length | int | None = None
    grouping: type[BestFit] | type[WrapAround] = BestFit
    filling: Filling = Filling.MEANS
    changes: tuple[tuple[str, Any], ...] = ()
    at: float | None = None

    @property
    def spelled(self) -> str:
        """Its name."""
        return self.name

    @property
    def settings(self) -> dict[str, Any]:
        """A name says all."""
        return {}

    def of(self, length: Length | int, name: str) -> "Mechanism":
        """The same with arrays of another length."""
        return replace(self, length=length, name=name)

    def placed(self, at: float) -> "Mechanism":
        """The same at this place along the axis of a figure."""
        return replace(self, at=at)

    def algorithm(self, quantizer: Quantizer, contributions: SampleCounts, epsilon: str) -> Any:
        """The method for one cell."""
        if self.length is None:
            return self.kind(quantizer, contributions, **dict(self.changes))
        length = self.length if isinstance(self.length, int) else self.length(contributions, float(exact(epsilon, "ε")))
        return self.kind(quantizer, contributions, self.grouping(length, self.filling), **dict(self.changes))


LENGTHS: tuple[tuple[str, Length | int], ...] = (
    ("median", median),
    ("K√m", fullest),
    ("m = 114", 114),
    ("worst case", worst_case_length),
)
"""The ways to choose m: of the paper, the fixed length that its authors' code was measured with, and its optimum."""


def _of_all_lengths(one: Mechanism) -> tuple[Mechanism, ...]:
    return tuple(one.of(length, f"{one.name}, {name}") for name, length in LENGTHS)


PLAIN = Mechanism("plain Laplace", PlainMean)
ARRAYS = _of_all_lengths(Mechanism("Array-Averaging", ArrayAveraging, 1))
WRAPPED = _of_all_lengths(Mechanism("Array-Averaging, WrapAround", ArrayAveraging, 1, WrapAround))
OF_SAMPLES = _of_all_lengths(Mechanism("Array-Averaging of samples", ArrayAveraging, 1, filling=Filling.SAMPLES))
LEVY = _of_all_lengths(Mechanism("Levy", LevyMean, 1))
QUANTILE = _of_all_lengths(Mechanism("Quantile", QuantileMean, 1))
QUANTILE_OF_EPSILON = _of_all_lengths(Mechanism("ε-dependent Quantile", QuantileMean, 1, changes=(("rank", None),)))
LEVY_WRAPPED = Mechanism("Levy, WrapAround, K√m", LevyMean, fullest, WrapAround)
QUANTILE_WRAPPED = Mechanism("Quantile, WrapAround, K√m", QuantileMean, fullest, WrapAround)
BALANCED = Mechanism("balanced", BalancedMean)
TWICE = Mechanism("balanced, twice the reach", BalancedMean, changes=(("reach", Fraction(1, 8)),))
HALF = Mechanism("balanced, half the reach", BalancedMean, changes=(("reach", Fraction(1, 32)),))

MECHANISMS = (
    PLAIN,
    *(*ARRAYS, *WRAPPED, *OF_SAMPLES),
    *(*LEVY, LEVY_WRAPPED),
    *(*QUANTILE, *QUANTILE_OF_EPSILON, QUANTILE_WRAPPED),
    *(BALANCED, TWICE, HALF),
)
"""Every method for the mean of one cell: theirs, then ours."""
