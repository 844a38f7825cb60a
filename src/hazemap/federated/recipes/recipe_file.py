"""Recipes as files that people write: TOML, or JSON of the same names (docs/reference/recipe.schema.json)."""

import json
from collections.abc import Mapping
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

from hazemap import codec
from hazemap.cells import Leaves
from hazemap.codec import Limits
from hazemap.errors import HazemapError, InputError
from hazemap.federated.recipes.features import BucketRule, Categories, Feature, MapCells, NumericEdges, PrefixTree
from hazemap.federated.recipes.policy import Carrier
from hazemap.federated.recipes.recipe import CohortField, NoMatch, Recipe
from hazemap.federated.recipes.recipe_schema import LONGEST_JSON, check
from hazemap.federated.recipes.sql_query import Parameter, SqlQuery
from hazemap.federated.recipes.string_prefixes import StringPrefixes
from hazemap.files.text_files import read_text, toml_table
from hazemap.privacy.budget import exact
from hazemap.privacy.local_randomisers import UnaryEncoding
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree

LONGEST_TOML = 1 << 20
"""Bytes of TOML; what is longer (the cells of a large map) is written as JSON."""

_JSON = Limits(length=2 * LONGEST_JSON, items=1 << 22, work=1 << 26, depth=16, lists=1 << 20)
_PARTITION = Limits(length=LONGEST_JSON, items=1 << 21, work=1 << 26)

EXAMPLE = '''# Which words follow "hello world" and "i got", by age: a recipe as `hazemap recipe check` reads it.
id = "next-words-by-age"
version = 1
analysis = "next_word"
purpose = "better suggestions for the next word"

local_epsilon = "2"     # what one report tells of its sender
epsilon = "0.3"         # what the sum of the minimum cohort's reports tells,
delta = "1e-6"          # but for this probability
minimum_cohort = 10000  # sums of fewer people are never opened
carrier = "secure sums" # or "two servers"
no_match = "none"       # a bin of its own for devices without a match, or "random"

[query]
sql = """
SELECT profile.age, keyboard.ngram
FROM keyboard, profile
WHERE keyboard.ngram >= :first
"""

[query.parameters]
first = "a"

[cohort]
locale = ["en_GB", "en_US"]

[[features]]  # the first column of the query
name = "age"
edges = [10, 20, 30, 40, 50, 60, 70, 80]

[[features]]  # the second column
name = "ngram"
prefixes = ["hello world", "how are", "i got"]
tokens = ["a", "and", "it", "new", "the", "to", "today", "world", "you"]
'''
"""A recipe that `hazemap recipe example` prints: the bins of appendix B."""


def read_recipe(path: Path) -> Recipe:
    """The recipe in a file, TOML or JSON by its first sign; `FileError` where it cannot be read."""
    text = read_text(path, "the recipe", _JSON.length, "`hazemap recipe example` prints one")
    return recipe_from_json(text) if text.lstrip()[:1] == "{" else recipe_from_toml(text)


def recipe_from_toml(text: str) -> Recipe:
    """A recipe written as TOML.

    >>> recipe_from_toml(EXAMPLE).bins == (1 + 7) * (1 + 3 * (1 + 1 + 9))
    True
    """
    return _recipe(toml_table(text, "the recipe", LONGEST_TOML))


def recipe_from_json(text: str) -> Recipe:
    """A recipe written as JSON, with the names of TOML."""
    try:
        found = codec.parsed(text, _JSON)
    except HazemapError as error:
        raise InputError(f"the recipe is not JSON: {error}") from None
    return _recipe(found)


def recipe_to_json(recipe: Recipe) -> str:
    """A recipe as JSON, with the names of TOML."""
    return json.dumps(_document(recipe), ensure_ascii=False, indent=2) + "\n"


def recipe_to_toml(recipe: Recipe) -> str:
    """A recipe as TOML; `InputError` for one that is too long for it."""
    found = _document(recipe)
    query, cohort, features = (found.pop(name) for name in ("query", "cohort", "features"))
    parts = [_lines(found), "\n[query]\n", _lines({"sql": query["sql"]})]
    if query["parameters"]:
        parts += ["\n[query.parameters]\n", _lines(query["parameters"])]
    if cohort:
        parts += ["\n[cohort]\n", _lines(cohort)]
    for each in features:
        cells = each.pop("cells", None)
        parts += ["\n[[features]]\n", _lines(each)]
        parts += ["\n[features.cells]\n", _lines(cells)] if cells else []
    text = "".join(parts)
    if len(text) > LONGEST_TOML:
        raise InputError("this recipe is too long for TOML: write it as JSON")
    return text


