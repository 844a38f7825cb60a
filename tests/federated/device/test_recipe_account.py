"""What a device pays for recipes: checks 1, 2 and 3, to the last fraction and to the second."""

import random
from dataclasses import replace
from datetime import timedelta
from fractions import Fraction

import pytest
from tests.federated.device.reporting import AGE, NGRAM, NOW, PERPLEXITY, SMALL, price, request
from tests.federated.device.room import FEW, task

from hazemap.errors import InputError
from hazemap.federated.device import enrolment
from hazemap.federated.device.account.charges import Spending, spending
from hazemap.federated.device.account.privacy_account import PrivacyAccount
from hazemap.federated.device.account.recipe_account import SPILL, RecipeAccount, add_campaigns, largest_rho
from hazemap.federated.device.store.encrypted_store import EncryptedStore
from hazemap.federated.recipes.policy import Accounting, Carrier, DeviceLimit
from hazemap.federated.recipes.policy_document import example
from hazemap.federated.recipes.query_class import AnyQueryOverFields, StreamFieldName
from hazemap.privacy.budget import ApproxDP, PureDP, ReportPrice

DAY = timedelta(days=1)
POLICY = replace(
    example(),
    analyses=(replace(example().analyses[0], reports=5),),
    fields=tuple(replace(each, reports=9) for each in example().fields),
)
NARROW = replace(POLICY.analyses[0], queries=AnyQueryOverFields((PERPLEXITY, AGE)))


@pytest.fixture
def account(tmp_path):
    with EncryptedStore.opened(tmp_path / "devices.sqlite", create=True) as store:
        yield RecipeAccount(store, enrolment.add(store)[0])


def paid(account, asked, at=NOW, policy=POLICY):
    """Pay if it is allowed; the reason otherwise."""
    refused = account.refusal(asked, policy, at)
    if refused is None:
        assert account.store.commit([[account.charge(asked, at)]]) == [None]
    return refused and refused.reason


def test_check_1_the_analysis_has_budget_left_to_the_last_fraction(account):
    assert paid(account, request("0.3")) is None
    assert "ε = 0.5 in 30 days; with this report it would be 0.5" in paid(account, request("0.2000000001"))
    assert paid(account, request("0.2")) is None
    assert "the analysis next_word may cost ε" in paid(account, request("1/1000000"))


def test_check_1_counts_reports_and_deltas(account):
    for _ in range(5):
        assert paid(account, request("0")) is None
    assert "by 5 reports in 30 days" in paid(account, request("0"))
    wide = replace(POLICY, analyses=(replace(POLICY.analyses[0], reports=99),))
    assert "the analysis next_word may cost δ" in paid(account, request(price=price("0", "0.999e-6")), policy=wide)


def test_check_1_the_delta_may_be_spent_to_the_last_fraction(account):
    half = price("0", Fraction(1, 2 * 10**6))
    assert paid(account, request(price=half)) is None
    assert paid(account, request(price=half)) is None
    assert "may cost δ" in paid(account, request(price=price("0", Fraction(1, 10**30))))


def test_check_1_counts_what_its_own_analysis_has_spent_and_not_what_others_have(account):
    """Three analyses of every order of names, each paid to its last fraction while the others have spent as much."""
    names = ("a", "next_word", "z")
    policy = replace(
        POLICY,
        analyses=tuple(replace(POLICY.analyses[0], name=name) for name in names),
        fields=tuple(
            replace(each, epsilon=Fraction(9), delta=Fraction(1, 10**3), reports=99) for each in POLICY.fields
        ),
        limits=(DeviceLimit(365, Fraction(9), Fraction(1, 10**3), 99),),
    )
    for share in ("0.3", "0.2"):
        for name in names:
            assert paid(account, request(share, analysis=name), policy=policy) is None
    for name in names:
        assert f"the analysis {name} may cost ε" in paid(account, request("1/1000000", analysis=name), policy=policy)
        assert "by 2 reports" in paid(
            account,
            request("0", analysis=name),
            policy=replace(policy, analyses=tuple(replace(each, reports=2) for each in policy.analyses)),
        )


def test_check_2_every_field_has_budget_left_and_the_strictest_decides(account):
    wide = replace(POLICY, analyses=(replace(POLICY.analyses[0], epsilon=Fraction(9)),))
    assert paid(account, request("0.2", (AGE,)), policy=wide) is None
    assert "the field profile.age may cost ε = 0.3" in paid(account, request("0.2", (NGRAM, AGE)), policy=wide)
    assert paid(account, request("0.2", (NGRAM,)), policy=wide) is None
    assert paid(account, request("0.8", (NGRAM, PERPLEXITY)), policy=wide) is None
    assert "the field keyboard.ngram" in paid(account, request("0.1", (NGRAM, PERPLEXITY)), policy=wide)


