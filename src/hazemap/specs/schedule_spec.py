"""`ScheduleSpec`: releases of a map, one for each period of a calendar, within a budget for each year.

A file is the specification of a release (`ReleaseSpec`) and a table `[schedule]`. `{period}` in the names of its files
stands for the name of a period.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

from hazemap.algorithms import PrivateBoundingBox
from hazemap.errors import InputError
from hazemap.files.text_files import read_text, toml_table
from hazemap.privacy.budget import Budget
from hazemap.privacy.ledger import data_set_name
from hazemap.privacy.ledger_records import Occasion
from hazemap.sources.source import parse_address
from hazemap.specs.parsing import budget, budget_texts, refuse_absurd
from hazemap.specs.release_spec import ReleaseSpec
from hazemap.specs.spec_fields import RELEASE, SCHEMAS, Field, Value
from hazemap.specs.specification import LONGEST, checked, checked_fields, to_toml
from hazemap.temporal.time_slots import Calendar, Period, utc_text

HERE = "{period}"
"""What stands for the name of a period in a file's name."""

PERIODS, MONEY = "The periods", "What a year may cost"

SCHEDULE: dict[str, Field] = {
    "name": Field("The schedule's name in the ledger: a period of it is paid for once.", PERIODS),
    "every": Field("A release every day, week, month or year.", PERIODS, choices=("day", "week", "month", "year")),
    "time_zone": Field("The zone whose midnights divide the periods.", PERIODS, default="UTC"),
    "begins": Field("The first period begins on this day or later: 2026-01-01.", PERIODS),
    "ends": Field("No period begins on this day or later.", PERIODS),
    "wait_hours": Field("So long after its end the rows of a period are complete.", PERIODS, None, float, 0.0),
    "missed": Field(
        "Periods that were missed: run them, the oldest first, or skip all but the last.",
        PERIODS,
        default="run",
        choices=("run", "skip"),
    ),
    "share_cells": Field(
        "Each release begins with the cells of the one before (as with --prior).", PERIODS, None, bool, False
    ),
    "yearly_epsilon": Field("All periods of a year may cost so much ε.", MONEY),
    "yearly_delta": Field("With yearly_epsilon: in (ε, δ).", MONEY),
    "yearly_rho": Field("All periods of a year may cost so much ρ, instead.", MONEY),
}
"""The names of `[schedule]`, in the order in which they are written."""

SCHEMA: dict[str, Any] = {
    **SCHEMAS["release"],
    "title": "A schedule of releases: what hazemap schedule takes",
    "properties": {
        **SCHEMAS["release"]["properties"],
        "schedule": {
            "type": "object",
            "properties": {name: field.schema for name, field in SCHEDULE.items()},
            "additionalProperties": False,
            "required": ["name", "every", "begins"],
        },
    },
    "required": ["source", "time", "output", "schedule"],
}
"""JSON Schema of a schedule's file; docs/reference has it too."""


