"""A policy as a text: TOML for people, canonical JSON for digests and signatures, and the JSON Schema of both.

`SignedPolicy` is a policy with the signature of whoever ships it, `update_refusal` says when a device takes it in the
place of its own.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import MISSING, dataclass, fields
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any

from hazemap.codec.json_parser import Limits, parsed
from hazemap.errors import CodecError, InputError, Refused
from hazemap.federated.recipes.event_stream import LONGEST_KEPT, EventField, EventStream, EventType
from hazemap.federated.recipes.policy import (
    LONGEST_PURPOSE,
    MOST_DAYS,
    MOST_REPORTS,
    Accounting,
    AnalysisBudget,
    ApprovedCohortField,
    Carrier,
    DeviceLimit,
    FieldBudget,
    ShippedPolicy,
)
from hazemap.federated.recipes.query_class import (
    FUNCTIONS,
    AnyQueryOverFields,
    ListedQueries,
    ParameterRange,
    QueryClass,
    QueryTemplate,
    QueryTemplates,
    StreamFieldName,
)
from hazemap.federated.recipes.query_class import FieldType as ParameterType
from hazemap.federated.recipes.sql_query import Parameter, SqlQuery
from hazemap.files.text_files import read_text, toml_table
from hazemap.privacy.budget import exact
from hazemap.privacy.signing_identities import KEY, SIGNATURE, Identity, policy_statement, verified

LIMITS = Limits(length=1 << 20, items=1 << 16, work=0, depth=12)
"""A policy has a megabyte at most."""

LONGEST_TOML = 1 << 18

_NOTHING = object()


def _decimal(text: str) -> "_Decimal":
    """A number as TOML has it, where digits may be grouped by underscores."""
    return _Decimal(text.replace("_", ""))


class _Decimal(str):
    """A number of TOML as it is written: 0.1 stays a tenth, and 1e999999999 is refused, not computed."""

    __slots__ = ()


def from_toml(text: str) -> ShippedPolicy:
    """The policy in a TOML text; `InputError` says what is wrong with it."""
    return from_document(toml_table(text, "the policy", LONGEST_TOML, _decimal))


def from_json(text: str | bytes) -> ShippedPolicy:
    """The policy in a JSON text; `InputError` says what is wrong with it."""
    try:
        return from_document(parsed(text, LIMITS))
    except CodecError as error:
        raise InputError(f"the policy cannot be read: {error}") from None


def canonical_json(policy: ShippedPolicy) -> bytes:
    """The text of a policy that is signed: JSON, sorted keys, ASCII alone, no spaces, fractions in lowest terms."""
    return json.dumps(to_document(policy), sort_keys=True, separators=(",", ":")).encode()


def digest(policy: ShippedPolicy) -> bytes:
    """SHA-256 of the canonical text."""
    return sha256(canonical_json(policy)).digest()


def to_document(policy: ShippedPolicy) -> dict[str, Any]:
    """The policy as plain values, as both kinds of text hold it."""
    return {
        "name": policy.name,
        "version": policy.version,
        "days": policy.days,
        "limits": [_plain(each) for each in policy.limits],
        "streams": {
            each.name: {"keep": each.keep, "fields": [_written_field(field) for field in each.fields]}
            for each in policy.streams
        },
        "fields": {str(each.field): {k: v for k, v in _plain(each).items() if k != "field"} for each in policy.fields},
        "analyses": {each.name: _written_analysis(each) for each in policy.analyses},
        "accounting": policy.accounting.value,
    }


def from_document(found: Any) -> ShippedPolicy:
    """The policy in plain values; every key is known, and of its type."""
    page = _Page(found, "a policy", {each.name for each in fields(ShippedPolicy)})
    return ShippedPolicy(
        name=page.text("name"),
        version=page.whole("version"),
        days=page.whole("days"),
        limits=tuple(_limit(each) for each in page.items("limits")),
        streams=tuple(_stream(name, each) for name, each in page.table("streams").items()),
        fields=tuple(_field(name, each) for name, each in page.table("fields", {}).items()),
        analyses=tuple(_analysis(name, each) for name, each in page.table("analyses", {}).items()),
        accounting=_one_of(Accounting, page.text("accounting", "basic"), "the accounting of a policy"),
    )


def from_signed(found: Any) -> ShippedPolicy:
    """The policy in plain values that were signed, written in the one way in which they are (`canonical_json`)."""
    policy = from_document(found)
    if json.dumps(found, sort_keys=True, separators=(",", ":")).encode() != canonical_json(policy):
        raise InputError("a policy that is signed is written as `hazemap policy sign` writes it, and in no other way")
    return policy


class _Page:
    """A table of a document: hands each key over by its type, and refuses keys that nobody asks for."""

    def __init__(self, found: Any, what: str, known: set[str]) -> None:
        if not isinstance(found, dict):
            raise InputError(f"{what} is a table of names and values; found a {type(found).__name__}")
        if strange := sorted(set(found) - known):
            raise InputError(f"{what} says nothing about {strange[0]!r:.80}; it knows {', '.join(sorted(known))}")
        self.found, self.what = found, what

    def _value(self, key: str, default: Any, fits: Callable[[Any], bool], kind: str) -> Any:
        value = self.found.get(key, default)
        if value is _NOTHING:
            raise InputError(f"{self.what} says {key}: {kind}; it is missing")
        if not fits(value):
            raise InputError(f"{key} of {self.what} is {kind}; found a {type(value).__name__}")
        return value

    def text(self, key: str, default: Any = _NOTHING) -> str:
        return str(self._value(key, default, lambda value: type(value) is str, "a text"))

    def whole(self, key: str) -> int:
        return int(self._value(key, _NOTHING, lambda value: type(value) is int, "a whole number"))

    def truth(self, key: str, default: bool) -> bool:
        return bool(self._value(key, default, lambda value: isinstance(value, bool), "true or false"))

    def number(self, key: str) -> Fraction:
        kind = "a number, or a text such as '1/3'"
        value = self._value(key, _NOTHING, lambda value: type(value) in (int, float, str, _Decimal), kind)
        return exact(value, f"{key} of {self.what}")

    def items(self, key: str, default: Any = _NOTHING) -> list[Any]:
        return list(self._value(key, default, lambda value: isinstance(value, list), "a list"))

    def texts(self, key: str, default: Any = _NOTHING) -> tuple[str, ...]:
        texts = self.items(key, default)
        if not all(type(each) is str for each in texts):
            raise InputError(f"{key} of {self.what} is a list of texts")
        return tuple(texts)

    def table(self, key: str, default: Any = _NOTHING) -> dict[str, Any]:
        return dict(self._value(key, default, lambda value: isinstance(value, dict), "a table"))

    def names(self, key: str, default: Any = _NOTHING) -> tuple[StreamFieldName, ...]:
        return tuple(StreamFieldName.parse(each) for each in self.texts(key, default))


def _one_of(kind: type[Any], text: str, what: str) -> Any:
    known = {each.value: each for each in kind}
    if text not in known:
        raise InputError(f"{what} is one of {', '.join(known)}; found {text!r:.40}")
    return known[text]


def _keys(kind: type[Any], *others: str) -> set[str]:
    return {each.name for each in fields(kind)} - {"field", "name"} | set(others)


def _plain(thing: Any) -> dict[str, Any]:
    found = {each.name: getattr(thing, each.name) for each in fields(thing)}
    return {key: str(value) if isinstance(value, Fraction) else value for key, value in found.items()}


def _limit(found: Any) -> DeviceLimit:
    page = _Page(found, "a limit", _keys(DeviceLimit))
    return DeviceLimit(page.whole("days"), page.number("epsilon"), page.number("delta"), page.whole("reports"))


def _stream(name: str, found: Any) -> EventStream:
    page = _Page(found, f"the stream {name:.80}", _keys(EventStream, "fields"))
    return EventStream(name, tuple(_event_field(each) for each in page.items("fields")), page.whole("keep"))


def _event_field(found: Any) -> EventField:
    page = _Page(found, "a field of a stream", _keys(EventField, "name"))
    type_ = _one_of(EventType, page.text("type"), "the type of a field")
    return EventField(page.text("name"), type_, page.texts("values", []), page.truth("optional", False))


def _written_field(field: EventField) -> dict[str, Any]:
    values = {"values": list(field.values)} if field.values else {}
    return {"name": field.name, "type": field.type.value, **values, **({"optional": True} if field.optional else {})}


def _field(name: str, found: Any) -> FieldBudget:
    page = _Page(found, f"the budget of the field {name:.80}", _keys(FieldBudget))
    local, epsilon, delta = (page.number(key) for key in ("local_epsilon", "epsilon", "delta"))
    return FieldBudget(StreamFieldName.parse(name), local, epsilon, delta, page.whole("reports"))


def _analysis(name: str, found: Any) -> AnalysisBudget:
    what = f"the analysis {name:.80}"
    page = _Page(found, what, _keys(AnalysisBudget))
    return AnalysisBudget(
        name=name,
        purpose=page.text("purpose"),
        epsilon=page.number("epsilon"),
        delta=page.number("delta"),
        reports=page.whole("reports"),
        queries=_queries(page.table("queries"), what),
        minimum_cohort=page.whole("minimum_cohort"),
        carriers=tuple(_one_of(Carrier, each, f"a carrier of {what}") for each in page.texts("carriers")),
        cohort_fields=tuple(_cohort_field(*each) for each in page.table("cohort_fields", {}).items()),
    )


def _cohort_field(name: str, found: Any) -> ApprovedCohortField:
    return ApprovedCohortField(name, StreamFieldName.parse(found))


def _written_analysis(analysis: AnalysisBudget) -> dict[str, Any]:
    plain = _plain(analysis) | {
        "queries": _written_queries(analysis.queries),
        "carriers": [each.value for each in analysis.carriers],
        "cohort_fields": {each.name: str(each.field) for each in analysis.cohort_fields},
    }
    return {key: value for key, value in plain.items() if key != "name"}


def _queries(found: Any, what: str) -> QueryClass:
    page = _Page(found, f"the query class of {what}", {"fields", "functions", "listed", "templates"})
    read, functions = page.names("fields"), page.texts("functions", list(FUNCTIONS))
    if "listed" in page.found and "templates" in page.found:
        raise InputError(f"the query class of {what} has listed queries or templates, not both")
    if "listed" in page.found:
        return ListedQueries(tuple(_query(each) for each in page.items("listed")), read, functions)
    if "templates" in page.found:
        return QueryTemplates(tuple(_template(each) for each in page.items("templates")), read, functions)
    return AnyQueryOverFields(read, functions)


def _query(found: Any) -> SqlQuery:
    page = _Page(found, "a listed query", {"text", "parameters"})
    handed = page.table("parameters", {}).items()
    return SqlQuery(page.text("text"), tuple(Parameter(name, _value(value)) for name, value in handed))


def _template(found: Any) -> QueryTemplate:
    page = _Page(found, "a template", {"text", "parameters"})
    return QueryTemplate(page.text("text"), tuple(_range(*each) for each in page.table("parameters").items()))


def _range(name: str, found: Any) -> ParameterRange:
    page = _Page(found, f"the parameter {name:.63}", {"type", "low", "high", "choices"})
    type_ = _one_of(ParameterType, page.text("type"), "the type of a parameter")
    low, high = (_value(page.found.get(key)) for key in ("low", "high"))
    return ParameterRange(name, type_, low, high, tuple(_value(each) for each in page.items("choices", [])))


def _value(found: Any) -> Any:
    return float(exact(found, "a parameter")) if isinstance(found, _Decimal) else found


def _written_queries(queries: QueryClass) -> dict[str, Any]:
    page: dict[str, Any] = {"fields": [str(each) for each in queries.fields], "functions": list(queries.functions)}
    if isinstance(queries, ListedQueries):
        page["listed"] = [
            {"text": each.text, "parameters": {one.name: one.value for one in each.parameters}}
            for each in queries.queries
        ]
    if isinstance(queries, QueryTemplates):
        page["templates"] = [
            {"text": each.text, "parameters": {one.name: _written_range(one) for one in each.parameters}}
            for each in queries.templates
        ]
    return page


def _written_range(found: ParameterRange) -> dict[str, Any]:
    values = {each.name: getattr(found, each.name) for each in fields(found) if each.default is not MISSING}
    plain = {key: value for key, value in values.items() if value not in (None, ())}
    return {"type": found.type.value, **{k: list(v) if isinstance(v, tuple) else v for k, v in plain.items()}}


EXAMPLE = """\
# A policy as a device ships with it: tables 1a and 1b of McMillan et al. (2022).
name = "keyboard_statistics"
version = 1
days = 30                       # the period of all budgets below

