"""What a caller orders: understood and checked before anything is paid, and put into words for the statement."""

import os
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hazemap import __version__
from hazemap.algorithms import FittedLevel, FoundBox
from hazemap.algorithms.found_box import Grid
from hazemap.domains import Box, Quadtree
from hazemap.errors import FileError, InputError
from hazemap.orders.spelling import DistrictFiles, Hexes, Squares
from hazemap.orders.spelling import bounding as spelled_bounding
from hazemap.orders.ways import BUYS_NUMBER, FIXED, HALVING
from hazemap.privacy.budget import Budget, PureDP
from hazemap.privacy.statement import A_PERSON, A_ROW, Statement
from hazemap.tables.bounding import Bounding, OneVote, RowIsPerson

SUFFIXES = (".parquet", ".tif")

ASSUMPTIONS = (
    "the curator sees every row, keeps the table and the noise to itself, and uses the system's randomness",
    "the table gives each person one id",
    "nobody who reads the release also watches the run (its time, its memory)",
)


@dataclass(frozen=True)
class Order:
    """A map that somebody wants, all of it public. `since <= time < until`; `value` is the column of weights.

    >>> from hazemap.tables.bounding import AtMostRows
    >>> order = Order("nyc", PureDP(1), AtMostRows(1), "flat:8", Squares(8), None, "2026-01-01", None, None)
    >>> order.statement().public[-2]
    'the time: from 2026-01-01'
    """

    dataset: str
    budget: Budget
    bounding: Bounding
    method: str
    cells: Squares | Hexes | DistrictFiles
    box: Box | None
    since: str | None
    until: str | None
    value: str | None

    def statement(self) -> Statement:
        """What a map that is made now promises to the people in it."""
        window = [f"{word} {time}" for word, time in (("from", self.since), ("until before", self.until)) if time]
        borders = isinstance(self.cells, DistrictFiles)
        public = [
            f"the box {self.box}, as declared" if self.box else "",
            f"the cells: {self.cells}",
            f"the method: {self.method}, with the parameters in the file",
            f"the time: {' '.join(window)}" if window else "",
            f"the weight of a row: its {self.value!r}" if self.value else "",
            "the names and types of the table's columns",
        ]
        charged = [
            "" if self.box or borders else "the box, found by two coarse grids of the world",
            "the number of people" if self.method in BUYS_NUMBER else "",
            "" if self.method.partition(":")[0] in FIXED else "how fine the cells are",
            "where the cells are cut, chosen by permute-and-flip" if self.method in HALVING else "",
            "which districts are cut further, and where" if self.method.startswith("national") else "",
            "every number in the cells",
        ]
        return Statement(
            dataset=self.dataset,
            unit=A_ROW if isinstance(self.bounding, RowIsPerson) else A_PERSON,
            neighbours="one of them added or removed",
            budget=self.budget,
            bounding=self.bounding,
            trust="curator",
            assumptions=ASSUMPTIONS,
            noise="discrete Laplace" if isinstance(self.budget, PureDP) else "discrete Gaussian",
            public=tuple(filter(None, public)),
            charged=tuple(filter(None, charged)),
            method=f"{self.method}, {self.cells}",
            created=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
            version=__version__,
        )


def named_after(source: Any) -> str:
    """The data set that a source belongs to, unless somebody says otherwise: its file's or folder's name.

    >>> named_after("data/nyc.csv.gz"), named_after("trips/*.parquet"), named_after([])
    ('nyc', 'trips', 'memory')
    """
    if not isinstance(source, str | os.PathLike):
        return "memory"
    parts = [part for part in Path(source).absolute().parts if not set("*?[") & set(part)]
    return parts[-1].lstrip(".").partition(".")[0] or "memory"


def rule_of(bounding: Bounding | str, person: str | None, value: str | None, outside: str) -> Bounding:
    """The bounding rule in force; `InputError` where it contradicts the columns that were named."""
    if outside not in ("drop", "count"):
        raise InputError(f"rows outside the map are dropped or counted: say drop or count, not {outside!r}")
    rule = spelled_bounding(bounding) if isinstance(bounding, str) else bounding
    if isinstance(rule, RowIsPerson) and person is not None:
        raise InputError(
            f"each row is a person of its own, and the column {person!r} names the person: it can only be one of them"
        )
    if value is not None and not isinstance(rule, OneVote):
        raise InputError(f"the column {value!r} weighs rows, but with {rule} rows have no weight: choose 'one vote'")
    return replace(rule, nowhere=True) if outside == "count" else rule


def free_place(path: Path, source: Any, overwrite: bool, algorithm: object) -> Path:
    """Where the file will be; whatever would keep it from being there is found out now, before anything is paid."""
    if path.suffix.lower() not in SUFFIXES:
        raise FileError(f"a release is a file that ends in {' or '.join(SUFFIXES)}; found {path.name!r}")
    inner = algorithm.method if isinstance(algorithm, FoundBox) else algorithm
    if path.suffix.lower() == ".tif" and not (
        isinstance(inner, Grid | FittedLevel) and isinstance(inner.tree, Quadtree)
    ):
        raise FileError(
            "a .tif holds a regular grid of squares: ask for the method flat, fitted-level, hierarchical or geometric, "
            "or for a .parquet"
        )
    if not path.parent.is_dir():
        raise FileError(f"there is no folder {path.parent} to write {path.name} to: make it first")
    if not os.access(path.parent, os.W_OK | os.X_OK) or path.is_dir():
        raise FileError(f"{path} cannot be written: choose a file in a folder that you may write to")
    if path.exists():
        if isinstance(source, str | os.PathLike) and Path(source).exists() and path.samefile(source):
            raise FileError(f"{path} is the table itself: write the release elsewhere")
        if not overwrite:
            raise FileError(
                f"{path} is there already: choose another name, or allow it to be replaced (--force, overwrite=True)"
            )
    return path