def test_check_2_holds_the_local_budget_of_each_field_and_reports_of_each(account):
    assert "profile.age may have ε₀ = 2 at most" in paid(
        account, request(fields=(AGE,), local_epsilon=Fraction(21, 10))
    )
    assert paid(account, request(fields=(NGRAM,), local_epsilon=Fraction(5))) is None
    assert "keyboard.ngram may have" in paid(account, request(fields=(NGRAM, PERPLEXITY), local_epsilon=Fraction(6)))
    once = replace(POLICY, fields=tuple(replace(each, reports=1) for each in POLICY.fields))
    assert "the field keyboard.ngram may be told of by 1 reports" in paid(account, request("0"), policy=once)
    free = replace(POLICY, fields=POLICY.fields[1:], analyses=(NARROW,))
    assert "may not read keyboard.ngram" in paid(account, request(), policy=free)


def test_check_3_the_stated_price_is_what_the_reports_amount_to(account):
    assert "amount to" in paid(account, request("0.1", achieved=price("0.11")))
    assert "amount to" in paid(account, request("0.1", achieved=price("0.1", "2e-8")))
    assert "at least 1,000 people; this one would be opened with 999" in paid(account, request(cohort=999))
    assert paid(account, request("0.1", achieved=price("0.01"))) is None
    [charge] = account.charges()
    assert charge.price.epsilon == Fraction(1, 10), "what is stated is paid"
    lie = request(price=price("0.1", rho=SMALL), achieved=price("0.1", rho=Fraction(1, 2)))
    assert "amount to" in paid(account, lie), "a recipe cannot state a smaller ρ than the device has computed"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"analysis": "nеxt_word"}, "knows no analysis"),
        ({"analysis": "NEXT_WORD"}, "knows no analysis"),
        ({"purpose": "advertising"}, "approved for another purpose"),
        ({"carrier": Carrier.SECURE_SUMS}, None),
        ({"cohort_fields": frozenset({"locale"})}, None),
        ({"cohort_fields": frozenset({"zodiac", "income", "locale"})}, "income is no approved cohort field"),
        ({"fields": frozenset({StreamFieldName("keyboard", "at")})}, "may not read keyboard.at"),
    ],
)
def test_what_the_analysis_does_not_admit_is_refused_whatever_is_left(account, changes, reason):
    found = paid(account, request(**changes))
    assert found is None if reason is None else reason in found


def test_only_those_may_carry_the_answer_whom_the_policy_names(account):
    one = replace(POLICY, analyses=(replace(POLICY.analyses[0], carriers=(Carrier.SECURE_SUMS,)),))
    assert "carried by secure sums, not by two servers" in paid(account, request(), policy=one)


def test_the_period_ends_to_the_second_and_a_charge_of_the_future_counts(account):
    assert paid(account, request("0.5")) is None
    assert paid(account, request("0.1"), NOW + 30 * DAY - timedelta(seconds=1))
    assert paid(account, request("0.1"), NOW - 400 * DAY), "the clock was set back"
    assert account.refusal(request("0.5"), POLICY, NOW + 30 * DAY) is None


def test_a_cheaper_report_of_the_same_recipe_is_charged_again(account):
    assert paid(account, request("0.3")) is None
    assert paid(account, request("0.1")) is None
    assert paid(account, request("0.2"))
    assert spending(account.charges(), 30, NOW).epsilon == Fraction(4, 10)


def test_everything_that_a_device_answers_is_within_its_limits_campaigns_too(account):
    limited = replace(POLICY, limits=(DeviceLimit(365, Fraction(1), Fraction(1, 10**5), 50),))
    campaigns = PrivacyAccount(account.store, account.device)
    asked = task(share=Fraction(7, 10))
    assert account.store.commit([[campaigns.charge(asked, bytes(32), NOW)]]) == [None]
    assert "this device may cost ε = 1 in 365 days" in paid(account, request("0.4"), policy=limited)
    assert paid(account, request("0.3"), policy=limited) is None
    assert [each.campaign for each in campaigns.charges()] == ["homes"]
    rules = replace(FEW, campaign=Fraction(9), period=Fraction(1))
    refused = campaigns.refusal(replace(task(share=Fraction(1, 10)), campaign="b"), rules, NOW)
    assert "1 was spent in 30 days, but all campaigns and recipes together" in refused


def test_two_processes_cannot_both_spend_what_is_left(account):
    campaigns = PrivacyAccount(account.store, account.device)
    both = [[account.charge(request("0.3"), NOW)], [campaigns.charge(task(), bytes(32), NOW)]]
    first, second = account.store.commit(both)
    assert first is None and "another process" in str(second)


