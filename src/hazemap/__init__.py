"""Publish where people are without publishing anyone.

    >>> import hazemap                                                          # doctest: +SKIP
    >>> release = hazemap.release("visits.parquet", person="user", epsilon=1)   # doctest: +SKIP
    >>> print(release.count(hazemap.Box(-74.02, 40.70, -73.93, 40.80)))         # doctest: +SKIP

Everything public is here, and is imported when it is first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from hazemap.algorithms import (
        HTF,
        Adaptive,
        AdaptiveGrid,
        AdaptiveHierarchicalHistogram,
        DensePyramid,
        FittedLevel,
        Flat,
        HTFPlus,
        LocateBox,
        NamedMethod,
        PrivateBoundingBox,
        PrivTree,
        PublishedPyramid,
        Pyramid,
        TreesWithinDistricts,
        UniformGrid,
    )
    from hazemap.cellmap import CellMap, Reading
    from hazemap.cells import Leaves
    from hazemap.encoders import Counts
    from hazemap.engines.memory import MemoryTable
    from hazemap.errors import HazemapError
    from hazemap.execution.crash_recovery import Recoverable, recover, recoverable
    from hazemap.execution.scheduled_releases import ScheduleStatus, run_schedule, schedule_series, schedule_status
    from hazemap.federated.study.study import Study
    from hazemap.federated.study.study_answers import StudyAnswers
    from hazemap.planning.release_plan import plan
    from hazemap.planning.statistics_plan import plan_stats
    from hazemap.privacy.budget import ZCDP, ApproxDP, PureDP
    from hazemap.privacy.ledger import Ledger
    from hazemap.privacy.privacy_unit import Unit
    from hazemap.privacy.statement import Statement
    from hazemap.publish import release, run_release, run_stats, stats
    from hazemap.queries.algorithm_session import Session, Unrecorded, replay, run, run_async
    from hazemap.queries.noisy_queries import Answer, Query
    from hazemap.readers.csv_files import CsvDialect
    from hazemap.readers.open_table import open_table
    from hazemap.releases import (
        Estimate,
        MarkedRelease,
        MarkedTimedRelease,
        Release,
        Statistics,
        TimedRelease,
    )
    from hazemap.releases import open_release as open  # noqa: A004
    from hazemap.releases.release_series import ReleaseSeries
    from hazemap.spatial.bounding_box import Box
    from hazemap.spatial.district_layers import DistrictLayer
    from hazemap.spatial.districts import Districts
    from hazemap.spatial.h3_hexagons import Hexagons
    from hazemap.spatial.plane import PlaneBox
    from hazemap.spatial.quadtree import Quadtree
    from hazemap.spatial.rectangle_trees import BinaryPartition, TwoLevelGrid
    from hazemap.spatial.subdivided_districts import DistrictQuadtree
    from hazemap.specs.release_spec import ReleaseSpec
    from hazemap.specs.schedule_spec import ScheduleSpec
    from hazemap.specs.statistics_spec import StatisticsSpec
    from hazemap.specs.table_spec import TableSpec
    from hazemap.tables.contribution_bounding import AtMostCells, AtMostRows, OneVote, Outside, RowIsPerson
    from hazemap.trust.curator import Curator

__all__ = [
    "HTF",
    "ZCDP",
    "Adaptive",
    "AdaptiveGrid",
    "AdaptiveHierarchicalHistogram",
    "Answer",
    "ApproxDP",
    "AtMostCells",
    "AtMostRows",
    "BinaryPartition",
    "Box",
    "CellMap",
    "Counts",
    "CsvDialect",
    "Curator",
    "DensePyramid",
    "DistrictLayer",
    "DistrictQuadtree",
    "Districts",
    "Estimate",
    "FittedLevel",
    "Flat",
    "HTFPlus",
    "HazemapError",
    "Hexagons",
    "Leaves",
    "Ledger",
    "LocateBox",
    "MarkedRelease",
    "MarkedTimedRelease",
    "MemoryTable",
    "NamedMethod",
    "OneVote",
    "Outside",
    "PlaneBox",
    "PrivTree",
    "PrivateBoundingBox",
    "PublishedPyramid",
    "PureDP",
    "Pyramid",
    "Quadtree",
    "Query",
    "Reading",
    "Recoverable",
    "Release",
    "ReleaseSeries",
    "ReleaseSpec",
    "RowIsPerson",
    "ScheduleSpec",
    "ScheduleStatus",
    "Session",
    "Statement",
    "Statistics",
    "StatisticsSpec",
    "Study",
    "StudyAnswers",
    "TableSpec",
    "TimedRelease",
    "TreesWithinDistricts",
    "TwoLevelGrid",
    "UniformGrid",
    "Unit",
    "Unrecorded",
    "open",
    "open_table",
    "plan",
    "plan_stats",
    "recover",
    "recoverable",
    "release",
    "replay",
    "run",
    "run_async",
    "run_release",
    "run_schedule",
    "run_stats",
    "schedule_series",
    "schedule_status",
    "stats",
]

_HOMES: dict[str, tuple[str, ...]] = {
    "algorithms": (
        *("Adaptive", "AdaptiveGrid", "DensePyramid", "FittedLevel", "Flat"),
        *("HTF", "HTFPlus", "LocateBox"),
        *(
            "AdaptiveHierarchicalHistogram",
            "NamedMethod",
            "PrivTree",
            "PrivateBoundingBox",
        ),
        *("PublishedPyramid", "Pyramid", "TreesWithinDistricts", "UniformGrid"),
    ),
    "cellmap": ("CellMap", "Reading"),
    "cells": ("Leaves",),
    "encoders": ("Counts",),
    "engines.memory": ("MemoryTable",),
    "errors": ("HazemapError",),
    "execution.crash_recovery": ("Recoverable", "recover", "recoverable"),
    "execution.scheduled_releases": ("ScheduleStatus", "run_schedule", "schedule_series", "schedule_status"),
    "planning.release_plan": ("plan",),
    "planning.statistics_plan": ("plan_stats",),
    "privacy.budget": ("ApproxDP", "PureDP", "ZCDP"),
    "privacy.ledger": ("Ledger",),
    "privacy.privacy_unit": ("Unit",),
    "privacy.statement": ("Statement",),
    "publish": ("release", "run_release", "run_stats", "stats"),
    "queries.noisy_queries": ("Answer", "Query"),
    "readers.csv_files": ("CsvDialect",),
    "readers.open_table": ("open_table",),
    "releases": (
        "Estimate",
        "MarkedRelease",
        "MarkedTimedRelease",
        "Release",
        "Statistics",
        "TimedRelease",
    ),
    "releases.release_series": ("ReleaseSeries",),
    "queries.algorithm_session": ("Session", "Unrecorded", "replay", "run", "run_async"),
    "spatial.bounding_box": ("Box",),
    "spatial.plane": ("PlaneBox",),
    "spatial.district_layers": ("DistrictLayer",),
    "spatial.subdivided_districts": ("DistrictQuadtree",),
    "spatial.districts": ("Districts",),
    "spatial.h3_hexagons": ("Hexagons",),
    "spatial.quadtree": ("Quadtree",),
    "spatial.rectangle_trees": ("BinaryPartition", "TwoLevelGrid"),
    "specs.release_spec": ("ReleaseSpec",),
    "specs.schedule_spec": ("ScheduleSpec",),
    "specs.statistics_spec": ("StatisticsSpec",),
    "specs.table_spec": ("TableSpec",),
    "federated.study.study": ("Study",),
    "federated.study.study_answers": ("StudyAnswers",),
    "tables.contribution_bounding": ("AtMostCells", "AtMostRows", "OneVote", "Outside", "RowIsPerson"),
    "trust.curator": ("Curator",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """A public name, from the module it lives in."""
    if name == "open":
        value = import_module("hazemap.releases").open_release
    elif name in _HOME:
        value = getattr(import_module(f"hazemap.{_HOME[name]}"), name)
    else:
        raise AttributeError(f"module 'hazemap' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
