"""A recipe: everything that a device is sent when it is asked about its events (McMillan et al. 2022, appendix B).

A device runs the query, lets one of its rows fall into a bin, and reports the bin by a local randomiser. Bins are the
product of the features' buckets, in the order of the features, the last one running fastest. `RecipePrice` is what the
sum tells of one person, computed, beside what the recipe states.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction
from functools import cached_property
from math import prod, sqrt

import numpy as np
from numpy.typing import NDArray

from hazemap import codec
from hazemap.codec import Limits
from hazemap.errors import InputError, Refused
from hazemap.federated.protocols.chained_log import LogFormat
from hazemap.federated.recipes import query_class
from hazemap.federated.recipes.features import (
    MOST_BINS,
    BucketRule,
    Categories,
    Feature,
    MapCells,
    NumericEdges,
    PrefixTree,
    StringPrefixes,
)
from hazemap.federated.recipes.policy import Carrier
from hazemap.federated.recipes.sql_query import SqlQuery, Value, check_name, check_text
from hazemap.field_types import check_fields
from hazemap.privacy.amplification.aggregate_price import AggregatePrice, aggregate_price, best_unary, minimum_cohort
from hazemap.privacy.budget import Number
from hazemap.privacy.local_randomisers import Asymmetric, UnaryEncoding

LONGEST_PURPOSE, LONGEST_LOCALE = 2_000, 200
"""Bytes of a purpose, and of one value of a cohort's field."""

MOST_FEATURES, MOST_COHORT_FIELDS, MOST_COHORT_VALUES = 16, 16, 1_024
LARGEST_LOCAL_EPSILON, LARGEST_DELTA, LARGEST_COHORT = Fraction(20), Fraction(1, 1000), 1 << 40

_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}", re.ASCII)


class NoMatch(Enum):
    """What a device reports that has no matching event, or whose query fails: silence would tell.

    `NONE` reports a bin of its own, and the other bins stay unbiased. `RANDOM` reports a bin drawn uniformly, as
    published: every bin then holds about (people without a match) / (number of bins) people too many.
    """

    NONE = "none"
    RANDOM = "random"


@dataclass(frozen=True)
class CohortField:
    """A field that is approved as not sensitive, and the values of it that a recipe asks for."""

    name: str
    values: tuple[str, ...]

    def __post_init__(self) -> None:
        check_fields(self)
        check_name(self.name, "the name of a cohort's field")
        if not 1 <= len(self.values) <= MOST_COHORT_VALUES or len(set(self.values)) != len(self.values):
            raise InputError(f"a cohort asks for 1 to {MOST_COHORT_VALUES:,} values of {self.name}, each once")
        for each in self.values:
            check_text(each, f"a value of {self.name}", LONGEST_LOCALE)


@dataclass(frozen=True)
class DecodedBins:
    """A vector of numbers as a table: the label of each bin for each feature, and its number; `none` apart."""

    labels: Mapping[str, NDArray[np.str_]]
    people: NDArray[np.float64]
    none: float | None


