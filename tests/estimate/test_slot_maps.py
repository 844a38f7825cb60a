"""Maps of slots: they add up, their noise is exact, and what hours share helps each of them."""

from fractions import Fraction

import numpy as np
import pytest

from hazemap.cells import NOWHERE, Leaves, WholeDomain
from hazemap.encoders import Counts
from hazemap.errors import InputError
from hazemap.estimate.slot_maps import held_by, read_slots
from hazemap.queries.noisy_queries import Answer, Query
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import OneVote
from hazemap.temporal.time_slots import Clock
from hazemap.values.cells_in_slots import AllSlots, EachSlot
from hazemap.values.timed_tree import TimedTree

SLOTS = Clock("UTC", (0, 21600, 43200, 64800))
TIMED = TimedTree(Quadtree.world(depth=3), SLOTS)
COARSE = Leaves.at_level(TIMED.tree, 1)
CELLS = Leaves(TIMED.tree, np.concatenate([TIMED.tree.children(COARSE.cells[:2]), COARSE.cells[2:], [NOWHERE]]))
EVERYTHING = WholeDomain(TIMED.tree)
ASKED = [AllSlots(TIMED, CELLS), AllSlots(TIMED, EVERYTHING), EachSlot(TIMED, COARSE), EachSlot(TIMED, EVERYTHING)]
STDDEV, KURTOSIS = [3.0, 9.0, 5.0, 14.0], [3.0, 3.0, 2.0, 3.0]
WEIGHTS = np.random.default_rng(2).normal(size=COARSE.size)


def read(sums, stddev=STDDEV):
    """The maps from these answers; fractions of people are given as many votes."""
    scale = 1 << 16
    transcript = [
        (Query(Counts(asked, OneVote(scale)), Fraction(1, 4)), answered(own * scale, error * scale, kurtosis))
        for asked, own, error, kurtosis in zip(ASKED, sums, stddev, KURTOSIS, strict=True)
    ]
    return read_slots(transcript, CELLS, SLOTS)


def answered(sums, stddev, kurtosis):
    return Answer(np.rint(sums).astype(np.int64), np.array([stddev]), kurtosis)


def exact(fine: np.ndarray) -> list[np.ndarray]:
    """What all questions would be answered without noise; float64[slots, cells of the total]."""
    holder = np.repeat(np.arange(4), (4, 4, 1, 1))
    coarse = np.stack([np.bincount(holder, own) for own in fine])
    return [np.append(fine.sum(axis=0), 17), fine.sum(keepdims=True)[0], coarse.T.ravel(), coarse.sum(axis=1)]


def truth() -> np.ndarray:
    return np.random.default_rng(1).poisson(400, (4, 10)).astype(float)


def test_without_noise_numbers_are_the_truth():
    fine = truth()
    made = read(exact(fine), [1e-3] * 4)
    coarse = np.stack([np.bincount(np.repeat(np.arange(4), (4, 4, 1, 1)), own) for own in fine])
    assert np.allclose(made.unbiased, coarse, atol=1e-3)
    assert np.allclose(made.total.unbiased[:-1], fine.sum(axis=0), atol=1e-3)
    assert np.allclose(np.stack([made.during([slot]).values for slot in range(4)]), coarse, rtol=0.01)


@pytest.mark.parametrize("seed", range(3))
def test_slots_add_up_to_the_total_cell_by_cell(seed):
    rng = np.random.default_rng(seed)
    made = read([own + rng.laplace(0, error, own.shape) for own, error in zip(exact(truth()), STDDEV, strict=True)])
    every = made.during(range(4))
    parts = [made.during([slot]) for slot in range(4)]
    assert np.allclose(sum(part.unbiased for part in parts), every.unbiased)
    assert np.allclose(every.unbiased.sum(), made.total.unbiased[:-1].sum())
    assert np.allclose(made.values[:, :-1].sum(axis=0), made.total.values[:-1])
    assert (made.values >= 0).all() and (made.values[:, -1] == 0).all()
    for chosen in ([2], [0, 3], [0, 1, 2, 3]):
        fine, coarse = made.finer(chosen), made.during(chosen)
        assert np.isclose(fine.values.sum(), coarse.values.sum())
        assert np.isclose(fine.unbiased.sum(), coarse.unbiased.sum())
        assert np.isclose(fine.noise.of(np.ones(fine.cells.size)).stddev, coarse.noise.of(np.ones(4)).stddev)
    assert made.during([1, 1]).unbiased.tolist() == made.during([1]).unbiased.tolist()


