"""Which policy rules a device: pinned, signed, never an older one, and no wider than its owner's own rules."""

import random
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction

import pytest
from tests.federated.device.reporting import AGE, NGRAM, NOW, request
from tests.federated.recipes.policy_order import allows_no_more

from hazemap.errors import InputError, Refused
from hazemap.federated.device import enrolment
from hazemap.federated.device.account.recipe_account import RecipeAccount
from hazemap.federated.device.policy.consent_policy import Policy, restrict_policy
from hazemap.federated.device.policy.shipped_policies import ShippedPolicies
from hazemap.federated.device.store.encrypted_store import EncryptedStore
from hazemap.federated.device.store.event_store import EventStore
from hazemap.federated.recipes.policy import Carrier
from hazemap.federated.recipes.policy_document import SignedPolicy, digest, example
from hazemap.federated.recipes.query_class import StreamFieldName
from hazemap.privacy.signing_identities import Identity

OURS, THEIRS = Identity.from_bytes(b"1" * 32), Identity.from_bytes(b"2" * 32)


@pytest.fixture
def store(tmp_path):
    with EncryptedStore.opened(tmp_path / "devices.sqlite", create=True) as store:
        enrolment.add(store, 2)
        yield store


def signed(identity=OURS, **changes):
    return SignedPolicy.sign(replace(example(), **changes), identity)


def test_a_device_has_no_policy_until_its_owner_accepts_one_and_pins_its_key(store):
    policies = ShippedPolicies(store)
    assert policies.current() is None
    with pytest.raises(Refused, match="needs the key"):
        policies.accept(signed(), None, NOW)
    with pytest.raises(Refused, match="the pinned key is"):
        policies.accept(signed(), THEIRS.public, NOW)
    with pytest.raises(Refused, match="does not fit"):
        policies.accept(replace(signed(), policy=replace(example(), days=31)), OURS.public, NOW)
    assert policies.current() is None
    policies.accept(signed(), OURS.public, NOW)
    with EncryptedStore.opened(store.path) as other:
        assert ShippedPolicies(other).current().policy == example()


def test_an_update_needs_the_pinned_key_and_a_higher_version(store):
    policies = ShippedPolicies(store)
    policies.accept(signed(version=3), OURS.public, NOW)
    for update, key, reason in (
        (signed(THEIRS, version=4), None, "the pinned key is"),
        (signed(THEIRS, version=4), THEIRS.public, "has pinned the key"),
        (signed(version=2), None, "needs a later one"),
        (signed(version=3, days=31), None, "needs a later one"),
        (signed(version=4, days=29), None, "would forget"),
    ):
        with pytest.raises(Refused, match=reason):
            policies.accept(update, key, NOW)
    assert policies.accept(signed(version=3), None, NOW).policy.version == 3, "the same again changes nothing"
    policies.accept(signed(version=4), None, NOW)
    assert [each.policy.version for each in policies.accepted()] == [3, 4]


def test_two_processes_that_accept_at_the_same_time_leave_the_higher_version(store):
    ShippedPolicies(store).accept(signed(), OURS.public, NOW)
    with EncryptedStore.opened(store.path) as other:
        ShippedPolicies(other).accept(signed(version=3), None, NOW)
        with pytest.raises(Refused, match="needs a later one"):
            ShippedPolicies(store).accept(signed(version=2), None, NOW)


def test_an_update_gives_no_spent_budget_back_whatever_it_renames(store):
    """The field's cap is over everything that was charged to it, under any name of an analysis and any version."""
    account, policies = RecipeAccount(store, 1), ShippedPolicies(store)
    first = policies.accept(signed(), OURS.public, NOW).policy
    [analysis] = first.analyses
    budgets = tuple(replace(each, reports=99) for each in first.fields)
    assert account.refusal(request("0.3", (AGE,)), first, NOW) is None
    store.commit([[account.charge(request("0.3", (AGE,)), NOW)]])
    renamed = (replace(analysis, name="next_words", reports=99), replace(analysis, reports=99))
    second = policies.accept(signed(version=2, analyses=renamed, fields=budgets), None, NOW).policy
    for name in ("next_words", "next_word"):
        refused = account.refusal(request("0.01", (AGE,), analysis=name), second, NOW)
        assert "profile.age may cost ε = 0.3" in refused.reason and refused.private
    assert account.refusal(request("0.01", (NGRAM,), analysis="next_words"), second, NOW) is None
    gone = policies.accept(signed(version=3, analyses=(), fields=()), None, NOW).policy
    assert account.refusal(request("0.01"), gone, NOW)
    back = policies.accept(signed(version=4, analyses=renamed, fields=budgets), None, NOW).policy
    assert account.refusal(request("0.01", (AGE,)), back, NOW + timedelta(days=29))


