"""A recipe in plain words, for the person whose device is asked: what would be sent, before it is."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from math import ceil, exp, floor, log10

from hazemap.federated.recipes.features import BucketRule, Categories, MapCells, NumericEdges, PrefixTree
from hazemap.federated.recipes.policy import Carrier
from hazemap.federated.recipes.query_class import StreamFieldName
from hazemap.federated.recipes.recipe import NoMatch, Recipe
from hazemap.federated.recipes.string_prefixes import StringPrefixes

_SHOWN = 6
"""So many examples of a list are shown."""


def explained(recipe: Recipe, touched: tuple[StreamFieldName, ...] | None) -> Iterator[str]:
    """Sentences about a recipe; `touched` is what its query reads, None where no policy says.

    >>> from hazemap.federated.recipes.recipe_file import EXAMPLE, recipe_from_toml
    >>> next(explained(recipe_from_toml(EXAMPLE), None))
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
