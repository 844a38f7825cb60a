"""What a device has paid, in exact rationals, and what it may still pay.

A masked vector is paid before it is sent. One charge is one answer to one round of one campaign: the charge and
the record "this stage is answered" are written in one transaction, so a crash between the two cannot be, and after
any crash the same bytes are sent again for the charge that stands. A session that fails before the device made its
masked vector costs nothing, for nothing of it could have been opened. One that fails later is paid, and the same
round in a new session is paid again: nobody can know that the first vector was not opened.

Pure ε's add (Dwork et al. 2006). The policy's caps are over all that was charged, whatever a server says became of
it. A campaign is also held to its own word, the budget that it said first (`campaign_terms`): every vector that was
sent counts toward it, in both modes, because nobody but the server knows which of them were opened.
"""

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction

from hazemap.device.consent_policy import Policy
from hazemap.device.encrypted_store import EncryptedStore, Write
from hazemap.device.recipe_charge import Spending, recipe_charges, spending
from hazemap.trust.device_tasks import Task


@dataclass(frozen=True)
class DeviceCharge:
    """A price that was paid for one answer.

    >>> DeviceCharge("commuters", 1, "00", Fraction(1, 20), datetime.fromisoformat("2026-01-02T03:04:05+00:00")).round
    1
    """

    campaign: str
    round: int
    session: str
    epsilon: Fraction
    time: datetime


@dataclass(frozen=True)
class PrivacyAccount:
    """The account of one device: O(charges) for every question, some microseconds each."""

    store: EncryptedStore
    device: int

    def charges(self) -> list[DeviceCharge]:
        """Every charge for a campaign, the oldest first; those for recipes are in `recipe_charge`."""
        found = (json.loads(plain) for _, plain in self.store.records("charges", self.device))
        return [
            DeviceCharge(**{**each, "epsilon": Fraction(each["epsilon"]), "time": datetime.fromisoformat(each["time"])})
            for each in found
            if "campaign" in each
        ]

    def spent(self, days: int, now: datetime) -> Spending:
        """What campaigns cost in the last `days`, in every unit: a pure ε is (ε, 0), and ρ = ε²/2."""
        charges = [each.epsilon for each in self.charges() if each.time > now - timedelta(days=days)]
        rho = sum((epsilon**2 / 2 for epsilon in charges), Fraction(0))
        return Spending(sum(charges, Fraction(0)), Fraction(0), rho, Fraction(0), len(charges))

    def refusal(self, task: Task, policy: Policy, now: datetime) -> str | None:
        """Why this round cannot be paid; None where it can."""
        price, charges = task.price.epsilon, self.charges()
        campaign = spent(charges, campaign=task.campaign)
        if campaign + price > policy.campaign:
            return (
                f"this round costs ε = {shown(price)} and {shown(campaign)} is spent, but one campaign may cost"
                f" {shown(policy.campaign)} in all"
            )
        if campaign + price > task.budget.epsilon:
            return (
                f"this round costs ε = {shown(price)} and {shown(campaign)} is spent, but this campaign said it"
                f" would cost {shown(task.budget.epsilon)} in all"
            )
        recipes = spending(recipe_charges(self.store, self.device), policy.days, now).epsilon
        period = spent(charges, since=now - timedelta(days=policy.days)) + recipes
        if period + price > policy.period:
            return (
                f"this round costs ε = {shown(price)} and {shown(period)} was spent in {policy.days} days, but all"
                f" campaigns and recipes together may cost {shown(policy.period)} in that time"
            )
        return None

    def charge(self, task: Task, session: bytes, now: datetime) -> Write:
        """The statement that charges a round; it fails if another process has charged this device meanwhile."""
        number = self.store.next_number("charges", self.device)
        charge = {
            "campaign": task.campaign,
            "round": task.round,
            "session": session.hex(),
            "epsilon": str(task.price.epsilon),
            "time": now.isoformat(),
        }
        return self.store.added("charges", self.device, number, json.dumps(charge).encode())


def spent(charges: list[DeviceCharge], campaign: str | None = None, since: datetime | None = None) -> Fraction:
    """The sum of charges, of one campaign and from a moment on where they are given.

    A charge of the future, as a clock that was set back sees it, counts.
    """
    chosen = (c for c in charges if campaign in (None, c.campaign) and (since is None or c.time > since))
    return sum((c.epsilon for c in chosen), Fraction(0))


def shown(epsilon: Fraction) -> str:
    """An ε for people."""
    return f"{float(epsilon):.6g}"
