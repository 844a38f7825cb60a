"""The exact solver on quadtrees with one weight a level: how fast `nearest` could be where the tree is that regular.

All nodes of a level share the slopes that their pieces can have: 2 above a leaf, and at most twice as many a level
higher. So the pieces of a node are a row of lengths, one for each slope in ascending order but the last, whose piece
never ends; and no piece is sorted or searched. The children of node v are 4 v … 4 v + 3.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from hazemap.errors import InputError
from hazemap.estimate.tree_emd_projection import check_numbers, floats
from hazemap.machine_code.arrays import Floats, Ints
from hazemap.vdaf.compiled_loops import once_compiled


def nearest_grid(levels: Sequence[Floats], weights: Sequence[float]) -> Floats:
    """`nearest` on a quadtree: level i is float64[4^i] in Z-order, with one weight each; the last level's masses.

    Levels below the first that is given may be left out at the top: the first has 4^q cells, each a root. With one
    weight a level, h levels above a leaf no node has pieces of more than 2^(h+1) slopes, and there are 4^h times
    fewer nodes: O(leaves) time, 14 bytes a leaf at the peak (1024²: 0.02 s, 14 MB; research/benchmarks/nearest.py).

    >>> nearest_grid([np.array([3.0]), np.array([2.0, 2.0, 0.0, -1.0])], [1.0, 0.5])
    array([2., 1., 0., 0.])
    """
    sizes, weight = [len(level) for level in levels], floats(weights)
    if not sizes or any(below != 4 * above for above, below in pairwise(sizes)):
        raise InputError(f"each level of a quadtree has four times the cells of the one above; found {sizes}")
    wanted = [floats(level) for level in levels]
    if weight.shape != (len(sizes),):
        raise InputError(f"{len(sizes)} levels need as many weights, not {len(weight)}")
    check_numbers(weight, *wanted)
    slopes = np.unique([-weight[-1], weight[-1]])
    pieces = [wanted[-1][:, None][:, : len(slopes) - 1]]
    for level in range(len(sizes) - 2, -1, -1):
        both = np.concatenate([slopes - weight[level], slopes + weight[level]])
        slopes, place = np.unique(both, return_inverse=True)
        cheaper, dearer = place.reshape(2, -1)
        pieces.append(np.empty((sizes[level], len(slopes) - 1)))
        once_compiled(rise)(pieces[-2], wanted[level], cheaper, dearer, pieces[-1])
    mass = np.maximum(pieces.pop()[:, slopes[:-1] < 0], 0.0).sum(axis=1)
    while pieces:
        below = pieces.pop()
        given = np.zeros(len(below))
        once_compiled(hand_down)(mass, below, given)
        mass = given
    found: Floats = mass
    return found


def rise(below: Floats, wanted: Floats, cheaper: Ints, dearer: Ints, pieces: Floats) -> None:
    """The pieces of a level, float64[nodes, slopes − 1], from those of its children, float64[4 nodes, slopes − 1].

    Mass up to what a node wants is cheaper by its weight, and mass beyond is dearer: `cheaper` and `dearer` are the
    places of those slopes, for each slope of the children. Lengths below 0 count as 0 (leaves that want less).
    """
    finite, most = below.shape[1], pieces.shape[1]
    for v in range(len(wanted)):
        left = wanted[v]
        for place in range(most):
            pieces[v, place] = 0.0
        for slope in range(finite):
            rest = 0.0
            for c in range(4 * v, 4 * v + 4):
                rest += max(below[c, slope], 0.0)
            if left > 0:
                part = min(left, rest)
                left -= part
                rest -= part
                if cheaper[slope] < most:
                    pieces[v, cheaper[slope]] += part
            if dearer[slope] < most:
                pieces[v, dearer[slope]] += rest
        if left > 0 and cheaper[finite] < most:
            pieces[v, cheaper[finite]] += left


def hand_down(mass: Floats, below: Floats, given: Floats) -> None:
    """What the children get of the mass of each node, float64[4 nodes], cheapest pieces first; zeros to begin with."""
    for v in range(len(mass)):
        left = mass[v]
        for slope in range(below.shape[1]):
            if left <= 0:
                break
            for c in range(4 * v, 4 * v + 4):
                part = min(left, max(below[c, slope], 0.0))
                given[c] += part
                left -= part
        if left > 0:
            given[4 * v] += left
