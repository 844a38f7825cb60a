"""A report is charged before it is sent, and the same bytes are sent again for the charge that stands."""

import os
from dataclasses import replace
from fractions import Fraction
from hashlib import sha256

import pytest

from hazemap.device import enrolment
from hazemap.device.activity_log import ActivityLog
from hazemap.device.encrypted_store import EncryptedStore
from hazemap.device.recipe_account import RecipeAccount
from hazemap.device.report_charging import NOTHING_LEFT, MadeReport, ReportCharging
from hazemap.recipes.policy_document import example

from .reporting import NOW, request

POLICY = replace(example(), analyses=(replace(example().analyses[0], reports=9),))
POLICY = replace(POLICY, fields=tuple(replace(each, reports=9) for each in POLICY.fields))


@pytest.fixture
def store(tmp_path):
    with EncryptedStore.opened(tmp_path / "devices.sqlite", create=True) as store:
        enrolment.add(store)
        yield store


def made():
    """A report of 16 random bytes, in two shares."""
    one, other = os.urandom(16), os.urandom(16)
    return MadeReport(bytes(a ^ b for a, b in zip(one, other, strict=True)), (one, other), one + other)


def step(store, asked=None, make=made):
    return ReportCharging(store, 1, POLICY).step(asked or request(), "ages", "SELECT ngram FROM keyboard", make, NOW)


def test_the_same_request_gets_the_same_bytes_free_and_another_audience_pays_for_others(store):
    first = step(store)
    assert store.commit([first.writes]) == [None]
    again = step(store, make=None)
    assert (again.reply, again.writes) == (first.reply, ())
    elsewhere = step(store, request(audience=sha256(b"another roster").digest()))
    assert elsewhere.reply != first.reply
    store.commit([elsewhere.writes])
    assert [each.price.epsilon for each in RecipeAccount(store, 1).charges()] == [Fraction(1, 10)] * 2


@pytest.mark.parametrize("crash", ["before the transaction", "after it, before the reply"])
def test_a_crash_between_charge_and_reply_costs_nothing_twice(tmp_path, crash):
    path = tmp_path / "devices.sqlite"
    with EncryptedStore.opened(path, create=True) as store:
        enrolment.add(store)
        first = step(store)
        if crash != "before the transaction":
            store.commit([first.writes])
    with EncryptedStore.opened(path) as store:
        again = step(store)
        assert (again.reply == first.reply) == (crash != "before the transaction")
        store.commit([again.writes])
        assert len(RecipeAccount(store, 1).charges()) == len(ActivityLog(store, 1).entries()) == 1


def test_two_processes_that_answer_one_request_never_both_charge(store):
    with EncryptedStore.opened(store.path) as other:
        steps = [step(each) for each in (store, other)]
        outcomes = [each.commit([one.writes])[0] for each, one in zip((store, other), steps, strict=True)]
    assert outcomes[0] is None and "another process" in str(outcomes[1])
    assert len(RecipeAccount(store, 1).charges()) == 1
    assert step(store).reply == steps[0].reply


def test_a_report_is_made_after_every_check_and_a_refusal_tells_no_server_what_others_were_told(store):
    def never():
        raise AssertionError("the query ran")

    refused = step(store, request(purpose="advertising"), never)
    assert "approved for another purpose" in refused.refusal and refused.reply is None
    store.commit([refused.writes, step(store, request("0.5")).writes])
    store.commit([step(store, request("0.5")).writes])
    left = step(store, request("0.2", audience=sha256(b"b").digest()), never)
    assert left.refusal == NOTHING_LEFT
    store.commit([left.writes])
    lines = ActivityLog(store, 1).entries()
    assert "the analysis next_word may cost ε = 0.5" in lines[-1].verdict
    assert len(RecipeAccount(store, 1).charges()) == 1


def test_the_log_holds_the_recipe_the_fields_the_report_and_a_digest_of_each_share(store):
    report = made()
    store.commit([step(store, make=lambda: report).writes])
    [line] = ActivityLog(store, 1).entries()
    assert ActivityLog(store, 1).lines() == [], "no campaign"
    assert (line.report, line.shares) == (report.report, tuple(sha256(each).hexdigest() for each in report.shares))
    assert (line.fields, line.verdict, line.epsilon) == (("keyboard.ngram",), "answered", Fraction(1, 10))
    assert line.to_json()["recipe"] == request().recipe.hex()
    text = str(line)
    assert "reads keyboard.ngram; (ε, δ) = (0.1, 1e-08) charged, ε₀ = 2; answered" in text
    assert "report of 16 bytes" in text and "SELECT ngram" in text
    assert report.shares[0].hex() not in text
