"""`ReleaseSpec`: a map to release, typed and checked before anything is read or paid."""

import os
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from hazemap.algorithms import PrivateBoundingBox
from hazemap.algorithms.built_in_methods import canonical
from hazemap.algorithms.plug_ins import credited
from hazemap.algorithms.private_bounding_box import MethodOfBox
from hazemap.errors import InputError
from hazemap.privacy.budget import Budget
from hazemap.privacy.mechanisms import refuse_too_wide
from hazemap.privacy.statement import A_PERSON, A_ROW, Statement
from hazemap.privacy.statement_facts import UNSAID, StatementFacts
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.plane import Plane, PlaneBox
from hazemap.specs.marked_method import method_of_marks
from hazemap.specs.method_from_name import in_slots, method_from_name, method_options
from hazemap.specs.parsing import DistrictFiles, HexagonCells, QuadtreeCells, bounding_text
from hazemap.specs.parsing import bounding as parsed_bounding
from hazemap.specs.parsing import cells as parsed_cells
from hazemap.specs.parsing import outside as parsed_outside
from hazemap.specs.prior_cells import begun_from
from hazemap.specs.slots_by_name import refuse_never, slots
from hazemap.specs.spec_fields import RELEASE
from hazemap.specs.specification import ASSUMPTIONS, Specification
from hazemap.specs.table_spec import TableSpec
from hazemap.statement_builder import Promise, stated
from hazemap.tables.contribution_bounding import AtMostCells, AtMostRows, Bounding, OneVote, Outside, RowIsPerson
from hazemap.temporal.time_slots import Slots
from hazemap.values.marks import Marks

OF_ROWS = "nobody has more than one row: who has k is protected as a group of k is, at k times ε or k² times ρ"
"""What takes the place of ids where each row is a person of its own."""

USUAL_CELLS = QuadtreeCells(None)


