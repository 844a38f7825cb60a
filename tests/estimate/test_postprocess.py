"""What is read off a run whose cells noise has chosen."""

from fractions import Fraction

import numpy as np
import pytest

from hazemap.cellmap import Reading
from hazemap.cells import Leaves
from hazemap.encoders import Counts
from hazemap.errors import InputError
from hazemap.estimate import Measurement, consistent, from_transcript, read
from hazemap.queries.noisy_queries import Answer, Query
from hazemap.spatial.quadtree import Quadtree

TREE = Quadtree.world(depth=6)
COARSE = Leaves.at_level(TREE, 5)


def exchange(cells, sums, stddev=20.0):
    return Query(Counts(cells), Fraction(1, 4)), Answer(np.rint(sums).astype(np.int64), np.array([stddev]), 0.0)


def adaptive_run(rng):
    """1,024 cells of 100 people, cut in four where a first noisy number was high, then counted."""
    first = 100 + rng.normal(0, 20, COARSE.size)
    cut = first > 100
    last = Leaves(TREE, np.concatenate([COARSE.cells[~cut], TREE.children(COARSE.cells[cut])]))
    exact = np.concatenate([np.full((~cut).sum(), 100.0), np.full(4 * cut.sum(), 25.0)])
    return [exchange(COARSE, first), exchange(last, exact + rng.normal(0, 20, last.size))], last, exact


def test_numbers_that_chose_the_cells_have_no_say_in_the_unbiased_estimate():
    """Mean error of 30 runs in standard errors, of all cells and of the fine ones; error probability below 1e-6."""
    rng, errors = np.random.default_rng(1), []
    for _ in range(30):
        transcript, last, exact = adaptive_run(rng)
        found = from_transcript(transcript, last)
        for chosen in (np.ones(last.size), (exact < 100) * 1.0):
            errors.append(chosen @ (found.unbiased - exact) / found.noise.of(chosen).stddev)
    assert abs(np.mean(errors)) * 30**0.5 < 5


def test_least_squares_over_all_rounds_are_biased():
    """The twin that must fail the test above."""
    rng, errors = np.random.default_rng(1), []
    for _ in range(30):
        transcript, last, exact = adaptive_run(rng)
        parts = [Measurement(q.encoder.cells, a.sums * 1.0, np.full(len(a.sums), 400.0), 0.0) for q, a in transcript]
        found = consistent(parts, last)
        errors.append((found.numbers - exact).sum() / found.of(np.ones(last.size)).stddev)
    assert np.mean(errors) * 30**0.5 > 10


def test_answers_after_the_cells_were_fixed_are_combined():
    rng = np.random.default_rng(2)
    transcript, last, _ = adaptive_run(rng)
    alone = from_transcript(transcript, last)
    together = from_transcript([*transcript, exchange(COARSE, np.full(COARSE.size, 100.0))], last)
    everything = np.ones(last.size)
    assert together.noise.of(everything).stddev < 0.8 * alone.noise.of(everything).stddev


@pytest.mark.parametrize("reading", [Reading.SHRUNK, Reading.NONNEGATIVE])
def test_the_best_guess_keeps_the_unbiased_total(reading):
    transcript, last, _ = adaptive_run(np.random.default_rng(3))
    found = read(transcript, last, reading)
    assert found.values.sum() == pytest.approx(found.unbiased.sum())
    assert found.values.min() >= 0


def test_cells_that_no_query_asked_for_are_refused():
    transcript, _, _ = adaptive_run(np.random.default_rng(3))
    with pytest.raises(InputError, match="never asked"):
        from_transcript(transcript, Leaves.at_level(TREE, 2))
