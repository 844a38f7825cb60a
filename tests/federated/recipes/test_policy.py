"""A policy as a text, as a thing, signed, and followed by another one."""

import json
import random
import tomllib
from dataclasses import replace
from fractions import Fraction

import pytest
from tests.federated.recipes.policy_order import allows_no_more

from hazemap.errors import InputError, Refused
from hazemap.federated.protocols.secure_aggregation.enrolment_proof import CHALLENGE, enrolment_statement
from hazemap.federated.recipes.event_stream import EventField, EventType
from hazemap.federated.recipes.policy import Accounting, DeviceLimit, ShippedPolicy
from hazemap.federated.recipes.policy_document import (
    EXAMPLE,
    POLICY_SCHEMA,
    SignedPolicy,
    canonical_json,
    digest,
    example,
    from_document,
    from_json,
    from_toml,
    to_document,
    update_refusal,
)
from hazemap.privacy.signing_identities import Identity, policy_statement

OURS, THEIRS = Identity.from_bytes(b"1" * 32), Identity.from_bytes(b"2" * 32)
CLASSES = {
    "listed": 'listed = [{ text = "SELECT age FROM profile WHERE age > :a", parameters = { a = 0.5 } }]',
    "templates": 'templates = [{ text = "SELECT age FROM profile WHERE age > :a and age < :b", parameters = '
    '{ a = { type = "real", low = 0.5, high = 9.5 }, b = { type = "integer", choices = [1, 2] } } }]',
}


def changed(old, new):
    assert old in EXAMPLE
    return EXAMPLE.replace(old, new, 1)


@pytest.mark.parametrize("text", [EXAMPLE, *(EXAMPLE + each + "\n" for each in CLASSES.values())])
def test_a_policy_is_the_same_in_toml_and_in_json(text):
    policy = from_toml(text)
    assert from_json(canonical_json(policy)) == policy == from_document(json.loads(canonical_json(policy)))
    assert canonical_json(from_json(json.dumps(to_document(policy), indent=4))) == canonical_json(policy)
    assert canonical_json(policy).isascii()


def test_the_digest_changes_with_everything_that_a_policy_says():
    texts = [EXAMPLE, changed("version = 1", "version = 2"), changed("keep = 30", "keep = 31")]
    texts += [changed("reports = 50", "reports = 51"), changed("1000", "1001"), changed('"de_DE", ', "")]
    texts += [EXAMPLE + each + "\n" for each in CLASSES.values()]
    assert len({digest(from_toml(text)) for text in texts}) == len(texts)
    assert digest(from_toml(changed("epsilon = 0.5", 'epsilon = "1/2"'))) == digest(example()), "the same number"


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("epsilon = 0.5", "epsilon = 1e999999999", "finite number"),
        ("epsilon = 0.5", 'epsilon = "1e999999999"', "finite number"),
        ("epsilon = 0.5", "epsilon = nan", "finite number"),
        ("epsilon = 0.5", "epsilon = -0.1", "between 0 and 1000"),
        ("epsilon = 0.5", "epsilon = 1001", "between 0 and 1000"),
        ("epsilon = 0.5", f"epsilon = 0.{'3' * 70}", "64 digits"),
        ("epsilon = 0.5", "epsilon = true", "is a number"),
        ("epsilon = 0.5", "", "is missing"),
        ("delta = 1e-6\nreports = 1\nminimum", "delta = 1\nreports = 1\nminimum", "below 1"),
        ("version = 1", "version = 0", "from 1 to"),
        ("version = 1", "version = 1.5", "whole number"),
        ("version = 1", f"version = {'9' * 4_000}", "from 1 to"),
        ("version = 1", f"version = {'9' * 5_000}", "not TOML"),
        ("version = 1", "version = 1\nversion = 2", "not TOML"),
        ("version = 1", f"version = 1\nx = {'[' * 3_000}", "not TOML"),
        ("days = 30 ", "days = 0 ", "from 1 to"),
        ("version = 1", f"{'a.' * 100_000}b = 1", "more than 16 parts"),
        ("version = 1", f"version = 1\n# {'x' * 300_000}", "at most 262,144 characters"),
        ("keep = 30", "keep = 0", "1 to 3,660 days"),
        ("[streams.profile]", '[streams."ｐrofile"]', "lower-case"),
        ('"keyboard.ngram"]       #', '"keyboard.ngramm"]       #', "no stream of this policy has it"),
        ('fields = ["keyboard.ngram"', 'fields = ["keyboard.at", "keyboard.ngram"', "has no budget"),
        ('fields = ["keyboard.ngram"', 'fields = ["keyboard.ngram", "keyboard.ngram"', "each once"),
        ('"profile.locale" }', '"profile.age" }', "cannot have a budget"),
        ('"profile.locale" }', '"profile.shoe" }', "in no stream"),
        ('purpose = "better', 'purpose = "\u202ebetter', "cannot be printed"),
        ('purpose = "better suggestions for the next word"', 'purpose = " "', "is empty"),
        ('["two servers", "secure sums"]', "[]", "names who may carry"),
        ('["two servers", "secure sums"]', '["two servers", "two servers"]', "stands twice"),
        ('["two servers", "secure sums"]', '["pigeons"]', "one of secure sums"),
        ("reports = 50", "reports = 50\nnoise = 1", "says nothing about 'noise'"),
        ('"en_US", "en_GB"', '"en_US", "en_US"', "each once"),
        ('type = "time"', 'type = "date"', "is one of integer"),
        ("[[limits]]", "[[other]]", "says nothing about 'other'"),
    ],
)
def test_a_policy_that_says_something_odd_is_refused_in_words(old, new, reason):
    with pytest.raises(InputError, match=reason):
        from_toml(changed(old, new))


