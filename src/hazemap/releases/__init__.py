"""Published files: numbers, error bars, statement and transcript, and the questions they answer."""

import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from hazemap.releases.base_release import AnyPath, BaseRelease
from hazemap.releases.geoparquet import HoldsAnswers

if TYPE_CHECKING:
    from hazemap.releases.estimates import Estimate
    from hazemap.releases.k_median_centres import Centres
    from hazemap.releases.map_release import Release
    from hazemap.releases.marked_release import MarkedRelease
    from hazemap.releases.marked_timed_release import MarkedTimedRelease
    from hazemap.releases.statistics_release import Statistics
    from hazemap.releases.timed_release import TimedRelease

__all__ = [
    "Centres",
    "Estimate",
    "MarkedRelease",
    "MarkedTimedRelease",
    "Release",
    "Statistics",
    "TimedRelease",
    "check_columns",
    "check_whole",
    "is_kind",
    "open_release",
]

_HOME = {
    "Centres": "hazemap.releases.k_median_centres",
    "Estimate": "hazemap.releases.estimates",
    "MarkedRelease": "hazemap.releases.marked_release",
    "MarkedTimedRelease": "hazemap.releases.marked_timed_release",
    "Release": "hazemap.releases.map_release",
    "Statistics": "hazemap.releases.statistics_release",
    "StudyAnswers": "hazemap.federated.study.study_answers",
    "TimedRelease": "hazemap.releases.timed_release",
}


def __getattr__(name: str) -> Any:
    """A kind of release, from the module it lives in: who asks a map a question need not load the others."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def is_kind(release: object, name: str) -> bool:
    """Whether a release is of a kind, by its public name: of one whose module nobody loaded there is none."""
    home = sys.modules.get(_HOME[name])
    return home is not None and isinstance(release, getattr(home, name))


def open_release(path: AnyPath) -> "Release | Statistics | Any":
    """The map, the statistics or the answers of a study in a file; `FileError` for a foreign, damaged or newer file.

    Answers of a study are a `StudyAnswers`, whose module is imported for them alone.
    """
    try:
        return open_cells(path)
    except HoldsAnswers:
        return import_module(_HOME["StudyAnswers"]).StudyAnswers.open(path)


def open_cells(path: AnyPath) -> "Release | Statistics":
    """The map or the statistics in a file; `FileError` for any other."""
    return cast("Release | Statistics", BaseRelease.open(path))


def check_whole(path: AnyPath) -> None:
    """Read every byte of a file, also what no question needs; `FileError` unless it is what was published."""
    from hazemap.releases import geoparquet

    open_release(path)
    if geoparquet.is_parquet(Path(path)):
        geoparquet.check(Path(path))


def check_columns(release: "BaseRelease", path: AnyPath) -> None:
    """Compare every column of its file with what follows from a release; `TranscriptMismatch` where one differs."""
    from hazemap.releases import derived_columns, geoparquet

    if geoparquet.is_parquet(Path(path)):
        derived_columns.compare(release, Path(path))
