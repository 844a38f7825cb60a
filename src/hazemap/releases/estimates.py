"""Estimates from a map with their error bars: how many people are in a region, or outside of a picture."""

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hazemap.arrays import Floats
from hazemap.cellmap import CellMap, Spread
from hazemap.estimate.confidence_margins import checked_confidence, reach
from hazemap.estimate.cut_cell_uncertainty import held, placed
from hazemap.estimate.overdispersion import Overdispersion
from hazemap.releases.notebook_table import NotebookTable, ShownAsTable
from hazemap.releases.region_weights import Region

if TYPE_CHECKING:
    from hazemap.releases.map_release import Release


@dataclass(frozen=True)
class Estimate(ShownAsTable):
    """A number that noise was added to, and how far it may be from the truth.

    The true number is what the bounding rule left of everybody's rows, in the cells and the part of cells that were
    asked about: which of a person's rows it kept is not in the interval. `value` is the estimate: unbiased cells, of
    which those that the border of a region cuts count as far as the best guess has their people inside. `low` … `high`
    is an interval that holds the true number with probability `confidence`. It has the doubt of the noise and, where
    cells are cut, of where the people in them are (`hazemap.estimate.cut_cell_uncertainty`): whether a region is
    anywhere, or was chosen for the people in it. `stddev` is the standard error of both together for a region that is
    anywhere, so an interval may be much longer; `noise_stddev` and `placement_stddev` are that of each. `cut` people
    are in cut cells, by the best guess. `best` is what the picture shows; it may be shrunk or clamped, so it has no
    interval.

    >>> print(Estimate(12345.2, 66.8, 12214.3, 12476.1, 0.95, 12340.0, 310.0, "people"))
    12,345 ± 67 people (95 % interval 12,214 … 12,476)
    >>> print(Estimate(-0.01, 2.3, -5.01, 4.99, 0.95, 0.0, 0.0, "people"))
    0.0 ± 2.3 people (95 % interval -5.0 … 5.0)
    """

    value: float
    stddev: float
    low: float
    high: float
    confidence: float
    best: float
    cut: float
    counted: str
    placement_stddev: float = 0.0

    @property
    def noise_stddev(self) -> float:
        """The standard error of the noise alone."""
        return math.sqrt(max(self.stddev**2 - self.placement_stddev**2, 0.0))

    def to_json(self) -> dict[str, float | str]:
        """Everything as plain values."""
        return {**asdict(self), "noise_stddev": self.noise_stddev}

    def notebook_table(self) -> NotebookTable:
        """The number with its interval, and where its doubt is from."""
        digits = decimals(self.stddev)
        rows = [
            (f"{100 * self.confidence:.6g} % interval", f"{self.low:z,.{digits}f} … {self.high:z,.{digits}f}"),
            ("standard error", f"{self.stddev:,.{digits}f}"),
        ]
        if self.placement_stddev:
            rows.append(("… of the noise", f"{self.noise_stddev:,.{digits}f}"))
            rows.append(
                (f"… of where {self.cut:,.0f} {self.counted} in cut cells are", f"{self.placement_stddev:,.{digits}f}")
            )
        rows.append(("what the picture shows", f"{self.best:z,.{digits}f}"))
        return NotebookTable(f"{self.value:z,.{digits}f} {self.counted}", ("", ""), tuple(rows))

    def __str__(self) -> str:
        digits = decimals(self.stddev)
        value, low, high = (f"{number:z,.{digits}f}" for number in (self.value, self.low, self.high))
        return (
            f"{value} ± {self.stddev:,.{digits}f} {self.counted}"
            f" ({100 * self.confidence:.6g} % interval {low} … {high})"
        )


def decimals(stddev: float) -> int:
    """How many decimals a number deserves: two digits of its standard error.

    >>> decimals(66.8), decimals(3.21), decimals(0.0123)
    (0, 1, 3)
    """
    return max(0, 1 - math.floor(math.log10(stddev))) if 0 < stddev < math.inf else 0


def estimate(cellmap: CellMap, weights: Floats, counted: str, confidence: float, asymmetry: float = 0.0) -> Estimate:
    """What the map says of Σ weights · cells, all of them whole or averages; weights is float64[cells].

    `asymmetry` is what skewed noise adds to either margin of one cell (`report_intervals.asymmetry_margin`).

    Noise comes whole, so a margin is that of a whole number of people: ± 2.9 would be ± 2, which holds less often.
    """
    spread: Spread = cellmap.noise.of(weights)
    value = float(weights @ cellmap.unbiased)
    one = float(weights.max(initial=0.0)) or 1.0
    margin = math.ceil(float(reach(confidence, spread.kurtosis)) * spread.stddev / one + asymmetry) * one
    best = float(weights @ cellmap.values)
    return Estimate(value, spread.stddev, value - margin, value + margin, confidence, best, 0.0, counted)


