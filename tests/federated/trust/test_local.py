"""Local randomised response: reports and their sums have one law, which is private and unbiased.

Streams are fixed; statistical tests reject what is right with probability below 1e-6 each.
"""

from fractions import Fraction
from math import exp, sqrt

import numpy as np
import pytest

from hazemap.algorithms import Adaptive, AdaptiveGrid, AdaptiveHierarchicalHistogram, Flat, UniformGrid
from hazemap.cells import Leaves
from hazemap.encoders import Counts, QuantileScores
from hazemap.engines.memory import MemoryTable
from hazemap.errors import InputError, Unanswerable
from hazemap.federated.trust.local import LocalPrices, LocalReports
from hazemap.lab.methods import Hierarchical
from hazemap.privacy.budget import ZCDP, PureDP
from hazemap.privacy.local_randomisers import Asymmetric, Symmetric
from hazemap.privacy.random_stream import Stream
from hazemap.queries.algorithm_session import Unrecorded, run
from hazemap.queries.noisy_queries import Choice, Query
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import AtMostRows, OneVote, RowIsPerson

TREE = Quadtree(0.25, 0.25, 0.25, 6)
BOTH = pytest.mark.parametrize("randomiser", [Symmetric, Asymmetric])
LEVEL_2 = Leaves.at_level(TREE, 2)


def table(people: int, seed: int = 3) -> MemoryTable:
    rng = np.random.default_rng(seed)
    west, south, east, north = (float(edge[0]) for edge in TREE.bounds(TREE.root))
    lon, lat = rng.beta(2, 5, people), rng.beta(4, 3, people)
    return MemoryTable(np.arange(people), {"lon": west + (east - west) * lon, "lat": south + (north - south) * lat})


@pytest.mark.slow
@BOTH
def test_answers_are_unbiased_and_err_as_they_say(randomiser):
    """600 answers about 2,000 people, 500 of them without a row: means and spreads within 6 standard errors."""
    rows = table(1_500)
    trust = LocalReports(rows, 2_000, randomiser, Stream.fixed(b"answers"))
    query = Query(Counts(LEVEL_2), Fraction(1))
    true = query.encoder.total(rows)
    answers = [trust.answer(query, PureDP(1)) for _ in range(600)]
    found = np.array([answer.sums for answer in answers])
    said = np.mean([np.broadcast_to(answer.stddev, 16) for answer in answers], axis=0)
    assert (np.abs(found.mean(axis=0) - true) < 6 * said / sqrt(600)).all()
    assert np.allclose(found.std(axis=0), said, rtol=6 / sqrt(1_200))
    assert answers[0].people == 2_000
    # The twin: the published Algorithm 2 subtracts n, not 2n, from the asymmetric sums.
    if randomiser is Asymmetric:
        wrong = found + 2_000 / (exp(1) - 1)
        assert (np.abs(wrong.mean(axis=0) - true) > 6 * said / sqrt(600)).all()


@pytest.mark.slow
def test_rounding_keeps_small_numbers_unbiased():
    """Of 3 people and much money: numbers are nearly certain, and right on average."""
    trust = LocalReports(table(3), 3, Symmetric, Stream.fixed(b"few"))
    query = Query(Counts(LEVEL_2), Fraction(1))
    answers = np.array([trust.answer(query, PureDP(5)).sums for _ in range(1_500)])
    error = trust.prices(PureDP(5)).stddev(query.encoder, Fraction(1)) / sqrt(1_500)
    assert (np.abs(answers.mean(axis=0) - query.encoder.total(table(3))) < 6 * error).all()


@BOTH
def test_prices_are_what_answers_cost(randomiser):
    trust, encoder = LocalReports(table(900), 900, randomiser), Counts(LEVEL_2)
    prices = trust.prices(PureDP(2))
    share = Fraction(1, 7)
    stddev = trust.answer(Query(encoder, share), PureDP(2).part(share)).stddev.mean()
    assert prices.stddev(encoder, share) == pytest.approx(stddev, rel=0.02)
    least = prices.share(encoder, prices.stddev(encoder, share))
    assert abs(least - share) <= Fraction(2, 1 << 30)
    assert prices.share(encoder, 0.1) > 1
    assert LocalPrices(PureDP(1), 4 * 900, randomiser).stddev(encoder, share) == pytest.approx(
        2 * LocalPrices(PureDP(1), 900, randomiser).stddev(encoder, share), rel=0.01
    )


@pytest.mark.parametrize(
    "method",
    [
        Flat(TREE, 3),
        UniformGrid(TREE),
        Adaptive(TREE),
        AdaptiveHierarchicalHistogram(TREE, people=30_000),
        AdaptiveGrid(TREE, people=30_000),
    ],
    ids=lambda m: type(m).__name__,
)
def test_methods_that_ask_for_one_vote_run_unchanged(method):
    result = run(method, LocalReports(table(30_000), 30_000, stream=Stream.fixed(b"run")), PureDP(4), Unrecorded())
    error = result.value.noise.of(np.ones(result.value.cells.size)).stddev
    assert result.value.unbiased.sum() == pytest.approx(30_000, abs=6 * error)


@pytest.mark.parametrize(
    ("question", "price", "error"),
    [
        (Query(Counts(LEVEL_2, AtMostRows(2)), Fraction(1)), PureDP(1), Unanswerable),
        (Query(Counts(LEVEL_2, OneVote(8)), Fraction(1)), PureDP(1), Unanswerable),
        (Query(Counts(LEVEL_2), Fraction(1), cohort=1), PureDP(1), Unanswerable),
        (Choice(QuantileScores(LEVEL_2, (Fraction(1, 2),)), Fraction(1)), PureDP(1), Unanswerable),
        (Query(Counts(LEVEL_2), Fraction(1)), ZCDP(1), InputError),
        (Query(Counts(LEVEL_2, RowIsPerson()), Fraction(1)), PureDP(1), InputError),
    ],
)
def test_what_cannot_be_answered_is_refused(question, price, error):
    rows = table(50)
    trust = LocalReports(rows, 20 if error is InputError else 50)
    with pytest.raises(error):
        trust.answer(question, price)