def test_an_update_shortens_what_is_kept_and_deletes_streams_that_it_leaves_out(store):
    policies, seconds = ShippedPolicies(store), NOW.timestamp()
    keyboard, profile = policies.accept(signed(), OURS.public, NOW).policy.streams
    events = EventStore(store, 2)
    events.donate(keyboard, [("a", 0.5, int(seconds))], seconds)
    events.donate(profile, [(30, "en_US")], seconds)
    policies.accept(signed(version=2, streams=(replace(keyboard, keep=2), profile)), None, NOW)
    assert not events.read(keyboard, seconds + 2 * 86_400)
    with pytest.raises(Refused):
        policies.accept(signed(version=2, streams=(keyboard,), fields=(), analyses=()), None, NOW)
    assert events.read(profile, seconds)
    policies.accept(signed(version=3, streams=(keyboard,), fields=(), analyses=()), None, NOW)
    assert not events.read(profile, seconds) and events.read(keyboard, seconds)


def rules(chance):
    return Policy(
        campaign=Fraction(chance.randint(0, 8), 10),
        period=Fraction(chance.randint(1, 4)),
        days=chance.choice((7, 30, 400)),
        people=chance.choice((1, 500, 5_000)),
        keep=chance.choice((1, 30, 400)),
        local=Fraction(chance.randint(1, 9)),
        reports=chance.randint(0, 60),
        no_fields=chance.choice(((), ("profile.*",), ("*.perplexity",))),
        carriers=chance.choice((("two servers",), ("two servers", "secure sums"))),
        no_campaigns=chance.choice(((), (), ("next*",))),
        no_purposes=chance.choice(((), (), ("better*",))),
    )


def tighter(own, chance):
    """The same rules, and stricter in some places."""
    return replace(
        own,
        campaign=own.campaign / chance.choice((1, 2)),
        period=own.period / chance.choice((1, 2)),
        days=own.days + chance.choice((0, 9)),
        people=own.people + chance.choice((0, 700)),
        keep=max(1, own.keep - chance.choice((0, 9))),
        local=own.local / chance.choice((1, 2)),
        reports=max(0, own.reports - chance.choice((0, 9))),
        no_fields=own.no_fields + chance.choice(((), ("keyboard.*",))),
        carriers=own.carriers[: chance.choice((1, 2))],
        no_purposes=own.no_purposes + chance.choice(((), ("*",))),
    )


def test_a_persons_own_rules_only_tighten_and_tighter_ones_tighten_more():
    chance = random.Random(3)
    narrowed = 0
    for _ in range(300):
        own = rules(chance)
        mine = restrict_policy(example(), own)
        assert allows_no_more(mine, example())
        stricter = restrict_policy(example(), tighter(own, chance))
        assert allows_no_more(stricter, mine)
        assert allows_no_more(restrict_policy(mine, own), mine) and allows_no_more(mine, restrict_policy(mine, own)), (
            "twice is once"
        )
        narrowed += not allows_no_more(mine, stricter)
    assert narrowed > 100
    everything = Policy(campaign=Fraction(9), period=Fraction(999), people=1, keep=36_000, local=Fraction(99))
    free = restrict_policy(example(), everything)
    assert digest(replace(free, limits=example().limits)) == digest(example()), "rules that allow all take nothing away"


def test_what_a_person_denies_is_gone_with_what_depended_on_it():
    only = ("keyboard.*", "profile.age")
    assert restrict_policy(example(), Policy(no_fields=only)).analyses == ()
    assert restrict_policy(example(), Policy(carriers=())).analyses == ()
    assert restrict_policy(example(), Policy(people=10**10)).analyses == ()
    assert restrict_policy(example(), Policy(people=5_000)).analyses[0].minimum_cohort == 5_000
    assert restrict_policy(example(), Policy(people=5)).analyses[0].minimum_cohort == 1_000
    [analysis] = restrict_policy(example(), Policy(no_fields=("profile.*",))).analyses
    assert analysis.cohort_fields == () and StreamFieldName("profile", "age") not in analysis.queries.fields
    assert analysis.carriers == tuple(Carrier)[::-1] and analysis.minimum_cohort == 1_000


def test_rules_of_a_person_with_odd_numbers_are_refused_or_rounded_down():
    for wrong in (
        {"days": 10**6},
        {"keep": 10**6},
        {"reports": -1},
        {"local": Fraction(-1)},
        {"carriers": ("pigeons",)},
    ):
        with pytest.raises(InputError):
            Policy(**wrong)
    third = Fraction(10**100, 3 * 10**100 + 1)
    mine = restrict_policy(example(), Policy(campaign=third, period=third, local=third))
    assert 0 <= third - mine.analyses[0].epsilon < Fraction(1, 10**11)
    for text in (
        "[recipes]\nlocal = 1e999999999",
        f"[recipes]\nreports = {'9' * 5000}",
        "[recipes]\ndenied_fields = 1",
    ):
        with pytest.raises(InputError):
            Policy.parse(text)
    text = '[recipes]\nlocal = 0.5\nreports = 3\ndenied_fields = ["profile.*"]\ncarriers = ["two servers"]'
    assert Policy.parse(text) == Policy.parse(Policy.parse(text).to_toml())
