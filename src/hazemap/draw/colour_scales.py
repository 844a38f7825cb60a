"""Colour scales: perceptual ones for density and values, classes for uncertainty."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hazemap.draw.cell_densities import DensitySurface
from hazemap.draw.cell_painting import Colours, Palette
from hazemap.draw.themes import LIGHT, Theme
from hazemap.draw.viewport import Viewport
from hazemap.machine_code.arrays import Floats

DENSITY_COLOURS = LIGHT.densities
ERROR_BREAKS = (0.05, 0.2, 0.5, 1.0)  # of relative standard error
ERROR_COLOURS = LIGHT.errors  # sure … unsure
UNSURE_EVERYWHERE = 0.9  # of people and ground: with more of it over the last break, shares say nothing
PALE_EVERYWHERE = 0.99  # of the picture: so do they, where this much of it has the last colour
SPARSE, CROWDED = 2.0, 1e5  # people per km²: the darkest colour of a map below or above them has another unit
MOST_DECADES = 3.0
FEWEST_DECADES = 0.7
UNKNOWN = LIGHT.unknown  # a cell of which no value is published


@dataclass(frozen=True)
class DensityScale:
    """Colour at asinh(d / low) / asinh(high / low): proportional below `low`, logarithmic above.

    Densities are per km²; up to `densest` all above `high` have the darkest colour.

    >>> DensityScale(10, 10_000, 20_000).position(np.array([0, 10_000, 20_000])).tolist()
    [0.0, 1.0, 1.0]
    >>> [label for _, label in DensityScale(10, 10_000, 20_000).ticks()]
    ['0', '20', '100', '1k', '10k']
    """

    low: float
    high: float
    densest: float
    steps: tuple[str, ...] = field(default=DENSITY_COLOURS, repr=False)

    @classmethod
    def of(cls, surfaces: Sequence[DensitySurface], view: Viewport) -> "DensityScale":
        """One scale for what some surfaces show in a view.

        People and ground count alike: each cell has weight √(people · area), or one crowded square would
        leave a city pale, and one desert make it black. The darkest colour begins where 1 % of the weight is
        denser; shades begin where 25 % is less dense, but above the noise of half of the ground.
        """
        density, values, noise, areas = (
            np.concatenate([getattr(s, name)[view.touches(s.shapes.bounds)] for s in surfaces])
            for name in ("density", "values", "noise", "areas")
        )
        if not density.any():
            return cls(1.0, 10.0, 0.0)
        weight = np.sqrt(values * areas)
        high = quantile(density, weight, 0.99)
        low = max(quantile(density, weight, 0.25), 2 * quantile(noise, areas, 0.5))
        low = float(np.clip(low, high / 10**MOST_DECADES, high / 10**FEWEST_DECADES))
        return cls(low, high, float(density.max()))

    def per(self, unit: str) -> tuple["DensityScale", str]:
        """The scale in the area that people know for such densities: km² on the ground, 1,000 km² or hectares.

        >>> DensityScale(0.001, 0.1, 0.3).per("km²")
        (DensityScale(low=1.0, high=100.0, densest=300.0), '1,000 km²')
        """
        times, name = known_area(self.high if self.densest > 0 else SPARSE, unit)
        return replace(self, low=times * self.low, high=times * self.high, densest=times * self.densest), name

    def position(self, density: NDArray[np.float64]) -> NDArray[np.float64]:
        """Where on the scale, 0 to 1."""
        return np.clip(np.arcsinh(density / self.low) / math.asinh(self.high / self.low), 0, 1)

    def colours(self, density: NDArray[np.float64]) -> Colours:
        """Red, green, blue and alpha, 0 to 255."""
        table = _table(self.steps)
        colours: Colours = table[np.rint(self.position(density) * (len(table) - 1)).astype(np.intp)]
        return colours

    def ticks(self, apart: float = 0.14) -> list[tuple[float, str]]:
        """Round densities and their labels, powers of ten first, at least `apart` of the scale's length apart."""
        chosen = {0.0: 0.0}
        exponents = range(math.floor(math.log10(self.low)) - 1, math.floor(math.log10(self.high)) + 1)
        for digit in (1, 5, 2):
            for exponent in reversed(exponents):
                value = digit * 10.0**exponent
                place = float(self.position(np.array([value]))[0])
                if value <= self.high * (1 + 1e-9) and all(abs(place - o) >= apart for o in chosen.values()):
                    chosen[value] = place
        return [(value, short(value)) for value in sorted(chosen)]


