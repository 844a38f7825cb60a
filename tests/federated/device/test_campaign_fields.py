"""What campaigns of maps read is charged to the fields of the stream `places`, beside recipes that read them."""

from dataclasses import replace
from fractions import Fraction

import pytest
from tests.federated.device.reporting import price, request
from tests.federated.device.room import NOW, TREE, Room, settle, task
from tests.federated.device.test_randomised_answers import report_task

from hazemap.cells import Leaves
from hazemap.encoders import Concatenation, CountMinSketch, Counts
from hazemap.federated.device.account.activity_log import ActivityLog
from hazemap.federated.device.account.privacy_account import EVERY, DeviceCharge, PrivacyAccount, _read, fields_read
from hazemap.federated.device.account.recipe_account import RecipeAccount, budget_lines
from hazemap.federated.device.policy.shipped_policies import ShippedPolicies
from hazemap.federated.device.store.encrypted_store import EncryptedStore
from hazemap.federated.device.store.event_store import PLACE_FIELDS
from hazemap.federated.recipes.event_stream import EventStream
from hazemap.federated.recipes.policy import Accounting, Carrier, DeviceLimit, FieldBudget
from hazemap.federated.recipes.policy_document import SignedPolicy, example
from hazemap.federated.recipes.query_class import AnyQueryOverFields, StreamFieldName
from hazemap.privacy.budget import ApproxDP, PureDP
from hazemap.privacy.signing_identities import Identity
from hazemap.tables.contribution_bounding import AtMostRows, OneVote
from hazemap.values.boolean_attribute import BinaryAttribute

LON, LAT, WEIGHT, MARK = (StreamFieldName("places", name) for name in ("lon", "lat", "weight", "mark"))
DELTA = Fraction(1, 10**5)
ANALYSIS = replace(
    example().analyses[0],
    queries=AnyQueryOverFields((LON,)),
    epsilon=Fraction(50),
    delta=Fraction(1, 100),
    carriers=tuple(Carrier),
    reports=50,
    cohort_fields=(),
)
POLICY = replace(
    example(),
    streams=(EventStream("places", PLACE_FIELDS, 30),),
    fields=(
        FieldBudget(LON, Fraction(6), Fraction(3, 2), DELTA, 3),
        FieldBudget(WEIGHT, Fraction(6), Fraction(1, 10), DELTA, 1),
    ),
    analyses=(ANALYSIS,),
    limits=(DeviceLimit(30, Fraction(100), Fraction(1, 2), 100),),
)


@pytest.fixture
def store(tmp_path):
    with EncryptedStore.opened(tmp_path / "devices.sqlite", create=True) as store:
        yield store


def shipped(store, policy=POLICY):
    signed = SignedPolicy.sign(policy, Identity.from_bytes(b"1" * 32))
    ShippedPolicies(store).accept(signed, signed.key, NOW)


def reading(**changes):
    return request(fields=(LON,), **changes)


def test_a_question_reads_the_place_and_a_weight_or_a_mark_where_it_depends_on_them():
    cells = TREE.children(TREE.root)
    plain = Counts(Leaves(TREE, cells))
    votes = CountMinSketch(TREE, 2, 8, 1, OneVote(60))
    marked = Counts(Leaves(BinaryAttribute(TREE), cells), AtMostRows(1))
    assert fields_read(plain) == {LON, LAT}
    assert fields_read(votes) == {LON, LAT, WEIGHT}
    assert fields_read(marked) == {LON, LAT, MARK}
    assert fields_read(Concatenation((plain, votes, marked), (1, 1, 1))) == {LON, LAT, WEIGHT, MARK}
    assert fields_read(object()) == EVERY, "what is not known reads everything"


@pytest.mark.parametrize("randomised", [True, False])
def test_a_map_campaign_is_paid_from_the_fields_that_it_reads(store, randomised):
    """The map was free of the budgets of places.lon: another name, and the same field told of again without end."""
    [first, *_] = settle(store, 20)
    shipped(store)
    asked = report_task(share=Fraction(1)) if randomised else task(share=Fraction(1), budget=PureDP(1))
    Room(store, asked).run()
    lines = {each.name: each for each in budget_lines(store, first, POLICY, NOW)}
    assert (lines["places.lon"].used, lines["places.lon"].reports_used) == (1, 1)
    assert lines["places.weight"].used == lines["places.weight"].reports_used == 0
    again = Room(store, replace(asked, campaign="hotels"), nonce=b"2" * 32)
    again.turn(0)
    assert again.told == {0: "this device has nothing left to spend on this round"}
    assert "the field places.lon may cost ε = 1.5 in 30 days; with this report it would be 2" in (
        ActivityLog(store, first).lines()[-1].outcome
    )
    account = RecipeAccount(store, first)
    assert "the field places.lon may cost ε = 1.5" in account.refusal(reading(epsilon="0.6"), POLICY, NOW).reason
    assert account.refusal(reading(epsilon="0.4"), POLICY, NOW) is None