def test_a_policy_in_zcdp_gives_everything_a_delta():
    policy = replace(example(), accounting=Accounting.ZCDP)
    with pytest.raises(InputError, match="δ above 0"):
        replace(policy, limits=(replace(policy.limits[0], delta=Fraction(0)),))


@pytest.mark.parametrize("text", [b"", b"[]", b'{"name": NaN}', b"\xff", b'{"a":1,"a":1}', b"[" * 99, b" " * (1 << 21)])
def test_a_json_text_that_is_no_policy_is_refused(text):
    with pytest.raises(InputError):
        from_json(text)
    with pytest.raises(InputError):
        SignedPolicy.from_json(text)


def test_a_signature_is_of_one_policy_and_one_key_under_a_domain_of_its_own():
    signed = SignedPolicy.sign(example(), OURS)
    assert SignedPolicy.from_json(signed.to_json()) == signed
    assert signed.verify(OURS.public) == example()
    ours, theirs = (each.public.hex()[:16] for each in (OURS, THEIRS))
    with pytest.raises(Refused, match=f"signed by the key {ours}…, but the pinned key is {theirs}…"):
        signed.verify(THEIRS.public)
    other = replace(example(), version=2)
    enrolment = enrolment_statement("", bytes(32), bytes(CHALLENGE), digest(example()), "")
    for forged in (
        replace(signed, policy=other),
        replace(signed, signature=bytes(64)),
        replace(signed, signature=THEIRS.sign(policy_statement(digest(example())))),
        replace(signed, signature=OURS.sign(digest(example()))),
        replace(signed, signature=OURS.sign(enrolment)),
    ):
        with pytest.raises(Refused, match="does not fit it"):
            forged.verify(OURS.public)
    found = json.loads(signed.to_json())
    for wrong in ({**found, "key": "00"}, {**found, "signature": 5}, {**found, "more": 1}, {**found, "policy": {}}):
        with pytest.raises(InputError):
            SignedPolicy.from_json(json.dumps(wrong))


