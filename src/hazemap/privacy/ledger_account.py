"""An account: a data set's page in the ledger, opened for one run."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from hazemap.errors import LedgerError
from hazemap.privacy.budget import Budget, PrivacyAmount
from hazemap.privacy.first_cap import FirstCap
from hazemap.privacy.ledger_records import Charge, Occasion
from hazemap.privacy.privacy_unit import Unit

if TYPE_CHECKING:
    from hazemap.privacy.ledger import Ledger


class Foreseen(NamedTuple):
    """What a page will have paid in all with a charge, and the cap that it gets with it, if it gets one."""

    total: PrivacyAmount
    cap: FirstCap | None


@dataclass(frozen=True)
class LedgerAccount:
    """A data set's page in the ledger, opened for one run: it pays once. A page that has no cap gets `cap` with it."""

    ledger: "Ledger"
    dataset: str
    what: str
    unit: Unit
    run: str | None = None
    occasion: Occasion | None = None
    cap: FirstCap | None = None
    _charges: list[Charge] = field(default_factory=list, init=False, repr=False, compare=False)

    def charge(self, price: Budget) -> None:
        """Pay, for good; raises `CapExceeded`, `OtherUnit` or `LedgerError`, and then the run must not begin."""
        if self._charges:
            raise LedgerError(
                f"this account has paid for its run of {self.dataset!r} already (charge {self.receipt}): "
                "open another account for another run"
            )
        self._charges.append(
            self.ledger.charge(self.dataset, price, self.what, self.unit, self.run, self.occasion, self.cap)
        )

    def check(self, price: Budget) -> Foreseen:
        """Raise now what a charge would; nothing is paid or promised, others may spend what is left."""
        return self.ledger.check(self.dataset, price, self.unit, self.occasion, self.cap)

    @property
    def receipt(self) -> int | None:
        """The id of the charge, once it is paid."""
        return self._charges[0].id if self._charges else None

    @property
    def latest(self) -> Charge:
        """The last charge, which says what the data set's people have paid in all."""
        if not self._charges:
            raise LedgerError("a run has not paid, so nothing of it may be asked or published")
        return self._charges[-1]
