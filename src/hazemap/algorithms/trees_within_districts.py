"""Districts of a country, subdivided where they are small enough: maps of hundreds of millions of people."""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import floor, log2

import numpy as np
from numpy.typing import NDArray

from hazemap.algorithms.count_queries import laplace_epsilon
from hazemap.algorithms.published.homogeneous_tree import BudgetAllotment, TreeGrower, learned_of_lines, rounded_share
from hazemap.cellmap import CellMap, Reading
from hazemap.cells import MOST_CELLS, Cells, Leaves
from hazemap.encoders import Counts
from hazemap.errors import InputError
from hazemap.queries.algorithm_disclosure import Disclosure, Learned, counted
from hazemap.queries.noisy_queries import Answer, Prices, Query, Question, Rounds
from hazemap.spatial.subdivided_districts import DistrictQuadtree, SubdividedDistricts
from hazemap.tables.contribution_bounding import AtMostRows, Bounding

Transcript = list[tuple[Question, Answer]]


@dataclass(frozen=True)
class DistrictPlan:
    """What a dynamic district may spend: inside, and `own` to count itself once its cells are fixed."""

    inside: BudgetAllotment
    own: Fraction


@dataclass(frozen=True)
class TreesWithinDistricts:
    """Districts level by level; below `dynamic_below` people a tree of even density (Shaham et al. 2022, section 6).

    Level i of n_i districts has the share ε_i ∝ n_i^(1/3) (their equation 38), which minimises the variance of all
    districts together. The part `deciding` of it counts the districts of a level; where that says fewer than
    `dynamic_below` people, or at the finest level, a tree of even density grows inside with all that the levels below
    would have cost. People pay for the districts that they are in (`privacy.parallel_composition`), so every way costs
    1.

    Inside, a tree has height h = ⌊log₂(N'ε/people_a_cell)⌋, ε what is left for it, and a cell at height i above its
    last level is counted with s_i ∝ 2^(−i/3) (see `HTF`). What a taller tree would pay for still higher levels counts
    the district itself, so cells of the same height pay the same in all districts, and are asked together.

    Once all cells are fixed, districts are counted again with what is left of their levels: numbers and intervals come
    from these answers and the leaves' last ones, by least squares over the whole tree.

    Only a curator can answer, unless `turns` is 0: then cells are halved.
    """

    tree: DistrictQuadtree
    bounding: Bounding = AtMostRows(1)
    dynamic_below: int = 1_000_000
    deciding: Fraction = Fraction(1, 10)
    share_a_level: Fraction = Fraction(1, 1000)
    stop_at: int = 100
    turns: int | None = 3
    least_pixels: int = 5
    people_a_cell: int = 10
    reading: Reading = Reading.NONNEGATIVE

    def __post_init__(self) -> None:
        if not 0 < self.deciding < 1 or not 0 <= self.share_a_level < 1 or min(self.people_a_cell, self.stop_at) < 1:
            raise InputError("the part of each level's budget that decides must be above 0 and below 1")
        if not isinstance(self.tree, DistrictQuadtree):
            raise InputError("this method needs districts: choose districts as cells")
        self._grower()

    @property
    def shares(self) -> tuple[Fraction, ...]:
        """What each level of districts costs, from the root; the finest level's is for what is inside."""
        roots = np.cbrt(self.tree.districts.sizes)
        upper = [rounded_share(root / roots.sum()) for root in roots[:-1]]
        return (*upper, 1 - sum(upper, Fraction(0)))

    @property
    def disclosure(self) -> Disclosure:
        """What it learns at a price."""
        lines = learned_of_lines(self.turns) if self.share_a_level else ()
        return counted(Learned.PEOPLE, Learned.DISTRICTS, Learned.FINENESS, *lines)

    def rounds(self, prices: Prices) -> Rounds[CellMap]:
        """Count the districts of each level; grow trees in those with few people; count what stands once more."""
        plain, transcript = SubdividedDistricts.uncut(self.tree), Transcript()
        standing: list[tuple[Cells, Fraction]] = []  # districts that are cut no further, and their level's share
        roots: list[Cells] = []
        plans: list[DistrictPlan] = []
        cells, shares = plain.root, self.shares
        for level, share in enumerate(shares):
            query = Query(Counts(Leaves(plain, cells), self.bounding), share * self.deciding)
            transcript.append((query, (yield query)))
            people = transcript[-1][1].sums / self.bounding.unit
            small = (people < self.dynamic_below) | (level == len(shares) - 1)
            epsilon = laplace_epsilon(prices, self.tree, self.bounding, Fraction(1))
            left = sum(shares[level + 1 :], share * (1 - self.deciding))
            roots.append(cells[small])
            plans += self._plans(people[small], epsilon, left)
            standing.append((cells[~small], share * (1 - self.deciding)))
            cells = plain.children(cells[~small])
            if not len(cells):
                break
        dynamic = np.concatenate(roots)
        tree = plain.turned(dynamic)
        tallest = max(plan.inside.height for plan in plans)
        inside = {plan: replace(plan.inside, begins=tallest - plan.inside.height) for plan in set(plans)}
        grown = yield from self._grower().grown(tree, dynamic, [inside[plan] for plan in plans])
        transcript += grown.transcript
        own = sorted({plan.own for plan in plans} - {Fraction(0)})
        standing += [(dynamic[[plan.own == share for plan in plans]], share) for share in own]
        for districts, share in standing:
            if len(districts):
                query = Query(Counts(Leaves(grown.tree, np.sort(districts)), self.bounding), share)
                transcript.append((query, (yield query)))
        return (yield from self._grower().mapped(grown._replace(transcript=tuple(transcript)), [], self.reading))

    def _plans(self, people: NDArray[np.float64], epsilon: float, left: Fraction) -> list[DistrictPlan]:
        """What is spent in each dynamic district of a level, which have the part `left` of the budget."""
        most = min(2 * self.tree.square.depth, MOST_CELLS.bit_length() - 1)
        full = np.maximum(people * epsilon * float(left) / self.people_a_cell, 1.0)
        heights = [0 if n <= self.stop_at else min(floor(log2(f)), most) for n, f in zip(people, full, strict=True)]
        tallest = max(heights, default=0)
        cutting = min(self.share_a_level, left / (2 * tallest)) if tallest and self.turns != 0 else Fraction(0)
        data = float(left - cutting * tallest) * (1 - 2 ** (-1 / 3))
        counting = [rounded_share(data * 2 ** (-i / 3)) for i in range(tallest)]  # s_i
        plans = {}
        for height in sorted(set(heights)):
            within = cutting * height + sum(counting[:height], Fraction(0)) if height else left
            deciding = (Fraction(0), *counting[height - 1 : 0 : -1]) if height else ()
            fullness = (float(self.stop_at),) * height
            plans[height] = DistrictPlan(
                BudgetAllotment(within, deciding, (cutting,) * height, fullness), left - within
            )
        return [plans[height] for height in heights]

    def _grower(self) -> TreeGrower:
        return TreeGrower(self.bounding, self.turns, self.least_pixels)