[[limits]]                      # over everything that a device answers
days = 365
epsilon = 6
delta = 1e-5
reports = 50

[streams.keyboard]
keep = 30                       # days
fields = [
  { name = "ngram", type = "text" },
  { name = "perplexity", type = "real" },
  { name = "at", type = "time" },
]

[streams.profile]
keep = 365
fields = [
  { name = "age", type = "integer" },
  { name = "locale", type = "category", values = ["en_US", "en_GB", "de_DE", "fr_FR"] },
]

[fields."keyboard.ngram"]       # table 1b
local_epsilon = 5
epsilon = 1
delta = 1e-6
reports = 1

[fields."keyboard.perplexity"]
local_epsilon = 8
epsilon = 1
delta = 1e-6
reports = 1

[fields."profile.age"]
local_epsilon = 2
epsilon = 0.3
delta = 1e-6
reports = 1

[analyses.next_word]            # table 1a
purpose = "better suggestions for the next word"
epsilon = 0.5
delta = 1e-6
reports = 1
minimum_cohort = 1000
carriers = ["two servers", "secure sums"]
cohort_fields = { locale = "profile.locale" }

[analyses.next_word.queries]    # any query that reads these fields alone
fields = ["keyboard.ngram", "keyboard.perplexity", "profile.age"]
"""
"""What `hazemap policy example` prints."""


def example() -> ShippedPolicy:
    """The policy of the paper's keyboard example."""
    return from_toml(EXAMPLE)


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