@dataclass(frozen=True)
class ValueScale:
    """Even steps of colour from one value to another; NaN is grey.

    >>> ValueScale(10, 30).colours(np.array([np.nan, 10.0]))[:, :3].tolist()
    [[215, 217, 220], [252, 249, 240]]
    """

    low: float
    high: float
    steps: tuple[str, ...] = DENSITY_COLOURS[:-1]
    unknown: str = UNKNOWN

    @classmethod
    def of(cls, values: Floats, bounds: tuple[float, float] = (0.0, 1.0), noise: float = 0.0) -> "ValueScale":
        """From the 1st to the 99th percentile of the values that are known; where none is, the `bounds`.

        It is at least four times as wide as the noise, so that noise alone makes no difference in colour.
        """
        known = values[np.isfinite(values)]
        if not known.size:
            return cls(*bounds)
        ends = [quantile(known, np.ones(known.size), share) for share in (0.01, 0.99)]
        middle, half = sum(ends) / 2, max((ends[1] - ends[0]) / 2, 2 * noise, 1e-3 * abs(sum(ends)) / 2, 1e-12)
        return cls(middle - half, middle + half)

    def colours(self, values: Floats) -> Colours:
        """Red, green, blue and alpha, 0 to 255."""
        from matplotlib.colors import LinearSegmentedColormap, to_rgba

        known = np.isfinite(values)
        place = np.clip((np.where(known, values, self.low) - self.low) / (self.high - self.low), 0, 1)
        found = LinearSegmentedColormap.from_list("value", self.steps, 1024)(place)
        found[~known] = to_rgba(self.unknown)
        colours: Colours = np.rint(found * 255).astype(np.uint8)
        return colours

    def of_unknown(self, values: Floats) -> Colours:
        """The colour of what is not known, whatever the values are."""
        return self.colours(np.full(values.shape, np.nan))


@dataclass(frozen=True)
class ErrorClasses:
    """Five classes of error, surest first: below, between and above four breaks.

    >>> ErrorClasses.around(3.0, "km²").breaks
    (1.0, 2.0, 5.0, 10.0)
    """

    breaks: tuple[float, ...] = ERROR_BREAKS
    unit: str = ""

    @classmethod
    def of(cls, surface: DensitySurface, view: Viewport, unit: str) -> "ErrorClasses":
        """Shares of the number, the same in all pictures; but errors per area where it is over 100 % nearly everywhere.

        People and ground count alike, as in `DensityScale`; so one city that is known well keeps the shares, unless it
        is a speck of the picture.
        """
        seen = view.touches(surface.shapes.bounds) & (surface.areas > 0) & np.isfinite(surface.noise)
        noise, areas = surface.noise[seen], surface.areas[seen]
        weight = np.sqrt(np.maximum(surface.values[seen], 1.0) * areas)
        unsure = surface.relative[seen] > ERROR_BREAKS[-1]
        if not unsure.any():
            return cls()
        west, south, east, north = (edge[seen] for edge in surface.shapes.bounds)
        paper = (east - west) * (north - south)
        pale = paper[unsure].sum() >= PALE_EVERYWHERE * paper.sum()
        if not pale and weight[unsure].sum() < UNSURE_EVERYWHERE * weight.sum():
            return cls()
        return cls.around(quantile(noise[unsure], areas[unsure], 0.5), unit)

    @classmethod
    def around(cls, middle: float, unit: str) -> "ErrorClasses":
        """Round breaks with this error in the middle class."""
        exponent = math.floor(math.log10(middle))
        steps = [float(f"{digit}e{power}") for power in range(exponent - 1, exponent + 3) for digit in (1, 2, 5)]
        first = max(place for place, step in enumerate(steps) if step <= middle)
        return cls(tuple(steps[first - 1 : first + 3]), unit)

    @property
    def question(self) -> str:
        """What the numbers are."""
        return (
            f"standard error per {known_area(self.breaks[-1], self.unit)[1]}"
            if self.unit
            else "standard error, as a share of the number"
        )

    def classes(self, surface: DensitySurface) -> NDArray[np.float64]:
        """The class of each cell: 0 is the surest."""
        if not self.unit:
            return error_classes(surface.relative)
        return np.searchsorted(np.array(self.breaks), surface.noise, side="left").astype(np.float64)

    def labels(self) -> list[str]:
        """What each class says."""
        if not self.unit:
            return error_labels()
        times, _ = known_area(self.breaks[-1], self.unit)
        names = [short(times * each) for each in self.breaks]
        between = [f"± {low}–{high}" for low, high in pairwise(names)]
        return [f"± {names[0]} or less", *between, f"over ± {names[-1]}"]


