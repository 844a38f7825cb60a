"""What a release would cost and leave, before a steward says yes; and the key with which the yes is given, once.

The key fits one order and one state of the data set's page in the ledger. Whoever has looked before somebody else was
charged, in another tab or in a terminal, has an old key: they look again before they spend.
"""

import hmac
import json
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from hazemap.errors import CapExceeded, InputError
from hazemap.execution.output_lock import free_place
from hazemap.federated.service.access_tokens import fresh, same
from hazemap.privacy.budget import Budget, PrivacyAmount, PureDP
from hazemap.privacy.ledger import Ledger, data_set_name
from hazemap.privacy.ledger_facts import balance_facts
from hazemap.privacy.ledger_records import LedgerBalance
from hazemap.privacy.privacy_unit import FULL
from hazemap.specs.parsing import warning_about
from hazemap.specs.release_spec import ReleaseSpec
from hazemap.specs.statistics_spec import StatisticsSpec
from hazemap.studio.ledger_view import said
from hazemap.studio.order_form import Order, release_of
from hazemap.studio.refusals import refused, saying
from hazemap.studio.root_folder import free
from hazemap.studio.stewards import Steward


@dataclass(frozen=True)
class ReleaseReview:
    """An order that could be carried out now, what it costs whom, and the key to do it."""

    spec: ReleaseSpec | StatisticsSpec
    dataset: str
    page: LedgerBalance | None
    left: PrivacyAmount | None
    key: str

    def only_for(self, key: str) -> None:
        """`InputError` where a yes was given to something else."""
        if not same(key, self.key):
            raise refused(InputError, "ledgerChanged")

    def to_json(self) -> dict[str, Any]:
        """For the browser."""
        return {
            "dataset": self.dataset,
            "price": str(self.spec.budget),
            "page": self.page and balance_facts(self.page),
            "said": None if self.page is None else said(self.page),
            "left_then": self.left and str(self.left),
            "caution": warning_about(self.spec.budget),
            "key": self.key,
        }


@dataclass(frozen=True)
class SpendingKeys:
    """Makes the keys of orders; those of another process fit nothing."""

    _secret: str = field(default_factory=fresh, repr=False)

    def reviewed(self, steward: Steward, order: Order) -> ReleaseReview:
        """Look an order over without opening its table. Raises what the release would raise before it begins.

        That is `InputError` for what can be mended, and `CapExceeded` where the data set may not pay.
        """
        spec = release_of(order, steward.root)
        free(goal := steward.root.inside(str(order["output"])))
        free_place(goal, spec)
        name = data_set_name(spec.dataset)
        page = steward.ledger.status(name, FULL)
        try:
            steward.ledger.check(spec.dataset, spec.budget, FULL)
        except CapExceeded as error:
            if page is not None and page.remaining is not None:
                price = {"dataset": name, "left": page.remaining, "cap": page.cap, "price": spec.budget}
                saying(error, "overCap", price, more=True)
            raise
        left = None if page is None or page.remaining is None else _left(page.remaining, spec.budget)
        return ReleaseReview(spec, name, page, left, self._key(steward, order, name))

    def _key(self, steward: Steward, order: Order, dataset: str) -> str:
        state = json.dumps([steward.name, sorted(order.items()), _state(steward.ledger, dataset)])
        return hmac.new(self._secret.encode(), state.encode("utf-8", "surrogatepass"), "sha256").hexdigest()


def _state(ledger: Ledger, dataset: str) -> list[Any]:
    """What changes with every charge of a data set and with every change of a cap."""
    return [[status.model, status.charges, str(status.cap)] for status in ledger.datasets() if status.name == dataset]


def _left(remaining: PrivacyAmount, price: Budget) -> PrivacyAmount:
    """What is left after a charge that there is room for."""
    cost = price.epsilon if remaining.measure == "ε" and isinstance(price, PureDP) else price.rho
    return PrivacyAmount(remaining.measure, max(remaining.value - cost, Fraction(0)))
