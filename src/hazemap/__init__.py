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
        HB,
        HTF,
        Adaptive,
        AdaptiveGrid,
        BestLevel,
        CountMin,
        DensePyramid,
        FittedLevel,
        Flat,
        FoundBox,
        Geometric,
        Hierarchical,
        HTFPlus,
        KDTree,
        LaplaceClip,
        Locate,
        National,
        PrefixTree,
        Privlet,
        PrivTree,
        PublishedPyramid,
        Pyramid,
        TopCells,
        UniformGrid,
    )
    from hazemap.cellmap import CellMap, Reading
    from hazemap.cells import Leaves
    from hazemap.domains import Box, Cuts, Districts, Grids, Hexagons, Layer, Parcels, Quadtree
    from hazemap.encoders import Counts
    from hazemap.errors import HazemapError
    from hazemap.planning.plan import plan
    from hazemap.planning.stats_plan import plan_stats
    from hazemap.privacy.budget import ZCDP, ApproxDP, PureDP
    from hazemap.privacy.ledger import Ledger
    from hazemap.privacy.statement import Statement
    from hazemap.privacy.unit import Unit
    from hazemap.publish import release, run_release, run_stats, stats
    from hazemap.releases import Estimate, Release, Statistics
    from hazemap.rounds import Answer, Query
    from hazemap.runs.recover import Recoverable, recover, recoverable
    from hazemap.session import Session, Unrecorded, replay, run, run_async
    from hazemap.specs.release import ReleaseSpec
    from hazemap.specs.statistics import StatisticsSpec
    from hazemap.specs.table import TableSpec
    from hazemap.tables import (
        AtMostCells,
        AtMostRows,
        CsvDialect,
        MemoryTable,
        OneVote,
        Outside,
        RowIsPerson,
        open_table,
    )
    from hazemap.trust import Curator

    open = Release.open  # noqa: A001 - `hazemap.open(file)` is how people say it

__all__ = [
    "HB",
    "HTF",
    "ZCDP",
    "Adaptive",
    "AdaptiveGrid",
    "Answer",
    "ApproxDP",
    "AtMostCells",
    "AtMostRows",
    "BestLevel",
    "Box",
    "CellMap",
    "CountMin",
    "Counts",
    "CsvDialect",
    "Curator",
    "Cuts",
    "DensePyramid",
    "Districts",
    "Estimate",
    "FittedLevel",
    "Flat",
    "FoundBox",
    "Geometric",
    "Grids",
    "HTFPlus",
    "HazemapError",
    "Hexagons",
    "Hierarchical",
    "KDTree",
    "LaplaceClip",
    "Layer",
    "Leaves",
    "Ledger",
    "Locate",
    "MemoryTable",
    "National",
    "OneVote",
    "Outside",
    "Parcels",
    "PrefixTree",
    "PrivTree",
    "Privlet",
    "PublishedPyramid",
    "PureDP",
    "Pyramid",
    "Quadtree",
    "Query",
    "Reading",
    "Recoverable",
    "Release",
    "ReleaseSpec",
    "RowIsPerson",
    "Session",
    "Statement",
    "Statistics",
    "StatisticsSpec",
    "TableSpec",
    "TopCells",
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
    "run_stats",
    "stats",
]

_HOMES = {
    "algorithms": (
        *("HB", "HTF", "HTFPlus", "Adaptive", "AdaptiveGrid", "BestLevel", "CountMin", "DensePyramid", "FittedLevel"),
        *("Flat", "FoundBox", "Geometric", "Hierarchical", "KDTree", "LaplaceClip", "Locate", "National"),
        *("PrefixTree", "PrivTree", "Privlet", "PublishedPyramid", "Pyramid", "TopCells", "UniformGrid"),
    ),
    "cellmap": ("CellMap", "Reading"),
    "cells": ("Leaves",),
    "domains": ("Box", "Cuts", "Districts", "Grids", "Hexagons", "Layer", "Parcels", "Quadtree"),
    "encoders": ("Counts",),
    "errors": ("HazemapError",),
    "planning.plan": ("plan",),
    "planning.stats_plan": ("plan_stats",),
    "privacy.budget": ("ApproxDP", "PureDP", "ZCDP"),
    "privacy.ledger": ("Ledger",),
    "privacy.statement": ("Statement",),
    "privacy.unit": ("Unit",),
    "publish": ("release", "run_release", "run_stats", "stats"),
    "releases": ("Estimate", "Release", "Statistics"),
    "rounds": ("Answer", "Query"),
    "runs.recover": ("Recoverable", "recover", "recoverable"),
    "session": ("Session", "Unrecorded", "replay", "run", "run_async"),
    "specs.release": ("ReleaseSpec",),
    "specs.statistics": ("StatisticsSpec",),
    "specs.table": ("TableSpec",),
    "tables": (
        "AtMostCells",
        "AtMostRows",
        "CsvDialect",
        "MemoryTable",
        "OneVote",
        "Outside",
        "RowIsPerson",
        "open_table",
    ),
    "trust": ("Curator",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """A public name, from the module it lives in."""
    if name == "open":
        value = __getattr__("Release").open
    elif name in _HOME:
        value = getattr(import_module(f"hazemap.{_HOME[name]}"), name)
    else:
        raise AttributeError(f"module 'hazemap' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
