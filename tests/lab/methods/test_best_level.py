"""One level is shown, chosen by the answers alone; the numbers with intervals do not notice."""

import numpy as np
import pytest
from tests.algorithms.conftest import PEOPLE, TREE, people

from hazemap.cells import NOWHERE, Leaves
from hazemap.estimate import Measurement
from hazemap.lab.methods import BestLevel, Hierarchical
from hazemap.lab.methods.one_level_baselines import evidence
from hazemap.privacy.budget import PureDP
from hazemap.privacy.random_stream import Stream
from hazemap.queries.algorithm_session import Unrecorded, run
from hazemap.tables.contribution_bounding import AtMostRows, Outside
from hazemap.trust.curator import Curator


def shown(method, epsilon, seed=b"best"):
    return run(method, Curator(people(), Stream.fixed(seed)), PureDP(epsilon), Unrecorded()).value


def level_shown(made) -> int:
    """The coarsest level whose cells are drawn evenly."""
    density = made.values / made.cells.areas
    for level in range(1, 9):
        above = made.cells.cells >> np.uint64(2 * (8 - level))
        _, where = np.unique(above, return_inverse=True)
        mean = np.bincount(where, density) / np.bincount(where)
        if np.allclose(mean[where], density, atol=1e-9 * density.max()):
            return level
    return 8


def test_more_money_shows_a_finer_level():
    levels = [level_shown(shown(BestLevel(TREE, 8), epsilon)) for epsilon in ("0.001", "0.1", "100")]
    assert levels == sorted(levels) and levels[0] < levels[1] < levels[2]


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["0.02", "0.2", "2"])
def test_the_level_chosen_without_looking_is_nearly_the_best(epsilon):
    """Within 10 % of the squared error of the level that the truth would choose."""
    made = shown(BestLevel(TREE, 8), epsilon)
    votes = people().votes(TREE, AtMostRows(1))
    true = made.cells.total(votes.cells, votes.weights)
    error = ((made.values - true) ** 2).sum()
    errors = []
    for level in range(1, 9):
        answer = shown(BestLevel(TREE, 8), epsilon)  # the same noise
        above = made.cells.cells >> np.uint64(2 * (8 - level))
        _, where = np.unique(above, return_inverse=True)
        mean = np.bincount(where, true) / np.bincount(where)
        noise = 8 * np.sqrt(2) / float(epsilon)
        errors.append(
            ((mean[where] - true) ** 2).sum() + 4**level * noise**2 / 4 ** (2 * (8 - level)) * 4 ** (8 - level)
        )
        assert answer.cells == made.cells
    assert error <= 1.1 * min(errors)  # projecting away minus signs can only help


def test_the_unbiased_numbers_are_those_of_all_levels():
    one, all_of_them = shown(BestLevel(TREE, 6), 1), shown(Hierarchical(TREE, 6), 1)
    assert np.array_equal(one.unbiased, all_of_them.unbiased) and np.array_equal(one.stddev, all_of_them.stddev)
    assert one.values.sum() == pytest.approx(one.unbiased.sum())
    assert one.values.sum() == pytest.approx(PEOPLE, rel=0.05)


def test_nowhere_keeps_its_unbiased_number(lost):
    made = run(BestLevel(TREE, 5, AtMostRows(1, outside=Outside.PEOPLE)), lost, PureDP(1), Unrecorded()).value
    nowhere = made.cells.cells == NOWHERE
    assert made.values[nowhere] == made.unbiased[nowhere] == pytest.approx(5_000, abs=300)


def test_noise_is_no_evidence():
    """Of nobody in 65,536 cells, noise alone: the evidence is negative, by about Σ σ²/A."""
    cells = Leaves.at_level(TREE, 8)
    noise = np.random.default_rng(3).laplace(0, 10, cells.size)
    wrong = evidence(Measurement(cells, noise, np.zeros(cells.size), 3.0))
    assert evidence(Measurement(cells, noise, np.full(cells.size, 200.0), 3.0)) == pytest.approx(-wrong, rel=0.1)
