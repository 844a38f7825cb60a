"""CHOP-USER: fewer cells a person, and no cell worse than the worst one was."""

import time
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hazemap.algorithms.published.chop_user import (
    CellVisits,
    ChopUserQuery,
    chop_user,
    mean_bias,
    mean_sensitivity,
    variance_bias,
    variance_sensitivity,
)
from hazemap.errors import InputError


@st.composite
def presences(draw):
    pairs = draw(st.sets(st.tuples(st.integers(0, 7), st.integers(0, 5)), min_size=1, max_size=40))
    person, cell = np.array(sorted(pairs)).T
    samples = draw(st.lists(st.integers(1, 20), min_size=len(pairs), max_size=len(pairs)))
    return CellVisits(np.unique(person, return_inverse=True)[1], np.unique(cell, return_inverse=True)[1], samples)


def errors(presence: CellVisits, kept: np.ndarray, asked: ChopUserQuery, epsilon: float) -> list[float]:
    """The worst-case error of every cell, by the exact formulas; infinite where nobody is left."""
    found = []
    for cell in range(presence.cell.max() + 1):
        inside = presence.cell == cell
        left = presence.samples[inside & kept]
        total = int(presence.samples[inside].sum())
        found.append(asked.error(total, int(left.sum()), int(left.max()), epsilon) if len(left) else float("inf"))
    return found


def slow_twin(presence: CellVisits, asked: ChopUserQuery, epsilon: float) -> int:
    """K in the end, one person after another, by the exact formulas."""
    kept = np.ones(len(presence.person), dtype=bool)
    threshold = max(errors(presence, kept, asked, epsilon)) * (1 + 1e-12)
    while True:
        cells = np.bincount(presence.person[kept])
        level = cells.max()
        if level == 1:
            return 1
        for person in np.argsort(-presence.cells_of_people):
            if cells[person] < level:
                continue
            afterwards = []
            for pair in np.flatnonzero(kept & (presence.person == person)):
                kept[pair] = False
                afterwards.append((errors(presence, kept, asked, epsilon)[presence.cell[pair]], pair))
                kept[pair] = True
            error, pair = min(afterwards)
            if error > threshold:
                return int(level)
            kept[pair] = False


@pytest.mark.slow
@given(presences(), st.sampled_from([0.1, 0.5, 1, 2]), st.booleans())
def test_nobody_is_in_more_cells_than_k_and_no_error_is_above_the_threshold(presence, epsilon, variance):
    asked = ChopUserQuery(65.0, variance)
    found = chop_user(presence, asked, epsilon)
    everything = np.ones(len(presence.person), dtype=bool)
    assert found.threshold == pytest.approx(max(errors(presence, everything, asked, epsilon)))
    assert found.error == pytest.approx(max(errors(presence, found.kept, asked, epsilon)))
    assert found.error <= found.threshold * (1 + 1e-12)
    assert found.after == np.bincount(presence.person[found.kept]).max() <= found.before
    assert found.before == presence.cells_of_people.max()


@given(presences(), st.sampled_from([0.1, 0.5, 2]), st.booleans())
def test_the_loops_end_where_a_slow_twin_ends_or_lower(presence, epsilon, variance):
    """Ties are broken alike, but for the rounding of errors that are equal."""
    asked = ChopUserQuery(1.0, variance)
    assert abs(chop_user(presence, asked, epsilon).after - slow_twin(presence, asked, epsilon)) <= 1


def test_one_heavy_person_is_left_out_down_to_the_others():
    """One person with most samples in 12 cells, others in 1: noise falls by more than the bias, and K falls from 12."""
    person = np.concatenate([np.zeros(12), np.arange(1, 121)]).astype(int)
    cell = np.concatenate([np.arange(12), np.repeat(np.arange(12), 10)])
    presence = CellVisits(person, cell, np.repeat([20, 5], [12, 120]))
    found = chop_user(presence, ChopUserQuery(65.0), 0.1)
    assert (found.before, found.after) == (12, 1)
    assert found.kept[:12].sum() == 1 and found.kept[12:].all()


def test_rows_of_any_codes_are_counted():
    presence = CellVisits.counted(np.array([7, 7, -1, 7]), np.array(["b", "a", "a", "b"]))
    assert presence.person.tolist() == [0, 1, 1]
    assert presence.cell.tolist() == [0, 0, 1]
    assert presence.samples.tolist() == [1, 1, 2]


@pytest.mark.parametrize(
    "columns",
    [([], [], []), ([0], [0], [0]), ([0, 0], [1, 1], [2, 3]), ([-1], [0], [1]), ([0], [0, 1], [1])],
)
def test_pairs_that_cannot_be_are_refused(columns):
    with pytest.raises(InputError):
        CellVisits(*(np.array(column, dtype=int) for column in columns))


def test_a_budget_and_a_range_are_above_zero():
    presence = CellVisits(np.array([0]), np.array([0]), np.array([1]))
    for asked, epsilon in ((ChopUserQuery(65.0), 0.0), (ChopUserQuery(0.0), 1.0)):
        with pytest.raises(InputError):
            chop_user(presence, asked, epsilon)


@pytest.mark.slow
def test_a_million_pairs_are_chopped_in_seconds():
    chance = np.random.default_rng(0)
    keys = np.unique(chance.integers(0, 20_000, 1_200_000) * 5_000 + chance.integers(0, 5_000, 1_200_000))[:1_000_000]
    presence = CellVisits(keys // 5_000, keys % 5_000, chance.integers(1, 100, len(keys)))
    chop_user(CellVisits(np.array([0]), np.array([0]), np.array([1])), ChopUserQuery(65.0), 1)  # compiles
    begin = time.process_time()
    found = chop_user(presence, ChopUserQuery(65.0), 0.1)
    assert time.process_time() - begin < 10
    assert found.after < found.before


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
