"""The charges of a device, summed as they grow, and those for reports to recipes over analyses, fields and days.

Charges of one day that cost the same, of the same campaign or recipe, are one entry with a number of times. Every sum,
greatest value and count of an account is over such entries what it is over the charges themselves: exact. A window
whose edge lies within a day has that day's charges one by one.

The sums are sealed in the store and written with every 64th charge, in its transaction. They follow from the charges up
to a number, and the later ones are read one by one: so after any crash, and whichever of two processes wrote them, a
look gives what the charges give. It reads one record, some charges, and those of a day for each edge.

Charges for reports lie beside those of campaigns, in one sequence: of two processes that charge a device at the same
time only one succeeds, so a limit over everything holds.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, NamedTuple

from hazemap.errors import InputError
from hazemap.federated.device.store.encrypted_store import EncryptedStore, StoreWrite
from hazemap.federated.recipes.policy import Carrier
from hazemap.federated.recipes.query_class import StreamFieldName
from hazemap.federated.recipes.recipe import Recipe
from hazemap.field_types import check_fields
from hazemap.privacy.budget import ReportPrice

EVERY: Final = 64
"""Charges that are read one by one before they are summed."""

_OWN: Final = ("time", "session", "round")
"""What charges that cost the same differ in."""


class SummedCharge(NamedTuple):
    """A charge as it was sealed, or several without what is their own; the number is that of the last."""

    number: int
    fields: dict[str, Any]
    times: int


class _Day(NamedTuple):
    """The charges of a day, from number `first` to `last`: when the first and the last were, and what they cost."""

    first: int
    last: int
    earliest: datetime
    latest: datetime
    shapes: tuple[tuple[str, int], ...]

    def cut(self, moment: datetime | None) -> bool:
        """Whether a window that begins after this moment has some of the charges, and not all."""
        return moment is not None and self.earliest <= moment < self.latest


@dataclass(frozen=True)
class ChargeSums:
    """The sums of one device: a look costs O(days · kinds of charges), and not O(charges)."""

    store: EncryptedStore
    device: int

    def charges(self, *since: datetime | None) -> list[SummedCharge]:
        """What was charged, the oldest first, so that windows from these moments on may be cut out of it by `time`."""
        through, days = self._kept()
        found: list[SummedCharge] = []
        for day in days:
            if any(day.cut(moment) for moment in since):
                found += self._rows(day.first, day.last)
                continue
            when = {"time": day.earliest.isoformat(), "session": ""}
            found += (
                SummedCharge(day.last, {"round": 0} | json.loads(text) | when, times) for text, times in day.shapes
            )
        return found + list(self._rows(through + 1))

    def writes(self) -> tuple[StoreWrite, ...]:
        """The statement that sums what was charged since the last time; none as long as it is little."""
        through, days = self._kept()
        rows = list(self._rows(through + 1))
        if len(rows) < EVERY:
            return ()
        plain = json.dumps([_written(day) for day in _grown(days, rows)]).encode()
        sealed = self.store.seal("sums", self.device, rows[-1].number, plain)
        return (StoreWrite("INSERT OR REPLACE INTO sums VALUES (?, ?, ?)", (self.device, rows[-1].number, sealed)),)

    def last(self) -> datetime | None:
        """The time of the last charge: that of none is later (`charge_time`)."""
        rows = list(self._rows(self.store.next_number("charges", self.device) - 1))
        return datetime.fromisoformat(rows[-1].fields["time"]) if rows else None

    def _kept(self) -> tuple[int, tuple[_Day, ...]]:
        for through, sealed in self.store.read("SELECT through, sealed FROM sums WHERE device = ?", self.device):
            return through, _read_days(self.store.unseal("sums", self.device, through, sealed))
        return 0, ()

    def _rows(self, first: int, last: int = 1 << 62) -> Iterator[SummedCharge]:
        sql = "SELECT sequence, sealed FROM charges WHERE device = ? AND sequence BETWEEN ? AND ? ORDER BY sequence"
        for number, sealed in self.store.read(sql, self.device, first, last):
            yield SummedCharge(number, json.loads(self.store.unseal("charges", self.device, number, sealed)), 1)


def _grown(days: tuple[_Day, ...], rows: list[SummedCharge]) -> Iterator[_Day]:
    """The days with more charges: those of one day, one after the other, are together."""
    last: _Day | None = None
    for day in (*days, *(_alone(row) for row in rows)):
        if last is not None and last.latest.date() == day.earliest.date():
            shapes = Counter(dict(last.shapes))
            shapes.update(dict(day.shapes))
            ends = min(last.earliest, day.earliest), max(last.latest, day.latest)
            last = _Day(last.first, day.last, *ends, tuple(shapes.items()))
            continue
        if last is not None:
            yield last
        last = day
    if last is not None:
        yield last


def _alone(row: SummedCharge) -> _Day:
    time = datetime.fromisoformat(row.fields["time"])
    shape = {name: value for name, value in row.fields.items() if name not in _OWN}
    return _Day(row.number, row.number, time, time, ((json.dumps(shape, sort_keys=True), 1),))


def _written(day: _Day) -> list[Any]:
    return [day.first, day.last, day.earliest.isoformat(), day.latest.isoformat(), day.shapes]


@lru_cache(maxsize=64, typed=True)
def _read_days(plain: bytes) -> tuple[_Day, ...]:
    found = []
    for first, last, earliest, latest, shapes in json.loads(plain):
        begins, ends = datetime.fromisoformat(earliest), datetime.fromisoformat(latest)
        found.append(_Day(first, last, begins, ends, tuple((text, times) for text, times in shapes)))
    return tuple(found)


@dataclass(frozen=True)
class ReportRequest:
    """One report that a device is asked for.

    `recipe` is the digest of the recipe, `fields` what its query truly reads (the database says so, not the recipe),
    `cohort` the least number of people whose sum is opened. `price` is what the recipe states, and what is paid;
    `achieved` what the device has computed for ε₀ and the cohort (`privacy.amplification`). `whole` is what its `study`
    said that all its rounds cost together. `audience` names to whom the report goes: a digest of the roster and the
    shard, or of the servers and the batch.
    """

    analysis: str
    purpose: str
    recipe: bytes
    fields: frozenset[StreamFieldName]
    local_epsilon: Fraction
    cohort: int
    price: ReportPrice
    achieved: ReportPrice
    carrier: Carrier
    audience: bytes
    cohort_fields: frozenset[str] = frozenset()
    study: str = ""
    whole: ReportPrice | None = None

    def __post_init__(self) -> None:
        if len(self.recipe) != 32 or len(self.audience) != 32:
            raise InputError("a recipe and an audience are named by a digest of 32 bytes")
        if type(self.local_epsilon) is not Fraction or self.local_epsilon < 0:
            raise InputError("ε₀ of a report is a fraction of 0 or more")
        if type(self.cohort) is not int or self.cohort < 1:
            raise InputError("a cohort is a whole number of at least 1")
        check_fields(self.price)
        check_fields(self.achieved)

    @classmethod
    def of(
        cls, recipe: Recipe, touched: Iterable[StreamFieldName], achieved: ReportPrice, audience: bytes
    ) -> "ReportRequest":
        """A report to a recipe; `touched` is the sandbox's word on what its query reads.

        The ρ that is paid is the one that the device has computed: a recipe states none.
        """
        return cls(
            analysis=recipe.analysis,
            purpose=recipe.purpose,
            recipe=bytes.fromhex(recipe.digest),
            fields=frozenset(touched),
            local_epsilon=recipe.local_epsilon,
            cohort=recipe.minimum_cohort,
            price=ReportPrice(recipe.epsilon, recipe.delta, achieved.rho, achieved.spill),
            achieved=achieved,
            carrier=recipe.carrier,
            audience=audience,
            cohort_fields=frozenset(each.name for each in recipe.cohort),
        )


KIND = "recipe"


@dataclass(frozen=True)
class RecipeCharge:
    """A price that was paid for one report, by the names of its analysis and of every field that it read.

    `number` tells charges apart.

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
    study: str = ""
    times: int = 1
    """How often it was paid, where it stands for several (`ChargeSums`)."""

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
            "schedule": None,
            "round": 1,
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
    return [_recipe_charge(number, fields) for number, fields in found if fields.get("kind") == KIND]


