"""PrivTree in integers: its price by the exact law of all trees, over all neighbours; twins that must fail."""

from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import combinations_with_replacement, product
from math import exp, inf, log

import numpy as np
import pytest
from scipy.stats import chisquare

from hazemap.cells import Leaves
from hazemap.errors import InputError
from hazemap.privacy.budget import ZCDP, PureDP
from hazemap.privacy.private_splitting import SplittingNoise, times
from hazemap.privacy.random_stream import Stream
from hazemap.queries.noisy_queries import Growth
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree
from hazemap.spatial.rectangle_trees import BinaryPartition
from hazemap.tables.contribution_bounding import AtMostRows
from hazemap.tables.votes import Votes
from hazemap.trust.curator import Curator

LEVEL = 1e-6
TREE = Quadtree.world(depth=2)
QUARTERS, PIXELS = TREE.children(TREE.root), TREE.children(TREE.children(TREE.root))
SPLITS = list(product((False, True), repeat=4))


def chance(count, depth, noise, threshold=0):
    """The probability that a cell is split."""
    r = exp(-1 / float(noise.scale))
    behind = threshold - max(count - depth * noise.decay, threshold - noise.decay)
    return r ** (behind + 1) / (1 + r) if behind >= 0 else 1 - r**-behind / (1 + r)


def law(counts, noise, threshold=0):
    """The chance of each of the 17 trees of a square with quarters that may be split: the root alone comes first."""
    root = chance(sum(counts), 0, noise, threshold)
    each = [chance(count, 1, noise, threshold) for count in counts]
    trees = [np.prod([p if split else 1 - p for p, split in zip(each, splits, strict=True)]) for splits in SPLITS]
    return np.array([1 - root, *(root * np.array(trees))])


def worst_of_squares(noise, most, threshold=0):
    """The largest loss over all pairs of neighbours of some tables: up to so many votes more, in any quarters."""
    low = (0, 1, noise.decay - 1, noise.decay, noise.decay + 2, 3 * noise.decay)
    worst = 0.0
    for counts in product(low, (0, 2 * noise.decay + 1), (0, noise.decay), (0,)):
        before = np.log(law(counts, noise, threshold))
        for votes in range(1, most + 1):
            for added in combinations_with_replacement(range(4), votes):
                after = np.log(law(np.array(counts) + np.bincount(added, minlength=4), noise, threshold))
                worst = max(worst, float(np.abs(after - before).max()) * most / votes)
    return worst


@pytest.mark.parametrize(("epsilon", "most"), [(Fraction(1), 1), (Fraction(3), 1), (Fraction(1), 3), (Fraction(2), 2)])
def test_no_tree_tells_more_of_a_person_than_was_paid(epsilon, most):
    """Every vote costs its part of ε; for two depths the bound is reached exactly."""
    worst = worst_of_squares(SplittingNoise.within(epsilon, most, 4, 2), most)
    assert worst == pytest.approx(float(epsilon), rel=1e-12)


def test_a_threshold_above_0_costs_no_more():
    noise = SplittingNoise.within(Fraction(1), 2, 4, 2)
    assert worst_of_squares(noise, 2, threshold=7) <= 1


def test_noise_for_a_single_cell_is_found_out():
    """The twin that must fail."""
    noise = SplittingNoise.within(Fraction(1), 1, 4, 2)
    assert worst_of_squares(replace(noise, scale=Fraction(1)), 1) > 1.5


def worst_of_ways(noise, depths, most_count):
    """The largest loss by one vote over all counts on a way down and all places where splitting may have ended."""
    worst = 0.0
    for falling in combinations_with_replacement(range(most_count + 1), depths):
        gained, ended = 0.0, -inf
        for depth, count in enumerate(reversed(falling)):
            old, new = (chance(votes, depth, noise) for votes in (count, count + 1))
            ended = max(ended, gained + log((1 - new) / (1 - old)), -gained - log((1 - new) / (1 - old)))
            gained += log(new / old)
        worst = max(worst, gained, ended)
    return worst


@pytest.mark.parametrize(
    ("epsilon", "depths", "fan"), [("2", 3, 4), ("2.5", 4, 4), ("3", 5, 4), ("2.5", 4, 2), ("4", 4, 7)]
)
def test_depth_costs_hardly_anything(epsilon, depths, fan):
    """Deeper trees, one vote: only the cells around it matter, what is elsewhere has the same chance as before."""
    epsilon = Fraction(epsilon)
    noise = SplittingNoise.within(epsilon, 1, fan, depths)
    assert 0.85 < worst_of_ways(noise, depths, depths * noise.decay + 2) / float(epsilon) <= 1


def test_wide_noise_comes_near_the_bound_and_stays_below():
    """With a large scale the least counts that matter are multiples of the bias: the worst way by hand."""
    for fan, depths in ((4, 6), (2, 8)):
        noise = SplittingNoise.within(Fraction(1, 50), 1, fan, depths)
        counts = [max(0, (depths - 2) * noise.decay)] + [(depths - 2) * noise.decay] * (depths - 1)
        losses = [log(chance(c + 1, depth, noise) / chance(c, depth, noise)) for depth, c in enumerate(counts)]
        assert 0.98 / 50 < sum(losses) <= 1 / 50


def test_a_bias_that_is_too_small_is_found_out():
    """The twin that must fail: every depth costs as much as the last."""
    noise = SplittingNoise.within(Fraction(2), 1, 4, 5)
    assert worst_of_ways(replace(noise, decay=1), 5, 8) > 2


