"""Theorems of the papers, each on small instances: by brute force where that is exact, else by runs with fixed noise.

Of Ghazi et al. 2022 (theorems 3.1 and D.1, lemmas B.2 to B.5), of Rameshwar, Tandon et al. 2024, of Shaham et al. 2022.
Others are tested beside what they are about: lemma B.1 in `research/test_heatmap_scores.py`, sensitivities and biases
of the second paper in `algorithms/published/test_chop_user.py`, theorem 1 of the third in
`encoders/test_split_scores.py`, its equations 31 and 32 in `algorithms/published/test_leaf_thresholds.py`.
"""

from fractions import Fraction
from itertools import product
from math import exp, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hazemap.algorithms import HTF, DensePyramid, PublishedPyramid
from hazemap.algorithms.published.chop_user import variance_sensitivity
from hazemap.algorithms.published.user_level_means import median_length, most_arrays, worst_case_length
from hazemap.engines.memory import SingleCellSamples
from hazemap.lab.compare.density_metrics import density
from hazemap.lab.compare.earth_movers_distance import emd
from hazemap.lab.compare.ground_truth_maps import GroundTruthMap, painted
from hazemap.lab.methods import LaplaceClip
from hazemap.privacy.budget import PureDP
from hazemap.privacy.mechanisms import DiscreteLaplace
from hazemap.privacy.random_stream import Stream
from hazemap.queries.algorithm_session import Unrecorded, run
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import RowIsPerson
from hazemap.tables.sample_grouping import BestFit, SampleCounts
from hazemap.trust.curator import Curator
from hazemap.values.quantizer import Quantizer
from research.compare.user_level.published_means import ArrayAveraging, LevyMean, PlainMean

SIDE = 32
QUANTIZER = Quantizer(0, 65)


def sparse_map(people: int, places: int, seed: int) -> GroundTruthMap:
    """People at few places of a square, in random parts."""
    rng = np.random.default_rng([seed, people, places])
    counts = np.zeros((SIDE, SIDE), np.int64)
    spots = rng.choice(SIDE * SIDE, places, replace=False)
    np.add.at(counts.ravel(), spots, rng.multinomial(people, rng.dirichlet(np.ones(places))))
    return GroundTruthMap.of("sparse", counts)


def dense_map(people: int, seed: int) -> GroundTruthMap:
    """People everywhere, by a density of many hills."""
    rng = np.random.default_rng([seed, people])
    return GroundTruthMap.of(
        "dense", rng.multinomial(people, rng.dirichlet(np.full(SIDE * SIDE, 0.3))).reshape(SIDE, SIDE)
    )


def distance(method, place: GroundTruthMap, epsilon: float, seed: int) -> float:
    """The earth mover's distance of a release from the truth, both normalised; L1 on the unit square."""
    trust = Curator(place.table, Stream.fixed(b"theorem %d" % seed))
    made = run(method, trust, PureDP(Fraction(epsilon)), Unrecorded()).value
    return emd(density(place.counts), density(np.maximum(painted(made, place.tree)[0], 0)))


CASES = [(people, places, epsilon) for people in (100, 3_000) for places in (1, 4, 16) for epsilon in (0.5, 2)]


def worst_of_sparse(method) -> list[float]:
    """The distance times nε for each case, the largest of three maps and releases."""
    found = []
    for people, places, epsilon in CASES:
        maps = [sparse_map(people, places, seed) for seed in range(3)]
        each = [distance(method(place.tree), place, epsilon, seed) for seed, place in enumerate(maps)]
        found.append(max(each) * people * epsilon)
    return found


@pytest.mark.slow
def test_sparse_maps_are_as_near_as_theorem_3_1_says():
    """An error of O(√k/(nε)) where all people are at k places or fewer; k ≤ w = 20 cells are kept, and 8 is enough."""
    assert max(worst_of_sparse(lambda tree: PublishedPyramid(tree, RowIsPerson()))) <= 8 * sqrt(20)


@pytest.mark.slow
def test_noise_in_every_pixel_is_not_as_near_as_theorem_3_1_says():
    """The twin that must fail."""
    assert max(worst_of_sparse(lambda tree: LaplaceClip(tree, 5, RowIsPerson()))) > 16 * sqrt(20)


