"""An answer is judged before it is made, and charged before it is sent; what is sent again costs nothing."""

import os
from dataclasses import replace
from fractions import Fraction
from hashlib import sha256

import pytest
from tests.federated.device.reporting import NOW, request
from tests.federated.device.room import task

from hazemap.errors import FileError, Refused
from hazemap.federated.device import enrolment
from hazemap.federated.device.account.device_account import NOTHING_LEFT, DeviceAccount, RecipeReport
from hazemap.federated.device.account.recipe_account import RecipeAccount
from hazemap.federated.device.policy.consent_policy import Policy
from hazemap.federated.device.server_task import ParsedTask
from hazemap.federated.device.store.answer_records import KeptReport
from hazemap.federated.device.store.encrypted_store import EncryptedStore
from hazemap.federated.recipes.policy_document import example

POLICY = replace(example(), analyses=(replace(example().analyses[0], reports=9),))
POLICY = replace(POLICY, fields=tuple(replace(each, reports=9) for each in POLICY.fields))
BATCH, WORDS = bytes(32), sha256(b"announcement").digest()


@pytest.fixture
def store(tmp_path):
    with EncryptedStore.opened(tmp_path / "devices.sqlite", create=True) as store:
        enrolment.add(store)
        yield store


def account(store):
    return DeviceAccount(store, 1, enrolment.read(store, 1), Policy())


def made():
    return os.urandom(16)


def step(store, asked=None, make=made):
    """A report that is made and paid, and the statements that keep it."""
    own = account(store)
    paid = own.paid(RecipeReport(asked or request(), POLICY), NOW, make)
    return paid.made, (*paid.writes, own.reports.kept(BATCH, KeptReport(1, 99, WORDS, paid.made)))


@pytest.mark.parametrize("crash", ["before the transaction", "after it, before the reply"])
def test_a_crash_between_charge_and_reply_costs_nothing_twice(tmp_path, crash):
    path = tmp_path / "devices.sqlite"
    with EncryptedStore.opened(path, create=True) as store:
        enrolment.add(store)
        parcel, writes = step(store)
        if crash != "before the transaction":
            assert store.commit([writes]) == [None]
    with EncryptedStore.opened(path) as store:
        kept = account(store).reports.find(BATCH)
        assert kept == (None if crash == "before the transaction" else KeptReport(1, 99, WORDS, parcel))
        assert len(RecipeAccount(store, 1).charges()) == (kept is not None)


def test_two_processes_that_answer_for_one_device_never_both_charge(store):
    with EncryptedStore.opened(store.path) as other:
        steps = [step(each)[1] for each in (store, other)]
        outcomes = [each.commit([writes])[0] for each, writes in zip((store, other), steps, strict=True)]
    assert outcomes[0] is None and "another process" in str(outcomes[1])
    assert [each.price.epsilon for each in RecipeAccount(store, 1).charges()] == [Fraction(1, 10)]


def test_nothing_is_made_before_every_check_and_no_server_hears_what_others_were_told(store):
    def never():
        raise AssertionError("the query ran")

    own, read = account(store), lambda: ParsedTask(task())
    with pytest.raises(Refused, match="approved for another purpose") as refused:
        step(store, request(purpose="advertising"), never)
    assert "another purpose" in own.refused(BATCH, refused.value, NOW, read).told
    assert store.commit([step(store, request("0.5"))[1]]) == [None]
    with pytest.raises(Refused, match=r"the analysis next_word may cost ε = 0.5") as left:
        step(store, request("0.2", audience=sha256(b"b").digest()), never)
    told, writes = own.refused(BATCH, left.value, NOW, read)
    assert told == NOTHING_LEFT and store.commit([writes]) == [None]
    assert "next_word may cost ε = 0.5" in own.log.lines()[-1].outcome and own.sessions.over(BATCH)
    assert len(RecipeAccount(store, 1).charges()) == 1


def test_what_is_the_stores_trouble_is_no_refusal(store):
    with pytest.raises(FileError, match="full"):
        account(store).refused(BATCH, FileError("the disk is full"), NOW, lambda: ParsedTask(task()))
