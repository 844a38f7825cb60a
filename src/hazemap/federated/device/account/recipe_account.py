"""May this device answer a recipe, and what does it pay? Checks 1, 2 and 3 of McMillan et al. (2022), section 4.3.

All three come before the query runs. The charge is written in the transaction that keeps the reply, before anything is
sent (`answer_records`).

1. The analysis has enough of its ε and δ left in this period, and reports.
2. So has every field that the query reads, and ε₀ is at most the field's; and so has the whole device.
3. The price that the recipe states holds: what ε₀ and the cohort amount to is no more than it.

Charges count by the names of analyses and fields, under whatever policy they were made: no update gives anything back.
A charge adds the price that the recipe states. By basic composition ε's and δ's add (Dwork et al. 2006); where the
policy counts in zCDP, ρ's add up to the ρ of each (ε, δ). Both are filters: they hold although each price is chosen
with the answers before it in view (Rogers et al. 2016; Feldman and Zrnic 2021).
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction
from functools import lru_cache

from hazemap.federated.device.account.account_head import ForgottenCharges, longest_period
from hazemap.federated.device.account.charges import (
    RecipeCharge,
    ReportRequest,
    Spending,
    charge_time,
    recipe_charges,
    spending,
    summed_recipe_charges,
    window_start,
)
from hazemap.federated.device.account.privacy_account import PrivacyAccount, digits, fields_read
from hazemap.federated.device.store.encrypted_store import EncryptedStore, StoreWrite
from hazemap.federated.recipes.policy import Accounting, AnalysisBudget, DeviceLimit, FieldBudget, ShippedPolicy
from hazemap.federated.recipes.query_class import StreamFieldName
from hazemap.federated.trust.device_tasks import Task
from hazemap.privacy.budget import ApproxDP, ReportPrice

SPILL = Fraction(1, 100)
"""The part of δ that is set aside for the probability that prices in zCDP leave out."""


@dataclass(frozen=True)
class RecipeRefusal:
    """Why a recipe is not answered. `private`: the reason names what others were told, so only the owner reads it."""

    reason: str
    private: bool = False


@dataclass(frozen=True)
class RecipeAccount:
    """The account of one device: a question costs some microseconds for each day, and not for each charge."""

    store: EncryptedStore
    device: int

    def charges(self) -> list[RecipeCharge]:
        """Every charge for a recipe, the oldest first."""
        return recipe_charges(self.store, self.device)

    def refusal(self, request: ReportRequest, policy: ShippedPolicy, now: datetime) -> RecipeRefusal | None:
        """Why this report cannot be paid, or may not be asked at all; None where it can."""
        analysis = policy.analysis(request.analysis)
        if analysis is None:
            return RecipeRefusal(f"this device knows no analysis {request.analysis!r:.80}")
        charges = self._summed(policy, now)
        reasons = (
            *(RecipeRefusal(reason) for reason in _asked(request, analysis)),
            *(RecipeRefusal(reason) for reason in _achieved(request, analysis)),
            *(RecipeRefusal(reason) for reason in _fields(request, policy)),
            *(RecipeRefusal(reason, private=True) for reason in _beyond_study(request, charges)),
            *(RecipeRefusal(reason, private=True) for reason in self._spent(request, policy, analysis, charges, now)),
        )
        return next(iter(reasons), None)

    def campaign_refusal(
        self, task: Task, policy: ShippedPolicy, now: datetime, seen: bool = False
    ) -> RecipeRefusal | None:
        """Why a round of a campaign is not within what the policy lets everything cost, or a field of places.

        `seen` are shuffled reports, which have no ρ (`PrivacyAccount.spent`).
        """
        read = fields_read(task.question.encoder)
        budgets = [budget for each in sorted(read) if (budget := policy.field(each))]
        for budget in budgets:
            if task.randomiser is not None and task.randomiser.replacement > budget.local_epsilon:
                return RecipeRefusal(_too_loud(budget, task.randomiser.replacement))
        charges, campaigns = self._summed(policy, now), PrivacyAccount(self.store, self.device)
        for field in budgets:
            recipes = spending((each for each in charges if field.field in each.fields), policy.days, now)
            both = add_campaigns(recipes, campaigns.spent(policy.days, now, task, field.field, seen), reports=True)
            for reason in _passed(f"the field {field.field}", both, field, policy.days, policy.accounting):
                return RecipeRefusal(reason, private=True)
        for limit in policy.limits:
            both = add_campaigns(spending(charges, limit.days, now), campaigns.spent(limit.days, now, task, seen=seen))
            for reason in _passed("this device", both, limit, limit.days, policy.accounting):
                return RecipeRefusal(reason, private=True)
        return None

    def _summed(self, policy: ShippedPolicy, now: datetime) -> list[RecipeCharge]:
        windows = {policy.days, *(limit.days for limit in policy.limits)}
        return summed_recipe_charges(self.store, self.device, *(window_start(now, days) for days in windows))

    def next_number(self) -> int:
        """The number of the next charge: take it before the account is read, and charge under it."""
        return self.store.next_number("charges", self.device)

    def charge(self, request: ReportRequest, now: datetime, number: int | None = None) -> StoreWrite:
        """The statement that charges a report; it fails if another process has charged this device meanwhile.

        Meanwhile is since its `number` was taken: since now, where none is given.
        """
        number = self.next_number() if number is None else number
        time = charge_time(self.store, self.device, now)
        plain = json.dumps(_charge(request, number, time).to_json()).encode()
        return self.store.added("charges", self.device, number, plain)

    def _spent(
        self,
        request: ReportRequest,
        policy: ShippedPolicy,
        analysis: AnalysisBudget,
        charges: list[RecipeCharge],
        now: datetime,
    ) -> Iterator[str]:
        """Every budget that the charges and this report would pass."""
        campaigns = PrivacyAccount(self.store, self.device)
        return _overdrawn(
            request, policy, analysis, charges, now, lambda days, field: campaigns.spent(days, now, field=field)
        )


def refusal_reasons(request: ReportRequest, policy: ShippedPolicy, now: datetime) -> tuple[str, ...]:
    """Why even a device that has told nothing yet would refuse a report: what a recipe's author can mend."""
    analysis = policy.analysis(request.analysis)
    if analysis is None:
        return (f"this policy knows no analysis {request.analysis!r:.80}",)
    return (
        *_asked(request, analysis),
        *_achieved(request, analysis),
        *_fields(request, policy),
        *_overdrawn(request, policy, analysis, [], now, lambda *_: spending((), 1, now)),
    )


