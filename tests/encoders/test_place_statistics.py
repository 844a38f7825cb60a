"""What one person can move of the questions of user-level estimators: tried on all neighbours of small tables."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from hazemap.encoders.sample_statistics import (
    GRID,
    PlaceArrayMeans,
    PlaceBalances,
    PlaceBins,
    PlaceMeans,
    PlaceQuantiles,
    PlaceVariances,
)
from hazemap.errors import InputError, TableError
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.person_cell_values import PersonCellSamples, PersonCellValues
from hazemap.tables.sample_grouping import UNIT
from hazemap.temporal.time_slots import Always
from hazemap.values.cell_slot_counters import ObservedCellSlots
from hazemap.values.value_encoding import ValueEncoding

PLACES = ObservedCellSlots(Quadtree.world(depth=1), Always(), ValueEncoding(0, 1, 2))
LONLAT = [(-90.0, 45.0), (90.0, 45.0), (-90.0, -45.0)]


def table(counts, values, most=9, *, grouped=True, by_people=False) -> PersonCellSamples:
    """People with so many samples in each of some places, {(person, place): number}; `values` one after another."""
    pairs = [pair for pair, number in counts.items() for _ in range(number)]
    lon, lat = (np.array([LONLAT[place][axis] for _, place in pairs]) for axis in (0, 1))
    rows = {"lon": lon, "lat": lat, "value": np.asarray(values, dtype=float)}
    found = PersonCellValues.of_rows(PLACES, np.array([person for person, _ in pairs]), rows, key=1)
    number = found.tree.places
    counting = np.ones(len(found.whereabouts.place), dtype=np.bool_)
    most = np.full(number, most)
    return PersonCellSamples(found, counting, most, grouped, by_people)


def neighbours(counts, ends=(0.0, 1.0), **options):
    """Tables in which the values of person 0 differ and those of all others are the same, of these values each."""
    people = [person for (person, _), number in counts.items() for _ in range(number)]
    own, others = people.count(0), len(people) - people.count(0)
    for rest in product(ends, repeat=others):
        tables = []
        for mine in product(ends, repeat=own):
            each = {True: iter(mine), False: iter(rest)}
            tables.append(table(counts, [next(each[person == 0]) for person in people], **options))
        yield tables


def moved(asked, tables) -> np.ndarray:
    """By how much the numbers of any two of the tables differ, at most in each place."""
    sums = np.array([asked.total(each) for each in tables])
    return sums.max(axis=0) - sums.min(axis=0)


ONE = [{(0, 0): 2, (1, 0): 1}, {(0, 0): 1, (1, 0): 3}, {(0, 0): 3, (1, 0): 1}, {(0, 0): 2, (1, 0): 2, (2, 0): 1}]
TWO = {(0, 0): 2, (0, 1): 1, (1, 1): 2, (2, 0): 1}


@pytest.mark.parametrize("counts", [*ONE, TWO], ids=str)
@pytest.mark.parametrize("most", [1, 2, 9])
@pytest.mark.parametrize("by_people", [False, True])
def test_no_neighbour_moves_a_number_of_a_place_by_more_than_a_unit(counts, most, by_people):
    options = {"most": most, "by_people": by_people}
    farthest = 0
    for tables in neighbours(counts, **options):
        places = tables[0].places
        assert all(each.places == places for each in tables), "who counts for what is public"
        told = len(places.told)
        low, high = np.zeros(told, np.int64), np.full(told, GRID)
        for asked in (
            PlaceMeans(places),
            PlaceVariances(places),
            PlaceArrayMeans(places, low, high),
            PlaceArrayMeans(places, low + GRID // 4, high - 1),
        ):
            by = moved(asked, tables)
            assert by.max() <= UNIT and asked.sensitivity.l1 == places.together * UNIT >= by.sum()
            assert asked.sensitivity.l2_squared >= (by.astype(object) ** 2).sum()
            farthest = max(farthest, by.max())
    if counts is not ONE[1]:  # there, somebody else has more samples
        assert farthest >= UNIT - 1, "a person reaches the bound"


@pytest.mark.parametrize("counts", [*ONE, TWO], ids=str)
def test_no_neighbour_moves_a_score_by_more_than_is_said(counts):
    near = {"quantile": 0, "bins": 0, "balance": 0.0}
    for tables in neighbours(counts, (0.0, 0.3, 1.0) if len(counts) < 3 else (0.0, 1.0), most=2):
        places = tables[0].places
        told = len(places.told)
        for name, asked in (
            ("quantile", PlaceQuantiles(places, Fraction(1, 10))),
            ("bins", PlaceBins(places, np.full(told, 1000))),
            ("balance", PlaceBalances(places, GRID // 16)),
        ):
            assert asked.of_one_person == places.together * asked.each and asked.choices == told * asked.each
            scored = [list(asked.scored(each)) for each in tables]
            for choice in zip(*scored, strict=True):
                assert len({by for _, by in choice}) == 1
                scores = np.array([scores for scores, _ in choice])
                by = (scores.max(axis=0) - scores.min(axis=0)).max() / choice[0][1]
                assert by <= 1
                near[name] = max(near[name], by)
    assert near["quantile"] == 1 and near["bins"] == 1 and near["balance"] > 0.4


def exact_variances(own: int, rest: int, steps=2):
    """The largest and least N Σ x² − (Σ x)² over values of one person, for each of the others' values."""
    grid = np.linspace(0, 1, steps)
    for others in combinations_with_replacement(grid, rest):
        found = []
        for mine in combinations_with_replacement(grid, own):
            x = np.array([*mine, *others])
            found.append(len(x) * (x**2).sum() - x.sum() ** 2)
        yield max(found) - min(found)


