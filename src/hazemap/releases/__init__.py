"""Published files: numbers, error bars, statement and transcript, and the questions they answer."""

from typing import cast

from hazemap.releases.base_release import AnyPath, BaseRelease
from hazemap.releases.estimates import Estimate
from hazemap.releases.k_median_centres import Centres
from hazemap.releases.map_release import Release
from hazemap.releases.statistics_release import Statistics

__all__ = ["Centres", "Estimate", "Release", "Statistics", "open_release"]


def open_release(path: AnyPath) -> Release | Statistics:
    """The map or the statistics in a file; `FileError` for a foreign, damaged or newer file."""
    return cast(Release | Statistics, BaseRelease.open(path))
