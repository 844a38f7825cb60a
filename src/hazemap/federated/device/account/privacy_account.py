"""What a device has paid, in exact rationals, and what it may still pay.

A masked vector is paid before it is sent. One charge is one answer to one round of one campaign: the charge and
the record "this stage is answered" are written in one transaction, so a crash between the two cannot be, and after
any crash the same bytes are sent again for the charge that stands. A session that fails before the device made its
masked vector costs nothing, for nothing of it could have been opened. One that fails later is paid, and the same
round in a new session is paid again: nobody can know that the first vector was not opened.

Pure ε's add (Dwork et al. 2006). The policy's caps are over all that was charged, whatever a server says became of
it. A campaign is also held to its own word, the budget that it said first (`CampaignTerms`): every vector that was
sent counts toward it, in both modes, because nobody but the server knows which of them were opened.

Campaigns ask about rows of places, recipes about streams of events, of which `places` may be one. Both count toward
what a policy lets a field cost (`fields_read`).
"""

import json
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import Any

from hazemap.cells import Leaves, WholeDomain
from hazemap.encoders import Concatenation, CountMinSketch, Counts, Encoder, HaarWavelet
from hazemap.federated.device.account.charges import (
    ChargeSums,
    Spending,
    charge_time,
    spending,
    summed_recipe_charges,
    window_start,
)
from hazemap.federated.device.policy.consent_policy import Policy
from hazemap.federated.device.store.encrypted_store import EncryptedStore, StoreWrite
from hazemap.federated.device.store.event_store import PLACE_FIELDS, PLACES
from hazemap.federated.recipes.query_class import StreamFieldName
from hazemap.federated.trust.device_tasks import Task
from hazemap.privacy.amplification.zcdp_of_sum import SPILL
from hazemap.privacy.budget import ZCDP, ApproxDP, PureDP
from hazemap.tables.contribution_bounding import OneVote
from hazemap.values.boolean_attribute import AttributeCells, BinaryAttribute
from hazemap.values.cells_in_slots import AllSlots, EachSlot
from hazemap.values.timed_tree import TimedTree

EVERY = frozenset(StreamFieldName(PLACES, each.name) for each in PLACE_FIELDS)
"""All that a row holds: what counts as read by a question whose fields are not known."""


def fields_read(encoder: Encoder) -> frozenset[StreamFieldName]:
    """The fields of a person's rows that this question depends on.

    A place is a longitude and a latitude. A row's weight counts by `OneVote` alone, its mark where rows with a mark
    are counted apart, and its time where slots are counted.

    >>> from hazemap.cells import Leaves
    >>> from hazemap.spatial.quadtree import Quadtree
    >>> tree = Quadtree.world(depth=3)
    >>> sorted(map(str, fields_read(Counts(Leaves(tree, tree.children(tree.root))))))
    ['places.lat', 'places.lon']
    """
    match encoder:
        case Concatenation():
            return frozenset().union(*map(fields_read, encoder.parts))
        case CountMinSketch() | HaarWavelet():
            tree = encoder.tree
        case Counts(cells=Leaves() | WholeDomain() | AttributeCells() | AllSlots() | EachSlot() as cells):
            tree = cells.tree
        case _:
            return EVERY
    names = ["lon", "lat"]
    names += ["weight"] * isinstance(encoder.bounding, OneVote) + ["mark"] * isinstance(tree, BinaryAttribute)
    names += ["time"] * isinstance(tree, TimedTree)
    return frozenset(StreamFieldName(PLACES, name) for name in names)


@dataclass(frozen=True)
class DeviceCharge:
    """A price that was paid for one answer, and the fields of places that were read for it.

    Reports that are `seen`, shuffled, cost (ε, δ) by clones, of which `rho` only says the part: they are no ρ-zCDP.

    >>> DeviceCharge("commuters", 1, "00", Fraction(1, 20), datetime.fromisoformat("2026-01-02T03:04:05+00:00")).round
    1
    """

    campaign: str
    round: int
    session: str
    epsilon: Fraction
    time: datetime
    rho: Fraction | None = None
    delta: Fraction = Fraction(0)
    fields: frozenset[StreamFieldName] = EVERY
    seen: bool = False
    times: int = 1
    """How often it was paid, where it stands for several (`ChargeSums`)."""

    def to_json(self) -> dict[str, str | int | list[str]]:
        """As it is sealed."""
        fields: dict[str, str | int | list[str]] = {
            "campaign": self.campaign,
            "round": self.round,
            "session": self.session,
            "epsilon": str(self.epsilon),
            "time": self.time.isoformat(),
            "fields": sorted(map(str, self.fields)),
        }
        if self.seen:
            fields["seen"] = self.seen
        return fields if self.rho is None else fields | {"rho": str(self.rho), "delta": str(self.delta)}