@dataclass(frozen=True)
class SignedPolicy:
    """A policy, the Ed25519 key of whoever ships it, and the signature over the policy's digest.

    >>> from hazemap.federated.recipes.policy_document import example
    >>> signed = SignedPolicy.sign(example(), Identity.create())
    >>> SignedPolicy.from_json(signed.to_json()).verify(signed.key).name
    'keyboard_statistics'
    """

    policy: ShippedPolicy
    key: bytes
    signature: bytes

    @classmethod
    def sign(cls, policy: ShippedPolicy, identity: Identity) -> "SignedPolicy":
        """The policy, signed; the signature is the same each time."""
        return cls(policy, identity.public, identity.sign(policy_statement(digest(policy))))

    @classmethod
    def from_json(cls, text: str | bytes) -> "SignedPolicy":
        """What `to_json` wrote; `InputError` for anything else. The signature is yet to be verified."""
        try:
            found = parsed(text, LIMITS)
            if not isinstance(found, dict) or set(found) != {"key", "policy", "signature"}:
                raise InputError("a signed policy has a policy, a key and a signature: `hazemap policy sign` makes one")
            key, signature = (bytes.fromhex(found[name]) for name in ("key", "signature"))
        except (CodecError, ValueError, TypeError) as error:
            raise InputError(f"this is no signed policy: {error!s:.200}") from None
        if (len(key), len(signature)) != (KEY, SIGNATURE):
            raise InputError(f"a signed policy has a key of {KEY} bytes and a signature of {SIGNATURE}, in hexadecimal")
        return cls(from_signed(found["policy"]), key, signature)

    def to_json(self) -> str:
        """As a file: one line, the same for the same policy and key."""
        found = {
            "key": self.key.hex(),
            "policy": json.loads(canonical_json(self.policy)),
            "signature": self.signature.hex(),
        }
        return json.dumps(found, sort_keys=True, separators=(",", ":")) + "\n"

    def verify(self, pinned: bytes) -> ShippedPolicy:
        """The policy, if the pinned key has signed it; `Refused` if not."""
        if self.key != pinned:
            raise Refused(
                f"this policy is signed by the key {self.key.hex()[:16]}…, but the pinned key is"
                f" {pinned.hex()[:16]}…: take it only from whoever shipped the first one"
            )
        if not verified(self.key, self.signature, policy_statement(digest(self.policy))):
            raise Refused("the signature of this policy does not fit it: it was changed, or damaged on its way")
        return self.policy


