"""Equations 31 and 32 of the paper, mended, against what they are to maximise; thresholds that keep leaves above 0."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import exp, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hazemap.algorithms import HTF
from hazemap.algorithms.published.htf import sure_thresholds, thresholds
from hazemap.errors import InputError
from hazemap.lab.compare.ground_truth_maps import GroundTruthMap
from hazemap.privacy.budget import PureDP
from hazemap.privacy.random_stream import Stream
from hazemap.queries.algorithm_session import Unrecorded, run
from hazemap.tables.contribution_bounding import RowIsPerson
from hazemap.trust.curator import Curator

counts = st.lists(st.floats(1, 1e6), min_size=1, max_size=8)


def useful(parts, people, nodes):
    """The expected number of counts that are larger than their noise, as in equation 29 with its sign."""
    return sum(n * (1 - exp(-p * part)) for n, p, part in zip(nodes, people, parts, strict=True))


def as_printed(epsilon, people):
    """Equation 32 as the paper has it."""
    level = (epsilon + sum(log(p) / p for p in people)) / sum(1 / p for p in people)
    return [(-log(p) + level) / p for p in people]


def budgets(epsilon: float, people: Sequence[float], nodes: Sequence[float] | None = None) -> list[float]:
    """The dual: what of ε each level should get, if its cells have so many people; equation 32, mended.

    ε_i ≥ 0 that maximise Σ n_i (1 − e^(−p_i ε_i)), the expected number of useful counts, where Σ ε_i = ε and level i
    has n_i cells (1 if nothing is said). So n_i p_i e^(−p_i ε_i) is the same for all ε_i above 0: ε_i = (ln n_i p_i +
    (ε − Σ ln(n_j p_j)/p_j)/Σ 1/p_j)/p_i, sums over those. The paper's equation 32 has both logarithms with the other
    sign, and may come out below 0. It also adds up the budgets of all leaves; but leaves have nobody in common, so each
    may spend all of ε, and there is nothing to divide. What must be divided is the way from the root to a leaf.

    """
    rate = np.array(people, dtype=np.float64)
    number = np.ones(len(rate)) if nodes is None else np.array(nodes, dtype=np.float64)
    if not len(rate) or len(number) != len(rate) or not epsilon > 0 or not min(rate.min(), number.min()) > 0:
        raise InputError("a budget above 0 is divided among levels of cells with people in them")
    merit = np.log(number * rate)
    order = np.argsort(-merit)  # filled up from the highest merit, until the next one lies below the level
    levels = (np.cumsum((merit / rate)[order]) - epsilon) / np.cumsum(1 / rate[order])
    level = levels[int(np.argmax(levels >= np.append(merit[order][1:], -np.inf)))]
    parts: list[float] = (np.maximum(merit - level, 0.0) / rate).tolist()
    return parts


@given(counts, st.floats(1e-3, 10))
def test_the_parts_of_the_dual_add_up_and_none_is_below_0(people, epsilon):
    parts = budgets(epsilon, people)
    assert min(parts) >= 0 and sum(parts) == pytest.approx(epsilon, rel=1e-6)


@pytest.mark.parametrize("nodes", [(1, 1, 1), (1, 2, 4), (7, 1, 3)])
def test_no_other_division_of_the_budget_makes_more_counts_useful(nodes):
    """Every division into sixtieths, of budgets from little to much."""
    for people, epsilon in (((1000, 100, 50), 0.1), ((5, 5, 80), 0.01), ((3, 900, 40), 1.0)):
        best = useful(budgets(epsilon, people, nodes), people, nodes)
        others = [cut for cut in product(range(61), repeat=3) if sum(cut) == 60]
        assert max(useful([epsilon * k / 60 for k in cut], people, nodes) for cut in others) <= best + 1e-12


def test_where_all_are_paid_it_is_equation_32_with_its_signs_turned_round():
    people, epsilon = [40.0, 60.0, 90.0], 0.5
    level = (epsilon - sum(log(p) / p for p in people)) / sum(1 / p for p in people)
    assert budgets(epsilon, people) == pytest.approx([(log(p) + level) / p for p in people])
    assert min(budgets(epsilon, people)) > 0


def test_the_equation_as_it_is_printed_is_refuted():
    """The twin: it adds up too, and is worse than equal parts."""
    people, epsilon = [1000.0, 100.0, 50.0], 0.1
    printed = as_printed(epsilon, people)
    assert sum(printed) == pytest.approx(epsilon)
    assert useful(printed, people, (1, 1, 1)) < useful([epsilon / 3] * 3, people, (1, 1, 1))
    assert useful([epsilon / 3] * 3, people, (1, 1, 1)) < useful(budgets(epsilon, people), people, (1, 1, 1))


def test_a_dual_of_thresholds_and_thresholds_of_a_dual_agree():
    """Thresholds of equation 31 for these budgets make a tree whose dual, per node, has no other optimum."""
    epsilons = [0.02, 0.025, 0.03]
    people = np.array(thresholds(5_000.0, epsilons))
    nodes = 2.0 ** np.arange(3)
    assert (nodes * people).sum() == pytest.approx(5_000)
    slopes = np.array(epsilons) * np.exp(-np.array(epsilons) * people)
    assert np.ptp(slopes) < 1e-12


@pytest.mark.parametrize("wrong", [(0.0, [1]), (1.0, []), (1.0, [0]), (1.0, [5, -1]), (float("nan"), [1])])
def test_what_cannot_be_divided_is_refused(wrong):
    with pytest.raises(InputError):
        budgets(*wrong)
    with pytest.raises(InputError):
        budgets(1.0, [5, 5], [1])


@pytest.mark.parametrize("negative", [Fraction(1, 50), Fraction(1, 1000), Fraction(2, 5)])
def test_sure_thresholds_are_as_sure_as_they_say(negative):
    deciding, last = [0.001, 0.01, 0.2], [0.3, 0.2, 0.02]
    for full, first, final in zip(sure_thresholds(negative, deciding, last, uneven=3), deciding, last, strict=True):
        empty_is_cut, half_is_negative = exp(-full * first) / 2, exp(-full / 3 * final) / 2
        assert max(empty_is_cut, half_is_negative) == pytest.approx(float(negative))


@pytest.mark.parametrize("negative", [Fraction(0), Fraction(1, 2), Fraction(3)])
def test_impossible_parts_are_refused(negative):
    with pytest.raises(InputError):
        sure_thresholds(negative, [1.0], [1.0])
    with pytest.raises(InputError):
        HTF(HILLS.tree, negative=negative)


def hills() -> GroundTruthMap:
    """Half a million people on 128 × 128 pixels: hills and valleys, somebody nearly everywhere."""
    rng = np.random.default_rng(12)
    x, y = np.meshgrid(np.linspace(0, 9, 128), np.linspace(0, 9, 128))
    density = np.exp(1.8 * np.sin(x) + 1.8 * np.cos(1.7 * y + x / 3))
    return GroundTruthMap.of("hills", rng.poisson(density / density.sum() * 5e5).astype(np.int64))


HILLS = hills()


def negative_part(method, seed):
    """The part of the leaves that are published below 0."""
    curator = Curator(HILLS.table, Stream.fixed(b"hills%d" % seed))
    made = run(method, curator, PureDP("0.1"), Unrecorded()).value
    return float((made.unbiased < 0).mean())


def test_few_leaves_are_negative_where_equation_31_has_many():
    """Means of two runs: above 5 %, and below 2 %."""
    published = HTF.published(HILLS.tree, "0.1", RowIsPerson())
    by_equation = [negative_part(replace(published, stop_at=None), seed) for seed in range(2)]
    sure = [negative_part(replace(published, negative=Fraction(1, 50)), seed) for seed in range(2)]
    assert np.mean(by_equation) > 0.05 and np.mean(sure) < 0.02
