"""Maps from devices behind secure sums: error against what a device sends, and a million devices in one process."""

from fractions import Fraction
from typing import TYPE_CHECKING

from hazemap.lab.compare.charts import BANDS, GREEN, RED, ChartPanel, Curve, PlotStyle, draw_curves
from hazemap.lab.compare.map_scores import MEASURES
from hazemap.lab.compare.practices import ADAPTIVE, PREFIX, Method
from hazemap.lab.compare.presets import Preset
from hazemap.lab.compare.results import Results
from research.compare.device_trials import DeviceSample, DeviceSetting

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PEOPLE = 100_000
C0 = ("0.8", "0.4", "0.2", "0.1", "0.05", "0.025")
NUMBERS = (400, 600, 900, 1_300, 2_000, 3_000, 4_500, None)
LEVELS = range(5, 10)
NO_PRIVACY = "a grid of one sample, no privacy"

PUBLISHED = tuple(PREFIX.but(people=PEOPLE, c0=Fraction(c0)) for c0 in C0)
OURS = tuple(ADAPTIVE.but(most_numbers=most) for most in NUMBERS)
MILLION = DeviceSetting(people=1_000_000, lost=Fraction(12, 100), dropping=Fraction(1, 10))


def draw_numbers(results: Results) -> "Figure":
    """MSE of the density of the city against the numbers that a device sends in all rounds."""
    here, curves = results.where(map="city", set_people=PEOPLE), []
    for name, column, mark in (
        (PREFIX.name, "set_c0", PlotStyle(RED, "o", "--")),
        (ADAPTIVE.name, "set_most_numbers", PlotStyle(GREEN, "s", "-", strong=True)),
    ):
        own = here.where(method=name)
        parts = [own.where(**{column: value}) for value in (*own.named(column), None)]
        points = [(part.mean("numbers").mean, part.mean("mse")) for part in parts if len(part.frame)]
        curves.append(Curve(name, sorted(points), mark))
    grids = here.where(method=NO_PRIVACY)
    floor = min((grids.where(at=level).mean("mse") for level in grids.named("at")), key=lambda mean: mean.mean)
    panel = ChartPanel(
        "100,000 people a round, shards of 10,000, ε = 1",
        curves,
        MEASURES["mse"],
        "numbers a device sends in all rounds",
        [("the best grid of one sample, no privacy", floor)],
        ticks=(300, 1_000, 3_000, 10_000),
    )
    caption = (
        f"{MEASURES['mse'].words}. c₀ of the prefix tree and the limit on the adaptive tree’s numbers vary. {BANDS}"
    )
    return draw_curves([panel], title="A map of the city from devices", caption=caption, columns=1)


def _grid(level: int) -> Method:
    return Method(NO_PRIVACY, f"flat:{level}").placed(level)


_SCORES = ("mse", "l1", "numbers", "bytes", "rounds", "cells", "seconds", "peak_mb")

FEDERATED = Preset(
    "federated",
    "maps from people's devices behind secure sums, ε = 1: error against what a device sends",
    ("city",),
    (*PUBLISHED, *OURS),
    ("1",),
    10,
    _SCORES,
    (DeviceSetting(people=PEOPLE),),
    (("federated", draw_numbers),),
    """In every round people are drawn afresh, in shards of 10,000. Numbers and bytes are what a device sends that is
    asked in every round. Errors are of the density against that of all people. The prefix tree is the published method
    (Bagdasaryan et al. 2022) with its calibration c₀; the adaptive tree is ours, with at most so many numbers; a grid
    of one sample has no privacy at all. New York is asked for a million people a round; one in ten falls silent.""",
    more=(
        Preset("", "", ("city",), tuple(map(_grid, LEVELS)), ("1",), 3, (), (DeviceSample(PEOPLE),)),
        Preset("", "", ("new-york",), (ADAPTIVE,), ("1",), 1, (), (MILLION,)),
    ),
    title="Error against what a device sends",
)