def estimate_cut(
    cellmap: CellMap, parts: Floats, clumping: Overdispersion, counted: str, confidence: float, asymmetry: float = 0.0
) -> Estimate:
    """The same of cells of which only parts are inside, as guessed: float64[cells], some between 0 and 1.

    People come whole, so the interval ends at whole numbers. O(cells).
    """
    checked_confidence(confidence)
    spread: Spread = cellmap.noise.of(parts)
    value, best = float(parts @ cellmap.unbiased), float(parts @ cellmap.values)
    cut = np.flatnonzero((parts > 0) & (parts < 1))
    likely = np.maximum(cellmap.values, 0)
    people = likely[cut]
    many = held(people, cellmap.unbiased[cut], cellmap.stddev[cut])
    whole = float(likely[parts >= 1].sum()), float(likely[parts <= 0].sum())
    doubt = placed(parts[cut], many, clumping.at(many), spread, confidence, whole, cellmap.stddev[cut])
    low = float(math.floor(value + doubt.low - asymmetry))
    high = float(math.ceil(value + doubt.high + asymmetry))
    stddev = math.hypot(spread.stddev, doubt.stddev)
    return Estimate(value, stddev, low, high, confidence, best, float(people.sum()), counted, doubt.stddev)


def after_choosing(confidence: float, chosen: int, among: int) -> float:
    """How sure each interval must be for that part of the intervals of cells chosen for their numbers to hold.

    1 − (1 − confidence) · chosen/among: of intervals of independent numbers, however chosen, no more miss their truths
    than asked, on average (Benjamini and Yekutieli 2005, false coverage rate). At most 1 − 10⁻¹².

    >>> after_choosing(0.95, 10, 10), round(after_choosing(0.95, 10, 1000), 6)
    (0.95, 0.9995)
    """
    checked_confidence(confidence)
    return min(1 - (1 - confidence) * chosen / among, 1 - 1e-12) if chosen < among else confidence


def bounds(
    unbiased: Floats, stddev: Floats, kurtosis: float, confidence: float = 0.95, asymmetry: float = 0.0
) -> tuple[Floats, Floats]:
    """The interval of each cell on its own, of a whole number of people to either side; float64[cells] twice.

    `kurtosis` is the largest of any cell, and so is `asymmetry`, what skewed noise adds to a margin.
    """
    margin = np.ceil(reach(confidence, kurtosis, at_most=True) * stddev + asymmetry)
    return np.subtract(unbiased, margin), np.add(unbiased, margin)


@dataclass(frozen=True)
class PeopleOutside:
    """How many a release counts outside the map, and outside the part of it that a picture shows.

    `nowhere` is None where nobody outside was counted. `beyond` is None where a picture shows all of the map; else it
    counts who is elsewhere on the map and, where they were counted, who is outside it. `unknown` is what else can be
    said of those outside.
    """

    counted: str
    nowhere: Estimate | None
    beyond: Estimate | None = None
    unknown: str = "were not counted"

    @classmethod
    def of(cls, release: "Release", shown: Region | None = None, confidence: float = 0.95) -> "PeopleOutside":
        """From the release's own numbers, so at no price; `shown` is a region, or None for all of the map."""
        beyond = None if shown is None else release.beyond(shown, confidence)
        return cls(release.counted, release.outside_map(confidence), beyond, release.said_of_outside)

    def __str__(self) -> str:
        """One or two sentences."""
        unknown = f"{self.counted} outside the map {self.unknown}"
        if self.beyond is None:
            return (
                f"{unknown[:1].upper()}{unknown[1:]}."
                if self.nowhere is None
                else f"{_number(self.nowhere)} lie outside the map."
            )
        if self.nowhere is None:
            return f"{_number(self.beyond)} lie on the map, outside this picture; {unknown}."
        outside = str(self.nowhere).partition(" (")[0]
        return f"{_number(self.beyond)} lie outside this picture; of them {outside} outside the map."

    def to_json(self) -> dict[str, Any]:
        """For machines: estimates, or null."""
        return {
            "nowhere": self.nowhere and self.nowhere.to_json(),
            "beyond": self.beyond and self.beyond.to_json(),
            "said": str(self),
        }


def _number(found: Estimate) -> str:
    """As it is, below 0 too: whoever cut it off there would make every sum of such numbers too large."""
    return f"{found}{', below 0 by noise alone,' if str(found).startswith('-') else ''}"
