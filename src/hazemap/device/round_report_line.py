"""A round's report for two servers: a single 1, or none, in each of its vectors; of a recipe, randomised bits."""

from collections.abc import Callable, Sequence

import numpy as np

from hazemap.device.consent_policy import Policy
from hazemap.device.report_lines import ReportLines
from hazemap.device.two_server_line import TwoServerLine, one_hot
from hazemap.engines.memory import MemoryTable
from hazemap.errors import HazemapError
from hazemap.privacy.random_stream import Stream
from hazemap.trust.carried_tasks import CarriedTask
from hazemap.trust.checked_contribution import contribution
from hazemap.trust.one_hot_reports import vectors
from hazemap.trust.two_server_tasks import round_noise, round_tasks


class RoundReportLine:
    """The `CarrierLine` of one round. Its tasks are computed here, from the announcement alone."""

    def __init__(self, carried: CarriedTask, policy: Policy, lines: ReportLines) -> None:
        self._carried, self._policy, self._lines = carried, policy, lines
        self._line: TwoServerLine | None = None

    def refusal(self) -> str | None:
        """Why no report of a single 1 answers this question."""
        try:
            self._known()
        except HazemapError as error:
            return str(error)
        return None

    async def ready(self) -> None:
        """Fetch both servers' keys."""
        await self._known().ready()

    def parcel(self, rows: Callable[[], MemoryTable], seconds: int, stream: Stream) -> tuple[bytes, str, str | None]:
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
        return self.sealed(measured, seconds, stream), said, trouble

    def sealed(self, measured: Sequence[Sequence[bool]], seconds: int, stream: Stream) -> bytes:
        """The bytes to send of what is reported to each task."""
        return self._known().parcel(measured, seconds, stream)

    async def sent(self, parcel: bytes) -> None:
        """Upload it to the leader."""
        await self._known().sent(parcel)

    def _known(self) -> TwoServerLine:
        if self._line is None:
            self._line = TwoServerLine(self._carried, round_tasks(self._carried), self._policy, self._lines)
        return self._line
