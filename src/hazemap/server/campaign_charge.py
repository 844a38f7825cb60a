"""Who pays for a campaign: once, however often the server is started again."""

from dataclasses import dataclass

from hazemap.errors import InputError, LedgerError
from hazemap.privacy.budget import Budget
from hazemap.privacy.ledger import Ledger
from hazemap.privacy.ledger_records import LedgerCharge
from hazemap.privacy.privacy_unit import DEVICE
from hazemap.privacy.statement import Statement


@dataclass(frozen=True)
class CampaignCharge:
    """A data set's page in the ledger, opened for one campaign whose name in the ledger nobody else's charge has.

    The charge is in the ledger before anything of the campaign is in the server's store. A server that is killed
    between the two finds the charge of its campaign when it is started again, and does not pay a second time.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from hazemap.privacy.budget import PureDP
    >>> with TemporaryDirectory() as folder:
    ...     ledger = Ledger(Path(folder) / "ledger.sqlite")
    ...     for _ in range(2):
    ...         CampaignCharge(ledger, "city", "campaign commuters 5f3a").charge(PureDP(1))
    ...     len(ledger.history("city"))
    1
    """

    ledger: Ledger
    dataset: str
    what: str

    def charge(self, price: Budget) -> None:
        """Pay, unless this campaign has; `CapExceeded` or `LedgerError`, and then it must not begin."""
        paid = self.record
        if paid is None:
            self.ledger.charge(self.dataset, price, self.what, DEVICE)
        elif paid.charge.price != price:
            raise LedgerError(f"the ledger says that {self.what!r} paid {paid.charge.price}, but it costs {price}")

    @property
    def record(self) -> LedgerCharge | None:
        """This campaign's charge, if it was made."""
        try:
            history = self.ledger.history(self.dataset)
        except InputError:  # a data set that the ledger does not know has paid nothing
            return None
        return next((record for record in history if record.charge.what == self.what), None)

    def released(self, statement: Statement, file: str) -> None:
        """Note what it was spent on, if that is not yet noted."""
        paid = self.record
        if paid is None:
            raise LedgerError(f"{self.what!r} ended without having paid, so its result must not be published")
        if not paid.released:
            self.ledger.released(paid.charge.id, statement, file)
