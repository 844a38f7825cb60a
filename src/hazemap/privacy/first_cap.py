"""The cap that a data set gets with its first charge, unless its steward says that it gets none.

A page that was never charged has nobody's word on how much may be spent. So a run proposes `USUAL` in all, or what the
first release costs if that is more: the cap is set in the transaction of the first charge, before the charge, and
stands in the history of changes like any other.
"""

import shlex
from dataclasses import dataclass, replace
from fractions import Fraction

from hazemap.errors import InputError
from hazemap.privacy.budget import DELTA, USUAL, ZCDP, ApproxDP, Budget, Number, PrivacyAmount, PureDP
from hazemap.privacy.ledger_balance import page_status, pure_by, room_of
from hazemap.privacy.ledger_records import LedgerBalance
from hazemap.privacy.ledger_store import LedgerReads
from hazemap.privacy.privacy_unit import FULL, VALUES_ONLY, Model


@dataclass(frozen=True)
class FirstCap:
    """The cap of a page that has none: `said` by its steward, or the usual one, which only a first charge sets.

    >>> FirstCap.of(PureDP(1), 2, no_cap=False)
    FirstCap(budget=PureDP(epsilon=Fraction(2, 1)), said=True)
    """

    budget: Budget
    said: bool

    @classmethod
    def usual(cls, price: Budget) -> "FirstCap":
        """What is proposed to a data set whose first price this is, in its own terms: `USUAL`, or a larger price."""
        usual: Budget = PureDP(USUAL)
        if not isinstance(price, PureDP):
            usual = ApproxDP(USUAL, price.delta if isinstance(price, ApproxDP) else DELTA)
        return cls(usual if price.rho <= usual.rho else price, said=False)

    @classmethod
    def of(cls, price: Budget, cap: Number | Budget | None, no_cap: bool) -> "FirstCap | None":
        """What a run asks for: a `cap` in the terms of its own budget (ε, or ρ), the usual one, or none."""
        if no_cap and cap is not None:
            raise InputError("either a cap is set, or there is to be none: give one of cap and no_cap")
        if no_cap:
            return None
        if cap is None:
            return cls.usual(price)
        if isinstance(cap, PureDP | ZCDP | ApproxDP):
            return cls(cap, said=True)
        if isinstance(price, PureDP):
            return cls(PureDP(cap), said=True)
        return cls(ApproxDP(cap, price.delta) if isinstance(price, ApproxDP) else ZCDP(cap), said=True)

    def on(self, db: LedgerReads, name: str, model: Model) -> LedgerBalance | None:
        """The page as it is once it has this cap; None where the cap is not for it: it has one, or has paid already.

        A usual cap is not for values-only where the full model has a cap: that one is about whereabouts, too, and only
        a steward can say that people agree. `InputError` for a cap that was said and is not the page's own.
        """
        own, full = page_status(db, name, model), page_status(db, name, FULL)
        has = own or LedgerBalance(name, model, None, None, PrivacyAmount("ε", Fraction(0)), None, 0, "")
        if has.cap is not None:
            if self.said and has.cap != self.budget:
                raise InputError(
                    f"{has.page} has a cap already, {has.cap}, and not {self.budget}: leave the cap out, or change it "
                    f"with `hazemap ledger cap {shlex.quote(name)} …`"
                )
            return None
        if not self.said and (has.charges or (model == VALUES_ONLY and full is not None and full.cap is not None)):
            return None
        if isinstance(self.budget, PureDP) and not pure_by(db, name, model):
            raise InputError(
                f"{has.page} has paid in ρ, which implies no finite pure ε, so no cap in pure ε can hold: give it one "
                "in ρ or in (ε, δ)"
            )
        spent, remaining = room_of(db, name, model, self.budget, self.budget.rho)
        return replace(has, cap=self.budget, spent=spent, remaining=remaining)

    def words(self, dataset: str, options: bool = True) -> str:
        """What is said where the usual cap is set and nobody was asked; with the `options` of a command."""
        other = "Say another with --cap, or none with --no-cap (cap=…, no_cap=True in Python); change it"
        return (
            f"the data set {dataset!r} is charged for the first time, so it gets a cap: all its releases together may "
            f"cost {self.budget}, ever. {other if options else 'Change it'} with "
            f"`hazemap ledger cap {shlex.quote(dataset)} …`"
        )
