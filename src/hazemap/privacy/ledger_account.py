"""An account: a data set's page in the ledger, opened for one run."""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from hazemap.errors import LedgerError
from hazemap.privacy.budget import Budget, PrivacyAmount, make_up
from hazemap.privacy.first_cap import FirstCap
from hazemap.privacy.ledger_records import Charge, Occasion
from hazemap.privacy.privacy_unit import Unit

if TYPE_CHECKING:
    from hazemap.privacy.ledger import Ledger

REST = ":rest"
"""What the name of a run ends in whose charge is the rest of another's."""


class Foreseen(NamedTuple):
    """What a page will have paid in all with a charge, and the cap that it gets with it, if it gets one."""

    total: PrivacyAmount
    cap: FirstCap | None


@dataclass(frozen=True)
class LedgerAccount:
    """A data set's page in the ledger, opened for one run: it pays once. A page that has no cap gets `cap` with it.

    With a `whole` it pays that at once, or in two parts that are exactly the whole: the first only where there is room
    for both, the second, of the run "RUN:rest", once, however often a run is taken up again. `paid` is what it has paid
    in an earlier process.
    """

    ledger: "Ledger"
    dataset: str
    what: str
    unit: Unit
    run: str | None = None
    occasion: Occasion | None = None
    cap: FirstCap | None = None
    whole: Budget | None = None
    paid: Charge | None = None
    _charges: list[Charge] = field(default_factory=list, init=False, repr=False, compare=False)

    def charge(self, price: Budget) -> None:
        """Pay, for good; raises `CapExceeded`, `OtherUnit` or `LedgerError`, and then the run must not begin."""
        parts = [*(each.price for each in self._charges), price]
        if self.whole is not None and len(parts) == 2 and make_up(parts, self.whole):
            self._charges.append(self._rest(price))
            return
        if self._charges:
            raise LedgerError(
                f"this account has paid for its run of {self.dataset!r} already (charge {self.receipt}): "
                "open another account for another run"
            )
        self._charges.append(self._first(price))

    def _first(self, price: Budget) -> Charge:
        if self.paid is not None:
            return self.paid
        what = self.what if self.whole in (None, price) else f"{self.what}: the look"
        asked = (self.dataset, price, what, self.unit, self.run, self.occasion, self.cap, self.whole)
        return self.ledger.charge(*asked)

    def _rest(self, price: Budget) -> Charge:
        run = f"{self.run}{REST}"
        for record in self.ledger.history(self.dataset):
            if record.run == run:  # paid just before a crash
                return replace(record.charge, total=self.ledger.paid_by(record.charge))
        what = f"{self.what}: the rest, after the look (charge {self.receipt})"
        # A pure ε of two parts is ε-private as a whole, but not ρ-private with the sum of ρ(ε/10) and ρ(9ε/10): the
        # rest may spend what the look left. So both together are booked with the ρ of the whole.
        rho = None if self.whole is None else self.whole.rho - self._charges[0].price.rho
        return self.ledger.charge(self.dataset, price, what, self.unit, run, self.occasion, rho=rho)

    def check(self, price: Budget) -> Foreseen:
        """Raise now what a charge would; nothing is paid or promised, others may spend what is left."""
        return self.ledger.check(self.dataset, price, self.unit, self.occasion, self.cap)

    @property
    def receipt(self) -> int | None:
        """The id of the charge, once it is paid."""
        return self._charges[0].id if self._charges else None

    @property
    def charges(self) -> tuple[Charge, ...]:
        """What it has paid, the first before the rest."""
        return tuple(self._charges)

    @property
    def later(self) -> tuple[int, ...]:
        """The ids of the charges after the first."""
        return tuple(each.id for each in self._charges[1:])

    @property
    def latest(self) -> Charge:
        """The last charge, which says what the data set's people have paid in all."""
        if not self._charges:
            raise LedgerError("a run has not paid, so nothing of it may be asked or published")
        return self._charges[-1]