@dataclass(frozen=True)
class ReleaseSpec(Specification):
    """A map that somebody asks for; all of it is public. `value` is the column of weights.

    `mark` are the marks that are counted too, and `goal` says what cells are then cut for (`specs.marked_method`).
    `dataset` pays; `output` is the file, None for a release that stays in memory. Whatever can be known to be wrong
    without looking at rows is found when this is made: `InputError`, or `FileError` for files of districts.

    >>> from hazemap.privacy.budget import PureDP
    >>> spec = ReleaseSpec(TableSpec("nyc.csv", since="2026-01-01"), PureDP(1), method="flat:8", cells=QuadtreeCells(8),
    ...                    box=Box(-74.1, 40.6, -73.8, 40.9))
    >>> spec.dataset, ReleaseSpec.from_toml(spec.to_toml()) == spec
    ('nyc', True)
    """

    NAMES = RELEASE

    table: TableSpec
    budget: Budget
    bounding: Bounding = AtMostRows(1, Outside.PEOPLE)
    method: str = "auto"
    cells: QuadtreeCells | HexagonCells | DistrictFiles = USUAL_CELLS
    box: Box | None = None
    value: str | None = None
    dataset: str = ""
    output: str | None = None
    overwrite: bool = False
    mark: tuple[str, ...] = ()
    goal: str | None = None
    plane: str | None = None
    prior: str | None = None
    prior_is_public: bool = False
    slots: str | None = None
    time_zone: str | None = None
    known: MethodOfBox | PrivateBoundingBox | None = field(default=None, repr=False, compare=False)
    """The algorithm, where a journal holds it already; else it follows from the rest."""

    def __post_init__(self) -> None:
        bounding_text(self.bounding)
        if not isinstance(self.plane, str | None):
            raise InputError(f"plane is a text, such as 1000,800; found a {type(self.plane).__name__}")
        self._place_on_plane()
        self.check()
        object.__setattr__(self, "method", canonical(self.method))
        refuse_too_wide(self.budget, self.bounding.sensitivity)
        if isinstance(self.bounding, RowIsPerson) and self.table.person is not None:
            raise InputError(
                f"either every row is a person, or the column {self.table.person!r} names the person: it can only "
                "be one of them"
            )
        if self.prior_is_public and self.prior is None:
            raise InputError("there is no prior to be declared public: name its file (--prior), or leave this out")
        if self.value is not None and not isinstance(self.bounding, OneVote):
            raise InputError(
                f"the column {self.value!r} weighs rows, but with {self.bounding} rows have no weight: "
                "choose 'one vote'"
            )
        if self.goal is not None and not self.mark:
            raise InputError("a goal is what cells are cut for where marks are counted: name a mark, or leave it out")
        if self.time_zone is not None and not self.timeslots.timed:
            raise InputError("a time zone is that of slots: name them too, such as --slots hour-of-day")
        _ = self.algorithm
        refuse_never(self.timeslots, self.time_zone or "UTC", *self.table.window)

    @cached_property
    def timeslots(self) -> Slots:
        """The slots that `slots` names; one of all times, where it is left out."""
        return slots(self.slots or "always", self.time_zone or "UTC", *self.table.window)

    @cached_property
    def algorithm(self) -> MethodOfBox | PrivateBoundingBox:
        """Who asks."""
        if self.known:
            return self.known
        if self.mark:
            if self.plane is not None:
                raise InputError("marks are counted on the ground alone: leave the marks or the plane out")
            if self.prior is not None:
                raise InputError("where marks are counted cells are found anew: leave the marks or the prior out")
            asked = self.mark, self.goal, self.method, self.cells, self.box, self.bounding, self.timeslots
            marked = method_of_marks(*asked)
            return cast(MethodOfBox | PrivateBoundingBox, marked)
        plane = None if self.plane is None else Plane.parse(self.plane)
        made = method_from_name(self.method, self.cells, self.box, self.bounding, self.budget, plane)
        if self.prior is not None:
            made = begun_from(made, Path(self.prior), self.prior_is_public, method_options(self.method))
        return in_slots(made, self.timeslots) if self.timeslots.timed else made

    @property
    def marks(self) -> Marks | None:
        """The marks, understood."""
        return Marks.of(*self.mark) if self.mark else None

    def _place_on_plane(self) -> None:
        """On a plane the box is all of it unless a part is declared, and columns are called x and y."""
        if self.plane is None:
            return
        box = self.box or Plane.parse(self.plane).box
        if not isinstance(box, Box | PlaneBox | None):
            raise InputError(f"box of a specification cannot be a {type(box).__name__}")
        if box is None:
            raise InputError(f"say which part of {self.plane} is mapped: --box=x,y,x,y in its own unit")
        table = replace(self.table, lon=self.table.lon or "x", lat=self.table.lat or "y")
        object.__setattr__(self, "box", PlaneBox(box.west, box.south, box.east, box.north))
        object.__setattr__(self, "table", table)

    @classmethod
    def read(cls, given: dict[str, Any]) -> dict[str, Any]:
        """The fields that only maps have, understood where they are texts."""
        mark = given.get("mark", ())
        if not isinstance(mark, str | list | tuple):
            raise InputError(f"mark is a text or a list of texts; found a {type(mark).__name__}")
        given["mark"] = (mark,) if isinstance(mark, str) else tuple(mark)
        usual = "drop" if given["mark"] else "people"
        rule, where = given.pop("bounding", "one row"), parsed_outside(given.pop("outside", usual))
        if "prior" in given:
            if not isinstance(given["prior"], str | os.PathLike):
                raise InputError(f"prior is the path of a file; found a {type(given['prior']).__name__}")
            given["prior"] = os.fspath(given["prior"])
        if not isinstance(rule, str | AtMostRows | AtMostCells | OneVote | RowIsPerson):
            raise InputError(f"bounding is a rule, such as 'one row' or 'rows:3'; found a {type(rule).__name__}")
        given["bounding"] = parsed_bounding(rule, where) if isinstance(rule, str) else replace(rule, outside=where)
        if isinstance(given.get("cells"), str):
            given["cells"] = parsed_cells(given["cells"])
        return given

    def written(self) -> dict[str, Any]:
        """The fields that are no text, number or flag already, as a file has them."""
        return {
            "bounding": bounding_text(self.bounding),
            "outside": self.bounding.outside.value,
            "box": self.box and str(self.box),
            "cells": self.cells.text,
            "mark": list(self.mark) or None,
            "prior_is_public": self.prior_is_public or None,
        }

    @property
    def _first_cells(self) -> str:
        """What a statement says of a prior."""
        if self.prior is None:
            return ""
        how = "declared public" if self.prior_is_public else "a release, which had its own price"
        return f"the first cells: those of {Path(self.prior).name}, {how}"

    def statement(self, dataset: str, circumstances: StatementFacts = UNSAID) -> Statement:
        """What a map that is made now promises to the people in it."""
        method, relied_on = credited("shares" if self.mark else self.method, self.algorithm)
        public = [
            f"the cells: {self.cells}",
            f"the slots: {self.timeslots.in_words}" if self.timeslots.timed else "",
            f"the method: {method}, with the parameters in the file",
            self._first_cells,
            f"the coordinates: {Plane.parse(self.plane)}" if self.plane else "",
            f"the time: {self.table.when}" if self.table.when else "",
            *self.times,
            f"the weight of a row: its {self.value!r}" if self.value else "",
            self.marks.said if self.marks else "",
            "the names and types of the table's columns",
        ]
        rows = isinstance(self.bounding, RowIsPerson)
        sees, ids, watched = ASSUMPTIONS
        promise = Promise(
            dataset=dataset,
            unit=A_ROW if rows else A_PERSON,
            neighbours="one of them added or removed",
            budget=self.budget,
            bounding=self.bounding,
            trust="curator",
            assumptions=(sees, OF_ROWS if rows else ids, watched, *relied_on, *self.table.dialect.assumptions),
            method=f"{method}, {self.cells}",
        )
        return stated(promise, self.algorithm.disclosure, box=self.box, public=public, circumstances=circumstances)
