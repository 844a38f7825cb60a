"""Campaigns as operators order them: public, typed, and checked before any payment; and orders of a form."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import Enum
from fractions import Fraction
from typing import Any, NamedTuple, TypeVar, cast

from hazemap.algorithms import GOALS, METHODS, AdaptiveSlots, LocateBox, PrivateBoundingBox
from hazemap.algorithms.comparators import is_comparator
from hazemap.algorithms.plug_ins import plug_in_of, plug_in_type
from hazemap.algorithms.private_bounding_box import MethodOfBox
from hazemap.algorithms.proportion import MARKS_OR_SLOTS, Proportion, ProportionInSlots
from hazemap.cellmap import CellMap
from hazemap.cells import Tree
from hazemap.codec import CLOSED_LIST, UNIONS, Limits, loads
from hazemap.errors import InputError
from hazemap.federated.protocols.secure_aggregation.session_parameters import Mode
from hazemap.federated.trust.cohort_assumptions import Cohort, Sampling, SecureSumPrices
from hazemap.federated.trust.device_tasks import KNOWN as OF_TASKS
from hazemap.federated.trust.device_tasks import pure
from hazemap.federated.trust.one_report import OneReportPrices
from hazemap.federated.trust.randomised_reports import ReportPrices, check_budget, check_most
from hazemap.federated.trust.report_batch import ReportBatch
from hazemap.federated.trust.report_carriers import (
    CARRIERS,
    LOCAL,
    SECURE_SUM,
    TRUSTS,
    USUAL_LEVELS,
    ByOneReport,
    ByShuffler,
    ByTwoServers,
    ReportCarrier,
)
from hazemap.federated.trust.shuffled import ShuffledReportPrices, ShufflePrices
from hazemap.federated.trust.two_servers import TwoServerPrices
from hazemap.field_types import check_fields
from hazemap.privacy.budget import ApproxDP, Budget, PureDP, exact
from hazemap.queries.noisy_queries import Algorithm
from hazemap.specs.method_from_name import among_devices
from hazemap.specs.release_spec import ReleaseSpec
from hazemap.tables.contribution_bounding import Bounding, Outside, RowIsPerson
from hazemap.temporal.time_slots import Slots, Spans, seconds_of
from hazemap.values.marks import Marks


class TrustOptions(NamedTuple):
    """Options of the command line that say whom a campaign or a study trusts."""

    trust: str
    leader: str | None = None
    helper: str | None = None
    shuffler: str | None = None
    levels: int | None = None
    shuffler_key: str | None = None

    def carrier(self, least: int, local: Fraction | None = None) -> ReportCarrier | None:
        """Who carries the reports, at `least` so many at a time; None for secure sums.

        A shuffler carries vectors in parts, or with a `local` epsilon reports of that ε₀ at most.

        >>> TrustOptions("two-servers", "https://one.example", "https://two.example/").carrier(100).leader
        'https://one.example/'
        """
        if self.trust not in TRUSTS:
            raise InputError(f"--trust is one of {', '.join(TRUSTS)}; found {self.trust!r:.40}")
        two, one, mixed = (self.trust == each.trust for each in (ByTwoServers, ByOneReport, ByShuffler))
        needed = {"leader": two or one, "helper": two or one, "shuffler": mixed, "shuffler_key": mixed}
        for name, wanted in needed.items():
            if (getattr(self, name) is not None) != wanted:
                raise InputError(
                    f"--trust {self.trust} is {'given with' if wanted else 'given without'} --{name.replace('_', '-')}"
                )
        if self.levels is not None and not one:
            raise InputError("--levels is for --trust one-report: other reports answer one question each")
        if two:
            return ByTwoServers(_slashed(self.leader), _slashed(self.helper), least)
        if one:
            return ByOneReport(_slashed(self.leader), _slashed(self.helper), least, self.levels or USUAL_LEVELS)
        return ByShuffler(_slashed(self.shuffler), least, self.shuffler_key or "", local) if mixed else None

    def of_study(self, least: int | None, survivors: int) -> ByTwoServers | None:
        """Who carries reports to recipes, at `least` so many at a time, or `survivors`; None for secure sums.

        >>> TrustOptions("two-servers", "https://one.example", "https://two.example/").of_study(None, 90).minimum
        90
        """
        if self.trust in TRUSTS and self.trust not in (SECURE_SUM, ByTwoServers.trust):
            raise InputError(
                f"a study asks by --trust secure-sum or two-servers, not {self.trust}: a report to a recipe answers "
                "that one alone, and nobody sees it before it is summed"
            )
        if self.trust == SECURE_SUM and least is not None:
            raise InputError("--least is for --trust two-servers: a secure sum is opened as --dropout says")
        found = self.carrier(least or survivors)
        return found if isinstance(found, ByTwoServers) else None

    def local_epsilon(self, given: Fraction | None, budget: Budget) -> Fraction | None:
        """The most ε₀ of a report. In `local` the budget is what the reports hide by themselves.

        >>> from hazemap.privacy.budget import PureDP
        >>> TrustOptions("local").local_epsilon(None, PureDP("0.5"))
        Fraction(1, 1)
        """
        if self.trust == ByShuffler.trust:
            return None
        if self.trust != LOCAL:
            return given
        if not isinstance(budget, PureDP):
            raise InputError("--trust local relies on nobody, so it spends ε alone: leave --delta out")
        return given or min(2 * budget.epsilon, Fraction(64))


def _slashed(url: str | None) -> str:
    url = url or ""
    return url if url.endswith("/") else f"{url}/"


LONGEST = 7 * 24 * 3600
"""Seconds that a device may be given for an answer, or a campaign for its people to come."""


@dataclass(frozen=True)
class Deadlines:
    """Seconds that devices have to answer each stage of a secure sum.

    A stage ends sooner when all have answered. A device must also have time to come: the server tells it to ask every
    few seconds, but phones sleep. With `quiet` a stage also ends once as many have answered as must survive and nobody
    more has for so many seconds: faster where devices that are silent have mostly gone.

    >>> Deadlines.all(60).masked
    60
    """

    keys: float = 120
    picks: float = 120
    shares: float = 120
    masked: float = 300
    assent: float = 120
    unmask: float = 120
    quiet: float | None = None

    @classmethod
    def all(cls, seconds: float, quiet: float | None = None) -> "Deadlines":
        """The same for every stage."""
        return cls(seconds, seconds, seconds, seconds, seconds, seconds, quiet)

    def __post_init__(self) -> None:
        for field in fields(self):
            seconds = getattr(self, field.name)
            if field.name == "quiet" and seconds is None:
                continue
            if type(seconds) not in (int, float) or not 0.1 <= seconds <= LONGEST:
                raise InputError(f"a deadline is 0.1 to {LONGEST:,} seconds, not {seconds!r:.40}")


@dataclass(frozen=True)
class Campaign:
    """A map to be made by devices: who asks what, why, at which price, and whom.

    With a `local_epsilon` each person randomises their own report, by an ε of that at most (for a replacement), and the
    reports are added in secure sums without further noise: then the budget, against the sums, may be (ε, δ).

    A `carrier` takes the place of secure sums: two servers, or a shuffler (`federated.trust.report_carriers`).

    `name` is the campaign's own, and is used once; `dataset` pays, in the ledger. `wait` is how many seconds each
    round waits for enough devices to be there; `attempts` is how often a shard is begun that cannot be opened.

    >>> from hazemap.algorithms import Flat
    >>> from hazemap.spatial.quadtree import Quadtree
    >>> campaign = Campaign(
    ...     "commuters", "a map of where people live", "city", Flat(Quadtree.world(depth=6), 6), PureDP(1),
    ...     Cohort(1_000, 1_000),
    ... )
    >>> campaign.attempts
    3
    """

    name: str
    purpose: str
    dataset: str
    algorithm: Algorithm[CellMap]
    budget: PureDP | ApproxDP
    cohort: Cohort
    deadlines: Deadlines = Deadlines()
    wait: float = 3600
    attempts: int = 3
    local_epsilon: Fraction | None = None
    carrier: ByTwoServers | ByOneReport | ByShuffler | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not re.fullmatch(r"[a-z0-9][a-z0-9_.-]{0,63}", self.name):
            raise InputError(
                "a campaign's name is 1 to 64 of a-z, 0-9, dot, dash and underscore, beginning with a-z, 0-9"
            )
        for text, what in ((self.purpose, "purpose"), (self.dataset, "data set")):
            if not isinstance(text, str) or not 0 < len(text.strip()) <= 500 or not text.isprintable():
                raise InputError(f"a campaign's {what} is one line of 1 to 500 printable characters")
        own = isinstance(self.algorithm, METHODS) and not isinstance(self.algorithm, LocateBox)
        own = own or is_comparator(self.algorithm)
        if not own and plug_in_of(self.algorithm) is None:
            raise InputError("a campaign runs one of hazemap's methods that end in a map, or one of a plug-in")
        if type(self.asking.tree) not in UNIONS[Tree] or type(self.bounding) not in CLOSED_LIST:
            raise InputError(
                f"devices know hazemap's own cells and bounding rules only, not a {type(self.asking.tree).__name__}"
            )
        self._check_reports()
        self._check_carrier()
        self._check_slots()
        if isinstance(self.bounding, RowIsPerson):
            raise InputError(
                "a device is a person: bound the rows that each may give ('one row', rows:K, cells:K, 'one vote')"
            )
        if not isinstance(self.cohort, Cohort) or not isinstance(self.deadlines, Deadlines):
            raise InputError("a campaign has a cohort and deadlines")
        if type(self.wait) not in (int, float) or not 0 <= self.wait <= LONGEST:
            raise InputError(f"a campaign waits 0 to {LONGEST:,} seconds for its people, not {self.wait!r:.40}")
        if type(self.attempts) is not int or not 1 <= self.attempts <= 5:
            raise InputError(f"a shard is begun 1 to 5 times, not {self.attempts!r:.40}")

    def _check_reports(self) -> None:
        local = self.local_epsilon
        if isinstance(self.carrier, ByShuffler) and self.carrier.local is not None:
            local = self.carrier.local
            if not isinstance(self.budget, ApproxDP):
                raise InputError(
                    f"what is seen of shuffled reports costs (ε, δ), not {self.budget!s:.80}: give a delta"
                )
        if local is None:
            if not isinstance(self.budget, PureDP):
                raise InputError(
                    f"devices add discrete Laplace noise, so a campaign spends pure ε: found {self.budget!s:.80}; with "
                    "a local epsilon each person randomises their own report, and it may spend (ε, δ)"
                )
            return
        if not isinstance(self.budget, PureDP | ApproxDP):
            raise InputError(f"a campaign spends pure ε or (ε, δ), not {self.budget!s:.80}")
        if self.marks is not None:
            raise InputError("marks are counted in secure sums with shares of noise: leave the local epsilon out")
        check_most(local)
        check_budget(self.budget)
        if self.bounding.sensitivity.l1 != 1:
            raise InputError(
                f"each person randomises a report of one row, not of {self.bounding}: bound it by 'one row', or leave "
                "the local epsilon out"
            )

    def _check_slots(self) -> None:
        if isinstance(self.asking, ProportionInSlots):
            raise InputError(MARKS_OR_SLOTS)
        if not isinstance(self.asking, AdaptiveSlots):
            return
        if isinstance(self.carrier, ByOneReport):
            raise InputError("one report a person holds a path of places, not of times: leave the slots out")
        if isinstance(self.cohort, Cohort) and self.cohort.sampling is not Sampling.ONE:
            raise InputError(
                "maps of slots are cut out of one map of the same people: ask them in all rounds (--sampling one)"
            )

    def _check_carrier(self) -> None:
        if self.carrier is None:
            return
        if self.marks is not None:
            raise InputError("marks are counted in secure sums with shares of noise: leave the other trust model out")
        if self.local_epsilon is not None:
            raise InputError(
                "reports with a local epsilon are added in secure sums: leave out one of it and the carrier"
            )
        if self.carrier.minimum > self.cohort.people:
            raise InputError(
                f"a batch is opened with {self.carrier.minimum:,} reports or more, but only {self.cohort.people:,} "
                "people are asked: ask more, or set a smaller minimum"
            )

    @classmethod
    def of(cls, spec: ReleaseSpec, *, most_numbers: int, **own: Any) -> "Campaign":
        """The campaign that makes the map of a specification among devices; `own` are the other fields.

        Devices do not count what lies outside the map. No device is asked for more than `most_numbers` numbers by an
        adaptive method, in all rounds. `InputError` for a specification that names a table, a file or an `outside`.
        """
        if spec.plane is not None:
            raise InputError("devices know where they are in degrees: leave the plane out of a campaign")
        if _of_table(spec) or spec.value or spec.output:
            raise InputError(
                "a campaign asks devices, and its release is fetched from the server: leave the table, its columns "
                "and times, the value and the output out of its specification"
            )
        if spec.bounding.outside is not Outside.DROP:
            raise InputError('in a campaign people outside the map are not counted: say outside = "drop", or nothing')
        once = isinstance(own.get("carrier"), ByOneReport)
        algorithm = among_devices(spec.algorithm, most_numbers, once, spec.method)
        if spec.mark:  # people read it, and their policies judge campaigns by their purposes
            own["purpose"] = f"{own['purpose']} (also counts who carries the mark: {', '.join(spec.mark)})"
        if spec.timeslots.timed:
            own["purpose"] = f"{own['purpose']} (also counts at what time people are where: {spec.slots})"
        return cls(dataset=spec.dataset, algorithm=algorithm, budget=spec.budget, **own)  # type: ignore[arg-type]  # the budget is checked

    @property
    def trust(self) -> str:
        """Who is trusted, by name: one of `report_carriers.TRUSTS`."""
        if self.carrier is not None:
            return self.carrier.trust
        return LOCAL if self.local_epsilon is not None and isinstance(self.budget, PureDP) else SECURE_SUM

    @property
    def marks(self) -> Marks | None:
        """The marks that are counted beside people, if any."""
        return self.asking.known if isinstance(self.asking, Proportion) else None

    @property
    def slots(self) -> Slots | None:
        """The slots that each have a map, if any."""
        return self.asking.slots if isinstance(self.asking, AdaptiveSlots) else None

    @property
    def bounding(self) -> Bounding:
        """What one person may contribute."""
        return self.asking.bounding

    @property
    def asking(self) -> MethodOfBox:
        """The method that ends in the map, inside the box where one is found first."""
        if isinstance(self.algorithm, PrivateBoundingBox):
            return self.algorithm.method
        return cast(MethodOfBox, self.algorithm)


def _of_table(spec: ReleaseSpec) -> set[str]:
    """What a specification says of a table; slots of hours or days may say from when until when they are."""
    said = set(spec.table.document)
    if spec.slots in ("hour", "day") and isinstance(spec.timeslots, Spans):
        ends = [seconds_of(spec.timeslots.zone, time) for time in spec.table.window if time is not None]
        if ends != [spec.timeslots.edges[0], spec.timeslots.edges[-1]]:
            raise InputError(f"in a campaign slots are whole: let since and until be the edges of a {spec.slots} each")
        said -= {"since", "until"}
    return said


DevicePrices = SecureSumPrices | ReportPrices | TwoServerPrices | OneReportPrices | ShufflePrices | ShuffledReportPrices
"""What a share of a budget buys among devices, by who is trusted."""


def prices_of(campaign: Campaign, budget: Budget | None = None) -> DevicePrices:
    """What a share of its budget, or of another one, buys among a campaign's people."""
    carrier, local = campaign.carrier, campaign.local_epsilon
    if isinstance(carrier, ByShuffler):
        local = carrier.local
    minimum = None if carrier is None else carrier.minimum
    trust = None if carrier is None else carrier.trust
    return device_prices(trust, budget or campaign.budget, campaign.cohort, local, minimum)


