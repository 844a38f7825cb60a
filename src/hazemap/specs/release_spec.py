"""A map that somebody asks for: typed, and found to be possible, before anything is read or paid."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, cast

from hazemap.algorithms import PrivateBoundingBox
from hazemap.algorithms.plug_ins import credited
from hazemap.algorithms.private_bounding_box import MethodOfBox
from hazemap.errors import InputError
from hazemap.privacy.budget import Budget
from hazemap.privacy.mechanisms import refuse_too_wide
from hazemap.privacy.statement import A_PERSON, A_ROW, Statement
from hazemap.privacy.statement_facts import UNSAID, StatementFacts
from hazemap.spatial.bounding_box import Box
from hazemap.specs.method_names import method_from_name
from hazemap.specs.parsing import DistrictFiles, HexagonCells, QuadtreeCells, bounding_text, budget_texts, refuse_absurd
from hazemap.specs.parsing import bounding as parsed_bounding
from hazemap.specs.parsing import budget as parsed_budget
from hazemap.specs.parsing import cells as parsed_cells
from hazemap.specs.parsing import outside as parsed_outside
from hazemap.specs.table_spec import KINDS, TableSpec, named_after
from hazemap.specs.toml_and_json import Value, checked, fields, from_toml, to_toml
from hazemap.statement_builder import Promise, stated
from hazemap.tables.contribution_bounding import AtMostRows, Bounding, OneVote, Outside, RowIsPerson

ASSUMPTIONS = (
    "the curator sees every row, and keeps the table and the noise to itself",
    "the table gives each person one id",
    "nobody who reads the release also watches the run (its time, its memory)",
)

OF_ROWS = "nobody has more than one row: who has k is protected as a group of k is, at k times ε or k² times ρ"
"""What takes the place of ids where each row is a person of its own."""

DOCUMENT: dict[str, type] = {
    **KINDS,
    **dict.fromkeys(("value", "epsilon", "delta", "rho", "bounding", "outside", "box", "cells", "method"), str),
    "dataset": str,
    "output": str,
    "overwrite": bool,
}
"""The names of a specification as a document: those of `hazemap.release` and of the command line."""


USUAL_CELLS = QuadtreeCells(None)


@dataclass(frozen=True)
class ReleaseSpec:
    """A map that somebody asks for; all of it is public. `value` is the column of weights.

    `dataset` pays; `output` is the file, None for a release that stays in memory. Whatever can be known to be wrong
    without looking at rows is found when this is made: `InputError`, or `FileError` for files of districts.

    >>> from hazemap.privacy.budget import PureDP
    >>> spec = ReleaseSpec(TableSpec("nyc.csv", since="2026-01-01"), PureDP(1), method="flat:8", cells=QuadtreeCells(8),
    ...                    box=Box(-74.1, 40.6, -73.8, 40.9))
    >>> spec.dataset, ReleaseSpec.from_toml(spec.to_toml()) == spec
    ('nyc', True)
    """

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
        types: dict[str, Any] = {
            "table": TableSpec,
            "budget": Budget,
            "method": str,
            "cells": QuadtreeCells | HexagonCells | DistrictFiles,
            "box": Box | None,
            "value": str | None,
            "dataset": str,
            "output": str | None,
            "overwrite": bool,
        }
        refuse_other_types(self, types)
        refuse_absurd(self.budget)
        bounding_text(self.bounding)
        refuse_too_wide(self.budget, self.bounding.sensitivity)
        if not self.dataset:
            object.__setattr__(self, "dataset", named_after(self.table.source))
        if isinstance(self.bounding, RowIsPerson) and self.table.person is not None:
            raise InputError(
                f"each row is a person of its own, and the column {self.table.person!r} names the person: it can only "
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
    def from_json(cls, data: object, known: object = None) -> "ReleaseSpec":
        """What `to_json` wrote; `InputError` for anything else."""
        found: dict[str, Any] = fields(checked(data), DOCUMENT)
        rule = parsed_bounding(found.get("bounding", "one row"))
        return cls(
            table=TableSpec.read(found),
            budget=parsed_budget(found.get("epsilon"), found.get("delta"), found.get("rho")),
            bounding=replace(rule, outside=parsed_outside(found.get("outside", "people"))),
            method=found.get("method", "auto"),
            cells=parsed_cells(found.get("cells", "quadtree")),
            box=Box.parse(found["box"]) if "box" in found else None,
            known=cast(Any, known),
            **{name: found[name] for name in ("value", "dataset", "output", "overwrite") if name in found},
        )

    def to_json(self) -> dict[str, Value]:
        """A flat document of texts and flags, with the names of `hazemap.release`."""
        document: dict[str, Value | None] = {
            **self.table.document,
            "value": self.value,
            **budget_texts(self.budget),
            "bounding": bounding_text(self.bounding),
            "outside": self.bounding.outside.value,
            "box": None if self.box is None else str(self.box),
            "cells": self.cells.text,
            "method": self.method,
            "dataset": self.dataset,
            "output": self.output,
            "overwrite": self.overwrite,
        }
        return {name: value for name, value in document.items() if value is not None}

    @classmethod
    def from_toml(cls, text: str) -> "ReleaseSpec":
        """What `to_toml` wrote, or somebody by hand."""
        return cls.from_json(from_toml(text))

    def to_toml(self) -> str:
        """The specification as a file that people can read, keep and change."""
        return to_toml(self.to_json())

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


def refuse_other_types(spec: object, types: Mapping[str, Any]) -> None:
    """Raise `InputError` for a field of another type than its own."""
    for name, kind in types.items():
        found = getattr(spec, name)
        if not isinstance(found, kind) or (isinstance(found, bool) and kind is not bool):
            raise InputError(f"{name} of a specification cannot be a {type(found).__name__}")
