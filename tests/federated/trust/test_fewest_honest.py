"""The n of every price: no sum that can be opened, nor a difference of two, is of fewer honest people."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import pytest

from hazemap.algorithms import Flat
from hazemap.cells import Leaves
from hazemap.encoders import Counts
from hazemap.errors import InputError
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode
from hazemap.federated.recipes.features import Categories, Feature
from hazemap.federated.recipes.recipe import Recipe
from hazemap.federated.recipes.sql_query import SqlQuery
from hazemap.federated.server.campaign_spec import Campaign
from hazemap.federated.server.privacy_statement import assumed
from hazemap.federated.server.study_spec import StudySpec
from hazemap.federated.trust.cohort_assumptions import Cohort
from hazemap.federated.trust.device_tasks import Task, covers, round_price
from hazemap.federated.trust.randomised_reports import ReportPrices
from hazemap.federated.trust.recipe_terms import price_of_sum
from hazemap.privacy.amplification.zcdp_of_sum import zcdp_of_sum
from hazemap.privacy.budget import ApproxDP
from hazemap.privacy.local_randomisers import Asymmetric
from hazemap.queries.noisy_queries import Query
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import AtMostRows

TREE = Quadtree.world(depth=6)
PARTS = [Fraction(0), Fraction(1, 10), Fraction(1, 5), Fraction(1, 3)]


def fewest(cohort, fresh=True):
    """By brute force: the fewest honest reports in a sum that can be opened, or that two of them give by subtraction.

    Each shard is asked twice, as after a failure, and each session opens one set of survivors; the corrupt are those
    who leave the fewest. The twin, not `fresh`, sends the same report to both sessions.
    """
    sums, start = [], 0
    for shard, size in enumerate(cohort.shards):
        people, corrupt = range(start, start + size), int(size * cohort.corrupt)
        for session in (0, 1):
            for left in range(cohort.survivors(size), size + 1):
                for survivors in combinations(people, left):
                    reports = frozenset((person, session * fresh) for person in survivors)
                    sums.append(((shard, session), reports, corrupt))
        start += size
    found = [len(reports) - corrupt for _, reports, corrupt in sums]
    for (where, one, corrupt), (there, other, _) in combinations(sums, 2):
        if where != there and one & other:
            found += [max(0, len(part) - corrupt) for part in (one - other, other - one) if part]
    return min(found)


@pytest.mark.parametrize(("dropout", "corrupt"), [("0", "1/5"), ("1/5", "0"), ("1/5", "1/5"), ("1/3", "1/4")])
@pytest.mark.parametrize(("people", "shard"), [(5, 5), (7, 4), (9, 5)])
def test_no_sum_that_can_be_opened_and_no_difference_of_two_has_fewer_honest_reports(people, shard, dropout, corrupt):
    cohort = Cohort(people, shard, Fraction(dropout), Fraction(corrupt), mode=Mode.SEMI_HONEST)
    assert cohort.fewest_honest == fewest(cohort)


def test_the_twin_that_sends_one_report_to_two_sessions_is_left_with_fewer():
    cohort = Cohort(5, 5, Fraction(1, 5), Fraction(0), mode=Mode.SEMI_HONEST)
    assert fewest(cohort, fresh=False) == 1 < cohort.fewest_honest == 4


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("part", [Fraction(1, 10), Fraction(1, 7), Fraction(1, 20)])
def test_no_shard_of_a_round_has_fewer_than_what_every_price_counts_with(mode, part):
    """Parts of people are rounded down, so a larger shard may have fewer for certain: of 10 and 9 the ten."""
    weaker = 0
    for size in range(60, 130):
        cohort = Cohort(2 * size + 1, size + 1, part, part, mode=mode)
        assert cohort.fewest_honest == min(map(cohort.honest, cohort.shards))
        weaker += cohort.weakest > cohort.smallest
    assert weaker


WEAK = Cohort(99, 50, Fraction(1, 10), Fraction(1, 10), mode=Mode.SEMI_HONEST)
"""Shards of 50 and 49: 40 and 41 of them are certain."""


def recipe(**changes):
    plain = Recipe(
        "words", 1, "keyboard", "which words are typed", SqlQuery("SELECT word FROM keyboard"), (),
        (Feature("word", Categories(("so", "be"))),), Fraction(4), Fraction(4), Fraction(1, 10**6), 30,
    )  # fmt: skip
    return replace(plain, **changes)


def test_a_campaign_of_reports_buys_a_law_that_devices_of_every_shard_take():
    budget = ApproxDP(2, "1e-6")
    prices = ReportPrices(budget, WEAK, Fraction(8))
    assert (WEAK.weakest, prices.honest) == (50, 40)
    for share in (Fraction(1), Fraction(1, 2), Fraction(1, 10)):
        law, price = prices.law(share, 16), round_price(budget.part(share))
        question = Query(Counts(Leaves.at_level(TREE, 2), AtMostRows(1)), share)
        asked = Task("homes", "a map", 1, question, price, budget, WEAK, law)
        assert [asked.noise(size).parties for size in WEAK.shards] == [40, 41]
        assert covers(price, law, 40)


def test_a_statement_counts_with_the_shard_of_whom_the_fewest_are_certain():
    method = Flat(Quadtree.world(depth=3), 2)
    campaign = Campaign("homes", "a map", "town", method, ApproxDP(2, "1e-6"), WEAK, local_epsilon=Fraction(8))
    said = " ".join(assumed(campaign))
    assert "a shard of 50 people is opened only if 45 of them answered; the reports of 40 of them are enough" in said
    assert "among 40 honest people's reports" in said and "41" not in said


def test_a_shard_of_any_size_is_priced_by_its_own_people_or_not_begun():
    """As when fewer came: what a device computes is what so many reports amount to, and no more than is stated."""
    epsilon = price_of_sum(Asymmetric(Fraction(4)), 40, Fraction(1, 10**6)).epsilon
    asked = Task.asking(recipe(epsilon=epsilon), "study", 1, replace(WEAK, people=50))
    begun = []
    for size in range(2, 51):
        try:
            parties = asked.noise(size).parties
        except InputError:
            continue
        begun.append(size)
        assert parties == asked.cohort.honest(size)
        assert asked.cohort.survivors(size) >= 30
        assert price_of_sum(asked.randomiser, parties, Fraction(1, 10**6)).epsilon <= epsilon
    assert begun == [48, 49, 50]


def test_a_study_is_charged_for_the_shard_of_whom_the_fewest_are_certain():
    study = StudySpec("spring", "keyboard", Fraction(9), Fraction(1, 1000), 4, WEAK)
    asked = recipe(delta=Fraction(1, 10**6))
    assert study.charge(asked).rho == zcdp_of_sum(Asymmetric(Fraction(4)).bit_flips, 40).rho
    assert study.charge(asked).rho > zcdp_of_sum(Asymmetric(Fraction(4)).bit_flips, 41).rho
