"""The JSON Schema of a policy, in TOML and in JSON; docs/reference has it as a file."""

from typing import Any

from hazemap.federated.recipes.event_stream import LONGEST_KEPT, EventType
from hazemap.federated.recipes.policy import LONGEST_PURPOSE, MOST_DAYS, MOST_REPORTS, Accounting, Carrier

_NAME = "^[a-z][a-z0-9_]{0,62}$"
_FIELD = "^[a-z][a-z0-9_]{0,62}[.][a-z][a-z0-9_]{0,62}$"
_ANALYSIS = "^[a-z0-9][a-z0-9._-]{0,99}$"
_TEXTS = {"type": "array", "items": {"type": "string"}}


def _number(what: str) -> dict[str, Any]:
    return {"type": ["number", "string"], "description": f"{what}; a fraction may be a text, such as '1/3'."}


def _whole(what: str, most: int, least: int = 1) -> dict[str, Any]:
    return {"type": "integer", "minimum": least, "maximum": most, "description": what}


def _table(properties: dict[str, Any], *optional: str, **more: Any) -> dict[str, Any]:
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False, **more}


def _named(pattern: str, content: dict[str, Any], what: str) -> dict[str, Any]:
    return {
        "type": "object",
        "patternProperties": {pattern: content},
        "additionalProperties": False,
        "description": what,
    }


_BUDGET = {
    "epsilon": _number("ε against whoever sees the sums"),
    "delta": _number("δ against whoever sees the sums"),
    "reports": _whole("k: how many reports", MOST_REPORTS, 0),
}
_PARAMETER = _table(
    {
        "type": {"enum": ["integer", "real", "text"]},
        "low": {"type": "number"},
        "high": {"type": "number"},
        "choices": {"type": "array"},
    },
    "low",
    "high",
    "choices",
)
_TEXT = {"type": "string", "description": "One SELECT."}
_QUERIES = _table(
    {
        "fields": {**_TEXTS, "description": "The fields that a query may read, as stream.field."},
        "functions": {**_TEXTS, "description": "The functions that a query may use; by default the cheap ones."},
        "listed": {
            "type": "array",
            "description": "The queries that are allowed, word for word.",
            "items": _table({"text": _TEXT, "parameters": {"type": "object"}}, "parameters"),
        },
        "templates": {
            "type": "array",
            "description": "Queries whose parameters may vary.",
            "items": _table({"text": _TEXT, "parameters": _named(_NAME, _PARAMETER, "By name.")}),
        },
    },
    "functions",
    "listed",
    "templates",
    description="Which queries are let run: those listed, those made from templates, or any over these fields.",
)
_ANALYSIS_BUDGET = _table(
    {
        "purpose": {"type": "string", "maxLength": LONGEST_PURPOSE, "description": "What it is for: people read it."},
        **_BUDGET,
        "queries": _QUERIES,
        "minimum_cohort": _whole("The least number of people whose sum is opened.", 10**9),
        "carriers": {
            "type": "array",
            "items": {"enum": [each.value for each in Carrier]},
            "description": "Who may carry the answers.",
        },
        "cohort_fields": _named(
            _NAME, {"type": "string", "pattern": _FIELD}, "Told in the clear: name = stream.field."
        ),
    },
    "cohort_fields",
)
_EVENT_FIELD = _table(
    {
        "name": {"type": "string", "pattern": _NAME},
        "type": {"enum": [each.value for each in EventType]},
        "values": {**_TEXTS, "description": "Of a category."},
        "optional": {"type": "boolean", "default": False, "description": "Whether it may be missing."},
    },
    "values",
    "optional",
)

POLICY_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "A policy that devices ship with: what hazemap policy sign takes",
    **_table(
        {
            "name": {"type": "string", "pattern": _NAME, "description": "The policy's name; a device has one."},
            "version": _whole("A device takes a higher one only.", 1 << 53),
            "days": _whole("The period of the budgets of analyses and fields.", MOST_DAYS),
            "limits": {
                "type": "array",
                "description": "What everything together may cost in so many days.",
                "minItems": 1,
                "items": _table({"days": _whole("So many days.", MOST_DAYS), **_BUDGET}),
            },
            "streams": _named(
                _NAME,
                _table(
                    {
                        "keep": _whole("Days that an event is kept.", LONGEST_KEPT),
                        "fields": {"type": "array", "minItems": 1, "items": _EVENT_FIELD},
                    }
                ),
                "The streams of events that devices keep.",
            ),
            "fields": _named(
                _FIELD,
                _table({"local_epsilon": _number("The largest ε₀ of one report that reads it"), **_BUDGET}),
                "Table 1b: budgets of fields, by stream.field.",
            ),
            "analyses": _named(_ANALYSIS, _ANALYSIS_BUDGET, "Table 1a: budgets of analyses, by name."),
            "accounting": {
                "enum": [each.value for each in Accounting],
                "default": "basic",
                "description": "How prices add up: ε's and δ's, or ρ's.",
            },
        },
        "fields",
        "analyses",
        "accounting",
    ),
}
"""Whole policies."""
