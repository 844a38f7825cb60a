"""`ReleaseSpec`: a map to release, typed and checked before anything is read or paid."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from hazemap.algorithms import PrivateBoundingBox
from hazemap.algorithms.plug_ins import credited
from hazemap.algorithms.private_bounding_box import MethodOfBox
from hazemap.errors import InputError
from hazemap.privacy.budget import Budget
from hazemap.privacy.mechanisms import refuse_too_wide
from hazemap.privacy.statement import A_PERSON, A_ROW, Statement
from hazemap.privacy.statement_facts import UNSAID, StatementFacts
from hazemap.spatial.bounding_box import Box
from hazemap.specs.method_from_name import method_from_name
from hazemap.specs.parsing import DistrictFiles, HexagonCells, QuadtreeCells, bounding_text
from hazemap.specs.parsing import bounding as parsed_bounding
from hazemap.specs.parsing import cells as parsed_cells
from hazemap.specs.parsing import outside as parsed_outside
from hazemap.specs.spec_fields import RELEASE
from hazemap.specs.specification import ASSUMPTIONS, Specification
from hazemap.specs.table_spec import TableSpec
from hazemap.statement_builder import Promise, stated
from hazemap.tables.contribution_bounding import AtMostRows, Bounding, OneVote, Outside, RowIsPerson

OF_ROWS = "nobody has more than one row: who has k is protected as a group of k is, at k times ε or k² times ρ"
"""What takes the place of ids where each row is a person of its own."""

USUAL_CELLS = QuadtreeCells(None)


@dataclass(frozen=True)
class ReleaseSpec(Specification):
    """A map that somebody asks for; all of it is public. `value` is the column of weights.

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
    known: MethodOfBox | PrivateBoundingBox | None = field(default=None, repr=False, compare=False)
    """The algorithm, where a journal holds it already; else it follows from the rest."""

    def __post_init__(self) -> None:
        bounding_text(self.bounding)
        self.check()
        refuse_too_wide(self.budget, self.bounding.sensitivity)
        if isinstance(self.bounding, RowIsPerson) and self.table.person is not None:
            raise InputError(
                f"either every row is a person, or the column {self.table.person!r} names the person: it can only "
                "be one of them"
            )
        if self.value is not None and not isinstance(self.bounding, OneVote):
            raise InputError(
                f"the column {self.value!r} weighs rows, but with {self.bounding} rows have no weight: "
                "choose 'one vote'"
            )
        _ = self.algorithm

    @cached_property
    def algorithm(self) -> MethodOfBox | PrivateBoundingBox:
        """Who asks."""
        return self.known or method_from_name(self.method, self.cells, self.box, self.bounding)

    @classmethod
    def read(cls, given: dict[str, Any]) -> dict[str, Any]:
        """The fields that only maps have, understood where they are texts."""
        rule, where = given.pop("bounding", "one row"), parsed_outside(given.pop("outside", "people"))
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
        }

    def statement(self, dataset: str, circumstances: StatementFacts = UNSAID) -> Statement:
        """What a map that is made now promises to the people in it."""
        method, relied_on = credited(self.method, self.algorithm)
        public = [
            f"the cells: {self.cells}",
            f"the method: {method}, with the parameters in the file",
            f"the time: {self.table.when}" if self.table.when else "",
            f"the weight of a row: its {self.value!r}" if self.value else "",
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
