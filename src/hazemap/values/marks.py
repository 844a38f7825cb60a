"""Marks that rows carry or not: ill, `status=3`. All marks of a row together are its side, a small whole number."""

from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from hazemap.errors import InputError
from hazemap.machine_code.arrays import Bools

MOST_SIDES = 8
"""Counts of a cell: three columns of yes or no, or seven values of one column."""

LONGEST = 200
"""Letters of a mark."""


@dataclass(frozen=True)
class Mark:
    """A row carries it if a column says yes; with a `value`, if the column holds that value.

    >>> Mark.parse("status=3"), str(Mark("ill"))
    (Mark(column='status', value='3'), 'ill')
    """

    column: str
    value: str | None = None

    @classmethod
    def parse(cls, text: str) -> "Mark":
        """COLUMN, or COLUMN=VALUE; what follows the first = is the value."""
        if not isinstance(text, str) or not 0 < len(text) <= LONGEST or not text.isprintable():
            raise InputError(f"a mark is COLUMN or COLUMN=VALUE, of at most {LONGEST} printable letters")
        column, equals, value = (part.strip() for part in text.partition("="))
        if not column or (equals and not value):
            raise InputError(f"a mark is COLUMN or COLUMN=VALUE; found {text!r}")
        return cls(column, value if equals else None)

    def __str__(self) -> str:
        return self.column if self.value is None else f"{self.column}={self.value}"


@dataclass(frozen=True)
class Marks:
    """Some marks. Those of one column exclude each other, those of different columns do not.

    A row's side is a number with a digit for each column, the first column's the lowest: 0 for none of its marks, i for
    the i-th. So every row is on one side, and a person moves the counts of sides by no more than those of rows: there
    is no price for a second mark but that a share sums more than two noisy counts. With separate counts of each of m
    marks the budget would be divided by m, and the variance of a share's noise would be m² times that of one mark's;
    this has 2^(m − 1) times.

    >>> both = Marks.of("ill", "status=2", "status=3")
    >>> both.sides, both.having("status=3")
    (6, array([False, False, False, False,  True,  True]))
    """

    marks: tuple[Mark, ...]

    def __post_init__(self) -> None:
        if not self.marks or len(set(self.marks)) < len(self.marks):
            raise InputError("name at least one mark, and none of them twice")
        for column, values in self.columns.items():
            if None in values and len(values) > 1:
                raise InputError(f"the column {column!r} is either a yes or no, or holds values: not both")
        if self.sides > MOST_SIDES:
            raise InputError(
                f"these marks make {self.sides} counts in each cell, but there are at most {MOST_SIDES}: three columns "
                "of yes or no, or seven values of one column"
            )

    @classmethod
    def of(cls, *texts: str) -> "Marks":
        """From texts as people write them."""
        return cls(tuple(map(Mark.parse, texts)))

    @property
    def texts(self) -> tuple[str, ...]:
        """As `of` reads them."""
        return tuple(map(str, self.marks))

    @property
    def said(self) -> str:
        """What a privacy statement says of them."""
        return f"the marks that are counted: {', '.join(self.texts)}"

    def named_by(self, said: str) -> bool:
        """Whether that is what a statement says, perhaps with other spaces: as somebody wrote them."""
        return "".join(said.split()) == "".join(self.said.split())

    @cached_property
    def columns(self) -> dict[str, tuple[str | None, ...]]:
        """The values of each column that are marks, in the order in which they were named."""
        found: dict[str, tuple[str | None, ...]] = {}
        for mark in self.marks:
            found[mark.column] = (*found.get(mark.column, ()), mark.value)
        return found

    @property
    def sides(self) -> int:
        """How many kinds of rows there are."""
        return prod(1 + len(values) for values in self.columns.values())

    def having(self, text: str) -> Bools:
        """Which sides carry a mark, bool[sides]; `InputError` for a mark that is none of these."""
        step, sides = 1, np.arange(self.sides)
        for column, values in self.columns.items():
            for digit, value in enumerate(values, 1):
                if str(Mark(column, value)) == text:
                    carried: Bools = sides // step % (1 + len(values)) == digit
                    return carried
            step *= 1 + len(values)
        raise InputError(f"the marks are {', '.join(self.texts)}; found {text!r}")