def test_no_order_of_names_policies_and_reports_passes_any_cap(account):
    """Policies are updated at random, analyses renamed, caps moved; each window is within the largest cap there was."""
    chance = random.Random(7)
    names, policy, moments = ["a", "b", "next_word"], POLICY, NOW
    largest = {"field": Fraction(0), "device": Fraction(0)}
    for step in range(120):
        if step % 10 == 0:
            analysis = replace(
                POLICY.analyses[0], name=chance.choice(names), epsilon=Fraction(chance.randint(1, 3)), reports=99
            )
            fields = tuple(
                replace(each, epsilon=Fraction(chance.randint(1, 9), 10), reports=99) for each in POLICY.fields
            )
            limit = replace(POLICY.limits[0], epsilon=Fraction(chance.randint(1, 20), 10), reports=999)
            policy = replace(policy, analyses=(analysis,), fields=fields, limits=(limit,), version=policy.version + 1)
            largest["field"] = max(largest["field"], policy.field(NGRAM).epsilon)
            largest["device"] = max(largest["device"], limit.epsilon)
        moments += timedelta(hours=chance.randint(-200, 400))
        read = chance.sample((NGRAM, PERPLEXITY, AGE), chance.randint(1, 3))
        asked = request(
            price=price(Fraction(chance.randint(1, 30), 100)), fields=read, analysis=policy.analyses[0].name
        )
        paid(account, asked, moments, policy)
    charges = account.charges()
    assert len(charges) > 15 and len({each.analysis for each in charges}) > 1
    for each in charges:
        window = [other for other in charges if each.time - 30 * DAY < other.time <= each.time]
        read = spending((other for other in window if NGRAM in other.fields), 30, each.time)
        assert read.epsilon <= largest["field"]
        year = [other for other in charges if each.time - 365 * DAY < other.time <= each.time]
        assert sum(other.price.epsilon for other in year) <= largest["device"]


def test_in_zcdp_the_rhos_add_up_to_that_of_each_epsilon_and_delta(account):
    policy = replace(POLICY, accounting=Accounting.ZCDP)
    cap = largest_rho(Fraction(3, 10), Fraction(1, 10**6))
    each = ReportPrice(Fraction(29, 100), SMALL, cap / 4, Fraction(1, 10**12))
    for _ in range(4):
        assert paid(account, request(price=each, fields=(AGE,)), policy=policy) is None
    assert "the field profile.age may cost ρ" in paid(
        account, request(price=replace(each, rho=cap / 10**6), fields=(AGE,)), policy=policy
    )
    assert spending(account.charges(), 30, NOW).epsilon > 1, "ε's alone would have allowed one"
    assert "a price without ρ" in paid(account, request("0.1"), policy=policy)
    assert paid(account, request(price=ReportPrice(Fraction(1, 100), Fraction(0))), policy=policy) is None, "pure: ε²/2"


def test_in_zcdp_what_a_price_leaves_out_adds_up_too(account):
    policy = replace(POLICY, accounting=Accounting.ZCDP)
    spill = Fraction(1, 10**6) * SPILL
    loose = ReportPrice(Fraction(1, 100), SMALL, SMALL, spill + SMALL**3)
    assert "leave out a probability" in paid(account, request(price=loose), policy=policy)
    assert PureDP(1).rho == Fraction(1, 2) and largest_rho(Fraction(0), SMALL) == 0
    assert largest_rho(Fraction(1), spill) == ApproxDP(1, spill * Fraction(99, 100)).rho, (
        "a hundredth of δ is set aside"
    )


def test_a_study_costs_no_more_than_it_said_at_first_in_epsilon_or_in_delta(account):
    said = price("0.2", 2 * SMALL)
    first = request("0.1", study="sleep", whole=said)
    assert paid(account, first) is None and paid(account, replace(first, study="walks")) is None
    for dear in (price(Fraction(1, 10) + Fraction(1, 10**30)), price("0.1", SMALL + SMALL**3)):
        assert "the study sleep would cost" in paid(account, replace(first, price=dear, achieved=dear))
    assert paid(account, first) is None, "to the last fraction"
    assert "the study sleep would cost" in paid(account, first)


def test_answers_to_campaigns_are_reports_of_a_field_and_of_nothing_else(account):
    recipes = Spending(Fraction(1), Fraction(2), Fraction(3), Fraction(4), 5)
    campaigns = Spending(Fraction(10), Fraction(20), Fraction(30), Fraction(40), 7)
    assert add_campaigns(recipes, campaigns) == (11, 22, 33, 44, 5)
    assert add_campaigns(recipes, campaigns, reports=True) == (11, 22, 33, 44, 12)
    for one, other in ((recipes._replace(rho=None), campaigns), (recipes, campaigns._replace(rho=None))):
        assert add_campaigns(one, other).rho is None, "a price without ρ is among them"
    once = replace(POLICY, limits=(DeviceLimit(365, Fraction(6), Fraction(1, 10**5), 1),))
    rounds = PrivacyAccount(account.store, account.device)
    assert account.store.commit([[rounds.charge(task(), bytes(32), NOW)]]) == [None]
    assert paid(account, request("0.1"), policy=once) is None
    assert "this device may be told of by 1 reports" in paid(account, request("0.1"), policy=once)


@pytest.mark.parametrize(
    "wrong",
    [
        {"recipe": b"short"},
        {"audience": b""},
        {"local_epsilon": 0.5},
        {"local_epsilon": Fraction(-1)},
        {"cohort": True},
    ],
)
def test_a_request_is_made_of_exact_things(wrong):
    with pytest.raises(InputError):
        request(**wrong)
    with pytest.raises(InputError):
        ReportPrice(Fraction(1), Fraction(0), None, SMALL)
