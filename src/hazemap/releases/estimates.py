"""Estimates from a map with their error bars: how many people are in a region, or outside of a picture."""

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hazemap.cellmap import CellMap, Spread
from hazemap.errors import InputError
from hazemap.estimate.confidence_margins import checked_confidence, leading, reach
from hazemap.estimate.cut_cell_uncertainty import held, placed
from hazemap.estimate.overdispersion import Overdispersion
from hazemap.files.number_text import noun
from hazemap.machine_code.arrays import Floats
from hazemap.releases.notebook_table import NotebookTable, ShownAsTable
from hazemap.releases.region_weights import Region

if TYPE_CHECKING:
    from hazemap.releases.map_release import Release


@dataclass(frozen=True)
class Estimate(ShownAsTable):
    """A number that noise was added to, and how far it may be from the truth.

    The true number is what the bounding rule left of everybody's rows, in the cells and the part of cells that were
    asked about: which of a person's rows it kept is not in the interval. `best_guess` leads: it is what the picture
    shows. `low` … `high` is an interval that holds the true number with probability `confidence`, and the best guess
    (`hazemap.estimate.confidence_margins`). It has the doubt of the noise and, where cells are cut, of where the people
    in them are (`hazemap.estimate.cut_cell_uncertainty`): whether a region is anywhere, or was chosen for the people in
    it. `unbiased` is for sums and means of many such numbers: unbiased cells, of which those that the border of a
    region cuts count as far as the best guess has their people inside. `stddev` is its standard error, of noise and
    placement together for a region that is anywhere, so an interval may be much longer; `noise_stddev` and
    `placement_stddev` are that of each. `cut` people are in cut cells, by the best guess.

    `InputError` for a best guess outside its own interval.

    >>> print(Estimate(12340.0, 12214.3, 12476.1, 0.95, "people", 12345.2, 66.8, 310.0))
    12,340 people (95 % interval 12,214 … 12,476)
    >>> print(Estimate(0.0, 0.0, 4.99, 0.95, "people", -0.01, 2.3))
    0.0 people (95 % interval 0.0 … 5.0)
    """

    best_guess: float
    low: float
    high: float
    confidence: float
    counted: str
    unbiased: float
    stddev: float
    cut: float = 0.0
    placement_stddev: float = 0.0

    def __post_init__(self) -> None:
        if not self.low <= self.best_guess <= self.high and not math.isnan(self.best_guess):
            raise InputError(f"a best guess of {self.best_guess:g} lies outside {self.low:g} … {self.high:g}")

    @property
    def noise_stddev(self) -> float:
        """The standard error of the noise alone."""
        return math.sqrt(max(self.stddev**2 - self.placement_stddev**2, 0.0))

    @property
    def said_of_noise(self) -> str:
        """The unbiased number and its standard error, in words."""
        digits = decimals(self.stddev)
        return f"The unbiased estimate is {self.unbiased:z,.{digits}f}, its standard error {self.stddev:,.{digits}f}."

    def to_json(self) -> dict[str, float | str]:
        """Everything as plain values."""
        return {**asdict(self), "noise_stddev": self.noise_stddev}

    def notebook_table(self) -> NotebookTable:
        """The number with its interval, and where its doubt is from."""
        digits = decimals(self.stddev)
        rows = [
            (f"{100 * self.confidence:.6g} % interval", f"{self.low:z,.{digits}f} … {self.high:z,.{digits}f}"),
            ("unbiased estimate", f"{self.unbiased:z,.{digits}f}"),
            ("standard error", f"{self.stddev:,.{digits}f}"),
        ]
        if self.placement_stddev:
            rows.append(("… of the noise", f"{self.noise_stddev:,.{digits}f}"))
            rows.append(
                (f"… of where {self.cut:,.0f} {self.counted} in cut cells are", f"{self.placement_stddev:,.{digits}f}")
            )
        return NotebookTable(f"{self.best_guess:z,.{digits}f} {self.counted}", ("", ""), tuple(rows))

    def __str__(self) -> str:
        digits = decimals(self.stddev)
        guess, low, high = (f"{number:z,.{digits}f}" for number in (self.best_guess, self.low, self.high))
        return f"{guess} {self.counted} ({100 * self.confidence:.6g} % interval {low} … {high})"