@pytest.mark.slow
def test_any_map_is_as_near_as_theorem_d_1_says():
    """An error of O(1/√(nε)), whatever the map: 3 is enough. A map that learns nothing breaks it."""
    for people, epsilon in product((100, 1_000, 10_000), (0.5, 2)):
        maps = [dense_map(people, 0), dense_map(people, 1), sparse_map(people, 3, 2)]
        for seed, place in enumerate(maps):
            error = distance(DensePyramid(place.tree, RowIsPerson(), people=people), place, epsilon, seed)
            assert error * sqrt(people * epsilon) <= 3
    nothing = emd(density(place.counts), np.full((SIDE, SIDE), 1 / SIDE**2))
    assert nothing * sqrt(people * epsilon) > 3


def heatmaps(places: int, sigma: float, seed: int):
    """Two distributions on 8 × 8 pixels, and their heatmaps on all pixels that matter: p, q, H_p, H_q.

    σ is in pixels. A heatmap is not cut off at the border, as in the lemmas of appendix B.
    """
    rng = np.random.default_rng([seed, places])
    maps = np.zeros((2, 8, 8))
    for one in maps:
        one.ravel()[rng.choice(64, places, replace=False)] = rng.dirichlet(np.ones(places))
    pad = int(8 * sigma) + 9
    line = np.arange(-pad, 8 + pad)
    kernel = np.exp(-((line[:, None] - np.arange(8)) ** 2) / (2 * sigma**2))
    kernel /= np.exp(-(np.arange(-99, 100) ** 2) / (2 * sigma**2)).sum()
    return (*maps, *(kernel @ one @ kernel.T for one in maps))


def divergence(p, q) -> float:
    """The Kullback–Leibler divergence in nats, where both are above 0."""
    there = (p > 1e-280) & (q > 1e-280)
    return float((p[there] * np.log(p[there] / q[there])).sum())


