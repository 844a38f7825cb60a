"""Whether a device with a shipped policy would answer a recipe, found without any event, and both in plain words."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from itertools import pairwise
from math import ceil, exp, floor, log10
from typing import Any

from hazemap.errors import Refused
from hazemap.federated.device.account.charges import ReportRequest
from hazemap.federated.device.account.recipe_account import refusal_reasons
from hazemap.federated.device.recipes.query_sandbox import AdmittedQuery, QuerySandbox
from hazemap.federated.recipes.features import (
    BucketRule,
    Categories,
    MapCells,
    NumericEdges,
    PrefixTree,
    StringPrefixes,
)
from hazemap.federated.recipes.policy import Accounting, Carrier, ShippedPolicy
from hazemap.federated.recipes.query_class import StreamFieldName
from hazemap.federated.recipes.recipe import NoMatch, Recipe, RecipePrice
from hazemap.federated.trust.recipe_terms import price_of_recipe, randomiser_of
from hazemap.privacy.amplification.zcdp_of_sum import zcdp_of_sum
from hazemap.privacy.budget import ReportPrice
from hazemap.privacy.local_randomisers import TOO_HEAVY, Asymmetric, Symmetric, UnaryEncoding


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
    reasons = (*_cohort_values(recipe, policy), *refusal_reasons(request, policy, datetime.now(UTC)))
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


_SHOWN = 6
"""So many examples of a list are shown."""


def explain_recipe(recipe: Recipe, touched: tuple[StreamFieldName, ...] | None) -> Iterator[str]:
    """Sentences about a recipe; `touched` is what its query reads, None where no policy says.

    >>> from hazemap.federated.recipes.recipe_file import EXAMPLE, recipe_from_toml
    >>> next(explain_recipe(recipe_from_toml(EXAMPLE), None))
    'Somebody asks for: better suggestions for the next word.'
    """
    yield f"Somebody asks for: {recipe.purpose.strip().rstrip('.')}."
    for each in recipe.cohort:
        yield (
            f"Only devices whose {_plain(each.name)} is {_either(each.values)} answer from what they hold. The others"
            " answer as if nothing fitted, and nobody can tell which they are."
        )
    if touched is not None:
        read = [f"{_plain(each.field)} (of your {_plain(each.stream)} events)" for each in touched]
        yield f"The device would look at: {', '.join(read)}. It looks at nothing else."
    yield "From what it finds it would pick one entry by chance, and keep of it only:"
    for feature in recipe.features:
        yield f"  {_plain(feature.name)}: {_kept(feature.rule)}"
    keep, turn_on = recipe.law.chances
    stays = "one chance in two" if keep == 0.5 else f"a chance of {100 * keep:.3g} %"
    yield (
        f"So the answer is one of {recipe.size:,} boxes to tick. Before anything leaves, the device throws coins: the"
        f" tick that is true stays with {stays}, and every other box is ticked with a chance of {100 * turn_on:.3g} %."
    )
    box = 'the box "nothing"' if recipe.no_match is NoMatch.NONE else "a box taken by chance"
    yield f"If nothing fits, {box} is the true one, and goes through the same coins: nobody can tell."
    together = {
        Carrier.SECURE_SUMS: "It is added to other people's answers under a mask, so nobody sees it alone.",
        Carrier.TWO_SERVERS: "It is split between two servers, neither of which can read its part.",
    }[recipe.carrier]
    yield f"{together} A sum is opened for {recipe.minimum_cohort:,} people or more, and only the sum."
    yield f"To who saw your blurred answer, the odds of a guess change {_factor(recipe.local_epsilon)} at most."
    but = f", but for a chance of one in {floor(1 / recipe.delta):,}" if recipe.delta else ""
    yield f"To who sees the sum alone, they change {_factor(recipe.epsilon)} at most{but}."


def _kept(rule: BucketRule) -> str:
    match rule:
        case NumericEdges(edges=edges):
            return f"in which of these ranges it is: {_list(_ranges(edges))}; or that it is in none"
        case Categories():
            return f"whether it is one of: {_list(rule.labels()[1:])}; or none of them"
        case PrefixTree(prefixes=prefixes, tokens=tokens):
            known = f"one of {len(tokens):,} known words ({_list(list(tokens))}), an unknown one, or none"
            starts = f"whether it begins with {_quoted(prefixes)}, and which word follows"
            return f"{'its first word' if prefixes == ('',) else starts}: {known}"
        case StringPrefixes(prefixes=prefixes, alphabet=alphabet, step=step):
            characters = f"{step} of the characters {_list(list(alphabet))}, where they are some of these"
            starts = f"whether it begins with {_quoted(prefixes)}, and the next"
            return f"{'its first' if prefixes == ('',) else starts} {characters}"
        case MapCells():
            return f"in which of {rule.cells.size:,} areas of a map it is, or that it is in none; not where in the area"


def _quoted(texts: tuple[str, ...]) -> str:
    return _list([f'"{each}"' for each in texts])


def _plain(name: str) -> str:
    return name.replace("_", " ")


def _list(items: list[str]) -> str:
    more = f" and {len(items) - _SHOWN:,} more" if len(items) > _SHOWN else ""
    return ", ".join(items[:_SHOWN]) + more


def _either(values: tuple[str, ...]) -> str:
    return " or ".join(values[:_SHOWN]) + (f" or {len(values) - _SHOWN:,} others" if len(values) > _SHOWN else "")


def _factor(epsilon: Fraction) -> str:
    """e^ε in words, rounded up to three digits."""
    factor = exp(float(epsilon))
    unit = 10.0 ** (floor(log10(factor)) - 2)
    return f"by a factor of {ceil(factor / unit) * unit:,.6g}"


def _ranges(edges: tuple[float, ...]) -> list[str]:
    return [f"{low:,.6g} to below {high:,.6g}" for low, high in pairwise(edges)]


def check_lines(recipe: Recipe, price: RecipePrice, judged: RecipeCheck | None, people: int) -> list[str]:
    """What `hazemap recipe check` says, of so many people; with a policy also whether devices would answer."""
    own = " and one" if recipe.none_bin is not None else ", and a random one of them"
    who = "".join(f"{each.name} {' or '.join(each.values)}; " for each in recipe.cohort)
    least = f"{price.least_cohort:,} people would do" if price.least_cohort else "no sum of any size would do"
    verdict = "which it keeps" if price.kept else "which it does NOT keep: no device answers"
    keep, turn_on = recipe.law.chances
    lines = [
        f"{recipe.id}, version {recipe.version}, for {recipe.analysis}: {recipe.purpose}",
        f"bins     {recipe.bins:,} ({' × '.join(f'{each.name} {each.rule.size:,}' for each in recipe.features)}){own}"
        " for devices where nothing fits",
        f"cohort   {who}{recipe.minimum_cohort:,} people at least, by {recipe.carrier.value}",
        f"report   ε₀ = {_number(recipe.local_epsilon)}: a bit that is set is sent as 1 with probability {keep:.4g},"
        f" any other with {turn_on:.4g}",
        f"sum      (ε, δ) = ({float(price.sum.epsilon):.4g}, {float(recipe.delta):.3g}), by {price.sum.bound};"
        f" the recipe states ε = {_number(recipe.epsilon)}, {verdict} ({least})",
        f"error    ± {recipe.standard_deviation(people):,.1f} people in a rare bin, ±"
        f" {recipe.standard_deviation(people, 0.1):,.1f} in one that a tenth report, one standard deviation, of"
        f" {people:,} people",
    ]
    if judged is None:
        return [*lines, "fields   --policy says which fields are read, and whether devices would answer"]
    if judged.admitted:
        lines.append(f"fields   {', '.join(map(str, judged.admitted.touched))}")
    if judged.answered:
        return [*lines, "answered by every device that has told nothing yet"]
    return [*lines, *(f"refused  {reason}" for reason in judged.reasons)]


def recipe_explanation(
    recipe: Recipe, touched: tuple[StreamFieldName, ...] | None, reasons: Iterable[str]
) -> list[str]:
    """What a person reads before their device answers, and every reason why it would not.

    `touched` is what the query reads, None where no policy says.
    """
    return [*explain_recipe(recipe, touched), *(f"This device would refuse it: {each}." for each in reasons)]


def _number(value: Any) -> str:
    return f"{float(value):.6g}"
