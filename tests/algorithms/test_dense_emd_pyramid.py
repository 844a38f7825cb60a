"""Dense maps under the earth mover's distance: how fine they are, and how near to what was answered."""

from fractions import Fraction

import numpy as np
import pytest

from hazemap.algorithms import DensePyramid
from hazemap.engines.memory import MemoryTable
from hazemap.errors import InputError
from hazemap.lab.compare.density_metrics import density
from hazemap.lab.compare.earth_movers_distance import emd
from hazemap.lab.methods import LaplaceClip
from hazemap.privacy.budget import ZCDP, PureDP
from hazemap.privacy.random_stream import Stream
from hazemap.queries.algorithm_session import Unrecorded, run
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import OneVote, Outside
from hazemap.trust.curator import Curator
from research.benchmarks.nearest_grid import nearest_grid

BERLIN = Box(13.2, 52.4, 13.6, 52.6)
TREE, HEXAGONS = Quadtree.around(BERLIN, 8), Hexagons(BERLIN, 5, 8)
KEPT = OneVote(outside=Outside.PEOPLE)


def table(people=300):
    rng = np.random.default_rng(5)
    return MemoryTable(
        np.arange(people), {"lon": rng.uniform(13.3, 13.5, people), "lat": rng.uniform(52.45, 52.55, people)}
    )


def released(method, budget, seed=b"dense", people=300):
    return run(method, Curator(table(people), Stream.fixed(seed)), budget, Unrecorded())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("people", "epsilon", "level"), [(300, 1, 3), (300, 10, 5), (3_000, 1, 5), (3_000, 60, 7), (1, "0.01", 0)]
)
def test_there_are_about_as_many_cells_as_a_third_of_people_times_epsilon(people, epsilon, level):
    made = released(DensePyramid(TREE, people=people), PureDP(epsilon)).value
    assert made.cells.size == 4**level
    wanted = max(people * min(float(epsilon), 30) / 3, 1)  # beyond ε = 30 people, not noise, are the limit
    assert level == TREE.depth or max(wanted / 4**level, 4**level / wanted) <= 2


def test_their_number_is_bought_if_it_is_not_public():
    bought = released(DensePyramid(TREE, share_of_number=Fraction(1, 10)), PureDP(10))
    public = released(DensePyramid(TREE, people=300), PureDP(10))
    assert [question.share for question, _ in bought.transcript] == [Fraction(1, 10), Fraction(9, 10)]
    assert [question.share for question, _ in public.transcript] == [1]
    assert bought.value.cells == public.value.cells


def test_the_paper_has_three_times_as_many_cells():
    made = released(DensePyramid(TREE, people=1024, people_a_cell=1), PureDP(1)).value
    assert made.cells.size == 1024


def test_the_picture_is_the_nearest_to_all_levels_of_the_noisy_grid():
    made = released(DensePyramid(TREE, KEPT, people=300), PureDP(10)).value
    levels = [made.unbiased[made.places]]
    while len(levels[-1]) > 1:
        levels.append(levels[-1].reshape(-1, 4).sum(axis=1))
    best = nearest_grid(levels[::-1], [2.0**-i for i in range(len(levels))])
    assert np.array_equal(made.values[made.places], best)
    assert made.values[~made.places] >= 0


def test_hexagons_and_other_noise_will_do():
    made = released(DensePyramid(HEXAGONS), ZCDP(2)).value
    assert made.values.min() >= 0
    assert made.values.sum() == pytest.approx(300, rel=0.2)


@pytest.mark.slow
def test_it_is_far_nearer_than_clipped_noise():
    tree = Quadtree.around(BERLIN, 6)
    grid = tree.grid(6)
    votes = table().votes(tree, OneVote())
    true = np.zeros(4**6)
    order = np.argsort(grid.ravel())
    true[order[np.searchsorted(grid.ravel()[order], votes.cells)]] = votes.weights
    errors = {}
    for method in (DensePyramid(tree), LaplaceClip(tree, 6)):
        made = released(method, PureDP(5)).value
        each = 4.0 ** (made.cells.levels - 6)
        shown = (made.values * each)[made.cells.locate(grid.ravel())].reshape(grid.shape)
        errors[type(method)] = emd(density(true.reshape(grid.shape)), density(shown))
    assert 3 * errors[DensePyramid] < errors[LaplaceClip]


def test_parameters_that_make_no_sense_are_refused():
    for wrong in ({"people": 0}, {"share_of_number": Fraction(1)}, {"people_a_cell": 0}):
        with pytest.raises(InputError, match="dense pyramid"):
            DensePyramid(TREE, **wrong)