@given(st.integers(1, 12), st.sampled_from([1.0, 2.0, 4.0]), st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_heatmaps_of_near_distributions_are_near_by_lemmas_b_3_to_b_5(places, sigma, seed):
    """KL ≤ EMD/(2σ²), total variation ≤ √EMD/(2σ), similarity ≥ 1 − that; L1 on the unit square, σ in its sides.

    By lemma B.2, and as |x − y|² ≤ ‖x − y‖₁ on the unit square.
    """
    p, q, blurred_p, blurred_q = heatmaps(places, sigma, seed)
    moved, width = emd(p, q), sigma / 8
    assert divergence(blurred_p, blurred_q) <= moved / (2 * width**2) + 1e-9
    apart = np.abs(blurred_p - blurred_q).sum() / 2
    assert apart <= sqrt(moved) / (2 * width) + 1e-9
    assert np.minimum(blurred_p, blurred_q).sum() >= 1 - sqrt(moved) / (2 * width) - 1e-9


@pytest.mark.parametrize("shift", [(0, 1), (3, 2), (7, 0), (7, 7)])
def test_two_points_are_as_far_apart_as_lemma_b_2_says_and_no_less(shift):
    """|a − b|²/(2σ²), exactly; so half of the bound of lemma B.3 is refuted by the ends of a side."""
    sigma = 1.5
    here, there = np.zeros((8, 8)), np.zeros((8, 8))
    here[0, 0], there[shift] = 1, 1
    line = np.arange(-30, 38)
    kernel = np.exp(-((line[:, None] - np.arange(8)) ** 2) / (2 * sigma**2))
    kernel /= kernel[:, 0].sum()
    found = divergence(kernel @ here @ kernel.T, kernel @ there @ kernel.T)
    assert found == pytest.approx((shift[0] ** 2 + shift[1] ** 2) / (2 * sigma**2), rel=1e-6)
    if shift == (7, 0):
        assert found > emd(here, there) / (4 * (sigma / 8) ** 2)


counts = st.lists(st.integers(1, 40), min_size=1, max_size=12).map(lambda numbers: SampleCounts(np.array(numbers)))


@given(counts, st.integers(1, 40))
def test_best_fit_makes_as_many_arrays_as_the_slides_say(some, most):
    """K̄ ≥ ⌊Σ min(m_ℓ, m)/m⌋."""
    assert BestFit(most).arrays(some).number >= int(some.kept(most).sum()) // most


@given(counts)
def test_the_best_worst_case_ends_where_the_slides_say(some):
    """m^(ε) is the least m_ℓ for every ε up to m_*/(L Σ m_ℓ), and the largest from (Σ m_ℓ/(L m_*))² on."""
    least = int(some.counts.min())
    low, high = least / (some.people * some.total), (some.total / (some.people * least)) ** 2
    for part in (1.0, 0.1, 0.001):
        assert worst_case_length(some, low * part) == least
        assert worst_case_length(some, high / part * (1 + 1e-9)) == some.most


def noise(method) -> float:
    """The standard deviation of the noise of a mean of these people, ε = 1."""
    numbers = method.contributions.counts
    person = np.repeat(np.arange(len(numbers)), numbers)
    table = SingleCellSamples(person, np.random.default_rng(1).uniform(20, 30, len(person)))
    return run(method, Curator(table, Stream.fixed(b"scaled")), PureDP(1), Unrecorded()).value.stddev


def test_noise_scales_with_the_samples_of_everybody_as_the_slides_say():
    """λ times as many samples of each person: σ of the plain mean and of arrays stays, Levy's falls as 1/√λ."""
    numbers = np.random.default_rng(7).integers(20, 120, 150)
    some, more = SampleCounts(numbers), SampleCounts(16 * numbers)
    assert noise(PlainMean(QUANTIZER, more)) == pytest.approx(noise(PlainMean(QUANTIZER, some)), rel=1e-3)
    for length in (median_length, most_arrays):
        arrays = [noise(ArrayAveraging(QUANTIZER, each, BestFit(length(each)))) for each in (some, more)]
        assert arrays[1] == pytest.approx(arrays[0], rel=1e-3)
    levy = [noise(LevyMean(QUANTIZER, each, BestFit(most_arrays(each)))) for each in (some, more)]
    assert levy[1] == pytest.approx(levy[0] / 4, rel=0.02)


@pytest.mark.parametrize("people", range(2, 9))
def test_the_variance_of_people_of_one_value_moves_by_less_than_the_slides_print(people):
    """(L − 1)/L² of U², as in the work they cite, and not (L − 1)/L."""
    moved = max(abs(np.var([*others, 1]) - np.var([*others, 0])) for others in product((0, 0.5, 1), repeat=people - 1))
    assert variance_sensitivity(people, 1) == Fraction(people - 1, people**2)
    assert moved <= (people - 1) / people**2 + 1e-12 < (people - 1) / people


def test_counts_of_htf_have_the_least_variance_that_equation_22_promises():
    """ε_i ∝ 2^((h−i)/3) minimise Σ 2^(h−i)/ε_i²; and n_i^(1/3), equation 38, Σ n_i/ε_i²."""
    method = HTF.published(Quadtree.world(10), "0.1")
    made = method.allotment(3.5e6, 0.1, 1 - method.share_of_number)
    rest = made.left - sum(made.deciding) - sum(made.cutting)
    nodes = 2.0 ** np.arange(made.height + 1)
    shares = np.array([float(share) for share in (*made.deciding, rest)])
    rng = np.random.default_rng(22)
    for sizes, chosen in ((nodes, shares), (np.array([1, 50, 3006, 19495]), np.cbrt([1, 50, 3006, 19495]))):
        parts = chosen / chosen.sum()
        least = (sizes / parts**2).sum()
        for _ in range(300):
            others = parts * np.exp(rng.normal(0, 0.1, len(parts)))
            assert (sizes / (others / others.sum()) ** 2).sum() >= least * (1 - 1e-9)


@pytest.mark.parametrize("scale", [1, 7, 300])
def test_noise_is_as_large_as_lemma_1_says(scale):
    """P(|Z| > tb) = e^(−t) of Lap(b). Whole numbers: e^(−t/b) at every step, times 2/(1 + e^(1/b)) of a step more."""
    law = DiscreteLaplace(Fraction(scale))
    drawn = np.abs(law.draw(Stream.fixed(b"lemma 1"), 200_000))
    for t in (0.5, 1, 2, 3):
        beyond = 2 * exp(-(int(t * scale) + 1) / scale) / (1 + exp(-1 / scale))
        assert abs((drawn > t * scale).mean() - beyond) < 7 * sqrt(beyond * (1 - beyond) / 200_000)
        assert beyond <= exp(-t) * 2 / (1 + exp(-1 / scale))