def _overdrawn(
    request: ReportRequest,
    policy: ShippedPolicy,
    analysis: AnalysisBudget,
    charges: list[RecipeCharge],
    now: datetime,
    campaigns: Callable[[int, StreamFieldName | None], Spending],
) -> Iterator[str]:
    """Every budget that these charges and this report would pass; `campaigns` were paid in some days, by field."""
    after = [*charges, _charge(request, 0, now)]
    own = spending((each for each in after if each.analysis == analysis.name), policy.days, now)
    yield from _passed(f"the analysis {analysis.name}", own, analysis, policy.days, policy.accounting)
    for name in sorted(request.fields):
        if budget := policy.field(name):
            read = spending((each for each in after if name in each.fields), policy.days, now)
            both = add_campaigns(read, campaigns(policy.days, name), reports=True)
            yield from _passed(f"the field {name}", both, budget, policy.days, policy.accounting)
    for limit in policy.limits:
        both = add_campaigns(spending(after, limit.days, now), campaigns(limit.days, None))
        yield from _passed("this device", both, limit, limit.days, policy.accounting)


def _charge(request: ReportRequest, number: int, now: datetime) -> RecipeCharge:
    return RecipeCharge(
        number=number,
        analysis=request.analysis,
        fields=request.fields,
        local_epsilon=request.local_epsilon,
        price=request.price,
        recipe=request.recipe.hex(),
        time=now,
        study=request.study,
    )