@pytest.mark.parametrize(
    ("own", "rest"), [(own, rest) for own in range(1, 6) for rest in range(6) if 1 < own + rest < 8]
)
def test_the_variance_s_sensitivity_is_exact(own, rest):
    """Of all samples, by brute force: up to 7 of them, at the ends of the bounds and between them."""
    counts = {(0, 0): own} | {(person + 1, 0): 1 for person in range(rest)}
    if own > 1 or not rest:
        places = table(counts, np.zeros(own + rest)).places
        [reached] = PlaceVariances(places).reached
        assert reached == pytest.approx(max(exact_variances(own, rest)) * UNIT**2, rel=1e-12)
        assert reached >= max(exact_variances(own, rest, 5)) * UNIT**2 * (1 - 1e-12)


def test_of_people_who_count_for_less_the_variance_may_move_farther():
    """Two of three samples count, in halves: 1/4 is reached, which N odd whole samples cannot."""
    counts = {(0, 0): 4, (1, 0): 1}
    cut = table(counts, np.zeros(5), most=2).places
    [reached] = PlaceVariances(cut).reached
    assert cut.kept[0] == 3 and reached == 9 * UNIT**2 // 4
    values = [[1, 1, 1, 0], [0, 0, 0, 0]]  # a mean of 3/4, twice, beside a 0: 9/4 in all
    by = moved(PlaceVariances(cut), [table(counts, [*mine, 0.0], most=2) for mine in values])
    assert by[0] >= UNIT - 1
    whole = table({(0, 0): 2, (1, 0): 1}, [0, 0, 0]).places
    assert PlaceVariances(whole).reached == [2 * UNIT**2]


def test_a_twin_that_says_too_little_is_found_out():
    """With half of Γ* one person moves the mean by two units: the law above would fail."""
    right = table({(0, 0): 2, (1, 0): 2}, [1, 1, 0, 0]).places
    wrong = replace(right, largest=right.largest // 2)
    tables = [table({(0, 0): 2, (1, 0): 2}, [end, end, 0, 0]) for end in (0, 1)]
    assert moved(PlaceMeans(right), tables).max() == UNIT
    with pytest.raises(TableError, match="other people count"):
        PlaceMeans(wrong).total(tables[0])
    for each in tables:
        each.__dict__["places"] = wrong
    assert moved(PlaceMeans(wrong), tables).max() == 2 * UNIT


def test_numbers_are_those_of_the_values():
    rng = np.random.default_rng(4)
    counts = {(person, 0): int(number) for person, number in enumerate(rng.integers(1, 9, 40))}
    values = rng.integers(0, 1025, sum(counts.values())) / 1024
    whole = table(counts, values)
    places = whole.places
    kept = int(places.kept[0])
    assert kept == len(values) and places.astray[0] > 0
    mean = PlaceMeans(places).total(whole)[0] * places.largest[0] / (UNIT * kept)
    assert mean == pytest.approx(values.mean(), abs=1e-5)
    [reached] = PlaceVariances(places).reached
    spread = float(PlaceVariances(places).total(whole)[0]) * reached / UNIT**3 / kept**2
    assert spread == pytest.approx(values.var(), abs=1e-5)


def test_bias_is_never_more_than_is_said():
    """Astray times the range bounds how far the estimate without noise is from the mean, for the worst of values."""
    counts = {(0, 0): 3, (1, 0): 1, (2, 0): 2}
    for grouped in (False, True):
        worst = 0.0
        for most in (1, 2, 3):
            for bits in product((0.0, 1.0), repeat=3):
                values = np.repeat(bits, [3, 1, 2])
                some = table(counts, values, most, grouped=grouped)
                places = some.places
                if grouped:
                    asked = PlaceArrayMeans(places, np.zeros(1, np.int64), np.full(1, GRID))
                    found = asked.total(some)[0] / UNIT / places.arrays[0]
                else:
                    found = PlaceMeans(places).total(some)[0] * places.largest[0] / UNIT / places.kept[0]
                off, said = abs(found - values.mean()), places.astray[0] / 2**30
                assert off <= said + 1e-3
                worst = max(worst, off - said)
        assert worst > -1e-3, "somebody's values reach it"


def test_questions_that_contradict_themselves_are_refused():
    places = table({(0, 0): 2, (1, 0): 2}, [1, 1, 0, 0]).places
    plain = table({(0, 0): 2, (1, 0): 2}, [1, 1, 0, 0], grouped=False).places
    one = np.ones(1, np.int64)
    for wrong in (
        lambda: PlaceArrayMeans(places, one, one),
        lambda: PlaceArrayMeans(plain, 0 * one, one),
        lambda: PlaceArrayMeans(places, 0 * one, one * (GRID + 1)),
        lambda: PlaceBins(places, 0 * one),
        lambda: PlaceBins(plain, one),
        lambda: PlaceQuantiles(places, Fraction(1, 2)),
        lambda: PlaceQuantiles(plain, Fraction(1, 10)),
        lambda: PlaceBalances(places, 0),
        lambda: table({(0, 0): 1}, [1], most=0).places,
    ):
        with pytest.raises(InputError):
            wrong()
    with pytest.raises(InputError, match=f"low must be a number from 0 to {GRID - 1} for"):
        PlaceArrayMeans(places, GRID * one, GRID * one)
    assert PlaceArrayMeans(places, (GRID - 1) * one, GRID * one).size == 1
    with pytest.raises(TableError, match="about samples in places"):
        PlaceMeans(places).total(table({(0, 0): 1}, [1]).pairs)
