"""Two servers by their law: the noise of both over the sums of a batch, and what a report can prove.

Statistical tests fail by chance with 1e-6, on fixed streams, and have a twin that must fail.
"""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom
from tests.federated.recipes.asking import recipe, typing
from tests.privacy.polya_law import fit, laplace_law, polya_law

from hazemap.algorithms import Adaptive
from hazemap.cells import Leaves, WholeDomain
from hazemap.encoders import Concatenation, CountMinSketch, Counts, HaarWavelet, QuantileScores
from hazemap.engines.memory import MemoryTable
from hazemap.errors import InputError, NotOpened, Unanswerable
from hazemap.federated.recipes.features import Categories
from hazemap.federated.recipes.recipe_bins import RecipeBins
from hazemap.federated.trust.cohort_assumptions import Sampling
from hazemap.federated.trust.one_report import OneReportTrust, assumed_of_walks
from hazemap.federated.trust.prefix_walk import PrefixWalk, string_bits
from hazemap.federated.trust.randomised_reports import stddev_of
from hazemap.federated.trust.report_batch import ReportBatch
from hazemap.federated.trust.two_servers import (
    ReportPrices,
    TwoServerPrices,
    TwoServers,
    assumed_of_histograms,
    assumed_of_randomised,
    histograms,
    ones_allowed,
)
from hazemap.privacy.budget import ZCDP, ApproxDP, PureDP
from hazemap.privacy.local_randomisers import Asymmetric
from hazemap.privacy.random_stream import Stream
from hazemap.queries.algorithm_session import Unrecorded, replay, run
from hazemap.queries.noisy_queries import Choice, Query
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import AtMostRows, RowIsPerson
from hazemap.trust.curator import CentralPrices

TREE = Quadtree(0.25, 0.25, 0.25, 6)
COUNTS = Counts(Leaves.at_level(TREE, 3), AtMostRows(1))
SILENT = PureDP(10_000)  # noise of scale 1/10,000 is 0
LEVEL = 1e-6
BATCH = ReportBatch(1_000, 900)


def town(people):
    rng = np.random.default_rng(4)
    west, south, east, north = (float(edge[0]) for edge in TREE.bounds(TREE.root))
    middle = np.array([(west + east) / 2, (south + north) / 2])
    lon, lat = (middle[:, None] + rng.normal(0, (east - west) / 12, (2, people))).clip(west, [[east], [north]])
    return MemoryTable(np.arange(people), {"lon": lon, "lat": lat})


TOWN = town(3_000)


def level(number):
    return Counts(Leaves.at_level(TREE, number), AtMostRows(1))


def below(*cells):
    return Counts(Leaves(TREE, np.concatenate(cells)), AtMostRows(1))


# Law -----------------------------------------------------------------------------------------------------------


HALF = PureDP("0.5")


def noise_of(trust, times, price=HALF):
    """What so many answers add to the sums of everybody."""
    sums = [trust.answer(Query(COUNTS, 1), price).sums for _ in range(times)]
    return np.concatenate(sums) - np.tile(COUNTS.total(TOWN), times)


@pytest.mark.parametrize("kind", ["a report a round", "one report"])
def test_sums_carry_the_noise_of_both_servers(kind):
    """Chi-square; the twin takes a curator's noise for it."""
    everybody = ReportBatch(3_000, 3_000)
    stream = Stream.fixed(b"servers")
    trust = TwoServers(TOWN, everybody, stream) if kind[0] == "a" else OneReportTrust(TOWN, everybody, 1, stream)
    noise = noise_of(trust, 100)
    assert fit(noise, polya_law(Fraction(2), Fraction(2))) > LEVEL
    assert fit(noise, laplace_law(Fraction(2))) < LEVEL
    answer = trust.answer(Query(COUNTS, 1), PureDP("0.5"))
    assert answer.people == 3_000
    assert answer.stddev[0] == trust.prices(PureDP("0.5")).stddev(COUNTS, Fraction(1))


def test_gaussian_noise_is_that_of_both_as_well():
    noise = noise_of(TwoServers(TOWN, ReportBatch(3_000, 3_000), Stream.fixed(b"gauss")), 100, ZCDP("0.02"))
    assert abs(noise.var() / 50 - 1) < 0.1  # 5.7 standard errors of 6,400 draws