@dataclass(frozen=True)
class Recipe:
    """What a device is asked of its events. ε's and δ are exact; a device refuses what its own policy does not allow.

    `local_epsilon` bounds what one report tells of its sender, `epsilon` and `delta` what the sum of `minimum_cohort`
    reports tells; `carrier` says who carries them, so that nobody sees one alone. People with other values of the
    cohort's fields answer as if they had no matching event. Reports are asymmetric (appendix A) with `local_epsilon`,
    or have the two chances of `randomiser`, which tell no more.

    >>> recipe = Recipe(
    ...     id="ages", version=1, analysis="keyboard", purpose="how old the people are who type",
    ...     query=SqlQuery("SELECT age FROM profile"), cohort=(),
    ...     features=(Feature("age", NumericEdges((20, 40, 60))),),
    ...     local_epsilon=Fraction(2), epsilon=Fraction(1, 2), delta=Fraction(1, 10**6), minimum_cohort=1_000,
    ... )
    >>> recipe.size, recipe.bin_of((25,)), recipe.label(1), recipe.label(3)
    (4, 1, ('[20, 40)',), ('(none)',))
    """

    id: str
    version: int
    analysis: str
    purpose: str
    query: SqlQuery
    cohort: tuple[CohortField, ...]
    features: tuple[Feature, ...]
    local_epsilon: Fraction
    epsilon: Fraction
    delta: Fraction
    minimum_cohort: int
    carrier: Carrier = Carrier.SECURE_SUMS
    no_match: NoMatch = NoMatch.NONE
    randomiser: UnaryEncoding | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("id", "analysis"):
            if not _ID.fullmatch(getattr(self, name)):
                raise InputError(
                    f"the {name} of a recipe is lower-case letters, digits, '.', '_' and '-' (100 at most); "
                    f"found {getattr(self, name)!r:.80}"
                )
        if not 1 <= self.version < 1 << 31:
            raise InputError(f"versions of a recipe are counted from 1; found {self.version}")
        check_text(self.purpose, "the purpose of a recipe", LONGEST_PURPOSE)
        if not self.purpose.strip():
            raise InputError("a recipe says in its purpose what the answers are for: people read it")
        self._check_names()
        self._check_prices()
        if self.size > MOST_BINS:
            raise InputError(f"a recipe has at most {MOST_BINS:,} bins; this one has {self.size:,}: use fewer buckets")

    @property
    def bins(self) -> int:
        """How many bins the features have together: the product of their buckets."""
        return prod(each.rule.size for each in self.features)

    @property
    def none_bin(self) -> int | None:
        """The bin of people without an answer, after all others; None where they report a random one."""
        return self.bins if self.no_match is NoMatch.NONE else None

    @property
    def size(self) -> int:
        """How many numbers a report has: `bins`, and the bin of people without an answer."""
        return self.bins + (self.no_match is NoMatch.NONE)

    @property
    def columns(self) -> int:
        """How many columns the query's rows have: the features read them from the left to the right."""
        return sum(each.rule.columns for each in self.features)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of its canonical text: two recipes are the same iff these are."""
        return codec.digest(self)

    def bins_of(self, rows: Sequence[Sequence[Value | None]]) -> NDArray[np.int64]:
        """The bin of each row of the query; `InputError` for rows of another width. O(rows · features)."""
        width = self.columns
        if not set(map(len, rows)) <= {width}:
            raise InputError(f"the features of {self.id} read {width} columns; the query gives another number")
        columns = [[row[place] for row in rows] for place in range(width)]
        found, at = np.zeros(len(rows), dtype=np.int64), 0
        for feature in self.features:
            rule = feature.rule
            found = found * rule.size + rule.buckets(columns[at : at + rule.columns])
            at += rule.columns
        return found

    def bin_of(self, row: Sequence[Value | None]) -> int:
        """The bin of one row."""
        return int(self.bins_of([row])[0])

    def label(self, place: int) -> tuple[str, ...]:
        """The labels of one bin, one for each feature."""
        if not 0 <= place < self.size:
            raise InputError(f"the bins of {self.id} are 0 to {self.size - 1:,}; found {place}")
        if place == self.none_bin:
            return ("(none)",) * len(self.features)
        places = np.unravel_index(place, [each.rule.size for each in self.features])
        return tuple(labels[at] for labels, at in zip(self._labels, places, strict=True))

    def decoded(self, numbers: NDArray[np.float64]) -> DecodedBins:
        """A vector of `size` numbers as a table, a row for each bin: O(size · features)."""
        if numbers.shape != (self.size,):
            raise InputError(f"an answer to {self.id} has {self.size:,} numbers; found {numbers.shape}")
        places = np.unravel_index(np.arange(self.bins), [each.rule.size for each in self.features])
        labels = {
            each.name: np.array(own, dtype=np.str_)[place]
            for each, own, place in zip(self.features, self._labels, places, strict=True)
        }
        none = None if self.none_bin is None else float(numbers[self.none_bin])
        return DecodedBins(labels, np.asarray(numbers[: self.bins], dtype=np.float64), none)

    @property
    def law(self) -> Asymmetric | UnaryEncoding:
        """What a device does to its report."""
        return self.randomiser or Asymmetric(self.local_epsilon)

    def standard_deviation(self, people: int, share: float = 0.0) -> float:
        """The standard deviation of the noise among so many reports, of a bin that this share of people hold.

        √(n · 4e^ε₀)/(e^ε₀ − 1) for asymmetric reports and an empty bin (appendix A: private one-hot). Two servers
        each add reports of nobody: here those for a sum of the least cohort.
        """
        blank = 2 * (self.minimum_cohort - 1) if self.carrier is Carrier.TWO_SERVERS else 0
        return sqrt(float(self.law.variance(people + blank, np.array([share * people]))[0]))

    @cached_property
    def _labels(self) -> list[list[str]]:
        return [each.rule.labels() for each in self.features]

    def _check_names(self) -> None:
        for things, what, least, most in (
            (self.features, "features", 1, MOST_FEATURES),
            (self.cohort, "fields of its cohort", 0, MOST_COHORT_FIELDS),
        ):
            names = [each.name for each in things]
            if not least <= len(names) <= most or len(set(names)) != len(names):
                raise InputError(f"a recipe has {least} to {most} {what}, of different names; found {len(names)}")

    def _check_prices(self) -> None:
        for name in ("local_epsilon", "epsilon", "delta"):
            value = getattr(self, name)
            if max(abs(value.numerator), value.denominator) >= 1 << 64:
                raise InputError(f"{name} of a recipe has at most 19 digits above and below its bar: round it")
        if not 0 < self.local_epsilon <= LARGEST_LOCAL_EPSILON:
            raise InputError(
                f"the local ε is above 0 and at most {LARGEST_LOCAL_EPSILON}; found {float(self.local_epsilon):g}"
            )
        if self.randomiser is not None and self.randomiser.replacement > self.local_epsilon:
            raise InputError(
                f"reports with keep = {self.randomiser.keep} and turn_on = {self.randomiser.turn_on} tell ε ="
                f" {float(self.randomiser.replacement):.9g}, but the recipe states a local ε of"
                f" {float(self.local_epsilon):.9g} at most: choose a larger turn_on, or a larger local ε"
            )
        if not 0 < self.epsilon <= self.local_epsilon:
            raise InputError("the ε of the sum is above 0, and at most that of one report")
        if not 0 <= self.delta <= LARGEST_DELTA:
            raise InputError(f"δ lies between 0 and {LARGEST_DELTA}; found {float(self.delta):g}")
        if not 1 <= self.minimum_cohort <= LARGEST_COHORT:
            raise InputError(f"the minimum cohort is 1 to {LARGEST_COHORT:,} people; found {self.minimum_cohort:,}")


RULES: tuple[type[BucketRule], ...] = (NumericEdges, Categories, PrefixTree, StringPrefixes, MapCells)

LOG_FIELDS = ("seq", "time", "kind", "name", "version", "sha256", "study", "round", "people", "task", "previous")
_LINE = Limits(length=4_096, items=32, work=0, depth=1)
RECIPE_LOG_FORMAT = LogFormat("the log of recipes", b"hazemap recipes 1", LOG_FIELDS, _LINE)
"""The public log of recipes: which recipe was sent to how many devices, in which round of which study.

