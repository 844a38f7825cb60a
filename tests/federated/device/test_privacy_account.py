"""What a device has paid: which charges count, and until which second."""

from dataclasses import replace
from datetime import timedelta
from fractions import Fraction

import pytest
from tests.federated.device.room import FEW, NOW, task

from hazemap.federated.device import enrolment
from hazemap.federated.device.account.privacy_account import PrivacyAccount
from hazemap.federated.device.store.encrypted_store import EncryptedStore
from hazemap.federated.trust.randomised_reports import law_for
from hazemap.privacy.amplification.zcdp_of_sum import SPILL
from hazemap.privacy.budget import ApproxDP, PureDP

DAYS = 30
TIGHT = replace(FEW, campaign=Fraction(10), period=Fraction(1), days=DAYS)


@pytest.fixture
def account(tmp_path):
    with EncryptedStore.opened(tmp_path / "devices.sqlite", create=True) as store:
        [device] = enrolment.add(store)
        yield PrivacyAccount(store, device)


def paid(account, at, **changes):
    asked = task(share=Fraction(1, 10), budget=PureDP(10), **changes)
    assert account.store.commit([[account.charge(asked, bytes(32), at)]]) == [None]


def refusal(account, at, share=Fraction(1, 20)):
    return account.refusal(replace(task(share=share, budget=PureDP(10)), campaign="another"), TIGHT, at)


def shared(whole, share=Fraction(1, 10), **changes):
    """A round of a campaign of reports, which shares out the ρ of (ε, 10⁻⁶)."""
    budget = ApproxDP(whole, "1e-6")
    price = budget.part(share)
    plain = task(share=share, budget=PureDP(1))
    law = law_for(price, 16, Fraction(8))
    return replace(plain, price=price, budget=budget, randomiser=law, **changes)


def pays(account, asked, rules, at=NOW):
    """Pay if it is allowed; the reason otherwise."""
    refused = account.refusal(asked, rules, at)
    if refused is None:
        assert account.store.commit([[account.charge(asked, bytes(32), at)]]) == [None]
    return refused


def test_a_charge_counts_for_the_whole_period_and_no_second_longer(account):
    paid(account, NOW)
    assert "1 was spent in 30 days" in refusal(account, NOW + timedelta(days=DAYS, seconds=-1))
    assert refusal(account, NOW + timedelta(days=DAYS)) is None


def test_a_charge_dated_in_the_future_counts_for_the_clock_was_set_back(account):
    paid(account, NOW + timedelta(days=400))
    assert "1 was spent in 30 days" in refusal(account, NOW)


def test_a_campaign_pays_for_each_round_and_again_for_a_cheaper_one_of_the_same_number(account):
    paid(account, NOW)
    cheaper = task(share=Fraction(1, 100), budget=PureDP(10))
    assert account.store.commit([[account.charge(cheaper, b"2" * 32, NOW)]]) == [None]
    rich = replace(TIGHT, period=Fraction(100), campaign=Fraction(100))
    assert account.refusal(task(share=Fraction(89, 100), budget=PureDP(10)), rich, NOW) is None
    assert "1.1 is spent" in account.refusal(task(share=Fraction(90, 100), budget=PureDP(10)), rich, NOW)
    assert "1.1 is spent" in account.refusal(task(share=Fraction(1, 100), budget=PureDP("1.1")), rich, NOW)


def test_what_a_campaign_was_paid_before_the_period_still_counts_toward_its_own_word(account):
    paid(account, NOW - timedelta(days=1_000))
    rich = replace(TIGHT, campaign=Fraction(10))
    assert account.refusal(task(share=Fraction(1), budget=PureDP("0.5")), rich, NOW)


def test_a_campaign_and_a_period_may_be_spent_to_the_last_fraction_and_no_further(account):
    paid(account, NOW)
    for rules in (replace(TIGHT, campaign=Fraction(2), period=Fraction(9)), replace(TIGHT, period=Fraction(2))):
        assert account.refusal(task(share=Fraction(1, 10), budget=PureDP(10)), rules, NOW) is None
        more = task(share=Fraction(1, 10) + Fraction(1, 10**30), budget=PureDP(10))
        assert account.refusal(more, rules, NOW)


def test_what_campaigns_cost_is_told_for_the_same_period_in_every_unit(account):
    paid(account, NOW)
    assert account.spent(DAYS, NOW + timedelta(days=DAYS, seconds=-1)) == (1, 0, Fraction(1, 2), 0, 1)
    for days in (DAYS, DAYS + 1):
        assert account.spent(DAYS, NOW + timedelta(days=days)) == (0, 0, 0, 0, 0)
    later, dear = NOW + timedelta(days=DAYS), task(share=Fraction(3, 10), budget=PureDP(10))
    for asked in (dear, shared(1), shared(1, round=2), shared(2, campaign="b")):
        assert account.store.commit([[account.charge(asked, bytes(32), later)]]) == [None]
    rhos = shared(1).price.rho * 2 + shared(2).price.rho
    assert account.spent(DAYS, later) == (6, Fraction(2, 10**6), Fraction(9, 2) + rhos, 3 * SPILL, 4)


def test_a_campaign_of_reports_pays_its_whole_once_and_what_its_budget_has_grown_by(account):
    assert account.price(task(share=Fraction(1, 10), budget=PureDP(10))) == 1
    assert account.price(shared(1)) == 1
    assert account.store.commit([[account.charge(shared(1), bytes(32), NOW)]]) == [None]
    for whole, price in (("0.75", 0), (1, 0), ("2.5", Fraction(3, 2))):
        again = replace(shared(whole), round=2)
        assert account.price(again) == account.price(again, account.charges()) == price
        for name in ("b", "z"):
            assert account.price(replace(again, campaign=name)) == again.budget.epsilon, "no other has paid for it"


def test_campaigns_of_reports_may_spend_their_rho_and_a_period_its_delta_to_the_last_fraction(account):
    rules = replace(TIGHT, period=Fraction(99), delta=Fraction(2, 10**6))
    half = Fraction(1, 2)
    assert [pays(account, shared(1, half, round=number), rules) for number in (1, 2)] == [None, None]
    assert "which is ρ =" in pays(account, shared(1, half, round=3), rules)
    assert pays(account, shared(1, campaign="b"), rules) is None
    third = shared(1, campaign="c")
    assert "with this campaign δ = 3e-06 would be spent in 30 days" in pays(account, third, rules)
    assert pays(account, third, rules, NOW + timedelta(days=DAYS, seconds=-1))
    assert pays(account, third, rules, NOW + timedelta(days=DAYS + 1)) is None


def test_a_campaign_of_reports_that_goes_on_in_another_period_counts_whole_in_that_one_too(account):
    assert account.store.commit([[account.charge(shared(1), bytes(32), NOW)]]) == [None]
    later = NOW + timedelta(days=DAYS + 1)
    assert account.refusal(shared(1, round=2), TIGHT, later) is None
    paid(account, later)
    assert "this round costs ε = 1 and 1 was spent" in account.refusal(shared(1, round=2), TIGHT, later)
