"""HTF: a tree whose cells are homogeneous inside, split where both halves are (Shaham et al. 2022).

How many people a leaf should have at each height follows from their equations 29 to 31. A count of p people with
noise Lap(1/ε) is *useful* there if its noise is smaller than p, which has probability 1 − e^(−pε). (Their equation 29
has lost the minus sign.)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from math import floor, log, log2

from hazemap.algorithms.count_queries import laplace_epsilon, number_of_people, square_of
from hazemap.algorithms.published.homogeneous_tree import BudgetAllotment, TreeGrower, learned_of_lines, rounded_share
from hazemap.cellmap import CellMap, Reading
from hazemap.cells import MOST_CELLS, Tree
from hazemap.errors import InputError
from hazemap.privacy.budget import Number, exact
from hazemap.queries.algorithm_disclosure import Disclosure, Learned, counted
from hazemap.queries.noisy_queries import Prices, Rounds
from hazemap.spatial.rectangle_trees import BinaryPartition
from hazemap.tables.contribution_bounding import AtMostRows, Bounding

UNEVEN = 4
"""A half is taken to have at least this part of the people of the cell that is cut."""


def thresholds(people: float, epsilons: Sequence[float]) -> list[float]:
    """How many people a leaf should have at each height, given the epsilon of its count; from the root down.

    p_i that maximise Σ (1 − e^(−ε_i p_i)), the expected number of useful counts, where Σ p_i is the number of people;
    sums are over the nodes of the whole tree, 2^d of them after d cuts. So ε_i e^(−ε_i p_i) is the same for all: p_i =
    (ln ε_i + (N − Σ ln ε_j/ε_j)/Σ 1/ε_j)/ε_i. The paper's equation 31 has both logarithms with the other sign, but its
    threshold of 62 in section 7.7 is what comes out of this. As in the paper, p_i may be below 0 near the root.

    >>> growing = [2 ** (d / 3) for d in range(16)]
    >>> round(thresholds(3.5e6, [0.084 * e / sum(growing) for e in growing])[-1])
    62
    """
    nodes = [2.0**depth for depth in range(len(epsilons))]
    weighed = [number / epsilon for number, epsilon in zip(nodes, epsilons, strict=True)]
    logarithms = sum(weight * log(epsilon) for weight, epsilon in zip(weighed, epsilons, strict=True))
    level = (people - logarithms) / sum(weighed)
    return [(log(epsilon) + level) / epsilon for epsilon in epsilons]


def sure_thresholds(
    negative: Fraction, deciding: Sequence[float], last: Sequence[float], uneven: float = UNEVEN
) -> list[float]:
    """People up to which a cell is a leaf, so that at most the part `negative` of its halves' counts is below 0.

    Equation 31 asks how many counts are larger than their noise, and takes the people to be spread evenly; 16 % of the
    leaves come out below 0 on a city. These thresholds ask for two things at every height, from the root down:

    * a cell of nobody is cut with probability `negative` at most: its count that decides has ε = `deciding`, and
      P(Lap(1/ε) > p) = e^(−pε)/2;
    * a half with one in `uneven` of the people of a cell that is cut is below 0 with probability `negative` at most,
      where its last count has ε = `last`.

    It holds for every half that is no emptier than that. A half of nobody is below 0 half of the time, wherever it is
    cut off, so on maps with much empty ground more leaves are negative.

    >>> [round(full) for full in sure_thresholds(Fraction(1, 50), [0.001, 0.002, 0.01], [0.08, 0.07, 0.06])]
    [3219, 1609, 322]
    """
    if not 0 < negative < Fraction(1, 2) or uneven < 1:
        raise InputError("the part of leaves that may be negative is above 0 and below 1/2")
    sure = log(1 / (2 * float(negative)))
    return [max(sure / first, uneven * sure / final) for first, final in zip(deciding, last, strict=True)]


@dataclass(frozen=True)
class HTF:
    """HTF as published: a binary tree of height h = ⌊log₂(N'ε/10)⌋ over the pixels of a square.

    `share_of_number` of the budget buys N', a noisy number of people; `share_a_level` the search for lines, in `turns`
    turns (see `TreeGrower`); the rest counts cells, ε_i ∝ 2^((h−i)/3) at height i above the last level. A cell is a
    leaf if its noisy count is `stop_at` or less, or it has `least_pixels` or fewer; a leaf is counted again with all
    that is left of its way's budget, and that number alone is published. `stop_at=None` takes a threshold for each
    height from equation 31 (see `thresholds`), and `negative` one for each that keeps the part of leaves below 0 that
    small, as long as no half of a cell is nearly empty (see `sure_thresholds`). Where a `height` is given, which is
    public, N' is bought for equation 31 only.

    `turns` of None weighs every line at once: the paper's baseline (section 4.1.1), at a better price.

    The paper fixes epsilons, not shares: `HTF.published` has them. Only a curator can answer, unless `turns` is 0: then
    cells are halved. Numbers with intervals come from the second counts; the best guess of `Reading.UNBIASED` is the
    published one, other readings use all answers.

    >>> from hazemap.spatial.quadtree import Quadtree
    >>> HTF.published(Quadtree.world(depth=10), epsilon="0.1").share_a_level
    Fraction(1, 100)
    """

    tree: Tree
    bounding: Bounding = AtMostRows(1)
    share_of_number: Fraction = Fraction(1, 1000)
    share_a_level: Fraction = Fraction(1, 100)
    stop_at: int | None = 100
    turns: int | None = 3
    least_pixels: int = 5
    people_a_cell: int = 10
    reading: Reading = Reading.NONNEGATIVE
    height: int | None = None
    negative: Fraction | None = None

    @classmethod
    def published(
        cls,
        tree: Tree,
        epsilon: Number,
        bounding: Bounding = AtMostRows(1),
        number: Number = "1e-4",
        level: Number = "1e-3",
    ) -> "HTF":
        """The paper's absolute constants (ε_height, and ε'_prt: 1e-3 or 5e-4) where the whole budget is `epsilon`."""
        total = exact(epsilon, "epsilon")
        return cls(
            tree,
            bounding,
            exact(number, "the epsilon of the number of people") / total,
            exact(level, "the epsilon of a level") / total,
            reading=Reading.UNBIASED,
        )

    def __post_init__(self) -> None:
        if not 0 < self.share_of_number < 1 or not 0 <= self.share_a_level < 1 or self.people_a_cell < 1:
            raise InputError(
                "the height and the cuts of a homogeneous tree must leave a part of the budget for its leaves"
            )
        if self.height is not None and self.height < 1:
            raise InputError(f"a homogeneous tree has a height of at least 1, not {self.height}")
        if self.negative is not None and not 0 < self.negative < Fraction(1, 2):
            raise InputError("the part of leaves that may be negative is above 0 and below 1/2")
        square_of(self.tree, "a tree of even density")
        self._grower()

    @property
    def disclosure(self) -> Disclosure:
        """What it learns at a price."""
        lines = learned_of_lines(self.turns) if self.share_a_level else ()
        return counted(*((Learned.PEOPLE,) if self._needs_number else ()), Learned.FINENESS, *lines)

    @property
    def _needs_number(self) -> bool:
        return self.height is None or (self.stop_at is None and self.negative is None)

    def rounds(self, prices: Prices) -> Rounds[CellMap]:
        """The number of people, then level after level."""
        tree = BinaryPartition.uncut(square_of(self.tree, "a tree of even density"))
        people, left, asked = yield from number_of_people(
            tree, self.bounding, self.share_of_number, None if self._needs_number else 0
        )
        epsilon = laplace_epsilon(prices, self.tree, self.bounding, Fraction(1))
        allotment = self.allotment(people, epsilon, left)
        grown = yield from self._grower().grown(tree, tree.root, [allotment])
        return (yield from self._grower().mapped(grown, asked, self.reading))

    def allotment(self, people: float, epsilon: float, left: Fraction) -> BudgetAllotment:
        """What is spent on each level for this many people and a run's epsilon, of which the part `left` is left.

        Cuts get half of it at most, whatever a level costs.
        """
        most = min(2 * self.tree.depth, MOST_CELLS.bit_length() - 1)
        fitting = max(floor(log2(max(people * epsilon / self.people_a_cell, 1.0))), 0)
        height = min(fitting if self.height is None else self.height, most)
        level = min(self.share_a_level, left / (2 * height)) if height and self.turns != 0 else Fraction(0)
        data = left - level * height
        weights = [2 ** ((height - i) / 3) for i in range(height, -1, -1)]  # from the root to height 0
        shares = tuple(rounded_share(float(data) * weight / sum(weights)) for weight in weights)
        return BudgetAllotment(
            left, shares[:-1], (level,) * height, self._fullness(people, epsilon, left, level, shares)
        )

    def _fullness(
        self, people: float, epsilon: float, left: Fraction, level: Fraction, shares: tuple[Fraction, ...]
    ) -> tuple[float, ...]:
        """The number of people up to which a cell is a leaf, at every height above 0."""
        if self.negative is not None:
            spent = accumulate(share + level for share in shares[:-1])
            last = [epsilon * float(left - so_far) for so_far in spent]
            return tuple(sure_thresholds(self.negative, [epsilon * float(share) for share in shares[:-1]], last))
        if self.stop_at is not None:
            return (float(self.stop_at),) * (len(shares) - 1)
        return tuple(max(full, 0.0) for full in thresholds(people, [epsilon * float(share) for share in shares])[:-1])

    def _grower(self) -> TreeGrower:
        return TreeGrower(self.bounding, self.turns, self.least_pixels)
