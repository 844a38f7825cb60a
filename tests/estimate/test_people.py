"""Answers over different people: put on one scale, and as uncertain as samples are."""

from fractions import Fraction

import numpy as np
import pytest

from hazemap.cellmap import Reading
from hazemap.cells import Leaves
from hazemap.encoders import Counts
from hazemap.estimate import consistent, measurements, nonnegative, read
from hazemap.estimate.shrinkage import shrunk
from hazemap.estimate.transcript_measurements import with_sampling
from hazemap.estimate.tree_least_squares import levels
from hazemap.queries.noisy_queries import Answer, Query
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import AtMostRows, OneVote

TREE = Quadtree.world(depth=4)
COARSE, FINE = (Leaves.at_level(TREE, level) for level in (1, 3))


def exchange(cells, sums, people=None, rule=AtMostRows(1), stddev=3.0):
    answer = Answer(np.rint(sums).astype(np.int64), np.array([stddev]), 0.5, people)
    return Query(Counts(cells, rule), Fraction(1, 4)), answer


def test_rounds_over_different_people_agree_about_shares():
    """A tenth of everybody lives in each of 10 cells. Without a common scale the rounds would contradict each other."""
    shares = np.zeros(FINE.size)
    shares[:10] = 0.1
    coarse = FINE.own(shares).reshape(4, -1).sum(axis=1)
    asked = [
        exchange(COARSE, 800 * coarse, 800),
        exchange(FINE, 1_000 * shares, 1_000),
        exchange(COARSE, 500 * coarse, 500),
    ]
    found = consistent(measurements(asked, FINE), FINE)
    assert np.allclose(found.numbers, 1_000 * shares)  # on the scale of the round that asked the cells of the map
    without = consistent(measurements([(q, Answer(a.sums, a.stddev, a.kurtosis)) for q, a in asked], FINE), FINE)
    assert not np.allclose(without.numbers, 1_000 * shares, atol=3)


def test_variances_and_people_are_on_the_same_scale():
    first, second = measurements(
        [exchange(COARSE, np.full(4, 200), 800, OneVote(8)), exchange(FINE, np.full(64, 80), 640, OneVote(8))], FINE
    )
    assert np.allclose(first.numbers, 200 / 8 * 0.8)
    assert np.allclose(first.variances, (3 / 8 * 0.8) ** 2)
    assert first.sample == (640, 1.0, 0.8)
    assert second.sample == (640, 1.0, 1.0)


def test_before_the_cells_were_asked_the_last_round_is_the_scale():
    found = measurements([exchange(COARSE, np.full(4, 200), 800), exchange(COARSE, np.full(4, 10), 400)], FINE)
    assert [part.sample.people for part in found] == [400, 400]
    assert np.allclose(found[0].numbers, 100)


def test_where_nobody_says_how_many_people_nothing_changes():
    """To the last bit: a curator's maps are what they were."""
    rng = np.random.default_rng(1)
    asked = [exchange(COARSE, rng.normal(300, 50, 4)), exchange(FINE, rng.normal(20, 9, FINE.size))]
    found = measurements(asked, FINE)
    for part, (_, answer) in zip(found, asked, strict=True):
        assert part.sample is None
        assert np.array_equal(part.numbers, answer.sums / 1)
    made = read(asked, FINE, Reading.SHRUNK)
    guess = consistent(found, FINE, float(made.unbiased.sum()))
    assert np.array_equal(made.values, nonnegative(FINE, levels(found, FINE, float(made.unbiased.sum())).shrunk()))
    assert np.allclose(made.values, nonnegative(FINE, shrunk(guess)))
    assert [part.variances.tolist() for part in with_sampling(found, guess)] == [p.variances.tolist() for p in found]


@pytest.mark.parametrize("rows", [1, 3])
def test_a_sample_errs_as_much_as_it_is_said_to(rows):
    """400 samples of 1,000 people in cells of 16 sizes; each cell's variance is within 6 standard errors (p < 1e-7)."""
    rng, cells = np.random.default_rng(3), Leaves.at_level(TREE, 2)
    shares = rng.dirichlet(np.full(cells.size, 2.0))
    drawn = rng.multinomial(1_000, shares, size=400) * rows  # whoever has several rows has them all in one cell
    exact = exchange(cells, 1_000 * rows * shares, 1_000, AtMostRows(rows), stddev=1e-9)
    asked = measurements([exact], cells)
    [raised] = with_sampling(asked, consistent(asked, cells))
    said = raised.variances
    assert np.all(np.abs(drawn.var(axis=0, ddof=1) / said - 1) < 6 * (2 / 399) ** 0.5)


def test_the_error_of_a_sample_is_in_the_picture_and_not_in_the_intervals():
    rng, fine = np.random.default_rng(5), Leaves.at_level(Quadtree(0.5, 0.5, 2.0**-12, 4), 4)
    sums = rng.poisson(20, fine.size)
    said, unsaid = (read([exchange(fine, sums, people)], fine, Reading.SHRUNK) for people in (int(sums.sum()), None))
    assert np.array_equal(said.unbiased, unsaid.unbiased)
    assert np.array_equal(said.stddev, unsaid.stddev)
    assert said.values.sum() == pytest.approx(unsaid.values.sum())
    assert said.values.std() < 0.5 * unsaid.values.std()  # everywhere 20 people are expected
