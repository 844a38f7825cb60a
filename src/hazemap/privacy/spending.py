"""Who has paid how much of a run: people pay for the questions about where they are (parallel composition).

A question about some cells says nothing of people elsewhere. So what a run costs is not the sum of all shares, but the
largest sum over the questions about one base cell. Let x_p be what a rule leaves of a person in base cell p, Σ x_p ≤ k,
the rule's L1 sensitivity, and let question q cost the share s_q for k votes. In pure ε the person loses at most
Σ_q s_q · (votes in the cells of q)/k = Σ_p x_p/k · (Σ s_q over the q about p), which is no more than the largest of
these sums. In ρ the loss is Σ_q s_q · ‖votes in the cells of q‖²/k², and ‖v‖² ≤ k · Σ v, so the same bound holds
(every rule has L2² = k²). What is asked may depend on earlier answers: each bound holds given those.
"""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import Cells, Growing, Leaves, Tree, distinct
from hazemap.tables.bounding import Bounding

_ZERO = Fraction(0)

Steps = tuple[Cells, NDArray[np.int64], NDArray[np.bool_]]


class Spending:
    """The share of a run's budget that each place has paid: a step function over the numbers of base cells.

    Places are told apart as long as all questions are about cells of one tree (which may grow) under one rule;
    with the first other question everybody has paid what anybody has paid.

    >>> from hazemap.domains import Quadtree
    >>> from hazemap.tables import AtMostRows
    >>> tree, spent = Quadtree.world(depth=3), Spending()
    >>> quarters = tree.children(tree.root)
    >>> spent.pay(Fraction(1, 2), (Leaves(tree, quarters[:2]), AtMostRows(1)))
    >>> spent.pay(Fraction(1, 3), (Leaves(tree, quarters[1:]), AtMostRows(1)))
    >>> spent.most(None)
    Fraction(5, 6)
    """

    def __init__(self) -> None:
        self._starts: Cells = np.zeros(1, dtype=np.uint64)  # where each step begins
        self._which: NDArray[np.int64] = np.zeros(1, dtype=np.int64)  # what is paid on it, one of:
        self._paid = [_ZERO]
        self._tree: Tree | None = None
        self._rule: Bounding | None = None
        self._last: tuple[Leaves, Cells, Steps] | None = None

    def most(self, where: tuple[Leaves, Bounding] | None) -> Fraction:
        """The most that anybody has paid in these cells (under this rule); everywhere, for None."""
        if where is None or not self._knows(*where):
            return max(self._paid)
        _, which, inside = self._steps(where[0])
        return max((self._paid[i] for i in np.flatnonzero(np.bincount(which[inside]))), default=_ZERO)

    def pay(self, share: Fraction, where: tuple[Leaves, Bounding] | None) -> None:
        """Everybody in these cells pays; everybody at all, for None: O(steps + cells · log cells)."""
        if where is None or not self._knows(*where):
            self._starts, self._which = np.zeros(1, dtype=np.uint64), np.zeros(1, dtype=np.int64)
            self._paid = [max(self._paid) + share]
            self._tree = self._rule = None
            return
        leaves, self._rule = where
        self._tree = leaves.tree
        starts, which, inside = self._steps(leaves)
        before, paid = self._paid, len(self._paid)
        which = np.where(inside, which + paid, which)
        used = np.flatnonzero(np.bincount(which))
        which = np.searchsorted(used, which)
        changes = np.concatenate([[True], which[1:] != which[:-1]])
        self._starts, self._which = starts[changes], which[changes]
        self._paid = [before[i] if i < paid else before[i - paid] + share for i in used.tolist()]

    def _knows(self, leaves: Leaves, rule: Bounding) -> bool:
        """Whether these cells can be told from those of earlier questions."""
        tree = leaves.tree
        if self._tree is None:
            return len(self._starts) == 1
        return rule == self._rule and (tree == self._tree or (isinstance(tree, Growing) and tree.extends(self._tree)))

    def _steps(self, leaves: Leaves) -> Steps:
        """The step function with an edge wherever a cell begins or ends, and which steps lie in the cells.

        The last of it is remembered: whether a question can be paid is asked just before it is.
        """
        if self._last is not None and self._last[0] is leaves and self._last[1] is self._starts:
            return self._last[2]
        first, last = leaves.stretches
        starts = distinct(np.concatenate([self._starts, first, last + np.uint64(1)]))
        which = self._which[np.searchsorted(self._starts, starts, "right") - 1]
        before = np.searchsorted(first, starts, "right") - 1
        inside = before >= 0
        inside[inside] = starts[inside] <= last[before[inside]]
        self._last = leaves, self._starts, (starts, which, inside)
        return starts, which, inside
