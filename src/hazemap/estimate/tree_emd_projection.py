"""The distribution nearest to noisy sums on a tree: the exact solution of the linear programme behind EMD heatmaps.

Given a tree with a number ŷ_v and a weight w_v ≥ 0 for each node, find masses x ≥ 0 on the leaves such that

    Σ_v w_v · |ŷ_v − (mass below v)|

is least. Ghazi et al. (2022) solve it by linear programming. On a tree it needs no solver: let g_v(m) be the least
cost of the subtree of v if its leaves hold m in all. A leaf has g_v = w_v |ŷ_v − m| on m ≥ 0; and g_v is w_v |ŷ_v − m|
plus the infimal convolution of the children's g, which sorts the linear pieces of all of them by slope, the steepest
descent first (Rockafellar 1970, theorem 16.4). All g are convex and piecewise linear with at most one break for each
node below. At the root the mass is taken where the slope turns positive; then each node hands its mass down, to the
cheapest pieces first. Breaks are sums of ŷ's, so whole numbers give a whole solution.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hazemap.errors import InputError
from hazemap.estimate.tree_emd_kernels import costs, masses
from hazemap.machine_code.arrays import Floats


def nearest(parent: NDArray[np.int64], numbers: Floats, weights: Floats) -> Floats:
    """The mass of every node, float64[nodes]: O(nodes · depth) at worst, near O(nodes) where few weights differ.

    `parent` is −1 for roots; it ascends, so that the roots come first and siblings are together (the order of a
    breadth-first walk). Of several solutions one with little mass is given.

    >>> nearest(np.array([-1, 0, 0]), np.array([4.0, 5.0, -1.0]), np.array([1.0, 2.0, 2.0]))
    array([5., 5., 0.])
    """
    parent, wanted, weight = np.asarray(parent, np.int64), floats(numbers), floats(weights)
    n = len(parent)
    if not parent.shape == wanted.shape == weight.shape == (n,):
        raise InputError("a tree needs one parent, one number and one weight for each node")
    if (np.diff(parent) < 0).any() or (parent >= np.arange(n)).any() or (n and parent[0] < -1):
        raise InputError(
            "parents must come before their children, and siblings must be together: list the nodes level by level"
        )
    check_numbers(weight, wanted)
    roots = int(np.searchsorted(parent, 0))
    number = np.bincount(parent[roots:], minlength=n)
    first = roots + np.concatenate([[0], np.cumsum(number)[:-1]]) if n else number
    found: Floats = masses(first, number, wanted, weight, roots, *costs(first, number, wanted, weight, max(64, n)))
    return found


def check_numbers(weights: Floats, *numbers: Floats) -> None:
    """`InputError` for numbers that are not finite, and for weights below 0."""
    if not (all(np.isfinite(each).all() for each in (weights, *numbers)) and (weights >= 0).all()):
        raise InputError("numbers and weights must be finite, and no weight may be negative")


def floats(numbers: Sequence[float] | Floats) -> Floats:
    """Numbers side by side, as the loops take them."""
    return np.ascontiguousarray(numbers, dtype=np.float64)