def _beyond_study(request: ReportRequest, charges: list[RecipeCharge]) -> Iterator[str]:
    """What all reports to a study, sent at whatever time, would cost more than it said at first."""
    if request.whole is None:
        return
    own = [*((each.price, each.times) for each in charges if each.study == request.study), (request.price, 1)]
    epsilon, delta = (
        sum((times * getattr(price, name) for price, times in own), Fraction(0)) for name in ("epsilon", "delta")
    )
    if epsilon > request.whole.epsilon or delta > request.whole.delta:
        yield (
            f"with this report the study {request.study} would cost {ReportPrice(epsilon, delta)}, but it said that it"
            f" would cost {request.whole} in all"
        )


def _asked(request: ReportRequest, analysis: AnalysisBudget) -> Iterator[str]:
    """What the analysis does not admit, whatever was spent."""
    if request.purpose != analysis.purpose:
        yield f"the analysis {analysis.name} was approved for another purpose: {analysis.purpose}"
    if request.carrier not in analysis.carriers:
        known = ", ".join(each.value for each in analysis.carriers)
        yield f"answers of {analysis.name} are carried by {known}, not by {request.carrier.value}"
    if told := sorted(request.cohort_fields - {each.name for each in analysis.cohort_fields}):
        yield f"{told[0]} is no approved cohort field of {analysis.name}: it is not told in the clear"
    if strange := sorted(request.fields - set(analysis.queries.fields)):
        yield f"the analysis {analysis.name} may not read {strange[0]}"


def _achieved(request: ReportRequest, analysis: AnalysisBudget) -> Iterator[str]:
    """Check 3."""
    if request.cohort < analysis.minimum_cohort:
        yield (
            f"sums of {analysis.name} are over at least {analysis.minimum_cohort:,} people; this one would be opened"
            f" with {request.cohort:,}"
        )
    if not request.achieved.within(request.price):
        yield (
            f"this recipe states the price {request.price}, but reports of ε₀ = {digits(request.local_epsilon)} among"
            f" {request.cohort:,} people amount to {request.achieved}"
        )


def _fields(request: ReportRequest, policy: ShippedPolicy) -> Iterator[str]:
    """The part of check 2 that does not depend on what was spent."""
    for name in sorted(request.fields):
        budget = policy.field(name)
        if budget is None:
            yield f"the field {name} has no budget on this device, so no query reads it"
        elif request.local_epsilon > budget.local_epsilon:
            yield _too_loud(budget, request.local_epsilon)


def _too_loud(budget: FieldBudget, asked: Fraction) -> str:
    return (
        f"one report that reads {budget.field} may have ε₀ = {digits(budget.local_epsilon)} at most; this one would"
        f" have {digits(asked)}"
    )


def _passed(
    whose: str, after: Spending, budget: AnalysisBudget | FieldBudget | DeviceLimit, days: int, accounting: Accounting
) -> Iterator[str]:
    """The part of a budget that is passed, in words."""
    if after.reports > budget.reports:
        yield f"{whose} may be told of by {budget.reports:,} reports in {days} days; this would be one more"
    only_epsilon = isinstance(budget, DeviceLimit) and budget.only_epsilon
    if accounting is Accounting.ZCDP and not only_epsilon:
        cap = largest_rho(budget.epsilon, budget.delta)
        if after.spill > budget.delta * SPILL:
            yield f"{whose} may leave out a probability of {digits(budget.delta * SPILL)} from its zCDP in {days} days"
        if after.rho is None:
            yield f"{whose} counts in zCDP, and a price without ρ was asked or paid in {days} days"
        elif after.rho > cap:
            yield (
                f"{whose} may cost ρ = {digits(cap)} in {days} days; with this report it would be {digits(after.rho)}"
            )
        return
    if after.epsilon > budget.epsilon:
        yield (
            f"{whose} may cost ε = {digits(budget.epsilon)} in {days} days; with this report it would be"
            f" {digits(after.epsilon)}"
        )
    if after.delta > budget.delta and not only_epsilon:
        yield (
            f"{whose} may cost δ = {digits(budget.delta)} in {days} days; with this report it would be"
            f" {digits(after.delta)}"
        )


