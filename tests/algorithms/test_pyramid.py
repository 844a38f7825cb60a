"""Sparse maps under the earth mover's distance: what is asked, what is kept, and how near the map is."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from hazemap.algorithms import Pyramid
from hazemap.compare import density, emd
from hazemap.domains import Box, Quadtree
from hazemap.errors import InputError
from hazemap.privacy.budget import PureDP
from hazemap.privacy.stream import Stream
from hazemap.session import Unrecorded, run
from hazemap.tables import AtMostRows, MemoryTable, OneVote
from hazemap.trust import Curator

TREE = Quadtree.around(Box(13.2, 52.4, 13.6, 52.6), 6)


def table(people=200, seed=3):
    rng = np.random.default_rng(seed)
    home = rng.choice(8, people)
    spots = np.random.default_rng(1).uniform(0.1, 0.9, (2, 8))
    x, y = np.clip(spots[:, home] + rng.normal(0, 0.02, (2, people)), 0, 0.999)
    west, south, east, north = (float(edge[0]) for edge in TREE.bounds(TREE.root))
    return MemoryTable(np.arange(people), {"lon": west + x * (east - west), "lat": south + y * (north - south)})


def released(method, epsilon, rows=None, seed=b"pyramid"):
    return run(method, Curator(rows or table(), Stream.fixed(seed)), PureDP(epsilon), Unrecorded())


def picture(cells, values):
    grid = TREE.grid(TREE.depth)
    first, last = cells.spans
    return (values / ((last - first).astype(float) + 1))[cells.locate(grid.ravel())].reshape(grid.shape)


@pytest.mark.parametrize("rule", [OneVote(), AtMostRows(1), OneVote(nowhere=True)], ids=str)
def test_the_shares_are_spent_to_the_last_and_the_leaves_tile(rule):
    result = released(Pyramid(TREE, rule), 1)
    assert sum(question.share for question, _ in result.transcript) == 1
    leaves = result.value.cells
    assert (leaves.locate(TREE.grid(TREE.depth).ravel()) >= 0).all()
    assert not leaves.nested
    sizes = [question.encoder.size for question, _ in result.transcript]
    assert sizes[:2] == [16, 64] and sizes[2:-1] == [80] * (TREE.depth - 3)


def test_a_level_costs_one_over_root_two_of_the_level_before():
    shares = Pyramid(TREE).shares
    for before, after in pairwise(shares):
        assert float(after / before) == pytest.approx(0.5**0.5, abs=1e-5)


def test_with_next_to_no_noise_the_kept_cells_are_the_fullest_and_exact():
    rows = table()
    made = released(Pyramid(TREE, AtMostRows(1), kept=4096, counting=Fraction(1, 2)), 24, rows).value
    votes = rows.votes(TREE, AtMostRows(1))
    truth = made.cells.total(votes.cells, votes.weights)
    assert np.abs(made.values - truth).sum() <= 6  # a few ones of noise in 4,096 cells
    assert np.abs(made.unbiased - truth).max() <= 2


def test_the_map_is_near_the_truth_and_nearer_with_more_budget():
    rows = table()
    votes = rows.votes(TREE, AtMostRows(1))
    grid = TREE.grid(TREE.depth).ravel()
    true = np.zeros(len(grid))
    order = np.argsort(grid)
    true[order[np.searchsorted(grid[order], votes.cells)]] = votes.weights
    true = density(true.reshape(2**TREE.depth, -1))
    errors = {}
    for epsilon in (1, 10):
        made = [released(Pyramid(TREE), epsilon, rows, bytes([seed])).value for seed in range(5)]
        errors[epsilon] = np.mean([emd(true, density(picture(each.cells, each.values))) for each in made])
    assert errors[10] < errors[1] < 0.2
    assert errors[10] < 0.06


def test_more_cells_than_a_tree_has_are_refused():
    with pytest.raises(InputError, match="4 cells"):
        Pyramid(TREE, kept=3)
    with pytest.raises(InputError, match="depth 0"):
        Pyramid(Quadtree.world(depth=0))
