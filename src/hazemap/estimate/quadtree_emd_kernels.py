"""The loops of the exact solver on quadtrees with one weight a level, compiled; `tree_emd_projection.py` has the
formulas.

All nodes of a level share the slopes that their pieces can have: 2 above a leaf, and at most twice as many a level
higher. So the pieces of a node are a row of lengths, one for each slope in ascending order but the last, whose piece
never ends; and no piece is sorted or searched. The children of node v are 4 v … 4 v + 3.
"""

from hazemap.arrays import Floats, Ints
from hazemap.jit import compiled


@compiled
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


@compiled
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