A server writes a line before it sends (`federated.server.recipe_log`); a device reads it before it answers
(`federated.device.recipes.public_recipe_log`). `kind` is recipe, policy or stop; `sha256` the digest of what is named;
`task` that of what devices are sent.
"""

KNOWN: tuple[type, ...] = (*query_class.KNOWN, Recipe, Carrier, NoMatch, CohortField, Feature, UnaryEncoding, *RULES)
"""What a recipe adds to the codec's closed list: devices read one with `codec.loads(text, KNOWN, Recipe, MESSAGE)`."""


@dataclass(frozen=True)
class RecipePrice:
    """The price of the sum of a recipe's minimum cohort, and the least cohort that would do.

    The price holds where the people of the minimum cohort, each one included, randomise their one-hot reports by the
    recipe's law: asymmetric (appendix A) or of two chances.

    >>> from hazemap.federated.recipes.recipe_file import EXAMPLE, recipe_from_toml
    >>> price = RecipePrice.of(recipe_from_toml(EXAMPLE))
    >>> price.kept, round(float(price.sum.epsilon), 3), price.least_cohort
    (True, 0.058, 466)
    """

    sum: AggregatePrice
    stated: Fraction
    least_cohort: int | None

    @classmethod
    def of(cls, recipe: Recipe) -> "RecipePrice":
        """The price of a recipe: 10 to 500 ms."""
        law = recipe.law.bit_flips
        try:
            least = minimum_cohort(law, recipe.epsilon, recipe.delta)
        except Refused:
            least = None
        return cls(aggregate_price(law, recipe.minimum_cohort, recipe.delta), recipe.epsilon, least)

    @property
    def kept(self) -> bool:
        """Whether the sum tells no more than the recipe states: check 3 of a device."""
        return self.sum.epsilon <= self.stated


def with_best_encoding(recipe: Recipe, share: Number) -> Recipe:
    """The recipe with the two chances that count best a bin which this share of the people hold, at its price. Seconds.

    Its minimum cohort keeps (ε, δ), and one report tells the recipe's local ε at most. That no other chances are better
    is only found by search (`best_unary`); their price is proved.

    >>> from hazemap.federated.recipes.recipe_file import EXAMPLE, recipe_from_toml
    >>> example = replace(recipe_from_toml(EXAMPLE), local_epsilon=Fraction(8))
    >>> best = with_best_encoding(example, "0.1")
    >>> RecipePrice.of(best).kept, round(best.standard_deviation(10_000, 0.1)), best.law.replacement <= 8
    (True, 19, True)
    """
    if not recipe.delta:
        raise InputError("without a δ a sum costs what one report does: there is no best encoding to look for")
    found = best_unary(recipe.epsilon, recipe.delta, recipe.minimum_cohort, recipe.local_epsilon, share)
    law = UnaryEncoding(*found)
    while law.replacement > recipe.local_epsilon:  # by the last of its binary digits, which are rounded up
        law = UnaryEncoding(law.keep, law.turn_on + Fraction(1, 1 << 40))
    return replace(recipe, randomiser=law)