def update_refusal(new: ShippedPolicy, accepted: Iterable[ShippedPolicy]) -> str | None:
    """Why a device does not take a policy after those it had; None where it does.

    Charges are kept by the names of analyses and fields, and count whatever policy they were made under. Besides, what
    would let them be forgotten is refused: a shorter period, a limit that is gone, prices that add up in another way,
    a stream that keeps its name and gets other fields.
    """
    return next((reason for old in accepted for reason in _reasons(new, old)), None)


def _reasons(new: ShippedPolicy, old: ShippedPolicy) -> Iterator[str]:
    if new.name != old.name:
        yield f"this device has the policy {old.name}, and takes no other: this one is {new.name}"
    if new.version <= old.version:
        yield f"this device has had version {old.version} and needs a later one: this is version {new.version}"
    if new.accounting is not old.accounting:
        yield f"prices of {old.name} add up by {old.accounting.value}, and cannot change to {new.accounting.value}"
    if new.days < old.days:
        yield f"the period was {old.days} days: {new.days} would forget what was spent before; it may grow only"
    if gone := sorted({limit.days for limit in old.limits} - {limit.days for limit in new.limits}):
        yield f"the limit over {gone[0]} days is gone: its numbers may change, but it stays"
    for stream in new.streams:
        before = old.stream(stream.name)
        if before is not None and before.fields != stream.fields:
            yield f"the stream {stream.name} has other fields than before: give the new ones a stream of their own"


def read_policy(path: Path) -> ShippedPolicy:
    """The policy in a file: TOML, JSON, or signed JSON, whose signature is not looked at here."""
    text = read_text(path, "the policy", LIMITS.length)
    if text.lstrip()[:1] != "{":
        return from_toml(text)
    try:
        return SignedPolicy.from_json(text).policy
    except InputError:
        return from_json(text)