def test_a_later_version_follows_and_nothing_that_would_forget_what_was_spent_does():
    first = example()
    assert update_refusal(first, []) is None
    later = replace(first, version=2)
    [limit], [keyboard, profile] = first.limits, first.streams
    wider = (*keyboard.fields, EventField("x", EventType.REAL))
    one, *rest = keyboard.fields
    other = EventType.REAL if one.type is not EventType.REAL else EventType.INTEGER
    refused = {
        "needs a later one": first,
        "takes no other: this one is other": replace(later, name="other"),
        "takes no other: this one is a": replace(later, name="a"),
        "cannot change to zcdp": replace(later, accounting=Accounting.ZCDP),
        "would forget": replace(later, days=29),
        "limit over 365 days is gone": replace(later, limits=(replace(limit, days=364),)),
        "has other fields than before": replace(later, streams=(replace(keyboard, fields=wider), profile)),
    }
    for reason, policy in refused.items():
        assert reason in update_refusal(policy, [first])
    assert "needs a later one" in update_refusal(first, [later])
    for fields in (keyboard.fields[:-1], (replace(one, name="z"), *rest), (replace(one, type=other), *rest)):
        spoilt = replace(later, streams=(replace(keyboard, fields=fields), profile), fields=(), analyses=())
        assert "has other fields than before" in update_refusal(spoilt, [first])
    for policy in (
        from_json(canonical_json(later)),
        replace(
            later, days=31, limits=(replace(limit, epsilon=Fraction(9)), DeviceLimit(7, Fraction(1), Fraction(0), 1))
        ),
        replace(later, analyses=(), fields=(), streams=(keyboard,)),
        replace(later, streams=(replace(keyboard, keep=3), profile)),
    ):
        assert update_refusal(policy, [first]) is None
    gone = replace(later, streams=(profile,), fields=(), analyses=())
    back = replace(gone, version=3, streams=(replace(keyboard, fields=wider), profile))
    assert update_refusal(back, [gone]) is None
    assert "other fields" in update_refusal(back, [first, gone]), "every earlier version counts"


def varied(chance):
    """The example with other numbers, and with parts left out."""
    policy = example()
    limits = tuple(
        replace(each, epsilon=Fraction(chance.randint(0, 4)), days=chance.choice((7, 365))) for each in policy.limits
    )
    fields = tuple(replace(each, local_epsilon=Fraction(chance.randint(1, 3))) for each in policy.fields)
    [analysis] = policy.analyses
    analysis = replace(analysis, epsilon=Fraction(chance.randint(0, 2)), minimum_cohort=chance.choice((10, 1_000)))
    analyses = (analysis,) * chance.randint(0, 1)
    return replace(policy, limits=limits, fields=fields, analyses=analyses, days=chance.choice((30, 60)))


def test_allowing_no_more_is_an_order():
    chance = random.Random(1)
    some = [varied(chance) for _ in range(60)]
    assert all(allows_no_more(each, each) for each in some)
    within = {(i, j) for i, a in enumerate(some) for j, b in enumerate(some) if allows_no_more(a, b)}
    assert 0 < len(within) - len(some) < len(some) ** 2 / 2
    assert all((i, k) in within for i, j in within for other, k in within if other == j)
    assert all(digest(some[i]) == digest(some[j]) for i, j in within if (j, i) in within)


def test_the_schema_knows_every_key_of_a_policy():
    policy = tomllib.loads(EXAMPLE)
    assert set(policy) <= set(POLICY_SCHEMA["properties"]) == set(to_document(example()))
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate(to_document(example()), POLICY_SCHEMA)
    for text in CLASSES.values():
        jsonschema.validate(to_document(from_toml(EXAMPLE + text + "\n")), POLICY_SCHEMA)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**to_document(example()), "noise": 1}, POLICY_SCHEMA)


def test_a_policy_is_a_policy_of_streams_that_stand_once():
    policy = example()
    with pytest.raises(InputError, match="stands twice"):
        replace(policy, streams=(*policy.streams, policy.streams[0]))
    with pytest.raises(InputError, match="stands twice"):
        replace(policy, fields=(*policy.fields, policy.fields[0]))
    for name in ("nеxt_word", "Next", "", ".x", "a" * 101):
        with pytest.raises(InputError, match="is called by lower-case"):
            replace(policy.analyses[0], name=name)
    assert isinstance(policy, ShippedPolicy) and policy.field(policy.fields[0].field) == policy.fields[0]