@pytest.mark.parametrize("budget", [PureDP(1), ApproxDP(1, "1e-6")], ids=str)
def test_prices_are_root_two_times_a_curator_s_and_the_share_is_the_least(budget):
    ours, theirs = TwoServerPrices(budget), CentralPrices(budget)
    assert ours.stddev(COUNTS, Fraction(1, 3)) == pytest.approx(2**0.5 * theirs.stddev(COUNTS, Fraction(1, 3)))
    share = ours.share(COUNTS, 12.5)
    assert ours.stddev(COUNTS, share) <= 12.5 < ours.stddev(COUNTS, share - Fraction(2, 1 << 30))


@pytest.mark.parametrize("budget", [PureDP(1), ZCDP(1)], ids=str)
def test_the_share_for_a_little_less_noise_is_the_next_one(budget):
    """Where the division by √2 is rounded to what the share before has."""
    prices = TwoServerPrices(budget)
    for number in range(1, 40):
        share = Fraction(50 * 3_571 * number, 1 << 30)
        wanted = np.nextafter(prices.stddev(COUNTS, share), 0)
        assert prices.share(COUNTS, float(wanted)) == share + Fraction(1, 1 << 30)


def test_whoever_works_with_one_server_sees_the_noise_of_the_other():
    """Chi-square; the twin has the noise of both."""

    class Seen(TwoServers):
        one_is_known = True

    trust = Seen(TOWN, ReportBatch(3_000, 3_000), Stream.fixed(b"seen"))
    found = noise_of(trust, 100)
    assert fit(found, laplace_law(Fraction(2))) > LEVEL > fit(found, polya_law(Fraction(2), Fraction(2)))
    assert trust.answer(Query(COUNTS, 1), HALF).stddev[0] == CentralPrices(HALF).stddev(COUNTS, Fraction(1))


def test_so_little_budget_that_noise_fits_no_word_is_answered_with_noise_alone():
    answer = TwoServers(TOWN, BATCH).answer(Query(COUNTS, 1), PureDP(Fraction(1, 1 << 52)))
    assert np.abs(answer.sums).max() > 1 << 40


# People --------------------------------------------------------------------------------------------------------


def test_the_same_people_report_each_round_or_others_do():
    for sampling in Sampling:
        trust = TwoServers(TOWN, replace(BATCH, sampling=sampling))
        found = [trust.answer(Query(COUNTS, 1), SILENT).sums for _ in range(3)]
        assert all(each.sum() == 1_000 for each in found)
        assert np.array_equal(found[0], found[1]) == (sampling is Sampling.ONE)


def test_people_who_report_once_are_the_same_in_every_question_also_where_some_say_nothing():
    trust = OneReportTrust(TOWN, ReportBatch(1_000, 700), 3, Stream.fixed(b"once"), Fraction(1, 5))
    first, again = (trust.answer(Query(COUNTS, 1), SILENT) for _ in range(2))
    assert np.array_equal(first.sums, again.sums)
    assert first.people == again.people == first.sums.sum() < 900


def test_nothing_below_the_minimum_is_opened():
    for trust in (
        TwoServers(TOWN, BATCH, dropping=Fraction(1, 2)),
        OneReportTrust(TOWN, BATCH, 1, dropping=Fraction(1, 2)),
    ):
        with pytest.raises(NotOpened, match="nothing below 900"):
            trust.answer(Query(COUNTS, 1), SILENT)
        assert len(trust.reports) == 1


def test_batches_are_bounded_to_the_last_person():
    assert [ReportBatch(*sizes).honest for sizes in ((5, 1), ((1 << 40) - 1, 1))] == [1, 1]
    assert ReportBatch(10, 2, Fraction(1, 10)).honest == 1
    for people in (1 << 40, (1 << 40) + 1):
        with pytest.raises(InputError, match=r"2\^40"):
            ReportBatch(people, 1)
    with pytest.raises(InputError, match="from 0 to 1"):
        TwoServers(TOWN, BATCH, dropping=Fraction(-1, 2))
    with pytest.raises(NotOpened, match="0 reports"):
        TwoServers(TOWN, BATCH, dropping=Fraction(1)).answer(Query(COUNTS, 1), SILENT)