@lru_cache(maxsize=1024, typed=True)
def largest_rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest ρ, rounded down, whose zCDP but for the probability δ/100 implies (ε, δ). 20 ms, once."""
    return ApproxDP(epsilon, delta * (1 - SPILL)).rho if epsilon and delta else Fraction(0)


def add_campaigns(recipes: Spending, campaigns: Spending, reports: bool = False) -> Spending:
    """What recipes and campaigns cost together. Answers to campaigns are `reports` of a field, and no others."""
    return Spending(
        recipes.epsilon + campaigns.epsilon,
        recipes.delta + campaigns.delta,
        None if recipes.rho is None or campaigns.rho is None else recipes.rho + campaigns.rho,
        recipes.spill + campaigns.spill,
        recipes.reports + campaigns.reports * reports,
    )


@dataclass(frozen=True)
class BudgetLine:
    """One line: what is allowed in `days` and what is used, in ε and δ or, where `unit` is ρ, in zCDP.

    >>> BudgetLine("analysis", "ages", 30, "ε", Fraction(1), Fraction(1, 4), Fraction(0), Fraction(0), 2, 1).left
    Fraction(3, 4)
    """

    kind: str
    name: str
    days: int
    unit: str
    allowed: Fraction
    used: Fraction
    delta_allowed: Fraction
    delta_used: Fraction
    reports_allowed: int
    reports_used: int
    local_epsilon: Fraction | None = None

    @property
    def left(self) -> Fraction:
        """What may still be spent; never below 0, also where a cap came down below what was spent."""
        return max(Fraction(0), self.allowed - self.used)

    def to_json(self) -> dict[str, str | int | None]:
        """For machines; exact numbers are texts."""
        return {name: str(value) if isinstance(value, Fraction) else value for name, value in vars(self).items()}


def budget_lines(store: EncryptedStore, device: int, policy: ShippedPolicy, now: datetime) -> Iterator[BudgetLine]:
    """Every line of a device under the policy that it allows: analyses, fields, limits. O(days · lines).

    `now` is the account's time (`account_clock`). Nothing is left while charges were forgotten (`account_head`).
    """
    gone = ForgottenCharges(store, device).within(longest_period([policy]), now)
    for line in _lines(store, device, policy, now):
        yield replace(line, used=max(line.used, line.allowed)) if gone else line


def _lines(store: EncryptedStore, device: int, policy: ShippedPolicy, now: datetime) -> Iterator[BudgetLine]:
    windows = {policy.days, *(limit.days for limit in policy.limits)}
    charges = summed_recipe_charges(store, device, *(window_start(now, days) for days in windows))
    campaigns = PrivacyAccount(store, device)
    for analysis in policy.analyses:
        own = spending((each for each in charges if each.analysis == analysis.name), policy.days, now)
        yield _line("analysis", analysis.name, analysis, own, policy)
    for field in policy.fields:
        read = spending((each for each in charges if field.field in each.fields), policy.days, now)
        both = add_campaigns(read, campaigns.spent(policy.days, now, field=field.field), reports=True)
        yield _line("field", str(field.field), field, both, policy)
    for limit in policy.limits:
        both = add_campaigns(spending(charges, limit.days, now), campaigns.spent(limit.days, now))
        yield _line("device", f"everything in {limit.days:,} days", limit, both, policy)


def _line(
    kind: str,
    name: str,
    budget: AnalysisBudget | FieldBudget | DeviceLimit,
    used: Spending,
    policy: ShippedPolicy,
) -> BudgetLine:
    only_epsilon = isinstance(budget, DeviceLimit) and budget.only_epsilon
    zcdp = policy.accounting is Accounting.ZCDP and not only_epsilon and used.rho is not None
    return BudgetLine(
        kind=kind,
        name=name,
        days=budget.days if isinstance(budget, DeviceLimit) else policy.days,
        unit="ρ" if zcdp else "ε",
        allowed=largest_rho(budget.epsilon, budget.delta) if zcdp else budget.epsilon,
        used=used.rho if zcdp and used.rho is not None else used.epsilon,
        delta_allowed=budget.delta,
        delta_used=used.spill if zcdp else used.delta,
        reports_allowed=budget.reports,
        reports_used=used.reports,
        local_epsilon=budget.local_epsilon if isinstance(budget, FieldBudget) else None,
    )
