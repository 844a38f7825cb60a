"""Parallel composition: people pay only for the questions about where they are.

A question about some cells says nothing of people elsewhere. So what a run costs is not the sum of all shares, but the
largest sum over the questions about one base cell. Let x_p be what a rule leaves of a person in base cell p, Σ x_p ≤ k,
the rule's L1 sensitivity, and let question q cost the share s_q for k votes. In pure ε the person loses at most
Σ_q s_q · (votes in the cells of q)/k = Σ_p x_p/k · (Σ s_q over the q about p), which is no more than the largest of
these sums. In ρ the loss is Σ_q s_q · ‖votes in the cells of q‖²/k², and ‖v‖² ≤ k · Σ v, so the same bound holds
(every rule has L2² = k²). What is asked may depend on earlier answers: each bound holds given those.

A tree may grow between two questions. Then a place is followed by the numbers of its rows: they keep theirs, except
inside the stretches that the tree itself says it numbered anew (`Growing.renumbered`), and none leaves its stretch. So
within each of these everybody is taken to have paid what anybody there has paid: an upper bound, whatever was asked.
"""

from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import Cells, Growing, Leaves, Tree
from hazemap.tables.contribution_bounding import Bounding
from hazemap.vdaf.compiled_loops import once_compiled

_ZERO = Fraction(0)


class Steps(NamedTuple):
    """A step function over the numbers of base cells."""

    starts: Cells  # where each step begins, ascending from 0
    which: NDArray[np.int64]  # what is paid on it, one of:
    paid: tuple[Fraction, ...]

    @classmethod
    def level(cls, paid: Fraction) -> "Steps":
        """The same everywhere."""
        return cls(np.zeros(1, dtype=np.uint64), np.zeros(1, dtype=np.int64), (paid,))

    def most(self, first: Cells, last: Cells) -> Fraction:
        """The largest value in some stretches, which ascend: O(steps + stretches)."""
        met = once_compiled(_met_loop)(self.starts, self.which, first, last, len(self.paid))
        return max((self.paid[i] for i in np.flatnonzero(met)), default=_ZERO)

    def raised(self, first: Cells, last: Cells, by: Fraction) -> "Steps":
        """With this much more in these stretches: O(steps + stretches)."""
        paid = len(self.paid)
        starts, which = once_compiled(_stepped_loop)(self.starts, self.which, first, last, paid)
        used = np.flatnonzero(np.bincount(which))
        renamed = np.zeros(2 * paid, dtype=np.int64)
        renamed[used] = np.arange(len(used))
        values = tuple(self.paid[i] if i < paid else self.paid[i - paid] + by for i in used.tolist())
        return Steps(starts, renamed[which], values)

    def levelled(self, first: Cells, last: Cells) -> "Steps":
        """In each of some stretches, which ascend, everywhere the largest value in it: O(steps + uneven stretches)."""
        begin = np.searchsorted(self.starts, first, "right") - 1
        end = np.searchsorted(self.starts, last, "right")
        found = self
        for i in np.flatnonzero(end - begin > 1).tolist():
            own = slice(i, i + 1)
            found = found._filled(first[own], last[own], self.most(first[own], last[own]))
        return found

    def _filled(self, first: Cells, last: Cells, value: Fraction) -> "Steps":
        """With this value in one stretch."""
        starts, which = once_compiled(_stepped_loop)(self.starts, self.which, first, last, len(self.paid))
        return Steps(starts, np.minimum(which, len(self.paid)), (*self.paid, value))


class ParallelComposition:
    """The share of a run's budget that each place has paid.

    Places are told apart as long as all questions are about cells of one tree (which may grow) under one rule. With the
    first question about another tree or under another rule everybody has paid what anybody has paid until then, and
    from it on the places of that one are told apart: losses add, and each bound holds for the questions of its tree.

    >>> from hazemap.spatial.quadtree import Quadtree
    >>> from hazemap.tables.contribution_bounding import AtMostRows
    >>> tree, spent = Quadtree.world(depth=3), ParallelComposition()
    >>> quarters = tree.children(tree.root)
    >>> spent.pay(Fraction(1, 2), (Leaves(tree, quarters[:2]), AtMostRows(1)))
    >>> spent.pay(Fraction(1, 3), (Leaves(tree, quarters[1:]), AtMostRows(1)))
    >>> spent.most(None)
    Fraction(5, 6)
    """

    def __init__(self) -> None:
        self._steps = Steps.level(_ZERO)
        self._tree: Tree | None = None  # none: no question yet, or the last one was about everybody
        self._rule: Bounding | None = None

    def most(self, where: tuple[Leaves, Bounding] | None) -> Fraction:
        """The most that anybody has paid in these cells (under this rule); everywhere, for None."""
        steps = None if where is None else self._followed(*where)
        return max(self._steps.paid) if where is None or steps is None else steps.most(*where[0].stretches)

    def pay(self, share: Fraction, where: tuple[Leaves, Bounding] | None) -> None:
        """Everybody in these cells pays; everybody at all, for None: O(steps + cells)."""
        steps = None if where is None else self._followed(*where)
        if steps is None:
            steps = Steps.level(max(self._steps.paid))
        if where is None:
            self._steps, self._tree, self._rule = Steps.level(max(steps.paid) + share), None, None
            return
        leaves, self._rule = where
        self._tree = leaves.tree
        self._steps = steps.raised(*leaves.stretches, share)

    def _followed(self, leaves: Leaves, rule: Bounding) -> Steps | None:
        """What was paid, by the numbers of this tree; None where its places cannot be told from those before."""
        tree, before = leaves.tree, self._tree
        if before is None or (rule == self._rule and tree == before):
            return self._steps
        if rule == self._rule and isinstance(tree, Growing) and tree.extends(before):
            return self._steps.levelled(*tree.renumbered(before))
        return None


def _met_loop(starts, which, first, last, kinds):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Which kinds of steps some stretches meet; both ascend."""
    met = np.zeros(kinds, dtype=np.bool_)
    step = 0
    for k in range(len(first)):
        while step + 1 < len(starts) and starts[step + 1] <= first[k]:
            step += 1
        met[which[step]] = True
        while step + 1 < len(starts) and starts[step + 1] <= last[k]:
            step += 1
            met[which[step]] = True
    return met


def _stepped_loop(starts, which, first, last, kinds):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """The steps with `kinds` added to the kind of all that lies in the stretches; equal neighbours are one."""
    edges = np.empty(len(starts) + 2 * len(first), dtype=np.uint64)
    found = np.empty(len(edges), dtype=np.int64)
    size, step, k, at = 0, 0, 0, starts[0]
    while True:
        while step + 1 < len(starts) and starts[step + 1] <= at:
            step += 1
        while k < len(first) and last[k] < at:
            k += 1
        inside = k < len(first) and first[k] <= at
        kind = which[step] + (kinds if inside else 0)
        if size == 0 or found[size - 1] != kind:
            edges[size], found[size] = at, kind
            size += 1
        # The next edge: of the steps, or of a stretch.
        more = step + 1 < len(starts)
        if inside and last[k] == np.uint64(0xFFFFFFFFFFFFFFFF):
            if not more:
                break
            at = starts[step + 1]
        elif k < len(first):
            edge = last[k] + np.uint64(1) if inside else first[k]
            at = min(edge, starts[step + 1]) if more else edge
        elif more:
            at = starts[step + 1]
        else:
            break
    return edges[:size].copy(), found[:size].copy()