def test_batches_that_promise_nothing_are_refused():
    for people, least, corrupt in ((10, 11, 0), (10, 0, 0), (10, 5, Fraction(1, 2)), (10, 5, 1), (10, 5, -1)):
        with pytest.raises(InputError):
            ReportBatch(people, least, Fraction(corrupt))
    with pytest.raises(InputError, match="from 0 to 1"):
        TwoServers(TOWN, BATCH, dropping=Fraction(3, 2))


# What fits a report --------------------------------------------------------------------------------------------


def test_reports_are_one_hot_vectors_and_stacks_of_them():
    sketch = CountMinSketch(TREE, 6, 50, 3, AtMostRows(1))
    stack = Concatenation((level(1), sketch), (1, 1))
    assert histograms(stack) == (4, 50, 50, 50)
    answer = TwoServers(TOWN, ReportBatch(3_000, 3_000)).answer(Query(stack, 1), SILENT)
    assert np.array_equal(answer.sums, stack.total(TOWN))


@pytest.mark.parametrize(
    ("encoder", "words"),
    [
        (Counts(COUNTS.cells, AtMostRows(2)), "may add 2"),
        (CountMinSketch(TREE, 6, 50, 3, AtMostRows(5)), "may add 5"),
        (HaarWavelet(TREE, 3, AtMostRows(1)), "HaarWavelet adds other numbers"),
    ],
)
def test_what_a_report_cannot_prove_is_refused_in_words(encoder, words):
    trust = TwoServers(TOWN, BATCH)
    for asked in (encoder, Concatenation((COUNTS, encoder), (1, 1))):
        with pytest.raises(Unanswerable, match=words):
            trust.answer(Query(asked, 1), SILENT)
    assert not trust.reports, "nobody was asked"


def test_choices_and_cohorts_are_for_others():
    for trust in (TwoServers(TOWN, BATCH), OneReportTrust(TOWN, BATCH, 2)):
        assert not trust.answers(Choice)
        with pytest.raises(Unanswerable, match="not a Choice"):
            trust.answer(Choice(QuantileScores(TREE, (Fraction(1, 2),)), 1), SILENT)
        with pytest.raises(Unanswerable, match="cohort=None"):
            trust.answer(Query(COUNTS, 1, cohort=1), SILENT)


# Reports that people randomise ---------------------------------------------------------------------------------


def test_randomised_reports_are_unbiased_and_as_wide_as_stated():
    trust = TwoServers(TOWN, ReportBatch(3_000, 3_000), Stream.fixed(b"local"), local_epsilon=Fraction(4))
    prices = trust.prices(PureDP(4))
    assert isinstance(prices, ReportPrices)
    found = np.array([trust.answer(Query(COUNTS, 1), PureDP(1)).sums for _ in range(12)])
    stated = trust.answer(Query(COUNTS, 1), PureDP(1)).stddev
    errors = (found - COUNTS.total(TOWN)) / stated
    assert abs(errors.mean()) < 0.2  # 5.5 standard errors
    assert abs(errors.std() - 1) < 0.2
    share = prices.share(COUNTS, 90.0)
    assert prices.stddev(COUNTS, share) <= 90.0 < prices.stddev(COUNTS, share / 2)
    many, few = (trust.prices(ApproxDP(1, "1e-6")).law(Fraction(1), size) for size in (1 << 20, 2))
    assert isinstance(many, Asymmetric) and stddev_of(few, 3_000, 2) < 0.99 * stddev_of(many, 3_000, 2)
    with pytest.raises(InputError, match="a single 1"):
        trust.answer(Query(Concatenation((COUNTS, COUNTS), (1, 1)), 1), ZCDP("0.02"))


def test_a_recipe_is_summed_over_the_people_that_it_states_or_more():
    asked = replace(recipe(Categories(("a", "b"))), minimum_cohort=60)
    people = typing([["a"], ["b"], ["a"]] * 25)
    for minimum, enough in ((59, False), (60, True), (70, True)):
        trust = TwoServers(people, ReportBatch(75, minimum), local_epsilon=Fraction(4))
        query = Query(RecipeBins(asked), 1)
        if enough:
            assert trust.answer(query, PureDP(4)).people == 75
        else:
            with pytest.raises(InputError, match="60 people or more, but these servers open batches of 59"):
                trust.answer(query, PureDP(4))


