"""The policy that a device ships with: which analyses may ask what of which fields, and at which price.

Tables 1a and 1b of McMillan et al. (2022), with what else a device has to know before it answers: streams, query
classes, cohorts, and who may carry the answer. A policy is public and signed (`policy_document`): a device takes a
later version only from the same key.

Names are lower-case ASCII, and each name stands once: no two of them look alike, or mean the same.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from hazemap.errors import InputError
from hazemap.federated.recipes.event_stream import EventStream
from hazemap.federated.recipes.query_class import QueryClass, StreamFieldName, check_streams
from hazemap.federated.recipes.sql_query import check_name, check_text
from hazemap.field_types import check_fields

LARGEST_EPSILON, MOST_REPORTS, MOST_DAYS, MOST_VERSIONS = Fraction(1_000), 1_000_000, 36_525, 1 << 53
MOST_ANALYSES, MOST_LIMITS, LONGEST_PURPOSE, LARGEST_COHORT = 256, 16, 500, 10**9
DIGITS = 64
"""Digits of a numerator or a denominator: sums of such numbers stay short."""


_ANALYSIS = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}", re.ASCII)
"""As recipes write it."""


class Accounting(Enum):
    """How the prices of reports add up against an (ε, δ)."""

    BASIC = "basic"
    """ε's and δ's add (Dwork et al. 2006)."""
    ZCDP = "zcdp"
    """ρ's add, up to the ρ that implies (ε, δ) (Bun and Steinke 2016; a filter by Feldman and Zrnic 2021)."""


class Carrier(Enum):
    """Who may carry an answer: what stands between a device's report and the sum that is told."""

    SECURE_SUMS = "secure sums"
    TWO_SERVERS = "two servers"


@dataclass(frozen=True)
class ApprovedCohortField:
    """A name that recipes may choose people by, in the clear, and the field that holds it: its latest event's."""

    name: str
    field: StreamFieldName

    def __post_init__(self) -> None:
        check_name(self.name, "the name of a cohort field")
        check_fields(self)


@dataclass(frozen=True)
class AnalysisBudget:
    """A line of table 1a: an analysis, what it is for, and all that it may cost a person in one period.

    `epsilon` and `delta` are against whoever sees the sums; `reports` is k. `cohort_fields` are told in the clear. A
    sum is over at least `minimum_cohort` people, or it is not opened.
    """

    name: str
    purpose: str
    epsilon: Fraction
    delta: Fraction
    reports: int
    queries: QueryClass
    minimum_cohort: int
    carriers: tuple[Carrier, ...]
    cohort_fields: tuple[ApprovedCohortField, ...] = ()

    def __post_init__(self) -> None:
        if not (type(self.name) is str and _ANALYSIS.fullmatch(self.name)):
            raise InputError(
                f"an analysis is called by lower-case letters, digits, '.', '_' and '-' (100 at most); found"
                f" {self.name!r:.80}"
            )
        what = f"the analysis {self.name}"
        check_fields(self)
        if not check_text(self.purpose, f"the purpose of {what}", LONGEST_PURPOSE).strip():
            raise InputError(f"{what} says what it is for; its purpose is empty")
        check_budget(what, self.epsilon, self.delta, self.reports)
        check_whole(f"the minimum cohort of {what}", self.minimum_cohort, LARGEST_COHORT)
        check_once(f"the carriers of {what}", self.carriers)
        check_once(f"the cohort fields of {what}", [each.name for each in self.cohort_fields])
        if not self.carriers:
            raise InputError(f"{what} names who may carry its answers: {', '.join(each.value for each in Carrier)}")


@dataclass(frozen=True)
class FieldBudget:
    """A line of table 1b: a field, the largest local ε₀ of one report that reads it, and its cost in one period.

    >>> str(FieldBudget(StreamFieldName("profile", "age"), Fraction(2), Fraction(3, 10), Fraction(1, 10**6), 1).field)
    'profile.age'
    """

    field: StreamFieldName
    local_epsilon: Fraction
    epsilon: Fraction
    delta: Fraction
    reports: int

    def __post_init__(self) -> None:
        check_fields(self)
        check_budget(f"the field {self.field}", self.epsilon, self.delta, self.reports)
        check_budget(f"the local ε₀ of the field {self.field}", self.local_epsilon, Fraction(0), self.reports)


@dataclass(frozen=True)
class DeviceLimit:
    """What all analyses together may cost a person in so many days, whatever they are called and whatever they read."""

    days: int
    epsilon: Fraction
    delta: Fraction
    reports: int

    def __post_init__(self) -> None:
        check_fields(self)
        check_whole("the days of a limit", self.days, MOST_DAYS)
        delta = Fraction(0) if self.only_epsilon else self.delta
        check_budget(f"the limit of {self.days} days", self.epsilon, delta, self.reports)

    @property
    def only_epsilon(self) -> bool:
        """Whether it limits the sum of ε's alone, which δ = 1 says: a person's own limit does."""
        return self.delta == 1