def test_a_recipe_that_read_a_place_leaves_less_for_campaigns(store):
    [first, *_] = settle(store, 20)
    shipped(store)
    assert store.commit([[RecipeAccount(store, first).charge(reading(epsilon="0.6"), NOW)]]) == [None]
    dear, fair = (task(share=Fraction(1), budget=PureDP(each)) for each in ("1", "0.9"))
    account = RecipeAccount(store, first)
    assert account.campaign_refusal(dear, POLICY, NOW).private
    assert account.campaign_refusal(fair, POLICY, NOW) is None


def test_a_field_is_told_of_by_so_many_answers_to_campaigns_and_recipes(store):
    [first, *_] = settle(store, 20)
    shipped(store)
    for number in (1, 2, 3):
        room = Room(store, task(share=Fraction(1, 100), round=number), nonce=bytes([number]) * 32)
        room.run()
    reason = RecipeAccount(store, first).campaign_refusal(task(share=Fraction(1, 100), round=4), POLICY, NOW).reason
    assert "places.lon may be told of by 3 reports" in reason


def test_a_report_to_a_map_campaign_is_no_louder_than_its_fields_allow(store):
    settle(store, 20)
    shipped(store, replace(POLICY, fields=(FieldBudget(LON, Fraction(1, 10), Fraction(3), DELTA, 9),)))
    room = Room(store, report_task())
    room.turn(0)
    assert "one report that reads places.lon may have ε₀ = 0.1 at most" in room.told[0]


def test_campaigns_and_recipes_add_up_their_rho_where_a_policy_counts_in_zcdp(store):
    [first, *_] = settle(store, 20)
    counted = replace(POLICY, accounting=Accounting.ZCDP)
    shipped(store, counted)
    Room(store, report_task(share=Fraction(1), budget=ApproxDP(1, "1e-6"))).run()
    paid = PrivacyAccount(store, first).spent(30, NOW, field=LON)
    assert 0 < paid.rho == report_task(share=Fraction(1), budget=ApproxDP(1, "1e-6")).price.rho and paid.spill > 0
    account = RecipeAccount(store, first)
    line = next(each for each in budget_lines(store, first, counted, NOW) if each.name == "places.lon")
    cap = line.allowed
    assert (line.unit, line.used, line.delta_used) == ("ρ", paid.rho, paid.spill)
    small, large = (price("0.01", rho=cap - paid.rho + more) for more in (Fraction(0), Fraction(1, 10**9)))
    assert account.refusal(reading(price=small), counted, NOW) is None
    assert "places.lon may cost ρ" in account.refusal(reading(price=large), counted, NOW).reason


def test_shuffled_reports_have_no_rho_where_a_policy_counts_in_zcdp(store):
    """Clones bound what is seen of them in (ε, δ) alone: ρ of (1, 10^-6) would be 0.02, where ε = 1 may mean 0.5."""
    [first, *_] = settle(store, 20)
    dear = replace(report_task(share=Fraction(1), budget=ApproxDP(1, "1e-6")), campaign="shuffled")
    account, recipes = PrivacyAccount(store, first), RecipeAccount(store, first)
    wide = replace(POLICY, fields=(replace(POLICY.fields[0], epsilon=Fraction(3), delta=Fraction(1, 10)),))
    counted = replace(wide, accounting=Accounting.ZCDP)
    assert recipes.campaign_refusal(dear, counted, NOW) is None
    assert "a price without ρ" in recipes.campaign_refusal(dear, counted, NOW, seen=True).reason
    assert recipes.campaign_refusal(dear, wide, NOW, seen=True) is None
    assert store.commit([[account.charge(dear, bytes(32), NOW, seen=True)]]) == [None]
    assert [each.seen for each in account.charges()] == [True]
    paid = account.spent(30, NOW)
    assert (paid.epsilon, paid.delta, paid.rho) == (1, Fraction(1, 10**6), None)
    other = replace(dear, campaign="summed")
    assert "a price without ρ" in recipes.campaign_refusal(other, counted, NOW).reason


def test_a_charge_of_an_older_store_counts_for_every_field():
    older = {"campaign": "a", "round": 1, "session": "00", "epsilon": "1", "time": NOW.isoformat()}
    assert _read(older).fields == EVERY and not _read(older).seen
    charge = DeviceCharge("a", 1, "00", Fraction(1), NOW, fields=frozenset({LON}))
    assert _read(charge.to_json()) == charge
