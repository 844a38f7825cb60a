"""What a device is shown of a round whose report goes to other servers: the round, who carries it, and its batch."""

import re
from dataclasses import dataclass
from typing import Final

from hazemap.errors import InputError
from hazemap.federated.recipes.policy import Carrier
from hazemap.federated.recipes.recipe import Recipe
from hazemap.federated.trust.device_tasks import KNOWN, Task
from hazemap.federated.trust.recipe_terms import check_carried_by
from hazemap.federated.trust.report_carriers import CARRIERS, ByOneReport, ByShuffler, ByTwoServers
from hazemap.field_types import check_fields

ANNOUNCED: Final = 0
"""The stage of such a round, where stages of secure sums begin with 1."""
LATEST: Final = 1 << 40
"""Seconds after the epoch."""


@dataclass(frozen=True)
class CarriedTask:
    """A round and its carrier. `batch` is 32 random bytes in hexadecimal digits; it began at `begun` (epoch seconds).

    Everything else that is secret from nobody follows from these by computation: tasks of two servers, their noise
    and their batches. So a device computes it, and believes nobody.
    """

    task: Task
    carrier: ByTwoServers | ByOneReport | ByShuffler
    batch: str
    begun: int

    def __post_init__(self) -> None:
        check_fields(self)
        if not re.fullmatch("[0-9a-f]{64}", self.batch) or not 0 <= self.begun <= LATEST:
            raise InputError("a round has a batch of 64 hexadecimal digits, and a time")
        if self.task.recipe is not None:
            self._check_recipe(self.task.recipe)
        elif (self.task.randomiser is not None) != (
            isinstance(self.carrier, ByShuffler) and self.carrier.local is not None
        ):
            raise InputError("a round of this kind asks for counts, and its carrier says how they are hidden")
        if self.carrier.minimum > self.task.cohort.people:
            raise InputError("a batch is opened with more reports than people are asked")

    def _check_recipe(self, recipe: Recipe) -> None:
        if not isinstance(self.carrier, ByTwoServers):
            raise InputError(
                f"reports to the recipe {recipe.id} are summed by secure sums or by two servers, not by "
                f"{self.carrier.trust!r}: what people randomise is seen by nobody before it is summed"
            )
        check_carried_by(recipe, Carrier.TWO_SERVERS)


CARRIED: Final = (CarriedTask, *CARRIERS, *KNOWN)
"""What such a task adds to the codec's closed list."""
