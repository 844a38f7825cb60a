"""How finely the range is cut for quantiles, and what each level of bins gets of a budget: all from public facts.

An interval of a quantile reaches to the edges of bins, so it is never narrower than one. Many bins in one level would
drown in noise: with K of them, the number of people below the middle has K/4 times the variance of one. In pure ε, 16
to 17 are the best fan-out (Qardaji, Yang and Li 2013). So the first level has 16 bins and nearly all of what quantiles
get; places with hundreds of people are told as sharply as if there were no other. A second level cuts each bin again,
and is only counted in a small share: where thousands of people are, it tells in which 256th of the range a quantile is.

Means keep 10/21 of a pure budget, where they had half before a second level was there.
"""

from dataclasses import replace

from hazemap.algorithms import PrivateBoxStatistics
from hazemap.algorithms.cell_statistics import CellStatistics
from hazemap.algorithms.partition_selection import first_level
from hazemap.algorithms.two_stage_statistics import CellMethod, TwoStageStatistics
from hazemap.privacy.budget import Budget, PureDP
from hazemap.specs.specification import shortest
from hazemap.values.value_encoding import ValueEncoding

FIRST = 16
"""Bins of the first level."""

FURTHER = (16, 4)
"""Into how many each of them is cut where nobody says how many bins: the first of these for which there is `ROOM`."""

ROOM = 1 << 22
"""Counters of one release, of all places and levels together: 32 megabytes, of which a file holds about half."""


def chosen_branchings(bins: int | None, places: int | None) -> tuple[int, ...]:
    """The fan-out of each level: of at least `bins`, or of as many as there is room for in so many places.

    Where nobody knows beforehand how many places there will be (None), or what each person gives is kept in memory, 64.

    >>> chosen_branchings(None, 3_864), chosen_branchings(None, 20_000), chosen_branchings(None, 600_000)
    ((16, 16), (16, 4), (16,))
    >>> chosen_branchings(None, None), chosen_branchings(8, None), chosen_branchings(100, None)
    ((16, 4), (8,), (16, 7))
    """
    if bins is not None:
        return (bins,) if bins <= FIRST else (FIRST, -(-bins // FIRST))
    if places is None:
        return FIRST, FURTHER[-1]
    fitting = [further for further in FURTHER if places * FIRST * (1 + further) <= ROOM]
    return (FIRST, fitting[0]) if fitting else (FIRST,)


def weights_of(branchings: tuple[int, ...], budget: Budget) -> tuple[int, ...]:
    """What a person is in the moments, and in the bins of each level.

    Laplace noise grows with their sum, Gaussian noise with the root of the sum of their squares: so the second level
    costs others less there, and gets more.
    """
    if len(branchings) < 2:
        return (1,)
    return (10, 9, 2) if isinstance(budget, PureDP) else (10, 9, 5)


def bins_told(value_encoding: ValueEncoding) -> list[str]:
    """What a statement says of the bins: nothing where there are none."""
    if not value_encoding.bins:
        return []
    levels = " and ".join(f"{size:,}" for size in value_encoding.levels)
    width = shortest(value_encoding.width / value_encoding.bins)
    return [f"bins of quantiles: {levels}, the finest {width} wide; an interval reaches to the edges of bins"]


def number_of_cells(method: CellStatistics, *, selected: bool = False) -> int:
    """How many cells the box has; about how many, where there are too many to list, or (`selected`) no need to."""
    if method.only:
        return len(method.only)
    level, cells = first_level(method.tree, method.level)
    if level == method.level:
        return method.measured.cells.size if not selected else len(cells)
    below = method.tree.children(cells[:1])
    return int(len(cells) * len(below) ** (method.level - level))


def known_places(method: CellMethod | PrivateBoxStatistics) -> int | None:
    """How many places there are; None where a box is yet to be found, or cells are to be selected."""
    if isinstance(method, PrivateBoxStatistics):
        return None
    if isinstance(method, TwoStageStatistics):
        return None if method.selection is not None else known_places(method.method)
    return number_of_cells(method) * len(method.slots.names)


def encoded(
    method: CellMethod | PrivateBoxStatistics, value_encoding: ValueEncoding
) -> CellMethod | PrivateBoxStatistics:
    """The same method with another value encoding."""
    if isinstance(method, PrivateBoxStatistics):
        return replace(method, method=_encoded(method.method, value_encoding))
    return _encoded(method, value_encoding)


def _encoded(method: CellMethod, value_encoding: ValueEncoding) -> CellMethod:
    inner = method.method if isinstance(method, TwoStageStatistics) else method
    rule = replace(inner.bounding, scale=value_encoding.scale)
    made = replace(inner, value_encoding=value_encoding, bounding=rule)
    return replace(method, method=made) if isinstance(method, TwoStageStatistics) else made
