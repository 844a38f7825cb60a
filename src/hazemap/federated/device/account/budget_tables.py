"""What is left of every budget, as a device sees it: tables 1a and 1b of McMillan et al. (2022), and its limits."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction

from hazemap.federated.device.account.account_head import ForgottenCharges, longest_period
from hazemap.federated.device.account.charges import Spending, before, spending, summed_recipe_charges
from hazemap.federated.device.account.privacy_account import PrivacyAccount
from hazemap.federated.device.account.recipe_account import rho_of, with_campaigns
from hazemap.federated.device.store.encrypted_store import EncryptedStore
from hazemap.federated.recipes.policy import Accounting, AnalysisBudget, DeviceLimit, FieldBudget, ShippedPolicy


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
    charges = summed_recipe_charges(store, device, *(before(now, days) for days in windows))
    campaigns = PrivacyAccount(store, device)
    for analysis in policy.analyses:
        own = spending((each for each in charges if each.analysis == analysis.name), policy.days, now)
        yield _line("analysis", analysis.name, analysis, own, policy)
    for field in policy.fields:
        read = spending((each for each in charges if field.field in each.fields), policy.days, now)
        both = with_campaigns(read, campaigns.spent(policy.days, now, field=field.field), reports=True)
        yield _line("field", str(field.field), field, both, policy)
    for limit in policy.limits:
        both = with_campaigns(spending(charges, limit.days, now), campaigns.spent(limit.days, now))
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
        allowed=rho_of(budget.epsilon, budget.delta) if zcdp else budget.epsilon,
        used=used.rho if zcdp and used.rho is not None else used.epsilon,
        delta_allowed=budget.delta,
        delta_used=used.spill if zcdp else used.delta,
        reports_allowed=budget.reports,
        reports_used=used.reports,
        local_epsilon=budget.local_epsilon if isinstance(budget, FieldBudget) else None,
    )
