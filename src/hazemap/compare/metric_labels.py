"""How a score is called, and in which unit it is shown."""

from dataclasses import dataclass


@dataclass(frozen=True)
class MetricLabel:
    """A column of results: the words of an axis, what it is multiplied by to be shown, and how a table writes it.

    >>> MEASURES["mre"].written(0.0058)
    '0.580'
    """

    score: str
    words: str
    short: str
    factor: float = 1.0
    form: str = ".3f"
    logarithmic: bool = True
    higher: bool = False

    def written(self, number: float) -> str:
        """As in a table; empty where nothing was measured."""
        return "" if number != number else format(number * self.factor, self.form)  # noqa: PLR0124 - NaN alone


_EVERY = (
    MetricLabel("mre", "mean relative error of random rectangles, %", "rectangles, %", 100),
    MetricLabel("mre_2", "mean relative error of squares of 2 % of the area, %", "2 % squares, %", 100),
    MetricLabel("mre_6", "mean relative error of squares of 6 % of the area, %", "6 % squares, %", 100),
    MetricLabel("mre_10", "mean relative error of squares of 10 % of the area, %", "10 % squares, %", 100),
    MetricLabel(
        "unbiased_mre", "mean relative error of random rectangles, unbiased numbers, %", "rectangles, unbiased, %", 100
    ),
    MetricLabel("l1", "L1 of the density (0 to 2)", "L1"),
    MetricLabel("l2", "L2 of the density", "L2", form=".4f"),
    MetricLabel("mse", "MSE of the density, 10⁻¹²", "MSE, 10⁻¹²", 1e12, ".3g"),
    MetricLabel("kl", "Kullback–Leibler divergence, nats", "KL, nats"),
    MetricLabel("similarity", "similarity (1 is best)", "similarity", logarithmic=False, higher=True),
    MetricLabel("pearson", "Pearson’s correlation (1 is best)", "Pearson", logarithmic=False, higher=True),
    MetricLabel("emd", "earth mover’s distance (L1, side of the map = 1)", "EMD, sides of the map", form=".4f"),
    MetricLabel("heat_similarity", "similarity of heatmaps (1 is best)", "similarity", logarithmic=False, higher=True),
    MetricLabel(
        "heat_pearson", "Pearson’s correlation of heatmaps (1 is best)", "Pearson", logarithmic=False, higher=True
    ),
    MetricLabel("heat_kl", "Kullback–Leibler divergence of heatmaps, nats", "KL, nats"),
    MetricLabel("seconds", "CPU seconds of a release", "CPU s", form=".3g"),
    MetricLabel("numbers", "numbers that a device sends in all rounds", "numbers", form=",.0f"),
    MetricLabel("bytes", "bytes that a device sends in all rounds", "bytes", form=",.0f"),
    MetricLabel("rounds", "rounds", "rounds", form=".0f", logarithmic=False),
    MetricLabel("peak_mb", "memory that the process had at most by then, MB", "MB, at most", form=",.0f"),
    MetricLabel("cells", "cells", "cells", form=",.0f"),
    MetricLabel("mae", "mean absolute error, in the unit of the value", "MAE"),
    MetricLabel("mae_part", "mean absolute error, % of the range of the value", "MAE, % of the range", 100),
    MetricLabel("noise", "standard deviation of the noise", "σ of the noise"),
    MetricLabel("length", "length of the arrays, m", "m", form=",.0f"),
    MetricLabel("worst", "largest worst-case error, in the unit of the value", "worst case"),
    MetricLabel("price", "what the release costs a person, K·ε", "K·ε", form=".3g"),
    MetricLabel("factor", "the cells that a person pays for, K", "K", form=",.0f"),
    MetricLabel("left_out", "pairs of a person and a cell that are left out", "left out", form=",.0f"),
    MetricLabel("cdf", "ℓ₂ error of the distribution, 10⁻³ (root mean square over the bins)", "ℓ₂ error, 10⁻³", 1e3),
)
MEASURES = {measure.score: measure for measure in _EVERY}
"""Every score that tables and figures show."""