def summed_recipe_charges(store: EncryptedStore, device: int, *since: datetime | None) -> list[RecipeCharge]:
    """The same, summed, for windows from these moments on."""
    found = ChargeSums(store, device).charges(*since)
    return [_recipe_charge(number, fields, times) for number, fields, times in found if fields.get("kind") == KIND]


def _recipe_charge(number: int, found: dict[str, Any], times: int = 1) -> RecipeCharge:
    rho = None if found["rho"] is None else Fraction(found["rho"])
    return RecipeCharge(
        number=number,
        analysis=found["analysis"],
        fields=frozenset(map(StreamFieldName.parse, found["fields"])),
        local_epsilon=Fraction(found["local_epsilon"]),
        price=ReportPrice(Fraction(found["epsilon"]), Fraction(found["delta"]), rho, Fraction(found["spill"])),
        recipe=found["recipe"],
        time=datetime.fromisoformat(found["time"]),
        study=found.get("study", ""),
        times=times,
    )


def spending(charges: Iterable[RecipeCharge], days: int, now: datetime) -> Spending:
    """What those of the charges cost together that are of the last `days`.

    A charge counts until exactly `days` later, and one dated in the future counts.
    """
    since = window_start(now, days)
    chosen = [each for each in charges if since is None or each.time > since]
    prices = [(each.price, each.times) for each in chosen]
    known = [(*found, times) for price, times in prices if (found := price.in_zcdp) is not None]
    return Spending(
        epsilon=sum((times * price.epsilon for price, times in prices), Fraction(0)),
        delta=sum((times * price.delta for price, times in prices), Fraction(0)),
        rho=sum((times * rho for rho, _, times in known), Fraction(0)) if len(known) == len(prices) else None,
        spill=sum((times * spill for _, spill, times in known), Fraction(0)),
        reports=sum(each.times for each in chosen),
    )


def charge_time(store: EncryptedStore, device: int, now: datetime) -> datetime:
    """The time of a charge that is made now: no earlier than that of any charge before it, whatever the clock says.

    Otherwise what is paid while a clock is set back would be forgotten when it is put right.
    """
    last = ChargeSums(store, device).last()
    return now if last is None else max(now, last)


def window_start(now: datetime, days: int) -> datetime | None:
    """The moment from which on charges of the last `days` count; None where all do."""
    try:
        return now - timedelta(days=days)
    except OverflowError:  # before the year 1: everything counts
        return None