def decimals(stddev: float) -> int:
    """How many decimals a number deserves: two digits of its standard error.

    >>> decimals(66.8), decimals(3.21), decimals(0.0123)
    (0, 1, 3)
    """
    return max(0, 1 - math.floor(math.log10(stddev))) if 0 < stddev < math.inf else 0


def estimate(
    cellmap: CellMap,
    weights: Floats,
    counted: str,
    confidence: float,
    asymmetry: float = 0.0,
    most_kurtosis: float | None = None,
) -> Estimate:
    """What the map says of Σ weights · cells, all of them whole or averages; weights is float64[cells].

    `asymmetry` is what skewed noise adds to either margin of one cell (`report_intervals.asymmetry_margin`). With
    `most_kurtosis` the noise has at most this excess kurtosis; otherwise that of the sum is worked out.

    Noise comes whole, so a margin is that of a whole number of people: ± 2.9 would be ± 2, which holds less often.
    """
    spread: Spread = cellmap.noise.of(weights)
    value, best = float(weights @ cellmap.unbiased), float(weights @ cellmap.values)
    one = float(weights.max(initial=0.0)) or 1.0
    exact = most_kurtosis is None
    far = float(reach(confidence, spread.kurtosis if most_kurtosis is None else most_kurtosis, at_most=not exact))
    margin = math.ceil(far * spread.stddev / one + asymmetry) * one
    low, high = leading(best, value - margin, value + margin)
    return Estimate(best, float(low), float(high), confidence, counted, value, spread.stddev)


def estimate_cut(
    cellmap: CellMap,
    parts: Floats,
    best: float,
    clumping: Overdispersion,
    counted: str,
    confidence: float,
    asymmetry: float = 0.0,
) -> Estimate:
    """The same of cells of which only parts are inside, as guessed: float64[cells], some between 0 and 1.

    `best` is the best guess. People come whole, so the interval of the rest ends at whole numbers. O(cells).
    """
    checked_confidence(confidence)
    spread: Spread = cellmap.noise.of(parts)
    value = float(parts @ cellmap.unbiased)
    cut = np.flatnonzero((parts > 0) & (parts < 1))
    likely = np.maximum(cellmap.values, 0)
    people = likely[cut]
    many = held(people, cellmap.unbiased[cut], cellmap.stddev[cut])
    whole = float(likely[parts >= 1].sum()), float(likely[parts <= 0].sum())
    doubt = placed(parts[cut], many, clumping.at(many), spread, confidence, whole, cellmap.stddev[cut])
    low, high = leading(best, math.floor(value + doubt.low - asymmetry), math.ceil(value + doubt.high + asymmetry))
    stddev = math.hypot(spread.stddev, doubt.stddev)
    return Estimate(
        best, float(low), float(high), confidence, counted, value, stddev, float(people.sum()), doubt.stddev
    )


def after_choosing(confidence: float, chosen: int, among: int) -> float:
    """How sure each interval must be for that part of the intervals of cells chosen for their numbers to hold.

    1 − (1 − confidence) · chosen/among: of intervals of independent numbers, however chosen, no more miss their truths
    than asked, on average (Benjamini and Yekutieli 2005, false coverage rate). At most 1 − 10⁻¹².

    >>> after_choosing(0.95, 10, 10), round(after_choosing(0.95, 10, 1000), 6)
    (0.95, 0.9995)
    """
    checked_confidence(confidence)
    return min(1 - (1 - confidence) * chosen / among, 1 - 1e-12) if chosen < among else confidence


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
        unknown = f"{noun(self.counted)} outside the map {self.unknown}"
        if self.beyond is None:
            return (
                f"{unknown[:1].upper()}{unknown[1:]}."
                if self.nowhere is None
                else f"{_number(self.nowhere)} lie outside the map."
            )
        if self.nowhere is None:
            return f"{_number(self.beyond)} lie on the map, outside this picture; {unknown}."
        return f"{_number(self.beyond)} lie outside this picture; of them {self.nowhere} outside the map."

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