def _recipe(found: Any) -> Recipe:
    check(found)
    query = SqlQuery(
        found["query"]["sql"].strip(),
        tuple(Parameter(name, value) for name, value in sorted(found["query"].get("parameters", {}).items())),
    )
    return Recipe(
        id=found["id"],
        version=found["version"],
        analysis=found["analysis"],
        purpose=found["purpose"],
        query=query,
        cohort=tuple(CohortField(name, tuple(values)) for name, values in sorted(found.get("cohort", {}).items())),
        features=tuple(Feature(each["name"], _rule(each)) for each in found["features"]),
        local_epsilon=exact(found["local_epsilon"], "local_epsilon"),
        epsilon=exact(found["epsilon"], "epsilon"),
        delta=exact(found["delta"], "delta"),
        minimum_cohort=found["minimum_cohort"],
        carrier=Carrier(found.get("carrier", Carrier.SECURE_SUMS.value)),
        no_match=NoMatch(found.get("no_match", NoMatch.NONE.value)),
        randomiser=_randomiser(found),
    )


def _randomiser(found: Mapping[str, Any]) -> UnaryEncoding | None:
    if not {"keep", "turn_on"} & found.keys():
        return None
    if not {"keep", "turn_on"} <= found.keys():
        raise InputError("a recipe says both keep and turn_on, or neither: then reports are asymmetric")
    return UnaryEncoding(*(exact(found[name], name) for name in ("keep", "turn_on")))


def _rule(found: Mapping[str, Any]) -> BucketRule:
    if "edges" in found:
        return NumericEdges(tuple(found["edges"]))
    if "categories" in found:
        return Categories(tuple(found["categories"]))
    if "prefixes" in found:
        return PrefixTree(tuple(found["prefixes"]), tuple(found["tokens"]))
    if "beginnings" in found:
        return StringPrefixes(tuple(found["beginnings"]), found["alphabet"], found["step"])
    return _cells(found["cells"])


def _cells(found: Mapping[str, Any]) -> MapCells:
    if "quadtree" in found:
        given = found["quadtree"]
        if not 0 <= given["level"] <= 9:
            raise InputError(f"a feature's quadtree has level 0 to 9; found {given['level']}")
        return MapCells(Leaves.at_level(Quadtree.around(Box(*given["box"]), given["level"]), given["level"]))
    if "h3" in found:
        tree = Hexagons(Box(*found["h3"]["box"]), found["h3"]["resolution"], found["h3"]["resolution"])
        return MapCells(Leaves.at_level(tree, 0))
    try:
        return MapCells(codec.loads(found["json"], limits=_PARTITION))
    except HazemapError as error:
        raise InputError(f"the cells of a feature are no partition that hazemap wrote: {error!s:.300}") from None


def _document(recipe: Recipe) -> dict[str, Any]:
    law = recipe.randomiser
    return {
        **{name: getattr(recipe, name) for name in ("id", "version", "analysis", "purpose")},
        **{name: _exactly(getattr(recipe, name)) for name in ("local_epsilon", "epsilon", "delta")},
        **({name: _exactly(getattr(law, name)) for name in ("keep", "turn_on")} if law else {}),
        "minimum_cohort": recipe.minimum_cohort,
        "carrier": recipe.carrier.value,
        "no_match": recipe.no_match.value,
        "query": {
            "sql": recipe.query.text,
            "parameters": {each.name: each.value for each in recipe.query.parameters},
        },
        "cohort": {each.name: list(each.values) for each in recipe.cohort},
        "features": [{"name": each.name, **_written(each.rule)} for each in recipe.features],
    }


def _written(rule: BucketRule) -> dict[str, Any]:
    match rule:
        case NumericEdges(edges=edges):
            return {"edges": list(edges)}
        case Categories(values=values):
            return {"categories": list(values)}
        case PrefixTree(prefixes=prefixes, tokens=tokens):
            return {"prefixes": list(prefixes), "tokens": list(tokens)}
        case StringPrefixes(prefixes=prefixes, alphabet=alphabet, step=step):
            return {"beginnings": list(prefixes), "alphabet": alphabet, "step": step}
        case MapCells(cells=cells):
            return {"cells": {"json": codec.dumps(cells)}}


def _exactly(number: Fraction) -> str:
    """As a decimal where there is one, else as a fraction."""
    with localcontext(prec=60):
        decimal = Decimal(number.numerator) / Decimal(number.denominator)
    return f"{decimal}" if Fraction(decimal) == number else str(number)


def _lines(found: Mapping[str, Any]) -> str:
    return "".join(f"{name} = {_toml(value)}\n" for name, value in found.items())


def _toml(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, str) and "\n" in value:
        return '"""\n' + "\n".join(_toml(line)[1:-1] for line in value.split("\n")) + '"""'
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)
