"""An account sums charges as they grow, and says what the charges themselves say."""

import shutil
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction
from hashlib import sha256

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cpu_time import least_cpu
from tests.federated.device.reporting import AGE, NGRAM, PERPLEXITY, price, request
from tests.federated.device.room import FEW, NOW, task
from tests.federated.device.test_privacy_account import shared

from hazemap.federated.device import enrolment
from hazemap.federated.device.account import charges
from hazemap.federated.device.account.charges import ChargeSums, spending, summed_recipe_charges, window_start
from hazemap.federated.device.account.privacy_account import PrivacyAccount
from hazemap.federated.device.account.recipe_account import RecipeAccount
from hazemap.federated.device.store.encrypted_store import EncryptedStore
from hazemap.federated.recipes.policy_document import example
from hazemap.privacy.budget import PureDP

RICH = replace(FEW, campaign=Fraction(10**6), period=Fraction(10**6))
MAPS = [
    task(share=Fraction(share, 100), campaign=name, budget=PureDP(1)) for share, name in ((1, "a"), (2, "a"), (1, "b"))
]
KINDS = st.one_of(
    st.sampled_from(MAPS),
    st.builds(
        request,
        st.sampled_from(["0.1", "0.02"]),
        st.sampled_from([(NGRAM,), (NGRAM, PERPLEXITY), (AGE,)]),
        study=st.sampled_from(["", "words"]),
    ),
)
HOURS = st.sampled_from([0, 0, 1, 5, 23, 24, 100])
HISTORY = st.lists(st.tuples(KINDS, HOURS, st.booleans()), min_size=1, max_size=24)


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    path = tmp_path_factory.mktemp("sums") / "devices.sqlite"
    with EncryptedStore.opened(path, create=True) as store:
        enrolment.add(store)
        store.emptied()
    return path


def paid(store, asked, now):
    account = RecipeAccount(store, 1) if hasattr(asked, "audience") else PrivacyAccount(store, 1)
    return account.charge(asked, now) if hasattr(asked, "audience") else account.charge(asked, bytes(32), now)


def said(store, now):
    """Everything that an account says, in windows of some lengths, and whether some rounds and reports can be paid."""
    maps, recipes = PrivacyAccount(store, 1), RecipeAccount(store, 1)
    for days in (1, 2, 30, 10_000_000):
        yield maps.answered(days, now)
        yield spending(summed_recipe_charges(store, 1, window_start(now, days)), days, now)
        for field in (None, NGRAM, AGE):
            yield maps.spent(days, now, field=field)
    for days in (1, 30):
        yield [maps.refusal(each, replace(FEW, period=Fraction(1, 20), days=days), now) for each in MAPS]
    for asked in (request("0.3"), request("0.02", study="words", whole=price("0.1")), MAPS[0]):
        if hasattr(asked, "audience"):
            yield recipes.refusal(asked, example(), now)
        else:
            yield recipes.campaign_refusal(asked, example(), now)


@settings(max_examples=4, deadline=None)
@given(HISTORY, st.integers(1, 5))
def test_sums_say_what_the_charges_say_whatever_was_paid_and_wherever_a_crash_was(fresh, history, every):
    """A crash loses a transaction whole; so sums are written with a charge, or neither is."""
    path = fresh.with_name("tried.sqlite")
    for end in ("", ".key"):
        shutil.copy(f"{fresh}{end}", f"{path}{end}")
    now, kept = NOW, charges.EVERY
    with EncryptedStore.opened(path) as store:
        try:
            for asked, hours, crash in history:
                now += timedelta(hours=hours)
                charges.EVERY = every
                writes = (paid(store, asked, now), *ChargeSums(store, 1).writes())
                if not crash:
                    assert store.commit([writes]) == [None]
            summed = list(said(store, now))
            assert sum(each.times for each in ChargeSums(store, 1).charges()) == sum(not crash for *_, crash in history)
            store.read("DELETE FROM sums")
            assert list(said(store, now)) == summed
        finally:
            charges.EVERY = kept


def test_shared_budgets_and_reports_that_are_seen_are_summed_as_they_are(fresh, monkeypatch):
    monkeypatch.setattr(charges, "EVERY", 2)
    path = fresh.with_name("shared.sqlite")
    for end in ("", ".key"):
        shutil.copy(f"{fresh}{end}", f"{path}{end}")
    asked = [shared(Fraction(1, 2), Fraction(1, 9), campaign=name) for name in ("a", "b")]
    with EncryptedStore.opened(path) as store:
        account = PrivacyAccount(store, 1)
        for number in range(7):
            charge = account.charge(asked[number % 2], bytes(32), NOW + timedelta(hours=number), seen=number == 3)
            assert store.commit([[charge, *ChargeSums(store, 1).writes()]]) == [None]
        later = NOW + timedelta(hours=7)
        summed = [*said(store, later), account.price(asked[0]), account.refusal(asked[0], RICH, later)]
        store.read("DELETE FROM sums")
        assert [*said(store, later), account.price(asked[0]), account.refusal(asked[0], RICH, later)] == summed


@pytest.mark.slow
def test_a_look_at_an_account_of_forty_thousand_charges_costs_milliseconds(fresh):
    """Measured 1.28 s before charges were summed; the promise leaves room for a busy machine."""
    path = fresh.with_name("large.sqlite")
    for end in ("", ".key"):
        shutil.copy(f"{fresh}{end}", f"{path}{end}")
    asked = [task(share=Fraction(1, 100), campaign=name) for name in ("a", "b", "c")]
    with EncryptedStore.opened(path) as store:
        for number in range(0, 40_000, 100):
            now = NOW + timedelta(minutes=30 * number)
            first = store.next_number("charges", 1)
            plain = [PrivacyAccount(store, 1).charge(each, bytes(32), now, first).parameters[2] for each in asked]
            texts = [store.unseal("charges", 1, first, each) for each in plain]
            batch = [store.added("charges", 1, first + at, texts[at % 3]) for at in range(100)]
            assert store.commit([[*batch, *ChargeSums(store, 1).writes()]]) == [None]
        account = PrivacyAccount(store, 1)
        cost = least_cpu(lambda: account.refusal(asked[0], RICH, now), 5)
        store.read("DELETE FROM sums")
        unsummed = least_cpu(lambda: account.refusal(asked[0], RICH, now), 1)
        print(f"a look: {1_000 * cost:.1f} ms, and {1_000 * unsummed:.0f} ms without sums")
        assert cost < 0.1 < unsummed


def test_the_digest_of_a_recipe_tells_two_of_one_price_apart(fresh, monkeypatch):
    """What is summed is what is equal in all but its time."""
    monkeypatch.setattr(charges, "EVERY", 1)
    path = fresh.with_name("two.sqlite")
    for end in ("", ".key"):
        shutil.copy(f"{fresh}{end}", f"{path}{end}")
    with EncryptedStore.opened(path) as store:
        for name in (b"one", b"one", b"two"):
            charge = RecipeAccount(store, 1).charge(request(recipe=sha256(name).digest()), NOW)
            assert store.commit([[charge, *ChargeSums(store, 1).writes()]]) == [None]
        assert store.commit([ChargeSums(store, 1).writes()]) == [None]
        assert sorted(times for *_, times in ChargeSums(store, 1).charges()) == [1, 2]
