"""The four formulas of the mean and the variance of a cell, by brute force over cells of up to seven samples."""

from fractions import Fraction
from itertools import combinations_with_replacement, product

import pytest

from hazemap.algorithms.published.chop_user import mean_bias, mean_sensitivity, variance_bias, variance_sensitivity
from hazemap.errors import InputError

HALF = Fraction(1, 2)
SOME = [Fraction(0), Fraction(1, 3), HALF, Fraction(2, 3), Fraction(1)]
ENDS = [Fraction(0), Fraction(1)]


def mean(values):
    return Fraction(sum(values), len(values))


def variance(values):
    return mean([v * v for v in values]) - mean(values) ** 2


def partitions(total: int, largest: int | None = None):
    """All numbers of samples of people that add up to `total`, the largest first."""
    if total == 0:
        yield ()
    for first in range(min(total, largest or total), 0, -1):
        for rest in partitions(total - first, first):
            yield (first, *rest)


def moved(statistic, others, own: int) -> Fraction:
    """The largest difference that `own` values can make beside `others`.

    Variance is convex in them: largest with values at the ends, least with all of them at the mean of the others.
    """
    middle = [mean(others)] if others else [HALF]
    found = [statistic([*others, *values]) for values in combinations_with_replacement(ENDS, own)]
    found += [statistic([*others, *(middle * own)])]
    return max(found) - min(found)


@pytest.mark.parametrize("statistic", [mean, variance])
@pytest.mark.parametrize("kept", range(1, 8))
def test_sensitivities_are_what_brute_force_finds(kept, statistic):
    formula = mean_sensitivity if statistic is mean else variance_sensitivity
    values = SOME if kept < 7 else [Fraction(0), HALF, Fraction(1)]
    for counts in partitions(kept):
        found = max(
            moved(statistic, others, own)
            for own in set(counts)
            for others in combinations_with_replacement(values, kept - own)
        )
        assert found == formula(kept, max(counts))


@pytest.mark.slow
@pytest.mark.parametrize("samples", range(1, 8))
def test_biases_are_what_brute_force_finds(samples):
    """Over all values at the ends and, for what is kept or left out, at the mean of the rest."""
    for kept in range(1, samples + 1):
        means, variances = [Fraction(0)], [Fraction(0)]
        for inside, outside in product(
            combinations_with_replacement(SOME, kept), combinations_with_replacement(SOME, samples - kept)
        ):
            values = [*inside, *outside]
            means.append(abs(mean(values) - mean(inside)))
            variances.append(abs(variance(values) - variance(inside)))
        assert max(means) == mean_bias(kept, samples)
        assert max(variances) == variance_bias(kept, samples)


def test_the_condition_printed_on_the_slides_is_refuted():
    """Of four samples one is kept: the variance may be off by 1/4, not by 3/16. Three are kept: the reverse."""

    def slides(kept: int, samples: int) -> Fraction:
        if samples > 2 * kept:
            return Fraction(kept * (samples - kept), samples**2)
        return Fraction(1, 4) * (1 if samples % 2 == 0 else 1 - Fraction(1, samples**2))

    assert slides(1, 4) == Fraction(3, 16) < variance_bias(1, 4) == Fraction(1, 4)
    assert variance([Fraction(0), Fraction(0), Fraction(1), Fraction(1)]) - variance([Fraction(0)]) == Fraction(1, 4)
    assert slides(3, 4) == Fraction(1, 4) > variance_bias(3, 4) == Fraction(3, 16)


@pytest.mark.parametrize("numbers", [(0, 0), (2, 3), (5, 0)])
def test_numbers_that_cannot_be_are_refused(numbers):
    with pytest.raises(InputError):
        mean_sensitivity(*numbers)
    with pytest.raises(InputError):
        variance_sensitivity(*numbers)


@pytest.mark.parametrize("formula", [mean_bias, variance_bias])
def test_nothing_kept_and_more_than_all_are_refused(formula):
    for kept, samples in ((0, 3), (4, 3)):
        with pytest.raises(InputError):
            formula(kept, samples)