@pytest.mark.parametrize("chosen", [[1], [0, 2], [0, 1, 2, 3]])
def test_variance_and_kurtosis_are_exactly_those_of_the_linear_map(chosen):
    """How far each answer moves a number, one by one, gives its variance and fourth cumulant."""
    zero = [np.zeros(asked.size) for asked in ASKED]
    start = WEIGHTS @ read(zero).during(chosen).unbiased
    variance = fourth = 0.0
    for of, (error, kurtosis) in enumerate(zip(STDDEV, KURTOSIS, strict=True)):
        for at in range(ASKED[of].size):
            moved = [own.copy() for own in zero]
            moved[of][at] = 1.0
            by = WEIGHTS @ read(moved).during(chosen).unbiased - start
            variance += (by * error) ** 2
            fourth += kurtosis * (by * error) ** 4
    found = read(zero).during(chosen)
    spread = found.noise.of(WEIGHTS)
    assert spread.stddev == pytest.approx(variance**0.5, rel=1e-6)
    assert spread.kurtosis == pytest.approx(fourth / variance**2, rel=1e-6)
    each = [found.noise.of(one).stddev for one in np.eye(4)]
    assert np.allclose(found.stddev, each)


def test_noise_that_forgets_what_slots_share_is_found_out():
    """The twin that must fail the test above: slots as if each had been measured alone."""
    made = read([np.zeros(asked.size) for asked in ASKED])
    assert made.slot.of(WEIGHTS).stddev > 1.02 * made.during([1]).noise.of(WEIGHTS).stddev


def test_an_hour_that_says_nothing_of_its_own_looks_like_the_day():
    fine = np.outer([1.0, 2.0, 3.0, 2.0], [500, 100, 50, 10, 300, 40, 5, 5, 900, 90])
    rng = np.random.default_rng(4)
    loud = [1.0, 1.0, 4000.0, 20.0]
    made = read([own + rng.laplace(0, error, own.shape) for own, error in zip(exact(fine), loud, strict=True)], loud)
    shape = made.values[:, :-1] / made.values.sum(axis=1, keepdims=True)
    assert np.abs(shape - fine[0] / fine[0].sum()).sum(axis=1).mean() < 0.6
    alone = np.maximum(made.unbiased, 0) / np.maximum(made.unbiased, 0).sum(axis=1, keepdims=True)
    day = np.bincount(np.repeat(np.arange(4), (4, 4, 1, 1)), fine[0] / fine[0].sum())
    assert np.abs(alone - day).sum(axis=1).mean() > 1
    assert np.allclose(made.values.sum(axis=1), fine.sum(axis=1), rtol=0.1)


def test_an_hour_that_is_another_world_is_believed():
    fine = truth()
    fine[2] = fine[2][::-1] * np.linspace(0, 4, 10)
    rng = np.random.default_rng(5)
    made = read([own + rng.laplace(0, error, own.shape) for own, error in zip(exact(fine), STDDEV, strict=True)])
    found = made.during([2]).values
    assert np.allclose(found, np.bincount(np.repeat(np.arange(4), (4, 4, 1, 1)), fine[2]), atol=40)


def test_nobody_is_nowhere_in_particular():
    made = read([np.zeros(asked.size) for asked in ASKED])
    assert (made.values == 0).all()
    with pytest.raises(InputError, match="4 slots"):
        made.during([])
    with pytest.raises(InputError, match="4 slots"):
        made.during([4])
    with pytest.raises(InputError, match="no cells were counted in slots"):
        read_slots([(Query(Counts(ASKED[0]), Fraction(1)), answered(np.zeros(11), 1.0, 3.0))], CELLS, SLOTS)


def test_the_detail_of_slots_is_that_of_the_total_and_cells_keep_their_numbers():
    made = read(exact(truth() * np.array([9, 1, 1, 1, 1, 1, 1, 1, 4, 1])))
    shown, hour = made.detail, made.finer([1])
    assert np.array_equal(shown.cells.cells[shown.places], hour.cells.cells)
    cell = made.total.cells.locate(TIMED.tree.span(hour.cells.cells)[0])
    own = made.total.places
    assert shown.cells.size > CELLS.size
    assert np.allclose(np.bincount(cell, shown.values[shown.places], CELLS.size)[own], made.total.values[own])
    assert np.allclose(np.bincount(cell, hour.values, CELLS.size)[own], made.values[1][own])


@pytest.mark.parametrize("level", [0, 1])
def test_every_hexagon_of_a_total_is_found_in_the_hexagons_of_slots_however_fine_they_are(level):
    tree = Hexagons(Box(13.2, 52.4, 13.6, 52.6), 0, 1)  # a pentagon's children, and sixth children, are among them
    finest = Leaves.at_level(tree, 1)
    cells, coarse = Leaves(tree, np.append(finest.cells, NOWHERE)), Leaves.at_level(tree, level)
    around = finest.cells if level else tree.parent(finest.cells)
    found = held_by(cells, coarse)
    assert found[-1] == -1 and (coarse.cells[found[:-1]] == around).all()
    with pytest.raises(InputError, match="must lie in a cell of the slots"):
        held_by(cells, Leaves(tree, coarse.cells[1:]))
