"""What a device has paid for reports to recipes, and sums of it: over analyses, fields, and days.

Charges lie beside those of campaigns, in one sequence: of two processes that charge a device at the same time only one
succeeds, so a limit over everything holds.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any, NamedTuple

from hazemap.federated.device.charge_sums import ChargeSums
from hazemap.federated.device.encrypted_store import EncryptedStore
from hazemap.federated.recipes.query_class import StreamFieldName
from hazemap.privacy.report_price import ReportPrice

KIND = "recipe"


@dataclass(frozen=True)
class RecipeCharge:
    """A price that was paid for one report, by the names of its analysis and of every field that it read.

    `schedule` is the digest of a schedule of rounds whose price is that of all of them together; None for a report that
    was paid by itself. `number` tells charges apart.

    >>> paid = ReportPrice(Fraction(1, 2), Fraction(1, 10**6))
    >>> age = frozenset({StreamFieldName("profile", "age")})
    >>> now = datetime.fromisoformat("2026-01-02T03:04:05Z")
    >>> spending([RecipeCharge(1, "next_word", age, Fraction(2), paid, "00", now)], 30, now).epsilon
    Fraction(1, 2)
    """

    number: int
    analysis: str
    fields: frozenset[StreamFieldName]
    local_epsilon: Fraction
    price: ReportPrice
    recipe: str
    time: datetime
    schedule: str | None = None
    round: int = 1
    study: str = ""
    times: int = 1
    """How often it was paid, where it stands for several (`charge_sums`)."""

    def to_json(self) -> dict[str, Any]:
        """As it is sealed, and for machines."""
        return {
            "kind": KIND,
            "analysis": self.analysis,
            "fields": sorted(map(str, self.fields)),
            "local_epsilon": str(self.local_epsilon),
            "epsilon": str(self.price.epsilon),
            "delta": str(self.price.delta),
            "rho": None if self.price.rho is None else str(self.price.rho),
            "spill": str(self.price.spill),
            "recipe": self.recipe,
            "time": self.time.isoformat(),
            "schedule": self.schedule,
            "round": self.round,
            "study": self.study,
        }


class Spending(NamedTuple):
    """A sum of charges: `rho` is None where a price without one is among them; `spill` goes with it."""

    epsilon: Fraction
    delta: Fraction
    rho: Fraction | None
    spill: Fraction
    reports: int


def recipe_charges(store: EncryptedStore, device: int) -> list[RecipeCharge]:
    """Every charge of a device for recipes, the oldest first."""
    found = ((number, json.loads(plain)) for number, plain in store.records("charges", device))
    return [_read(number, fields) for number, fields in found if fields.get("kind") == KIND]


def summed_recipe_charges(store: EncryptedStore, device: int, *since: datetime | None) -> list[RecipeCharge]:
    """The same, summed, for windows from these moments on."""
    found = ChargeSums(store, device).charges(*since)
    return [_read(number, fields, times) for number, fields, times in found if fields.get("kind") == KIND]


def _read(number: int, found: dict[str, Any], times: int = 1) -> RecipeCharge:
    rho = None if found["rho"] is None else Fraction(found["rho"])
    return RecipeCharge(
        number=number,
        analysis=found["analysis"],
        fields=frozenset(map(StreamFieldName.parse, found["fields"])),
        local_epsilon=Fraction(found["local_epsilon"]),
        price=ReportPrice(Fraction(found["epsilon"]), Fraction(found["delta"]), rho, Fraction(found["spill"])),
        recipe=found["recipe"],
        time=datetime.fromisoformat(found["time"]),
        schedule=found["schedule"],
        round=found["round"],
        study=found.get("study", ""),
        times=times,
    )


def spending(charges: Iterable[RecipeCharge], days: int, now: datetime) -> Spending:
    """What those of the charges cost together that are of the last `days`.

    A charge counts until exactly `days` later, and one dated in the future counts. The price of a schedule is that of
    all its rounds, so it counts once, and whole, as long as any of its rounds counts.
    """
    since = before(now, days)
    chosen = [each for each in charges if since is None or each.time > since]
    alone = [(each.price, each.times) for each in chosen if each.schedule is None]
    together = {each.schedule: (each.price, 1) for each in chosen if each.schedule is not None}
    prices = [*alone, *together.values()]
    known = [(*found, times) for price, times in prices if (found := price.in_zcdp) is not None]
    return Spending(
        epsilon=sum((times * price.epsilon for price, times in prices), Fraction(0)),
        delta=sum((times * price.delta for price, times in prices), Fraction(0)),
        rho=sum((times * rho for rho, _, times in known), Fraction(0)) if len(known) == len(prices) else None,
        spill=sum((times * spill for _, spill, times in known), Fraction(0)),
        reports=sum(each.times for each in chosen),
    )


def dated(store: EncryptedStore, device: int, now: datetime) -> datetime:
    """The time of a charge that is made now: no earlier than that of any charge before it, whatever the clock says.

    Otherwise what is paid while a clock is set back would be forgotten when it is put right.
    """
    last = ChargeSums(store, device).last()
    return now if last is None else max(now, last)


def before(now: datetime, days: int) -> datetime | None:
    """The moment from which on charges of the last `days` count; None where all do."""
    try:
        return now - timedelta(days=days)
    except OverflowError:  # before the year 1: everything counts
        return None