@dataclass(frozen=True)
class ScheduleSpec:
    """Releases that somebody orders for a calendar; all of it is public.

    `release` is the document of a release, without its times. The data set that pays is one for all periods, and so is
    the `yearly` budget, which is exact: a release that would pass it is refused before anything is read.

    >>> spec = ScheduleSpec.from_toml('''
    ... source = "visits.parquet"
    ... time = "at"
    ... epsilon = "0.1"
    ... box = "13.2,52.4,13.6,52.6"
    ... output = "maps/{period}.parquet"
    ... [schedule]
    ... name = "nightly"
    ... every = "day"
    ... begins = 2026-01-01
    ... yearly_epsilon = "30"
    ... ''')
    >>> spec.dataset, str(spec.yearly), ScheduleSpec.from_toml(spec.to_toml()) == spec
    ('visits', 'ε = 30', True)
    """

    name: str
    release: Mapping[str, Value]
    calendar: Calendar
    yearly: Budget
    wait: timedelta = timedelta(0)
    missed: str = "run"
    share_cells: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", data_set_name(self.name))
        refuse_absurd(self.yearly)
        if self.missed not in ("run", "skip"):
            raise InputError(f"missed periods are to run or to skip; found {self.missed!r:.40}")
        if not timedelta(0) <= self.wait <= timedelta(366):
            raise InputError("a schedule waits between 0 hours and a year for the rows of a period")
        for name in ("since", "until", "overwrite"):
            if name in self.release:
                raise InputError(f"a schedule says itself what {name} is of each release: leave it out")
        for name in ("source", "time", "output"):
            if name not in self.release:
                raise InputError(f"a schedule needs {name}, which says {_NEEDED[name]}")
        if HERE not in Path(str(self.release["output"])).name:
            raise InputError(f"the output of a schedule has {HERE} in its name, so that every period has its own file")
        if isinstance(self.first.algorithm, PrivateBoundingBox):
            raise InputError("a schedule's releases cover one box, so that they compare: declare it (box = …)")
        if self.share_cells and "prior" in self.release:
            raise InputError("with share_cells the prior is the release before: leave out the prior, or share_cells")
        if self.share_cells:
            refuse_no_prior(self.first)

    @cached_property
    def first(self) -> ReleaseSpec:
        """A release as it is ordered, before its times and its prior are known."""
        return ReleaseSpec.from_json({**self.release, "dataset": self.dataset})

    @property
    def dataset(self) -> str:
        """Who pays for all periods; `InputError` where files have names of their own, and nobody said it."""
        source = str(self.release["source"])
        if "dataset" not in self.release and HERE in source:
            raise InputError(f"every period has a file of its own, {source}: name the data set that pays for all")
        return str(self.release.get("dataset") or parse_address(source).dataset)

    def of(self, period: Period, prior: Path | None = None) -> ReleaseSpec:
        """What is released for a period, with the cells of an earlier release to begin with."""
        times = {"since": utc_text(period.since), "until": utc_text(period.until)}
        files = {name: str(self.release[name]).replace(HERE, period.name) for name in ("source", "output")}
        cells = {} if prior is None else {"prior": str(prior)}
        return ReleaseSpec.from_json({**self.release, **times, **files, **cells, "dataset": self.dataset})

    def occasion(self, period: str) -> Occasion:
        """What the ledger is told that a charge is for."""
        return Occasion(self.name, period, self.yearly)

    @classmethod
    def from_toml(cls, text: str, folder: Path | None = None) -> "ScheduleSpec":
        """What `to_toml` wrote, or somebody by hand; files are named from `folder` on."""
        document = toml_table(text, "the schedule", LONGEST)
        own = document.pop("schedule", None)
        if not isinstance(own, dict):
            raise InputError(
                "a schedule is a specification of a release with a table [schedule]: its name, every, begins"
            )
        return cls.from_json(document, own, folder)

    @classmethod
    def from_json(
        cls, document: Mapping[str, Any], own: Mapping[str, Any], folder: Path | None = None
    ) -> "ScheduleSpec":
        """A release's document and that of its schedule; `InputError` for anything else."""
        days = {name: value.isoformat() if type(value) is date else value for name, value in own.items()}
        given = checked_fields(checked(days), SCHEDULE)
        money = [given.get(name) for name in ("yearly_epsilon", "yearly_delta", "yearly_rho")]
        for name in ("name", "every", "begins"):
            if name not in given:
                raise InputError(f"a [schedule] says its {name}")
        if not any(money):
            raise InputError("a [schedule] says what a year may cost: yearly_epsilon, or yearly_rho")
        release = checked_fields(checked(document), RELEASE)
        if folder is not None:
            named = {name: str(release[name]) for name in ("source", "output", "prior") if name in release}
            release |= {name: str(parse_address(written).below(folder)) for name, written in named.items()}
        zone = given.get("time_zone", "UTC")
        begins, ends = (_day(name, given.get(name)) for name in ("begins", "ends"))
        return cls(
            given["name"],
            release,
            Calendar(given["every"], zone, begins, ends),  # type: ignore[arg-type]  # it begins: see above
            budget(*money),
            timedelta(hours=_hours(given.get("wait_hours", 0.0))),
            given.get("missed", "run"),
            given.get("share_cells", False),
        )

    @classmethod
    def read(cls, file: str | Path) -> "ScheduleSpec":
        """The schedule in a file; what it names is looked for in the file's own folder."""
        path = Path(file)
        return cls.from_toml(read_text(path, "the schedule"), path.absolute().parent)

    def to_toml(self) -> str:
        """The schedule as a file that people can read, keep and change."""
        own: dict[str, Any] = {
            "name": self.name,
            "every": self.calendar.every,
            "time_zone": self.calendar.zone,
            "begins": self.calendar.begins.isoformat(),
            "ends": self.calendar.ends and self.calendar.ends.isoformat(),
            "wait_hours": self.wait / timedelta(hours=1),
            "missed": self.missed,
            "share_cells": self.share_cells,
            **{f"yearly_{name}": value for name, value in budget_texts(self.yearly).items()},
        }
        told = {name: value for name, value in own.items() if value is not None}
        return f"{to_toml(self.release)}\n[schedule]\n{to_toml(told)}"


_NEEDED = {
    "source": "where the rows are",
    "time": "in which column the time of a row is",
    "output": "where the files go, such as maps/{period}.parquet",
}


def refuse_no_prior(spec: ReleaseSpec) -> None:
    """Raise `InputError` for a method that cannot begin with the cells of another release."""
    if not hasattr(spec.algorithm, "prior"):
        raise InputError(
            f"share_cells is for methods that find their cells, auto or prefix; {spec.method} begins with no cells: "
            "leave share_cells out"
        )


def _hours(value: float) -> float:
    if not 0 <= value <= 24 * 366:
        raise InputError(f"wait_hours is between 0 and a year; found {value:g}")
    return value


def _day(name: str, text: str | None) -> date | None:
    try:
        return None if text is None else date.fromisoformat(text)
    except ValueError:
        raise InputError(f"{name} of a schedule is a day, such as 2026-01-01; found {text!r:.40}") from None
