"""What a device is shown of a round whose report goes to other servers: the round, who carries it, and its batch."""

import re
from dataclasses import dataclass
from typing import Final

from hazemap.errors import InputError
from hazemap.field_types import check_fields
from hazemap.trust.device_tasks import KNOWN, Task
from hazemap.trust.report_carriers import CARRIERS, ByOneReport, ByShuffler, ByTwoServers

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
        shuffled = isinstance(self.carrier, ByShuffler) and self.carrier.local is not None
        if self.task.recipe is not None or (self.task.randomiser is not None) != shuffled:
            raise InputError("a round of this kind asks for counts, and its carrier says how they are hidden")
        if self.carrier.minimum > self.task.cohort.people:
            raise InputError("a batch is opened with more reports than people are asked")


CARRIED: Final = (CarriedTask, *CARRIERS, *KNOWN)
"""What such a task adds to the codec's closed list."""