@dataclass(frozen=True)
class PrivacyAccount:
    """The account of one device: a question costs some microseconds for each day, and not for each charge."""

    store: EncryptedStore
    device: int

    def charges(self) -> list[DeviceCharge]:
        """Every charge for a campaign, the oldest first; those for recipes are in `charges`."""
        found = (json.loads(plain) for _, plain in self.store.records("charges", self.device))
        return [_read(each) for each in found if "campaign" in each]

    def summed(self, *since: datetime | None) -> list[DeviceCharge]:
        """The same, summed, for windows from these moments on."""
        found = ChargeSums(self.store, self.device).charges(*since)
        return [_read(fields, times) for _, fields, times in found if "campaign" in fields]

    def spent(
        self,
        days: int,
        now: datetime,
        more: Task | None = None,
        field: StreamFieldName | None = None,
        seen: bool = False,
    ) -> Spending:
        """What campaigns cost in the last `days`, in every unit: a pure ε is (ε, 0), and ρ = ε²/2.

        With the charge of one `more` round, where it is given; only what read a `field`, where one is. No ρ is known
        where reports were `seen`.
        """
        since = window_start(now, days)
        every = self.summed(since) + ([] if more is None else [_charge(more, bytes(32), now, seen)])
        chosen = [each for each in every if field is None or field in each.fields]
        charges = [each for each in chosen if since is None or each.time > since]
        rhos = [each.times * (each.epsilon**2 / 2 if each.rho is None else each.rho) for each in charges]
        shared = sum(each.times for each in charges if each.rho is not None)
        return Spending(
            spent(charges),
            sum({each.campaign: each.delta for each in charges if each.rho is not None}.values(), Fraction(0)),
            None if any(each.seen for each in charges) else sum(rhos, Fraction(0)),
            shared * SPILL,
            sum(each.times for each in charges),
        )

    def answered(self, days: int, now: datetime) -> int:
        """How many rounds and reports were paid in the last `days`."""
        since = window_start(now, days)
        recipes = spending(summed_recipe_charges(self.store, self.device, since), days, now).reports
        return recipes + sum(each.times for each in self.summed(since) if since is None or each.time > since)

    def refusal(self, task: Task, policy: Policy, now: datetime) -> str | None:
        """Why this round cannot be paid; None where it can."""
        since = window_start(now, policy.days)
        charges = self.summed(since)
        price, campaign = self.price(task, charges), spent(charges, campaign=task.campaign)
        if campaign + price > policy.campaign:
            return (
                f"this round costs ε = {digits(price)} and {digits(campaign)} is spent, but one campaign may cost"
                f" {digits(policy.campaign)} in all"
            )
        if isinstance(task.price, ZCDP):
            if reason := _beyond_rho(task, charges) or _beyond_delta(task, policy, charges, now):
                return reason
        elif campaign + price > _whole(task):
            return (
                f"this round costs ε = {digits(price)} and {digits(campaign)} is spent, but this campaign said it"
                f" would cost {digits(_whole(task))} in all"
            )
        recipes = spending(summed_recipe_charges(self.store, self.device, since), policy.days, now).epsilon
        period = spent(charges, since=since) + recipes
        after = spent([*charges, _charge(task, bytes(32), now)], since=since) + recipes
        if after > policy.period:
            return (
                f"this round costs ε = {digits(after - period)} and {digits(period)} was spent in {policy.days} days,"
                f" but all campaigns and recipes together may cost {digits(policy.period)} in that time"
            )
        return None

    def price(self, task: Task, charges: list[DeviceCharge] | None = None) -> Fraction:
        """The ε that a round adds to what was spent; that of its whole campaign, once, where it shares out a ρ."""
        if isinstance(task.price, PureDP):
            return task.price.epsilon
        charges = self.summed() if charges is None else charges
        paid = max((c.epsilon for c in _shared(charges, task.campaign)), default=Fraction(0))
        return max(Fraction(0), _whole(task) - paid)

    def next_number(self) -> int:
        """The number of the next charge: take it before the account is read, and charge under it."""
        return self.store.next_number("charges", self.device)

    def charge(
        self, task: Task, session: bytes, now: datetime, number: int | None = None, seen: bool = False
    ) -> StoreWrite:
        """The statement that charges a round; it fails if another process has charged this device meanwhile.

        Meanwhile is since its `number` was taken: since now, where none is given.
        """
        plain = json.dumps(_charge(task, session, charge_time(self.store, self.device, now), seen).to_json()).encode()
        return self.store.added("charges", self.device, self.next_number() if number is None else number, plain)


