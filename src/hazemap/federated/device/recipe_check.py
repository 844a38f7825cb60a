"""Whether a device with a shipped policy would answer a recipe: found without any event."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from hazemap.errors import Refused
from hazemap.federated.device.query_sandbox import AdmittedQuery, QuerySandbox
from hazemap.federated.device.recipe_account import reasons_against
from hazemap.federated.device.report_request import ReportRequest
from hazemap.federated.recipes.policy import Accounting, Carrier, ShippedPolicy
from hazemap.federated.recipes.recipe import Recipe
from hazemap.federated.trust.recipe_terms import price_of_recipe, randomiser_of
from hazemap.privacy.amplification.zcdp_of_sum import zcdp_of_sum
from hazemap.privacy.local_randomisers import Asymmetric, Symmetric, UnaryEncoding
from hazemap.privacy.report_price import ReportPrice
from hazemap.privacy.report_weight import TOO_HEAVY


@dataclass(frozen=True)
class RecipeCheck:
    """What a policy says of a recipe: the query as it is admitted (None where it is not), and every reason against it.

    Without reasons, a device that has told nothing yet answers. What was spent, only its own account knows.
    """

    admitted: AdmittedQuery | None
    reasons: tuple[str, ...]

    @property
    def answered(self) -> bool:
        """Whether a device that has told nothing yet answers."""
        return not self.reasons


def check_recipe(recipe: Recipe, policy: ShippedPolicy, honest: int) -> RecipeCheck:
    """Look at a recipe as a device would where so many honest people's reports are certain to be in the sum."""
    analysis = policy.analysis(recipe.analysis)
    if analysis is None:
        known = ", ".join(each.name for each in policy.analyses) or "none"
        return RecipeCheck(None, (f"this policy knows no analysis {recipe.analysis}; it knows {known}",))
    try:
        admitted = admit(recipe, policy)
    except Refused as refused:
        return RecipeCheck(None, (str(refused),))
    price = sum_price(recipe, randomiser_of(recipe), honest, policy.accounting)
    request = ReportRequest.of(recipe, admitted.touched, price, bytes(32))
    reasons = (*_cohort_values(recipe, policy), *reasons_against(request, policy, datetime.now(UTC)))
    return RecipeCheck(admitted, tuple(dict.fromkeys(reasons)))


def sum_price(
    recipe: Recipe, law: Symmetric | Asymmetric | UnaryEncoding, honest: int, accounting: Accounting
) -> ReportPrice:
    """What a sum of a recipe's reports tells of one person, in the units in which a policy adds up: 10 to 500 ms.

    In zCDP one person's bin is replaced by another, and what that leaves out is part of the price: so is, over two
    servers, that any report has to be thrown again.
    """
    found = price_of_recipe(recipe, law, honest)
    if accounting is not Accounting.ZCDP:
        return ReportPrice(found.epsilon, found.delta)
    in_zcdp = zcdp_of_sum(law.bit_flips, honest)
    spill = in_zcdp.delta + (TOO_HEAVY if recipe.carrier is Carrier.TWO_SERVERS else 0)
    return ReportPrice(found.epsilon, found.delta, in_zcdp.rho, spill)


def admit(recipe: Recipe, policy: ShippedPolicy) -> AdmittedQuery:
    """The recipe's query, if its analysis admits it; `Refused` says why not."""
    analysis = policy.analysis(recipe.analysis)
    if analysis is None:
        raise Refused(f"this device knows no analysis {recipe.analysis}")
    sandbox = QuerySandbox(tuple(each.schema for each in policy.streams), analysis.queries)
    admitted = sandbox.admit(recipe.query)
    if admitted.columns != recipe.columns:
        raise Refused(
            f"the query gives rows of {admitted.columns} columns, but the features of {recipe.id} read {recipe.columns}"
        )
    return admitted


def _cohort_values(recipe: Recipe, policy: ShippedPolicy) -> Iterator[str]:
    """Values of a cohort's field that no event can hold: nobody would answer."""
    analysis = policy.analysis(recipe.analysis)
    approved = {each.name: each.field for each in analysis.cohort_fields} if analysis else {}
    for each in recipe.cohort:
        field = approved.get(each.name)
        stream = field and policy.stream(field.stream)
        for own in stream.fields if stream and field else ():
            strange = sorted(set(each.values) - set(own.values)) if field and own.name == field.field else []
            if own.values and strange:
                yield f"the cohort asks for {each.name} {strange[0]}, which this policy does not know"
