"""The setting of the worst table there could be: how wrong Array-Averaging is then, by the length of its arrays."""

from dataclasses import dataclass
from typing import Any, ClassVar

from hazemap.algorithms.means import ArrayAveraging, worst_case_error
from hazemap.compare.settings import Row
from hazemap.compare.users.mechanisms import Mechanism
from hazemap.compare.users.one_cell import OneCell
from hazemap.errors import InputError
from hazemap.privacy.budget import exact


@dataclass(frozen=True)
class WorstCase:
    """Nothing is drawn: E(m) = U (1 − Σ min(m_ℓ, m)/Σ m_ℓ) + U m/(ε Σ min(m_ℓ, m)) follows from numbers of samples."""

    places: ClassVar[tuple[type, ...]] = (OneCell,)
    methods: ClassVar[tuple[type, ...]] = (Mechanism,)

    def algorithm(self, place: OneCell, method: Mechanism, epsilon: str) -> Any:
        """Array-Averaging, which the bound is of."""
        found = method.algorithm(place.ruler, place.table.contributions, epsilon)
        if not isinstance(found, ArrayAveraging):
            raise InputError(f"the worst case is known of Array-Averaging, not of {method.name}")
        return found

    def measured(self, place: OneCell, method: Mechanism, epsilon: str, repetition: int) -> Row:  # noqa: ARG002
        """The length, and the largest error over all tables with these numbers of samples; of it, the bias."""
        length = int(self.algorithm(place, method, epsilon).grouping.most)
        some, width = place.table.contributions, place.ruler.high - place.ruler.low
        error = width * worst_case_error(some, length, float(exact(epsilon, "ε")))
        bias = width * (1 - int(some.kept(length).sum()) / some.total)
        return {"draws": 0, "length": length, "worst": error, "worst_bias": bias}
