"""Wavelets: what a vote moves, and how a grid and its errors are read off the noisy numbers."""

import numpy as np
import pytest

from hazemap.cellmap import Reading
from hazemap.cells import NOWHERE
from hazemap.encoders import Counts, HaarWavelet, total
from hazemap.engines.memory import MemoryTable
from hazemap.errors import InputError
from hazemap.estimate import read_wavelet
from hazemap.estimate.wavelet_reconstruction import WaveletNoise, restored
from hazemap.queries.noisy_queries import Answer
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import AtMostCells, AtMostRows, OneVote, Outside, Sensitivity

TREE = Quadtree.around(Box(13.2, 52.4, 13.6, 52.6), 5)


def people(number: int = 3_000, nowhere: int = 0) -> MemoryTable:
    rng = np.random.default_rng(2)
    lost = np.full(nowhere, np.nan)
    lon, lat = rng.normal(13.4, 0.03, number), rng.normal(52.5, 0.02, number)
    return MemoryTable(np.arange(number + nowhere), {"lon": np.append(lon, lost), "lat": np.append(lat, lost)})


def alone(wavelet: HaarWavelet, cell: int) -> np.ndarray:
    """What a person with one row in a base cell says."""
    west, south, east, north = wavelet.tree.bounds(np.array([cell], dtype=np.uint64))
    return total(wavelet, MemoryTable(np.zeros(1, np.int64), {"lon": (west + east) / 2, "lat": (south + north) / 2}))


@pytest.mark.parametrize("level", [1, 2, 3])
def test_a_vote_anywhere_moves_exactly_as_many_numbers_by_one_as_the_sensitivity_says(level):
    """Brute force over all neighbours: every base cell of a tree that is a level deeper than the wavelet."""
    wavelet = HaarWavelet(Quadtree.world(depth=4), level)
    for cell in range(4**4, 2 * 4**4):
        moved = alone(wavelet, cell)
        assert set(np.abs(moved)) <= {0, 1}
        assert np.abs(moved).sum() == (moved**2).sum() == (level + 1) ** 2 == wavelet.sensitivity.l1


@pytest.mark.parametrize("rule", [AtMostRows(3), AtMostCells(3), OneVote(7)], ids=repr)
def test_all_pairs_of_places_stay_within_the_sensitivity(rule):
    wavelet = HaarWavelet(Quadtree.world(depth=2), 2, rule)
    each = [alone(HaarWavelet(wavelet.tree, 2), cell) for cell in range(16, 32)]
    most = rule.sensitivity.l1
    reached = [
        (np.abs(moved).sum(), (moved**2).sum())
        for first in each
        for second in each
        for part in range(most + 1)
        for moved in (part * first + (most - part) * second,)
    ]
    assert max(l1 for l1, _ in reached) == wavelet.sensitivity.l1
    assert max(l2 for _, l2 in reached) == wavelet.sensitivity.l2_squared


def test_somebody_who_is_partly_nowhere_stays_within_the_sensitivity():
    wavelet = HaarWavelet(Quadtree.world(depth=2), 2, OneVote(6, outside=Outside.COUNT))
    lost = np.zeros(wavelet.size, dtype=np.int64)
    lost[-1] = 3
    for cell in range(16, 32):
        one = np.append(alone(HaarWavelet(wavelet.tree, 2), cell), 0)
        for part in range(7):
            moved = part * one + (6 - part) * lost
            assert np.abs(moved).sum() <= wavelet.sensitivity.l1
            assert (moved**2).sum() <= wavelet.sensitivity.l2_squared


def test_a_wavelet_of_rows_alone_is_found_out():
    """The twin that must fail: columns forgotten."""
    wavelet = HaarWavelet(Quadtree.world(depth=2), 2)
    moved = alone(wavelet, 16)
    assert np.abs(moved).sum() > Sensitivity(wavelet.level + 1, wavelet.level + 1).l1


@pytest.mark.parametrize("rule", [AtMostRows(1), OneVote(outside=Outside.COUNT)], ids=repr)
@pytest.mark.parametrize("level", [1, 4, 5])
def test_the_votes_said_one_by_one_are_the_votes_counted(rule, level):
    wavelet, table = HaarWavelet(TREE, level, rule), people(nowhere=20)
    assert np.array_equal(wavelet.total(table), total(wavelet, table))


def test_a_number_is_the_published_coefficient_times_its_weight():
    """Xiao et al., section IV: half the difference of the means of a node's two halves, times its leaves."""
    wavelet, table = HaarWavelet(TREE, 3), people()
    picture = Counts(wavelet.cells).total(table)[wavelet.places]
    numbers = wavelet.total(table).reshape(8, 8)
    rows = picture[:, 0:4].mean(axis=1), picture[:, 4:8].mean(axis=1)
    first = (rows[0] - rows[1]) / 2 * 8  # of every row, its pair of halves; then of this column its second pair
    assert numbers[0, 1] == pytest.approx(first.sum())
    assert numbers[3, 1] == pytest.approx((first[4:6].mean() - first[6:8].mean()) / 2 * 4)
    assert numbers[0, 0] == picture.sum()


def test_without_noise_the_counts_come_back():
    wavelet, table = HaarWavelet(TREE, 5, AtMostRows(1, outside=Outside.COUNT)), people(nowhere=300)
    back = restored(wavelet, wavelet.total(table).astype(float))
    assert np.array_equal(back, Counts(wavelet.cells, wavelet.bounding).total(table))
    assert back[-1] == 300 and wavelet.cells.cells[-1] == NOWHERE


@pytest.mark.parametrize("outside", Outside)
def test_the_noise_of_any_sum_is_that_of_the_inverse(outside):
    wavelet = HaarWavelet(TREE, 3, AtMostRows(1, outside))
    inverse = np.stack([restored(wavelet, unit) for unit in np.eye(wavelet.size)], axis=1)
    noise = WaveletNoise(wavelet, 2.0, 3.0)
    assert np.allclose(noise.errors, 2 * np.sqrt((inverse**2).sum(axis=1)))
    for weights in np.random.default_rng(4).normal(size=(5, wavelet.size)):
        pulled = weights @ inverse
        found = noise.of(weights)
        assert found.stddev == pytest.approx(2 * np.sqrt((pulled**2).sum()))
        assert found.kurtosis == pytest.approx(3 * (pulled**4).sum() / (pulled**2).sum() ** 2)
    assert noise.of(np.zeros(wavelet.size)) == (0, 0)


def test_a_vote_shared_out_is_read_in_people():
    wavelet, table = HaarWavelet(TREE, 4, OneVote(64)), people()
    made = read_wavelet(wavelet, Answer(wavelet.total(table), np.array([6.4]), 3.0), Reading.UNBIASED)
    assert made.unbiased.sum() == pytest.approx(3_000)
    assert made.noise.of(np.ones(256)).stddev == pytest.approx(0.1)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: HaarWavelet(TREE, 6),
        lambda: HaarWavelet(TREE, 0),
        lambda: HaarWavelet(Quadtree.world(depth=14), 13),
        lambda: HaarWavelet(Hexagons(Box(13.2, 52.4, 13.6, 52.6), 5, 9), 2),
        lambda: read_wavelet(HaarWavelet(TREE, 1), Answer(np.zeros(4, np.int64), np.arange(1.0, 5)), Reading.UNBIASED),
    ],
)
def test_what_is_no_wavelet_is_refused(wrong):
    with pytest.raises(InputError):
        wrong()
