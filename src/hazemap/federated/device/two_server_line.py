"""How a report reaches two servers: sealed in halves for both, and uploaded to the leader until it has it."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np

from hazemap.errors import CodecError, HazemapError, Refused
from hazemap.federated.device.carried_policy import pins
from hazemap.federated.device.consent_policy import Policy
from hazemap.federated.device.dap_report_upload import OutdatedKeys, ReportUpload
from hazemap.federated.device.report_credentials import ReportCredentials
from hazemap.federated.device.report_lines import ReportLines
from hazemap.federated.protocols.dap.client import Client
from hazemap.federated.protocols.dap.hpke_configs import HpkeConfig
from hazemap.federated.protocols.dap.task import Task as DapTask
from hazemap.federated.protocols.dap.task_vdaf import vdaf_of
from hazemap.federated.protocols.dap.upload_messages import Report
from hazemap.federated.protocols.secure_aggregation.coins import Drawn
from hazemap.federated.trust.carried_tasks import CarriedTask
from hazemap.federated.trust.report_carriers import ByOneReport, ByTwoServers
from hazemap.machine_code.arrays import Ints
from hazemap.vdaf.vdaf import Vdaf

_LENGTH: Final = 4


class TwoServerLine:
    """The line of one round. `tasks` are those that follow from it; `measured` what is reported to each."""

    def __init__(
        self,
        carried: CarriedTask,
        tasks: Sequence[DapTask],
        policy: Policy,
        lines: ReportLines,
        credentials: ReportCredentials,
    ) -> None:
        carrier = carried.carrier
        if not isinstance(carrier, ByTwoServers | ByOneReport):
            raise Refused("this report is for other servers")
        self._carrier, self._lines, self._pins = carrier, lines, pins(policy, carried)
        self._each = [(task, _vdaf(task.id, task.configuration)) for task in tasks]
        self._keys: tuple[HpkeConfig, HpkeConfig] | None = None
        self._credentials = credentials

    async def ready(self) -> None:
        """Fetch both servers' keys, or take those that are known, and credentials: before anything is charged."""
        leader, helper = self._carrier.leader, self._carrier.helper
        self._keys = (
            await self._lines.key(leader, self._pins.get(leader, "")),
            await self._lines.key(helper, self._pins.get(helper, "")),
        )
        await self._credentials.fetch([task for task, _ in self._each])

    def parcel(self, measured: Sequence[object], seconds: int, coins: Drawn) -> bytes:
        """The reports' bytes: made once, kept, and sent as they are however often.

        What is measured is bound by `coins` already; here it is all that a report is sealed for.
        """
        if self._keys is None:
            raise Refused("the servers' keys are not known")
        found = []
        for (task, vdaf), measurement in zip(self._each, measured, strict=True):
            client = Client(task, vdaf, *self._keys)
            held = self._credentials.held(task)
            keys = (key.to_bytes() for key in self._keys)
            sealed_for = (task.id, task.configuration, *keys, held.serial, held.issued)
            stream = coins(*sealed_for, b"%d" % task.time_at(seconds))
            report = client.report(measurement, seconds, stream.bytes(client.randomness_bytes), credential=held)
            if not isinstance(report, Report):
                raise Refused("reports of campaigns are of DAP-18")
            found.append(report.to_bytes())
        return b"".join(len(each).to_bytes(_LENGTH, "big") + each for each in found)

    async def sent(self, parcel: bytes) -> None:
        """Upload each report; the leader counts each once. `Unreachable`: later. `Refused`: never."""
        leader, helper = [await self._lines.cache(url) for url in (self._carrier.leader, self._carrier.helper)]
        for (task, vdaf), report in zip(self._each, _reports(parcel), strict=True):
            try:
                await ReportUpload(task, vdaf, leader, helper, _paid, attempts=1).sent(report)
            except OutdatedKeys as error:
                raise Refused(f"{error}; a new report would be charged again, so none is made") from None


class ComputedTasksLine(ABC):
    """A `CarrierLine` to two servers whose tasks are computed here, from the announcement alone."""

    def __init__(
        self, carried: CarriedTask, policy: Policy, lines: ReportLines, credentials: ReportCredentials
    ) -> None:
        self._carried, self._policy, self._lines, self._credentials = carried, policy, lines, credentials
        self._line: TwoServerLine | None = None

    @abstractmethod
    def tasks(self) -> Sequence[DapTask]:
        """The tasks that a report is made for; `HazemapError` where no report can be made."""

    def refusal(self) -> str | None:
        """Why no report answers this question."""
        try:
            self._known()
        except HazemapError as error:
            return str(error)
        return None

    async def ready(self) -> None:
        """Fetch both servers' keys, and the device's credentials."""
        await self._known().ready()

    def sealed(self, measured: Sequence[object], seconds: int, coins: Drawn) -> bytes:
        """The bytes to send of what is reported to each task."""
        return self._known().parcel(measured, seconds, coins)

    async def sent(self, parcel: bytes) -> None:
        """Upload it to the leader."""
        await self._known().sent(parcel)

    def _known(self) -> TwoServerLine:
        if self._line is None:
            self._line = TwoServerLine(self._carried, self.tasks(), self._policy, self._lines, self._credentials)
        return self._line


def one_hot(sums: Ints, sizes: Sequence[int]) -> list[list[bool]]:
    """What is reported to each task of a round: a single 1, or none; none anywhere where sums are anything else.

    >>> one_hot(np.array([0, 1, 0, 0]), (3, 1))
    [[False, True, False], [False]]
    """
    parts = np.split(sums, np.cumsum(sizes)[:-1])
    fits = all(part.min(initial=0) >= 0 and part.sum() <= 1 for part in parts)
    return [((part == 1) & fits).tolist() for part in parts]


async def _paid() -> None:
    """The charge is on the disk, in the transaction that keeps the report."""


@lru_cache(maxsize=32, typed=True)
def _vdaf(task_id: bytes, configuration: bytes) -> Vdaf:
    return vdaf_of(DapTask.read(task_id, configuration))


def _reports(parcel: bytes) -> list[Report]:
    found, at = [], 0
    while at < len(parcel):
        size = int.from_bytes(parcel[at : at + _LENGTH], "big")
        at += _LENGTH + size
        if at > len(parcel):
            raise CodecError("a report that was kept is cut off")
        found.append(Report.from_bytes(parcel[at - size : at]))
    return found
