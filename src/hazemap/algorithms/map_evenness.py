"""Whether a map looks even in the answers so far, and how full its last cells may be for that."""

from collections.abc import Sequence
from fractions import Fraction
from math import inf

from hazemap.cells import Leaves
from hazemap.estimate import Measurement, roughness

CLEAR = (4, 64)
"""Standard errors that a cell holds whose roughness is looked at: those below do not show it, those above are cut."""

EVENLY = (10, 16)
"""Least and most standard errors that a cell of an even map holds, as measured on maps to learn from."""

HIDDEN = 0.5
"""Roughness over all cells of a second look above which a map only looked even: about 0.3 where it was even, 1 to 2 of
stops and rounded coordinates (docs/decisions/0022-a-second-look-at-even-maps.md)."""

STEEP = 1.4
"""Fullness falls with this power of roughness, as fitted on maps to learn from (docs/results/strange-maps.md)."""


def looks_even(asked: Sequence[Measurement], cells: Leaves, noise: float, below: Fraction | None) -> bool:
    """Whether parts of all cells that stand out of the noise differ little from what is around them.

    On maps with borders the small ones alone differ much, though all that is in between is even. `noise` is the
    standard error of cells as all that is left could count them.
    """
    return below is not None and bool(roughness(asked, cells, CLEAR[0] * noise, inf) < below)


def looks_smooth(asked: Sequence[Measurement], cells: Leaves, noise: float, below: Fraction | None) -> bool:
    """The same of cells that are not far above the noise: those at borders."""
    return below is not None and bool(roughness(asked, cells, CLEAR[0] * noise, CLEAR[1] * noise) < below)


def hides_places(asked: Sequence[Measurement], cells: Leaves) -> bool:
    """Whether people are in few of the cells, although noise hides in which: all cells together tell it."""
    return roughness(asked, cells, 0.0, inf) >= HIDDEN


def fullness_by_roughness(
    asked: Sequence[Measurement], cells: Leaves, noise: float, contrast: float, power: float, even: bool
) -> float:
    """How full the last cells are, in standard errors: `contrast` by the roughness of cells well above the noise.

    A part that differs from its neighbours by τ of its number shows where it is more than some noise/τ; so the
    rougher a map, the smaller the cells that show something. Where parts differ little, a rectangle that cuts a
    cell errs little too, and larger cells bring it less noise: so τ counts a little more (`power`) where maps are told
    apart by it. At least `contrast` itself; of an even map, from all cells, within `EVENLY`.
    """
    rough = min(roughness(asked, cells, CLEAR[0] * noise, inf if even else CLEAR[1] * noise), 1.0)
    found = contrast / max(rough, 1e-9) ** power
    return float(min(max(found, EVENLY[0]), EVENLY[1]) if even else found)