def test_levels_in_one_vector_are_refused():
    with pytest.raises(Unanswerable, match="one level at a time"):
        run(Hierarchical(TREE, 3), LocalReports(table(50), 50), PureDP(1), Unrecorded())
    with pytest.raises(InputError, match="pure ε"):
        LocalReports(table(50), 50).prices(ZCDP(1))
    with pytest.raises(InputError, match="1 person or more"):
        LocalReports(table(50), 0)


def test_a_round_of_reports_costs_each_person_what_its_share_buys():
    """The ε that reaches the randomiser is the share of the budget, and nothing else."""
    seen = []

    def noted(epsilon: Fraction) -> Symmetric:
        seen.append(epsilon)
        return Symmetric(epsilon)

    trust = LocalReports(table(50), 50, noted)
    trust.answer(Query(Counts(LEVEL_2), Fraction(1, 3)), PureDP(2).part(Fraction(1, 3)))
    assert seen == [Fraction(2, 3)]
    assert trust.prices(PureDP(2)).stddev(Counts(LEVEL_2), Fraction(1, 2)) == pytest.approx(
        sqrt(50 * exp(1) / (exp(1) - 1) ** 2 + 0.25)
    )


@BOTH
@pytest.mark.parametrize("budget", [PureDP("0.1"), PureDP(3)], ids=str)
def test_a_share_is_the_least_that_buys_its_standard_deviation_and_64_where_none_does(randomiser, budget):
    prices, encoder, step = LocalPrices(budget, 700, randomiser), Counts(LEVEL_2), Fraction(1, 1 << 30)
    for stddev in (26.0 if randomiser is Asymmetric else 3.0, 1e3, 1e6, 1e12):
        share = prices.share(encoder, stddev)
        assert (share / step).denominator == 1 and prices.stddev(encoder, share) <= stddev
        assert share == step or prices.stddev(encoder, share - step) > stddev
    assert prices.share(encoder, 0.4) == 64
    for share in (Fraction(1), Fraction(1, 9)):
        half = np.sinh(float(budget.epsilon * share) / 2) ** 2
        noise = 700 / half + 700 / 16 if randomiser is Asymmetric else 700 / (4 * half)
        assert prices.stddev(encoder, share) == pytest.approx(sqrt(noise + 0.25))
    nothing = Counts(Leaves(TREE, np.empty(0, np.uint64)))
    assert prices.stddev(nothing, Fraction(1)) >= prices.stddev(encoder, Fraction(1))


@BOTH
def test_an_answer_is_the_unbiased_sums_of_reports_rounded_by_luck_with_the_variance_of_both(randomiser):
    rows, query, people, epsilon = table(300), Query(Counts(LEVEL_2), Fraction(1)), 300, Fraction(5, 4)
    trust, stream = LocalReports(rows, people, randomiser, Stream.fixed(b"x")), Stream.fixed(b"x")
    chosen = randomiser(epsilon)
    found = trust.answer(query, PureDP(epsilon))
    counts = query.encoder.total(rows)
    assert counts.sum() == people, "as many as report, and no more"
    numbers = chosen.unbiased(chosen.sums(stream, counts, people), people)
    luck = (stream.words(16) >> np.uint64(11)).astype(float) / 2**53
    assert found.sums.tolist() == np.floor(numbers + luck).tolist()
    variance = chosen.variance(people, numbers) + 0.25
    assert np.allclose(found.stddev**2, variance[:1] if randomiser is Symmetric else variance)
    assert found.stddev.shape == ((1,) if randomiser is Symmetric else (16,)) and found.people == people
    q = 1 / (exp(1.25) + 1)
    assert found.kurtosis == pytest.approx(1 / (people * q * (1 - q)) - 6 / people) == chosen.kurtosis(people)
    with pytest.raises(InputError, match="299 people were said to report"):
        LocalReports(rows, 299).answer(query, PureDP(1))
    assert trust.answers(Query) and not trust.answers(Choice)
    wide = trust.answer(query, PureDP("1e-30")).sums
    assert {2**62} <= set(np.abs(wide).tolist()) <= {0, 2**62}


def test_an_epsilon_beyond_floats_leaves_no_noise_and_counts_are_as_many_as_people_at_most():
    for randomiser in (Symmetric, Asymmetric):
        one, other = (randomiser(epsilon) for epsilon in (Fraction(500), Fraction(10**400)))
        sums, twice = np.array([0, 3, 9]), 1 + (randomiser is Asymmetric)
        assert one.unbiased(sums, 9).tolist() == other.unbiased(sums, 9).tolist()
        assert other.unbiased(sums, 9) == pytest.approx(twice * sums)
        assert one.kurtosis(9) == other.kurtosis(9) == pytest.approx(exp(500) / 9)
        none = np.zeros(3)
        assert 0 < one.variance(9, none)[0] == other.variance(9, none)[0] < 1e-200
        assert randomiser(Fraction(499)).kurtosis(9) == pytest.approx(exp(499) / 9)
    asymmetric = Asymmetric(Fraction(400)).variance(9, np.array([-5.0, 0.0, 4.5, 9.0, 12.0]))
    assert asymmetric == pytest.approx([0, 0, 4.5, 9, 9])