def known_area(largest: float, unit: str) -> tuple[float, str]:
    """How many times a density is so much of an area that people know for it, and the area: km², 1,000 km², hectares;
    of a plane larger squares.

    >>> known_area(0.01, "km²")
    (1000.0, '1,000 km²')
    >>> known_area(0.0005, "px²")
    (10000.0, '100 × 100 px')
    """
    if unit != "km²":  # of a plane
        side = next((10**power for power in range(5) if largest * 100**power >= SPARSE), 10**4)
        return float(side**2), unit if side == 1 else f"{side:,} × {side:,} {unit.removesuffix('²')}"
    if SPARSE <= largest <= CROWDED:
        return 1.0, unit
    return (1000.0, "1,000 km²") if largest < SPARSE else (0.01, "ha")


def error_classes(relative: NDArray[np.float64]) -> NDArray[np.float64]:
    """The class of each relative standard error: 0 is the surest, `len(ERROR_BREAKS)` is over 100 %.

    The classes are the same in all pictures, so that two pictures can be compared.

    >>> error_classes(np.array([0.05, 0.1, np.inf])).tolist()
    [0.0, 1.0, 4.0]
    """
    return np.searchsorted(np.array(ERROR_BREAKS), relative, side="left").astype(np.float64)


def error_colours(classes: NDArray[np.float64], steps: tuple[str, ...] = ERROR_COLOURS) -> Colours:
    """The colour of each class; the mean of several classes is rounded."""
    from matplotlib.colors import to_rgba_array

    table = np.rint(to_rgba_array(steps) * 255).astype(np.uint8)
    colours: Colours = table[np.rint(classes).astype(np.intp)]
    return colours


def error_palette(theme: Theme) -> Palette:
    """`error_colours` in those of a theme."""
    return partial(error_colours, steps=theme.errors)


def error_labels() -> list[str]:
    """What each class says."""
    percent = [f"{100 * b:g}" for b in ERROR_BREAKS]
    between = [f"± {low}–{high} %" for low, high in pairwise(percent)]
    return [f"± {percent[0]} % or less", *between, f"over ± {percent[-1]} %"]


def quantile(numbers: NDArray[np.float64], weights: NDArray[np.float64], share: float) -> float:
    """The number below which this share of the weight lies."""
    order = np.argsort(numbers, kind="stable")
    below = np.cumsum(weights[order])
    return float(numbers[order][np.searchsorted(below, share * below[-1])])


def short(value: float) -> str:
    """A number to two digits as a label: 0.5, 200, 1k, 53k, 2M."""
    rounded = float(f"{value:.2g}")
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if rounded >= size:
            return f"{rounded / size:g}{letter}"
    return f"{rounded:g}"


@lru_cache(maxsize=8)
def _table(steps: tuple[str, ...]) -> Colours:
    from matplotlib.colors import LinearSegmentedColormap

    even = LinearSegmentedColormap.from_list("density", steps, 1024)
    table: Colours = np.rint(even(np.linspace(0, 1, 1024)) * 255).astype(np.uint8)
    return table