def device_prices(
    trust: str | None, budget: Budget, cohort: Cohort, local: Fraction | None, minimum: int | None
) -> DevicePrices:
    """The prices by a carrier's name, or of secure sums for any other; `minimum` is the least batch of a shuffler."""
    if trust == ByTwoServers.trust:
        return TwoServerPrices(budget)
    if trust == ByOneReport.trust:
        return OneReportPrices(budget)
    if trust == ByShuffler.trust:
        if minimum is None:
            raise InputError("the statement speaks of a shuffler, and does not say how many reports were opened")
        batch = ReportBatch.of(cohort, minimum)
        if local is not None and isinstance(budget, ApproxDP):
            return ShuffledReportPrices(budget, batch, local)
        return ShufflePrices(pure(budget), batch)
    if local is not None:
        return ReportPrices(budget, cohort, local)
    return SecureSumPrices(pure(budget), cohort)


KNOWN: tuple[type, ...] = (Campaign, Deadlines, *CARRIERS, *OF_TASKS, *METHODS, *GOALS)
"""What a campaign adds to the codec's closed list."""

ORDER = Limits(length=1 << 26, items=1 << 23, work=1 << 28, lists=1 << 23)
"""A campaign may hold a prior map."""


def campaign_from(text: str | bytes) -> Campaign:
    """A campaign that an operator sent or the server kept; its algorithm may be a plug-in's. `CodecError` otherwise."""
    campaign: Campaign = loads(text, KNOWN, Campaign, ORDER, plug_in_type)
    return campaign


