"""Devices that randomise their own reports: what they send, what they pay, and what they refuse."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from tests.federated.device.room import FEW, NOW, Room, settle, task

from hazemap.federated.device.account.activity_log import ActivityLog
from hazemap.federated.device.account.privacy_account import PrivacyAccount
from hazemap.federated.device.store.encrypted_store import EncryptedStore
from hazemap.federated.trust.randomised_reports import law_for
from hazemap.privacy.budget import ZCDP, ApproxDP
from hazemap.privacy.distributed_noise import NoAddedNoise
from hazemap.privacy.local_randomisers import Asymmetric, UnaryEncoding

BUDGET = ApproxDP(1, "1e-6")


@pytest.fixture
def store(tmp_path):
    with EncryptedStore.opened(tmp_path / "devices.sqlite", create=True) as store:
        yield store


def report_task(people=20, share=Fraction(1, 10), budget=BUDGET, number=1):
    plain = task(people)
    law = law_for(budget.part(share), plain.cohort.honest(people), Fraction(8))
    question = replace(plain.question, share=share)
    return replace(plain, question=question, price=budget.part(share), budget=budget, randomiser=law, round=number)


def test_a_sum_of_reports_is_of_bits_and_the_campaigns_epsilon_is_charged_once(store):
    settle(store, 20)
    room = Room(store, report_task())
    assert isinstance(room.terms.noise, NoAddedNoise)
    opened = room.run(silent={3})
    assert opened.people == 19 and 0 <= opened.sums.min() <= opened.sums.max() <= 19
    p, q = room.task.randomiser.chances
    mean, variance = 15 * 19 * q + 19 * (p - q) + 19 * q, 19 * 16 / 4  # of all bits together
    assert abs(opened.sums.sum() - mean) < 7 * variance**0.5
    again = Room(store, report_task(number=2), nonce=b"2" * 32)
    again.run(silent={3})
    account = PrivacyAccount(store, room.devices[0])
    assert [(each.epsilon, each.delta) for each in account.charges()] == [(1, Fraction(1, 10**6))] * 2
    assert sum(each.rho for each in account.charges()) == BUDGET.rho / 5
    spent = account.spent(30, NOW)
    assert (spent.epsilon, spent.delta, spent.rho) == (1, Fraction(1, 10**6), BUDGET.rho / 5)
    first, second = ActivityLog(store, room.devices[0]).lines()
    assert {first.epsilon, second.epsilon} == {0, 1}, "the whole campaign, once"
    assert "randomised here by Asymmetric" in first.question


def test_a_device_holds_a_campaign_of_reports_to_its_rho_and_to_its_own_deltas(store):
    settle(store, 20)
    rounds = [Room(store, report_task(share=Fraction(2, 5), number=n), nonce=bytes([n]) * 32) for n in (1, 2, 3)]
    for room in rounds[:2]:
        room.run()
    rounds[2].turn(0)
    assert "nothing left to spend" in rounds[2].told[0]
    account = PrivacyAccount(store, rounds[0].devices[0])
    assert "ρ" in account.refusal(rounds[2].task, FEW, NOW)
    assert account.refusal(report_task(share=Fraction(1, 5), number=3), FEW, NOW) is None
    small = replace(FEW, delta=Fraction(1, 10**7))
    assert "δ = 1e-06 would be spent" in account.refusal(report_task(number=4), small, NOW)
    other = replace(report_task(budget=ApproxDP("1.5", "1e-6")), campaign="hotels")
    assert "may cost 1 in all" in account.refusal(other, FEW, NOW)
    assert "together may cost 2" in account.refusal(other, replace(FEW, campaign=Fraction(3)), NOW)


LOUD = UnaryEncoding(Fraction(61, 64), Fraction(1, 2000))


@pytest.mark.parametrize(
    ("changes", "policy", "words"),
    [
        ({}, {"local": Fraction(1, 2)}, "each report by itself would cost"),
        ({"budget": ZCDP(BUDGET.rho)}, {}, "says its price in epsilon"),
        ({"randomiser": Asymmetric(Fraction(60))}, {"local": Fraction(64)}, "costs more than"),
        ({"randomiser": LOUD}, {"local": LOUD.replacement - Fraction(1, 10**6)}, "each report by itself would cost"),
        ({"randomiser": LOUD}, {"local": Fraction(64)}, "costs more than"),
        ({}, {"campaign": Fraction(1, 2)}, "one campaign may cost 0.5"),
    ],
    ids=str,
)
def test_what_a_device_does_not_agree_to(store, changes, policy, words):
    settle(store, 20)
    honest = Room(store, report_task())
    asked = replace(report_task(), **changes)
    assert words in replace(FEW, **policy).refusal(asked, honest.terms)


def test_damaged_rows_are_a_report_like_any_other(store, monkeypatch):
    settle(store, 20)
    monkeypatch.setattr("hazemap.federated.device.store.row_store.RowStore.table", lambda *_: 1 / 0)
    room = Room(store, report_task())
    opened = room.run()
    assert opened.people == 20 and np.all(opened.sums >= 0)
    assert "could not be counted" in ActivityLog(store, room.devices[0]).lines()[0].question
