"""What a statement says to machines: whose rows, whose randomness, and who was asked. All of it is public.

Every view has the same words for what a number is an estimate of, and for the weaker of the two privacy models of
values, VALUES ONLY. Only where a person adds 1 at most, over all cells and slots together, is a number one of people.
Elsewhere it is one of what the rule left of them: where everybody counts in 8 places at most, a place that 900 people
were in may have 150 of them, and no noise explains that. So the rule stands in the name of the number.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import Enum
from fractions import Fraction
from typing import NamedTuple

from hazemap.errors import CodecError, InputError
from hazemap.field_types import check_fields
from hazemap.privacy.privacy_unit import Unit
from hazemap.tables.contribution_bounding import (
    AtMostCells,
    AtMostRows,
    Bounding,
    OneReport,
    OneVote,
    OwnMeans,
    RowIsPerson,
)

NEIGHBOURS = "the values of one person differ; how many samples each person gives, and in which cells, is public"
"""The neighbours of values-only (Rameshwar et al. 2024).

It protects what was measured, not that somebody was there, or how often.
"""

NOT_PROTECTED = (
    "NOT protected: whereabouts and numbers; who was in which cell and slot with how many records that have a value is "
    "taken to be public, and numbers of people are exact"
)
"""What a statement says beside it."""


class Randomness(Enum):
    """Where noise comes from."""

    SYSTEM = "system"
    """a fresh key of the operating system"""
    TEST_STREAM = "fixed test stream"
    """one that repeats itself: whoever knows its seed can subtract the noise"""
    DEVICES = "devices"
    """each person's own device"""

    @property
    def assumption(self) -> str:
        """What has to be believed of it."""
        return {
            Randomness.SYSTEM: "the system's randomness, of which the noise is made, cannot be guessed",
            Randomness.TEST_STREAM: "NOBODY IS PROTECTED: the noise came from a fixed test stream, and whoever knows "
            "its seed can subtract it",
            Randomness.DEVICES: "a device's own rows are its person's, and its software and randomness are sound",
        }[self]


_YOUNGER = frozenset({"local_epsilon", "trust", "minimum"})
"""Fields that are left out where they are None, as in older statements."""


@dataclass(frozen=True)
class CohortFacts:
    """Who was asked among devices, and what is assumed of them: `Cohort` of devices, for whoever reads a statement."""

    people: int
    shard: int
    dropout: Fraction
    corrupt: Fraction
    sampling: str
    mode: str
    local_epsilon: Fraction | None = None
    trust: str | None = None
    """who carries reports, where that is no secure sum: a name of `federated.trust.report_carriers`"""
    minimum: int | None = None
    """how many reports are opened at least, where that is a carrier's to say and the noise depends on it"""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.local_epsilon is not None and self.local_epsilon <= 0:
            raise InputError("the local epsilon of reports is above 0")
        if self.minimum is not None and not 1 <= self.minimum <= self.people:
            raise InputError("a batch is opened with 1 report to one of each person asked")
        if min(self.people, self.shard) < 1 or not (0 <= self.dropout < 1 and 0 <= self.corrupt < 1):
            raise InputError("a cohort is 1 person or more, in shards of which parts below 1 are assumed")

    def to_json(self) -> dict[str, object]:
        """A plain dict for `json.dumps`."""
        rationals = {name: str(getattr(self, name)) for name in ("dropout", "corrupt", "local_epsilon")}
        if self.local_epsilon is None:
            del rationals["local_epsilon"]
        return {name: value for name, value in asdict(self).items() if value is not None} | rationals

    @classmethod
    def from_json(cls, data: object) -> "CohortFacts":
        """What `to_json` wrote; `CodecError` for anything else."""
        younger = _YOUNGER & (data.keys() if isinstance(data, Mapping) else set())
        fields = cls.__dataclass_fields__.keys() - _YOUNGER
        if not isinstance(data, Mapping) or data.keys() != fields | younger:
            raise CodecError(f"a cohort in a statement has the fields {', '.join(cls.__dataclass_fields__)}")
        parts = {name: data[name] for name in ("dropout", "corrupt", *(younger - {"trust", "minimum"}))}
        if not all(isinstance(part, str) and len(part) <= 100 for part in parts.values()):
            raise CodecError("the parts of a cohort are rationals as text, like '1/10'")
        try:
            rationals = {name: Fraction(part) for name, part in parts.items() if "e" not in part.lower()}
            return cls(**{**data, **rationals})
        except (InputError, ValueError, ZeroDivisionError) as error:
            raise CodecError(f"this is no cohort of a statement: {error}") from error


@dataclass(frozen=True)
class StatementFacts:
    """How a release came about, beyond what was asked; None for what is not known, as in statements of version 1.

    `unit` is whose loss was charged: by which column people are told apart, how it is read, and whether that column was
    guessed by its name.
    """

    unit: Unit | None = None
    randomness: Randomness | None = None
    cohort: CohortFacts | None = None

    @property
    def told_apart(self) -> str | None:
        """By what people are told apart, in words."""
        if self.unit is None or self.unit.id_column is None:
            return None
        guessed = ", guessed by its name" if self.unit.guessed else ""
        return f"told apart by the column {self.unit.id_column!r}, read as {self.unit.read_as}{guessed}"

    def to_json(self) -> dict[str, object]:
        """A plain dict for `json.dumps`."""
        return {
            "unit": None if self.unit is None else self.unit.to_json(),
            "randomness": None if self.randomness is None else self.randomness.value,
            "cohort": None if self.cohort is None else self.cohort.to_json(),
        }

    @classmethod
    def from_json(cls, data: object) -> "StatementFacts":
        """What `to_json` wrote; `CodecError` for anything else."""
        if not isinstance(data, Mapping) or data.keys() != {"unit", "randomness", "cohort"}:
            raise CodecError("the circumstances of a statement are a unit, a randomness and a cohort")
        known = {each.value: each for each in Randomness}
        said = data["randomness"]
        if said is not None and (not isinstance(said, str) or said not in known):
            raise CodecError(f"randomness is one of {', '.join(known)}, not {said!r:.40}")
        return cls(
            None if data["unit"] is None else Unit.from_json(data["unit"]),
            None if said is None else known[said],
            None if data["cohort"] is None else CohortFacts.from_json(data["cohort"]),
        )


UNSAID = StatementFacts()
"""Nothing is known of them."""


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
