"""How each carrier's reports are made and sent: by the type of the carrier that an announcement names."""

from collections.abc import Callable, Mapping
from typing import Protocol

from hazemap.engines.memory import MemoryTable
from hazemap.errors import Refused
from hazemap.federated.device.consent_policy import Policy
from hazemap.federated.device.report_credentials import ReportCredentials
from hazemap.federated.device.report_lines import ReportLines
from hazemap.federated.device.round_report_line import RoundReportLine
from hazemap.federated.device.whole_tree_line import WholeTreeLine
from hazemap.federated.protocols.secure_aggregation.coins import Drawn
from hazemap.federated.trust.carried_tasks import CarriedTask
from hazemap.federated.trust.report_carriers import ByOneReport, ByTwoServers


class CarrierLine(Protocol):
    """One round's line to those who carry its reports. Made for each announcement: it does nothing yet."""

    def refusal(self) -> str | None:
        """Why the announcement does not follow from its own terms, in words; None where it does."""

    async def ready(self) -> None:
        """Fetch what is needed: before the charge. `Unreachable`: later. `Refused`: never."""

    def parcel(self, rows: Callable[[], MemoryTable], seconds: int, coins: Drawn) -> tuple[bytes, str, str | None]:
        """The bytes to send, of a person's rows, at `seconds`; what the log says; what kept rows from being counted.

        `coins` of the announcement are drawn by what is drawn for, and by all that is said and sealed.

        It must not fail, whatever the rows are: silence would tell. Its length says nothing about them.
        """

    async def sent(self, parcel: bytes) -> None:
        """Send it until it is there, once or as often as needed: it counts once. Errors as for `ready`."""


LINES: Mapping[type, Callable[[CarriedTask, Policy, ReportLines, ReportCredentials], CarrierLine]] = {
    ByTwoServers: RoundReportLine,
    ByOneReport: WholeTreeLine,
}
"""The line's maker, by the carrier's type."""


def carrier_line(
    carried: CarriedTask, policy: Policy, lines: ReportLines, credentials: ReportCredentials
) -> CarrierLine:
    """The line of a round; `Refused` where this device has none to such a carrier."""
    made = LINES.get(type(carried.carrier))
    if made is None:
        raise Refused(f"this device cannot report by {carried.carrier.trust!r} yet")
    return made(carried, policy, lines, credentials)