@pytest.mark.parametrize(("fan", "depth"), [(4, 1), (4, 2), (2, 5), (7, 15), (4, 24)])
def test_the_price_of_a_tree_is_its_sum_rounded_up_and_below_the_published_one(fan, depth):
    exact = min(depth, 2) + sum(1 / (2 * fan**i - 1) for i in range(1, depth - 1))
    assert exact <= times(fan, depth) <= exact + 1e-5
    assert times(fan, depth) < Fraction(2 * fan - 1, fan - 1)


def test_the_bias_is_the_least_whole_number_that_will_do():
    for scale in (Fraction(1, 3), Fraction(5), Fraction(200, 3), Fraction(10**7)):
        noise = SplittingNoise.within(times(4, 10) / scale, 1, 4, 10)
        assert noise.scale == scale
        assert noise.decay == int(np.ceil(float(scale) * log(4)))


class Wood:
    """4,096 trees side by side, each a square with four quarters that may be split."""

    depth = 2
    under = Quadtree.world(depth=8)
    root = np.sort(under.grid(6).ravel())
    children, span = under.children, under.span

    def level(self, cells):
        return self.under.level(cells) - 6


class Known:
    """The same votes in each tree, one pixel a quarter."""

    def __init__(self, quarters):
        pixels = Wood.children(Wood.children(Wood.root))[::4]
        self.known = Votes(pixels, np.tile(quarters, len(Wood.root)))

    def votes(self, tree, bounding):
        return self.known


def drawn(counts, epsilon, **changes):
    """How often each of the 17 trees came."""
    question = Growth(Wood(), AtMostRows(1), Fraction(1), **changes)
    cells = Curator(Known(counts), Stream.fixed(b"growth")).answer(question, PureDP(epsilon)).sums.astype(np.uint64)
    whole = np.isin(Wood.root, cells)
    parted = ~np.isin(Wood.children(Wood.root), cells).reshape(-1, 4)
    return np.bincount(np.where(whole, 0, 1 + parted @ (8, 4, 2, 1)), minlength=17)


def test_a_curator_grows_trees_of_their_law():
    """Chi-square at 1e-6; the law without its bias must be told apart by the same test."""
    counts, n = (3, 0, 5, 1), len(Wood.root)
    found, noise = drawn(counts, 2), SplittingNoise.within(Fraction(2), 1, 4, 2)
    assert chisquare(found, law(counts, noise) * n).pvalue > LEVEL
    assert chisquare(found, law(counts, replace(noise, decay=1)) * n).pvalue < LEVEL
    higher = drawn(counts, 2, threshold=4)
    assert chisquare(higher, law(counts, noise, 4) * n).pvalue > LEVEL


@pytest.mark.parametrize(
    "tree", [Quadtree.world(depth=6), Hexagons(Box(13, 52, 14, 53), 5, 8)], ids=["squares", "hexagons"]
)
@pytest.mark.parametrize("budget", [PureDP(8), ZCDP(30)], ids=str)
def test_the_cells_that_were_not_split_tile_the_tree(tree, budget):
    rng = np.random.default_rng(2)
    lon, lat = rng.normal(13.4, 0.02, 2_000), rng.normal(52.5, 0.02, 2_000)
    votes = Votes.gathered(tree.cell_at({"lon": lon, "lat": lat}, tree.depth), np.ones(2_000, np.int64))

    class Town:
        def votes(self, tree, bounding):
            return votes

    question = Growth(tree, AtMostRows(1), Fraction(1), fan=7)
    answer = Curator(Town(), Stream.fixed(b"town")).answer(question, budget)
    leaves = Leaves(tree, answer.sums.astype(np.uint64))
    assert question.size is None and leaves.in_order and leaves.levels.max() == tree.depth
    first, last = leaves.spans
    begin, end = tree.span(tree.root)
    assert first[0] == begin[0] and last[-1] == end[-1]
    assert ((first[1:] == last[:-1] + np.uint64(1)) | np.isin(first[1:], begin)).all()
    assert leaves.total(votes.cells, votes.weights).sum() == 2_000


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: SplittingNoise.within(Fraction(0), 1, 4, 2),
        lambda: SplittingNoise.within(Fraction(1), 0, 4, 2),
        lambda: SplittingNoise.within(Fraction(1), 1, 1, 2),
        lambda: SplittingNoise.within(Fraction(1), 1, 4, 0),
        lambda: Growth(Quadtree.world(depth=0), AtMostRows(1), Fraction(1)),
        lambda: Growth(TREE, AtMostRows(1), Fraction(1), fan=1),
        lambda: Growth(TREE, AtMostRows(1), Fraction(2)),
        lambda: Growth(BinaryPartition.uncut(TREE), AtMostRows(1), Fraction(1)),
    ],
)
def test_what_cannot_grow_is_refused(wrong):
    with pytest.raises(InputError):
        wrong()


@pytest.mark.parametrize("fan", [2, 4, 7])
@pytest.mark.parametrize(
    "epsilon", [3, 1, Fraction(1, 7), Fraction(1, 10**9), Fraction(1, 10**12), Fraction(1, 10**15)]
)
def test_the_bias_is_the_least_whole_number_that_is_enough_however_wide_the_noise(epsilon, fan):
    """e^(−δ/λ) ≤ 1/β means δ ≥ λ ln β, here with 60 digits: beyond 10⁹ a float is not near enough to tell."""
    noise = SplittingNoise.within(Fraction(epsilon), 3, fan, 8)
    with localcontext(prec=60):
        wanted = Decimal(noise.scale.numerator) / noise.scale.denominator * Decimal(fan).ln()
        assert noise.decay - 1 < wanted <= noise.decay
