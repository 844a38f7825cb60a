"""A round's report for two servers: a single 1, or none, in each of its vectors; of a recipe, randomised bits."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from hazemap.engines.memory import MemoryTable
from hazemap.federated.device.two_server_line import ComputedTasksLine, one_hot
from hazemap.federated.protocols.dap.task import Task
from hazemap.federated.protocols.secure_aggregation.coins import Drawn
from hazemap.federated.trust.checked_contribution import contribution
from hazemap.federated.trust.one_hot_reports import vectors
from hazemap.federated.trust.two_server_tasks import round_noise, round_tasks


class RoundReportLine(ComputedTasksLine):
    """The `CarrierLine` of one round."""

    def tasks(self) -> Sequence[Task]:
        """One for each vector."""
        return round_tasks(self._carried, self._credentials.issuer)

    def parcel(self, rows: Callable[[], MemoryTable], seconds: int, coins: Drawn) -> tuple[bytes, str, str | None]:
        """A report for each vector."""
        encoder, carrier = self._carried.task.question.encoder, self._carried.carrier
        sums, trouble = contribution(encoder, rows)
        measured = one_hot(sums, vectors(encoder))
        noise = round_noise(self._carried).each
        said = (
            f"your rows touch {int(np.count_nonzero(sums)):,} of the {encoder.size:,} numbers; in two halves, each "
            f"unreadable alone; each server adds noise of standard deviation {noise.stddev:.4g}, and opens sums of "
            f"{carrier.minimum:,} reports or more"
        )
        return self.sealed(measured, seconds, partial(coins, b"parcel", sums.tobytes())), said, trouble
