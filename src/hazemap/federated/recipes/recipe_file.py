"""Recipes as files that people write: TOML, or JSON of the same names (docs/reference/recipe.schema.json).

One JSON Schema says what a file may hold. Only the few words of JSON Schema that are used here are understood:
`check_document` refuses in words what they do not allow.
"""

import json
from collections.abc import Mapping
from decimal import Decimal, localcontext
from fractions import Fraction
from math import isfinite
from pathlib import Path
from typing import Any

from hazemap import codec
from hazemap.cells import Leaves
from hazemap.codec import Limits
from hazemap.errors import HazemapError, InputError
from hazemap.federated.recipes.features import (
    LONGEST_PREFIX,
    MOST_BINS,
    MOST_TOKENS,
    BucketRule,
    Categories,
    Feature,
    MapCells,
    NumericEdges,
    PrefixTree,
    StringPrefixes,
)
from hazemap.federated.recipes.policy import Carrier
from hazemap.federated.recipes.recipe import (
    LARGEST_COHORT,
    LARGEST_DELTA,
    LARGEST_LOCAL_EPSILON,
    LONGEST_PURPOSE,
    MOST_COHORT_VALUES,
    MOST_FEATURES,
    CohortField,
    NoMatch,
    Recipe,
)
from hazemap.federated.recipes.sql_query import LONGEST_SQL, LONGEST_VALUE, Parameter, SqlQuery
from hazemap.files.text_files import read_text, toml_table
from hazemap.privacy.budget import exact
from hazemap.privacy.local_randomisers import UnaryEncoding
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree

LONGEST_JSON = 1 << 24
"""Bytes of a partition of a map that a file holds as JSON."""


def _text(description: str, longest: int = LONGEST_VALUE) -> dict[str, Any]:
    return {"type": "string", "description": description, "maxLength": longest}


def _list(description: str, items: dict[str, Any], least: int, most: int) -> dict[str, Any]:
    return {"type": "array", "description": description, "items": items, "minItems": least, "maxItems": most}


def _table(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False, "required": list(required)}


_NUMBER = {"type": ["string", "number"], "maxLength": 64}
_BOX = _list("west, south, east, north in degrees", {"type": "number"}, 4, 4)
_FEATURE_NAME = _text("The name of the feature: a column of the answer.", 63)

CELLS = {
    "quadtree": _table(
        {"box": _BOX, "level": {"type": "integer", "description": "The square around the box is cut so often."}},
        "box",
        "level",
    ),
    "h3": _table(
        {"box": _BOX, "resolution": {"type": "integer", "description": "Hexagons of this resolution near the box."}},
        "box",
        "resolution",
    ),
    "json": _text("Any partition, as hazemap writes it.", LONGEST_JSON),
}
"""How a file names cells of a map."""

RULES = {
    "edges": {"edges": _list("Ascending numbers: a bucket from each to the next.", {"type": "number"}, 2, MOST_BINS)},
    "categories": {
        "categories": _list("Values, all texts or all whole numbers.", {"type": ["string", "integer"]}, 1, MOST_BINS)
    },
    "prefixes": {
        "prefixes": _list(f"Texts of 0 to {LONGEST_PREFIX} tokens.", _text("A prefix."), 1, MOST_TOKENS),
        "tokens": _list("Known tokens that may follow.", _text("A token."), 1, MOST_TOKENS),
    },
    "beginnings": {
        "beginnings": _list("What strings begin with.", _text("A beginning."), 1, MOST_TOKENS),
        "alphabet": _text("The characters that may follow, each once."),
        "step": {"type": "integer", "description": "How many of them are asked for."},
    },
    "cells": {"cells": {"oneOf": [_table({name: each}, name) for name, each in CELLS.items()]}},
}
"""The bucket rules of features, by the name that tells them apart."""

_FEATURE = {"oneOf": [_table({"name": _FEATURE_NAME} | rule, "name", *rule) for rule in RULES.values()]}

SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "A recipe: what devices are asked of their events",
    **_table(
        {
            "id": _text("The name of the recipe.", 100),
            "version": {"type": "integer", "description": "Counted from 1; another question needs another one."},
            "analysis": _text("The analysis whose budget pays.", 100),
            "purpose": _text("What the answers are for, as people read it.", LONGEST_PURPOSE),
            "local_epsilon": _NUMBER
            | {"description": f"The ε of one report (replacement), above 0 and at most {LARGEST_LOCAL_EPSILON}."},
            "epsilon": _NUMBER | {"description": "The ε of the sum of the minimum cohort's reports."},
            "delta": _NUMBER | {"description": f"The δ of that sum, at most {LARGEST_DELTA}."},
            "keep": _NUMBER
            | {"description": "The chance that a report sends its own bit as 1. By default ½: asymmetric reports."},
            "turn_on": _NUMBER | {"description": "The chance that it sends another bit as 1. By default 1/(e^ε₀ + 1)."},
            "minimum_cohort": {
                "type": "integer",
                "description": f"Sums of fewer people are never opened: 1 to {LARGEST_COHORT:,}.",
            },
            "carrier": {
                "type": "string",
                "description": "Who carries the answers, so that nobody sees one alone.",
                "enum": [each.value for each in Carrier],
                "default": Carrier.SECURE_SUMS.value,
            },
            "no_match": {
                "type": "string",
                "description": "What a device without a matching event reports: a bin of its own, or a random one.",
                "enum": [each.value for each in NoMatch],
                "default": NoMatch.NONE.value,
            },
            "query": _table(
                {
                    "sql": _text("One SELECT, whose columns the features read from the left.", LONGEST_SQL),
                    "parameters": {
                        "type": "object",
                        "description": "Values that the query uses as :name.",
                        "additionalProperties": {"type": ["string", "number"], "maxLength": LONGEST_VALUE},
                    },
                },
                "sql",
            ),
            "cohort": {
                "type": "object",
                "description": "Fields that are not sensitive, each with the values that are asked for.",
                "additionalProperties": _list("Values.", _text("A value."), 1, MOST_COHORT_VALUES),
            },
            "features": _list("What is asked of a row.", _FEATURE, 1, MOST_FEATURES),
        },
        "id",
        "version",
        "analysis",
        "purpose",
        "local_epsilon",
        "epsilon",
        "delta",
        "minimum_cohort",
        "query",
        "features",
    ),
}
"""The JSON Schema of a recipe's file, in TOML or JSON."""

_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "array": (list,),
    "object": (dict,),
}
_SAID = {
    "string": "a text",
    "integer": "a whole number",
    "number": "a finite number",
    "array": "a list",
    "object": "a table",
}


def check_document(found: Any, schema: Mapping[str, Any] = SCHEMA, where: str = "a recipe") -> None:
    """`InputError` unless a document is as its schema says; O(items)."""
    if "oneOf" in schema:
        check_document(found, _alternative(found, schema["oneOf"], where), where)
        return
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    number = type(found) is float and not isfinite(found)
    if number or not any(type(found) in _TYPES[kind] for kind in kinds):
        raise InputError(f"{where} is {' or '.join(_SAID[kind] for kind in kinds)}; found a {type(found).__name__}")
    if isinstance(found, str) and len(found) > schema.get("maxLength", LONGEST_JSON):
        raise InputError(f"{where} has at most {schema['maxLength']:,} characters; found {len(found):,}")
    if "enum" in schema and found not in schema["enum"]:
        raise InputError(f"{where} is one of {', '.join(schema['enum'])}; found {found!r:.60}")
    if isinstance(found, list):
        if not schema["minItems"] <= len(found) <= schema["maxItems"]:
            raise InputError(f"{where} has {schema['minItems']} to {schema['maxItems']:,} items; found {len(found):,}")
        for place, each in enumerate(found, 1):
            check_document(each, schema["items"], f"{where}[{place}]")
    if isinstance(found, dict):
        _check_table(found, schema, where)


def _check_table(found: dict[str, Any], schema: Mapping[str, Any], where: str) -> None:
    known, more = schema.get("properties", {}), schema["additionalProperties"]
    if missing := [name for name in schema.get("required", ()) if name not in found]:
        raise InputError(f"{where} says nothing of its {missing[0]}")
    for name, each in found.items():
        if name not in known and more is False:
            raise InputError(f"{where} has no {name!r:.60}; it has {', '.join(known)}")
        check_document(each, known.get(name, more), f"{where}.{name:.60}")


def _alternative(found: Any, schemas: list[dict[str, Any]], where: str) -> dict[str, Any]:
    """The alternative that a table's names choose: the one whose own name it has."""
    own = [next(name for name in each["required"] if name != "name") for each in schemas]
    chosen = [place for place, name in enumerate(own) if isinstance(found, dict) and name in found]
    if len(chosen) != 1:
        raise InputError(f"{where} is a table with one of {', '.join(own)}")
    return schemas[chosen[0]]


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
    check_document(found)
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
