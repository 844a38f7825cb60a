"""What a number of a release is an estimate of, in words: every view calls it the same.

Only where a person adds 1 at most, over all cells and slots together, is a number one of people. Elsewhere it is one of
what the rule left of them: where everybody counts in 8 places at most, a place that 900 people were in may have 150 of
them, and no noise explains that. So the rule stands in the name of the number.
"""

from typing import NamedTuple

from hazemap.tables.contribution_bounding import (
    AtMostCells,
    AtMostRows,
    Bounding,
    OneReport,
    OneVote,
    OwnMeans,
    RowIsPerson,
)

Rule = Bounding | OneReport


class Estimand(NamedTuple):
    """What a count of 1 is, and how much of it a person gives at most: `most` in each of so many `places`, where said.

    `most` is None where a person gives 1 in all, and for rows that are people of their own.
    """

    noun: str
    most: int | None = None
    places: int | None = None

    @classmethod
    def of(cls, bounding: Rule) -> "Estimand":
        """Of numbers that this rule bounds."""
        match bounding:
            case OneVote() | OneReport() | AtMostRows(most=1) | OwnMeans(cells=1, records=1):
                return cls("people")
            case RowIsPerson():
                return cls("rows")
            case AtMostRows(most=most):
                return cls("rows", most)
            case AtMostCells(most=most):
                return cls("visits", None, most)
            case OwnMeans(cells=cells, records=1):
                return cls("people", None, cells)
            case OwnMeans(cells=cells, records=records):
                return cls("records", records, cells)

    def __str__(self) -> str:
        if self.most is None and self.places is None:
            return self.noun
        places = "" if self.places is None else f"{self.places:,} place{'s' * (self.places != 1)}"
        if self.most is None:
            bound = f"{places} each"
        else:
            bound = f"{self.most:,} each" + (f" in each of {places}" if places else "")
        return f"{self.noun} counted, at most {bound}"


def estimand(bounding: Rule) -> str:
    """What a count of 1 is; after a comma how much of it each person gives at most.

    >>> estimand(OneVote()), estimand(AtMostRows(3))
    ('people', 'rows counted, at most 3 each')
    >>> estimand(AtMostCells(8)), estimand(OwnMeans(24))
    ('visits counted, at most 8 places each', 'people counted, at most 24 places each')
    """
    return str(Estimand.of(bounding))