Choice = TypeVar("Choice", bound=Enum)

MAP = (
    *("epsilon", "delta", "dataset", "box", "cells", "method", "prior", "prior_is_public", "bounding", "mark"),
    *("slots", "time_zone", "since", "until", "goal"),
)
"""What of a specification is said of a campaign's map; beside it stands a `CampaignOrder`."""


@dataclass(frozen=True)
class CampaignOrder:
    """Who is asked for a map, why, how long they have, and who is trusted: the options of `hazemap campaign start`.

    >>> order = CampaignOrder("commuters", "where people live", 2000)
    >>> order.campaign(order.map_of({"epsilon": "1", "box": "13,52,14,53"})).cohort.shards
    (1000, 1000)
    """

    name: str
    purpose: str
    people: int
    numbers: int = 20_000
    shard: int | None = None
    dropout: str = "0.2"
    corrupt: str = "0.1"
    sampling: str | None = None
    mode: str = "malicious"
    local_epsilon: str | None = None
    trust: str = "secure-sum"
    leader: str | None = None
    helper: str | None = None
    shuffler: str | None = None
    shuffler_key: str | None = None
    least: int | None = None
    levels: int | None = None
    stage: float = 120.0
    upload: float | None = None
    quiet: float | None = None
    wait: float = 3600.0

    def __post_init__(self) -> None:
        check_fields(self)
        for least, name in ((2, "people"), (500, "numbers"), (2, "shard"), (1, "least"), (1, "levels")):
            value = getattr(self, name)
            if value is not None and value < least:
                raise InputError(f"{name} is {least:,} or more, not {value:,}")

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "CampaignOrder":
        """Of the names of a form; `InputError` for a name that there is none of, and for one that is missing."""
        needed = {"name": "its own, used once", "purpose": "every person sees it", "people": "a round"}
        return cls(**of_names(cls, data, needed))

    def map_of(self, given: Mapping[str, Any]) -> ReleaseSpec:
        """The specification of its map: the names of `MAP`. Without another data set, its own name pays."""
        if unknown := sorted(set(given) - set(MAP)):
            raise InputError(f"the map of a campaign says nothing of {', '.join(map(repr, unknown))[:200]}")
        return ReleaseSpec.from_json({"dataset": self.name, "outside": "drop", **given})

    def campaign(self, spec: ReleaseSpec) -> Campaign:
        """The campaign that is ordered; `InputError` says what of it cannot be.

        The same people are asked in all rounds where maps of slots are cut out of one, otherwise others by default.
        """
        sampling = self.sampling or ("one" if spec.timeslots.timed else "fresh")
        cohort = Cohort(
            self.people,
            min(self.people, self.shard or 1000),
            dropout=exact(self.dropout, "--dropout"),
            corrupt=exact(self.corrupt, "--corrupt"),
            sampling=_chosen("--sampling", Sampling, sampling, "one (the same people in all rounds) or fresh (others)"),
            mode=_chosen("--mode", Mode, self.mode, "semi-honest or malicious"),
        )
        local = None if self.local_epsilon is None else exact(self.local_epsilon, "--local-epsilon")
        whom = TrustOptions(self.trust, self.leader, self.helper, self.shuffler, self.levels, self.shuffler_key)
        return Campaign.of(
            spec,
            most_numbers=self.numbers,
            name=self.name,
            purpose=self.purpose,
            cohort=cohort,
            deadlines=replace(Deadlines.all(self.stage, self.quiet), masked=self.upload or self.stage),
            wait=self.wait,
            local_epsilon=whom.local_epsilon(local, spec.budget),
            carrier=whom.carrier(self.least or cohort.survivors(self.people), local),
        )


def of_names(kind: type, data: Mapping[str, Any], needed: Mapping[str, str]) -> dict[str, Any]:
    """The fields of an order in a form. `InputError` for others, and where one is missing that is `needed`, and why."""
    known = {field.name: field.type for field in fields(kind)}
    if unknown := sorted(set(data) - set(known)):
        raise InputError(f"an order says nothing of {', '.join(map(repr, unknown))[:200]}")
    for name, why in needed.items():
        if name not in data:
            raise InputError(f"an order needs {name} ({why})")
    return {name: _seconds(value) if "float" in str(known[name]) else value for name, value in data.items()}


def _seconds(value: Any) -> Any:
    """A number of seconds; a whole one counts, too."""
    if type(value) is int and abs(value) < 1 << 53:
        return float(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError("seconds are a finite number")
    return value


def _chosen(option: str, kind: type[Choice], text: str, choices: str) -> Choice:
    """The member of an enumeration that an option names."""
    found = {each.name.lower().replace("_", "-"): each for each in kind}.get(text)
    if found is None:
        raise InputError(f"{option} is {choices}; found {text!r:.40}")
    return found
