"""From a request for a report to its reply: look for the reply, judge, make, charge, note; send only then.

Everything that a step changes comes as statements for one transaction, which the caller commits before it sends
anything, as for campaigns (`task_handler`). The order is part of the privacy argument:

1. a reply that was made for this very request and audience is sent again, free;
2. the account says whether the report may be asked and can be paid, before the query runs;
3. the report is made, randomised, and divided into what is sent;
4. the charge, the reply and the line of the log are on the disk;
5. the reply is sent.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from hazemap.device.account_clock import AccountClock
from hazemap.device.activity_log import ActivityLog
from hazemap.device.encrypted_store import EncryptedStore, Write
from hazemap.device.recipe_account import RecipeAccount
from hazemap.device.recipe_log_entry import RecipeLogEntry
from hazemap.device.report_records import ReportRecords
from hazemap.device.report_request import ReportRequest
from hazemap.recipes.policy import ShippedPolicy

NOTHING_LEFT = "this device has nothing left to spend on this recipe"
"""What a server is told where the reason would say what others were told."""


@dataclass(frozen=True)
class MadeReport:
    """A report as it was randomised, the parts of it that leave the device, and the bytes of the whole reply."""

    report: bytes = field(repr=False)
    shares: Sequence[bytes] = field(repr=False)
    reply: bytes = field(repr=False)


@dataclass(frozen=True)
class ReportStep:
    """Commit the writes; then send the reply, or the refusal."""

    writes: tuple[Write, ...] = ()
    reply: bytes | None = field(default=None, repr=False)
    refusal: str | None = None


@dataclass(frozen=True)
class ReportCharging:
    """One device at its store, under the policy that it allows (`allowed_policy`)."""

    store: EncryptedStore
    device: int
    policy: ShippedPolicy

    def step(
        self, request: ReportRequest, name: str, query: str, make: Callable[[], MadeReport], now: datetime
    ) -> ReportStep:
        """What to do about a request; `name` and `query` are for the log.

        `make` runs the query and randomises. It is called once everything else has been checked, and must not fail,
        whatever the person's events are: silence would tell. `FileError` on commit: another process was faster.
        """
        records = ReportRecords(self.store, self.device)
        known = records.find(request.key)
        if known is not None:
            return ReportStep(reply=known)
        account, log = RecipeAccount(self.store, self.device), ActivityLog(self.store, self.device)
        number, paid_as = log.next_number(), account.next_number()
        paid_at = AccountClock(self.store).reading(now)
        refused = account.refusal(request, self.policy, paid_at.now)
        if refused is not None:
            line = RecipeLogEntry.about(request, name, query, f"refused: {refused.reason}", now)
            return ReportStep((log.added(number, line),), refusal=NOTHING_LEFT if refused.private else refused.reason)
        charge = account.charge(request, paid_at.now, paid_as)
        made = make()
        line = RecipeLogEntry.about(request, name, query, "answered", now)
        line = line.answered(request.price, made.report, made.shares)
        writes = (charge, *paid_at.writes, records.kept(request.key, made.reply), log.added(number, line))
        return ReportStep(writes, made.reply)