@dataclass(frozen=True)
class ShippedPolicy:
    """A whole policy. `days` is the period of every budget of an analysis or a field, `accounting` how prices add up.

    >>> from hazemap.federated.recipes.policy_document import example
    >>> policy = example()
    >>> policy.analysis("next_word").epsilon, policy.field(StreamFieldName("keyboard", "ngram")).local_epsilon
    (Fraction(1, 2), Fraction(5, 1))
    """

    name: str
    version: int
    days: int
    limits: tuple[DeviceLimit, ...]
    streams: tuple[EventStream, ...]
    fields: tuple[FieldBudget, ...]
    analyses: tuple[AnalysisBudget, ...]
    accounting: Accounting = Accounting.BASIC

    def __post_init__(self) -> None:
        check_fields(self)
        check_name(self.name, "the name of a policy")
        check_whole("the version of a policy", self.version, MOST_VERSIONS)
        check_whole("the period of a policy, in days,", self.days, MOST_DAYS)
        if not 1 <= len(self.limits) <= MOST_LIMITS:
            raise InputError(f"a policy has 1 to {MOST_LIMITS} limits over everything that a device answers")
        if len(self.analyses) > MOST_ANALYSES:
            raise InputError(f"a policy has at most {MOST_ANALYSES} analyses; found {len(self.analyses)}")
        check_once("the streams", [each.name for each in self.streams])
        check_once("the fields with a budget", [each.field for each in self.fields])
        check_once("the analyses", [each.name for each in self.analyses])
        self._check_names()
        budgets = [(each.epsilon, each.delta) for each in self.analyses]
        budgets += [(each.epsilon, each.delta) for each in self.fields]
        budgets += [(each.epsilon, each.delta) for each in self.limits]
        if self.accounting is Accounting.ZCDP and any(epsilon and not delta for epsilon, delta in budgets):
            raise InputError("a policy that counts in zCDP gives every analysis, field and limit a δ above 0")

    def _check_names(self) -> None:
        known = {name for stream in self.streams for name in stream.names}
        budgets = {each.field for each in self.fields}
        if strange := sorted(budgets - known):
            raise InputError(f"the field {strange[0]} has a budget, but no stream of this policy has it")
        for analysis in self.analyses:
            check_streams(tuple(each.schema for each in self.streams), analysis.queries)
            if free := sorted(set(analysis.queries.fields) - budgets):
                raise InputError(f"the analysis {analysis.name} may read {free[0]}, which has no budget: give it one")
            told = {each.field for each in analysis.cohort_fields}
            if strange := sorted(told - known):
                raise InputError(f"the cohort field {strange[0]} of {analysis.name} is in no stream of this policy")
            if both := sorted(told & budgets):
                raise InputError(
                    f"{both[0]} is told in the clear as a cohort field, so it cannot have a budget as well"
                )

    def analysis(self, name: str) -> AnalysisBudget | None:
        """The line of table 1a with this name."""
        return next((each for each in self.analyses if each.name == name), None)

    def field(self, name: StreamFieldName) -> FieldBudget | None:
        """The line of table 1b for this field."""
        return next((each for each in self.fields if each.field == name), None)

    def stream(self, name: str) -> EventStream | None:
        """The stream of this name."""
        return next((each for each in self.streams if each.name == name), None)


def check_budget(what: str, epsilon: Fraction, delta: Fraction, reports: int) -> None:
    """`InputError` unless these are an ε, a δ and a k that a device can count with."""
    if not 0 <= epsilon <= LARGEST_EPSILON:
        raise InputError(f"ε of {what} lies between 0 and {LARGEST_EPSILON}")
    if not 0 <= delta < 1:
        raise InputError(f"δ of {what} is 0 or more, and below 1")
    for number in (epsilon, delta):
        if max(number.numerator, number.denominator) >= 10**DIGITS:
            raise InputError(f"ε and δ of {what} have at most {DIGITS} digits above and below")
    if not 0 <= reports <= MOST_REPORTS:
        raise InputError(f"{what} allows 0 to {MOST_REPORTS:,} reports in a period, not {reports!r:.40}")


def check_whole(what: str, number: int, most: int) -> None:
    """`InputError` unless a number lies between 1 and `most`."""
    if not 1 <= number <= most:
        raise InputError(f"{what} is a whole number from 1 to {most:,}; found {number!r:.40}")


def check_once(what: str, names: Iterable[object]) -> None:
    """`InputError` where a name stands twice."""
    found = list(names)
    if len(set(found)) != len(found):
        twice = next(name for name in found if found.count(name) > 1)
        raise InputError(f"{what} are named once each; {twice} stands twice")