def spent(charges: list[DeviceCharge], campaign: str | None = None, since: datetime | None = None) -> Fraction:
    """The sum of charges, of one campaign and from a moment on where they are given.

    A charge of the future, as a clock that was set back sees it, counts. Charges that share out the ρ of their campaign
    each name the ε of the whole; it counts once.
    """
    chosen = [c for c in charges if campaign in (None, c.campaign) and (since is None or c.time > since)]
    whole: dict[str, Fraction] = {}
    for charge in chosen:
        if charge.rho is not None:
            whole[charge.campaign] = max(charge.epsilon, whole.get(charge.campaign, Fraction(0)))
    return sum((c.times * c.epsilon for c in chosen if c.rho is None), sum(whole.values(), Fraction(0)))


def _charge(task: Task, session: bytes, now: datetime, seen: bool = False) -> DeviceCharge:
    price, budget, read = task.price, task.budget, fields_read(task.question.encoder)
    if isinstance(price, ZCDP) and isinstance(budget, ApproxDP):
        return DeviceCharge(
            task.campaign, task.round, session.hex(), budget.epsilon, now, price.rho, budget.delta, read, seen
        )
    epsilon = price.epsilon if isinstance(price, PureDP) else _whole(task)
    return DeviceCharge(task.campaign, task.round, session.hex(), epsilon, now, fields=read)


def _read(record: dict[str, Any], times: int = 1) -> DeviceCharge:
    rationals = {name: Fraction(record[name]) for name in ("epsilon", "rho", "delta") if name in record}
    known = {"fields": frozenset(map(StreamFieldName.parse, record["fields"]))} if "fields" in record else {}
    read: dict[str, Any] = (
        record
        | rationals
        | known
        | {
            "time": datetime.fromisoformat(record["time"]),
            "times": times,
        }
    )
    return DeviceCharge(**read)


def _shared(charges: list[DeviceCharge], campaign: str) -> list[DeviceCharge]:
    return [charge for charge in charges if charge.campaign == campaign and charge.rho is not None]


def _whole(task: Task) -> Fraction:
    """The ε of a campaign. The policy has refused those that name none."""
    return Fraction(0) if isinstance(task.budget, ZCDP) else task.budget.epsilon


def _beyond_rho(task: Task, charges: list[DeviceCharge]) -> str | None:
    """ρ's add, however a campaign's questions depend on its answers (Bun and Steinke 2016, lemma 2.3)."""
    spent_rho = sum(
        (charge.times * (charge.rho or Fraction(0)) for charge in _shared(charges, task.campaign)), Fraction(0)
    )
    if spent_rho + task.price.rho <= task.budget.rho:
        return None
    return (
        f"this round costs ρ = {digits(task.price.rho)} and {digits(spent_rho)} is spent, but this campaign said it"
        f" would cost {task.budget}, which is ρ = {digits(task.budget.rho)}, in all"
    )


def _beyond_delta(task: Task, policy: Policy, charges: list[DeviceCharge], now: datetime) -> str | None:
    since = window_start(now, policy.days)
    deltas = {charge.campaign: charge.delta for charge in charges if since is None or charge.time > since}
    deltas[task.campaign] = task.budget.delta if isinstance(task.budget, ApproxDP) else Fraction(0)
    if (total := sum(deltas.values(), Fraction(0))) <= policy.delta:
        return None
    return (
        f"with this campaign δ = {float(total):.3g} would be spent in {policy.days} days, but all campaigns together"
        f" may cost {float(policy.delta):.3g} in that time"
    )


def digits(epsilon: Fraction) -> str:
    """An ε for people."""
    return f"{float(epsilon):.6g}"
