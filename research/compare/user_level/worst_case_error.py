"""The setting of the worst table there could be: how wrong Array-Averaging is then, by the length of its arrays."""

from dataclasses import dataclass
from typing import ClassVar

from hazemap.errors import InputError
from hazemap.lab.compare.trial_settings import Row
from hazemap.privacy.budget import exact
from research.compare.user_level.mean_mechanisms import Mechanism
from research.compare.user_level.one_cell import OneCell
from research.compare.user_level.published_means import ArrayAveraging, worst_case_error


@dataclass(frozen=True)
class Bound:
    """E(m) = U (1 − Σ min(m_ℓ, m)/Σ m_ℓ) + U m/(ε Σ min(m_ℓ, m)), and the bias in it, in the unit of the value."""

    method: ArrayAveraging

    @property
    def length(self) -> int:
        """The length m of the arrays."""
        return self.method.grouping.most

    @property
    def bias(self) -> float:
        """All that is left out may lie at one end of the range, and all that is kept at the other."""
        some = self.method.contributions
        return self._width * (1 - int(some.kept(self.length).sum()) / some.total)

    def error(self, epsilon: float) -> float:
        """With the mean size of the noise."""
        return self._width * worst_case_error(self.method.contributions, self.length, epsilon)

    @property
    def _width(self) -> float:
        return self.method.quantizer.high - self.method.quantizer.low


@dataclass(frozen=True)
class WorstCase:
    """Nothing is drawn: the largest error over all tables follows from numbers of samples, which are public."""

    places: ClassVar[tuple[type, ...]] = (OneCell,)
    methods: ClassVar[tuple[type, ...]] = (Mechanism,)

    def algorithm(self, place: OneCell, method: Mechanism, epsilon: str) -> Bound:
        """Of Array-Averaging, which it is known of."""
        found = method.algorithm(place.quantizer, place.table.contributions, epsilon)
        if not isinstance(found, ArrayAveraging):
            raise InputError(f"the worst case is known of Array-Averaging, not of {method.name}")
        return Bound(found)

    def measured(self, place: OneCell, method: Mechanism, epsilon: str, repetition: int) -> Row:  # noqa: ARG002
        """The length, the largest error, and the bias in it."""
        bound = self.algorithm(place, method, epsilon)
        error = bound.error(float(exact(epsilon, "ε")))
        return {"draws": 0, "length": bound.length, "worst": error, "worst_bias": bound.bias}
