"""Who is left out of which cells so that a release of all costs less: nobody, or whom CHOP-USER chooses."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hazemap.algorithms.published.chop_user import CellVisits, ChopUserQuery, ChopUserResult, chop_user
from hazemap.lab.compare.trial_settings import Row
from hazemap.privacy.budget import exact
from research.compare.user_level.many_cells import ManyCells


@dataclass(frozen=True)
class Everybody:
    """Nobody is left out."""

    asked: ChopUserQuery

    def chopped(self, presence: CellVisits, epsilon: float) -> ChopUserResult:
        """All pairs; the largest error is that of noise alone. O(cells)."""
        total = np.bincount(presence.cell, presence.samples).astype(np.int64)
        most = np.zeros(len(total), np.int64)
        np.maximum.at(most, presence.cell, presence.samples)
        there = np.flatnonzero(total)
        pairs = zip(total[there].tolist(), most[there].tolist(), strict=True)
        error = max(self.asked.error(kept, kept, largest, epsilon) for kept, largest in pairs)
        number = int(presence.cells_of_people.max())
        return ChopUserResult(np.ones(len(presence.cell), dtype=np.bool_), number, number, error, error)


@dataclass(frozen=True)
class ChopUser:
    """Those are left out who are in most cells, as long as no error rises above the largest that there was."""

    asked: ChopUserQuery

    def chopped(self, presence: CellVisits, epsilon: float) -> ChopUserResult:
        """As `chop_user` has it."""
        return chop_user(presence, self.asked, epsilon)


@dataclass(frozen=True)
class Suppression:
    """One of the two, by the name that tables and figures have for it."""

    name: str
    kind: type[Everybody] | type[ChopUser]
    at: float | None = None

    @property
    def spelled(self) -> str:
        """Its name."""
        return self.name

    @property
    def settings(self) -> dict[str, Any]:
        """It has none."""
        return {}


EVERYBODY = Suppression("everybody stays", Everybody)
CHOP_USER = Suppression("CHOP-USER", ChopUser)


@dataclass(frozen=True)
class EveryCell:
    """All cells of so many people or more are released with ε each: 1 statistic, the mean, or 2, with the variance.

    Nothing is drawn: who is in which cells is public.
    """

    places: ClassVar[tuple[type, ...]] = (ManyCells,)
    methods: ClassVar[tuple[type, ...]] = (Suppression,)

    least: int = 1
    statistics: int = 1

    def algorithm(self, place: ManyCells, method: Suppression, epsilon: str) -> Any:  # noqa: ARG002 - none needs ε
        """Of this range, and these statistics."""
        return method.kind(ChopUserQuery(place.width, variance=self.statistics > 1))

    def measured(self, place: ManyCells, method: Suppression, epsilon: str, repetition: int) -> Row:  # noqa: ARG002
        """What the release costs, K·ε, and its largest worst-case error."""
        amount, presence = float(exact(epsilon, "ε")), place.of_at_least(self.least).presence
        found = self.algorithm(place, method, epsilon).chopped(presence, amount)
        return {
            "draws": 0,
            "factor": found.after,
            "price": found.after * amount,
            "worst": found.error,
            "left_out": int((~found.kept).sum()),
        }
