"""Each end of an interval for reports fails as rarely as it says, by the exact law of what is published."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from hazemap.errors import InputError
from hazemap.estimate.confidence_margins import margins, reach
from hazemap.estimate.report_intervals import _SumOfReports, asymmetry_margin, report_intervals
from hazemap.federated.study.searches.item_counts import counted_items, frequent_bins
from hazemap.federated.trust.randomised_reports import debiased
from hazemap.privacy.local_randomisers import Asymmetric, Symmetric, UnaryEncoding
from hazemap.privacy.random_stream import Stream
from hazemap.queries.noisy_queries import Answer

LAWS = [
    Asymmetric(Fraction(6)),
    Asymmetric(Fraction(4)),
    Asymmetric(Fraction(8)),
    Asymmetric(Fraction(1, 2)),
    Symmetric(Fraction(3)),
    Symmetric(Fraction(1)),
    UnaryEncoding(Fraction(96, 100), Fraction(8, 1000)),
    UnaryEncoding(Fraction(9, 10), Fraction(1, 3)),
]


def published(chances, people, holders):
    """Every number that may be published, and its probability: the sum's law, and the luck of rounding."""
    p, q = chances
    sums = np.convolve(
        binom.pmf(np.arange(holders + 1), holders, p), binom.pmf(np.arange(people - holders + 1), people - holders, q)
    )
    exact = (np.arange(people + 1) - people * q) / (p - q)
    low = np.floor(exact)
    up = exact - low
    numbers = np.concatenate([low, low + 1])
    weights = np.concatenate([sums * (1 - up), sums * up])
    kept = weights > 1e-15
    return numbers[kept], weights[kept]


def misses(numbers, weights, low, high, holders):
    """The probability that the truth is below the interval, and above it."""
    assert len(low) == len(numbers)
    return float(weights[holders < low].sum()), float(weights[holders > high].sum())


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("people", [1, 2, 7, 12])
def test_no_side_misses_more_than_its_share_whoever_holds_the_bin(law, people):
    for confidence in (0.5, 0.95, 0.999):
        for holders in range(people + 1):
            numbers, weights = published(law.chances, people, holders)
            low, high = report_intervals(law.chances, people, numbers, confidence)
            assert max(misses(numbers, weights, low, high, holders)) <= (1 - confidence) / 2 + 1e-10
            assert ((low >= 0) & (high <= people) & (low <= high + 1)).all()


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_rare_and_frequent_bins_of_1500_people(law):
    """Above a variance of 100 tails are approximate: 10⁻⁴ more at most. Symmetric margins are the twin that fails."""
    worst = 0.0
    for holders in (0, 1, 3, 10, 30, 150, 600):
        numbers, weights = published(law.chances, 1_500, holders)
        low, high = report_intervals(law.chances, 1_500, numbers, 0.95)
        assert max(misses(numbers, weights, low, high, holders)) <= 0.025 + 1e-4, holders
        stddev = np.sqrt(law.variance(1_500, numbers) + 0.25)
        margin = reach(0.95, law.kurtosis(1_500)) * stddev
        worst = max(worst, *misses(numbers, weights, numbers - margin, numbers + margin, holders))
        # A map's margins are wider than they need be, and hold on either side.
        margin = margins(stddev, law.kurtosis(1_500), 0.95, asymmetry_margin(law.chances, 0.95))
        low, high = numbers - margin, numbers + margin
        assert max(misses(numbers, weights, low, high, holders)) <= 0.025
    assert worst > {Asymmetric(Fraction(8)): 0.07, Asymmetric(Fraction(6)): 0.037, Symmetric(Fraction(3)): 0.03}.get(
        law, 0.025
    )


