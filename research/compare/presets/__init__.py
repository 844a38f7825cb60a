"""Comparisons on evaluation data: one file for each paper."""

from dataclasses import replace

from hazemap.lab.compare.presets import QUICK, TODAY, Preset
from research.compare import metric_labels  # noqa: F401 - adds them
from research.compare.evaluation_datasets import HISTOGRAMS
from research.compare.presets import heatmaps, htf, strange, user_level
from research.compare.presets.federated import FEDERATED
from research.compare.presets.gallery import GALLERY

QUICK_PUBLIC = replace(
    QUICK,
    what="every method on the city and on five public histograms, ε 0.1, 0.3, 0.5",
    maps=("city", *HISTOGRAMS),
)
"""The quick comparison, on the maps that papers use."""

PRESETS: dict[str, Preset] = {
    preset.name: preset
    for preset in (
        QUICK_PUBLIC,
        TODAY,
        *htf.PRESETS,
        *heatmaps.PRESETS,
        *user_level.PRESETS,
        *strange.PRESETS,
        GALLERY,
        FEDERATED,
    )
}
"""Every comparison that has a name."""
