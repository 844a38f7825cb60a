"""Whether a device with a shipped policy would answer a recipe: found without any event."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from hazemap.device.query_sandbox import AdmittedQuery, QuerySandbox
from hazemap.device.recipe_account import reasons_against
from hazemap.device.report_request import ReportRequest
from hazemap.errors import Refused
from hazemap.privacy.amplification.aggregate_price import AggregatePrice
from hazemap.privacy.report_price import ReportPrice
from hazemap.recipes.policy import ShippedPolicy
from hazemap.recipes.recipe import Recipe


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


def check_recipe(recipe: Recipe, policy: ShippedPolicy, achieved: AggregatePrice) -> RecipeCheck:
    """Look at a recipe as a device would; `achieved` is the price of its sum (`recipes.recipe_price`)."""
    analysis = policy.analysis(recipe.analysis)
    if analysis is None:
        known = ", ".join(each.name for each in policy.analyses) or "none"
        return RecipeCheck(None, (f"this policy knows no analysis {recipe.analysis}; it knows {known}",))
    try:
        admitted = admit(recipe, policy)
    except Refused as refused:
        return RecipeCheck(None, (str(refused),))
    request = report_request(recipe, admitted, achieved, bytes(32))
    reasons = (*_cohort_values(recipe, policy), *reasons_against(request, policy, datetime.now(UTC)))
    return RecipeCheck(admitted, tuple(dict.fromkeys(reasons)))


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


def report_request(recipe: Recipe, admitted: AdmittedQuery, achieved: AggregatePrice, audience: bytes) -> ReportRequest:
    """A recipe's report as the account weighs it: `audience` is the digest of whom it goes to."""
    return ReportRequest(
        analysis=recipe.analysis,
        purpose=recipe.purpose,
        recipe=bytes.fromhex(recipe.digest),
        fields=frozenset(admitted.touched),
        local_epsilon=recipe.local_epsilon,
        cohort=recipe.minimum_cohort,
        price=ReportPrice(recipe.epsilon, recipe.delta),
        achieved=ReportPrice(achieved.epsilon, achieved.delta),
        carrier=recipe.carrier,
        audience=audience,
        cohort_fields=frozenset(each.name for each in recipe.cohort),
    )


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
