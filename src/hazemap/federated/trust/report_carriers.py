"""Who carries the reports of a campaign to its sums, where that is no secure sum; what devices see of a round.

Nothing here is secret. A campaign names its carrier when it is ordered, its devices are told it with every question,
and each holds it to the addresses that its person's policy pins.
"""

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Final

from hazemap.errors import InputError
from hazemap.federated.recipes.policy import Carrier
from hazemap.federated.recipes.recipe import Recipe
from hazemap.federated.trust.device_tasks import KNOWN, Task
from hazemap.federated.trust.prefix_walk import MOST_PREFIXES
from hazemap.federated.trust.randomised_reports import check_most
from hazemap.federated.trust.recipe_terms import check_carried_by
from hazemap.field_types import check_fields

MOST_REPORTS = 1 << 24
"""The largest minimum of a batch."""
MOST_LEVELS = 1 << 10
USUAL_LEVELS = 8
"""Levels that one report answers, unless something else is said."""
_ADDRESS = re.compile(r"https?://[A-Za-z0-9.\-\[\]:_]{1,255}/(?:[A-Za-z0-9._~-]{1,80}/){0,8}", re.ASCII)


@dataclass(frozen=True)
class ByTwoServers:
    """A report for each question, in shares for a leader and a helper, of which one is honest.

    Neither opens anything below a batch of `minimum` reports. Addresses end in a slash.

    >>> ByTwoServers("https://one.example/", "https://two.example/", 1_000).trust
    'two-servers'
    """

    leader: str
    helper: str
    minimum: int
    trust: ClassVar[str] = "two-servers"

    def __post_init__(self) -> None:
        _check(self, self.leader, self.helper)


@dataclass(frozen=True)
class ByOneReport:
    """One report of each person, with which two servers walk down the tree: at most `levels` levels of `prefixes`."""

    leader: str
    helper: str
    minimum: int
    levels: int
    prefixes: int = MOST_PREFIXES
    trust: ClassVar[str] = "one-report"

    def __post_init__(self) -> None:
        _check(self, self.leader, self.helper)
        if not 1 <= self.levels <= MOST_LEVELS or not 1 <= self.prefixes <= MOST_PREFIXES:
            raise InputError(
                f"one report answers 1 to {MOST_LEVELS:,} levels of 1 to {MOST_PREFIXES:,} prefixes, not "
                f"{self.levels:,} of {self.prefixes:,}"
            )


@dataclass(frozen=True)
class ByShuffler:
    """Sealed reports that a shuffler hands on in random order, those of `minimum` people or none.

    `key` is the shuffler's, 64 hexadecimal digits: nobody on the way sees who may report. Without `local` people add
    noise and split what they say in parts, of which only the sum is learned. With it everybody sends one report that
    is randomised by an ε₀ of that at most, and the analyser sees every one.
    """

    shuffler: str
    minimum: int
    key: str
    local: Fraction | None = None
    trust: ClassVar[str] = "shuffled"

    def __post_init__(self) -> None:
        _check(self, self.shuffler)
        if self.local is not None:
            check_most(self.local)
        if not re.fullmatch("[0-9a-f]{64}", self.key):
            raise InputError(
                f"the key of a shuffler is 64 hexadecimal digits, as it prints them; found {self.key!r:.80}"
            )


ReportCarrier = ByTwoServers | ByOneReport | ByShuffler
CARRIERS: tuple[type[ReportCarrier], ...] = (ByTwoServers, ByOneReport, ByShuffler)
"""What a campaign and a task add to the codec's closed list."""

SECURE_SUM, LOCAL = "secure-sum", "local"
TRUSTS = (SECURE_SUM, LOCAL, *(carrier.trust for carrier in CARRIERS))
"""Whom a campaign may trust, by name. In `local` people randomise their reports, and nobody else is relied on."""


def addresses(carrier: ReportCarrier) -> tuple[str, ...]:
    """Where the parties are.

    >>> addresses(ByShuffler("https://mix.example/", 100, 64 * "0"))
    ('https://mix.example/',)
    """
    return (carrier.shuffler,) if isinstance(carrier, ByShuffler) else (carrier.leader, carrier.helper)


def _check(carrier: ReportCarrier, *urls: str) -> None:
    check_fields(carrier)
    for url in urls:
        if len(url) > 1_000 or not _ADDRESS.fullmatch(url):
            raise InputError(
                f"the address of a server ends in a slash, such as https://one.example/; found {url!r:.80}"
            )
    if len(set(urls)) < len(urls):
        raise InputError("leader and helper have the same address: one server would hold both shares of every report")
    if not 1 <= carrier.minimum <= MOST_REPORTS:
        raise InputError(f"the least reports of a batch are 1 to {MOST_REPORTS:,}, not {carrier.minimum!r:.40}")


ANNOUNCED: Final = 0
"""The stage of such a round, where stages of secure sums begin with 1."""
LATEST: Final = 1 << 40
"""Seconds after the epoch."""


@dataclass(frozen=True)
class CarriedTask:
    """A round and its carrier. `batch` is 32 random bytes in hexadecimal digits; it began at `begun` (epoch seconds).

    Everything else that is secret from nobody follows from these by computation: tasks of two servers, their noise
    and their batches. So a device computes it, and believes nobody.
    """

    task: Task
    carrier: ByTwoServers | ByOneReport | ByShuffler
    batch: str
    begun: int

    def __post_init__(self) -> None:
        check_fields(self)
        if not re.fullmatch("[0-9a-f]{64}", self.batch) or not 0 <= self.begun <= LATEST:
            raise InputError("a round has a batch of 64 hexadecimal digits, and a time")
        if self.task.recipe is not None:
            self._check_recipe(self.task.recipe)
        elif (self.task.randomiser is not None) != (
            isinstance(self.carrier, ByShuffler) and self.carrier.local is not None
        ):
            raise InputError("a round of this kind asks for counts, and its carrier says how they are hidden")
        if self.carrier.minimum > self.task.cohort.people:
            raise InputError("a batch is opened with more reports than people are asked")

    def _check_recipe(self, recipe: Recipe) -> None:
        if not isinstance(self.carrier, ByTwoServers):
            raise InputError(
                f"reports to the recipe {recipe.id} are summed by secure sums or by two servers, not by "
                f"{self.carrier.trust!r}: what people randomise is seen by nobody before it is summed"
            )
        check_carried_by(recipe, Carrier.TWO_SERVERS)


CARRIED: Final = (CarriedTask, *CARRIERS, *KNOWN)
"""What such a task adds to the codec's closed list."""
