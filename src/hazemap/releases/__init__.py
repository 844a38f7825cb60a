"""Published files: numbers, error bars, statement and transcript, and the questions they answer."""

from typing import cast

from hazemap.releases.base_release import AnyPath, BaseRelease
from hazemap.releases.estimates import Estimate
from hazemap.releases.k_median_centres import Centres
from hazemap.releases.map_release import Release
from hazemap.releases.marked_release import MarkedRelease
from hazemap.releases.statistics_release import Statistics
from hazemap.releases.study_answers import StudyAnswers, holds_answers
from hazemap.releases.timed_release import TimedRelease

__all__ = [
    "Centres",
    "Estimate",
    "MarkedRelease",
    "Release",
    "Statistics",
    "StudyAnswers",
    "TimedRelease",
    "open_release",
]


def open_release(path: AnyPath) -> Release | Statistics | StudyAnswers:
    """The map, the statistics or the answers of a study in a file; `FileError` for a foreign, damaged or newer file."""
    return StudyAnswers.open(path) if holds_answers(path) else open_cells(path)


def open_cells(path: AnyPath) -> Release | Statistics:
    """The map or the statistics in a file; `FileError` for any other."""
    return cast(Release | Statistics, BaseRelease.open(path))
