"""Requests for reports under the example's policy: for tests of what a device pays."""

from datetime import UTC, datetime
from fractions import Fraction
from hashlib import sha256

from hazemap.federated.device.account.charges import ReportRequest
from hazemap.federated.recipes.policy import Carrier
from hazemap.federated.recipes.policy_document import example
from hazemap.federated.recipes.query_class import StreamFieldName
from hazemap.privacy.budget import ReportPrice

NOW = datetime(2026, 3, 1, tzinfo=UTC)
NGRAM, PERPLEXITY, AGE = (
    StreamFieldName.parse(each) for each in ("keyboard.ngram", "keyboard.perplexity", "profile.age")
)
SMALL = Fraction(1, 10**8)


def price(epsilon, delta=SMALL, **changes):
    return ReportPrice(Fraction(epsilon), Fraction(delta), **changes)


def request(epsilon="0.1", fields=(NGRAM,), **changes):
    """A report that costs as much as its recipe says."""
    paid = changes.pop("price", None) or price(epsilon)
    plain = {
        "analysis": "next_word",
        "purpose": example().analyses[0].purpose,
        "recipe": sha256(b"recipe").digest(),
        "fields": frozenset(fields),
        "local_epsilon": Fraction(2),
        "cohort": 1_000,
        "price": paid,
        "achieved": paid,
        "carrier": Carrier.TWO_SERVERS,
        "audience": sha256(b"audience").digest(),
    }
    return ReportRequest(**{**plain, **changes})