@pytest.mark.parametrize("law", [LAWS[1], LAWS[6]], ids=str)
def test_many_people_have_intervals_as_narrow_as_by_a_gauss_law(law):
    """100,000 people: within 10⁻⁴ of the share, and hardly less."""
    for holders in (1_000, 30_000):
        p, q = law.chances
        stddev = float(np.sqrt(law.variance(100_000, np.array([holders]))[0]))
        numbers = np.round(holders + stddev * np.linspace(-2.2, 2.2, 45))
        low, high = report_intervals((p, q), 100_000, numbers, 0.95)
        assert (high - low) / (2 * 1.96 * stddev) == pytest.approx(1, abs=0.03)
        exact = binom.rvs(holders, p, size=400_000, random_state=1) + binom.rvs(
            100_000 - holders, q, size=400_000, random_state=2
        )
        found = np.floor((exact - 100_000 * q) / (p - q) + np.random.default_rng(3).random(400_000))
        low, high = report_intervals((p, q), 100_000, found, 0.95)
        for missed in ((holders < low).mean(), (holders > high).mean()):  # five standard errors are 0.00125
            assert 0.0225 < missed < 0.0264


def test_items_of_a_search_have_the_intervals_of_their_reports():
    law, stream = Asymmetric(Fraction(6)), Stream.fixed(b"items")
    answer = debiased(law, law.sums(stream, np.array([3, 40, 0]), 1_500), 1_500, stream)
    table = counted_items(("b", "a"), 1, answer, np.array([1, 0]))
    low, high = report_intervals(law.chances, 1_500, answer.sums[[1, 0]].astype(float), 0.9)
    assert table.interval(0.9).low.tolist() == low.tolist() and table.interval(0.9).high.tolist() == high.tolist()
    other = counted_items(("d", "e"), 2, Answer(np.array([5, 9]), np.array([2.0])), np.array([0, 1]))
    joined = type(table).joined([table, other])
    assert joined.interval(0.9).low[:2].tolist() == low.tolist()
    assert joined.interval(0.9).low[2:] == pytest.approx(np.array([5, 9]) - 2 * 1.6449, abs=1e-3)


def test_what_stands_out_is_judged_by_the_law_of_an_empty_bin_whichever_bits_vary_more():
    """Moments do not tell it where the bits of others vary more than a person's own: the twin goes by them."""
    law, people, chance = UnaryEncoding(Fraction(95, 100), Fraction(3, 10)), 400, 0.01
    numbers, weights = published(law.chances, people, 0)

    def passed(answer):
        """The probability with which an empty bin is taken for a frequent one."""
        found = [len(frequent_bins(replace(answer, sums=np.array([n])), np.arange(1), 1, chance)) for n in numbers]
        return float(weights[np.array(found, dtype=bool)].sum())

    full = law.variance(people, np.array([float(people), 0.0]))
    answer = Answer(np.array([0, 0]), np.sqrt(full), 0.0, people, law.skewness(people), law.chances)
    assert 0 < passed(answer) <= chance
    assert passed(replace(answer, chances=None)) > 2 * chance


def test_what_are_no_reports_is_refused():
    for chances, people in (((0.5, 0.5), 10), ((0.2, 0.5), 10), ((0.5, 0.1), 0)):
        with pytest.raises(InputError, match="reports come from"):
            report_intervals(chances, people, np.zeros(1), 0.95)
    with pytest.raises(InputError, match="confidence"):
        report_intervals((0.5, 0.1), 10, np.zeros(1), 1.0)


@pytest.mark.parametrize("level", [0.001, 0.025, 0.9])
def test_quantiles_of_large_sums_follow_the_cumulants_of_their_law(level):
    """To a twentieth of a report, where holders and others vary by different laws."""
    people, holders, p, q = 3_000, 700, 0.7, 0.02
    law = np.convolve(
        binom.pmf(np.arange(holders + 1), holders, p), binom.pmf(np.arange(people - holders + 1), people - holders, q)
    )
    variance = holders * p * (1 - p) + (people - holders) * q * (1 - q)
    below = np.cumsum(law) - law / 2
    truth = float(np.interp(level, below, np.arange(people + 1)))
    found = _SumOfReports(p, q, people)._quantile(np.array([holders]), np.array([variance]), level)
    assert found == pytest.approx(truth, abs=0.05)
