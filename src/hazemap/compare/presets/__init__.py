"""Comparisons that have names: one file for each paper."""

from hazemap.compare.presets import heatmaps, htf
from hazemap.compare.presets import user_level as users
from hazemap.compare.presets.federated import FEDERATED
from hazemap.compare.presets.gallery import GALLERY
from hazemap.compare.presets.preset import Preset
from hazemap.compare.presets.quick import QUICK
from hazemap.errors import InputError

PRESETS: dict[str, Preset] = {
    preset.name: preset for preset in (QUICK, *htf.PRESETS, *heatmaps.PRESETS, *users.PRESETS, GALLERY, FEDERATED)
}
"""Every comparison that has a name."""


def preset_named(name: str) -> Preset:
    """The comparison of this name."""
    if name not in PRESETS:
        raise InputError(f"there is no comparison {name!r}; there are {', '.join(PRESETS)}")
    return PRESETS[name]


__all__ = ["PRESETS", "Preset", "preset_named"]