def test_an_honest_report_has_too_many_ones_with_a_chance_that_is_nothing_among_all_people():
    law, trust = Asymmetric(Fraction(4)), TwoServers(TOWN, BATCH, local_epsilon=Fraction(4))
    p, q = law.chances

    def tail(most):
        ones = binom(999, q)
        return p * ones.sf(most - 1) + (1 - p) * ones.sf(most)

    most = ones_allowed(law, 1_000, trust.batch)
    assert 1_000 * tail(most) <= 2.0**-40 < 1_000 * tail(most - 1)


# One report ----------------------------------------------------------------------------------------------------


def test_a_walk_goes_down_and_reads_unions_of_what_it_knows():
    trust = OneReportTrust(TOWN, ReportBatch(3_000, 3_000), 2)
    cells = level(2).cells.cells
    first = trust.answer(Query(level(2), 1), SILENT)
    fine = TREE.children(TREE.children(cells[5:7]))
    second = below(cells[:5], cells[7:], fine)
    for asked in (second, level(1), Counts(WholeDomain(TREE), AtMostRows(1)), below(TREE.children(cells[5:6]))):
        assert np.array_equal(trust.answer(Query(asked, 1), SILENT).sums, asked.total(TOWN))
    assert np.array_equal(first.sums, level(2).total(TOWN))
    assert [(depth, len(found)) for depth, found in trust.walk.candidates] == [(2, 16), (4, 32)]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (below(TREE.children(level(2).cells.cells[5:6])), "what lies below"),  # its parent was no candidate again
        (below(TREE.children(level(4).cells.cells[:4])), "further one was asked"),
        (Counts(COUNTS.cells, RowIsPerson()), "another was asked"),
        (Counts(COUNTS.cells, AtMostRows(2)), "counts of one row"),
        (HaarWavelet(TREE, 3, AtMostRows(1)), "counts of one row"),
    ],
)
def test_what_leaves_the_walk_is_refused_in_words(asked, words):
    """The servers have asked level 2, and level 4 below its first four cells."""
    trust = OneReportTrust(TOWN, ReportBatch(3_000, 3_000), 2)
    trust.answer(Query(level(2), 1), SILENT)
    trust.answer(Query(below(TREE.children(TREE.children(level(2).cells.cells[:4]))), 1), SILENT)
    if "further" not in words:
        trust.walk.levels = 9
    with pytest.raises(Unanswerable, match=words):
        trust.answer(Query(asked, 1), SILENT)


def test_a_walk_has_at_most_so_many_candidates():
    walk = PrefixWalk(levels=3, most=100)
    with pytest.raises(Unanswerable, match="more than 100 prefixes"):
        walk.take(
            below(level(2).cells.cells[1:], TREE.children(TREE.children(TREE.children(level(2).cells.cells[:1]))))
        )
    with pytest.raises(InputError):
        PrefixWalk(levels=0)
    assert string_bits(TREE) == 13


@pytest.mark.parametrize("depth", [3, 6])
def test_an_adaptive_map_of_one_report_walks_down_and_is_replayed(depth):
    tree = Quadtree(0.25, 0.25, 0.25, depth)
    trust = OneReportTrust(TOWN, ReportBatch(3_000, 3_000), 4)
    method = Adaptive.for_one_report(tree, AtMostRows(1))
    made = run(method, trust, PureDP(4), Unrecorded())
    assert made.value.values.sum() == pytest.approx(3_000, rel=0.2)
    again = replay(method, trust.prices(PureDP(4)), PureDP(4), made.transcript).value
    assert np.array_equal(again.values, made.value.values)
    with pytest.raises(InputError, match="`descent`"):
        replace(method, descent=0)


def test_statements_say_what_is_proved_and_what_is_believed():
    every = (
        assumed_of_histograms(BATCH),
        assumed_of_walks(5, BATCH),
        assumed_of_randomised(BATCH, Fraction(3)),
    )
    for said in every:
        assert any("proved of every report" in line for line in said)
        assert any("do not work together" in line for line in said)
        assert any("900 reports" in line for line in said)
    assert any("5 levels" in line for line in every[1])
    assert any("honest coins" in line for line in every[2])
