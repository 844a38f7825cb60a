"""Labels of what only the experiments of papers measure: heatmaps, devices, statistics of values."""

from hazemap.lab.compare.map_scores import MEASURES, MetricLabel

_OWN = (
    MetricLabel("heat_similarity", "similarity of heatmaps (1 is best)", "similarity", logarithmic=False, higher=True),
    MetricLabel(
        "heat_pearson", "Pearson’s correlation of heatmaps (1 is best)", "Pearson", logarithmic=False, higher=True
    ),
    MetricLabel("heat_kl", "Kullback–Leibler divergence of heatmaps, nats", "KL, nats"),
    MetricLabel("negative", "cells whose number is below 0, %", "negative, %", 100, form=".2f", plain=True),
    MetricLabel("with_queries", "CPU seconds of a release and 200 rectangles", "CPU s with 200 rectangles"),
    MetricLabel("numbers", "numbers that a device sends in all rounds", "numbers", form=",.0f", plain=True),
    MetricLabel("bytes", "bytes that a device sends in all rounds", "bytes", form=",.0f", plain=True),
    MetricLabel("rounds", "rounds", "rounds", form=".0f", logarithmic=False, plain=True),
    MetricLabel("peak_mb", "memory that the process had at most by then, MB", "MB, at most", form=",.0f", plain=True),
    MetricLabel("mae", "mean absolute error, in the unit of the value", "MAE"),
    MetricLabel("mae_part", "mean absolute error, % of the range of the value", "MAE, % of the range", 100),
    MetricLabel("noise", "standard deviation of the noise", "σ of the noise"),
    MetricLabel("length", "length of the arrays, m", "m", form=",.0f", plain=True),
    MetricLabel("worst", "largest worst-case error, in the unit of the value", "worst case"),
    MetricLabel("price", "what the release costs a person, K·ε", "K·ε", form=".3g"),
    MetricLabel("factor", "the cells that a person pays for, K", "K", form=",.0f", plain=True),
    MetricLabel("left_out", "pairs of a person and a cell that are left out", "left out", form=",.0f", plain=True),
    MetricLabel("cdf", "ℓ₂ error of the distribution, 10⁻³ (root mean square over the bins)", "ℓ₂ error, 10⁻³", 1e3),
)
MEASURES.update({label.score: label for label in _OWN})
