"""What a recipe's file may hold: one JSON Schema, by which files are checked and which docs/reference shows.

Only the few words of JSON Schema that are used here are understood: `check` refuses in words what they do not allow.
"""

from collections.abc import Mapping
from math import isfinite
from typing import Any

from hazemap.errors import InputError
from hazemap.federated.recipes.buckets import LONGEST_PREFIX, MOST_BINS, MOST_TOKENS
from hazemap.federated.recipes.policy import Carrier
from hazemap.federated.recipes.recipe import (
    LARGEST_COHORT,
    LARGEST_DELTA,
    LARGEST_LOCAL_EPSILON,
    LONGEST_PURPOSE,
    MOST_COHORT_VALUES,
    MOST_FEATURES,
    NoMatch,
)
from hazemap.federated.recipes.sql_query import LONGEST_SQL, LONGEST_VALUE

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


def check(found: Any, schema: Mapping[str, Any] = SCHEMA, where: str = "a recipe") -> None:
    """`InputError` unless a document is as its schema says; O(items)."""
    if "oneOf" in schema:
        check(found, _alternative(found, schema["oneOf"], where), where)
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
            check(each, schema["items"], f"{where}[{place}]")
    if isinstance(found, dict):
        _check_table(found, schema, where)


def _check_table(found: dict[str, Any], schema: Mapping[str, Any], where: str) -> None:
    known, more = schema.get("properties", {}), schema["additionalProperties"]
    if missing := [name for name in schema.get("required", ()) if name not in found]:
        raise InputError(f"{where} says nothing of its {missing[0]}")
    for name, each in found.items():
        if name not in known and more is False:
            raise InputError(f"{where} has no {name!r:.60}; it has {', '.join(known)}")
        check(each, known.get(name, more), f"{where}.{name:.60}")


def _alternative(found: Any, schemas: list[dict[str, Any]], where: str) -> dict[str, Any]:
    """The alternative that a table's names choose: the one whose own name it has."""
    own = [next(name for name in each["required"] if name != "name") for each in schemas]
    chosen = [place for place, name in enumerate(own) if isinstance(found, dict) and name in found]
    if len(chosen) != 1:
        raise InputError(f"{where} is a table with one of {', '.join(own)}")
    return schemas[chosen[0]]
