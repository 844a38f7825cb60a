"""The adaptive hierarchical histogram as published (Bagdasaryan et al., PETS 2022, algorithm 2)."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hazemap.algorithms.count_queries import number_of_people, with_nowhere
from hazemap.cellmap import CellMap, Reading
from hazemap.cells import NOWHERE, Leaves, Tree, distinct
from hazemap.encoders import Counts
from hazemap.errors import InputError
from hazemap.estimate import read
from hazemap.queries.algorithm_disclosure import DisclosesPeople
from hazemap.queries.noisy_queries import Answer, Prices, Query, Rounds
from hazemap.tables.contribution_bounding import AtMostRows, Bounding


@dataclass(frozen=True)
class AdaptiveHierarchicalHistogram(DisclosesPeople):
    """Split what stands out of the noise, collapse what drowns in it, spend no more than a round needs.

    * eq. 7: a round wants noise of σ_t = c₀/2 · n/k, n people over k cells; eq. 8 and 9: it spends what that costs
      while `reserve` times as much remains, otherwise all that remains, and stops.
    * eq. 6: a cell splits iff its count exceeds T = `split_at` · σ(max(ε_i, what remains)): its children that are not
      there yet are added (so a partly split cell is completed).
    * it collapses iff its count is at most `collapse` · T, below level 1: its people fall to its parent. A parent
      with some children reports the rest; children of a collapsed cell stay, orphaned, below their grandparent.

    `people` is n where it is public; otherwise `share_of_number` of the budget buys it. `split_above` is a fixed T.
    `prior` is a first tree. Every round asks the whole tree anew. As published, earlier rounds are thrown away: that
    is the unbiased reading; the others combine all rounds for the picture.

    >>> from hazemap.spatial.quadtree import Quadtree
    >>> AdaptiveHierarchicalHistogram(Quadtree.world(depth=10)).c0
    Fraction(1, 10)
    """

    tree: Tree
    bounding: Bounding = AtMostRows(1)
    people: int | None = None
    share_of_number: Fraction = Fraction(1, 100)
    c0: Fraction = Fraction(1, 10)
    reserve: int = 2
    split_at: int = 2
    split_above: int | None = None
    collapse: Fraction = Fraction(1, 4)
    most_rounds: int = 12
    prior: Leaves | None = None
    reading: Reading = Reading.SHRUNK

    def __post_init__(self) -> None:
        if self.most_rounds < 1 or self.c0 <= 0 or not 0 <= self.collapse < 1:
            raise InputError("a prefix tree needs c0 above 0, collapse in [0, 1) and at least one round")

    def rounds(self, prices: Prices) -> Rounds[CellMap]:
        """The number of people if it is not public, then at most `most_rounds` of the tree."""
        found = number_of_people(self.tree, self.bounding, self.share_of_number, self.people)
        people, left, transcript = yield from found
        cells = self.prior or Leaves(self.tree, self.tree.children(self.tree.root))
        changed = True
        for turn in range(self.most_rounds):
            target = float(self.c0) / 2 * max(people, 1.0) / cells.size * self.bounding.unit
            cells = with_nowhere(cells, self.bounding)
            encoder = Counts(cells, self.bounding)
            share = prices.share(encoder, target)
            last = not changed or turn == self.most_rounds - 1 or left < self.reserve * share
            query = Query(encoder, left if last else share)
            answer = yield query
            transcript.append((query, answer))
            left -= query.share
            if last:
                break
            grown = self._grown(cells, answer, prices.stddev(encoder, max(share, left)))
            cells, changed = (
                grown,
                not np.array_equal(np.sort(grown.cells), np.sort(cells.cells[cells.cells != NOWHERE])),
            )
        return read(transcript, cells, self.reading)

    def _grown(self, cells: Leaves, answer: Answer, noise: float) -> Leaves:
        """The next tree: split, collapse, and drop cells that own nothing any more."""
        tree, asked = self.tree, cells.cells
        place = asked != NOWHERE
        counts, asked = answer.sums[place], asked[place]
        threshold = self.split_at * noise if self.split_above is None else self.split_above * self.bounding.unit
        level = tree.level(asked)
        split = (counts > threshold) & (level < tree.depth)
        collapsed = (counts <= float(self.collapse) * threshold) & (level > 1) & ~split
        kept = asked[~split & ~collapsed]
        heirs = tree.parent(asked[collapsed])  # take in the people of collapsed cells
        nodes = distinct(np.concatenate([kept, tree.children(asked[split]), heirs]))
        grown = Leaves(tree, nodes)
        first, last = grown.spans
        room = grown.own((last - first).astype(np.float64) + 1)
        return Leaves(tree, nodes[room > 0])
